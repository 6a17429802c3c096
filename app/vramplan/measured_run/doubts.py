"""Which assumption may be wrong: every one is tried, and ranked by how near it comes to what was measured.

Nothing is fitted: an alternative is another setting, counted as always. It is named as likely only by the rule in `likely`.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import combinations

from vramplan.accountings import estimate as estimate_of
from vramplan.accountings import peak_bytes
from vramplan.checks import Value
from vramplan.errors import NotExpressible
from vramplan.fields import BY_NAME, applying
from vramplan.kinds import Choice
from vramplan.measured_run.against import compared
from vramplan.measured_run.record import Record
from vramplan.settings import Settings
from vramplan.units import MIB

DOUBTED = (
    "loss", "layer_kernels", "attention_kernel", "checkpointing", "optimizer", "trainable_precision", "base_precision", "kbit_preparation", "quantization",
    "autocast", "checkpoint_kind", "lora_dropout", "gradient_accumulation_steps", "stack",
)
"""Settings of which people know least for sure what their run really does, the plainest explanation first."""

NUMBERS = {"lora_dropout": (Decimal("0"), Decimal("0.05")), "gradient_accumulation_steps": (1, 2)}
"""Values that are tried of settings that are numbers: only whether there is any, or more than one, matters to the memory."""

MOST_PAIRS = 40
"""Pairs of changes that are tried: those whose two effects add up nearest to what is missing."""

MOST_SINGLE, MOST_PAIRED = 5, 3
"""Explanations by one change, and by two together, that are listed."""

NEAR, OFF = Fraction(1, 100), Fraction(3, 100)
"""Shares of the measured amount: an explanation is near within the first, the present settings are off beyond the second. Nearly all
recorded runs lie far nearer to their estimate; tests/test_own_run.py holds the rule against them."""

OFF_BYTES = 64 * MIB
"""Bytes beyond which they are off as well: in very small runs what no estimate knows weighs more."""

CLEARLY = 4
"""How many times nearer than the next one, and than the present settings, an explanation has to be."""


@dataclass(frozen=True)
class Explanation:
    """Changed settings that all give the same peak, and how far it is from what was measured, in bytes."""

    changes: tuple[dict[str, Value], ...]
    peak_bytes: int
    difference: int

    @property
    def change(self) -> dict[str, Value]:
        """The plainest of the changes."""
        return self.changes[0]


@dataclass(frozen=True)
class Doubts:
    """What was tried: single changes, nearest first, then pairs of them, and the change that is likely, if one is."""

    present: int
    tried: int
    explanations: tuple[Explanation, ...]
    likely: Explanation | None


def doubts(settings: Settings, record: Record) -> Doubts | None:
    """What other settings come to, against what was measured; None where no peak was measured."""
    if not record.kind:
        return None
    measured = getattr(record, record.kind)
    present = _counted(settings, record)
    singles = {tuple(change.items()): found for change in single_changes(settings) if (found := _counted(settings.varied(**change), record)) is not None}
    moving = {change: found for change, found in singles.items() if found != present}
    pairs = {}
    for one, other in _promising_pairs(moving, present[1]) if record.kind == "allocated" else ():
        found = _counted(settings.varied(**dict(one + other)), record)
        if found is not None and abs(found[1]) < min(abs(moving[one][1]), abs(moving[other][1]), abs(present[1])):
            pairs[one + other] = found
    nearer = [each for each in _grouped(moving) if abs(each.difference) < abs(present[1])]
    known = {each.peak_bytes for each in nearer}
    together = [each for each in _grouped(pairs) if each.peak_bytes not in known]
    found = likely(nearer, present=present[1], measured=measured) if record.kind == "allocated" else None
    return Doubts(present[1], len(singles) + len(pairs), (*_nearest(nearer)[:MOST_SINGLE], *_nearest(together)[:MOST_PAIRED]), found)


def _promising_pairs(moving: dict[tuple, tuple[int, int]], present: int) -> list[tuple[tuple, tuple]]:
    """Pairs of changes of two settings, of those with the same peak only the plainest; each moves what is missing by its own effect."""
    plainest = {counted: change for change, counted in reversed(moving.items())}
    pairs = [pair for pair in combinations(plainest.values(), 2) if pair[0][0][0] != pair[1][0][0]]
    return sorted(pairs, key=lambda pair: abs(moving[pair[0]][1] + moving[pair[1]][1] - present))[:MOST_PAIRS]


def likely(explanations: list[Explanation], *, present: int, measured: int) -> Explanation | None:
    """The single change that is likely: the present settings are off, it is near, and clearly nearer than they and than any other.

    Two changes together are never called likely: there are so many pairs that some come near by chance.
    """
    ranked = _nearest(explanations)
    if not ranked or not is_off(present, measured=measured):
        return None
    first = abs(ranked[0].difference)
    others = [abs(present), *(abs(each.difference) for each in ranked[1:2])]
    return ranked[0] if first <= NEAR * measured and all(other > CLEARLY * first for other in others) else None


def is_off(difference: int, *, measured: int) -> bool:
    """Whether a difference is larger than recorded runs have."""
    return abs(difference) > max(OFF * measured, OFF_BYTES)


def _nearest(explanations: list[Explanation]) -> list[Explanation]:
    return sorted(explanations, key=lambda each: abs(each.difference))


def single_changes(settings: Settings) -> list[dict[str, Value]]:
    """Every change of one doubted setting that applies."""
    names = applying(vars(settings))
    return [
        {name: value} for name in DOUBTED if name in names for value in _values(name, settings) if value != getattr(settings, name)
    ]


def _values(name: str, settings: Settings) -> Iterable[Value]:
    kind = BY_NAME[name].kind
    if isinstance(kind, Choice):
        return kind.values
    none, some = NUMBERS[name]
    return (none,) if getattr(settings, name) != none else (some,)


def _counted(settings: Settings, record: Record) -> tuple[int, int] | None:
    """Peak, and what was measured less its estimate; None where the accounting cannot count the run."""
    try:
        if record.kind == "allocated":
            peak = peak_bytes(settings)
            return peak, record.allocated - peak
        counted = estimate_of(settings)
    except NotExpressible:
        return None
    return counted.peak_bytes, compared(counted, record)[0].difference


def _grouped(found: dict[tuple, tuple[int, int]]) -> list[Explanation]:
    """One explanation for all changes that give the same peak, the plainest first."""
    groups: dict[tuple[int, int], list[tuple]] = {}
    for change, counted in found.items():
        groups.setdefault(counted, []).append(change)
    return [
        Explanation(tuple(map(dict, sorted(changes, key=len))), peak, difference) for (peak, difference), changes in groups.items()
    ]
