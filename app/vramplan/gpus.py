"""How many GPUs a run needs, and what one of them holds the more of them divide its states."""

from dataclasses import dataclass

from vramplan.accountings import estimate, fits, peak_bytes, usable_bytes
from vramplan.errors import NotExpressible
from vramplan.fields import MAX_SHARDED_OVER
from vramplan.kinds import DIVIDING
from vramplan.ledger import Estimate, Term
from vramplan.settings import Settings

WITHIN_PERCENT, HUNDRED_PERCENT = 5, 100
"""More GPUs help little once a peak is within so much of what it is with as many as may be asked for. Nobody measured it: it is
what a reader of the drawing sees as flat."""

OFFERED = "fsdp2"
"""The kind of sharding that is shown while none is chosen."""


@dataclass(frozen=True)
class GpuPoint:
    """GPUs that one copy is divided over, the estimated peak of each, what that leaves, and whether it fits."""

    gpus: int
    peak_bytes: int
    headroom_bytes: int
    fits: bool


@dataclass(frozen=True)
class GpuCurve:
    """One kind of sharding: points in order of GPUs, the fewest that fit, None where not even the most do, the fewest beyond which
    more help little, and the estimate with the most, whose rows are what no number of GPUs takes away."""

    sharding: str
    points: tuple[GpuPoint, ...]
    fewest: int | None
    enough: int
    floor: Estimate

    @property
    def left(self) -> tuple[Term, ...]:
        """The rows that are left with the most GPUs, largest first."""
        return tuple(sorted(self.floor.terms, key=lambda term: -term.bytes))


def gpu_curve(settings: Settings, sharding: str) -> GpuCurve:
    """One kind of sharding, everything else held. Raises NotExpressible where it does not run with the other settings."""
    fewest = fewest_gpus(settings, sharding)
    of_run = {settings.sharded_over} if settings.sharding == sharding else set()
    counts = sorted({*_counts(), *of_run, *({fewest} if fewest else ())})
    points = tuple(_point(divided(settings, sharding, count), count) for count in counts)
    floor = points[-1].peak_bytes
    enough = next(each.gpus for each in points if HUNDRED_PERCENT * each.peak_bytes <= (HUNDRED_PERCENT + WITHIN_PERCENT) * floor)
    return GpuCurve(sharding, points, fewest, enough, estimate(divided(settings, sharding, MAX_SHARDED_OVER)))


def gpu_curves(settings: Settings) -> tuple[GpuCurve, ...]:
    """Every kind of sharding that runs with the other settings; none for a model that answers, which is not divided."""
    if settings.serves:
        return ()
    found = []
    for sharding in DIVIDING:
        try:
            found.append(gpu_curve(settings, sharding))
        except NotExpressible:
            continue
    return tuple(found)


def fewest_gpus(settings: Settings, sharding: str) -> int | None:
    """The fewest GPUs per copy with which a run fits, None where it does not with as many as may be asked for.

    A run with one GPU gathers nothing, so it may fit where two do not; from two on a peak never grows with their number.
    """
    def holds(count: int) -> bool:
        return fits(divided(settings, sharding, count))

    if not holds(MAX_SHARDED_OVER):
        return 1 if holds(1) else None
    if holds(1):
        return 1
    too_few, enough = 1, MAX_SHARDED_OVER
    while enough - too_few > 1:
        middle = (too_few + enough) // 2
        too_few, enough = (too_few, middle) if holds(middle) else (middle, enough)
    return enough


def shown_sharding(settings: Settings) -> str:
    """The kind of sharding that a drawing of this run is about."""
    return settings.sharding if settings.divides_states else OFFERED


def divided(settings: Settings, sharding: str, count: int) -> Settings:
    """The same run divided over so many GPUs; what is offloaded stays so under the same kind only."""
    offload = settings.offload if settings.sharding == sharding else "none"
    return settings.varied(sharding=sharding, sharded_over=count, offload=offload)


def _counts() -> set[int]:
    """1, 2, 3, 4, 6, 8, 12, 16 and so on."""
    powers = [1 << power for power in range(MAX_SHARDED_OVER.bit_length())]
    return {count for power in powers for count in (power, power + power // 2) if count <= MAX_SHARDED_OVER}


def _point(settings: Settings, count: int) -> GpuPoint:
    peak = peak_bytes(settings)
    return GpuPoint(count, peak, usable_bytes(settings) - peak, fits(settings))
