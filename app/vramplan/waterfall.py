"""Where the bars between two runs lie: the first run, every difference from where the one before ends, the second run. No words, no colours."""

from collections.abc import Sequence
from dataclasses import dataclass

from vramplan.ledger import Estimate
from vramplan.pins import Step

LENGTH = 1_000
"""Length of the longest bar, in the drawing's own units."""

THINNEST = 3
"""Length of the bar of the smallest difference: as much as can be seen."""


@dataclass(frozen=True)
class Bar:
    """Where a bar starts and how long it is."""

    start: float
    length: float


@dataclass(frozen=True)
class Waterfall:
    """Both runs and the bars between them, of components that differ, and where the memory that the second run can use ends."""

    first: Bar
    steps: tuple[tuple[Step, Bar], ...]
    second: Bar
    usable_at: float


def layout(first: Estimate, second: Estimate, steps: Sequence[Step]) -> Waterfall:
    """Lay out the bars from one run to another; all of them on one scale that starts at nothing."""
    differing = [step for step in steps if step.difference]
    edges = [first.peak_bytes]
    for step in differing:
        edges.append(edges[-1] + step.difference)
    longest = max(*edges, second.peak_bytes, second.usable_bytes)

    def bar(low: int, high: int) -> Bar:
        start = round(LENGTH * low / longest, 1)
        length = max(round(LENGTH * high / longest - start, 1), THINNEST)
        return Bar(min(start, LENGTH - length), length)

    between = tuple((step, bar(min(pair), max(pair))) for step, *pair in zip(differing, edges, edges[1:]))
    return Waterfall(bar(0, first.peak_bytes), between, bar(0, second.peak_bytes), round(LENGTH * max(0, second.usable_bytes) / longest, 1))
