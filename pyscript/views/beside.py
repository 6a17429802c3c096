"""What stands beside a run: methods as ranges, the peak against the micro-batch, and the same model answering."""

from vramplan.beside import BatchRow, ServedRow, SpanRow
from vramplan.chart import BatchChart, Frame, Mark
from vramplan.units import count_text
from pyscript.tree import Element, h, svg
from pyscript.views.curve import TEXT_HEIGHT, crossing, head, plot


def spans(rows: tuple[SpanRow, ...], sentence: str) -> Element:
    """Every training method from its least memory to its most."""
    return h(
        "div",
        h("p", sentence, class_="note"),
        h(
            "table",
            h("caption", "Peak of every training method at the least and at the most", class_="visually-hidden"),
            head(("Method", ""), ("Least, GiB", "number"), ("Most, GiB", "number"), ("In this budget", "")),
            h(
                "tbody",
                (
                    h(
                        "tr",
                        h("th", h("a", row.label, href=f"?{row.query}", data_open=True), h("span", row.parts, class_="cost"), scope="row"),
                        h("td", row.least, class_="number"),
                        h("td", row.most, class_="number"),
                        h("td", row.verdict),
                    )
                    for row in rows
                ),
            ),
            class_="changes",
        )
        if rows
        else h("p", "There are no ranges for a model that answers, or that this accounting does not count."),
    )


def served(rows: tuple[ServedRow, ...], sentence: str, back: str) -> Element:
    """The model answering with every type of weights; `back`: the query of its training, where it answers now."""
    return h(
        "div",
        h("p", sentence, class_="note"),
        h(
            "table",
            h("caption", "The model answering, by the type of its weights", class_="visually-hidden"),
            head(("Weights", ""), ("GiB", "number"), ("1,000 tokens, GiB", "number"), ("At once", "number"), ("Longest", "number")),
            h(
                "tbody",
                (
                    h(
                        "tr",
                        h("th", h("a", row.label, href=f"?{row.query}", data_open=True), scope="row"),
                        *(h("td", text, class_="number") for text in (row.weights, row.cache, row.sequences, row.longest)),
                    )
                    for row in rows
                ),
            ),
            class_="changes",
        ),
        h("p", h("a", "Back to training it", href=f"?{back}", data_open=True)) if back else None,
    )


def batches(chart: BatchChart, rows: tuple[BatchRow, ...], sentence: str, line: str) -> Element:
    """The drawing with its line named, how many sequences fit, and the same numbers as a table."""
    return h(
        "div",
        h("p", sentence, class_="curve-sentence"),
        h("p", "GiB per GPU", class_="axis-title", aria_hidden="true"),
        _drawing(chart, line),
        h("p", "micro-batch", class_="axis-title end", aria_hidden="true"),
        h("details", h("summary", "The drawing as a table"), h("div", _table(rows), class_="scroll", tabindex=0, role="group", aria_label="Micro-batches as a table")),
    )


def _drawing(chart: BatchChart, line: str) -> Element:
    frame = chart.frame
    return svg(
        "svg",
        plot(chart, chart.marks, line),
        _largest(chart.frame, chart.largest) if chart.largest else None,
        svg("circle", cx=chart.current.x, cy=chart.current.y, r=7, class_="current-mark"),
        viewbox=f"0 0 {frame.width} {frame.height}",
        class_="drawing",
        role="img",
        aria_label=f"Peak memory against the micro-batch, with the {line} as a line. The table below has the numbers.",
    )


def _largest(frame: Frame, mark: Mark) -> list[Element]:
    return crossing(frame, mark, f"fits up to {count_text(mark.point.micro_batch)}", frame.floor, -TEXT_HEIGHT)


def _table(rows: tuple[BatchRow, ...]) -> Element:
    return h(
        "table",
        h("caption", "Estimated peak per GPU by micro-batch, everything else held", class_="visually-hidden"),
        head(("Micro-batch", "number"), ("Peak per GPU, GiB", "number"), ("Headroom, GiB", "number"), ("Fits", "")),
        h("tbody", (_row(row) for row in rows)),
        class_="curve-table",
    )


def _row(row: BatchRow) -> Element:
    now = h("span", "now", class_="badge") if row.current else None
    return h(
        "tr",
        h("th", now, row.batch, scope="row", class_="number"),
        h("td", row.peak, class_="number"),
        h("td", row.headroom, class_="number"),
        h("td", "fits" if row.fits else "does not fit"),
        aria_current="true" if row.current else None,
    )
