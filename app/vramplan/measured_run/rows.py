"""Rows and tensors of the ledger that are as large as the difference between a measured and an estimated peak."""

from dataclasses import dataclass
from fractions import Fraction

from vramplan.ledger import Estimate
from vramplan.units import MIB

TOLERANCE = Fraction(1, 200)
"""Share of a row within which a difference is said to be as large as it."""

SMALLEST = 16 * MIB
"""Bytes of the smallest difference that is looked for: below it chance finds too much."""

WORTH = Fraction(1, 200)
"""Share of the peak below which a difference needs no explanation."""

TIMES = (1, 2)
"""How often a row may be in the difference: missing or too much, or there twice."""

MOST_ROWS = 5
"""Rows that are listed."""


@dataclass(frozen=True)
class Match:
    """A row of the ledger, or tensors in it where `holding` names them, that a difference is `times` as large as, apart from `apart` bytes."""

    moment: str
    term: str
    holding: str
    times: int
    bytes: int
    apart: int


def matching_rows(estimate: Estimate, difference: int) -> tuple[Match, ...]:
    """Rows at any moment that a difference of the peak is once or twice as large as, within TOLERANCE; nearest first."""
    size = abs(difference)
    if size < SMALLEST or size <= WORTH * estimate.peak_bytes:
        return ()
    found: dict[tuple[str, str, int], Match] = {}
    moments = sorted(estimate.moments, key=lambda moment: moment is not estimate.moment)
    for moment in moments:
        amounts = [(term.name, "", term.bytes) for term in moment.terms]
        amounts += [(term, each.name, amount) for term, held in moment.inspect().items() for each in held for amount in {each.bytes, each.bytes // each.count}]
        for term, holding, amount in amounts:
            for times in TIMES:
                apart = abs(times * amount - size)
                if apart <= TOLERANCE * times * amount:
                    found.setdefault((term, holding, times * amount), Match(moment.name, term, holding, times, amount, apart))
    return tuple(sorted(found.values(), key=lambda match: (match.apart, match.holding != ""))[:MOST_ROWS])
