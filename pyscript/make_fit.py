"""What makes a run fit, in the page: searched in short slices while somebody looks. What must stay is asked here, and is part of the address."""

from collections.abc import Callable

from js import document, performance, window

from vramplan import language
from vramplan.asked import NUMBER
from vramplan.chart import NARROW, WIDE
from vramplan.checks import came
from vramplan.errors import FieldError, NotExpressible, SettingsError
from vramplan.front import front_in_steps
from vramplan.growth import Grown, growth_in_steps
from vramplan.ledger import Estimate
from vramplan.levers import changeable
from vramplan.make_fit import EFFECTIVE_BATCH, LENGTH, MadeToFit, Offer, Wanted, make_fit_in_steps, wanted
from pyscript import panels
from pyscript.dom import Region
from pyscript.events import Soon, WhenSeen, listen
from pyscript.views import make_fit as view

AFTER = 100
"""Milliseconds without a change before the search begins: the answer and the panels come first."""

SLICE = 40
"""Milliseconds that are worked at a time, before whatever else waits has its turn."""

RENEWED = 150
"""Milliseconds after which what was found so far is shown, and again after so many more."""

DONE = "make-fit"
"""The name under which the browser keeps how long it took to show the answer, pauses included; the front comes after it."""


class MakeFitSide:
    """Shows the sets of changes with which a run fits, or how far one that fits can grow.

    phone: screens with a narrow drawing. locked: settings that stay whatever is asked here. changed: what is asked for has changed.
    """

    def __init__(self, phone: str, locked: frozenset[str], changed: Callable[[], None]):
        self._locked, self._changed = locked, changed
        self._part, self._others = document.getElementById("make-fit-part"), document.getElementById("fits-part")
        self._region = Region(view.RESULT)
        self._front, self._front_part = Region("front"), document.getElementById("front-part")
        self._phone = window.matchMedia(phone)
        self._locks = list(document.querySelectorAll(f"#{view.LOCKS} input"))
        self._boxes = {name: document.getElementById(box) for name, box in ((LENGTH, view.LENGTH), (EFFECTIVE_BATCH, view.BATCH))}
        self._problem = document.getElementById(view.PROBLEM)
        self._estimate: Estimate | None = None
        self._work_later = Soon(self._work)
        self._seen = WhenSeen("make-fit-part", self._begin, AFTER)
        for lock in self._locks:
            lock.disabled = lock.value in locked
            lock.checked = lock.checked or lock.disabled
        for control in (*self._locks, *self._boxes.values()):
            listen(control, "change", lambda event: self._renew())

    def show(self, estimate: Estimate) -> None:
        """Show this run once nothing else has changed for a moment; first of all parts where it does not fit."""
        self.forget()
        self._estimate = estimate
        self._offer_locks(estimate)
        self._put_first(not estimate.fits)
        self._region_busy(True)
        self._seen.call()

    @property
    def asked(self) -> Wanted:
        """What is asked for here, as far as it can be used."""
        numbers = {name: int(text) for name, text in self._typed().items() if NUMBER.fullmatch(text)}
        return Wanted(frozenset(lock.value for lock in self._locks if lock.checked and not lock.disabled), numbers)

    def ask(self, asked: Wanted) -> None:
        """Ask for this and nothing else."""
        for lock in self._locks:
            lock.checked = lock.value in asked.keep or lock.disabled
        for name, box in self._boxes.items():
            box.value = str(asked.at_least.get(name, ""))

    def forget(self) -> None:
        """There is no run to show."""
        self._seen.cancel()
        self._work_later.cancel()

    def _offer_locks(self, estimate: Estimate) -> None:
        """Show the locks of what can be changed in this run; one that is set stays."""
        names = changeable(estimate.settings)
        for lock in self._locks:
            lock.closest("li").hidden = lock.value not in names and not lock.checked

    def _put_first(self, first: bool) -> None:
        """Move the part before all others, or back to where it was; not while somebody is in it."""
        parts = self._others.parentElement
        before = parts.firstElementChild if first else self._others
        here = self._part.isSameNode(before) or (not first and self._part.nextElementSibling.isSameNode(before))
        if not here and not self._part.contains(document.activeElement):
            parts.insertBefore(self._part, before)

    def _renew(self) -> None:
        self._changed()
        if self._estimate:
            self._begin()

    def _begin(self) -> None:
        """Begin the search with what is asked for, and end the last one."""
        self.forget()
        self._offers: list[Offer] = []
        self._grown: list[Grown] = []
        self._made: MadeToFit | None = None
        try:
            asked = self._wanted()
        except SettingsError as problem:
            self._say(problem.errors[0].message)
            return
        self._say("")
        self._begun = self._painted = performance.now()
        self._answered = False
        self._region_busy(True)
        self._making = self._everything(asked)
        self._work()

    def _typed(self) -> dict[str, str]:
        """What stands in the boxes that have something in them."""
        return {name: text for name, box in self._boxes.items() if (text := box.value.strip())}

    def _wanted(self) -> Wanted:
        """What must stay, and what the run must have, checked. Raises SettingsError."""
        for name, text in self._typed().items():
            if not NUMBER.fullmatch(text):
                raise SettingsError((FieldError("at_least", f"{name} must be a whole number; {came(text)}."),))
        return wanted(self._estimate.settings, keep=self.asked.keep | self._locked, at_least=self.asked.at_least)

    def _everything(self, asked):
        """The search, and where the run fits how far it can grow, in small steps."""
        making = make_fit_in_steps(self._estimate.settings, asked)
        while self._made is None:
            try:
                offer = next(making)
            except StopIteration as done:
                self._made = done.value
            else:
                self._offers += [offer] if offer else []
                yield
        if self._made.run.fits:
            for grown in growth_in_steps(self._made.run.settings, asked):
                self._grown += [grown] if grown else []
                yield
        self._answered = True
        self._paint()
        performance.measure(DONE, start=self._begun)
        offers = self._made.offers or [grown.offer for grown in self._grown]
        self._points = yield from front_in_steps(self._made.run.settings, offers, asked)

    def _work(self) -> None:
        """Search some more, show what was found from time to time, then let the browser do what waits."""
        until = performance.now() + SLICE
        try:
            while performance.now() < until:
                next(self._making)
        except StopIteration:
            self._paint_front()
            self._region_busy(False)
            return
        except NotExpressible as reason:
            self._say(reason.message)
            return
        if not self._answered and performance.now() > self._painted + RENEWED:
            self._paint()
        self._work_later.call()

    def _paint(self) -> None:
        self._region.paint(panels.make_fit(self._made, self._offers, self._grown), self._estimate.settings)
        self._painted = performance.now()

    def _paint_front(self) -> None:
        """Draw the front, or hide it where nothing fits."""
        self._front_part.hidden = not self._points
        if self._points:
            self._front.paint(panels.front(self._made.run, self._points, NARROW if self._phone.matches else WIDE), self._estimate.settings)

    def _region_busy(self, busy: bool) -> None:
        document.getElementById(view.RESULT).ariaBusy = "true" if busy else "false"

    def _say(self, problem: str) -> None:
        """Show what is wrong with what is asked for, and mark the box it is about."""
        self._problem.textContent = language.told(problem)
        self._problem.hidden = not problem
        for name, box in self._boxes.items():
            box.setAttribute("aria-invalid", "true" if problem.startswith(name) else "false")
        if problem:
            self._region.hide()
            self._front_part.hidden = True
