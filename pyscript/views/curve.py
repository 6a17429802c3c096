"""The sequence curve: a drawing with a slider to read it, and the same numbers as a table.

Drawn as plain SVG by this module rather than by a chart library: one line, one budget and two marks need no library's
weight, and the same tree is written at build time and painted in the page.
"""

from vramplan.chart import Axes, Chart, Frame, Mark, Tick
from vramplan.report import CurveRow
from vramplan.units import count_text
from pyscript.tree import Element, h, svg
from pyscript.views.headline import verdict

LABEL_GAP = 6
"""Distance between an axis and its labels, in the drawing's units."""


TEXT_HEIGHT = 14
"""Height of a label with its gap, in the drawing's units."""


def curve(chart: Chart, sentence: str, line: str, chosen: int, reading: str) -> Element:
    """The drawing with its line named, its slider at the sample `chosen`, what that reads, and the sentence."""
    here = chart.samples[chosen]
    return h(
        "div",
        h("p", sentence, class_="curve-sentence"),
        h("p", "GiB per GPU", class_="axis-title", aria_hidden="true"),
        _drawing(chart, here, line),
        h("p", "tokens per sequence", class_="axis-title end", aria_hidden="true"),
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
                aria_valuetext=reading,
            ),
            h("output", reading, for_="curve-slider", id="curve-reading", aria_live="off"),
            class_="slider",
        ),
    )


def _drawing(chart: Chart, here: Mark, line: str) -> Element:
    frame = chart.frame
    return svg(
        "svg",
        plot(chart, chart.samples, line),
        _crossing(chart) if chart.crossing else None,
        svg("circle", cx=chart.current.x, cy=chart.current.y, r=7, class_="current-mark"),
        svg("line", x1=here.x, x2=here.x, y1=frame.top, y2=frame.floor, class_="reading-line"),
        svg("circle", cx=here.x, cy=here.y, r=3.5, class_="reading-mark"),
        viewbox=f"0 0 {frame.width} {frame.height}",
        class_="drawing",
        role="img",
        aria_label=f"Peak memory against sequence length, with the {line} as a line. The table below has the numbers.",
    )


def _crossing(chart: Chart) -> list[Element]:
    mark, frame = chart.crossing, chart.frame
    anchor, dx = ("start", LABEL_GAP) if chart.crossing_in_left_half else ("end", -LABEL_GAP)
    y, dy = (frame.floor, -LABEL_GAP) if chart.crossing_in_upper_half else (frame.top, TEXT_HEIGHT)
    text = f"fits up to {count_text(mark.point.sequence_length)}"
    return [
        svg("line", x1=mark.x, x2=mark.x, y1=frame.top, y2=frame.floor, class_="crossing-line"),
        svg("path", d=f"M{mark.x} {mark.y}m-6 0l6 -6 6 6 -6 6z", class_="crossing-mark"),
        label(text, mark.x, y, dx=dx, dy=dy, anchor=anchor, class_="crossing-text"),
    ]


def plot(chart: Axes, marks: tuple, line: str) -> list[Element]:
    """What every drawing of memory has: both axes, the line with its name, and the curve through its marks."""
    frame = chart.frame
    budget_dy = -LABEL_GAP if chart.room_above_budget else TEXT_HEIGHT
    return [
        *(element for tick in chart.x_ticks for element in x_tick(tick, frame)),
        *(element for tick in chart.y_ticks for element in y_tick(tick, frame)),
        svg("line", x1=frame.left, x2=frame.plot_right, y1=chart.budget_y, y2=chart.budget_y, class_="budget-line"),
        label(line, frame.plot_right, chart.budget_y, dy=budget_dy, anchor="end", class_="budget-text"),
        svg("polyline", points=" ".join(f"{mark.x},{mark.y}" for mark in marks), class_="curve-line"),
    ]


def x_tick(tick: Tick, frame: Frame) -> list[Element]:
    """A line across the plot at a place of the horizontal axis, and its number."""
    return [
        svg("line", x1=tick.at, x2=tick.at, y1=frame.top, y2=frame.floor, class_="grid"),
        label(count_text(tick.value), tick.at, frame.floor, dy=16, anchor="middle", class_="tick"),
    ]


def y_tick(tick: Tick, frame: Frame) -> list[Element]:
    """The same for the memory axis."""
    return [
        svg("line", x1=frame.left, x2=frame.plot_right, y1=tick.at, y2=tick.at, class_="grid"),
        label(count_text(tick.value), frame.left, tick.at, dx=-LABEL_GAP, dy=4, anchor="end", class_="tick"),
    ]


def crossing(frame: Frame, mark: Mark, text: str, y: float, dy: int) -> list[Element]:
    """A line across the plot at a mark, and what it stands for, on the side with room."""
    anchor, dx = ("start", LABEL_GAP) if 2 * mark.x < frame.width else ("end", -LABEL_GAP)
    return [
        svg("line", x1=mark.x, x2=mark.x, y1=frame.top, y2=frame.floor, class_="crossing-line"),
        label(text, mark.x, y, dx=dx, dy=dy, anchor=anchor, class_="crossing-text"),
    ]


def head(*cells: tuple[str, str]) -> Element:
    """The head of a table: the texts of its columns, with their classes."""
    return h("thead", h("tr", (h("th", text, scope="col", class_=class_ or None) for text, class_ in cells)))


def label(text: str, x: float, y: float, *, anchor: str, class_: str, dx: int = 0, dy: int = 0) -> Element:
    """A text in the drawing."""
    return svg("text", text, x=x, y=y, dx=dx, dy=dy, text_anchor=anchor, class_=class_)


def curve_table(rows: tuple[CurveRow, ...]) -> Element:
    """The curve's numbers."""
    return h(
        "table",
        h("caption", "Estimated peak by sequence length, everything else held", class_="visually-hidden"),
        head(("Tokens", "number"), ("Peak, GiB", "number"), ("Headroom, GiB", "number"), ("Verdict", "")),
        h("tbody", (_row(row) for row in rows)),
        class_="curve-table",
    )


def _row(row: CurveRow) -> Element:
    now = h("span", "now", class_="badge") if row.current else None
    longest = h("span", "longest that fits", class_="badge") if row.longest else None
    return h(
        "tr",
        h("th", longest, now, row.tokens, scope="row", class_="number"),
        h("td", row.peak, class_="number"),
        h("td", row.headroom, class_="number"),
        h("td", verdict(row.verdict_name, row.verdict)),
        aria_current="true" if row.current else None,
    )
