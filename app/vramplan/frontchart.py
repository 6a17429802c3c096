"""Where the front of a run goes in its drawing: peak upwards, every doubling of the sequence equally wide, a line for every effective batch."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import log2

from vramplan.chart import DIGIT_WIDTH, LABEL_GAP, WIDE, Axes, Frame, Scales
from vramplan.front import Point
from vramplan.ledger import Estimate


@dataclass(frozen=True)
class Mark:
    """A run of the front, and its place."""

    x: float
    y: float
    point: Point


@dataclass(frozen=True)
class Line:
    """The runs of one effective batch, by length."""

    effective_batch: int
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class FrontChart(Axes):
    """The front, laid out: a line for every effective batch, the smallest first."""

    lines: tuple[Line, ...]


def layout(current: Estimate, points: Iterable[Point], *, frame: Frame = WIDE) -> FrontChart:
    """Lay out the front of a run; it has a point at least."""
    points = tuple(points)
    lengths = sorted({point.settings.sequence_length for point in points})
    first, doublings = log2(lengths[0]), log2(lengths[-1] / lengths[0])
    scales = Scales(current, frame, most_bytes=max(point.peak_bytes for point in points), whole=doublings or 1, along=lambda length: log2(length) - first)
    lines: dict[int, list[Mark]] = {}
    for point in points:
        lines.setdefault(point.settings.effective_batch, []).append(Mark(scales.x(point.settings.sequence_length), scales.y(point.peak_bytes), point))
    written = lengths if _room(scales, lengths) else lengths[:: -(-len(lengths) // 4)]
    return FrontChart(**scales.axes(written), lines=tuple(Line(batch, tuple(marks)) for batch, marks in lines.items()))


def _room(scales: Scales, lengths: list[int]) -> bool:
    """Whether every length can be written below its place."""
    places = [scales.x(length) for length in lengths]
    widest = DIGIT_WIDTH * len(f"{lengths[-1]:,}") + LABEL_GAP
    return all(after - before >= widest for before, after in zip(places, places[1:], strict=False))
