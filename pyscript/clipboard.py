"""Copying text, also in a frame that may not use the clipboard interface."""

from js import document, navigator
from pyodide.ffi import JsException


async def copy(text: str) -> bool:
    """Copy the text; False when the browser does not let us."""
    try:
        await navigator.clipboard.writeText(text)
    except (JsException, AttributeError):
        return _copy_by_selection(text)
    return True


def _copy_by_selection(text: str) -> bool:
    """The older way: select the text in a field and let the browser copy the selection."""
    before = document.activeElement
    field = document.createElement("textarea")
    field.value = text
    field.setAttribute("readonly", "")
    field.className = "visually-hidden"
    (before.closest("dialog") or document.body).appendChild(field)
    field.select()
    copied = document.execCommand("copy")
    field.remove()
    before.focus()
    return bool(copied)
