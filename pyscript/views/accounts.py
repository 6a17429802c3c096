"""What stands behind the number: what was assumed, and how the accountings differ."""

from vramplan.accounts import Assumptions, Beside, DifferenceRow, Differences, Other, StackRow
from pyscript.tree import Element, h
from pyscript.views.headline import verdict


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


def others(rows: tuple[Other, ...]) -> Element:
    """The run by every accounting, with the terms that make the difference."""
    return h(
        "table",
        h("caption", "Peak of this run by every accounting, and how much more or less than by the chosen one", class_="visually-hidden"),
        h(
            "thead",
            h(
                "tr",
                h("th", "Accounting", scope="col"),
                h("th", "Peak, GiB", scope="col", class_="number"),
                h("th", "Against this", scope="col", class_="number"),
                h("th", "Verdict", scope="col"),
            ),
        ),
        h("tbody", (_other(row) for row in rows)),
        class_="changes",
    )


def _other(row: Other) -> Element:
    now = h("span", "now", class_="badge") if row.current else None
    why = h("span", row.why, class_="cost") if row.why else None
    return h(
        "tr",
        h("th", h("a", row.label, href=f"?{row.query}", data_open=True), now, why, scope="row"),
        h("td", row.peak or "–", class_="number"),
        h("td", row.more, class_="number quiet"),
        h("td", verdict(row.verdict_name, row.verdict) if row.verdict else "not counted"),
        aria_current="true" if row.current else None,
    )


def differences(told: Differences) -> Element:
    """Every accounting component by component, each with how much more or less than the step it is, and why."""
    heads = ("Training step", *told.labels)
    return h(
        "table",
        h("caption", "GiB per GPU by each accounting, and how much more or less than by the training step", class_="visually-hidden"),
        h("thead", h("tr", h("th", "Component", scope="col"), (h("th", text, scope="col", class_="number") for text in heads))),
        h("tbody", (_difference(row) for row in told.rows)),
        h("tfoot", _difference(told.peak)),
        class_="differences",
    )


def _difference(row: DifferenceRow) -> Element:
    why = h("span", h("span", row.why), class_="why") if row.why else None
    return h("tr", h("th", row.label, why, scope="row"), h("td", row.step, class_="number"), (_beside(each) for each in row.others))


def _beside(each: Beside) -> Element:
    return h("td", each.gib, " ", h("small", each.more, class_="more"), class_="number")
