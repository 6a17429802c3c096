"""`vramplan export`: a run as a file of a tool, or as a summary."""

from vramplan.checks import came
from vramplan.errors import NotExpressible
from vramplan.exporting.export import FORMS, Export, export
from vramplan.ledger import Estimate


def made(current: Estimate, to: str | None, link: str) -> Export:
    """The run in the form that is asked for. Raises NotExpressible, which names the flag."""
    if to not in FORMS:
        raise NotExpressible("to", f"Must be one of {', '.join(FORMS)}; {came(to or '')}.")
    return export(current, to, link=link)
