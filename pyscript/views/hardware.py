"""Which hardware a run needs: classes by method and length, rules of thumb, and what GPUs have between them."""

from vramplan.needs import Cell, ClaimRow, NeedRow
from pyscript.tree import Element, h


def needs(lengths: tuple[str, ...], rows: tuple[NeedRow, ...], sentence: str, host: str) -> Element:
    """The smallest hardware for every method, a column for each sequence length, with what it means."""
    return h(
        "div",
        h(
            "div",
            h(
                "table",
                h("caption", "Smallest hardware by training method and sequence length", class_="visually-hidden"),
                h("thead", h("tr", h("th", "Method", scope="col"), (h("th", f"{length} tokens", scope="col") for length in lengths))),
                h("tbody", (h("tr", h("th", row.label, scope="row"), map(_cell, row.cells)) for row in rows)),
                class_="needs",
            ),
            class_="scroll",
            tabindex=0,
            role="group",
            aria_label="Smallest hardware, as a table",
        ),
        h("p", sentence, class_="note"),
        h("p", host, class_="note"),
    )


def _cell(cell: Cell) -> Element:
    if not cell.query:
        return h("td", cell.text, class_="quiet")
    how = f"{cell.how}; {cell.peak}" if cell.how else cell.peak
    return h("td", h("a", cell.text, href=f"?{cell.query}", data_open=True), h("span", how, class_="cost"))


def claims(rows: tuple[ClaimRow, ...]) -> Element:
    """Rules of thumb beside what is computed."""
    return h(
        "table",
        h("caption", "Rules of thumb in GB, and what the training step computes for the runs they are about", class_="visually-hidden"),
        h(
            "thead",
            h(
                "tr",
                h("th", "Rule of thumb", scope="col"),
                h("th", "GB", scope="col", class_="number"),
                h("th", "Computed", scope="col", class_="number"),
                h("th", "Beside the range", scope="col"),
            ),
        ),
        h("tbody", map(_claim, rows)),
        class_="claims",
    )


def _claim(row: ClaimRow) -> Element:
    return h(
        "tr",
        h("th", h("a", row.label, href=f"?{row.query}", data_open=True), h("span", f"{row.assumes} ({row.source})", class_="cost"), scope="row"),
        h("td", row.said, class_="number"),
        h("td", row.computed, class_="number"),
        h("td", row.place.capitalize(), h("span", row.why, class_="cost") if row.why else None),
    )


def links(rows: tuple[tuple[str, str, str], ...], sentence: str) -> list[Element]:
    """What GPUs have between them, and what it means."""
    return [
        h("p", sentence, class_="note"),
        h(
            "table",
            h("caption", "Speed of what connects GPUs", class_="visually-hidden"),
            h("thead", h("tr", (h("th", text, scope="col") for text in ("Between GPUs", "Speed", "Found in")))),
            h("tbody", (h("tr", h("th", name, scope="row"), h("td", speed), h("td", seen)) for name, speed, seen in rows)),
        ),
    ]
