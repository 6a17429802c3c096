"""How far a run can grow: the longest sequence and the largest micro-batch as it is, and what every doubling beyond takes."""

from collections.abc import Generator
from dataclasses import dataclass

from vramplan.errors import NotExpressible
from vramplan.fields import BY_NAME
from vramplan.fit import largest_micro_batch, longest_sequence
from vramplan.levers import BATCH, LENGTH
from vramplan.make_fit import Cost, Offer, Search, Wanted, as_it_is
from vramplan.settings import Settings

GROWING = (LENGTH, BATCH)
"""Settings that a run grows in."""


@dataclass(frozen=True)
class Grown:
    """A larger value of one setting, and the cheapest set of changes with which the run has it: no changes where it fits as it is."""

    name: str
    value: int
    offer: Offer


def growth(settings: Settings, asked: Wanted = Wanted()) -> tuple[Grown, ...]:
    """Everything that in_steps() gives."""
    return tuple(each for each in growth_in_steps(settings, asked) if each)


def growth_in_steps(settings: Settings, asked: Wanted) -> Generator[Grown | None, None, None]:
    """For each setting that a run grows in: its largest value as it is, then every power of two beyond with the cheapest changes that
    make room for it, until no set of three does. The other one is kept, and what else is asked for, which the run must have already.

    What does not fit with a set of changes does not fit with it where the run is larger: a peak never decreases in either. So the cheapest
    set costs at least as much as that of the run before. Raises NotExpressible.
    """
    for name in GROWING:
        if name in asked.keep:
            continue
        largest = (longest_sequence if name == LENGTH else largest_micro_batch)(settings).value
        if largest is None:
            continue
        if largest > getattr(settings, name):
            yield Grown(name, largest, as_it_is(settings.varied(**{name: largest})))
        cap = settings.max_sequence_length if name == LENGTH else BY_NAME[name].kind.maximum
        value, least = 1 << largest.bit_length(), (0, 0, 0)
        while value <= cap:
            cheapest = yield from _cheapest(settings.varied(**{name: value}), Wanted(asked.keep.union(GROWING), asked.at_least), least)
            if cheapest is None:
                break
            yield Grown(name, value, cheapest)
            value, least = 2 * value, cheapest.cost


def _cheapest(settings: Settings, asked: Wanted, least: Cost) -> Generator[None, None, Offer | None]:
    """The first set that is offered: they come cheapest first. least: what any that fits costs."""
    try:
        for offer in Search(settings, asked).in_steps(least):
            if offer:
                return offer
            yield None
    except NotExpressible:
        return None
    return None
