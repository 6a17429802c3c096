"""The sequence curve: a drawing with a slider to read it, and the same numbers as a table.

Drawn as plain SVG by this module rather than by a chart library: one line, one budget and two marks need no library's
weight, and the same tree is written at build time and painted in the page.
"""

from vramplan import chart as geometry
from vramplan.chart import PLOT_FLOOR, PLOT_RIGHT, Chart, Mark
from vramplan.report import CurveRow, reading
from vramplan.units import count_text
from pyscript.tree import Element, h, svg
from pyscript.views.headline import verdict

LABEL_GAP = 6
"""Distance between an axis and its labels, in the drawing's units."""


def curve(chart: Chart, sentence: str, chosen: int) -> Element:
    """The drawing, its slider at the sample `chosen`, and the sentence."""
    here = chart.samples[chosen]
    return h(
        "div",
        h("p", sentence, class_="curve-sentence"),
        _drawing(chart, here),
        h(
            "div",
            h("label", "Read the curve at", for_="curve-slider"),
            h(
                "input",
                type="range",
                id="curve-slider",
                min=0,
                max=chart.last_index,
                step=1,
                value=chosen,
                aria_valuetext=reading(here.point),
            ),
            h("output", reading(here.point), for_="curve-slider", id="curve-reading"),
            class_="slider",
        ),
    )


def _drawing(chart: Chart, here: Mark) -> Element:
    points = " ".join(f"{mark.x},{mark.y}" for mark in chart.samples)
    return svg(
        "svg",
        (_x_tick(tick) for tick in chart.x_ticks),
        (_y_tick(tick) for tick in chart.y_ticks),
        svg("text", "tokens per sequence", x=PLOT_RIGHT, y=geometry.HEIGHT, dy=-LABEL_GAP, class_="axis-title", text_anchor="end"),
        svg("text", "GiB", x=0, y=geometry.TOP, dy=-LABEL_GAP, class_="axis-title"),
        svg("line", x1=geometry.LEFT, x2=PLOT_RIGHT, y1=chart.budget_y, y2=chart.budget_y, class_="budget-line"),
        svg("text", "budget", x=PLOT_RIGHT, y=chart.budget_y, dy=-LABEL_GAP, class_="budget-text", text_anchor="end"),
        svg("polyline", points=points, class_="curve-line"),
        _crossing(chart.crossing) if chart.crossing else None,
        svg("circle", cx=chart.current.x, cy=chart.current.y, r=7, class_="current-mark"),
        svg("line", x1=here.x, x2=here.x, y1=geometry.TOP, y2=PLOT_FLOOR, class_="reading-line"),
        svg("circle", cx=here.x, cy=here.y, r=3.5, class_="reading-mark"),
        id="curve-drawing",
        viewbox=f"0 0 {geometry.WIDTH} {geometry.HEIGHT}",
        class_="drawing",
        role="img",
        aria_label="Peak memory against sequence length, with the budget as a line. The table below has the numbers.",
    )


def _crossing(mark: Mark) -> list[Element]:
    anchor, gap = ("start", LABEL_GAP) if mark.in_left_half else ("end", -LABEL_GAP)
    return [
        svg("line", x1=mark.x, x2=mark.x, y1=mark.y, y2=PLOT_FLOOR, class_="crossing-line"),
        svg("path", d=f"M{mark.x} {mark.y}m-6 0l6 -6 6 6 -6 6z", class_="crossing-mark"),
        svg(
            "text",
            f"fits up to {count_text(mark.point.sequence_length)}",
            x=mark.x,
            y=PLOT_FLOOR,
            dx=gap,
            dy=-LABEL_GAP,
            text_anchor=anchor,
            class_="crossing-text",
        ),
    ]


def _x_tick(tick: geometry.Tick) -> list[Element]:
    return [
        svg("line", x1=tick.at, x2=tick.at, y1=geometry.TOP, y2=PLOT_FLOOR, class_="grid"),
        svg("text", count_text(tick.value), x=tick.at, y=PLOT_FLOOR, dy=16, class_="tick", text_anchor="middle"),
    ]


def _y_tick(tick: geometry.Tick) -> list[Element]:
    return [
        svg("line", x1=geometry.LEFT, x2=PLOT_RIGHT, y1=tick.at, y2=tick.at, class_="grid"),
        svg("text", count_text(tick.value), x=geometry.LEFT, y=tick.at, dx=-LABEL_GAP, dy=4, class_="tick", text_anchor="end"),
    ]


def curve_table(rows: tuple[CurveRow, ...]) -> Element:
    """The curve's numbers."""
    return h(
        "table",
        h("caption", "Estimated peak by sequence length, everything else held", class_="visually-hidden"),
        h(
            "thead",
            h(
                "tr",
                h("th", "Tokens", scope="col", class_="number"),
                h("th", "Peak, GiB", scope="col", class_="number"),
                h("th", "Headroom, GiB", scope="col", class_="number"),
                h("th", "Verdict", scope="col"),
            ),
        ),
        h("tbody", (_row(row) for row in rows)),
        class_="curve-table",
    )


def _row(row: CurveRow) -> Element:
    now = h("span", " now", class_="badge") if row.current else None
    return h(
        "tr",
        h("th", row.tokens, now, scope="row", class_="number"),
        h("td", row.peak, class_="number"),
        h("td", row.headroom, class_="number"),
        h("td", verdict(row.fits, row.verdict)),
        aria_current="true" if row.current else None,
    )
