"""The address bar: the only module that reads or changes it."""

from js import history, location, window
from pyodide.ffi import JsException

from vramplan.link import MAX_QUERY, texts_to_query
from vramplan.view import read_view, view_query
from pyscript.events import Later, listen

RETRY_AFTER = 1_000
"""Milliseconds after which a change that was not made is tried again: browsers limit how often the address may change."""


class Address:
    """The query string of the page, and its steps in the history. How the page is shown is part of it, and stays what it was at first.

    A frame makes no steps: Back belongs to the page around it.
    """

    def __init__(self):
        self.view = read_view(location.search)
        shown = f"&{view_query(self.view)}"
        self._view = shown if shown != "&" and len(self.full(texts_to_query({}) + shown)) <= MAX_QUERY else ""
        self._wanted = ""
        self._retry = Later(lambda: self.replace(self._wanted), RETRY_AFTER)

    def query(self) -> str:
        """The query string, with its '?' if there is one, without how the page is shown where that comes last."""
        return location.search.removesuffix(self._view)

    def full(self, query: str) -> str:
        """The address that opens a query string in the whole page."""
        return f"{location.origin}{location.pathname}?{query}"

    def shown(self, query: str) -> str:
        """A query string and, last, how the page is shown."""
        return f"{query}{self._view}"

    def beside(self, name: str) -> str:
        """The address of a file that lies beside the page."""
        return f"{location.origin}{location.pathname.rpartition('/')[0]}/{name}"

    @property
    def room(self) -> int:
        """Characters that a query string may have here, for an address that chat programs and mail leave whole."""
        return MAX_QUERY - len(self.full(self._view))

    def replace(self, query: str) -> None:
        """Show a query string in place of the current one; the place in the page that the address names stays in it if there is room."""
        fragment = location.hash if len(query) + len(location.hash) <= self.room else ""
        if (location.search, location.hash) != (f"?{self.shown(query)}", fragment):
            self._change(history.replaceState, query, fragment)

    def push(self, query: str) -> None:
        """Add a step to the history."""
        if self.view.embed:
            self.replace(query)
        else:
            self._change(history.pushState, query, "")

    def on_travel(self, handler) -> None:
        """Call the handler after Back or Forward."""
        listen(window, "popstate", lambda event: handler())

    def _change(self, method, query: str, fragment: str) -> None:
        self._wanted = query
        self._retry.cancel()
        try:
            method(None, "", f"?{self.shown(query)}{fragment}")
        except JsException:
            self._retry.call()
        else:
            if location.search != f"?{self.shown(query)}":  # some browsers refuse in silence
                self._retry.call()
