"""Memory against the number of GPUs: a drawing, the same numbers as a table, and what the machine's own memory holds."""

from vramplan.chart import Frame, GpuChart, Mark
from vramplan.report import GpuRow, HostRow
from vramplan.units import counted
from pyscript.tree import Element, h, svg
from pyscript.views.curve import TEXT_HEIGHT, crossing, head, plot


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
        _fewest(chart.frame, chart.fewest) if chart.fewest else None,
        svg("circle", cx=chart.current.x, cy=chart.current.y, r=7, class_="current-mark") if chart.current else None,
        svg("circle", cx=chart.enough.x, cy=chart.enough.y, r=3.5, class_="reading-mark"),
        viewbox=f"0 0 {frame.width} {frame.height}",
        class_="drawing",
        role="img",
        aria_label=f"Peak memory per GPU against the number of GPUs, with the {line} as a line. The table below has the numbers.",
    )


def _fewest(frame: Frame, mark: Mark) -> list[Element]:
    return crossing(frame, mark, f"fits from {counted(mark.point.gpus, 'GPU')}", frame.top, TEXT_HEIGHT)


def gpus_table(rows: tuple[GpuRow, ...]) -> Element:
    """The drawing's numbers."""
    return h(
        "table",
        h("caption", "Estimated peak per GPU by the GPUs that one copy is divided over, everything else held", class_="visually-hidden"),
        head(("GPUs", "number"), ("Peak per GPU, GiB", "number"), ("Headroom, GiB", "number"), ("Fits", "")),
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
            head(("Host memory", ""), ("GiB per GPU", "number")),
            h("tbody", (h("tr", h("th", row.label, scope="row"), h("td", row.gib, class_="number")) for row in rows)),
            class_="changes",
        ),
    )
