"""Reports as text for a terminal: aligned columns, nothing else."""

from vramplan import report
from vramplan.curve import Curve
from vramplan.fit import Fit
from vramplan.ledger import Estimate

BAR_WIDTH = 24
"""Characters of the longest bar of the component table."""

BAR = "█"

NOW = "← now"
"""Marks the row of the run as it is."""


def columns(rows: list[tuple[str, ...]], *, left: tuple[int, ...] = (0,)) -> str:
    """Rows as aligned columns, numbers to the right, the columns listed in `left` to the left."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(f"  {line}".rstrip() for line in lines)


def headline(estimate: Estimate) -> str:
    """The answer in the first lines of every command."""
    told = report.headline(estimate)
    lines = [told.run, told.sentence] + ([told.closeness] if told.closeness else [])
    return "\n".join(lines)


def estimate_table(estimate: Estimate) -> str:
    """Headline, parameter counts and the component table with bars."""
    rows = [("Component", "GiB", "Share", "")]
    for row in report.components(estimate):
        rows.append((row.label, row.gib, row.share_text, _bar(row.share)))
        rows += [(f"  {part.label}", part.gib, "", "") for part in row.parts]
    rows.append(("Peak per GPU", report.components_total(estimate), "", ""))
    facts = [(fact.label, fact.text, fact.exact) for fact in report.facts(estimate)]
    return "\n\n".join((headline(estimate), columns(rows, left=(0, 3)), columns(facts, left=(0, 1, 2))))


def fit_table(estimate: Estimate, found: Fit) -> str:
    """Headline, the searches and the one-change alternatives."""
    answers = (*report.maxima(estimate, found), report.smallest_gpu(estimate, found))
    searches = [(answer.label, answer.text, answer.sentence) for answer in answers]
    changes = [("One change", "Peak GiB", "Against now", "Headroom", "", "")]
    changes += [
        (each.label, each.peak, each.difference, each.headroom, each.verdict, NOW if each.current else "")
        for each in report.alternatives(estimate, found)
    ]
    return "\n\n".join(
        (headline(estimate), columns(searches, left=(0, 2)), report.MAXIMA_NOTE, columns(changes, left=(0, 4, 5)))
    )


def curve_table(estimate: Estimate, drawn: Curve, longest_fitting: int | None) -> str:
    """Headline and the curve, the current length and the longest that fits marked."""
    rows = [("Tokens", "Peak GiB", "Headroom", "", "")]
    rows += [
        (each.tokens, each.peak, each.headroom, each.verdict, _marks(each))
        for each in report.curve_rows(estimate, drawn.points, longest_fitting=longest_fitting)
    ]
    return "\n\n".join((headline(estimate), columns(rows, left=(3, 4))))


def compare_table(estimate: Estimate) -> str:
    """Headline and the three methods."""
    rows = [("Method", "Peak GiB", "Against now", "Headroom", "", "")]
    rows += [
        (each.label, each.peak, each.difference, each.headroom, each.verdict, NOW if each.current else "")
        for each in report.methods(estimate)
    ]
    return "\n\n".join((headline(estimate), columns(rows, left=(0, 4, 5))))


def _marks(row: report.CurveRow) -> str:
    marks = [text for text, holds in (("now", row.current), ("longest that fits", row.longest)) if holds]
    return f"← {', '.join(marks)}" if marks else ""


def _bar(share: float) -> str:
    return BAR * round(BAR_WIDTH * share)
