"""The Share dialog: one run as a link, a frame for other pages, a badge, a command and lines of Python."""

from collections.abc import Iterable
from urllib.parse import quote

from vramplan import badge as badges
from vramplan import share
from vramplan.badge import Badge
from vramplan.fields import BY_NAME
from vramplan.settings import Settings
from vramplan.view import EVERYTHING, PANELS, THEMES, View, view_query
from pyscript.tree import Element, h, markup

FRAME_HEIGHT = 520
"""Height of the frame that is offered, in CSS pixels: headline and components without scrolling where a column has room for them."""

FRAME, PREVIEW, BADGE, PANEL, LOCK, THEME, SIZED = "share-frame", "share-preview", "share-badge", "share-panel", "share-lock", "share-theme", "share-sized"
"""Ids of the parts about a frame and a badge, and names of the controls that say what the frame shows."""


def link(address: str, left_out: str) -> Element:
    """The link. left_out: what it has no room for, in words."""
    return h(
        "div",
        _text("share-link", "Link", address, rows=2),
        h("p", f"The link has no room for {left_out}; the settings file holds everything, and is opened by dropping it on the page.", class_="caveat")
        if left_out
        else None,
    )


def more(settings: Settings | None, *, counted: bool) -> Element:
    """Other forms of the run. counted: whether there is an estimate to save."""
    return h(
        "div",
        [
            _text("share-command", "Terminal", share.command(settings), rows=2),
            _text("share-python", "Python", share.python(settings), rows=5),
            h("button", "Save as JSON", type="button", data_action="save-json", class_="plain")
            if counted
            else h("p", "There is no JSON document while the chosen accounting cannot count the run.", class_="note"),
        ]
        if settings
        else h("p", "The terminal command, Python and JSON follow when every input can be used.", class_="note"),
        " ",
        h("button", "Save settings file", type="button", data_action="save-settings", class_="plain"),
    )


def frame(shown: View, address: str, script: str, fields: Iterable[str], *, sized: bool) -> Element:
    """What a frame shows, the markup for it, and a place for the frame itself.

    address: of the whole page with the run. script: address of the script that sizes frames. fields: settings that can be locked. sized: whether the
    script is part of the markup.
    """
    text = snippet(frame_address(shown, address), script if sized else "")
    locks = {EVERYTHING: "Every setting", **{name: BY_NAME[name].label for name in fields}}
    return h(
        "div",
        h("fieldset", h("legend", "Parts", class_="label"), h("ul", (_tick(PANEL, name, label, name in shown.panels) for name, label in PANELS.items()), class_="ticks", role="list")),
        h(
            "details",
            h("summary", "Settings that readers cannot change"),
            h("fieldset", h("legend", "Settings that readers cannot change", class_="visually-hidden"), h("ul", (_tick(LOCK, name, label, name in shown.lock) for name, label in locks.items()), class_="ticks", role="list")),
        ),
        h(
            "div",
            h("div", h("label", "Light or dark", for_=THEME, class_="label"), h("select", (h("option", label, value=name, selected=name == shown.theme) for name, label in THEMES.items()), id=THEME)),
            h("label", h("input", type="checkbox", id=SIZED, checked=sized), h("span", "Always as high as what it shows, by a script of 1 KB"), class_="tick"),
            class_="frame-choices",
        ),
        _text("share-snippet", "Frame for another page", text, rows=4),
        h("p", "This is the frame:", class_="note"),
        h("iframe", id=PREVIEW, title="Preview of the frame", class_="preview", height=FRAME_HEIGHT),
    )


def frame_address(shown: View, address: str) -> str:
    """The address of a frame."""
    return f"{address}&{view_query(shown)}"


def snippet(address: str, script: str) -> str:
    """A frame as markup for another page, and the script that sizes it where there is one."""
    made = h(
        "iframe",
        data_vramplan=True,
        src=address,
        title="VRAM Plan: will this fine-tuning run fit?",
        width="100%",
        height=FRAME_HEIGHT,
        style="border: 0",
        loading="lazy",
        allow="clipboard-write",
    )
    return markup(made) + (f"\n{markup(h('script', src=script, async_=True))}" if script else "")


def badge(made: Badge | None, address: str) -> Element:
    """The badge of a run, its file and the Markdown that shows it. None: the run is not counted."""
    if made is None:
        return h("p", "There is no badge while the run cannot be counted.", class_="note")
    return h(
        "div",
        h("p", h("img", src=f"data:image/svg+xml,{quote(badges.svg(made))}", alt=made.alternative, class_="badge-picture")),
        h("p", "A badge tells of this run as it is counted now. Put the file beside the README.", class_="note"),
        h("button", "Save badge", type="button", data_action="save-badge", class_="plain"),
        _text("share-markdown", "Markdown", badges.markdown(made, link=address), rows=3),
    )


def _tick(name: str, value: str, label: str, ticked: bool) -> Element:
    return h("li", h("label", h("input", type="checkbox", name=name, value=value, checked=ticked), h("span", label), class_="tick"))


def _text(name: str, label: str, text: str, *, rows: int) -> Element:
    return h(
        "div",
        h("label", label, for_=name, class_="label"),
        h("textarea", text, id=name, readonly=True, rows=rows, spellcheck="false", value=text),
        h("button", "Copy", h("span", f" {label}", class_="visually-hidden"), type="button", data_copy=name, class_="plain"),
        class_="share-text",
    )
