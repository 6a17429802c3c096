"""What was measured of a run: against the estimate, with everything that may explain the difference."""

from vramplan.importing.problems import ImportProblem
from vramplan.measured_run.reading import Reading
from vramplan.own_run import BlockRow, Choice, Explained, Measure, OwnRun, TensorRow
from pyscript.tree import Element, h, svg

BAR_WIDTH = 1_000
"""Length of the longest bar, in its own user units."""


def read(reading: Reading, blocks: tuple[BlockRow, ...]) -> Element:
    """What was read, and what was taken for what."""
    return h(
        "div",
        h("p", f"Read: {reading.source}.", class_="note"),
        (h("p", told, class_="note") for told in reading.told),
        _blocks(blocks) if blocks else None,
    )


def problem(found: ImportProblem) -> Element:
    """Why nothing could be read, and what to do."""
    return h("div", h("p", found.message, class_="error"), h("p", found.hint))


def result(told: OwnRun) -> Element:
    """Measured against estimated, and headroom with the difference."""
    longest = max((max(each.bytes, each.high) for each in told.measures), default=1)
    return h(
        "div",
        h("h3", "Against the estimate"),
        (h("p", sentence) for sentence in told.sentences),
        _scrolled(_measures(told.measures, longest), "Measured against estimated memory") if told.measures else None,
        h("p", told.adjusted, class_="adjusted") if told.adjusted else None,
        h("p", told.settings, " ", _to("These are the settings it was measured with", told.query_here) if told.other else None, class_="note"),
        h("p", _to("Forget this measurement", told.forgotten)),
    )


def why(told: Explained) -> Element:
    """Sentences, tensors of a failed run, and other settings, each of which opens the run with it."""
    return h(
        "div",
        h("h3", "What may explain it"),
        (h("p", sentence) for sentence in told.sentences),
        _scrolled(_tensors(told.tensors), "Tensors of the size that was asked for") if told.tensors else None,
        _scrolled(_choices(told.choices), "Other settings, and what they come to") if told.choices else None,
    )


def _measures(measures: tuple[Measure, ...], longest: int) -> Element:
    heads = (("Memory", None), ("Measured, GiB", "number"), ("Estimate, GiB", "number"), ("Difference", "number"))
    return h(
        "table",
        h("caption", "Measured against estimated memory", class_="visually-hidden"),
        h("thead", h("tr", (h("th", text, scope="col", class_=class_) for text, class_ in heads))),
        h("tbody", (_measure(each, longest) for each in measures)),
        class_="measures",
    )


def _measure(each: Measure, longest: int) -> Element:
    return h(
        "tr",
        h("th", each.label, h("span", each.meaning, class_="meaning"), _bar(each, longest), scope="row"),
        h("td", each.measured, class_="number"),
        h("td", each.estimated, class_="number"),
        h("td", each.difference, h("span", each.share, class_="share"), class_="number"),
    )


def _bar(each: Measure, longest: int) -> Element:
    """The estimate as a bar, its band lighter, and a mark where the measured amount is. The table says the same."""
    low, high, mark = (BAR_WIDTH * amount // longest for amount in (each.low, each.high, each.bytes))
    return svg(
        "svg",
        svg("rect", x=0, y=4, width=BAR_WIDTH, height=8, class_="stack-room"),
        svg("rect", x=0, y=4, width=high, height=8, class_="own-band"),
        svg("rect", x=0, y=4, width=low, height=8, class_="own-estimate"),
        svg("line", x1=mark, x2=mark, y1=0, y2=16, class_="stack-budget"),
        viewbox=f"0 0 {BAR_WIDTH} 16",
        preserveAspectRatio="none",
        class_="own-bar",
        aria_hidden="true",
    )


def _choices(choices: tuple[Choice, ...]) -> Element:
    return h(
        "table",
        h("caption", "Other settings, and how far what was measured is from them. Each name opens that run with this measurement.", class_="visually-hidden"),
        h("thead", h("tr", h("th", "With", scope="col"), h("th", "Peak, GiB", scope="col", class_="number"), h("th", "Off by", scope="col", class_="number"))),
        h("tbody", (_choice(each) for each in choices)),
        class_="own-choices",
    )


def _choice(each: Choice) -> Element:
    badge = h("span", "likely", class_="badge") if each.likely else None
    also = h("span", f"The same with: {each.also}", class_="meaning") if each.also else None
    return h(
        "tr",
        h("th", _to(each.label, each.query), badge, also, scope="row"),
        h("td", each.peak, class_="number"),
        h("td", each.difference, h("span", each.share, class_="share"), class_="number"),
    )


def _tensors(tensors: tuple[TensorRow, ...]) -> Element:
    heads = (("Tensor", None), ("Shape", None), ("GiB", "number"), ("Moment", None), ("Besides, GiB", "number"))
    return h(
        "table",
        h("caption", "Tensors of the size that was asked for; B is the micro-batch, S the sequence length", class_="visually-hidden"),
        h("thead", h("tr", (h("th", text, scope="col", class_=class_) for text, class_ in heads))),
        h("tbody", (_tensor(each) for each in tensors)),
        class_="tensors",
    )


def _tensor(each: TensorRow) -> Element:
    return h(
        "tr",
        h("th", each.label, h("span", "as your run", class_="badge") if each.same else None, scope="row"),
        h("td", each.shape, h("span", f" {each.dtype}", class_="quiet")),
        h("td", each.gib, class_="number"),
        h("td", each.moment),
        h("td", each.beside, class_="number"),
    )


def _blocks(blocks: tuple[BlockRow, ...]) -> Element:
    rows = (h("tr", h("td", each.gib, class_="number"), h("td", each.count, class_="number"), h("th", h("code", each.place), scope="row")) for each in blocks)
    table = h(
        "table",
        h("caption", "Alive at the peak of the snapshot, by where it was made", class_="visually-hidden"),
        h("thead", h("tr", h("th", "GiB", scope="col", class_="number"), h("th", "Blocks", scope="col", class_="number"), h("th", "Made at", scope="col"))),
        h("tbody", rows),
        class_="own-blocks",
    )
    return h("details", h("summary", "Alive at the peak of the snapshot"), _scrolled(table, "Blocks of the snapshot"))


def _scrolled(table: Element, name: str) -> Element:
    return h("div", table, class_="scroll", tabindex=0, role="group", aria_label=name)


def _to(text: str, query: str) -> Element:
    return h("a", text, href=f"?{query}", data_open=True)
