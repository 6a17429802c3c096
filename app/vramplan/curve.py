"""Peak memory against sequence length, everything else held."""

from collections.abc import Iterable
from dataclasses import dataclass

from vramplan.accountings import at_batches, usable_bytes
from vramplan.fields import BY_NAME
from vramplan.ledger import LIKELY, YES
from vramplan.settings import Settings

FIRST_POINT = 128
"""Sequence length the table of the curve starts at, in tokens: below it the curve is flat for any real run."""


@dataclass(frozen=True)
class Point:
    """One sequence length, its estimated peak per GPU, what that leaves, and whether it fits."""

    sequence_length: int
    peak_bytes: int
    headroom_bytes: int
    verdict: str

    @property
    def fits(self) -> bool:
        """Whether the verdict is yes or likely."""
        return self.verdict in (YES, LIKELY)


@dataclass(frozen=True)
class Curve:
    """Points in order of sequence length."""

    settings: Settings
    points: tuple[Point, ...]


def points(settings: Settings, lengths: Iterable[int]) -> tuple[Point, ...]:
    """The peak at these sequence lengths. Raises NotExpressible."""
    at, usable = at_batches(settings), usable_bytes(settings)
    counted = ((length, *at(settings.micro_batch, length)) for length in lengths)
    return tuple(Point(length, peak, usable - peak, verdict) for length, peak, verdict in counted)


def curve(settings: Settings, *, also: Iterable[int] = ()) -> Curve:
    """The peak at every power of two from 128 to the model's cap, at the current sequence length, and at those in `also`."""
    lengths = {settings.sequence_length, settings.max_sequence_length, *also}
    length = FIRST_POINT
    while length <= settings.max_sequence_length:
        lengths.add(length)
        length *= 2
    return Curve(settings, points(settings, sorted(lengths)))


MOST_BATCHES = 32
"""Micro-batches that a curve has points for, at the most."""


@dataclass(frozen=True)
class BatchPoint:
    """One micro-batch, its estimated peak per GPU, what that leaves, and whether it fits."""

    micro_batch: int
    peak_bytes: int
    headroom_bytes: int
    fits: bool


def batch_curve(settings: Settings, *, largest_fitting: int | None) -> tuple[BatchPoint, ...]:
    """The peak from one sequence at once to well past both the current micro-batch and the largest that fits."""
    cap = BY_NAME["micro_batch"].kind.maximum
    wanted, end = max(2 * settings.micro_batch, (largest_fitting or 1) * 5 // 4, FEWEST_BATCHES), FEWEST_BATCHES
    while end < wanted:
        end *= 2
    end = min(end, cap)
    batches = {max(1, end * part // MOST_BATCHES) for part in range(MOST_BATCHES + 1)} | {settings.micro_batch} | ({largest_fitting} if largest_fitting else set())
    at, usable = at_batches(settings), usable_bytes(settings)
    counted = ((batch, *at(batch, settings.sequence_length)) for batch in sorted(batches))
    return tuple(BatchPoint(batch, peak, usable - peak, verdict in (YES, LIKELY)) for batch, peak, verdict in counted)


FEWEST_BATCHES = 4
"""Sequences at once that a curve reaches at least."""
