"""Memory against the number of GPUs: a drawing, the same numbers as a table, and what the machine's own memory holds."""

from vramplan.chart import GpuChart
from vramplan.report import GpuRow, HostRow
from vramplan.units import counted
from pyscript.tree import Element, h, svg
from pyscript.views.curve import LABEL_GAP, TEXT_HEIGHT, label, plot


def gpus(chart: GpuChart, sentence: str, floor: str, traffic: str, line: str) -> Element:
    """The drawing with its line named, where the run fits from, what no number of GPUs takes away, and what travels between them."""
    return h(
        "div",
        h("p", sentence, class_="curve-sentence"),
        h("p", "GiB per GPU", class_="axis-title", aria_hidden="true"),
        _drawing(chart, line),
        h("p", "GPUs that one copy is divided over", class_="axis-title end", aria_hidden="true"),
        h("p", floor, class_="note"),
        h("p", traffic, class_="note"),
    )


def _drawing(chart: GpuChart, line: str) -> Element:
    frame = chart.frame
    return svg(
        "svg",
        plot(chart, chart.marks, line),
        _fewest(chart) if chart.fewest else None,
        svg("circle", cx=chart.current.x, cy=chart.current.y, r=7, class_="current-mark") if chart.current else None,
        svg("circle", cx=chart.enough.x, cy=chart.enough.y, r=3.5, class_="reading-mark"),
        viewbox=f"0 0 {frame.width} {frame.height}",
        class_="drawing",
        role="img",
        aria_label=f"Peak memory per GPU against the number of GPUs, with the {line} as a line. The table below has the numbers.",
    )


def _fewest(chart: GpuChart) -> list[Element]:
    mark, frame = chart.fewest, chart.frame
    anchor, dx = ("start", LABEL_GAP) if 2 * mark.x < frame.width else ("end", -LABEL_GAP)
    return [
        svg("line", x1=mark.x, x2=mark.x, y1=frame.top, y2=frame.floor, class_="crossing-line"),
        label(f"fits from {counted(mark.point.gpus, 'GPU')}", mark.x, frame.top, dx=dx, dy=TEXT_HEIGHT, anchor=anchor, class_="crossing-text"),
    ]


def gpus_table(rows: tuple[GpuRow, ...]) -> Element:
    """The drawing's numbers."""
    return h(
        "table",
        h("caption", "Estimated peak per GPU by the GPUs that one copy is divided over, everything else held", class_="visually-hidden"),
        h(
            "thead",
            h(
                "tr",
                h("th", "GPUs", scope="col", class_="number"),
                h("th", "Peak per GPU, GiB", scope="col", class_="number"),
                h("th", "Headroom, GiB", scope="col", class_="number"),
                h("th", "Fits", scope="col"),
            ),
        ),
        h("tbody", (_row(row) for row in rows)),
        class_="curve-table",
    )


def _row(row: GpuRow) -> Element:
    marks = (("fewest that fit", row.fewest), ("more help little", row.enough), ("now", row.current))
    return h(
        "tr",
        h("th", [h("span", text, class_="badge") for text, holds in marks if holds], row.gpus, scope="row", class_="number"),
        h("td", row.peak, class_="number"),
        h("td", row.headroom, class_="number"),
        h("td", "yes" if row.fits else "no"),
        aria_current="true" if row.current else None,
    )


def host(rows: tuple[HostRow, ...], sentence: str) -> Element:
    """What the machine's own memory holds for each GPU."""
    return h(
        "div",
        h("p", sentence, class_="curve-sentence"),
        h(
            "table",
            h("caption", "Host memory per GPU", class_="visually-hidden"),
            h("thead", h("tr", h("th", "Host memory", scope="col"), h("th", "GiB per GPU", scope="col", class_="number"))),
            h("tbody", (h("tr", h("th", row.label, scope="row"), h("td", row.gib, class_="number")) for row in rows)),
            class_="changes",
        ),
    )
