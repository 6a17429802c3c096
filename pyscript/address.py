"""The address bar: the only module that reads or changes it."""

from js import history, location, window

from pyscript.events import listen


def query() -> str:
    """The query string, with its '?' if there is one."""
    return location.search


def page() -> str:
    """The address without query and fragment."""
    return f"{location.origin}{location.pathname}"


def full(query_text: str) -> str:
    """The whole address that opens a query string."""
    return f"{page()}?{query_text}"


def replace(query_text: str) -> None:
    """Show a query string in place of the current one."""
    if location.search != f"?{query_text}":
        history.replaceState(None, "", f"?{query_text}{location.hash}")


def push(query_text: str) -> None:
    """Add a step to the history."""
    history.pushState(None, "", f"?{query_text}")


def on_travel(handler) -> None:
    """Call the handler after Back or Forward."""
    listen(window, "popstate", lambda event: handler())
