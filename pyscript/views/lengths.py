"""The part for the token lengths of one's own data: where to paste, drop or choose them."""

from pyscript.tree import Element, h

PART, FOLD, TEXT, FILE, COLUMNS, COLUMN, TOLD, PROBLEM, RESULT = (
    "lengths-part", "lengths-fold", "lengths-text", "lengths-file", "lengths-columns", "lengths-column", "lengths-told", "lengths-problem", "lengths-result",
)
"""Ids of its parts."""


def panel() -> Element:
    """The part as it is built."""
    return h(
        "details",
        h("summary", "Bring the lengths of your data"),
        h("label", "Paste token lengths", for_=TEXT, class_="label"),
        h(
            "p",
            "One length a line, a CSV file with a column of them, or JSON Lines with a key such as num_tokens or input_ids; or choose or drop such a file. "
            "Nothing is tokenised here. It is read in your browser and goes nowhere, nor into the link.",
            class_="hint",
            id=f"{TEXT}-hint",
        ),
        h("textarea", id=TEXT, rows=3, spellcheck="false", autocomplete="off", autocapitalize="off", aria_describedby=f"{TEXT}-hint {PROBLEM}", placeholder="512\n1024\n300"),
        h(
            "div",
            h("button", "Read the lengths", type="button", class_="plain", data_action="lengths-read", disabled=True),
            h("label", "Choose a file of lengths", h("input", type="file", id=FILE, class_="visually-hidden"), class_="file"),
            class_="bring-actions",
        ),
        h("p", id=TOLD, role="status", class_="visually-hidden"),
        h("p", class_="error", id=PROBLEM, hidden=True),
        h("div", id=COLUMNS, hidden=True),
        h("div", id=RESULT, tabindex=-1, role="group", aria_label="Your lengths against what fits", hidden=True),
        class_="own-run",
        id=FOLD,
    )
