"""An estimate: an ordered ledger of named amounts of memory. Totals are sums of its rows, never a second formula."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from vramplan.settings import Settings


@dataclass(frozen=True)
class Term:
    """One row of the ledger: what the memory holds, and how many bytes."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Parameters:
    """How many parameters the base model has, and how many are trained."""

    total: int
    trainable: int


@dataclass(frozen=True)
class Estimate:
    """The estimated peak memory of one GPU, row by row, against its budget. All amounts are whole bytes."""

    accounting: str
    settings: Settings
    parameters: Parameters
    terms: tuple[Term, ...]
    quantities: Mapping[str, int | Fraction] = field(compare=False, repr=False)
    """Every symbol of the accounting's formulas with its value, for showing how the terms come about."""

    @property
    def peak_bytes(self) -> int:
        """Sum of all rows."""
        return sum(term.bytes for term in self.terms)

    @property
    def budget_bytes(self) -> int:
        """What the GPU has."""
        return self.settings.budget_bytes

    @property
    def headroom_bytes(self) -> int:
        """Budget less peak; negative is a shortfall."""
        return self.budget_bytes - self.peak_bytes

    @property
    def fits(self) -> bool:
        """Whether the peak stays within the budget; equality fits."""
        return self.headroom_bytes >= 0
