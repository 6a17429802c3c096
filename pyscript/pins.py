"""Pinned runs on the page: they are part of the address, the first of them is the baseline, and every change is held against it."""

from js import document

from vramplan import pins_report
from vramplan.ledger import Estimate
from vramplan.link import MAX_PINS
from vramplan.settings import Settings
from pyscript.dom import Region
from pyscript.views import pins as view


class PinsSide:
    """The pinned runs, what is told of them by the headline, and their part of the page."""

    def __init__(self):
        self._bar, self._region = Region(view.BAR), Region(view.PINS)
        self._part = document.getElementById(view.PART)
        self._runs: tuple[Estimate, ...] = ()
        self._current: Estimate | None = None

    @property
    def settings(self) -> tuple[Settings, ...]:
        """The settings of every pinned run, the baseline first."""
        return tuple(run.settings for run in self._runs)

    def take_over(self, runs: tuple[Estimate, ...]) -> None:
        """Pin these runs and no others."""
        self._runs = runs

    def pin(self) -> str:
        """Pin the run that is on the page now; a sentence that says so, or why not."""
        if self._current is None:
            return "There is no estimate to pin"
        if self._current.settings in self.settings:
            return "This run is pinned already"
        if len(self._runs) == MAX_PINS:
            return f"{MAX_PINS} runs are pinned; unpin one of them first"
        self._runs = (*self._runs, self._current)
        return "Pinned; every change is held against it" if len(self._runs) == 1 else "Pinned beside the others"

    def unpin(self, number: int) -> None:
        """Forget one run; the next one is the baseline where it was."""
        self._runs = (*self._runs[:number], *self._runs[number + 1 :])

    def make_baseline(self, number: int) -> None:
        """Hold every change against this run."""
        self._runs = (self._runs[number], *self._runs[:number], *self._runs[number + 1 :])

    def show(self, current: Estimate | None) -> None:
        """Hold the run that is on the page now, None while there is none, against the pinned ones."""
        self._current = current
        if current is None:
            self._bar.hide()
            return
        self._bar.paint(view.by_the_headline(pins_report.short_text(self._runs[0], current) if self._runs else ""))
        self._part.hidden = not self._runs
        if self._runs:
            self._region.paint(view.part(pins_report.difference(self._runs[0], current), pins_report.side_by_side(self._runs, current)))

    def focus(self) -> None:
        """Go to the pinned runs, or to the answer where none are left."""
        document.getElementById(view.PART if self._runs else "answer").focus()

    def markdown(self) -> str:
        """The runs side by side as Markdown."""
        return pins_report.markdown(self._runs, self._current)

    def csv(self) -> str:
        """The runs as comma-separated values."""
        return pins_report.csv_text(self._runs, self._current)
