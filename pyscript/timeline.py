"""The timeline of the page: which frame is read, which run is laid over it, and the drawing as a file."""

from base64 import b64decode

from js import Image, document, encodeURIComponent

from vramplan.ledger import Estimate
from vramplan.settings import Settings
from pyscript import panels
from pyscript.dom import Region
from pyscript.events import Later, WhenSeen, listen

AFTER = 120
"""Milliseconds without a change before a timeline in sight is worked out: the answer and the panels come first."""

LIST_AFTER = 40
"""Milliseconds a pointer rests before what is alive is listed."""

FINER = 2
"""Pixels of a saved picture per unit of its drawing."""

REGIONS = ("timeline", "lay-over", "alive", "timeline-remarks")
"""What is painted, by id."""


class TimelineSide:
    """Shows the run over time, and reads it at the frame that is pointed at, picked, or the peak."""

    def __init__(self):
        self._regions = {name: Region(name) for name in REGIONS}
        self._estimate: Estimate | None = None
        self._narrow = False
        self._films: panels.Films | None = None
        self._picked: tuple[str, str] | None = None
        self._at = 0
        self._pointing = False
        self._kept: Settings | None = None
        self._over = ""
        self._seen = WhenSeen("moments-part", self._work_out, AFTER)
        self._list_later = Later(self._list_alive, LIST_AFTER)
        place = document.getElementById("timeline")
        listen(place, "input", self._on_slider)
        for name in ("pointermove", "pointerdown"):
            listen(place, name, self._on_point)
        listen(place, "pointerleave", self._on_leave)

    def show(self, estimate: Estimate, *, narrow: bool) -> None:
        """Show the timeline of this estimate once nothing else has changed for a moment."""
        self._estimate, self._narrow = estimate, narrow
        self._seen.call()

    def forget(self) -> None:
        """There is no run to show."""
        self._seen.cancel()
        self._list_later.cancel()

    def lay_over(self, name: str) -> None:
        """Lay a run over this one, or take it away."""
        self._over = "" if name == self._over else name
        self._seen.at_once()

    def keep(self) -> None:
        """Keep the run as it is, to lay it over those that come."""
        self._kept, self._over = self._estimate.settings, panels.KEPT
        self._seen.at_once()

    def start_again(self) -> None:
        """Nothing is picked, kept or laid over."""
        self._picked, self._kept, self._over = None, None, ""
        if self._estimate:
            self._seen.call()

    def svg(self) -> str:
        """The drawing as an SVG file."""
        return panels.timeline_file(self.films)

    async def png(self) -> bytes:
        """The drawing as a PNG file, drawn by the browser; nothing where it has no room for one."""
        picture = Image.new()
        picture.src = f"data:image/svg+xml,{encodeURIComponent(self.svg())}"
        await picture.decode()
        canvas = document.createElement("canvas")
        canvas.width, canvas.height = FINER * picture.naturalWidth, FINER * picture.naturalHeight
        canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height)
        return b64decode(canvas.toDataURL("image/png").partition(",")[2])

    @property
    def films(self) -> "panels.Films":
        """The timeline of the run, and the one laid over it."""
        self._seen.up_to_date()
        return self._films

    def _work_out(self) -> None:
        self._films = panels.films(self._estimate, kept=self._kept, over=self._over, narrow=self._narrow)
        self._regions["lay-over"].paint(panels.lay_over(self._films))
        self._regions["timeline-remarks"].paint(panels.timeline_remarks(self._films))
        self._read(self._place_of_picked())
        self._list_alive()

    def _place_of_picked(self) -> int:
        """Where what was picked is in this timeline; the peak where nothing was, or it has no such frame."""
        shown = self._films.shown
        places = (place for place, frame in enumerate(shown.frames) if (frame.part, frame.name) == self._picked)
        return next(places, shown.peak_index)

    def _read(self, place: int) -> None:
        self._at = place
        self._regions["timeline"].paint(panels.timeline(self._films, place))
        self._list_later.call()

    def _list_alive(self) -> None:
        self._list_later.cancel()
        self._regions["alive"].paint(panels.alive(self._films, self._at))

    def _pick(self, place: int) -> None:
        frame = self._films.shown.frames[place]
        self._picked = None if place == self._films.shown.peak_index else (frame.part, frame.name)
        self._read(place)

    def _on_slider(self, event) -> None:
        self._pointing = False
        self._pick(int(event.target.value))

    def _on_point(self, event) -> None:
        drawing = event.target.closest("svg")
        if drawing and self._films:
            box = drawing.getBoundingClientRect()
            place = self._films.drawn.chart.frame_at(at=event.clientX, left=box.left, width=box.width)
            if event.type == "pointerdown":
                self._pick(place)
            elif place != self._at:
                self._pointing = True
                self._read(place)

    def _on_leave(self, event) -> None:
        """Back to what was picked when the mouse leaves."""
        if self._pointing and event.pointerType == "mouse":
            self._pointing = False
            self._read(self._place_of_picked())
