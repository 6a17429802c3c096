"""Where everything in the sequence chart goes, in the user units of its drawing. No words, no colours."""

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import log2

from vramplan.curve import BatchPoint, Point, points as points_at
from vramplan.gpus import GpuCurve, GpuPoint
from vramplan.ledger import Estimate
from vramplan.units import GIB, count_text


@dataclass(frozen=True)
class Frame:
    """The size of a drawing and of the margins for its axis labels, in user units."""

    width: int
    height: int
    left: int = 44
    right: int = 28
    top: int = 8
    bottom: int = 26

    @property
    def plot_right(self) -> int:
        """Right edge of the plot."""
        return self.width - self.right

    @property
    def floor(self) -> int:
        """Lower edge of the plot."""
        return self.height - self.bottom


WIDE, NARROW = Frame(640, 280), Frame(330, 240)
"""Drawings for a column of results and for a phone, where the labels need relatively more room."""

STACK_WIDTH = 1_000
"""Length of the stacked bar, in its own user units."""

DIGIT_WIDTH, LABEL_GAP = 8, 14
"""Width of one character of a label, and what stays free beside a label, in user units."""

LABEL_ROOM = 14
"""Height a label needs, in user units."""

SAMPLES = 64
"""Evenly spaced lengths the curve is drawn through; a divisor of every power of two that can end the axis."""

SHORTEST_AXIS = 1_024
"""Tokens the horizontal axis spans at least."""

MOST_Y_TICKS = 5
"""Ticks on the memory axis at the most."""

TICK_STEPS = (1, 2, 5)
"""Leading digits of a round tick step."""

DECIMAL_BASE = 10


@dataclass(frozen=True)
class Mark:
    """One place in the drawing and the point of the curve it stands for."""

    x: float
    y: float
    point: Point


@dataclass(frozen=True)
class Tick:
    """A labelled place on an axis: its coordinate, and the tokens or GiB it stands for."""

    at: float
    value: int


@dataclass(frozen=True)
class Axes:
    """What every drawing of memory has: its frame, both axes, and where the budget ends."""

    frame: Frame
    budget_y: float
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]

    @property
    def room_above_budget(self) -> bool:
        """Whether a label fits between the budget line and the upper edge of the plot."""
        return self.budget_y - self.frame.top > LABEL_ROOM


class Scales:
    """Where amounts of memory and places along a drawing lie. `along` gives a value's part of `whole`, the end of the axis."""

    def __init__(self, current: Estimate, frame: Frame, *, most_bytes: int, whole: float, along: Callable[[int], float] = float):
        ticks = memory_ticks(max(most_bytes, current.usable_bytes))
        self.frame = replace(frame, left=max(frame.left, LABEL_GAP + DIGIT_WIDTH * len(count_text(ticks[-1]))))
        self._ticks, self._usable, self._whole, self._along = ticks, current.usable_bytes, whole, along

    def x(self, value: int) -> float:
        """The place of a value on the horizontal axis."""
        return round(self.frame.left + (self.frame.plot_right - self.frame.left) * self._along(value) / self._whole, 1)

    def y(self, amount: int) -> float:
        """The place of so many bytes."""
        return round(self.frame.floor - (self.frame.floor - self.frame.top) * amount / (self._ticks[-1] * GIB), 1)

    def axes(self, values: Iterable[int]) -> dict[str, object]:
        """What the drawing has of its axes, with these values written below."""
        return {
            "frame": self.frame,
            "budget_y": self.y(max(0, self._usable)),
            "x_ticks": tuple(Tick(self.x(value), value) for value in values),
            "y_ticks": tuple(Tick(self.y(gib * GIB), gib) for gib in self._ticks),
        }


def quarters(end: int) -> tuple[int, ...]:
    """Five values from nothing to the end of an axis."""
    return 0, end // 4, end // 2, end * 3 // 4, end


@dataclass(frozen=True)
class Chart(Axes):
    """The sequence chart, laid out. `samples` is in order of length and holds the current and the crossing mark."""

    samples: tuple[Mark, ...]
    current: Mark
    crossing: Mark | None

    @property
    def crossing_in_left_half(self) -> bool:
        """Whether there is more room to the right of the crossing."""
        return 2 * self.crossing.x < self.frame.width

    @property
    def crossing_in_upper_half(self) -> bool:
        """Whether there is more room below the crossing."""
        return 2 * self.crossing.y < self.frame.height

    @property
    def last_index(self) -> int:
        """Place of the last sample."""
        return len(self.samples) - 1

    @property
    def current_index(self) -> int:
        """Place of the current mark among the samples."""
        return self.samples.index(self.current)


@dataclass(frozen=True)
class Part:
    """One component in the stacked bar: where it starts and how wide it is."""

    name: str
    start: float
    width: float


@dataclass(frozen=True)
class Stack:
    """The components side by side, and where the budget ends. The bar is as long as the larger of peak and budget."""

    width: int
    parts: tuple[Part, ...]
    budget_at: float


def stack(amounts: dict[str, int], *, budget: int, longest: int = 0) -> Stack:
    """Lay out a stacked bar of component bytes against a budget in bytes; `longest`: bytes the bar spans at least."""
    longest = max(sum(amounts.values()), budget, longest)
    parts = []
    before = 0
    for name, amount in amounts.items():
        start, end = (round(STACK_WIDTH * edge / longest, 2) for edge in (before, before + amount))
        parts.append(Part(name, start, round(end - start, 2)))
        before += amount
    return Stack(STACK_WIDTH, tuple(parts), round(STACK_WIDTH * max(0, budget) / longest, 2))


def layout(current: Estimate, *, longest_fitting: int | None, frame: Frame = WIDE) -> Chart:
    """Lay out peak memory from the shortest sequence to a length well past both the current one and the crossing.

    The crossing is the longest sequence that fits, left out where the axis or the model's cap ends before it.
    """
    settings = current.settings
    cap = settings.max_sequence_length
    span = axis_end(settings.sequence_length, longest_fitting, cap)
    crossing = longest_fitting if longest_fitting is not None and longest_fitting < min(span, cap) else None
    lengths = {max(1, span * step // SAMPLES) for step in range(SAMPLES + 1)} | {settings.sequence_length}
    if crossing:
        lengths.add(crossing)
    points = points_at(settings, sorted(lengths))
    scales = Scales(current, frame, most_bytes=points[-1].peak_bytes, whole=span)
    marks = tuple(Mark(scales.x(each.sequence_length), scales.y(each.peak_bytes), each) for each in points)
    by_length = {mark.point.sequence_length: mark for mark in marks}
    return Chart(
        **scales.axes(quarters(span)),
        samples=marks,
        current=by_length[settings.sequence_length],
        crossing=by_length.get(crossing),
    )


@dataclass(frozen=True)
class GpuMark:
    """One place in the drawing and the number of GPUs it stands for."""

    x: float
    y: float
    point: GpuPoint


@dataclass(frozen=True)
class GpuChart(Axes):
    """Peak per GPU against the number of GPUs, laid out; each doubling takes the same width. fewest: where the run fits from.
    enough: from where more help little. current: the run as it is, None where it divides nothing this way."""

    marks: tuple[GpuMark, ...]
    current: GpuMark | None
    fewest: GpuMark | None
    enough: GpuMark


@dataclass(frozen=True)
class BatchMark:
    """One place in the drawing and the micro-batch it stands for."""

    x: float
    y: float
    point: BatchPoint


@dataclass(frozen=True)
class BatchChart(Axes):
    """Peak per GPU against the micro-batch, laid out. largest: the largest that fits, None where the axis ends before it."""

    marks: tuple[BatchMark, ...]
    current: BatchMark
    largest: BatchMark | None


def layout_batches(current: Estimate, points: tuple[BatchPoint, ...], *, largest_fitting: int | None, frame: Frame = WIDE) -> BatchChart:
    """Lay out the peak per GPU against the micro-batch; the axis starts at none."""
    end = points[-1].micro_batch
    scales = Scales(current, frame, most_bytes=points[-1].peak_bytes, whole=end)
    marks = tuple(BatchMark(scales.x(each.micro_batch), scales.y(each.peak_bytes), each) for each in points)
    by_batch = {mark.point.micro_batch: mark for mark in marks}
    return BatchChart(
        **scales.axes(quarters(end)),
        marks=marks,
        current=by_batch[current.settings.micro_batch],
        largest=by_batch.get(largest_fitting) if largest_fitting != end else None,
    )


GPU_TICKS = (1, 4, 16, 64, 256, 1_024)
"""Numbers of GPUs that are written below the axis."""


def layout_gpus(current: Estimate, drawn: GpuCurve, *, frame: Frame = WIDE) -> GpuChart:
    """Lay out the peak per GPU of one kind of sharding."""
    settings, points = current.settings, drawn.points
    most = max(points[0].peak_bytes, points[1].peak_bytes)
    scales = Scales(current, frame, most_bytes=most, whole=log2(points[-1].gpus), along=log2)
    marks = tuple(GpuMark(scales.x(each.gpus), scales.y(each.peak_bytes), each) for each in points)
    by_gpus = {mark.point.gpus: mark for mark in marks}
    return GpuChart(
        **scales.axes(GPU_TICKS),
        marks=marks,
        current=by_gpus.get(settings.sharded_over) if settings.divides_states and settings.sharding == drawn.sharding else None,
        fewest=by_gpus.get(drawn.fewest),
        enough=by_gpus[drawn.enough],
    )


def axis_end(current: int, longest_fitting: int | None, cap: int) -> int:
    """Tokens at the end of the horizontal axis: a power of two past the current length and the crossing, or the cap.

    A power of two changes seldom, so the curve does not jump while a number is typed.
    """
    wanted = max(2 * current, (longest_fitting or 1) * 5 // 4, SHORTEST_AXIS)
    end = SHORTEST_AXIS
    while end < wanted:
        end *= 2
    return max(min(end, cap), SAMPLES)


def memory_ticks(top_bytes: int) -> list[int]:
    """Round GiB values from 0 to the first one at or above `top_bytes`, few enough to read."""
    return round_ticks(-(-top_bytes // GIB))


def round_ticks(top: int) -> list[int]:
    """Round values from 0 to the first one at or above `top`, few enough to read."""
    magnitude = 1
    while True:
        for step in TICK_STEPS:
            if step * magnitude * MOST_Y_TICKS >= top:
                size = step * magnitude
                return list(range(0, top + size, size)) if top % size else list(range(0, top + 1, size))
        magnitude *= DECIMAL_BASE


def nearest_sample(chart: Chart, *, at: float, left: float, width: float) -> int:
    """Index of the sample closest to the place `at`, where the drawing is shown from `left` on, `width` wide, in pixels."""
    x = chart.frame.width * (at - left) / width
    places = [mark.x for mark in chart.samples]
    right = min(bisect_left(places, x), len(places) - 1)
    left = max(right - 1, 0)
    return left if x - places[left] <= places[right] - x else right
