"""The page, live: whatever changes, in the form or the address, is checked, estimated and painted."""

from collections.abc import Mapping, Sequence
import json
from types import MappingProxyType

import host
from js import URL, Blob, document, setTimeout, window
from pyodide.ffi import JsException, create_once_callable, to_js

from vramplan import badge, language, report, share
from vramplan.asked import AT_LEAST, KEEP, asked_query, read_asked
from vramplan.catalogue import defaults
from vramplan.checks import check
from vramplan.compare import counted_or_why
from vramplan.errors import FieldError, NotExpressible, SettingsError
from vramplan.fields import BY_NAME, applying
from vramplan.kinds import Targets
from vramplan.ledger import Estimate
from vramplan.link import LANGUAGE_KEY, PIN_KEY, Query, change_texts, fitted, read_query, texts_to_query, to_query
from vramplan.make_fit import Wanted
from vramplan.nvidia_smi import read_used
from vramplan.pins import pinned
from vramplan.settings import Settings, carried_over, of_checked
from vramplan.units import count_text, counted
from pyscript import clipboard, memory, panels
from pyscript.address import Address
from pyscript.bring import Bring
from pyscript.controls import Controls
from pyscript.dom import Region, made_for
from pyscript.events import AfterFrame, Later, listen, shown, start as start_task
from pyscript.framed import Framed
from pyscript.lengths import LengthsSide
from pyscript.own_run import OwnRun
from pyscript.pins import PinsSide
from pyscript.placement import PlacementSide
from pyscript.results import ResultsSide
from pyscript.share import Share
from pyscript.views import problems as problems_view
from pyscript.views.form import fold_of, is_measured, is_shown

KEEP_FILE_FOR = 60_000
"""Milliseconds after which the memory of a saved file is given back; some browsers read it after the click."""

SIZING_SCRIPT = "embed.js"
"""The script that other pages name to size their frames."""

PASTED_INTO = "other_processes"
"""The setting that may be pasted from nvidia-smi."""

TOAST_FOR = 4_000
"""Milliseconds a confirmation stays on the screen."""


NOTHING_KEPT: Mapping[str, str] = MappingProxyType({})
"""A run whose query string had room for all of it."""


class Page:
    """Ties the form, the address and the results together. All state is in the form and the address."""

    def __init__(self):
        self._address = Address()
        self._controls = Controls()
        self._results = ResultsSide(self._address.view, self._asked_changed)
        self._notices = Region("notices")
        self._beyond = Region("beyond-the-address")
        self._share = Share(self._address.beside(SIZING_SCRIPT))
        self._settings: Settings | None = None
        self._estimate: Estimate | None = None
        self._texts: dict[str, str] = {}
        self._pins = PinsSide()
        self._made: Query | None = None
        self._committed = ""
        self._pointing = False
        self._values: Mapping[str, object] = {}
        self._unused: tuple[str, ...] = ()
        self._printed = Region("printed")
        self._around_later = AfterFrame(self._renew_around)
        self._clear_toasts = Later(self._clear, TOAST_FOR)
        self._framed = Framed(self._address, self._controls, self._use, lambda: self._written.unpinned)
        self._own_run = OwnRun(lambda: self._estimate, self._use)
        self._placement = PlacementSide(lambda: self._settings)
        self._lengths = LengthsSide(lambda: self._estimate)
        self._bringing = {
            "place": self._placement.read_boxes,
            "lengths-read": self._lengths.read_box,
            "own-run-read": self._own_run.read_box,
            "frame-settings": self._framed.toggle_settings,
        }
        if not self._address.view.embed:
            bring = Bring(lambda: self._texts, self._use)
            self._bringing |= {"bring-read": bring.read_box, "bring-fetch": bring.fetch, "bring-cancel": bring.cancel, "bring-as-dense": bring.read_as_dense}

    async def start(self, touched: list[str]) -> None:
        """Take over: show what the link says, except in the fields a visitor has used while the page was loading.

        The answer is on the screen before everything around it is worked out.
        """
        query, view, asked = self._address.query(), self._address.view, self._results.make_fit.asked
        self._open_kept(query, [name for name in BY_NAME if name not in touched or name in view.locked])
        if not {KEEP, AT_LEAST}.isdisjoint(touched):
            self._results.make_fit.ask(asked)
            self._asked_changed()
        self._framed.hold()
        form = document.getElementById("form")
        listen(form, "input", self._on_input)
        listen(form, "change", lambda event: self._commit())
        listen(form, "submit", lambda event: event.preventDefault())
        listen(document, "click", self._on_click)
        listen(window, "beforeprint", lambda event: self._print())
        self._address.on_travel(self._on_travel)
        for button in document.querySelectorAll("button[data-action]"):
            button.disabled = False
        await shown()
        await self._results.up_to_date()
        listen(document.getElementById("curve"), "input", self._on_slider)
        for name in ("pointermove", "pointerdown"):
            listen(document.getElementById("curve"), name, self._on_point)
        listen(document.getElementById("curve"), "pointerleave", self._on_leave)

    def _open_kept(self, query: str, names: list[str] | None = None) -> None:
        """Show the run of the address as it is, with what the address had no room for."""
        self._open(query, names, memory.recall(query.removeprefix("?")))

    def _open(self, query: str, names: list[str] | None = None, kept: Mapping[str, str] = NOTHING_KEPT, *, with_pins: bool = True) -> None:
        """Show the run of a query string. Unless names are given, fields it has no use for keep what is typed in them.

        kept: what the query string had no room for. with_pins: its pinned runs, and what it asks of one that is made to fit, take the place of
        those there are.
        """
        link, asked = read_query(query), read_asked(query)
        pins = pinned(link.with_pins(kept.get(PIN_KEY, "").split()))
        if with_pins:
            self._pins.take_over(pins.runs)
            self._results.make_fit.ask(asked.wanted)
        texts = link.all_texts | {name: text for name, text in kept.items() if name in BY_NAME}
        checked = check(texts, defaults())
        undecided = (name for name in link.texts if name not in checked.unused)  # whether they apply hangs on one that is wrong
        self._controls.write(texts, names or [*checked.values, *(error.field for error in checked.errors), *undecided])
        unseen = [
            f"{error.message} The default is used." for error in checked.errors if not is_shown(BY_NAME[error.field])
        ]
        self._tell_about_link((*self._address.view.notices, *link.notices, *asked.notices, *pins.notices, *unseen))
        self._refresh()
        self._controls.unfold(self._texts)
        self._write_address()
        self._committed = self._query

    def _tell_about_link(self, sentences: tuple[str, ...]) -> None:
        if sentences:
            self._notices.paint(problems_view.notices(sentences))
        else:
            self._notices.hide()

    def _tell_what_is_left_out(self) -> None:
        """Name what the address has no room for, and offer the file that has it."""
        left = self._left
        if left:
            self._beyond.paint(problems_view.beyond_the_address(left))
        else:
            self._beyond.hide()

    @property
    def _left(self) -> str:
        """What the address has no room for, in words."""
        made = self._written
        settings = [report.labels_text(made.left_out)] if made.left_out else []
        pins = [f"the last {counted(made.left_pins, 'pinned run')}"] if made.left_pins else []
        return " and ".join((*settings, *pins))

    def _refresh(self, texts: dict[str, str] | None = None) -> None:
        """Check, estimate and paint what the controls hold: these texts, if they have just been read."""
        texts = self._texts = texts or self._controls.read()
        checked = check(texts, defaults())
        names = applying(checked.values)
        self._controls.show_applying(names)
        self._values, self._unused, self._made = checked.values, checked.unused, None
        self._framed.show(self._values)
        self._around_later.call()
        self._settings = self._estimate = None
        try:
            self._settings = of_checked(checked)
        except SettingsError as problem:
            self._controls.show_errors(problem.errors)
            self._results.show_problems(problem.errors)
            self._framed.uncounted(error.field for error in problem.errors)
        else:
            self._count(self._settings, names)
        self._pins.show(self._estimate)

    def _renew_around(self) -> None:
        """Renew what can wait until the answer is on the screen: the address, ranges beside the fields, and the parts that have boxes of their own."""
        self._write_address()
        self._controls.show_ranges(self._values)
        if not self._address.view.embed:
            self._own_run.show(self._estimate)
            self._placement.renew()
            self._lengths.renew()

    @property
    def _written(self) -> Query:
        """The query string of what the page holds, made when it is first asked for."""
        if self._made is None:
            asked = asked_query(self._results.make_fit.asked)
            self._made = fitted(self._texts, self._pins.settings, asked=asked, room=self._address.room, unused=self._unused)
        return self._made

    @property
    def _query(self) -> str:
        return self._written.text

    def _write_address(self) -> None:
        """Show in the address what the page holds, and keep what it has no room for."""
        made = self._written
        left_pins = {PIN_KEY: " ".join(map(to_query, self._pins.settings[-made.left_pins :]))} if made.left_pins else {}
        memory.keep(made.text, {name: self._texts[name] for name in made.left_out} | left_pins)
        self._tell_what_is_left_out()
        self._address.replace(made.text)

    def _print(self) -> None:
        """Make the sheet that is printed instead of the page: of the run as it is, or of what stands in the way of one."""
        link = self._address.full(self._query)
        if self._estimate:
            self._printed.renew(panels.printed(self._estimate, link))
        elif self._settings:
            self._printed.renew(panels.printed_reason(self._settings, link, counted_or_why(self._settings).message))
        else:
            self._printed.renew(problems_view.problems(check(self._texts, defaults()).errors))

    def _count(self, settings: Settings, names: set[str]) -> None:
        """Show the estimate of a valid run, or the sentence that says why the accounting has none."""
        counted = counted_or_why(settings)
        if isinstance(counted, NotExpressible):
            reason = FieldError(counted.field if counted.field in names else "accounting", counted.message)
            self._controls.show_errors((reason,))
            self._results.show_reason(settings, reason, counted)
            self._framed.uncounted([reason.field])
        else:
            self._estimate = counted
            self._controls.show_errors(())
            self._results.show(counted)
            self._framed.counted(counted)

    def _commit(self) -> None:
        """A change is finished: give it its own step in the history."""
        if self._query != self._committed:
            self._address.replace(self._committed)
            self._address.push(self._query)
            self._write_address()
            self._committed = self._query

    def _pins_changed(self) -> None:
        """Other runs are pinned: a step of its own."""
        self._refresh()
        self._commit()

    def _asked_changed(self) -> None:
        """Something else is asked of a run that is made to fit: a step of its own."""
        self._made = None
        self._framed.show(self._values)
        self._commit()

    def _use(self, texts: Mapping[str, str], pins: Sequence[str] = ()) -> None:
        """Take over settings that a file gives, as a step of its own, and its pinned runs, if it has any, in place of those there are."""
        if pins:
            found = pinned(read_query("").with_pins(pins))
            self._pins.take_over(found.runs)
            self._tell_about_link(found.notices)
        self._controls.write(texts, texts)
        self._refresh()
        self._commit()

    def _on_input(self, event) -> None:
        name = event.target.name
        if name not in BY_NAME:
            return
        if isinstance(BY_NAME[name].kind, Targets):
            self._controls.offer_own_list(name)
        self._take_paste(name, event.target)
        texts = self._texts | {name: self._controls.read_one(name)}
        filled = carried_over(texts, chosen=name, before=self._texts.get(name, ""))
        self._controls.write(filled, filled)
        self._controls.unfold(filled)
        self._refresh(None if filled else texts)

    def _take_paste(self, name: str, box) -> None:
        """Turn pasted nvidia-smi output into the amount it tells of, and say so."""
        used = read_used(box.value) if name == PASTED_INTO else None
        if used:
            box.value = used.gib
            of = f"the largest of {used.cards} cards, " if used.cards > 1 else ""
            self._toast(f"Read {of}{count_text(used.mib)} MiB used = {used.gib} GiB from what was pasted")

    def _on_travel(self) -> None:
        self._share.close()
        if self._address.query() != f"?{self._query}":
            self._open_kept(self._address.query())

    def _go(self, query: str, names: list[str] | None = None) -> None:
        """Open another run as a step of its own, beside the runs that are pinned."""
        if query != self._written.run:
            self._address.push(query)
        self._open(query, names, with_pins=False)

    def _take(self, target) -> None:
        """Open the run of a link. One that was offered before the last change is that offer, made to the run as it is now."""
        query = target.getAttribute("href").removeprefix("?")
        before = made_for(target)
        if before in (None, self._settings):
            self._go(query)
        else:
            self._use(change_texts(before, query))

    def _on_click(self, event) -> None:
        chosen = event.target.closest("[data-language]")
        if chosen:
            chosen.search = "?" + self._address.shown(f"{self._query}&{LANGUAGE_KEY}={chosen.dataset.language}")
            return
        target = event.target.closest("[data-open], [data-field], [data-copy], [data-action], a[href^='#']")
        if not target or event.ctrlKey or event.metaKey or event.shiftKey or self._framed.leaves(target):
            return
        data = target.dataset
        if not any(hasattr(data, name) for name in ("open", "field", "copy", "action")):
            return
        event.preventDefault()
        if hasattr(data, "open"):
            self._take(target)
            if not target.closest("main"):
                document.getElementById("answer").focus()
        elif hasattr(data, "field"):
            self._framed.show_settings()
            self._controls.focus(data.field)
        elif hasattr(data, "copy"):
            self._copy(document.getElementById(data.copy).value, target.textContent.removeprefix(language.told("Copy")).strip())
        else:
            self._act(data.action, data)

    def _act(self, action: str, data) -> None:
        if action == "copy-link":
            without = f", without {self._left}; Share offers a settings file that holds all" if self._left else ""
            self._copy(self._address.full(self._query), "Link", without)
        elif action == "share":
            self._clear()
            address = self._address.full(self._query)
            applies = applying(self._values)
            fields = [name for name, field in BY_NAME.items() if name in applies and is_shown(field) and not (fold_of(field) or is_measured(field))]
            self._share.open(self._settings, self._estimate, address, fields, left_out=self._left)
        elif action == "close-share":
            self._share.close()
        elif action == "save-json":
            start_task(self._save_document("estimate.json", self._estimate))
        elif action == "save-export":
            made = self._share.exports.made
            self._save(made.text, made.file, "text/plain;charset=utf-8")
        elif action == "save-badge":
            self._save(badge.svg(self._share.badge), badge.FILE, "image/svg+xml")
        elif action == "save-settings":
            self._save(share.settings_file(self._texts, self._pins.settings), "vramplan-settings.json")
        elif action == "lay-over":
            self._results.timeline.lay_over(data.run)
        elif action == "keep-run":
            self._results.timeline.keep()
            self._toast("Kept; change the settings, and this run stays as a line over the new one")
        elif action == "save-timeline-svg":
            self._save(self._results.timeline.svg(), "vramplan-step.svg", "image/svg+xml")
        elif action == "save-timeline-png":
            start_task(self._save_png())
        elif action == "save-timeline-json":
            start_task(self._save_document("vramplan-step.json", self._estimate, self._results.timeline.films))
        elif action == "reset":
            self._results.timeline.start_again()
            self._pins.take_over(())
            self._results.make_fit.ask(Wanted())
            self._go(texts_to_query({}), list(BY_NAME))
            self._toast("Back to the opening configuration")
        elif action in self._bringing:
            self._bringing[action]()
        elif action == "pin-run":
            told = self._pins.pin()
            self._pins_changed()
            self._toast(told)
        elif action in ("unpin-run", "baseline-run"):
            (self._pins.unpin if action == "unpin-run" else self._pins.make_baseline)(int(data.run))
            self._pins_changed()
            self._pins.focus()
        elif action == "copy-pins":
            self._copy(self._pins.markdown(), "Markdown")
        elif action == "save-pins":
            self._save(self._pins.csv(), "vramplan-runs.csv", "text/csv")
        elif action == "use-length":
            self._use({"sequence_length": data.length})
            self._toast(f"{report.labels_text(('sequence_length',))} set to {count_text(int(data.length))}")
        elif action == "dismiss-notices":
            self._notices.hide()
            document.getElementById("answer").focus()

    def _copy(self, text: str, what: str, note: str = "") -> None:
        copying = clipboard.copy(text)

        async def run() -> None:
            copied = await copying
            self._toast(f"{what} copied{note}" if copied else "This browser does not allow copying; select the text instead")

        start_task(run())

    async def _save_document(self, name: str, current: Estimate, films: panels.Films | None = None) -> None:
        """Offer the estimate, or its timeline where one is given, as a JSON file. pydantic writes it, and is loaded for the first one."""
        self._toast("Preparing the JSON document …")
        try:
            await host.loadExtras()
        except JsException:
            self._toast("The JSON document needs a part that could not be downloaded; check the connection and try again")
            return
        from vramplan.documents import EstimateDocument, TimelineDocument

        shown, over = panels.for_files(films) if films else (None, None)
        made = TimelineDocument.of(shown, over=over) if films else EstimateDocument.of(current)
        self._save(made.to_json(), name)

    async def _save_png(self) -> None:
        """Offer the timeline as a picture."""
        try:
            picture = await self._results.timeline.png()
        except JsException:
            picture = b""
        if picture:
            self._save(picture, "vramplan-step.png", "image/png")
        else:
            self._toast("This browser could not make a picture of it; save the SVG instead")

    def _save(self, content, name: str, kind: str = "application/json") -> None:
        """Hand the browser a file to save: a text, or bytes."""
        link = document.createElement("a")
        link.href = URL.createObjectURL(Blob.new(to_js([content]), to_js({"type": kind})))
        link.download = name
        link.click()
        address = link.href
        setTimeout(create_once_callable(lambda: URL.revokeObjectURL(address)), KEEP_FILE_FOR)
        self._toast(f"Saved {name}")

    def _on_slider(self, event) -> None:
        self._pointing = False
        self._results.read_curve(int(event.target.value))

    def _on_point(self, event) -> None:
        drawing = event.target.closest("svg")
        if drawing:
            self._pointing = True
            box = drawing.getBoundingClientRect()
            self._results.read_curve_at(event.clientX, box)

    def _on_leave(self, event) -> None:
        """Back to the current length when the mouse leaves; a reading chosen by touch or with the slider stays."""
        if self._pointing and event.pointerType == "mouse":
            self._pointing = False
            self._results.read_curve_here()

    def _toast(self, message: str) -> None:
        self._clear()
        document.getElementById("share-toast" if self._share.is_open else "toast").textContent = language.told(message)
        self._clear_toasts.call()

    def _clear(self) -> None:
        for place in ("share-toast", "toast"):
            document.getElementById(place).textContent = ""


async def start(touched: str) -> None:
    """Entry for the boot script. touched: JSON list of the names of controls used before Python was there."""
    await Page().start(json.loads(touched))
