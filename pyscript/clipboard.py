"""Copying text, also in a frame that may not use the clipboard interface."""

from js import document, navigator
from pyodide.ffi import JsException


def copy(text: str):
    """Start copying, inside the visitor's own click, as some browsers demand; an awaitable of whether it worked."""
    try:
        writing = navigator.clipboard.writeText(text)
    except AttributeError:
        writing = None
    return _finish(writing, text)


async def _finish(writing, text: str) -> bool:
    try:
        if writing is not None:
            await writing
            return True
    except JsException:
        pass
    return _copy_by_selection(text)


def _copy_by_selection(text: str) -> bool:
    """The older way: select the text in a field and let the browser copy the selection."""
    before = document.activeElement
    field = document.createElement("textarea")
    field.value = text
    field.setAttribute("readonly", "")
    field.className = "visually-hidden"
    (document.querySelector("dialog[open]") or document.body).appendChild(field)
    field.select()
    copied = document.execCommand("copy")
    field.remove()
    before.focus()
    return bool(copied)
