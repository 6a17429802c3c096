"""Where everything in the histogram of token lengths goes, in the user units of its drawing. No words, no colours."""

from dataclasses import dataclass, replace
from math import ceil, log2

from vramplan.chart import DIGIT_WIDTH, LABEL_GAP, LABEL_ROOM, Frame, Tick, round_ticks
from vramplan.length_fit import LengthFit
from vramplan.units import count_text

LIMIT, NOW, P99 = "limit", "now", "p99"
"""Lines across the histogram: the longest sequence that fits, the sequence length of the run, the 99th percentile."""

LABELLED = (LIMIT, NOW, P99)
"""Each has a row of its own for its label, the longest on top."""

WIDE, NARROW = Frame(640, 260, top=8 + LABEL_ROOM * len(LABELLED)), Frame(330, 230, top=8 + LABEL_ROOM * len(LABELLED))
"""Drawings for a column of results and for a phone."""

MOST_BARS = 40
"""Bars that a drawing has room for."""

PER_DOUBLING = (8, 4, 2, 1)
"""Bars between a length and twice that length, the most of them first."""


@dataclass(frozen=True)
class Bar:
    """Samples from `low` to `high` tokens, both included, and where their bar stands."""

    low: int
    high: int
    samples: int
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Line:
    """A line across the plot: which, its tokens, its place, and the base line of its label."""

    name: str
    tokens: int
    x: float
    label_y: float


@dataclass(frozen=True)
class LengthChart:
    """The histogram, laid out: lengths to the right, every doubling equally wide; samples upwards."""

    frame: Frame
    bars: tuple[Bar, ...]
    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]


def layout(found: LengthFit, *, frame: Frame = WIDE) -> LengthChart:
    """Lay out the histogram, far enough to the right for every line."""
    lengths = found.lengths
    values = {P99: lengths.percentile(99), NOW: found.estimate.settings.sequence_length}
    if found.limit.value and not found.limit.at_cap:
        values[LIMIT] = found.limit.value
    shortest = next(filter(None, lengths.values))
    first = min(shortest, *filter(None, values.values())).bit_length() - 1
    last = max(first + 1, ceil(log2(max(lengths.longest, *values.values()))))
    counts = _counts(found, first, last)
    ticks = round_ticks(max(samples for _, _, samples in counts))
    frame = replace(frame, left=max(frame.left, LABEL_GAP + DIGIT_WIDTH * len(count_text(ticks[-1]))))

    def x(tokens: float) -> float:
        part = (log2(max(tokens, 1)) - first) / (last - first)
        return round(frame.left + (frame.plot_right - frame.left) * min(max(part, 0), 1), 1)

    def y(samples: int) -> float:
        return round(frame.floor - (frame.floor - frame.top) * samples / ticks[-1], 1)

    bars = tuple(
        Bar(low, high, samples, x(low), y(samples), round(x(high + 1) - x(low), 1), round(frame.floor - y(samples), 1)) for low, high, samples in counts
    )
    lines = tuple(
        Line(name, values[name], x(values[name]), LABEL_ROOM * (row + 1))
        for row, name in enumerate(sorted(filter(values.get, values), key=values.get, reverse=True))
    )
    room = DIGIT_WIDTH * len(count_text(2**last)) + LABEL_GAP
    stride = ceil(room * (last - first) / (frame.plot_right - frame.left))
    return LengthChart(
        frame, bars, lines,
        tuple(Tick(x(2**power), 2**power) for power in range(first, last + 1, stride)),
        tuple(Tick(y(samples), samples) for samples in ticks),
    )


def _counts(found: LengthFit, first: int, last: int) -> list[tuple[int, int, int]]:
    """The lowest and the highest length of every bar from 2^first to 2^last tokens, and its samples; empty samples are in the first."""
    lengths = found.lengths
    each = next((number for number in PER_DOUBLING if number * (last - first) <= MOST_BARS), PER_DOUBLING[-1])
    edges = sorted({ceil(2 ** (first + step / each)) for step in range((last - first) * each)})
    before, counts = 0, []
    for low, following in zip(edges, (*edges[1:], 2**last + 1)):
        upto = lengths.up_to(following - 1)
        counts.append((low, following - 1, upto - before))
        before = upto
    if lengths.values[0] == 0:
        counts[0] = (0, *counts[0][1:])
    return counts
