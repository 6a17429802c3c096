"""The named ways to count. All take the same Settings and return the same Estimate."""

from collections.abc import Callable, Iterable
from functools import partial
from types import ModuleType

from vramplan.accountings import planning, rules, step, unsloth
from vramplan.ledger import Estimate, Frame, Weighed
from vramplan.settings import Settings

ACCOUNTINGS: dict[str, ModuleType] = {"step": step, "planning": planning, "unsloth": unsloth, "rules": rules}
"""Every accounting by its name in settings; each has estimate, frames, peak_bytes, fits, CONTEXT_IS_BESIDE and NO_PAIRS;
weighed where that takes less than an estimate, at_batches, at_batches_in_steps and grid where many batches can be counted faster than one by one."""


def estimate(settings: Settings) -> Estimate:
    """Estimated peak memory per GPU of one fine-tuning run, counted the way `settings.accounting` names.

    Raises NotExpressible when that accounting cannot count the run.
    """
    return ACCOUNTINGS[settings.accounting].estimate(settings)


def frames(settings: Settings, *, most_layers: int) -> tuple[Frame, ...]:
    """The run in the order of time, so many layers of each pass drawn at the most. Raises NotExpressible."""
    return ACCOUNTINGS[settings.accounting].frames(settings, most_layers=most_layers)


def peak_bytes(settings: Settings) -> int:
    """The peak alone, for searches and curves. Raises NotExpressible."""
    return ACCOUNTINGS[settings.accounting].peak_bytes(settings)


def fits(settings: Settings) -> bool:
    """Whether the run fits its budget, without the rest of the estimate. Raises NotExpressible."""
    return ACCOUNTINGS[settings.accounting].fits(settings)


def weighed(settings: Settings) -> Weighed:
    """Whether a run fits, and one moment that does not, without the rest of the estimate: what is known soonest. Raises NotExpressible."""
    own, usable = getattr(ACCOUNTINGS[settings.accounting], "weighed", None), usable_bytes(settings)
    if own:
        return own(settings, usable)
    counted = estimate(settings)
    return Weighed(counted.peak_bytes, counted.verdict, counted.moment if counted.peak_bytes > usable else None)


def at_batches(settings: Settings) -> Callable[[int, int], tuple[int, str]]:
    """The peak in bytes and the verdict as a function of micro-batch and sequence length: that of the accounting, where it has a fast one.

    Raises NotExpressible, here or from the function.
    """
    own = getattr(ACCOUNTINGS[settings.accounting], "at_batches", None)
    return own(settings) if own else partial(_one_batch, settings)


def at_batches_in_steps(settings: Settings) -> Callable[[int, int], Iterable[tuple[int, str] | None]]:
    """The same, which gives None after each small step of what has to be worked out first, where that is long, and then what it comes to."""
    own = getattr(ACCOUNTINGS[settings.accounting], "at_batches_in_steps", None)
    at = None if own else at_batches(settings)
    return own(settings) if own else lambda micro_batch, length: (at(micro_batch, length),)


def _one_batch(settings: Settings, micro_batch: int, length: int) -> tuple[int, str]:
    counted = estimate(settings.varied(micro_batch=micro_batch, sequence_length=length))
    return counted.peak_bytes, counted.verdict


def grid(settings: Settings, micro_batches, lengths):
    """The peaks of many batches, and the places of their verdicts among VERDICTS, in arrays of numpy as they came.

    None where the accounting counts batches one by one only. Raises NotExpressible.
    """
    own = getattr(ACCOUNTINGS[settings.accounting], "grid", None)
    return own(settings, micro_batches, lengths) if own else None


def usable_bytes(settings: Settings) -> int:
    """What the accounting compares a peak with: the budget, less the CUDA context where no row of it counts that."""
    context = settings.context_bytes if ACCOUNTINGS[settings.accounting].CONTEXT_IS_BESIDE else 0
    return settings.budget_bytes - context
