"""The front of a run: what peak buys which effective batch and which sequence length, with the changes that make room for it."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass

from vramplan.accountings import at_batches, usable_bytes
from vramplan.errors import NotExpressible
from vramplan.fields import BY_NAME
from vramplan.in_steps import at_once
from vramplan.ledger import LIKELY, YES
from vramplan.levers import BATCH, LENGTH, Step, applied
from vramplan.make_fit import Offer, Wanted
from vramplan.settings import Settings

MOST_SETS = 6
"""Sets of changes that are looked at, the cheapest first; the run as it is besides."""

LARGEST_BATCH, SHORTEST = 64, 512
"""Micro-batch up to which the front goes, unless the run has a larger one, and length it begins at, unless the run has a shorter one."""


@dataclass(frozen=True)
class Point:
    """A run that fits and that no other beats: none that is looked at has a peak as small, an effective batch as large and a sequence as
    long, and is better in one of them. steps: the changes of this run besides its batch."""

    steps: tuple[Step, ...]
    settings: Settings
    peak_bytes: int

    @property
    def wants(self) -> tuple[int, int, int]:
        """Effective batch and length, the more the better, and the peak with its sign turned."""
        return self.settings.effective_batch, self.settings.sequence_length, -self.peak_bytes


def front(settings: Settings, offers: Iterable[Offer], asked: Wanted = Wanted()) -> tuple[Point, ...]:
    """Every run on the front, by effective batch, then by length: powers of two of both, as the run is and with each set of changes.

    Gradient accumulation is held, so that a larger effective batch takes no more time. Raises nothing: a set that cannot be counted is
    left out.
    """
    return at_once(front_in_steps(settings, offers, asked))


def front_in_steps(settings: Settings, offers: Iterable[Offer], asked: Wanted) -> Generator[None, None, tuple[Point, ...]]:
    """The same in small steps, after each of which something else may happen."""
    points = []
    for steps in _sets(settings, offers):
        points += yield from _points(settings, steps, asked)
    best: dict[tuple[int, int], Point] = {}
    for point in points:
        place = point.wants[:-1]
        if place not in best or point.peak_bytes < best[place].peak_bytes:
            best[place] = point
    kept = [point for point in best.values() if not any(_beats(other, point) for other in best.values())]
    return tuple(sorted(kept, key=lambda point: point.wants[:-1]))


def _beats(one: Point, other: Point) -> bool:
    """Whether a run is at least as good in all three, and better in one."""
    return one.wants != other.wants and all(a >= b for a, b in zip(one.wants, other.wants, strict=True))


def _sets(settings: Settings, offers: Iterable[Offer]) -> list[tuple[Step, ...]]:
    """The run as it is, and the cheapest sets without their changes of the batch, each once."""
    found: list[tuple[Step, ...]] = [()]
    for offer in offers:
        steps = tuple(step for step in offer.steps if not {BATCH, LENGTH} & step.change.keys())
        if steps not in found and len(found) <= MOST_SETS and applied(settings, steps):
            found.append(steps)
    return found


def _points(settings: Settings, steps: tuple[Step, ...], asked: Wanted) -> Generator[None, None, list[Point]]:
    """The batches that fit with one set of changes."""
    changed = applied(settings, steps)
    try:
        at = at_batches(changed)
    except NotExpressible:
        return []
    lengths = _powers(min(SHORTEST, settings.sequence_length), settings.max_sequence_length) if LENGTH not in asked.keep else [settings.sequence_length]
    most = min(max(LARGEST_BATCH, settings.micro_batch), BY_NAME[BATCH].kind.maximum)
    batches = _powers(1, most) if BATCH not in asked.keep else [settings.micro_batch]
    found = []
    for batch in batches:
        for length in lengths:
            yield
            peak, verdict = at(batch, length)
            point = Point(steps, changed.varied(micro_batch=batch, sequence_length=length), peak)
            if verdict not in (YES, LIKELY) or peak > usable_bytes(changed):
                break  # a peak never decreases in the length
            if all(getattr(point.settings, name) >= value for name, value in asked.at_least.items()):
                found.append(point)
    return found


def _powers(low: int, high: int) -> list[int]:
    """Powers of two from one number up to another."""
    return [1 << power for power in range((low - 1).bit_length(), high.bit_length()) if low <= 1 << power <= high]
