"""The run as a file of a tool or a summary: which form is chosen, and what it comes to. What writes them is imported for the first one."""

from typing import TYPE_CHECKING

from vramplan.errors import NotExpressible
from vramplan.ledger import Estimate
from pyscript.dom import Region
from pyscript.views import exports as view

if TYPE_CHECKING:
    from vramplan.exporting.export import Export


class Exports:
    """Shows a run in the chosen form, which stays chosen."""

    def __init__(self):
        self._region = Region("share-exports")
        self._to = ""
        self.made: "Export | None" = None

    def show(self, estimate: Estimate | None, address: str) -> None:
        """Show this run; nothing where it is not counted."""
        from vramplan.exporting.export import FORMS, export

        self.made, problem = None, ""
        self._to = self._to or next(iter(FORMS))
        if estimate is None:
            self._region.hide()
            return
        try:
            self.made = export(estimate, self._to, link=address)
        except NotExpressible as found:
            problem = found.message
        self._region.paint(view.part(FORMS, self._to, self.made.text if self.made else "", problem))

    def choose(self, to: str, estimate: Estimate | None, address: str) -> None:
        """Take another form."""
        self._to = to
        self.show(estimate, address)
