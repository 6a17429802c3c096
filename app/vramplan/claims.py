"""Rules of thumb people meet, held against what is computed for the run each of them is about."""

from dataclasses import dataclass
from functools import cache

from vramplan.compare import counted_or_why
from vramplan.data import table
from vramplan.ledger import Estimate
from vramplan.settings import Settings, parse
from vramplan.units import GB

BELOW, WITHIN, ABOVE = "below", "within", "above"
"""Where a computed peak lies beside a range."""


@dataclass(frozen=True)
class Claim:
    """A range in GB as it was read, what it assumes, where it stands, and the run it is taken to be about."""

    id: str
    what: str
    low: int
    high: int
    assumes: str
    source: str
    settings: Settings


@dataclass(frozen=True)
class Held:
    """A claim, and the peak of its run by one accounting."""

    claim: Claim
    estimate: Estimate

    @property
    def place(self) -> str:
        """Whether the peak lies below, within or above the range."""
        peak = self.estimate.peak_bytes
        if peak < self.claim.low * GB:
            return BELOW
        return WITHIN if peak <= self.claim.high * GB else ABOVE


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim, in the order of the data file."""
    known = table("claims")
    about = {name: text for name, text in known["about"].items() if name not in ("source", "date")}
    names = ("id", "what", "low", "high", "assumes", "source")
    return tuple(Claim(**{name: entry[name] for name in names}, settings=parse(about | entry["settings"])) for entry in known["claim"])


@cache
def held(accounting: str) -> tuple[Held, ...]:
    """Every claim that an accounting can count, with its estimate."""
    counted = ((claim, counted_or_why(claim.settings.varied(accounting=accounting))) for claim in claims())
    return tuple(Held(claim, estimate) for claim, estimate in counted if isinstance(estimate, Estimate))
