"""Which cards a run would be put on, on the page: what is typed of them stays here, and is not in the link."""

from collections.abc import Callable

from js import document

from vramplan import language
from vramplan.errors import CardsError, NotExpressible
from vramplan.placement_report import placed, told
from vramplan.settings import Settings
from pyscript.dom import Region
from pyscript.events import Later, listen
from pyscript.views import placement as view

READ_AFTER = 0
"""Milliseconds after a paste: when the box holds it."""


class PlacementSide:
    """The part for the cards of one's own. `current` gives the settings on the page, None while they cannot be used."""

    def __init__(self, current: Callable[[], Settings | None]):
        self._current = current
        self._boxes = {"free": document.getElementById(view.FREE_TEXT), "cards": document.getElementById(view.CARDS_TEXT)}
        self._problem = document.getElementById(view.PROBLEM)
        self._result = Region(view.RESULT)
        self._asked = False
        self._read_later = Later(self.read_boxes, READ_AFTER)
        listen(self._boxes["free"], "paste", lambda event: self._read_later.call())
        for box in self._boxes.values():
            listen(box, "change", lambda event: self.renew())

    def read_boxes(self) -> None:
        """Choose cards for the run that is on the page now."""
        self._asked = True
        self.renew()

    def renew(self) -> None:
        """Choose again for a run that has changed; nothing while nobody has asked, or the run cannot be used."""
        settings = self._current()
        if not self._asked or settings is None:
            self._result.hide()
            self._say("", "")
            return
        try:
            choice = placed(settings, **{name: box.value for name, box in self._boxes.items()})
        except (CardsError, NotExpressible) as problem:
            self._result.hide()
            self._say(str(problem), problem.field)
        else:
            self._say("", "")
            self._result.paint(view.result(told(choice)))

    def _say(self, problem: str, field: str) -> None:
        """Show what is wrong, and mark the box it is about."""
        self._problem.textContent = language.told(problem)
        self._problem.hidden = not problem
        for name, box in self._boxes.items():
            box.setAttribute("aria-invalid", "true" if problem and name == field else "false")
