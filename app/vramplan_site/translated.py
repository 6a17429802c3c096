"""A finished page in another language: the same elements, with every text and label told."""

from html.parser import HTMLParser

from vramplan import language
from pyscript.tree import VOID_TAGS, Element, h, markup

DESCRIBED = {"content"}
"""Attributes of a page's head that are read by people: of the description, and of what boot.mjs says."""

SAID_BY_THE_START = "data-"


def translated(page: str, code: str) -> str:
    """The page in the language `code`, which is in use while it is made. Raises KeyError for an unknown language."""
    language.use(code)
    try:
        reader = _Reader()
        reader.feed(page)
        reader.close()
        return "<!doctype html>\n" + "".join(markup(node) for node in reader.top)
    finally:
        language.use(language.ENGLISH)


class _Reader(HTMLParser):
    """Builds the tree anew from its leaves up, so that each element is told with what stands in it."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.top: list[Element | str] = []
        self._open: list[tuple[str, dict, list]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: self._attribute(tag, name, value, dict(attrs)) for name, value in attrs}
        if tag == "html":
            attributes["lang"] = language.current()
        if tag in VOID_TAGS:
            self._add(h(tag, **attributes))
        else:
            self._open.append((tag, attributes, []))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID_TAGS:
            return
        opened, attributes, children = self._open.pop()
        if opened != tag:
            raise ValueError(f"<{opened}> ends as </{tag}>")
        self._add(h(tag, *children, **attributes))

    def handle_data(self, data: str) -> None:
        self._add(data)

    def _add(self, node: Element | str) -> None:
        (self._open[-1][2] if self._open else self.top).append(node)

    @staticmethod
    def _attribute(tag: str, name: str, value: str | None, others: dict) -> str | bool:
        if value is None:
            return True
        if tag == "meta" and others.get("name") == "description" and name == "content":
            return language.told(value)
        if others.get("id") in ("boot-status", "boot-bytes") and name.startswith("data-"):
            return language.told(value)
        return value
