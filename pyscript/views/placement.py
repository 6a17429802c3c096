"""The part where people say what is free on their cards, and see which of them a run would be put on."""

from vramplan.free_memory import FREE, NUMBERS
from vramplan.placement_report import Told, TriedRow
from pyscript.tree import Element, h

FREE_TEXT, CARDS_TEXT, PROBLEM, RESULT = "placement-free", "placement-cards", "placement-problem", "placement-result"
"""Ids of its parts."""


def panel() -> Element:
    """The part as it is built."""
    return h(
        "div",
        h("label", f"{FREE} of your cards", for_=FREE_TEXT, class_="label"),
        h(
            "p",
            "GiB for each card, such as 22.5, 22.5, 10; or paste what ",
            h("code", "nvidia-smi --query-gpu=index,memory.total,memory.free --format=csv"),
            " prints. It stays in this page.",
            class_="hint",
            id=f"{FREE_TEXT}-hint",
        ),
        h("textarea", id=FREE_TEXT, rows=3, spellcheck="false", autocomplete="off", autocapitalize="off",
          aria_describedby=f"{FREE_TEXT}-hint {PROBLEM}", placeholder="22.5, 22.5, 10"),
        h("label", NUMBERS, for_=CARDS_TEXT, class_="label"),
        h("p", "Their numbers, such as 0, 1; empty for the fewest that hold the run.", class_="hint", id=f"{CARDS_TEXT}-hint"),
        h("input", type="text", id=CARDS_TEXT, spellcheck="false", autocomplete="off", aria_describedby=f"{CARDS_TEXT}-hint {PROBLEM}"),
        h("div", h("button", "Choose cards", type="button", class_="plain", data_action="place", disabled=True), class_="bring-actions"),
        h("p", class_="error", id=PROBLEM, role="status", hidden=True),
        h("div", id=RESULT, role="status", hidden=True),
        class_="own-run",
    )


def result(told: Told) -> Element:
    """The choice, why, and what was tried."""
    return h(
        "div",
        h("p", h("strong", told.answer)),
        h("p", told.why, class_="note"),
        h(
            "div",
            h(
                "table",
                h("caption", "Cards that were considered, GiB", class_="visually-hidden"),
                h(
                    "thead",
                    h(
                        "tr",
                        h("th", "Cards", scope="col"),
                        (h("th", text, scope="col", class_="number") for text in ("Free", "Usable", "Left")),
                        h("th", "Enough", scope="col"),
                    ),
                ),
                h("tbody", (_row(row) for row in told.rows)),
                class_="curve-table",
            ),
            class_="scroll",
            tabindex="0",
            role="group",
            aria_label="Cards that were considered",
        ),
    )


def _row(row: TriedRow) -> Element:
    return h(
        "tr",
        h("th", row.cards, scope="row"),
        (h("td", text, class_="number") for text in (row.free, row.usable, row.headroom)),
        h("td", "yes" if row.enough else "no"),
    )
