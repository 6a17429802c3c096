"""Pinned runs: the button by the headline, the way from the baseline term by term, and all runs side by side."""

from vramplan.pins_report import COMPONENT, PEAK, Column, Difference, Row, SideBySide, StepRow, TermRow
from vramplan.waterfall import LENGTH, Bar
from pyscript.tree import Element, h, svg

PART, BAR, PINS = "pins-part", "pins-bar", "pins"
"""Ids of the part, of what stands by the headline, and of what the part shows."""


def by_the_headline(told: str = "", *, live: bool = True) -> Element:
    """The button that pins the run, and the difference from the baseline, where there is one. live: Python is there to answer."""
    return h(
        "p",
        h("button", "Pin this run", type="button", class_="plain", data_action="pin-run", disabled=not live),
        h("a", told, href=f"#{PART}") if told else None,
        class_="pins-bar",
    )


def part(told: Difference, beside: SideBySide) -> Element:
    """Everything about the pinned runs."""
    return h(
        "div",
        (h("p", sentence) for sentence in told.sentences),
        h("div", _waterfall(told), class_="scroll", tabindex=0, role="group", aria_label="From the baseline to this run, as a table"),
        h("h3", "Side by side"),
        h("div", _side_by_side(beside), class_="scroll", tabindex=0, role="group", aria_label="Pinned runs side by side"),
        h(
            "div",
            h("button", "Copy as Markdown", type="button", class_="plain", data_action="copy-pins"),
            h("button", "Save CSV", type="button", class_="plain", data_action="save-pins"),
            class_="saves",
        ),
    )


def _waterfall(told: Difference) -> Element:
    usable = told.drawn.usable_at
    heads = (("Component", None), ("Baseline, GiB", "number"), ("Now, GiB", "number"), ("Difference, GiB", "number"))
    return h(
        "table",
        h("caption", "From the baseline to this run, by component; the line in the bars is the memory that this run can use", class_="visually-hidden"),
        h("thead", h("tr", (h("th", text, scope="col", class_=class_) for text, class_ in heads))),
        h(
            "tbody",
            _total("Baseline", told.drawn.first, usable, (told.before, "", "")),
            (_step(row, usable) for row in told.rows),
            _total("Now", told.drawn.second, usable, ("", told.after, told.difference)),
        ),
        class_="waterfall",
    )


def _total(label: str, bar: Bar, usable: float, cells: tuple[str, ...]) -> Element:
    return h("tr", h("th", label, _bar(bar, usable, "total"), scope="row"), (h("td", text, class_="number") for text in cells), class_="total")


def _step(row: StepRow, usable: float) -> list[Element]:
    name = h("span", h("span", class_="key", data_part=row.name, aria_hidden="true"), row.label)
    return [
        h("tr", h("th", name, _bar(row.bar, usable, "more" if row.grows else "less"), scope="row"), _cells(row)),
        *(h("tr", h("th", term.label, scope="row"), _cells(term), class_="sub") for term in row.terms),
    ]


def _cells(row: TermRow) -> list[Element]:
    return [h("td", text, class_="number") for text in (row.before, row.after, row.difference)]


def _bar(bar: Bar, usable: float, change: str) -> Element:
    return svg(
        "svg",
        svg("rect", x=bar.start, y=2, width=bar.length, height=12, class_="step-bar", data_change=change),
        svg("line", x1=usable, x2=usable, y1=0, y2=16, class_="stack-budget"),
        viewbox=f"0 0 {LENGTH} 16",
        preserveAspectRatio="none",
        class_="step",
        aria_hidden="true",
    )


def _side_by_side(beside: SideBySide) -> Element:
    return h(
        "table",
        h("caption", "Pinned runs and the one as it is: settings that differ, components, peak, headroom", class_="visually-hidden"),
        h("thead", h("tr", h("td"), (_head(number, column) for number, column in enumerate(beside.columns)))),
        h("tbody", (_row(row) for row in beside.rows)),
        class_="beside",
    )


def _head(number: int, column: Column) -> Element:
    if column.current:
        return h("th", h("strong", column.label), h("span", column.run, class_="run"), scope="col")
    buttons = [
        h("a", "Open", h("span", f" {column.label}", class_="visually-hidden"), href=f"?{column.query}", data_open=True),
        None if column.baseline else _button("Make baseline", column.label, "baseline-run", number),
        _button("Unpin", column.label, "unpin-run", number),
    ]
    return h("th", h("strong", column.label), h("span", column.run, class_="run"), h("span", buttons, class_="pin-actions"), scope="col")


def _button(text: str, label: str, action: str, number: int) -> Element:
    return h("button", text, h("span", f" {label}", class_="visually-hidden"), type="button", class_="plain", data_action=action, data_run=number)


def _row(row: Row) -> Element:
    kind = {COMPONENT: "sub", PEAK: "total"}.get(row.kind)
    return h("tr", h("th", row.label, scope="row"), (h("td", cell) for cell in row.cells), class_=kind)
