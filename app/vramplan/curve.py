"""Peak memory against sequence length, everything else held."""

from collections.abc import Iterable
from dataclasses import dataclass

from vramplan.accountings import estimate
from vramplan.settings import Settings

FIRST_POINT = 128
"""Sequence length the table of the curve starts at, in tokens: below it the curve is flat for any real run."""


@dataclass(frozen=True)
class Point:
    """One sequence length and its estimated peak per GPU."""

    sequence_length: int
    peak_bytes: int
    headroom_bytes: int

    @property
    def fits(self) -> bool:
        """Whether the peak stays within the budget; equality fits."""
        return self.headroom_bytes >= 0


@dataclass(frozen=True)
class Curve:
    """Points in order of sequence length."""

    settings: Settings
    points: tuple[Point, ...]


def point(settings: Settings, sequence_length: int) -> Point:
    """The peak at one sequence length."""
    at = estimate(settings.varied(sequence_length=sequence_length))
    return Point(sequence_length, at.peak_bytes, at.headroom_bytes)


def curve(settings: Settings, *, also: Iterable[int] = ()) -> Curve:
    """The peak at every power of two from 128 to the model's cap, at the current sequence length, and at those in `also`."""
    lengths = {settings.sequence_length, settings.max_sequence_length, *also}
    length = FIRST_POINT
    while length <= settings.max_sequence_length:
        lengths.add(length)
        length *= 2
    return Curve(settings, tuple(point(settings, length) for length in sorted(lengths)))
