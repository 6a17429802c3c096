"""The results side of the page: every panel, the values in the formulas, and what a screen reader hears."""

from collections.abc import Callable
from functools import partial

from js import document, window

from vramplan import accounts, language, report
from vramplan.calculation import EXPLAINED, applying_cases, value_texts
from vramplan.chart import NARROW, WIDE, nearest_sample
from vramplan.compare import counted_by
from vramplan.errors import FieldError, NotExpressible
from vramplan.ledger import Estimate
from vramplan.settings import Settings
from vramplan.view import View
from pyscript import answer, panels
from pyscript.dom import Region
from pyscript.events import Later, Steps, listen
from pyscript.fitmap import FitMapSide
from pyscript.make_fit import MakeFitSide
from pyscript.seldom import Seldom
from pyscript.timeline import TimelineSide
from pyscript.tree import Element
from pyscript.views import problems as problems_view

SPEAK_AFTER = 900
"""Milliseconds without a change before a screen reader hears the result."""

PHONE = "(max-width: 40rem)"
"""Screens that get the narrow drawing of the curve, as in style.css."""

REGIONS = (
    "headline", "accountings", "problems", "about", "components", "moments", "methods", "maxima", "alternatives", "curve",
    "curve-table", "gpus", "gpus-table", "host", "assumptions", "others", "differences", "own-names",
)
"""Parts of the page that are painted, by id."""

OPTIONAL = ("moments", "gpus", "host", "assumptions", "differences")
"""Panels that an estimate may have nothing for."""


PARTS = (
    "accountings", "about", "components", "moments", "maxima", "alternatives", "methods", "curve", "curve-table", "gpus", "host", "assumptions",
    "others", "differences", "own-names",
)
"""What is painted around the answer, in this order."""

OF_THE_RUN = {
    "accountings": lambda run: panels.accountings(run.settings, run), "about": panels.about, "components": panels.components,
    "moments": panels.moments, "methods": panels.methods, "host": panels.host, "assumptions": panels.assumptions, "others": panels.others,
    "differences": panels.differences, "own-names": lambda run: panels.own_names(run.settings),
}
OF_THE_SEARCHES = {"maxima": panels.maxima, "alternatives": panels.alternatives, "curve-table": panels.curve_table}
"""Parts that are one tree each, and what makes it."""


class ResultsSide:
    """Shows an estimate: the answer at once, everything around it as soon as the answer is on the screen."""

    def __init__(self, view: View, asked: Callable[[], None]):
        """asked: what a run that is made to fit must keep or have has changed."""
        self._view = view
        self.timeline, self._map, self.make_fit = TimelineSide(), FitMapSide(), MakeFitSide(PHONE, view.locked, asked)
        self._seldom = [Seldom(name, make) for name, make in panels.SELDOM.items() if self._shows(name)]
        self._regions = {name: Region(name) for name in REGIONS}
        self._optional = {name: document.getElementById(f"{name}-part") for name in OPTIONAL}
        self._sections = {name: document.getElementById(name).closest("section") for name in PARTS}
        self._panels = [document.getElementById(name) for name in ("about", "panels")]
        self._formulas = [Formulas(name) for name in EXPLAINED if self._shows(f"{name}-formulas")]
        self._estimate: Estimate | None = None
        self._results: panels.Results | None = None
        self._message = ""
        self._answered = False
        self._phone = window.matchMedia(PHONE)
        self._steps = Steps()
        self._speak_later = Later(self._speak, SPEAK_AFTER)
        self._busy_now, self._panels_now = None, None
        listen(self._phone, "change", lambda event: self._begin(report.headline(self._estimate)) if self._estimate else None)

    def show(self, estimate: Estimate) -> None:
        """Show the answer now and the panels soon."""
        self._estimate = estimate
        self._forget()
        told = report.headline(estimate)
        self._regions["problems"].hide()
        self._regions["headline"].paint(answer.headline(estimate, told))
        self._show_panels(True)
        self._answered = True
        self._begin(told)
        self._say(told.sentence)

    def show_problems(self, errors: tuple[FieldError, ...]) -> None:
        """Show what must be corrected instead of results."""
        self._drop_estimate()
        self._show_panels(False, keep=self._answered or not self._view.embed)
        for name in ("headline", "accountings"):
            self._regions[name].hide()
        self._regions["problems"].paint(problems_view.problems(errors))
        document.title = language.told("Check training inputs | VRAM Plan")
        self._say(f"Check training inputs. {errors[0].message}")

    def show_reason(self, settings: Settings, shown: FieldError, reason: NotExpressible) -> None:
        """Show why the chosen accounting cannot count a valid run, and what the other one says."""
        self._drop_estimate()
        self._show_panels(False, keep=False)
        self._regions["problems"].hide()
        self._regions["headline"].paint(panels.uncounted(settings, shown))
        if self._shows("accountings"):
            self._regions["accountings"].paint(panels.accountings(settings, reason), settings)
        title = accounts.uncounted_text(settings)
        document.title = language.told(f"{title} | VRAM Plan")
        self._say(f"{title}. {reason.message}")

    def _drop_estimate(self) -> None:
        self._estimate = None
        self._steps.cancel()
        self._forget()

    def _forget(self) -> None:
        """What is worked out where it is seen has nothing to show yet."""
        for part in (self.timeline, self._map, self.make_fit, *self._seldom):
            part.forget()

    async def up_to_date(self) -> None:
        """Paint everything around the answer that is still to come, without waiting for a pause."""
        await self._steps.finished()

    def _begin(self, told: report.Headline) -> None:
        """Paint everything around the answer: what is in sight as soon as the answer is on the screen, the rest part by part, so that
        typing never waits for more than one of them."""
        self._results = None
        self._busy(True)
        self._steps.begin((partial(self._paint_seen, told),))

    def _paint_seen(self, told: report.Headline) -> None:
        """Paint the parts that are in sight, and let the title and the others follow."""
        own = {"curve": self.read_curve_here, "gpus": self._paint_gpus}
        parts = {name: own.get(name) or partial(self._paint_part, name) for name in PARTS if self._shows(name)}
        title = language.told(f"{told.peak} GiB: {told.verdict.lower()} {told.budget} GiB | VRAM Plan")
        seen = [name for name in parts if _in_sight(self._sections[name])]
        for name in seen:
            parts[name]()
        self._show_where_seen()
        rest = (paint for name, paint in parts.items() if name not in seen)
        formulas = (partial(each.show, self._estimate) for each in self._formulas)
        self._steps.begin((partial(setattr, document, "title", title), *rest, *formulas, partial(self._busy, False)))

    def _busy(self, busy: bool) -> None:
        """Say whether any part still shows the run before."""
        if busy != self._busy_now:
            self._busy_now = busy
            for part in self._panels:
                part.ariaBusy = "true" if busy else "false"

    def _shows(self, element_id: str) -> bool:
        """Whether a part of the page is shown at all; in a frame only the panels that were asked for are."""
        if not self._view.embed:
            return True
        panel = document.getElementById(element_id).closest("[data-panel]")
        return bool(panel and self._view.shows(panel.dataset.panel))

    @property
    def _found(self) -> panels.Results:
        """The searches and the chart of the run, worked out when the first part asks for them."""
        if self._results is None:
            self._results = panels.results(self._estimate, NARROW if self._phone.matches else WIDE)
        return self._results

    def _show_where_seen(self) -> None:
        """Give the run to the parts that work themselves out where they are seen."""
        estimate, narrow = self._estimate, self._phone.matches
        for part in self._seldom:
            part.show(estimate)
        if len(estimate.moments) > 1 and self._shows("moments"):
            self.timeline.show(estimate, narrow=narrow)
        if self._shows("map"):
            self._map.show(estimate, narrow=narrow)
        if self._shows("make-fit"):
            self.make_fit.show(estimate)

    def _paint_gpus(self) -> None:
        """Paint the peak against the number of GPUs and its table, or hide both."""
        estimate = self._estimate
        drawn = panels.gpu_curve(estimate)
        frame = NARROW if self._phone.matches else WIDE
        self._paint_optional("gpus", panels.gpus_drawing(estimate, drawn, frame) if drawn else None)
        if drawn:
            self._regions["gpus-table"].paint(panels.gpus_table(estimate, drawn), estimate.settings)

    def _paint_part(self, name: str) -> None:
        """Paint a part that is a tree of the run, or of its searches."""
        tree = OF_THE_RUN[name](self._estimate) if name in OF_THE_RUN else OF_THE_SEARCHES[name](self._found)
        if name in self._optional:
            self._paint_optional(name, tree)
        else:
            self._regions[name].paint(tree, self._estimate.settings)

    def _paint_optional(self, name: str, tree: Element | None) -> None:
        """Paint a panel, or hide all of it where there is nothing to show."""
        self._optional[name].hidden = tree is None
        if tree:
            self._regions[name].paint(tree, self._estimate.settings)

    def read_curve(self, sample: int) -> None:
        """Read the curve at one of its samples."""
        self._regions["curve"].paint(panels.curve_drawing(self._found, sample))

    def read_curve_at(self, at: float, box) -> None:
        """Read the curve nearest to the horizontal place `at`, in pixels; `box` is where the drawing is shown."""
        self.read_curve(nearest_sample(self._found.chart, at=at, left=box.left, width=box.width))

    def read_curve_here(self) -> None:
        """Read the curve at the current sequence length."""
        self.read_curve(self._found.chart.current_index)

    def _show_panels(self, shown: bool, *, keep: bool = True) -> None:
        """Hidden panels keep their place, so that nothing jumps while a number is half typed, unless `keep` is not set."""
        if self._panels_now == (shown, keep):
            return
        self._panels_now = shown, keep
        for part in self._panels:
            part.inert = not shown
            part.hidden = not (shown or keep)
            part.classList.toggle("kept", not shown)

    def _say(self, message: str) -> None:
        """Let a screen reader hear this after a pause, unless something newer comes first."""
        self._message = message
        self._speak_later.call()

    def _speak(self) -> None:
        document.getElementById("announcement").textContent = language.told(self._message)


def _in_sight(section) -> bool:
    """Whether any of a part's section is on the screen; the part itself may not be laid out yet, and need not be for this."""
    box = section.getBoundingClientRect()
    return box.height > 0 and box.bottom > 0 and box.top < window.innerHeight


class Formulas:
    """The formulas of one accounting, filled with the values of the run."""

    def __init__(self, accounting: str):
        self._accounting = accounting
        self._part = document.getElementById(f"{accounting}-formulas")
        self._why_not = Region(f"uncounted-{accounting}")
        self._values = [(element, element.dataset.value) for element in self._part.querySelectorAll("[data-value]")]
        self._cases = list(self._part.querySelectorAll(".case"))
        self._texts: dict[str, str] = {}

    def show(self, current: Estimate) -> None:
        """Renew the values, or say why there are none."""
        same = current.accounting == self._accounting
        counted = current if same else counted_by(current.settings, self._accounting)
        self._part.dataset.counted = "yes" if isinstance(counted, Estimate) else "no"
        if isinstance(counted, Estimate):
            self._why_not.hide()
            self._fill(counted)
        else:
            self._why_not.paint(problems_view.no_values(counted.message))

    def _fill(self, estimate: Estimate) -> None:
        texts = value_texts(estimate)
        for element, name in self._values:
            if self._texts.get(name) != texts[name]:
                element.textContent = language.told(texts[name])
        self._texts = texts
        applying = applying_cases(estimate.settings, self._accounting)
        for case in self._cases:
            applies = "yes" if case.id in applying else "no"
            if case.dataset.applies != applies:
                case.dataset.applies = applies
                case.querySelector(".filled").hidden = applies == "no"
