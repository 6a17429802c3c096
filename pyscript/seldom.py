"""Parts of the page that are worked out only where somebody sees them."""

from collections.abc import Callable

from vramplan.ledger import Estimate
from pyscript.dom import Region
from pyscript.events import WhenSeen
from pyscript.tree import Element

AFTER = 200
"""Milliseconds without a change before such a part is worked out: everything else comes first."""


class Seldom:
    """Shows in the region `name` what is made of an estimate, while `name`-part is in sight."""

    def __init__(self, name: str, make: Callable[[Estimate], Element]):
        self._region = Region(name)
        self._make = make
        self._estimate: Estimate | None = None
        self._seen = WhenSeen(f"{name}-part", self._work_out, AFTER)

    def show(self, estimate: Estimate) -> None:
        """Show this run once nothing else has changed for a moment."""
        self._estimate = estimate
        self._seen.call()

    def forget(self) -> None:
        """There is no run to show."""
        self._seen.cancel()

    def _work_out(self) -> None:
        self._region.paint(self._make(self._estimate), self._estimate.settings)
