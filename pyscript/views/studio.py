"""Unsloth Studio's own names for a run, and what its document records."""

from vramplan.accountings.unsloth import OwnName
from vramplan.studio import TableRow, ValidationRow
from pyscript.tree import Element, h


def own_names(rows: tuple[tuple[str, OwnName], ...]) -> Element:
    """Its inputs beside ours, with the values of the run."""
    return _table(
        "This run as its own inputs have it",
        ("Here", "There", "Value"),
        ((label, h("code", each.name), h("code", each.value) if each.value else "not known") for label, each in rows),
        numbers=(),
    )


def recorded(rows: tuple[TableRow, ...], table_sentence: str, runs: tuple[ValidationRow, ...], runs_sentence: str) -> list[Element]:
    """Its reference table and its measured runs, each beside what its formulas come to."""
    return [
        h("h4", "Its reference table"),
        h("p", table_sentence),
        _table(
            "Totals of its reference table, GiB",
            ("Row", "Printed", "Floor 0.20", "Floor 0.15"),
            ((row.row, row.printed, row.with_table_floor, row.with_text_floor) for row in rows),
            numbers=(1, 2, 3),
        ),
        h("h4", "Its measured runs"),
        h("p", runs_sentence),
        _table(
            "Its measured runs, GiB",
            ("Run", "Its estimate", "By its formulas", "nvidia-smi"),
            ((row.row, row.printed, row.computed, row.measured) for row in runs),
            numbers=(1, 2, 3),
        ),
    ]


def _table(caption: str, header: tuple[str, ...], rows, *, numbers: tuple[int, ...]) -> Element:
    """A table that scrolls where it is wider than the screen."""
    kinds = ["number" if place in numbers else None for place in range(len(header))]
    return h(
        "div",
        h(
            "table",
            h("caption", caption),
            h("thead", h("tr", (h("th", text, scope="col", class_=kind) for text, kind in zip(header, kinds, strict=True)))),
            h("tbody", (h("tr", (h("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True))) for row in rows)),
            class_="evidence-table",
        ),
        class_="scroll",
        tabindex="0",
        role="group",
        aria_label=caption,
    )
