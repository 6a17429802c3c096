"""The moments of a training step as a table."""

from vramplan.chart import Stack
from vramplan.accounts import MomentRow
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
