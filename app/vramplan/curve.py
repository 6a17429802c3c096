"""Peak memory against sequence length, everything else held."""

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
    fits: bool


@dataclass(frozen=True)
class Curve:
    """Points in order of sequence length."""

    settings: Settings
    points: tuple[Point, ...]


def point(settings: Settings, sequence_length: int) -> Point:
    """The peak at one sequence length."""
    at = estimate(settings.varied(sequence_length=sequence_length))
    return Point(sequence_length, at.peak_bytes, at.fits)


def curve(settings: Settings) -> Curve:
    """The peak at every power of two from 128 to the model's cap, and at the current sequence length."""
    lengths = {settings.sequence_length, settings.max_sequence_length}
    length = FIRST_POINT
    while length <= settings.max_sequence_length:
        lengths.add(length)
        length *= 2
    return Curve(settings, tuple(point(settings, length) for length in sorted(lengths)))
