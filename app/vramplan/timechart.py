"""Where everything in the drawing of a timeline goes, in the user units of its drawing. No words, no colours."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from vramplan.chart import DIGIT_WIDTH, LABEL_GAP, Frame, Tick, memory_ticks
from vramplan.timeline import LOSS, Stretch, Timeline
from vramplan.units import GIB, count_text

WIDE, NARROW = Frame(640, 330, top=22, bottom=54, right=12), Frame(330, 290, top=22, bottom=54, right=12)
"""Drawings for a column of results and for a phone."""

LARGE = Frame(1_200, 640, top=30, bottom=62, right=24)
"""A drawing for a file."""

LONE_SHARE = 36
"""Parts of one frame, which are short in time, get this part of the frames of a micro-batch as their width."""

LOSS_WIDTH = 2
"""Frames of the loss, which are few and often the peak, are so many times as wide as those of a layer."""

Path = tuple[tuple[float, float], ...]
"""Corners of a line, in order."""


@dataclass(frozen=True)
class Band:
    """One component over time: the corners of its area, along its upper edge and back along its lower one."""

    name: str
    corners: Path


@dataclass(frozen=True)
class Span:
    """A stretch of the horizontal axis."""

    name: str
    left: float
    right: float

    @property
    def middle(self) -> float:
        """Half-way along it."""
        return round((self.left + self.right) / 2, 1)


@dataclass(frozen=True)
class TimeChart:
    """A timeline, laid out. edges: where each frame starts, and where the last one ends. over: the total of a second run."""

    frame: Frame
    edges: tuple[float, ...]
    tops: tuple[float, ...]
    bands: tuple[Band, ...]
    spans: tuple[Span, ...]
    y_ticks: tuple[Tick, ...]
    usable_y: float
    budget_y: float
    peak_index: int
    over: tuple[Path, ...] = ()

    def middle(self, index: int) -> float:
        """Horizontal middle of a frame."""
        return round((self.edges[index] + self.edges[index + 1]) / 2, 1)

    def frame_at(self, *, at: float, left: float, width: float) -> int:
        """The frame at the place `at`, where the drawing is shown from `left` on, `width` wide, in pixels."""
        x = self.frame.width * (at - left) / width
        return max(0, min(bisect_right(self.edges, x) - 1, len(self.tops) - 1))


def layout(
    shown: Timeline, amounts: Sequence[dict[str, int]], order: Sequence[str], *, over: Timeline | None = None, frame: Frame = WIDE
) -> TimeChart:
    """Lay out a timeline. amounts: bytes by component of each frame; order: the components from the bottom up."""
    estimate = shown.estimate
    highest = max(shown.peak.bytes, estimate.budget_bytes, over.peak.bytes if over else 0)
    ticks = memory_ticks(highest)
    top = ticks[-1] * GIB
    frame = replace(frame, left=max(frame.left, LABEL_GAP + DIGIT_WIDTH * len(count_text(ticks[-1]))))
    edges = edges_of(shown, frame.left, frame.plot_right)

    def y_of(amount: int) -> float:
        return round(frame.floor - (frame.floor - frame.top) * amount / top, 1)

    heights = [0] * len(amounts)
    bands = []
    for name in order:
        lower = heights
        heights = [before + each.get(name, 0) for before, each in zip(lower, amounts, strict=True)]
        if heights != lower:
            bands.append(Band(name, (*_stairs(edges, [y_of(each) for each in heights]), *reversed(_stairs(edges, [y_of(each) for each in lower])))))
    return TimeChart(
        frame=frame,
        edges=edges,
        tops=tuple(y_of(each.bytes) for each in shown.frames),
        bands=tuple(bands),
        spans=tuple(Span(part.name, edges[part.start], edges[part.end]) for part in shown.parts),
        y_ticks=tuple(Tick(y_of(gib * GIB), gib) for gib in ticks),
        usable_y=y_of(max(0, estimate.usable_bytes)),
        budget_y=y_of(estimate.budget_bytes),
        peak_index=shown.peak_index,
        over=_laid_over(shown, over, edges, y_of) if over else (),
    )


def edges_of(shown: Timeline, left: float, right: float) -> tuple[float, ...]:
    """Where frames start, and the last one ends: all equally wide, but for the loss, and for parts of only one frame."""
    lone = max(1, max(part.end - part.start for part in shown.parts) / LONE_SHARE)
    widths = [LOSS_WIDTH if frame.moment.startswith(LOSS) else 1 for frame in shown.frames]
    for part in shown.parts:
        if part.end - part.start == 1:
            widths[part.start] = lone
    unit, x, edges = (right - left) / sum(widths), float(left), [float(left)]
    for width in widths:
        x += width * unit
        edges.append(round(x, 2))
    return tuple(edges)


def _stairs(edges: Sequence[float], heights: Sequence[float]) -> Path:
    """A line that keeps its height for as long as a frame lasts."""
    corners = [(edges[0], heights[0])]
    for index in range(1, len(heights)):
        if heights[index] != heights[index - 1]:
            corners += [(edges[index], heights[index - 1]), (edges[index], heights[index])]
    return (*corners, (edges[len(heights)], heights[-1]))


def _laid_over(shown: Timeline, over: Timeline, edges: Sequence[float], y_of) -> tuple[Path, ...]:
    """The total of a second run, each of its phases as wide as the same one of the first; those it alone has are left out."""
    here = {phase.name: phase for phase in shown.phases}
    lines: list[list[tuple[float, float]]] = [[]]
    for phase in over.phases:
        place = here.get(phase.name)
        if place is None:
            continue
        points = _stairs(
            _shared(phase, edges[place.start], edges[place.end]), [y_of(frame.bytes) for frame in over.frames[phase.start : phase.end]]
        )
        if lines[-1] and lines[-1][-1][0] != points[0][0]:
            lines.append([])
        lines[-1].extend(points)
    return tuple(tuple(line) for line in lines if line)


def _shared(phase: Stretch, left: float, right: float) -> list[float]:
    """The edges of a phase's frames between two places."""
    count = phase.end - phase.start
    return [round(left + (right - left) * index / count, 2) for index in range(count + 1)]
