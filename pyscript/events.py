"""Listening and waiting: Python functions handed to the browser, each kept for as long as the page lives."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
import traceback

from js import (
    IntersectionObserver, MessageChannel, cancelAnimationFrame, clearTimeout, console, document, navigator, performance, requestAnimationFrame, setTimeout,
)
from pyodide.ffi import create_proxy


OUT_OF_SIGHT = 200
"""Milliseconds that a page waits in place of a frame where it gets none."""


_SCHEDULING = getattr(navigator, "scheduling", None)
"""What tells of waiting input; in Chromium only."""


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


class AfterFrame:
    """An action that runs once the browser has shown what is painted by then. A page out of sight gets no frames, and a timer instead."""

    def __init__(self, action):
        self._then = Later(action, 0)  # what a frame calls is called before that frame is drawn; a timer set there ends after it
        self._frame = create_proxy(guarded(lambda time: self._drawn()))
        self._instead = Later(self._drawn, OUT_OF_SIGHT)
        self._waiting = None

    def call(self) -> None:
        """Run the action after the next frame."""
        self.cancel()
        self._waiting = requestAnimationFrame(self._frame)
        self._instead.call()

    def cancel(self) -> None:
        """Forget a waiting action."""
        if self._waiting is not None:
            cancelAnimationFrame(self._waiting)
            self._waiting = None
        self._instead.cancel()
        self._then.cancel()

    def _drawn(self) -> None:
        self.cancel()
        self._then.call()


async def shown() -> None:
    """Wait until the browser has shown what is painted."""
    done = asyncio.get_running_loop().create_future()
    AfterFrame(partial(done.set_result, None)).call()
    await done


class Soon:
    """An action that runs as soon as the browser has had its turn. A timer that a timer has set waits for 4 milliseconds at the least
    (HTML, timer initialisation steps); a message does not."""

    def __init__(self, action):
        channel = MessageChannel.new()
        self._action, self._port, self._waiting = action, channel.port2, False
        channel.port1.onmessage = create_proxy(guarded(self._run))

    def call(self) -> None:
        """Run the action next."""
        if not self._waiting:
            self._waiting = True
            self._port.postMessage(None)

    def cancel(self) -> None:
        """Forget a waiting action."""
        self._waiting = False

    def _run(self, event) -> None:
        if self._waiting:
            self._waiting = False
            self._action()


SLICE = 40
"""Milliseconds that steps are run for before the browser has its turn: each turn costs it a frame, and a key that is pressed waits so long
at the most, and for one step."""


class Steps:
    """Actions that run one after another, the browser having its turn from time to time. Newer ones take the place of those that are left."""

    def __init__(self):
        self._left: deque[Callable[[], None]] = deque()
        self._waits = False
        self._next = Soon(self._run_some)
        self._first = AfterFrame(self._run_some)

    def begin(self, actions: Iterable[Callable[[], None]]) -> None:
        """Run these once the browser has shown what was done before; those that one of them begins wait in turn."""
        self.cancel()
        self._left.extend(actions)
        self._waits = True
        self._first.call()

    def cancel(self) -> None:
        """Forget those that are left."""
        self._left.clear()
        self._first.cancel()
        self._next.cancel()

    async def finished(self) -> None:
        """Run those that are left without waiting for their time; the browser has its turn between them."""
        while self._left:
            self._run_some()
            await asyncio.sleep(0)

    def _run_some(self) -> None:
        until, self._waits = performance.now() + SLICE, False
        self._first.cancel()
        self._next.call()  # one that fails does not keep the others from running
        while self._left and not self._waits and performance.now() < until and not _input_waits():
            self._left.popleft()()
        if not self._left:
            self._next.cancel()


def _input_waits() -> bool:
    """Whether somebody has pressed something meanwhile, as far as the browser tells."""
    return bool(_SCHEDULING) and _SCHEDULING.isInputPending()


class WhenSeen:
    """An action on a part of the page that runs once the calls have paused and somebody sees the part.

    While the part is out of sight, typing has nothing to wait for.
    """

    def __init__(self, element_id: str, action, milliseconds: int):
        self._action = action
        self._stale = self._in_sight = False
        self._later = Later(self.at_once, milliseconds)
        IntersectionObserver.new(create_proxy(guarded(self._on_sight))).observe(document.getElementById(element_id))

    def call(self) -> None:
        """The part shows something that has changed."""
        self._stale = True
        if self._in_sight:
            self._later.call()

    def cancel(self) -> None:
        """The part has nothing to show."""
        self._stale = False
        self._later.cancel()

    def at_once(self) -> None:
        """Run the action now."""
        self.cancel()
        self._action()

    def up_to_date(self) -> None:
        """Run the action now if anything has changed since it last ran."""
        if self._stale:
            self.at_once()

    def _on_sight(self, entries, observer) -> None:
        """The part has come into sight, or left it."""
        self._in_sight = entries[entries.length - 1].isIntersecting
        if self._in_sight:
            self.up_to_date()
