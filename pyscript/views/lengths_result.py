"""Token lengths of a data set against a run: percentiles to take over, ways to make batches, and the histogram."""

from vramplan.chart import LABEL_ROOM
from vramplan.lengthchart import LIMIT, Bar, LengthChart, Line
from vramplan.lengths_report import BarRow, BatchesRow, MarkRow
from pyscript.tree import Element, h, svg
from pyscript.views.curve import LABEL_GAP, label, x_tick, y_tick
from pyscript.views.headline import verdict
from pyscript.views.lengths import COLUMN


def columns(choices: tuple[str, ...], chosen: str) -> Element:
    """Which column to read; nothing is chosen where several could be meant."""
    return h(
        "div",
        h("label", "Column with the token lengths", for_=COLUMN, class_="label"),
        h(
            "select",
            None if chosen else h("option", "Choose one", value="", selected=True),
            (h("option", name or "without a name", value=name, selected=name == chosen) for name in choices),
            id=COLUMN,
        ),
    )


def result(
    drawn: LengthChart, texts: dict[str, str], picture: str, sentences: tuple[str, ...], marks: tuple[MarkRow, ...], batches: tuple[BatchesRow, ...],
    note: str, bars: tuple[BarRow, ...],
) -> Element:
    """Everything that follows from the lengths."""
    return h(
        "div",
        (h("p", sentence) for sentence in sentences),
        _scrolled("Percentiles of the lengths", _marks(marks)),
        h("h3", "Samples by length"),
        h("p", "samples", class_="axis-title", aria_hidden="true"),
        _histogram(drawn, texts, picture),
        h("p", "tokens per sample", class_="axis-title end", aria_hidden="true"),
        h("details", h("summary", "The histogram as a table"), _scrolled("Samples by length, as a table", _bars(bars))),
        h("h3", "In batches"),
        _scrolled("Ways to make batches", _batches(batches)),
        h("p", note, class_="note"),
    )


def no_result(why: str) -> Element:
    """Why nothing follows for this run."""
    return h("p", why, class_="note")


def _scrolled(name: str, table: Element) -> Element:
    return h("div", table, class_="scroll", tabindex=0, role="group", aria_label=name)


def _table(caption: str, heads: tuple[tuple[str, str | None], ...], rows) -> Element:
    return h(
        "table",
        h("caption", caption, class_="visually-hidden"),
        h("thead", h("tr", (h("th", text, scope="col", class_=class_) for text, class_ in heads))),
        h("tbody", rows),
    )


def _marks(rows: tuple[MarkRow, ...]) -> Element:
    heads = (("Percentile", None), ("Tokens", "number"), ("Longer samples", "number wide-only"), ("Peak, GiB", "number"), ("Verdict", None), ("As length", None))
    return _table("Percentiles of the lengths, and the run with each as its sequence length", heads, (_mark(row) for row in rows))


def _mark(row: MarkRow) -> Element:
    use = h("button", "Use", h("span", f" {row.name}: {row.tokens} tokens", class_="visually-hidden"), type="button", class_="plain", data_action="use-length", data_length=row.value)
    now = h("span", "now", class_="badge") if row.current else None
    return h(
        "tr",
        h("th", row.label, now, scope="row"),
        h("td", row.tokens, class_="number"),
        h("td", row.longer, class_="number wide-only"),
        h("td", row.peak, class_="number"),
        h("td", verdict(row.verdict_name, row.verdict) if row.verdict else None),
        h("td", use if row.value else "too long for the model"),
        aria_current="true" if row.current else None,
    )


def _batches(rows: tuple[BatchesRow, ...]) -> Element:
    heads = (("Batches", None), ("Rows", "number"), ("Padding", "number"), ("Does not fit", "number"))
    cells = (h("tr", h("th", row.label, scope="row"), (h("td", text, class_="number") for text in (row.rows, row.padding, row.too_large))) for row in rows)
    return _table("Rows, padding, and the chance that a random micro-batch does not fit", heads, cells)


def _bars(rows: tuple[BarRow, ...]) -> Element:
    heads = (("Tokens", "number"), ("Samples", "number"), ("Of all", "number"), ("Up to here", "number"), ("At this micro-batch", None))
    cells = (
        h("tr", h("th", row.span, scope="row", class_="number"), (h("td", text, class_="number") for text in (row.samples, row.share, row.upto)), h("td", row.fits))
        for row in rows
    )
    return _table("Samples by length", heads, cells)


def _histogram(drawn: LengthChart, texts: dict[str, str], picture: str) -> Element:
    frame = drawn.frame
    limit = next((line.tokens for line in drawn.lines if line.name == LIMIT), None)
    return svg(
        "svg",
        (element for tick in drawn.x_ticks for element in x_tick(tick, frame)),
        (element for tick in drawn.y_ticks for element in y_tick(tick, frame)),
        (_bar(bar, limit) for bar in drawn.bars if bar.samples),
        (_line(line, drawn) for line in drawn.lines),
        (_label(line, drawn, texts[line.name]) for line in drawn.lines),
        viewbox=f"0 0 {frame.width} {frame.height}",
        class_="drawing",
        role="img",
        aria_label=picture,
    )


def _bar(bar: Bar, limit: int | None) -> Element:
    beyond = limit is not None and bar.low > limit
    return svg("rect", x=bar.x, y=bar.y, width=bar.width, height=bar.height, class_="length-bar", data_beyond="yes" if beyond else None)


def _line(line: Line, drawn: LengthChart) -> Element:
    return svg("line", x1=line.x, x2=line.x, y1=line.label_y - LABEL_ROOM + LABEL_GAP, y2=drawn.frame.floor, class_="length-line", data_line=line.name)


def _label(line: Line, drawn: LengthChart, text: str) -> Element:
    """What a line stands for, on the side that has more room."""
    frame = drawn.frame
    anchor, dx = ("start", LABEL_GAP) if 2 * line.x < frame.left + frame.plot_right else ("end", -LABEL_GAP)
    return label(text, line.x, line.label_y, dx=dx, anchor=anchor, class_="crossing-text")
