"""An estimate: an ordered ledger of named amounts of memory. Totals are sums of its rows, never a second formula."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

from vramplan.settings import Settings


@dataclass(frozen=True)
class Holding:
    """Tensors that are alive: what they are, their shape in symbols, type, how many, bytes of all, and why they are."""

    name: str
    shape: str
    dtype: str
    count: int
    bytes: int
    why: str


@dataclass(frozen=True)
class Placed:
    """One tensor at one instant of a step: its moment, the tensor, and bytes of everything alive then, None where that is not known.

    state_bytes: what of it are states of the optimizer, which are not there before the first update.
    """

    moment: str
    tensor: Holding
    alive_bytes: int | None
    state_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Term:
    """One row of the ledger: what the memory holds, and how many bytes."""

    name: str
    bytes: int


@dataclass(frozen=True)
class Moment:
    """What is alive at one moment of a training step."""

    name: str
    terms: tuple[Term, ...]
    inspect: Callable[[], dict[str, tuple[Holding, ...]]] = field(default=dict, compare=False, repr=False)
    """The tensors behind the rows, by name of the row, for an accounting that knows them."""

    @property
    def bytes(self) -> int:
        """Sum of all rows."""
        return sum(term.bytes for term in self.terms)


@dataclass(frozen=True)
class Frame(Moment):
    """What is alive at one point in time of the run: a layer, an operation of the loss, the optimizer step.

    part: the stretch of the run it lies in. moment: the ledger's moment it is an instant of, empty where the ledger has none.
    """

    part: str = ""
    moment: str = ""


@dataclass(frozen=True)
class Parameters:
    """How many parameters the base model has, and how many are trained."""

    total: int
    trainable: int


@dataclass(frozen=True)
class Band:
    """The least and the most that is to be expected, in bytes."""

    low: int
    high: int

    @property
    def middle(self) -> int:
        """Half-way between them."""
        return (self.low + self.high) // 2


@dataclass(frozen=True)
class Estimate:
    """The estimated peak memory of one GPU, row by row, against its budget. All amounts are whole bytes.

    terms: the rows of the largest moment. moments: every moment of the step, in order; one for an accounting that does
    not know when memory is held. reserved, process: what the allocator and the whole process are expected to hold, None
    for an accounting that counts those in its rows. host: rows of host memory, for each GPU; what is there only while a model is
    loaded is the row `host_loading`. unchecked: what it rests on, beside the facts of a stack, that was only read in code.
    """

    accounting: str
    settings: Settings
    parameters: Parameters
    moments: tuple[Moment, ...]
    quantities: Mapping[str, int | Fraction] = field(compare=False, repr=False)
    context_bytes: int = 0
    reserved: Band | None = None
    process: Band | None = None
    host: tuple[Term, ...] = ()
    unchecked: tuple[str, ...] = ()

    @cached_property
    def moment(self) -> Moment:
        """The largest moment; the first of them where several are."""
        return max(self.moments, key=lambda moment: moment.bytes)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The rows of the largest moment."""
        return self.moment.terms

    @property
    def peak_bytes(self) -> int:
        """Sum of these rows."""
        return self.moment.bytes

    @property
    def budget_bytes(self) -> int:
        """What the GPU has."""
        return self.settings.budget_bytes

    @property
    def usable_bytes(self) -> int:
        """Budget less CUDA context, which is 0 where a row counts it."""
        return self.budget_bytes - self.context_bytes

    @property
    def headroom_bytes(self) -> int:
        """Usable bytes less peak; negative is a shortfall."""
        return self.usable_bytes - self.peak_bytes

    @cached_property
    def verdict(self) -> str:
        """Whether it fits: yes, likely, unlikely or no."""
        return verdict(
            usable=self.usable_bytes, budget=self.budget_bytes, peak=self.peak_bytes, process=self.process,
            divided=self.settings.divides_states,
        )

    @property
    def fits(self) -> bool:
        """Whether the verdict is yes or likely."""
        return self.verdict in (YES, LIKELY)


@dataclass(frozen=True)
class Weighed:
    """Whether a run fits. too_large: a moment that exceeds the usable memory, where one does; peak_bytes is then that of this moment alone."""

    peak_bytes: int
    verdict: str
    too_large: Moment | None = None

    @property
    def fits(self) -> bool:
        """Whether the verdict is yes or likely."""
        return self.verdict in (YES, LIKELY)


VERDICTS = YES, LIKELY, UNLIKELY, NO = "yes", "likely", "unlikely", "no"
"""Answers to whether a run fits."""

SURE_PERCENT = 92
"""Per cent of the usable memory up to which an allocated peak fits for sure. Measured: no recorded run that ran out of
memory allocates less, by the estimate; checked by tests/test_measured.py."""

SURE_PERCENT_DIVIDED = 84
"""The same where states are divided over GPUs: what is gathered and reduced lives on streams of its own, whose blocks others
cannot use. Measured: two recorded runs under FSDP went out of memory at 85 and 86 per cent; checked by tests/test_measured.py."""

HUNDRED_PERCENT = 100


def sure_percent(*, divided: bool) -> int:
    """Per cent of the usable memory up to which an allocated peak fits for sure."""
    return SURE_PERCENT_DIVIDED if divided else SURE_PERCENT


def verdict(*, usable: int, budget: int, peak: int, process: Band | None, divided: bool = False) -> str:
    """Whether a peak fits: yes, likely, unlikely or no.

    No above the usable bytes. Without a process band, else yes. With one: yes at or below SURE_PERCENT of the usable
    bytes, or SURE_PERCENT_DIVIDED; between, likely or unlikely by whether the middle of the band fits the budget. The band alone never makes a no:
    near the limit the allocator gives its cache back.
    """
    if peak > usable:
        return NO
    if process is None or HUNDRED_PERCENT * peak <= sure_percent(divided=divided) * usable:
        return YES
    return LIKELY if process.middle <= budget else UNLIKELY
