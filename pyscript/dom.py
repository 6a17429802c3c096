"""Painting: make the document look like a tree of elements, changing only what differs from the last one."""

from functools import cache

import js

from pyscript.tree import Element

SVG_NAMESPACE = "http://www.w3.org/2000/svg"
SVG_TAGS = {"svg", "rect", "line", "text", "polyline", "circle", "path"}

FOCUSABLE = ",".join(("a[href]", "button", "summary", "input", "select", "textarea"))
"""What the focus can be on."""

LIVE_PROPERTIES = {"value"}
"""Attributes whose current state lives in a property once a person has touched the control."""


@cache
def document():
    """The page's document, looked up when it is first needed: this module is in the snapshot, which can hold nothing of a page."""
    return js.document


_MADE_FOR: dict[str, object] = {}
"""The run that a region was last painted for, by the id of its element."""


def made_for(element):
    """The run for which the part of the page around an element was painted; None where a part belongs to no run."""
    place = element.closest("[id]")
    while place and place.id not in _MADE_FOR:
        place = place.parentElement and place.parentElement.closest("[id]")
    return _MADE_FOR[place.id] if place else None


class Region:
    """A part of the document that shows one tree at a time."""

    def __init__(self, element_id: str):
        self._root = document().getElementById(element_id)
        self._shown: Element | None = None
        self._hidden: bool | None = None

    def paint(self, tree: Element, run: object = None) -> None:
        """Show this tree. The first time it replaces what the build wrote; after that only differences are touched.

        run: the run that the offers in the tree would change.
        """
        if run is not None:
            _MADE_FOR[self._root.id] = run
        if self._shown is None:
            place = _focused_place(self._root)
            self._root.replaceChildren(_make(tree, self._root))
            _focus(self._root, place)
        elif self._shown != tree:
            _patch(self._root.firstChild, self._shown, tree)
        self._shown = tree
        self._hide(False)

    def renew(self, tree: Element) -> None:
        """Show this tree as new: nothing that was opened or closed in the last one stays so."""
        self._shown = None
        self.paint(tree)

    def hide(self) -> None:
        """Show nothing."""
        self._hide(True)

    def _hide(self, hidden: bool) -> None:
        if hidden != self._hidden:
            self._root.hidden = self._hidden = hidden


def _focused_place(root) -> int | None:
    """Which of the elements that take the focus in a part of the document has it; None where it is elsewhere."""
    active = document().activeElement
    if not root.contains(active):
        return None
    return next((place for place, each in enumerate(root.querySelectorAll(FOCUSABLE)) if each.isSameNode(active)), None)


def _focus(root, place: int | None) -> None:
    """Give the focus to the element in the same place, so that nobody is thrown out of a part that is made anew."""
    if place is not None:
        for element in list(root.querySelectorAll(FOCUSABLE))[place : place + 1]:
            element.focus()


def _make(node: Element | str, parent):
    """What a node looks like in the document, for this parent: a link in a drawing is an element of SVG too."""
    if isinstance(node, str):
        return document().createTextNode(node)
    if node.tag in SVG_TAGS or (node.tag == "a" and parent.namespaceURI == SVG_NAMESPACE):
        made = document().createElementNS(SVG_NAMESPACE, node.tag)
    else:
        made = document().createElement(node.tag)
    for name, value in node.attributes:
        _set(made, name, value)
    for child in node.children:
        made.appendChild(_make(child, made))
    return made


def _patch(shown, old: Element | str, new: Element | str) -> None:
    """Make what shows `old` show `new`, which is another tree."""
    if isinstance(old, str) and isinstance(new, str):
        shown.data = new
        return
    if isinstance(old, str) or isinstance(new, str) or old.tag != new.tag:
        shown.replaceWith(_make(new, shown.parentNode))
        return
    _patch_attributes(shown, dict(old.attributes), dict(new.attributes))
    _patch_children(shown, old.children, new.children)


def _patch_attributes(shown, old: dict[str, str], new: dict[str, str]) -> None:
    for name in old.keys() - new.keys():
        shown.removeAttribute(name)
    for name, value in new.items():
        if old.get(name) != value:
            _set(shown, name, value)


def _patch_children(shown, old: tuple, new: tuple) -> None:
    if old == new:
        return
    children = shown.childNodes
    for place, (before, after) in enumerate(zip(old, new)):
        if before != after:
            _patch(children[place], before, after)
    for _ in old[len(new) :]:
        shown.lastChild.remove()
    for after in new[len(old) :]:
        shown.appendChild(_make(after, shown))


def _set(element, name: str, value: str) -> None:
    element.setAttribute(name, value)
    if name in LIVE_PROPERTIES:
        setattr(element, name, value)
