"""What stands behind the number: what was assumed, and how the two accountings differ."""

from vramplan.accounts import Assumptions, DifferenceRow, StackRow
from pyscript.tree import Element, h


def assumptions(told: Assumptions, unchecked: str) -> Element:
    """What the training stack decided, what of it nobody checked, and the peak with other stacks."""
    return h(
        "div",
        h("p", told.sentence),
        h("p", unchecked, class_="caveat") if unchecked else None,
        h("p", told.spread) if told.spread else None,
        h(
            "table",
            h("caption", "The same settings with each training stack. Each name opens that run."),
            h("thead", h("tr", h("th", "Training stack", scope="col"), h("th", "Peak, GiB", scope="col", class_="number"))),
            h("tbody", (_stack(row) for row in told.stacks)),
            class_="changes",
        )
        if told.stacks
        else None,
    )


def _stack(row: StackRow) -> Element:
    now = h("span", "now", class_="badge") if row.current else None
    return h(
        "tr",
        h("th", h("a", row.label, href=f"?{row.query}", data_open=True), now, scope="row"),
        h("td", row.peak, class_="number"),
        aria_current="true" if row.current else None,
    )


def differences(rows: tuple[DifferenceRow, ...]) -> Element:
    """Both accountings component by component, with the reason where they differ."""
    *parts, total = rows
    heads = ("Training step", "Planning formula", "Step less planning")
    return h(
        "table",
        h("caption", "GiB per GPU by each accounting", class_="visually-hidden"),
        h("thead", h("tr", h("th", "Component", scope="col"), (h("th", text, scope="col", class_="number") for text in heads))),
        h("tbody", (_difference(row) for row in parts)),
        h("tfoot", _difference(total)),
        class_="differences",
    )


def _difference(row: DifferenceRow) -> Element:
    why = h("span", h("span", row.why), class_="why") if row.why else None
    amounts = (row.step, row.planning, row.difference)
    return h("tr", h("th", row.label, why, scope="row"), (h("td", text, class_="number") for text in amounts))
