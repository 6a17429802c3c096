"""The address bar: the only module that reads or changes it."""

from js import history, location, window
from pyodide.ffi import JsException

from pyscript.events import Later, listen

RETRY_AFTER = 1_000
"""Milliseconds after which a refused change is tried again: browsers limit how often the address may change."""


class Address:
    """The query string of the page, and its steps in the history."""

    def __init__(self):
        self._wanted = ""
        self._retry = Later(lambda: self.replace(self._wanted), RETRY_AFTER)

    def query(self) -> str:
        """The query string, with its '?' if there is one."""
        return location.search

    def full(self, query: str) -> str:
        """The whole address that opens a query string."""
        return f"{location.origin}{location.pathname}?{query}"

    def replace(self, query: str) -> None:
        """Show a query string in place of the current one."""
        if location.search != f"?{query}":
            self._change(history.replaceState, query, location.hash)

    def push(self, query: str) -> None:
        """Add a step to the history."""
        self._change(history.pushState, query, "")

    def on_travel(self, handler) -> None:
        """Call the handler after Back or Forward."""
        listen(window, "popstate", lambda event: handler())

    def _change(self, method, query: str, fragment: str) -> None:
        self._wanted = query
        self._retry.cancel()
        try:
            method(None, "", f"?{query}{fragment}")
        except JsException:
            self._retry.call()
