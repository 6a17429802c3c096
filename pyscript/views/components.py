"""The component table: what the memory holds, row by row."""

from vramplan.report import Component
from pyscript.tree import Element, h


def components(rows: tuple[Component, ...], total: str) -> Element:
    """The table. The coloured keys are those of the bar in the headline."""
    return h(
        "table",
        h("caption", "GiB per GPU, each row rounded for display. Their bytes add up to the peak exactly."),
        h("thead", h("tr", _head("Component"), _head("GiB", "number"), _head("Of peak", "number"))),
        h("tbody", (_row(row) for row in rows)),
        h("tfoot", h("tr", h("th", "Peak per GPU", scope="row"), h("td", total, class_="number"), h("td", class_="number"))),
        class_="components",
    )


def _head(text: str, class_: str | None = None) -> Element:
    return h("th", text, scope="col", class_=class_)


def _row(row: Component) -> list[Element]:
    key = h("span", class_="key", data_part=row.name, aria_hidden="true")
    whole = h(
        "tr",
        h("th", key, row.label, scope="row"),
        h("td", row.gib, class_="number"),
        h("td", row.share_text, class_="number quiet"),
        data_empty="yes" if not row.bytes else None,
    )
    return [whole, *(_part(part) for part in row.parts)]


def _part(part: Component) -> Element:
    return h(
        "tr",
        h("th", part.label, scope="row"),
        h("td", part.gib, class_="number"),
        h("td", part.share_text, class_="number quiet"),
        class_="sub",
    )
