"""A finished page in another language: the same elements, with every text and label told."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser

from vramplan import language
from pyscript.tree import VOID_TAGS, Element, h, markup

DOCTYPE = "<!doctype html>\n"

TOLD = {"boot-status": "data-", "boot-bytes": "data-"}
"""Attributes of the page that hold words for boot.mjs: how they start, by the id of their element."""


def translated(page: str, code: str) -> str:
    """The page in the language `code`. Raises KeyError for an unknown language."""
    with spoken(code):
        return DOCTYPE + "".join(markup(node) for node in read(page))


@contextmanager
def spoken(code: str) -> Iterator[None]:
    """Speaks a language within the block, and English behind it."""
    language.use(code)
    try:
        yield
    finally:
        language.use(language.ENGLISH)


def read(page: str) -> list[Element | str]:
    """The elements of a page, told in the language in use."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.top


class _Reader(HTMLParser):
    """Builds the tree anew from its leaves up, so that each element is told with what stands in it."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.top: list[Element | str] = []
        self._open: list[tuple[str, dict, list]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        attributes = {name: True if value is None else _attribute(tag, name, value, given) for name, value in attrs}
        if tag in VOID_TAGS:
            self._add(h(tag, **attributes))
        else:
            self._open.append((tag, attributes, []))

    def handle_endtag(self, tag: str) -> None:
        opened, attributes, children = self._open.pop()
        if opened != tag:
            raise ValueError(f"<{opened}> ends as </{tag}>")
        self._add(h(tag, *children, **attributes))

    def handle_data(self, data: str) -> None:
        self._add(data)

    def _add(self, node: Element | str) -> None:
        (self._open[-1][2] if self._open else self.top).append(node)


def _attribute(tag: str, name: str, value: str, others: dict[str, str | None]) -> str:
    """An attribute as the page in another language has it."""
    if tag == "html" and name == "lang":
        return language.TAGS[language.current()]
    described = tag == "meta" and others.get("name") == "description" and name == "content"
    said = others.get("id") in TOLD and name.startswith(TOLD[others["id"]])
    return language.told(value) if described or said else value
