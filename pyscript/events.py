"""Listening and waiting: Python functions handed to the browser, each kept for as long as the page lives."""

import asyncio
import traceback

from js import clearTimeout, console, document, setTimeout
from pyodide.ffi import create_proxy


def guarded(action):
    """The action, with a mistake in it told to the visitor in words and to the console in full."""

    def run(*arguments) -> None:
        try:
            action(*arguments)
        except Exception:
            _tell()

    return run


def _tell() -> None:
    """Put the exception being handled into the console, and a sentence on the page."""
    console.error(traceback.format_exc())
    document.getElementById("trouble").hidden = False


def listen(target, name: str, handler) -> None:
    """Call the handler with every event of this name that reaches the target."""
    target.addEventListener(name, create_proxy(guarded(handler)))


_RUNNING = set()
"""Tasks under way; without a reference a task may vanish before it ends."""


def start(work) -> None:
    """Run a coroutine to its end, with a mistake in it told like any other."""

    async def run() -> None:
        try:
            await work
        except Exception:
            _tell()

    task = asyncio.ensure_future(run())
    _RUNNING.add(task)
    task.add_done_callback(_RUNNING.discard)


class Later:
    """An action that runs once the calls have paused; a new call starts the wait again."""

    def __init__(self, action, milliseconds: int):
        self._action = create_proxy(guarded(action))
        self._milliseconds = milliseconds
        self._waiting = None

    def call(self) -> None:
        """Run the action after the pause."""
        self.cancel()
        self._waiting = setTimeout(self._action, self._milliseconds)

    def cancel(self) -> None:
        """Forget a waiting action."""
        if self._waiting is not None:
            clearTimeout(self._waiting)
            self._waiting = None
