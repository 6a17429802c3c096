"""The map of what fits, in the page: made in short slices while somebody looks, read where the pointer or the keyboard is."""

from collections.abc import Iterator

from js import IntersectionObserver, document, performance
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

SLICE, BETWEEN = 3, 0
"""Milliseconds after which no other step is begun, and that are left free before the next for whatever else waits."""

SLICES = "map-slice"
"""What the browser's timeline calls each time that is worked, of the last map that was made."""

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
        self._place = place = document.getElementById("map")
        for name in ("pointermove", "pointerdown"):
            listen(place, name, self._on_point)
        listen(place, "pointerleave", self._on_leave)
        listen(place, "keydown", self._on_key)
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
        self._begin_later.cancel()
        self._work_later.cancel()

    def _on_sight(self, entries, observer) -> None:
        """The part has come into sight, or left it."""
        self._in_sight = entries[entries.length - 1].isIntersecting
        if self._in_sight and self._stale:
            self._begin()

    def _begin(self) -> None:
        self._begin_later.cancel()  # a map that has left and come back into sight meanwhile is made once
        self._stale, self._making = False, self._steps()
        performance.clearMeasures(SLICES)
        self._work()

    def _work(self) -> None:
        """Make some more of the map, then let the browser do what waits."""
        begun = performance.now()
        while self._step():
            if performance.now() >= begun + SLICE:
                self._work_later.call()
                break
        performance.measure(SLICES, start=begun)

    def _step(self) -> bool:
        """Make a little of the map; whether anything may be left to make."""
        try:
            next(self._making)
        except StopIteration:
            self._making = None
        except NotExpressible:
            self._making, self._part.hidden = None, True
        return self._making is not None

    def _steps(self) -> Iterator[None]:
        """The map, worked out and laid out, then its drawing, then its table, each put in at once."""
        made = yield from map_in_steps(self._estimate.settings)
        drawn = mapchart.layout(made, frame=self._frame)
        yield
        self._part.hidden, self._drawn = False, drawn
        self._read(made.current)
        self._place.ariaBusy = "false"
        yield
        table = panels.fit_map_table(drawn)
        yield
        self._regions["map-table"].paint(table, made.settings)

    def _read(self, at: tuple[int, int], *, live: bool = False) -> None:
        self._at = at
        self._regions["map"].paint(panels.fit_map(self._drawn, self._estimate.settings, at, live=live), self._estimate.settings)

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
