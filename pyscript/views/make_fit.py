"""What makes a run fit: what must stay, sets of changes with what they cost, larger runs, and where to turn. Every row opens that run."""

from vramplan.asked import AT_LEAST, KEEP
from vramplan.frontchart import FrontChart, Line, Mark
from vramplan.levers import Lockable
from vramplan.make_fit_report import FRONT_SENTENCE, UNCHANGED, Front, FrontCell, GrownRow, OfferRow, Told, TurnRow, front_cell
from vramplan.units import count_text
from pyscript.tree import Element, h, svg
from pyscript.views.curve import plot
from pyscript.views.headline import verdict

LOCKS, LENGTH, BATCH, PROBLEM, RESULT = "make-fit-locks", "make-fit-length", "make-fit-batch", "make-fit-problem", "make-fit"
"""Ids of its parts."""

ROOM = 9
"""Radius round a point of the front that belongs to it."""

FIRST = 6
"""Sets that are shown at once; the others are behind a summary."""


def asked(lockable: tuple[Lockable, ...]) -> Element:
    """What must stay as it is, and what the run must have at least."""
    return h(
        "details",
        h("summary", "What must stay"),
        h(
            "fieldset",
            h("legend", "Keep as it is"),
            h("ul", (_lock(each) for each in lockable), class_="locks", role="list"),
            id=LOCKS,
        ),
        h(
            "div",
            _number(LENGTH, "Sequence length of at least", "tokens"),
            _number(BATCH, "Effective batch of at least", "sequences per update"),
            class_="own-run at-least",
        ),
        h("p", class_="error", id=PROBLEM, role="status", hidden=True),
        class_="asked",
    )


def _lock(each: Lockable) -> Element:
    return h("li", h("label", h("input", type="checkbox", name=KEEP, value=each.name), " ", each.label))


def _number(name: str, label: str, unit: str) -> Element:
    return h(
        "div",
        h("label", label, for_=name, class_="label"),
        h("input", type="text", inputmode="numeric", id=name, name=AT_LEAST, autocomplete="off", aria_describedby=f"{name}-hint {PROBLEM}"),
        h("p", f"{unit}; empty for as it is", class_="hint", id=f"{name}-hint"),
    )


def result(told: Told) -> Element:
    """The answer, the sets, larger runs, where to turn, and how it was found."""
    first, later = told.offers[:FIRST], told.offers[FIRST:]
    return h(
        "div",
        h("p", h("strong", told.sentence), class_="curve-sentence"),
        _offers(first, "Sets of changes that make the run fit, cheapest in quality and speed first") if first else None,
        h("details", h("summary", f"{len(later)} more"), _offers(later, "More sets of changes that make the run fit")) if later else None,
        _turns(told.turns) if told.turns else None,
        _grown(told.grown) if told.grown else None,
        h("p", told.proof, class_="note") if told.proof else None,
        h("p", told.refused, class_="note") if told.refused else None,
    )


def _offers(rows: tuple[OfferRow, ...], caption: str) -> Element:
    return h(
        "table",
        h("caption", caption, class_="visually-hidden"),
        _head("Changes", verdicts=True),
        h("tbody", (h("tr", h("th", _link(row), scope="row"), _numbers(row), h("td", verdict(row.verdict_name, row.verdict))) for row in rows)),
        class_="changes",
    )


def _head(*first: str, verdicts: bool = False) -> Element:
    return h(
        "thead",
        h(
            "tr",
            (h("th", text, scope="col") for text in first),
            h("th", "Peak, GiB", scope="col", class_="number"),
            h("th", "Headroom, GiB", scope="col", class_="number wide-only"),
            h("th", "Verdict", scope="col") if verdicts else None,
        ),
    )


def _link(row: OfferRow) -> list[Element]:
    changes = "; ".join(row.changes) or UNCHANGED
    cost = h("span", "; ".join(row.costs), class_="cost") if row.costs else None
    return [h("a", changes, href=f"?{row.query}", data_open=True), cost]


def _numbers(row: OfferRow) -> list[Element]:
    return [h("td", row.peak, class_="number"), h("td", row.headroom, class_="number wide-only")]


def _grown(rows: tuple[GrownRow, ...]) -> list[Element]:
    names = dict.fromkeys(row.label for row in rows)
    return [part for name in names for part in (h("h3", f"{name}: how far, and what it takes"), _growing(name, [row for row in rows if row.label == name]))]


def _growing(name: str, rows: list[GrownRow]) -> Element:
    return h(
        "table",
        h("caption", f"{name}, larger, with the cheapest changes that make room for it", class_="visually-hidden"),
        _head(name, "Changes"),
        h("tbody", (h("tr", h("th", row.value, scope="row", class_="number"), h("td", _link(row.offer)), _numbers(row.offer)) for row in rows)),
        class_="changes grown",
    )


def front(drawn: FrontChart, told: Front, line: str) -> Element:
    """The front as a drawing and as a table, every cell of which opens its run."""
    frame = drawn.frame
    return h(
        "div",
        h("p", FRONT_SENTENCE, class_="note"),
        h("p", "GiB", class_="axis-title", aria_hidden="true"),
        svg(
            "svg",
            plot(drawn, (), line),
            (_line(each) for each in drawn.lines),
            viewbox=f"0 0 {frame.width} {frame.height}",
            class_="drawing",
            role="group",
            aria_label=f"Peak against sequence length, a line for every effective batch, with the {line} as a line; every point opens its run. The table below has the numbers.",
        ),
        h("p", "tokens per sequence; a line for every effective batch, the smallest is the lowest", class_="axis-title end", aria_hidden="true"),
        h("div", _front_table(told), class_="scroll", tabindex="0", role="group", aria_label="The front as a table"),
    )


def _line(each: Line) -> list[Element]:
    points = " ".join(f"{mark.x},{mark.y}" for mark in each.marks)
    return [svg("polyline", points=points, class_="curve-line"), *map(_mark, each.marks)]


def _mark(mark: Mark) -> Element:
    """A run of the front as a link, round which there is room to point at."""
    cell, settings = front_cell(mark.point), mark.point.settings
    return svg(
        "a",
        svg("circle", cx=mark.x, cy=mark.y, r=ROOM, fill="transparent"),
        svg("circle", cx=mark.x, cy=mark.y, r=3, class_="reading-mark"),
        href=f"?{cell.query}",
        data_open=True,
        aria_label=f"Open effective batch {count_text(settings.effective_batch)}, {count_text(settings.sequence_length)} tokens: {cell.peak} GiB, {cell.changes}",
    )


def _front_table(told: Front) -> Element:
    return h(
        "table",
        h("caption", "Least peak in GiB that fits, by effective batch and sequence length", class_="visually-hidden"),
        h("thead", h("tr", h("th", "Effective batch", scope="col", class_="number"), (h("th", f"{length} tokens", scope="col", class_="number") for length in told.lengths))),
        h("tbody", (h("tr", h("th", batch, scope="row", class_="number"), (h("td", _front_link(cell), class_="number") for cell in cells)) for batch, cells in told.rows)),
        class_="curve-table",
    )


def _front_link(cell: FrontCell | None) -> Element | None:
    return cell and h("a", cell.peak, h("span", f" GiB, {cell.changes}", class_="visually-hidden"), href=f"?{cell.query}", data_open=True, title=cell.changes)


def _turns(rows: tuple[TurnRow, ...]) -> Element:
    return h(
        "ul",
        (h("li", h("h3", row.label), h("p", h("strong", row.text), class_="tile-text"), h("a", "Use this", h("span", f": {row.label} {row.text}", class_="visually-hidden"), href=f"?{row.query}", data_open=True), class_="tile") for row in rows),
        class_="tiles",
        role="list",
    )
