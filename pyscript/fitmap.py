"""The map of what fits, in the page: made in short slices while somebody looks, read where the pointer or the keyboard is."""

from js import IntersectionObserver, document, performance, window
from pyodide.ffi import create_proxy

from vramplan import mapchart
from vramplan.errors import NotExpressible
from vramplan.fitmap import map_in_steps
from vramplan.ledger import Estimate
from pyscript import panels
from pyscript.dom import Region
from pyscript.events import Later, guarded, listen

AFTER = 150
"""Milliseconds without a change before a map in sight is made: the answer and the panels come first."""

SLICE, BETWEEN = 4, 0
"""Milliseconds that are worked at a time, and that are left free between two such times for whatever else waits."""

LINK = "map-link"
"""The id of the link that lies over the drawing."""

MOVES = {"ArrowLeft": (0, -1), "ArrowRight": (0, 1), "ArrowUp": (1, 0), "ArrowDown": (-1, 0)}
"""Rows and columns that a key moves by; rows go upwards."""


class FitMapSide:
    """Shows the map, and reads it at the cell that is pointed at, or chosen with the arrow keys, or at the run as it is."""

    def __init__(self):
        self._part = document.getElementById("map-part")
        self._regions = {name: Region(name) for name in ("map", "map-table")}
        self._estimate: Estimate | None = None
        self._drawn: mapchart.MapChart | None = None
        self._at = (0, 0)
        self._making = None
        self._frame = mapchart.WIDE
        self._stale = self._in_sight = self._pointing = False
        self._begin_later = Later(self._begin, AFTER)
        self._work_later = Later(self._work, BETWEEN)
        self._list_later = Later(self._list, BETWEEN)
        self._place = place = document.getElementById("map")
        for name in ("pointermove", "pointerdown"):
            listen(place, name, self._on_point)
        listen(place, "pointerleave", self._on_leave)
        listen(place, "keydown", self._on_key)
        listen(window, "beforeprint", lambda event: self._make_at_once())
        IntersectionObserver.new(create_proxy(guarded(self._on_sight))).observe(self._part)

    def show(self, estimate: Estimate, *, narrow: bool) -> None:
        """Show the map around this run once nothing else has changed for a moment."""
        self.forget()
        self._place.ariaBusy = "true"
        self._estimate, self._stale, self._frame = estimate, True, mapchart.NARROW if narrow else mapchart.WIDE
        if self._drawn:
            self._read(self._at)  # its link leads to the settings as they are now
        if self._in_sight:
            self._begin_later.call()

    def forget(self) -> None:
        """There is no run to show."""
        self._stale, self._making = False, None
        for each in (self._begin_later, self._work_later, self._list_later):
            each.cancel()

    def _on_sight(self, entries, observer) -> None:
        """The part has come into sight, or left it."""
        self._in_sight = entries[entries.length - 1].isIntersecting
        if self._in_sight and self._stale:
            self._begin()

    def _begin(self) -> None:
        self._stale, self._making = False, map_in_steps(self._estimate.settings)
        self._work()

    def _work(self) -> None:
        """Make some more of the map, then let the browser do what waits."""
        until = performance.now() + SLICE
        while performance.now() < until:
            if self._step():
                return
        self._work_later.call()

    def _step(self) -> bool:
        """Make a little of the map; whether it is done, or cannot be."""
        try:
            next(self._making)
        except StopIteration as done:
            self._show(done.value)
        except NotExpressible:
            self._part.hidden = True
        else:
            return False
        self._making = None
        return True

    def _make_at_once(self) -> None:
        """Make all that is left to make: on paper nothing comes later."""
        if self._stale:
            self._begin()
        while self._making and not self._step():
            continue

    def _show(self, made) -> None:
        self._part.hidden = False
        self._drawn = mapchart.layout(made, frame=self._frame)
        self._read(made.current)
        self._place.ariaBusy = "false"
        self._list_later.call()

    def _list(self) -> None:
        self._regions["map-table"].paint(panels.fit_map_table(self._drawn))

    def _read(self, at: tuple[int, int], *, live: bool = False) -> None:
        self._at = at
        self._regions["map"].paint(panels.fit_map(self._drawn, self._estimate.settings, at, live=live))

    def _on_point(self, event) -> None:
        if event.target.id == LINK and self._drawn:
            box, frame = event.target.getBoundingClientRect(), self._drawn.frame
            scale = frame.width / box.width
            at = self._drawn.cell_at((event.clientX - box.left) * scale, (event.clientY - box.top) * scale)
            self._pointing = True
            if at != self._at:
                self._read(at)

    def _on_leave(self, event) -> None:
        """Back to the run as it is when the mouse leaves."""
        if self._pointing and event.pointerType == "mouse":
            self._pointing = False
            self._read(self._drawn.made.current)

    def _on_key(self, event) -> None:
        move = MOVES.get(event.key)
        if move and self._drawn and event.target.id == LINK:
            event.preventDefault()
            self._read(self._drawn.moved(self._at, *move), live=True)
