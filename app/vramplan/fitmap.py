"""What fits over micro-batch and sequence length: a map of single runs, each counted by itself, everything else held."""

from collections.abc import Generator
from dataclasses import dataclass

from vramplan.accountings import at_batches_in_steps, usable_bytes
from vramplan.fields import BY_NAME
from vramplan.fit import Limit, bisection
from vramplan.in_steps import at_once
from vramplan.ledger import LIKELY, YES
from vramplan.settings import Settings

LARGEST_BATCH = 64
"""Micro-batch that the map goes up to, unless the run has a larger one."""

OCTAVES, SHORTEST = 9, 64
"""Doublings of the sequence length that the map spans at the most, and the length it never starts below."""


@dataclass(frozen=True)
class Cell:
    """One run of the map: its batch, the estimated peak of a GPU, what that leaves, and whether it fits."""

    micro_batch: int
    sequence_length: int
    peak_bytes: int
    headroom_bytes: int
    verdict: str

    @property
    def fits(self) -> bool:
        """Whether the verdict is yes or likely."""
        return self.verdict in (YES, LIKELY)


@dataclass(frozen=True)
class FitMap:
    """The map of one run: a row of cells for every micro-batch, one for every length in it, and the run's own among them.

    usable_bytes: what a peak is held against. longest: the longest sequence that fits with every micro-batch that is a power of two,
    with its cell, None where not even one token does.
    """

    settings: Settings
    usable_bytes: int
    micro_batches: tuple[int, ...]
    lengths: tuple[int, ...]
    cells: tuple[tuple[Cell, ...], ...]
    longest: tuple[tuple[int, Limit, Cell | None], ...]

    @property
    def current(self) -> tuple[int, int]:
        """The row and the column of the run as it is."""
        return self.micro_batches.index(self.settings.micro_batch), self.lengths.index(self.settings.sequence_length)


def fit_map(settings: Settings) -> FitMap:
    """The map, made at once. Raises NotExpressible."""
    return at_once(map_in_steps(settings))


def map_in_steps(settings: Settings) -> Generator[None, None, FitMap]:
    """The same in small steps, after each of which something else may happen. Raises NotExpressible."""
    at, usable = at_batches_in_steps(settings), usable_bytes(settings)
    micro_batches, lengths = _micro_batches(settings), _lengths(settings)

    def cell(micro_batch: int, length: int) -> Generator[None, None, Cell]:
        for found in at(micro_batch, length):
            yield
        peak, verdict = found
        return Cell(micro_batch, length, peak, usable - peak, verdict)

    def longest_at(micro_batch: int) -> Generator[None, None, Limit]:
        asking = bisection(settings.max_sequence_length)
        length = next(asking)
        while True:
            tried = yield from cell(micro_batch, length)
            try:
                length = asking.send(tried.fits)
            except StopIteration as done:
                return done.value

    rows = []
    for micro_batch in micro_batches:
        row = []
        for length in lengths:
            row.append((yield from cell(micro_batch, length)))
        rows.append(tuple(row))
    longest = []
    for micro_batch in (each for each in micro_batches if not each & (each - 1)):
        limit = yield from longest_at(micro_batch)
        longest.append((micro_batch, limit, (yield from cell(micro_batch, limit.value)) if limit.value else None))
    return FitMap(settings, usable, micro_batches, lengths, tuple(rows), tuple(longest))


def _micro_batches(settings: Settings) -> tuple[int, ...]:
    """Powers of two and what lies half-way between them, and the run's own."""
    top = min(max(LARGEST_BATCH, _power_from(settings.micro_batch)), BY_NAME["micro_batch"].kind.maximum)
    return tuple(sorted({*_halves(1, top), settings.micro_batch}))


def _lengths(settings: Settings) -> tuple[int, ...]:
    """The same of lengths up to the model's cap; from further down where the run is short."""
    cap = settings.max_sequence_length
    lowest = min(max(_power_from(cap) >> OCTAVES, SHORTEST), _power_from(settings.sequence_length))
    return tuple(sorted({*_halves(min(lowest, cap), cap), settings.sequence_length, cap}))


def _halves(low: int, high: int) -> list[int]:
    """Powers of two from a number on, and one and a half times each, up to another number."""
    found, power = [], low
    while power <= high:
        found += [each for each in (power, power + power // 2) if each <= high]
        power *= 2
    return found


def _power_from(number: int) -> int:
    """The smallest power of two that is not below a number."""
    return 1 << (number - 1).bit_length()
