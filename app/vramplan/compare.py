"""The same run counted another way: under each training method, by each accounting, with each training stack."""

from dataclasses import dataclass
from functools import lru_cache

from vramplan.accountings import ACCOUNTINGS, estimate, peak_bytes
from vramplan.errors import NotExpressible
from vramplan.fields import BY_NAME
from vramplan.ledger import Estimate
from vramplan.settings import Settings
from vramplan.stacks import stacks


def compare(settings: Settings) -> tuple[Estimate, ...]:
    """Estimates under every training method with everything else held, in the order of the settings, or with every type of weights
    that a model can be served in; those that can be counted."""
    varied = compared(settings)
    values = BY_NAME[varied].kind.values
    counted = (counted_or_why(settings.varied(**{varied: value})) for value in values)
    return tuple(each for each in counted if isinstance(each, Estimate))


LEAST = {"checkpointing": "full", "attention_kernel": "efficient"}
"""What keeps the least for the backward pass."""

MOST = {"checkpointing": "none", "attention_kernel": "eager"}
"""What keeps the most: every layer’s tensors, and the scores of every pair of tokens."""


@dataclass(frozen=True)
class Span:
    """One training method from its least memory to its most: with checkpointing and efficient attention, and with neither."""

    least: Estimate
    most: Estimate


def spans(settings: Settings) -> tuple[Span, ...]:
    """Every training method as a range, everything else held; those that can be counted at both ends. None for a model that answers."""
    methods = () if settings.serves else BY_NAME["method"].kind.values
    ends = ((counted_or_why(settings.varied(method=method, **each)) for each in (LEAST, MOST)) for method in methods)
    return tuple(Span(least, most) for least, most in ends if isinstance(least, Estimate) and isinstance(most, Estimate))


def compared(settings: Settings) -> str:
    """The setting whose values are compared."""
    return "served_weights" if settings.serves else "method"


ONLY_TRAINING = "It counts training only, not a model that answers."
"""Why the others have no number beside inference."""


def by_accounting(settings: Settings) -> dict[str, Estimate | NotExpressible]:
    """The same run by every accounting, or why it cannot count it."""
    return {name: counted_by(settings, name) for name in ACCOUNTINGS}


@lru_cache(maxsize=len(ACCOUNTINGS))
def counted_by(settings: Settings, accounting: str) -> Estimate | NotExpressible:
    """The same run by one accounting, or why it cannot count it."""
    if settings.serves and accounting != settings.accounting:
        return NotExpressible("task", ONLY_TRAINING)
    why_not = ACCOUNTINGS[accounting].NO_PAIRS
    if why_not and settings.accounting == "step" and settings.objective != "sft":
        return NotExpressible("objective", why_not)
    return counted_or_why(settings.varied(accounting=accounting))


def counted_or_why(settings: Settings) -> Estimate | NotExpressible:
    """An estimate, or what keeps the accounting from making one."""
    try:
        return estimate(settings)
    except NotExpressible as reason:
        return reason


def peaks_by_stack(settings: Settings) -> dict[str, int]:
    """The peak with every stack people may well have: those that are trainers of their own, where they can count the run."""
    peaks = {}
    for name, stack in stacks().items():
        if stack.plausible:
            try:
                peaks[name] = peak_bytes(settings.varied(stack=name))
            except NotExpressible:
                continue
    return peaks
