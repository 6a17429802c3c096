"""The map of what fits: a drawing under a link to the run that is pointed at, its legend, and the longest sequences as a table."""

from vramplan.mapchart import Box, Edge, MapChart
from vramplan.report import LongestRow
from vramplan.units import count_text
from pyscript.tree import Element, h, svg
from pyscript.views.curve import LABEL_GAP, label

TICK_DROP = 16
"""Distance from the lower edge of the plot to the base line of its labels, in the drawing's units."""

DIGIT_DROP = 4
"""How far a label's base line is below the middle of its row."""


def fit_map(
    drawn: MapChart, at: tuple[int, int], reading: str, sentence: str, query: str, legend: tuple[tuple[str, str], ...], *, live: bool = False
) -> Element:
    """The drawing, read at the cell `at`, which `query` opens. live: a screen reader hears the reading."""
    return h(
        "div",
        h("p", sentence, class_="curve-sentence"),
        h("p", "sequences per micro-batch", class_="axis-title", aria_hidden="true"),
        h("div", _drawing(drawn, at), h("a", href=f"?{query}", data_open=True, id="map-link", class_="map-link", aria_label=f"Open {reading}"), class_="map-plot"),
        h("p", "tokens per sequence", class_="axis-title end", aria_hidden="true"),
        h("p", reading, class_="map-reading", id="map-reading", aria_live="polite" if live else "off"),
        h("ul", (_key(*entry) for entry in legend), class_="legend", role="list", aria_label="What the colours mean"),
        class_="fit-map",
    )


def _drawing(drawn: MapChart, at: tuple[int, int]) -> Element:
    frame = drawn.frame
    return svg(
        "svg",
        (svg("path", d="".join(map(_rectangle, band.boxes)), class_="cells", data_band=band.name) for band in drawn.bands),
        svg("path", d="".join(map(_line, drawn.budget)), class_="map-budget"),
        (label(count_text(tick.value), tick.at, frame.floor, dy=TICK_DROP, anchor="middle", class_="tick") for tick in drawn.x_ticks),
        (label(count_text(tick.value), frame.left, tick.at, dx=-LABEL_GAP, dy=DIGIT_DROP, anchor="end", class_="tick") for tick in drawn.y_ticks),
        svg("path", d=_rectangle(drawn.box(*at)), class_="map-read-ground"),
        svg("path", d=_rectangle(drawn.box(*at)), class_="map-read"),
        svg("circle", cx=drawn.current[0], cy=drawn.current[1], r=5, class_="current-mark"),
        viewbox=f"0 0 {frame.width} {frame.height}",
        class_="drawing",
        aria_hidden="true",
    )


def _rectangle(box: Box) -> str:
    left, top, right, bottom = box
    return f"M{left} {top}H{right}V{bottom}H{left}z"


def _line(edge: Edge) -> str:
    x, y, to_x, to_y = edge
    return f"M{x} {y}L{to_x} {to_y}"


def _key(name: str, text: str) -> Element:
    return h("li", h("span", class_="key", data_band=name, aria_hidden="true"), text)


def longest_table(rows: tuple[LongestRow, ...]) -> Element:
    """The longest sequence that fits with every micro-batch."""
    heads = ("Micro-batch", "Longest, tokens", "Peak, GiB", "Headroom, GiB")
    return h(
        "table",
        h("caption", "Longest sequence that fits, by micro-batch, everything else held", class_="visually-hidden"),
        h("thead", h("tr", (h("th", text, scope="col", class_="number") for text in heads))),
        h("tbody", (_row(row) for row in rows)),
        class_="curve-table",
    )


def _row(row: LongestRow) -> Element:
    now = h("span", "now", class_="badge") if row.current else None
    tokens = h("a", row.tokens, h("span", f" tokens at micro-batch {row.micro_batch}", class_="visually-hidden"), href=f"?{row.query}", data_open=True) if row.query else row.tokens
    return h(
        "tr",
        h("th", now, row.micro_batch, scope="row", class_="number"),
        h("td", tokens, class_="number"),
        h("td", row.peak, class_="number"),
        h("td", row.headroom, class_="number"),
        aria_current="true" if row.current else None,
    )
