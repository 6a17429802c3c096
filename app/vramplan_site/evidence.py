"""The page's section on how right the estimates are: scatter, quantiles and the worst runs, as trees of elements; and the table of all
recorded runs, which has a page of its own: its thousands of elements would make every key wait."""

from math import log10

from vramplan.accountings import ACCOUNTINGS
from vramplan.evidence import KINDS, Evidence, Point, evidence, group_rows, summary, worst_rows
from vramplan.units import GIB, count_text
from vramplan.words import value_text
from pyscript.tree import Element, h, svg

SIDE, MARGIN = 320, 40
"""Side of a square scatter plot, and the room for its axis labels, in user units."""

LEAST_GIB, MOST_GIB = 0.5, 200
"""Ends of both axes, in GiB."""

TICKS = (1, 3, 10, 30, 100)
"""Labelled amounts on both axes, in GiB."""

DOT = 2.5
"""Radius of a dot, in user units; style.css makes the stroke twice as wide."""

NEAR = 0.1
"""Share by which the two thin lines lie beside the diagonal."""


ALL_RUNS = "Every recorded run"
"""Title of the page with their table."""


def section(all_runs: str) -> list[Element]:
    """Everything below the section's heading. all_runs: the page with the table of them."""
    found = evidence()
    return [
        *(h("p", sentence) for sentence in summary(found)),
        h("div", (_scatter(found, name) for name in ACCOUNTINGS), class_="scatters"),
        _groups(found),
        *(_worst(found, name, kind) for name in ACCOUNTINGS for kind in KINDS),
        h("p", h("a", "The scatters as a table", href=all_runs)),
        h("p", f"Traced with {'; '.join(found.versions)}.", class_="note"),
    ]


def place(gib: float) -> float:
    """Where an amount lies on an axis, in user units from its start; logarithmic."""
    share = log10(gib / LEAST_GIB) / log10(MOST_GIB / LEAST_GIB)
    return round((SIDE - 2 * MARGIN) * min(1.0, max(0.0, share)), 1)


def _scatter(found: Evidence, accounting: str) -> Element:
    label = value_text("accounting", accounting)
    points = [point for point in found.points if point.accounting == accounting]
    return h(
        "figure",
        svg(
            "svg",
            (_line(LEAST_GIB, MOST_GIB, 1 + off, "scatter-near") for off in (-NEAR, NEAR)),
            _line(LEAST_GIB, MOST_GIB, 1, "scatter-equal"),
            (_tick(gib) for gib in TICKS),
            svg("text", "recorded, GiB", x=SIDE / 2, y=SIDE - 4, class_="scatter-title", text_anchor="middle"),
            (_dots([point for point in points if point.kind == kind], kind) for kind in KINDS),
            viewbox=f"0 0 {SIDE} {SIDE}",
            role="img",
            aria_label=f"{label}: estimated against recorded peak of {count_text(len(points))} runs, both axes logarithmic",
            class_="scatter",
        ),
        h("figcaption", f"{label}: estimated (upwards) against recorded. Dots are traced steps, squares measured runs; thin lines: 10 % off."),
    )


def _x(gib: float) -> float:
    return round(MARGIN + place(gib), 1)


def _y(gib: float) -> float:
    return round(SIDE - MARGIN - place(gib), 1)


def _line(low: float, high: float, factor: float, name: str) -> Element:
    return svg("line", x1=_x(low), y1=_y(low * factor), x2=_x(high), y2=_y(high * factor), class_=name)


def _tick(gib: int) -> tuple[Element, ...]:
    text = count_text(gib)
    return (
        svg("line", x1=_x(gib), x2=_x(gib), y1=SIDE - MARGIN, y2=SIDE - MARGIN + DOT, class_="scatter-axis"),
        svg("text", text, x=_x(gib), y=SIDE - MARGIN / 2, class_="scatter-label", text_anchor="middle"),
        svg("line", x1=MARGIN - DOT, x2=MARGIN, y1=_y(gib), y2=_y(gib), class_="scatter-axis"),
        svg("text", text, x=MARGIN - 2 * DOT, y=_y(gib) + DOT, class_="scatter-label", text_anchor="end"),
    )


def _dots(points: list[Point], kind: str) -> Element:
    """All points of one kind as one path, a short stroke each: a few thousand elements would be most of the page."""
    half = DOT if kind == "measured" else 0
    strokes = (f"M{_x(point.recorded / GIB) - half:g} {_y(point.estimated / GIB):g}h{2 * half:g}" for point in points)
    return svg("path", d="".join(strokes), class_="scatter-dots", data_kind=kind)


def _table(caption: str, header: tuple[str, ...], rows: list[tuple[Element | str, ...]], *, words: tuple[int, ...]) -> Element:
    """A table whose columns in `words` are words and the others numbers."""
    cells = ["" if index in words else "number" for index in range(len(header))]
    return h(
        "div",
        h(
            "table",
            h("caption", caption),
            h("thead", h("tr", (h("th", text, scope="col", class_=kind or None) for text, kind in zip(header, cells, strict=True)))),
            h("tbody", (h("tr", (h("td", text, class_=kind or None) for text, kind in zip(row, cells, strict=True))) for row in rows)),
            class_="evidence-table",
        ),
        class_="scroll",
        tabindex="0",
        role="group",
        aria_label=caption,
    )


def _groups(found: Evidence) -> Element:
    rows = [
        (f"{r.accounting}, {r.kind.lower()}, {r.name}", r.runs, r.median, r.median_absolute, r.ninetieth_absolute, r.worst_under, r.worst_over, r.far_under)
        for r in group_rows(found)
    ]
    header = ("Runs of", "Runs", "Median", "Median, unsigned", "90th percentile, unsigned", "Worst under", "Worst over", "Under by over 10 %")
    return _table("Signed errors: estimate less recorded, as a share of what was recorded", header, rows, words=(0,))


def _worst(found: Evidence, accounting: str, kind: str) -> Element:
    rows = [
        (h("a", r.id, href=f"?{r.query}", data_open=True), r.recorded, r.estimated, r.error, r.reason)
        for r in worst_rows(found, accounting, kind)
    ]
    caption = f"{value_text('accounting', accounting)}, {KINDS[kind].lower()}: the ten worst, and why"
    return h("details", h("summary", caption), _table(caption, ("Run", "Recorded, GiB", "Estimate, GiB", "Error", "Why"), rows, words=(0, 4)))


def all_runs(calculator: str) -> Element:
    """What stands on the page of every recorded run. calculator: where its link leads back to."""
    return h(
        "main",
        h("p", h("a", "Back to the calculator", href=f"{calculator}#evidence")),
        h("section", h("h1", ALL_RUNS), _points()),
        class_="explain alone",
    )


def _points() -> Element:
    """The scatters as a table, one row a run."""
    by_run: dict[tuple[str, str], dict[str, Point]] = {}
    for point in evidence().points:
        by_run.setdefault((point.kind, point.id), {})[point.accounting] = point
    rows = [(KINDS[kind], run, *_amounts(points)) for (kind, run), points in by_run.items()]
    header = ("Recorded", "Run", "Recorded, GiB", *(f"{value_text('accounting', name)}, GiB" for name in ACCOUNTINGS))
    return _table("Peak as recorded, and as each accounting estimates it", header, rows, words=(0, 1))


def _amounts(points: dict[str, Point]) -> tuple[str, ...]:
    recorded = next(iter(points.values())).recorded
    estimates = (points[name].estimated if name in points else None for name in ACCOUNTINGS)
    return (f"{recorded / GIB:.2f}", *("–" if each is None else f"{each / GIB:.2f}" for each in estimates))
