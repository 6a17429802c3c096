"""Which hardware the run needs, worked out only where somebody sees it."""

from vramplan.ledger import Estimate
from pyscript import panels
from pyscript.dom import Region
from pyscript.events import WhenSeen

AFTER = 200
"""Milliseconds without a change before the classes are worked out: everything else comes first."""


class HardwareSide:
    """Shows the smallest hardware for every method and several lengths."""

    def __init__(self):
        self._region = Region("hardware")
        self._estimate: Estimate | None = None
        self._seen = WhenSeen("hardware-part", self._work_out, AFTER)

    def show(self, estimate: Estimate) -> None:
        """Show what this run needs once nothing else has changed for a moment."""
        self._estimate = estimate
        self._seen.call()

    def forget(self) -> None:
        """There is no run to show."""
        self._seen.cancel()

    def _work_out(self) -> None:
        self._region.paint(panels.hardware(self._estimate))
