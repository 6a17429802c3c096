"""`vramplan compare --against`: other runs beside this one, as text and files."""

from collections.abc import Callable, Sequence

from vramplan import pins_report, tables
from vramplan.accountings import estimate
from vramplan.errors import FieldError, NotExpressible, SettingsError
from vramplan.ledger import Estimate
from vramplan.link import MAX_PINS, read_query
from vramplan.settings import parse


def against(addresses: Sequence[str], pinned: Sequence[Estimate], note: Callable[[str], None]) -> tuple[Estimate, ...]:
    """The runs of these links, then those that the run's own link pins. Raises SettingsError, and NotExpressible for one that is not counted."""
    found = []
    for address in addresses:
        link = read_query(address)
        for notice in link.notices:
            note(f"--against: {notice}")
        found.append(estimate(parse(link.texts, version=link.version)))
    runs = (*found, *pinned)
    if len(runs) > MAX_PINS:
        raise SettingsError((FieldError("against", f"At most {MAX_PINS} runs are compared with one; these are {len(runs)}."),))
    return runs


def table(pinned: Sequence[Estimate], current: Estimate) -> str:
    """Headline, the way from the baseline term by term, and all runs side by side."""
    told, beside = pins_report.difference(pinned[0], current), pins_report.side_by_side(pinned, current)
    rows = [("Component", "Baseline GiB", "Now GiB", "Difference")]
    for row in told.rows:
        rows.append((row.label, row.before, row.after, row.difference))
        rows += [(f"  {term.label}", term.before, term.after, term.difference) for term in row.terms]
    rows.append(("Peak per GPU", told.before, told.after, told.difference))
    runs = [("", *(column.label for column in beside.columns)), *((row.label, *row.cells) for row in beside.rows)]
    names = [f"{column.label}: {column.run}" for column in beside.columns]
    return "\n\n".join((tables.headline(current), "\n".join(told.sentences), tables.columns(rows), "\n".join(names), tables.columns(runs)))
