"""A tree of elements, and its markup. Text is always escaped; there is no way to put raw markup in."""

from collections.abc import Iterable
from typing import NamedTuple

from vramplan.language import ENGLISH, current, told, told_around

VOID_TAGS = {"br", "input", "meta", "link", "img"}
"""Elements of HTML that have no end tag."""

AS_THEY_ARE = {"code", "pre", "textarea", "script", "style", "mi", "mn", "mo"}
"""Elements whose text is the same in every language."""

TOLD = {"alt", "aria-label", "aria-description", "aria-valuetext", "label", "placeholder", "title"}
"""Attributes that a visitor reads or hears."""


class Element(NamedTuple):
    """One element: its tag, its attributes in order, and its children, elements or text. A named tuple: a page makes and compares thousands."""

    tag: str
    attributes: tuple[tuple[str, str], ...]
    children: tuple["Element | str", ...]


Child = Element | str | None | Iterable["Child"]


def h(tag: str, *children: Child, **attributes: object) -> Element:
    """An element. None and False leave a child or attribute out, True gives an attribute without value.

    Attribute names lose a trailing underscore, and the others become dashes: class_, data_part, aria_label.
    """
    pairs = tuple([
        (_NAMES[name], "" if value is True else str(value)) for name, value in attributes.items() if value is not None and value is not False
    ])
    element = Element(tag, pairs, tuple(_flat(children)))
    return _told(element) if current() != ENGLISH else element


class _Names(dict):
    """Names of attributes as they are written, by those of arguments."""

    def __missing__(self, name: str) -> str:
        self[name] = written = "viewBox" if name == "viewbox" else name.rstrip("_").replace("_", "-")
        return written


_NAMES = _Names()


def _told(element: Element) -> Element:
    """An element in the language in use."""
    pairs = tuple((name, told(value) if name in TOLD else value) for name, value in element.attributes)
    return Element(element.tag, pairs, element.children if element.tag in AS_THEY_ARE else told_around(element.children))


svg = h
"""An element of SVG; `viewBox` keeps its capital."""


def markup(node: Element | str) -> str:
    """The tree as HTML, without any white space of its own. What escapes is imported here: a page paints its trees, and it brings all entities."""
    from html import escape

    if isinstance(node, str):
        return escape(node, quote=False)
    start = node.tag + "".join(f' {name}="{escape(value)}"' if value else f" {name}" for name, value in node.attributes)
    if node.tag in VOID_TAGS:
        return f"<{start}>"
    return f"<{start}>{''.join(markup(child) for child in node.children)}</{node.tag}>"


def _flat(children: Iterable[Child]) -> list[Element | str]:
    """The elements and texts among children, in order, wherever they are nested."""
    flat: list[Element | str] = []
    for child in children:
        if isinstance(child, (str, Element)):
            if child != "":
                flat.append(child)
        elif child is not None and child is not False:
            flat += _flat(child)
    return flat
