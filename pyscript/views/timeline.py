"""The step over time: the drawing with its slider, the legend, what is alive at the chosen moment, and runs to lay over it."""

from dataclasses import dataclass

from vramplan.chronicle import AliveRow, LegendRow
from vramplan.scene import Area, Label, Line, Mark, Piece, Scene
from vramplan.svg import diamond, path
from pyscript.tree import Element, h, svg


@dataclass(frozen=True)
class Choice:
    """A run that can be laid over: how it is named when it is chosen, what it is called, and whether it is laid over now."""

    name: str
    label: str
    chosen: bool


def timeline(drawn: Scene, chosen: int, reading: str, legend: tuple[LegendRow, ...], sentences: tuple[str, ...]) -> Element:
    """The drawing, read at one frame, with the legend of what each component holds there."""
    return h(
        "div",
        (h("p", sentence) for sentence in sentences),
        _drawing(drawn, chosen),
        h(
            "div",
            h("label", "Read it at", for_="timeline-slider"),
            h(
                "input", type="range", id="timeline-slider", min=0, max=len(drawn.chart.tops) - 1, step=1, value=chosen, aria_valuetext=reading,
            ),
            h("output", reading, for_="timeline-slider", id="timeline-reading", aria_live="off"),
            class_="slider",
        ),
        h("ul", (_entry(row) for row in legend), class_="legend", role="list", aria_label="GiB at this moment, from the top of the stack down"),
        class_="timeline",
    )


def _drawing(drawn: Scene, chosen: int) -> Element:
    frame, x = drawn.frame, drawn.chart.middle(chosen)
    return svg(
        "svg",
        (_piece(piece) for piece in drawn.pieces),
        svg("line", x1=x, x2=x, y1=frame.top, y2=frame.floor, class_="reading-line"),
        svg("circle", cx=x, cy=drawn.chart.tops[chosen], r=3.5, class_="reading-mark"),
        viewbox=f"0 0 {frame.width} {frame.height}",
        class_="drawing",
        role="img",
        aria_label=f"{drawn.title}. {drawn.description} The slider below reads it, and the table has the moments.",
    )


def _piece(piece: Piece) -> Element | list[Element]:
    match piece:
        case Area():
            return svg("path", d=f"{path(piece.corners)}z", class_="area", data_part=piece.name)
        case Line(role="over"):
            d = path(piece.corners)
            return [svg("path", d=d, class_="over-ground"), svg("path", d=d, class_="over-line")]
        case Line():
            return svg("path", d=path(piece.corners), class_=f"{piece.role}-line")
        case Mark():
            return svg("path", d=diamond(piece), class_=f"{piece.role}-mark")
        case Label():
            return svg("text", piece.text, x=piece.x, y=piece.y, text_anchor=piece.anchor, class_=f"{piece.role}-text")


def _entry(row: LegendRow) -> Element:
    key = h("span", class_="key", data_part=row.name, aria_hidden="true")
    return h("li", h("span", key, row.label), " ", h("span", row.gib, class_="number"))


def choices(offered: tuple[Choice, ...], kept: str, *, live: bool = True) -> Element:
    """Buttons that lay another run over this one, and one that keeps this run for that."""
    return h(
        "div",
        h("span", "Lay over it", id="lay-over-label"),
        h("div", (_choice(each, live) for each in offered), role="group", aria_labelledby="lay-over-label", class_="lay-over"),
        h("button", "Keep this run to compare", type="button", class_="plain", data_action="keep-run", disabled=not live),
        h("p", kept, class_="note") if kept else None,
        class_="lay-over-part",
    )


def _choice(each: Choice, live: bool) -> Element:
    return h(
        "button", each.label, type="button", class_="plain", data_action="lay-over", data_run=each.name,
        aria_pressed="true" if each.chosen else "false", disabled=not live,
    )


def alive(rows: tuple[AliveRow, ...], reading: str) -> Element:
    """What is alive at the chosen frame, largest first."""
    heads = (("Alive", None), ("GiB", "number"), ("Shape", None), ("Type", None), ("Count", "number"), ("Alive because it is", None))
    return h(
        "table",
        h("caption", reading, class_="visually-hidden"),
        h("thead", h("tr", (h("th", text, scope="col", class_=class_) for text, class_ in heads))),
        h("tbody", (_alive(row) for row in rows)),
        class_="tensors",
    )


def _alive(row: AliveRow) -> Element:
    key = h("span", class_="key", data_part=row.component or None, aria_hidden="true")
    return h(
        "tr",
        h("th", key, row.label, scope="row"),
        h("td", row.gib, class_="number"),
        h("td", row.shape, class_="shape"),
        h("td", row.dtype),
        h("td", row.count, class_="number"),
        h("td", row.why, class_="quiet"),
    )


def remarks(sentences: tuple[str, ...]) -> Element:
    """What repeats and is not drawn."""
    return h("p", " ".join(sentences), class_="note")
