"""Sets of up to three changes that make a run fit: every smallest one, cheapest first, each counted as one run.

Every lever is a chain of steps, cheapest first, with "as it is" before them. One set is within another where it goes no further on any
lever. What is offered are the sets that fit and have no other fitting set within them: nothing in them can be left out or be milder.

Nothing is guessed. A set is left uncounted only
- where a set within it fits: then it is not a smallest one;
- where a bound shows that it does not fit: of a set X that was counted and does not fit, the terms of a moment that is too large are
  known, and each lever declares the terms that it can make smaller (data/changes.toml). What the other terms come to at that moment is
  there with the further changes too, so where it exceeds the usable memory, X with those changes does not fit;
- along the micro-batch and the sequence length, where the mildest step that fits is found by bisection: a peak never decreases
  in either (a law that tests/test_properties.py holds every accounting to).
tests/test_make_fit.py compares all of it with counting every set.
"""

from bisect import bisect_left
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from heapq import heappop, heappush
from itertools import combinations, product
from math import prod

from vramplan.accountings import at_batches, estimate, usable_bytes, weighed
from vramplan.catalogue import relatives
from vramplan.compare import counted_or_why
from vramplan.errors import FieldError, NotExpressible, SettingsError
from vramplan.fields import BY_NAME
from vramplan.fit import SmallestGpu, smallest_gpu
from vramplan.hardware import fewest_of
from vramplan.in_steps import at_once
from vramplan.ledger import LIKELY, YES, Estimate, Moment
from vramplan.levers import ACCUMULATION, BATCH, LENGTH, Lever, Step, applied, levers
from vramplan.parameters import base_parameters
from vramplan.settings import Settings
from vramplan.units import count_text

MOST_CHANGES = 3
"""Settings that are changed at once."""

FAMILIES_KEPT = 16
"""Orders of sets that are remembered: runs with the same levers have the same."""

EFFECTIVE_BATCH = "effective_batch"
"""What can be required besides the sequence length: sequences per update."""

REQUIRABLE = (LENGTH, EFFECTIVE_BATCH)
"""What a run can be required to have at least."""


Cost = tuple[int, int, int]
"""What a set costs in quality and in speed, and how many changes it has."""


@dataclass(frozen=True)
class Wanted:
    """What the changes must leave: settings that stay as they are, and what a run must have at least, by name."""

    keep: frozenset[str] = frozenset()
    at_least: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Offer:
    """A set of changes that fits: the steps of its levers, the run with them, what they cost together, and the peak of that run."""

    steps: tuple[Step, ...]
    settings: Settings
    peak_bytes: int
    headroom_bytes: int
    verdict: str

    @property
    def quality(self) -> int:
        """What it costs in quality, 0 for nothing."""
        return sum(step.quality for step in self.steps)

    @property
    def speed(self) -> int:
        """What it costs in speed, 0 for nothing."""
        return sum(step.speed for step in self.steps)

    @property
    def cost(self) -> Cost:
        """All that it costs."""
        return self.quality, self.speed, len(self.steps)

    @property
    def order(self) -> tuple[int, int, int, int]:
        """Cheapest in quality first, then in speed, then the fewest changes, then the smallest peak."""
        return *self.cost, self.peak_bytes


@dataclass(frozen=True)
class MadeToFit:
    """What makes a run fit. `run`: it, with what was required of it. offers: every smallest set, cheapest first; none where the run fits
    as it is. refused: for each lever that the accounting cannot count here, why. sets: how many there are; counted: of how many the peak
    was worked out, the others were ruled out.
    """

    run: Estimate
    wanted: Wanted
    offers: tuple[Offer, ...]
    refused: dict[str, str]
    sets: int
    counted: int

    @property
    def fits(self) -> bool:
        """Whether the run fits as it is, or with changes."""
        return self.run.fits or bool(self.offers)

    @cached_property
    def smallest_gpu(self) -> SmallestGpu | None:
        """The smallest class of card on which the run fits without changes; None where no class is large enough, or the card is kept."""
        found = smallest_gpu(self.run)
        return found if found and self._leaves(self.run.settings.varied(gpu=found.gpu.name)) else None

    @cached_property
    def divided(self) -> Settings | None:
        """The run over the fewest GPUs that divide everything, on the card that was chosen; None where no number is enough, or what
        divides it is kept."""
        settings = self.run.settings
        count, sharding = (None, "") if settings.serves else fewest_of(settings.varied(sharding="none", sharded_over=1, offload="none"))
        divided = settings.varied(sharding=sharding, sharded_over=count, offload="none") if count else None
        return divided if divided and self._leaves(divided) else None

    @cached_property
    def smaller_model(self) -> Estimate | None:
        """The run with the largest model of the family that fits without changes; None where there is none, or the
        model is kept."""
        if "model" in self.wanted.keep:
            return None
        settings, own = self.run.settings, self.run.parameters.total
        smaller = ((base_parameters(each.architecture), each) for each in relatives(settings.model) if each.max_sequence_length >= settings.sequence_length)
        for _, preset in sorted(((count, each) for count, each in smaller if count < own), key=lambda pair: -pair[0]):
            counted = counted_or_why(settings.varied(model=preset.name))
            if isinstance(counted, Estimate) and counted.fits:
                return counted
        return None

    def _leaves(self, settings: Settings) -> bool:
        """Whether another run has everything that is kept."""
        return all(getattr(settings, name) == getattr(self.run.settings, name) for name in self.wanted.keep)


def as_it_is(settings: Settings) -> Offer:
    """A run that fits without changes. Raises NotExpressible."""
    run = estimate(settings)
    return Offer((), settings, run.peak_bytes, run.headroom_bytes, run.verdict)


def make_fit(settings: Settings, *, keep: Iterable[str] = (), at_least: Mapping[str, int] | None = None) -> MadeToFit:
    """Every smallest set of up to three changes with which a run fits.

    keep: names of settings that stay as they are. at_least: the sequence length and the effective batch that the run must have.
    Raises SettingsError for a name or a number that cannot be used, NotExpressible where the run cannot be counted.
    """
    return at_once(make_fit_in_steps(settings, wanted(settings, keep=keep, at_least=at_least or {})))


def make_fit_in_steps(settings: Settings, asked: Wanted) -> Generator[Offer | None, None, MadeToFit]:
    """The same in small steps, after each of which something else may happen. Raises NotExpressible."""
    required_run = required(settings, asked)
    run = estimate(required_run)
    if run.fits:
        return MadeToFit(run, asked, (), {}, 0, 0)
    search = Search(required_run, asked)
    yield from search.in_steps()
    return MadeToFit(run, asked, tuple(search.offers), search.refused, search.sets, search.counted)


def wanted(settings: Settings, *, keep: Iterable[str] = (), at_least: Mapping[str, int]) -> Wanted:
    """What was asked for, checked. Raises SettingsError."""
    kept, errors = frozenset(keep), []
    for name in sorted(kept - BY_NAME.keys()):
        errors.append(FieldError("keep", f"{name} is not a setting, so it cannot be kept; name settings such as sequence_length or method."))
    for name, value in at_least.items():
        if name not in REQUIRABLE:
            errors.append(FieldError("at_least", f"{name} cannot be required; what can is {' or '.join(REQUIRABLE)}."))
        elif value < 1 or value > _most(settings, name):
            errors.append(FieldError("at_least", f"{name} must be a whole number from 1 to {count_text(_most(settings, name))}; {value} was given."))
        elif value > getattr(settings, name) and _grown(settings, name, value, kept) is None:
            errors.append(FieldError("at_least", f"{name} is kept at {count_text(getattr(settings, name))}, so it cannot be at least {count_text(value)}."))
    if errors:
        raise SettingsError(tuple(errors))
    return Wanted(kept, dict(at_least))


def _most(settings: Settings, name: str) -> int:
    """The largest number that can be required."""
    if name == LENGTH:
        return settings.max_sequence_length
    return settings.gpus * BY_NAME[BATCH].kind.maximum * (1 if settings.serves else BY_NAME[ACCUMULATION].kind.maximum)


def required(settings: Settings, asked: Wanted) -> Settings:
    """The run with what is required of it: as long as asked for, and with as many sequences to an update."""
    for name, value in asked.at_least.items():
        if value > getattr(settings, name):
            settings = _grown(settings, name, value, asked.keep)
    return settings


def _grown(settings: Settings, name: str, value: int, kept: frozenset[str]) -> Settings | None:
    """The run with a longer sequence, or with a larger effective batch: by more steps of accumulation, which need no memory, or by
    larger micro-batches where those are kept; None where nothing may grow."""
    if name == LENGTH:
        return None if LENGTH in kept else settings.varied(sequence_length=value)
    for grows, other in ((ACCUMULATION, BATCH), (BATCH, ACCUMULATION)):
        beside = getattr(settings, other) * settings.gpus
        number = -(-value // beside)
        if grows not in kept and number <= BY_NAME[grows].kind.maximum and not (grows == ACCUMULATION and settings.serves):
            return settings.varied(**{grows: number})
    return None


Chosen = tuple[tuple[int, int], ...]
"""Levers by their place, each with the place of its step."""


class Over:
    """What a run that does not fit holds at a moment that is too large, and which further levers leave too much of it."""

    def __init__(self, moment: Moment | None, usable: int, smaller: list[frozenset[str] | None]):
        self._terms = [(term.name, term.bytes) for term in moment.terms] if moment else []
        self._usable, self._smaller = usable, smaller
        self._known: dict[frozenset[int], bool] = {}

    def stays(self, rest: frozenset[int]) -> bool:
        """Whether the terms that these levers cannot make smaller are too much together; without levers it is as counted."""
        if rest not in self._known:
            self._known[rest] = self._is_too_much(rest)
        return self._known[rest]

    def _is_too_much(self, rest: frozenset[int]) -> bool:
        sets = [self._smaller[place] for place in rest]
        if None in sets:
            return False
        smaller = frozenset().union(*sets)
        return sum([size for name, size in self._terms if name not in smaller]) > self._usable


Family = tuple[Cost, Chosen, tuple[int, ...]]
"""Sets that differ in steps on the batch alone: what the cheapest of them costs, the other steps, and the levers on the batch."""


class Search:
    """All sets of one run that does not fit, counted or ruled out, from the cheapest on. Raises NotExpressible."""

    def __init__(self, settings: Settings, asked: Wanted):
        self._settings, self._usable = settings, usable_bytes(settings)
        self._least = asked.at_least
        self.levers = tuple(self._within(lever) for lever in levers(settings, asked.keep))
        self.levers = tuple(lever for lever in self.levers if lever.steps)
        self.refused: dict[str, str] = {}
        self.counted = self.sets = 0
        self._over: dict[tuple[Chosen, tuple[int, ...]], Over] = {((), ()): self._over_at(weighed(settings).too_large)}
        self._fitting: dict[Chosen, Offer] = {}
        self._waiting: list[tuple[tuple[int, ...], Chosen]] = []
        self._tried: set[tuple[Chosen, tuple[int, ...]]] = set()
        self._for_any_batch: list[Chosen] = []
        self.offers: list[Offer] = []
        self._batches: dict[tuple[Chosen, bool], object] = {}
        self._on_batch = {place for place, lever in enumerate(self.levers) if lever.name in (BATCH, LENGTH)}

    def _within(self, lever: Lever) -> Lever:
        """A lever without steps that go below what is required."""
        return Lever(lever.name, tuple(step for step in lever.steps if self._enough(self._settings.varied(**step.change)) or lever.name == ACCUMULATION), lever.smaller)

    def _enough(self, settings: Settings) -> bool:
        return all(getattr(settings, name) >= value for name, value in self._least.items())

    def in_steps(self, least: Cost = (0, 0, 0)) -> Generator[Offer | None, None, None]:
        """Count or rule out every set in the order of their cost, from the least on, so that every set within another comes before it. Gives
        each offer as soon as no cheaper one can come, and nothing in between, when something else may happen."""
        families = _families(tuple(tuple((step.quality, step.speed) for step in lever.steps) for lever in self.levers), frozenset(self._on_batch))
        for cost, fixed, moving in families[bisect_left(families, (least,)) :]:
            yield from self._settled(cost)
            if self._try(fixed, moving):
                yield None
        yield from self._settled(None)

    def _settled(self, cost: Cost | None) -> Generator[Offer, None, None]:
        """The offers that cost less than what comes now; all that are left where nothing comes."""
        while self._waiting and (cost is None or self._waiting[0][0][:-1] < cost):
            _, chosen = heappop(self._waiting)
            offer = self._fitting[chosen]
            if not any(_within(other, chosen) for other in self._fitting if other != chosen):
                self.offers.append(offer)
                yield offer

    def _try(self, fixed: Chosen, moving: tuple[int, ...]) -> bool:
        """Count sets with these steps, and with every step of the levers on the batch; whether anything was worked out."""
        self.sets += prod(len(self.levers[place].steps) for place in moving)
        if any(_within(found, fixed) for found in self._for_any_batch) or self._ruled_out(fixed, moving):
            return False
        if len(fixed) + len(moving) > 1 and self._count_singles(fixed, moving) and self._ruled_out(fixed, moving):
            return True
        return self._count_batches(fixed, moving) if moving else self._count(fixed)

    def _count_singles(self, fixed: Chosen, moving: tuple[int, ...]) -> bool:
        """Count the single changes of a set that were ruled out without: their terms say more of sets with them. Whether there were any."""
        alone = [((each,), ()) for each in fixed] + [((), (place,)) for place in moving]
        unknown = [single for single in alone if single not in self._tried]
        for one, on_batch in unknown:
            self._count_batches(one, on_batch) if on_batch else self._count(one)
        return bool(unknown)

    def _ruled_out(self, fixed: Chosen, moving: tuple[int, ...]) -> bool:
        """Whether a set within this one, with the last steps on the batch, shows that it cannot fit."""
        levers_of = frozenset((*(place for place, _ in fixed), *moving))
        for on_batch in _parts(moving):
            for within in _parts(fixed):
                over = self._over.get((within, on_batch))
                if over and over.stays(levers_of.difference(on_batch, (place for place, _ in within))):
                    return True
        return False

    def _over_at(self, moment: Moment | None) -> "Over":
        return Over(moment, self._usable, [lever.smaller for lever in self.levers])

    def _count(self, fixed: Chosen) -> bool:
        """Count one set; whether there is such a run."""
        self._tried.add((fixed, ()))
        return self._fits(fixed, (fixed, ())) is not None

    def _count_batches(self, fixed: Chosen, moving: tuple[int, ...]) -> bool:
        """Find the mildest steps on the batch that fit with these others, on one lever or along both, if the last steps do."""
        self._tried.add((fixed, moving))
        numbers = [len(self.levers[place].steps) for place in moving]
        known = self._known(fixed, moving[0]) if len(moving) == 1 else None
        if known is None:
            fits = self._fits((*fixed, *((place, number - 1) for place, number in zip(moving, numbers, strict=True))), (fixed, moving))
            if not fits:
                return fits is not None
        if len(moving) == 1:
            self._mildest(numbers[0] if known is None else known, lambda step: self._batch_fits((*fixed, (moving[0], step))))
            return True
        limit = numbers[1]
        for step in range(numbers[0]):
            mildest = self._mildest(limit, lambda other, step=step: self._batch_fits((*fixed, (moving[0], step), (moving[1], other))))
            limit = limit if mildest is None else mildest
        return True

    def _known(self, fixed: Chosen, place: int) -> int | None:
        """The mildest step of a lever on the batch that fits with a part of these others: only milder ones are news."""
        steps = [dict(found)[place] for found in self._fitting if dict(found).get(place) is not None and _within([each for each in found if each[0] != place], fixed)]
        return min(steps, default=None)

    def _fits(self, chosen: Chosen, key: tuple[Chosen, tuple[int, ...]]) -> bool | None:
        """Whether a run with a set fits; None where it does not apply, or is not counted. What is too large of one that does not fit is kept
        under `key`."""
        chosen = tuple(sorted(chosen))
        steps = self._steps(chosen)
        settings = applied(self._settings, steps)
        if settings is None or not self._enough(settings):
            return None
        try:
            counted = weighed(settings)
        except NotExpressible as reason:
            if len(chosen) == 1:
                self.refused.setdefault(self.levers[chosen[0][0]].name, reason.message)
            return None
        self.counted += 1
        if counted.fits:
            self._found(chosen, Offer(steps, settings, counted.peak_bytes, self._usable - counted.peak_bytes, counted.verdict))
        else:
            self._over[key] = self._over_at(counted.too_large)
        return counted.fits

    def _batch_fits(self, chosen: Chosen) -> bool:
        """Count a set that changes the batch; the other settings of a run are worked out once for all batches."""
        chosen = tuple(sorted(chosen))
        if chosen in self._fitting:
            return True
        steps = self._steps(chosen)
        settings = applied(self._settings, steps)
        if settings is None or not self._enough(settings):
            return False
        beside = tuple(each for each in chosen if each[0] not in self._on_batch), settings.gradient_accumulation_steps > 1
        if beside not in self._batches:
            self._batches[beside] = self._at(settings)
        at = self._batches[beside]
        if at is None:
            return False
        self.counted += 1
        peak, verdict = at(settings.micro_batch, settings.sequence_length)
        if verdict in (YES, LIKELY):
            self._found(chosen, Offer(steps, settings, peak, self._usable - peak, verdict))
        return verdict in (YES, LIKELY)

    def _found(self, chosen: Chosen, offer: Offer) -> None:
        self._fitting[chosen] = offer
        heappush(self._waiting, (offer.order, chosen))
        if not any(place in self._on_batch for place, _ in chosen):
            self._for_any_batch.append(chosen)

    def _at(self, settings: Settings):
        try:
            return at_batches(settings)
        except NotExpressible:
            return None

    def _steps(self, chosen: Chosen) -> tuple[Step, ...]:
        """The steps of a set, in the order they are applied."""
        return tuple(self.levers[place].steps[step] for place, step in chosen)

    def _mildest(self, number: int, fits) -> int | None:
        """The first of so many steps that fits, by bisection; None where the last does not."""
        if not number or not fits(number - 1):
            return None
        low, high = 0, number - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if fits(middle) else (middle + 1, high)
        return high


@lru_cache(maxsize=FAMILIES_KEPT)
def _families(costs: tuple[tuple[tuple[int, int], ...], ...], on_batch: frozenset[int]) -> list[Family]:
    """Every family of sets, cheapest first. costs: what every step of every lever costs in quality and speed; on_batch: levers by place."""
    found = []
    for count in range(1, min(MOST_CHANGES, len(costs)) + 1):
        for places in combinations(range(len(costs)), count):
            moving = tuple(place for place in places if place in on_batch)
            fixed = [place for place in places if place not in on_batch]
            for steps in product(*(range(len(costs[place])) for place in fixed)):
                chosen = tuple(zip(fixed, steps, strict=True))
                each = [costs[place][step] for place, step in (*chosen, *((place, 0) for place in moving))]
                found.append(((sum(quality for quality, _ in each), sum(speed for _, speed in each), count), chosen, moving))
    return sorted(found)


def _parts(whole: tuple) -> list[tuple]:
    """Every part of a tuple, from nothing to all of it."""
    return [part for size in range(len(whole) + 1) for part in combinations(whole, size)]


def _within(one: Iterable[tuple[int, int]], other: Chosen) -> bool:
    """Whether a set goes no further than another on any lever."""
    steps = dict(other)
    return all(steps.get(place, -1) >= step for place, step in one)
