"""The run as a file of a tool or a summary, in the Share dialog: a choice, the text, and buttons that copy and save it."""

from collections.abc import Mapping

from pyscript.tree import Element, h

CHOICE, TEXT = "share-form", "share-export"
"""Ids of the choice and of the text."""


def part(forms: Mapping[str, str], to: str, text: str, problem: str) -> Element:
    """The choice and what it comes to. problem: why there is no text."""
    label = forms[to]
    return h(
        "div",
        h("label", "Export as", for_=CHOICE, class_="label"),
        h("select", [h("option", name, value=form, selected=form == to) for form, name in forms.items()], id=CHOICE),
        h("p", problem, class_="note")
        if problem
        else h(
            "div",
            h("label", label, for_=TEXT, class_="label"),
            h("textarea", text, id=TEXT, readonly=True, rows=10, spellcheck="false", value=text),
            h(
                "div",
                h("button", "Copy", h("span", f" {label}", class_="visually-hidden"), type="button", data_copy=TEXT, class_="plain"),
                h("button", "Download", h("span", f" {label}", class_="visually-hidden"), type="button", data_action="save-export", class_="plain"),
                class_="share-buttons",
            ),
            class_="share-text",
        ),
        class_="share-export",
    )
