"""The Share dialog: one run as a link, a frame for other pages, a command and lines of Python."""

from vramplan import share
from vramplan.settings import Settings
from pyscript.tree import Element, h, markup

FRAME_HEIGHT = 720
"""Height of the frame that is offered, in CSS pixels: headline and first panels without scrolling."""


def dialog(settings: Settings | None, address: str, *, counted: bool, left_out: str) -> Element:
    """The content of the dialog; every text has a button that copies it.

    counted: whether there is an estimate to save. left_out: what the link has no room for, in words.
    """
    frame = h(
        "iframe",
        src=address,
        title="VRAM Plan: will this fine-tuning run fit?",
        width="100%",
        height=FRAME_HEIGHT,
        loading="lazy",
        allow="clipboard-write",
    )
    return h(
        "div",
        _text("share-link", "Link", address, rows=2),
        h("p", f"The link has no room for {left_out}; the settings file holds everything, and is opened by dropping it on the page.", class_="caveat")
        if left_out
        else None,
        _text("share-frame", "Frame for another page", markup(frame), rows=4),
        [
            _text("share-command", "Terminal", share.command(settings), rows=2),
            _text("share-python", "Python", share.python(settings), rows=5),
            h("button", "Save as JSON", type="button", data_action="save-json", class_="plain")
            if counted
            else h("p", "There is no JSON document while the chosen accounting cannot count the run.", class_="note"),
        ]
        if settings
        else h("p", "The terminal command, Python and JSON follow when every input can be used.", class_="note"),
        h("button", "Save settings file", type="button", data_action="save-settings", class_="plain"),
    )


def _text(name: str, label: str, text: str, *, rows: int) -> Element:
    return h(
        "div",
        h("label", label, for_=name, class_="label"),
        h("textarea", text, id=name, readonly=True, rows=rows, spellcheck="false", value=text),
        h("button", "Copy", h("span", f" {label}", class_="visually-hidden"), type="button", data_copy=name, class_="plain"),
        class_="share-text",
    )
