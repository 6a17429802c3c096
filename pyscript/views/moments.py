"""The moments of a training step, and the tensors that are alive at the largest of them."""

from vramplan.chart import Stack
from vramplan.accounts import MomentRow, TensorRow
from pyscript.tree import Element, h
from pyscript.views.headline import stack_bar


def moments(rows: tuple[MomentRow, ...], bars: tuple[Stack, ...]) -> Element:
    """The moments as a table, each with its bar; all bars have one scale, and the line of the headline."""
    return h(
        "table",
        h("caption", "What is alive at each moment of a step, in GiB per GPU", class_="visually-hidden"),
        h("thead", h("tr", h("th", "Moment", scope="col"), h("th", "GiB", scope="col", class_="number"))),
        h("tbody", (_moment(row, bar) for row, bar in zip(rows, bars, strict=True))),
        class_="moments",
    )


def _moment(row: MomentRow, bar: Stack) -> Element:
    peak = h("span", "peak", class_="badge") if row.largest else None
    return h(
        "tr",
        h("th", h("div", h("span", row.label, peak), stack_bar(bar), class_="moment"), scope="row"),
        h("td", row.gib, class_="number"),
        aria_current="true" if row.largest else None,
    )


def tensors(rows: tuple[TensorRow, ...]) -> Element:
    """The tensors in work at the largest moment, largest first."""
    if not rows:
        return h("p", "No layer and no loss is in work at this moment; the table of components has all of it.", class_="note")
    heads = (("Tensor", None), ("GiB", "number"), ("Shape", None), ("Type", None), ("Count", "number"), ("Alive because it is", None))
    return h(
        "table",
        h("caption", "Tensors of the layer or the loss in work", class_="visually-hidden"),
        h("thead", h("tr", (h("th", text, scope="col", class_=class_) for text, class_ in heads))),
        h("tbody", (_tensor(row) for row in rows)),
        class_="tensors",
    )


def _tensor(row: TensorRow) -> Element:
    return h(
        "tr",
        h("th", row.label, scope="row"),
        h("td", row.gib, class_="number"),
        h("td", row.shape, class_="shape"),
        h("td", row.dtype),
        h("td", row.count, class_="number"),
        h("td", row.why, class_="quiet"),
    )
