"""The token lengths of a data set against what fits: percentiles with their peaks, and how batches of them turn out."""

from dataclasses import dataclass
from fractions import Fraction

from vramplan.curve import Point, points
from vramplan.errors import NotExpressible
from vramplan.fit import Limit, longest_sequence
from vramplan.ledger import Estimate
from vramplan.lengths import PERCENTILES, Lengths

CUT, UNCUT, PACKED = "cut", "uncut", "packed"
"""How batches are made: samples cut at the sequence length and padded to the longest of the batch; not cut, and padded the same;
laid one behind the other in rows of the sequence length."""

LONGEST = "max"
"""The name of the longest sample among percentiles."""


@dataclass(frozen=True)
class Mark:
    """A length of the data set: p50, p95, p99 or max, in tokens, the samples that are longer, and the run with that sequence length, None where
    the model ends before it."""

    name: str
    tokens: int
    longer: int
    point: Point | None


@dataclass(frozen=True)
class Batches:
    """One way to make batches: its rows, the share of their tokens that is padding, None where that is not counted, and the chance that a random
    micro-batch does not fit."""

    how: str
    rows: int
    padding: float | None
    too_large: Fraction


@dataclass(frozen=True)
class LengthFit:
    """A data set against one run. limit: the longest sequence that fits at its micro-batch."""

    lengths: Lengths
    estimate: Estimate
    limit: Limit
    marks: tuple[Mark, ...]
    batches: tuple[Batches, ...]

    @property
    def too_long(self) -> int:
        """Samples that are longer than what fits."""
        return self.lengths.over(self.limit.value or 0)


def length_fit(lengths: Lengths, estimate: Estimate) -> LengthFit:
    """Hold a data set against a run. Raises NotExpressible for a model that answers."""
    settings = estimate.settings
    if settings.serves:
        raise NotExpressible("task", "The lengths are of samples that a model is trained on; one that answers has none.")
    limit = longest_sequence(settings)
    named = [(f"p{percent}", lengths.percentile(percent)) for percent in PERCENTILES]
    named.append((LONGEST, lengths.longest))
    counted = {at.sequence_length: at for at in points(settings, {tokens for _, tokens in named if 0 < tokens <= settings.max_sequence_length})}
    marks = tuple(Mark(name, tokens, lengths.over(tokens), counted.get(tokens)) for name, tokens in named)
    return LengthFit(lengths, estimate, limit, marks, _batches(lengths, estimate, limit))


def _batches(lengths: Lengths, estimate: Estimate, limit: Limit) -> tuple[Batches, ...]:
    """Every way to make batches; of pairs, whose two texts a file of lengths does not tell apart, those without padding and packing."""
    settings = estimate.settings
    length, batch = settings.sequence_length, settings.micro_batch
    chance = lengths.too_long_share(limit.value, batch=batch) if limit.value else Fraction(1)
    pairs = settings.trains_on_pairs
    padded = tuple(
        Batches(how, rows.samples, None if pairs else rows.padding_share(batch=batch), too_large)
        for how, rows, too_large in ((CUT, lengths.cut(length), Fraction(0) if estimate.fits else chance), (UNCUT, lengths, chance))
    )
    if pairs:
        return padded
    rows = lengths.packed_rows(length)
    return (*padded, Batches(PACKED, rows, 1 - lengths.tokens / (rows * length), Fraction(not estimate.fits)))
