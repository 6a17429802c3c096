"""What fits: the largest run one setting at a time, and what each single change would do."""

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from vramplan.accountings import at_batches, estimate, fits, usable_bytes
from vramplan.catalogue import GpuClass, gpu_classes
from vramplan.checks import Value
from vramplan.errors import NotExpressible
from vramplan.fields import BY_NAME, MAX_SHARDED_OVER
from vramplan.gpus import OFFERED, fewest_gpus
from vramplan.kinds import DIVIDING, with_sharding, with_a_choice_of_precision, with_a_kernel
from vramplan.ledger import LIKELY, YES, Estimate
from vramplan.settings import Settings

ALTERNATIVE_GPUS = 2
"""GPUs per copy offered as a change: the fewest that divide anything."""

ALTERNATIVE_RANK = 8
"""Adapter rank offered as a change: the default of the PEFT library's LoraConfig."""


@dataclass(frozen=True)
class Limit:
    """The largest value of a setting that fits, None when not even the smallest does; at_cap when the search ended
    at the largest value that may be asked for."""

    value: int | None
    at_cap: bool


@dataclass(frozen=True)
class Alternative:
    """One changed setting, the run with it, its peak and verdict."""

    change: dict[str, Value]
    settings: Settings
    peak_bytes: int
    verdict: str
    current_peak_bytes: int

    @property
    def difference_bytes(self) -> int:
        """Peak with the change less the current peak; negative is a saving."""
        return self.peak_bytes - self.current_peak_bytes

    @property
    def headroom_bytes(self) -> int:
        """Usable bytes less the peak with the change; negative is a shortfall."""
        return usable_bytes(self.settings) - self.peak_bytes

    @property
    def fits(self) -> bool:
        """Whether the changed run fits the same budget."""
        return self.verdict in (YES, LIKELY)


@dataclass(frozen=True)
class SmallestGpu:
    """The smallest GPU class that holds the run, and what is left on it."""

    gpu: GpuClass
    headroom_bytes: int


@dataclass(frozen=True)
class Fit:
    """Answers to 'what fits'. The two maxima are separate: they need not fit together."""

    largest_micro_batch: Limit
    longest_sequence: Limit
    alternatives: tuple[Alternative, ...]
    smallest_gpu: SmallestGpu | None
    settings: Settings = field(repr=False)

    @cached_property
    def fewest_gpus(self) -> dict[str, int | None]:
        """The fewest GPUs that one copy must be divided over to fit, for each kind of sharding that runs with the other settings;
        None where no number of them is enough."""
        if not with_sharding(self.settings.__dict__) or self.settings.serves:
            return {}
        found = {}
        for sharding in DIVIDING:
            try:
                found[sharding] = fewest_gpus(self.settings, sharding)
            except NotExpressible:
                continue
        return found


def fit(settings: Settings) -> Fit:
    """What fits around one run, each answer holding everything else."""
    current = estimate(settings)
    return Fit(
        largest_micro_batch=largest_micro_batch(settings),
        longest_sequence=longest_sequence(settings),
        alternatives=alternatives(current),
        smallest_gpu=smallest_gpu(current),
        settings=settings,
    )


def alternatives(current: Estimate) -> tuple[Alternative, ...]:
    """What each single change would do, the largest saving first; a change that the accounting cannot count is left out."""
    return tuple(sorted(changed(current, single_changes(current.settings)), key=lambda each: each.peak_bytes))


def changed(current: Estimate, changes: Iterable[dict[str, Value]]) -> list[Alternative]:
    """What each of these changes would do; one that the accounting cannot count is left out."""
    found = []
    for change in changes:
        other = current.settings.varied(**change)
        try:
            found.append(Alternative(change, other, *at_batches(other)(other.micro_batch, other.sequence_length), current.peak_bytes))
        except NotExpressible:
            continue
    return found


def largest_micro_batch(settings: Settings) -> Limit:
    """The largest micro-batch that fits at this sequence length."""
    holds = _fits_at(settings)
    return largest(BY_NAME["micro_batch"].kind.maximum, lambda value: holds(value, settings.sequence_length))


def longest_sequence(settings: Settings) -> Limit:
    """The longest sequence that fits at this micro-batch."""
    holds = _fits_at(settings)
    return largest(settings.max_sequence_length, lambda value: holds(settings.micro_batch, value))


def _fits_at(settings: Settings) -> Callable[[int, int], bool]:
    """Whether a micro-batch and a sequence length fit, from the closed form of the peak where the accounting has one."""
    at = at_batches(settings)
    return lambda micro_batch, length: at(micro_batch, length)[1] in (YES, LIKELY)


def smallest_gpu(current: Estimate) -> SmallestGpu | None:
    """The smallest class of card that holds the estimate, None when no class does."""
    for gpu in gpu_classes().values():
        if fits(current.settings.varied(gpu=gpu.name)):
            return SmallestGpu(gpu, estimate(current.settings.varied(gpu=gpu.name)).headroom_bytes)
    return None


def single_changes(settings: Settings) -> list[dict[str, Value]]:
    """The changes of one setting that are worth trying, whether or not they are already chosen."""
    if settings.serves:
        return _changes_of_serving(settings)
    other_methods = [{"method": name} for name in ("qlora", "lora", "full") if name != settings.method]
    adapters = [{"rank": ALTERNATIVE_RANK}, {"adapter_targets": "attention"}] if settings.trains_adapters else []
    losses = ["fused-linear"] if settings.accounting == "step" and settings.objective != "reward" else []
    layers = ["liger"] if settings.accounting == "step" else []
    several = [{"gradient_accumulation_steps": 1}] if settings.divides_states else []
    references = ["precomputed"] if settings.accounting == "step" and settings.objective == "dpo" else []
    offloaded = ["offloaded"] if settings.accounting == "step" else []
    precisions = ["pure-bf16"] if with_a_choice_of_precision(settings.__dict__) else []
    kernels = ["efficient"] if with_a_kernel(settings.__dict__) else []
    half = max(1, settings.sequence_length // 2)
    return [
        *other_methods,
        *({"loss": name} for name in losses),
        *({"layer_kernels": name} for name in layers),
        *({"reference": name} for name in references),
        {"optimizer": "adamw-8bit"},
        *({"trainable_precision": name} for name in precisions),
        {"checkpointing": "full"},
        *({"checkpointing": name} for name in offloaded),
        *({"attention_kernel": name} for name in kernels),
        *adapters,
        {"micro_batch": 1},
        *several,
        *_on_more_gpus(settings),
        {"sequence_length": half},
    ]


def _changes_of_serving(settings: Settings) -> list[dict[str, Value]]:
    """The same for a model that answers."""
    formats = [{"served_weights": option.value} for option in BY_NAME["served_weights"].kind.options if option.value != settings.served_weights]
    return [*formats, {"kv_cache": "8-bit"}, {"micro_batch": 1}, {"sequence_length": max(1, settings.sequence_length // 2)}]


def _on_more_gpus(settings: Settings) -> list[dict[str, Value]]:
    """Dividing the states over two GPUs; where they are divided, over twice as many, and moving states to the host. Not where the GPU
    shares the machine's memory: there is no second one, and what is on the host is in the same memory."""
    if not with_sharding(settings.__dict__) or settings.has_unified_memory:
        return []
    if not settings.divides_states:
        return [{"sharding": OFFERED, "sharded_over": ALTERNATIVE_GPUS}]
    doubled = min(2 * settings.sharded_over, MAX_SHARDED_OVER)
    if settings.accounting != "step":
        return [{"sharded_over": doubled}]
    offload = "optimizer" if settings.sharding.startswith("zero") else "optimizer-and-parameters"
    return [{"sharded_over": doubled}, {"offload": offload}]


def largest(cap: int, holds: Callable[[int], bool]) -> Limit:
    """The largest value from 1 to cap for which `holds`; `holds` must not come back once it is lost."""
    asking = bisection(cap)
    value = next(asking)
    while True:
        try:
            value = asking.send(holds(value))
        except StopIteration as found:
            return found.value


def bisection(cap: int) -> Generator[int, bool, Limit]:
    """The same, which gives each value it wants to know about, and is sent whether that holds."""
    if not (yield 1):
        return Limit(None, False)
    if (yield cap):
        return Limit(cap, True)
    fitting, too_large = 1, cap
    while too_large - fitting > 1:
        middle = (fitting + too_large) // 2
        if (yield middle):
            fitting = middle
        else:
            too_large = middle
    return Limit(fitting, False)
