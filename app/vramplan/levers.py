"""The changes that may make a run fit: for each setting the declared values, cheapest first, and what they cost."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from vramplan.checks import Value
from vramplan.data import table
from vramplan.fields import BY_NAME
from vramplan.ledger import Term
from vramplan.policy import AS_THE_STACK, policy
from vramplan.settings import Settings

OF_OTHER_RUNS = ("model", "gpu")
"""Settings that no set of changes touches, but what is offered where none is enough."""

LEFT_TO_THE_STACK = ("kbit_preparation", "base_precision", "trainable_precision")
"""Settings that may be left to the stack, and are named by it as here."""

ADAPTERS = ("lora", "qlora")
"""Methods that a run may be changed to."""

LENGTH_PARTS = 16
"""A shorter sequence is offered in sixteenths of the length of the run: fine enough to lose little, few enough to read."""

ALL = "all"
"""A change that may make any term smaller."""

BATCH, LENGTH, ACCUMULATION, SHARDING = "micro_batch", "sequence_length", "gradient_accumulation_steps", "sharding"
"""Settings whose changes are worked out from the run."""

TAKES_WITH_IT = {BATCH: (ACCUMULATION,), SHARDING: ("sharded_over", "replicas")}
"""Settings that a change sets besides its own: accumulation keeps the effective batch, and dividing a copy keeps the number of GPUs."""


@dataclass(frozen=True)
class Step:
    """One value of a lever: what is set, and what it costs in quality and speed, 0 for nothing."""

    change: dict[str, Value]
    quality: int
    speed: int


@dataclass(frozen=True)
class Lever:
    """One setting that may be changed: its steps, cheapest first, and the terms it can make smaller, None for any."""

    name: str
    steps: tuple[Step, ...]
    smaller: frozenset[str] | None

    @property
    def names(self) -> tuple[str, ...]:
        """Every setting that it changes."""
        return (self.name, *TAKES_WITH_IT.get(self.name, ()))

    def untouched(self, terms: Iterable[Term]) -> int:
        """Bytes of the terms that it leaves as large as they are."""
        return 0 if self.smaller is None else sum(term.bytes for term in terms if term.name not in self.smaller)


def levers(settings: Settings, keep: Iterable[str] = ()) -> tuple[Lever, ...]:
    """The levers of a run, in the order their changes are applied, without those that change a setting of `keep`.

    Whether a change applies may depend on another one, as adapters do on the method: applied() says that.
    """
    locked = set(keep)
    found = []
    for entry in _declared():
        lever = Lever(entry["setting"], _steps(settings, entry), None if entry["smaller"] == ALL else frozenset(entry["smaller"]))
        if lever.steps and locked.isdisjoint(lever.names) and _may_apply(settings, lever.name):
            found.append(lever)
    return tuple(found)


def _may_apply(settings: Settings, name: str) -> bool:
    """Whether a setting applies to the run, or would with adapters or with states divided over the GPUs that there are."""
    sharding = "zero3" if settings.gpus > 1 else settings.sharding
    return any(BY_NAME[name].applies(settings.varied(method=method, sharding=sharding).__dict__) for method in (settings.method, *ADAPTERS))


def applied(settings: Settings, steps: Iterable[Step]) -> Settings | None:
    """The run with these steps, in the order of the levers; None where one of them does not apply or changes nothing."""
    changed = settings
    for step in steps:
        after = changed.varied(**step.change)
        same = all(getattr(changed, name) == value for name, value in step.change.items())
        if same or not all(BY_NAME[name].applies(after.__dict__) for name in step.change):
            return None
        changed = after
    return changed


def changeable(settings: Settings) -> frozenset[str]:
    """Names of the settings that what makes this run fit may change."""
    return frozenset((*OF_OTHER_RUNS, *(name for lever in levers(settings) for name in lever.names)))


@dataclass(frozen=True)
class Lockable:
    """A setting that can be kept as it is: its name, and what it is called."""

    name: str
    label: str


def lockable() -> tuple[Lockable, ...]:
    """Every setting that has a lever, or that what is offered besides would change, in the order of the settings."""
    names = {*OF_OTHER_RUNS, *(entry["setting"] for entry in _declared())}
    return tuple(Lockable(field.name, field.label) for field in BY_NAME.values() if field.name in names)


@cache
def _declared() -> list[dict]:
    return table("changes")["change"]


def _steps(settings: Settings, entry: dict) -> tuple[Step, ...]:
    name = entry["setting"]
    if name == LENGTH:
        return _shorter(settings, entry["steps"][0])
    if name == BATCH:
        return _smaller_batches(settings, entry["steps"][0])
    declared, now = entry["steps"], _now(settings, name)
    if name == "rank":
        declared = [each for each in declared if each["value"] < now]
    if now is None or now not in entry.get("from", (now,)):
        return ()
    place = next((place for place, each in enumerate(declared) if each["value"] == now), None)
    before = {"quality": 0, "speed": 0} if place is None else declared[place]
    after = declared if place is None else declared[place + 1 :]
    if name == SHARDING:
        return tuple(_step(each, before, _divided(settings, each["value"])) for each in after) if settings.gpus > 1 else ()
    return tuple(_step(each, before, {name: each["value"]}) for each in after)


def _now(settings: Settings, name: str) -> Value | None:
    """What a run has: the setting, or what its stack decides where all methods that a run may change to agree on it."""
    if settings.accounting != "step" or name not in LEFT_TO_THE_STACK or getattr(settings, name) != AS_THE_STACK:
        return getattr(settings, name)
    decided = {getattr(policy(settings.varied(method=method)), name) for method in {settings.method, *ADAPTERS} if method != "pretraining"}
    return decided.pop() if len(decided) == 1 else AS_THE_STACK


def _step(declared: dict, before: dict, change: dict[str, Value]) -> Step:
    """A step, whose cost is what it adds to that of the value a run has."""
    quality, speed = (max(0, declared[name] - before[name]) for name in ("quality", "speed"))
    return Step(change, quality, speed)


def _divided(settings: Settings, sharding: str) -> dict[str, Value]:
    """Another kind of sharding; where nothing is divided yet, over the GPUs that there are."""
    over = (settings.sharded_over, settings.replicas) if settings.divides_states else (settings.replicas, 1)
    return {SHARDING: sharding, "sharded_over": over[0], "replicas": over[1]}


def _shorter(settings: Settings, cost: dict) -> tuple[Step, ...]:
    """Sixteenths of the length, longest first; every halving costs one more."""
    length = settings.sequence_length
    lengths = sorted({part * length // LENGTH_PARTS for part in range(1, LENGTH_PARTS)} - {0}, reverse=True)
    return tuple(Step({LENGTH: each}, cost["quality"] + (length // each).bit_length() - 1, cost["speed"]) for each in lengths)


def _smaller_batches(settings: Settings, cost: dict) -> tuple[Step, ...]:
    """Whole parts of the micro-batch, largest first, with as many more steps of accumulation. A model that answers accumulates nothing."""
    batch, steps = settings.micro_batch, settings.gradient_accumulation_steps
    if settings.serves:
        return tuple(Step({BATCH: each}, 1, 0) for each in _halved(batch))
    most = BY_NAME[ACCUMULATION].kind.maximum
    parts = [part for part in range(2, batch + 1) if batch % part == 0 and part * steps <= most]
    return tuple(Step({BATCH: batch // part, ACCUMULATION: part * steps}, cost["quality"], cost["speed"]) for part in parts)


def _halved(batch: int) -> list[int]:
    """Halves of a number down to 1, each rounded down."""
    return [batch >> times for times in range(1, batch.bit_length())]
