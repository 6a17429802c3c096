"""Which class of hardware a run needs: one consumer card, one datacenter GPU, the GPUs of a node, or several nodes."""

from dataclasses import dataclass
from functools import cache

from vramplan.accountings import fits, peak_bytes
from vramplan.catalogue import gpu_classes
from vramplan.compare import compared
from vramplan.data import table
from vramplan.errors import NotExpressible
from vramplan.fields import BY_NAME
from vramplan.gpus import OFFERED, fewest_gpus
from vramplan.settings import Settings

CONSUMER, DATACENTER, SEVERAL, NODES, NONE = "consumer", "datacenter", "several", "nodes", "none"
"""Kinds of hardware, from the smallest on; NONE where no number of GPUs is enough, or nothing divides the run."""

DIVIDING_ALL = (OFFERED, "zero3")
"""Kinds of sharding that leave nothing whole, the one that is offered first. FSDP2 keeps gradients whole between the micro-batches of an
update, ZeRO-3 does not, so either may need fewer GPUs."""

CONTEXTS = (2_048, 8_192, 32_768)
"""Sequence lengths that the classes are shown for, in tokens: a short one, a long one, and one that few train with."""


@dataclass(frozen=True)
class Interconnect:
    """What GPUs have between them: GB per second, which way these are counted, and where it is found."""

    name: str
    gb_per_second: int
    direction: str
    seen: str
    source: str


@dataclass(frozen=True)
class Needed:
    """What one run needs: the peak if it ran on one GPU, the kind of hardware, GiB of the smallest class, how many of them, and
    what divides the run over them."""

    settings: Settings
    peak_bytes: int
    kind: str
    gib: int | None
    gpus: int | None
    sharding: str


@cache
def interconnects() -> tuple[Interconnect, ...]:
    """Every interconnect, slowest first."""
    names = ("name", "gb_per_second", "direction", "seen", "source")
    return tuple(Interconnect(**{name: entry[name] for name in names}) for entry in table("hardware")["interconnect"])


@cache
def bounds() -> tuple[int, int, str]:
    """GiB of the largest consumer card, GPUs of a node, and their class."""
    known = table("hardware")["classes"]
    return known["consumer_gib"], known["node_gpus"], known["node_class"]


def needed(settings: Settings) -> Needed:
    """What a run needs, whatever GPU is chosen. Raises NotExpressible where it cannot be counted."""
    consumer_gib, node_gpus, node_class = bounds()
    alone = settings.varied(sharding="none", sharded_over=1, offload="none")
    peak = peak_bytes(alone)
    for gpu in gpu_classes().values():
        if fits(alone.varied(gpu=gpu.name)):
            return Needed(alone, peak, CONSUMER if gpu.capacity_gib <= consumer_gib else DATACENTER, gpu.capacity_gib, 1, "none")
    gib = gpu_classes()[node_class].capacity_gib
    gpus, sharding = fewest_of(alone.varied(gpu=node_class))
    if gpus is None:
        return Needed(alone, peak, NONE, None, None, sharding)
    return Needed(alone, peak, SEVERAL if gpus <= node_gpus else NODES, gib, gpus, sharding)


def fewest_of(settings: Settings) -> tuple[int | None, str]:
    """The fewest GPUs over all that divides everything, and by which kind of sharding; None where no number is enough."""
    found = []
    for sharding in DIVIDING_ALL:
        try:
            found.append((fewest_gpus(settings, sharding), sharding))
        except NotExpressible:
            continue
    enough = [each for each in found if each[0]]
    return min(enough, key=lambda each: each[0]) if enough else (None, "none")


def contexts(settings: Settings) -> tuple[int, ...]:
    """The sequence lengths that the model has, of those that classes are shown for."""
    return tuple(length for length in CONTEXTS if length <= settings.max_sequence_length)


def grid(settings: Settings) -> tuple[tuple[Needed | None, ...], ...]:
    """What the run needs under every method, or with every type of weights it can answer with, at every sequence length the model
    has; None where it cannot be counted."""
    varied = compared(settings)
    values = BY_NAME[varied].kind.values
    return tuple(tuple(_needed_or_none(settings.varied(**{varied: value}, sequence_length=length)) for length in contexts(settings)) for value in values)


def _needed_or_none(settings: Settings) -> Needed | None:
    try:
        return needed(settings)
    except NotExpressible:
        return None
