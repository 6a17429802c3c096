"""The training step: which tensors are alive at each moment, and the largest of these moments.

What PyTorch's allocator has given out (max_memory_allocated); the CUDA context is beside it, and what the allocator
holds on top is a band.
"""

from collections.abc import Callable, Iterable
from functools import partial

from vramplan.accountings.step import confidence
from vramplan.accountings.step.bands import process_band, reserved_band
from vramplan.accountings.step.batch import batch_of
from vramplan.accountings.step.batches import Batches
from vramplan.accountings.step.build import MATH, structure
from vramplan.accountings.step.describe import holdings, terms
from vramplan.accountings.step.frames import frames as frames_of
from vramplan.accountings.step.host import KEEPS_LAST, offloaded_checkpoint_bytes
from vramplan.accountings.step.layer import residual_size
from vramplan.accountings.step.moments import LAST, LOSS, Instant, Step, evaluate, step_of
from vramplan.accountings.step.placing import placed
from vramplan.accountings.step.shares import total
from vramplan.accountings.step.structure import HALF
from vramplan.accountings.step.tape import Batch
from vramplan.ledger import LIKELY, NO, YES, Band, Estimate, Frame, Moment, Parameters, Placed, Term, Weighed, verdict
from vramplan.settings import Settings

CONTEXT_IS_BESIDE = True
"""No row counts the CUDA context: it is taken from the budget."""

NO_PAIRS = ""
"""Steps on pairs are counted."""


def estimate(settings: Settings) -> Estimate:
    """The estimate of one run, moment by moment. Raises NotExpressible when there are no tensors for a setting."""
    run = structure(settings)
    step = step_of(run)
    batch = _batch(step, settings)
    known: dict[tuple, Term] = {}
    moments = tuple(
        Moment(name, terms(instant, batch, known), partial(holdings, step, instant, batch)) for name, instant in _largest_of_moments(step, batch).items()
    )
    reserved, process = _bands(settings, step, batch)
    return Estimate(
        "step",
        settings,
        Parameters(*step.parameters),
        moments,
        {},
        settings.context_bytes,
        reserved,
        process,
        (*_checkpoints_on_host(step, batch[0]), *(Term(name, total(kept)) for name, kept in step.shares.host.items() if total(kept))),
        confidence.unchecked(run),
    )


def _largest_of_moments(step: Step, batch: Batch) -> dict[str, Instant]:
    """The largest instant of every moment, in order."""
    largest: dict[str, tuple[int, Instant]] = {}
    for instant in step.instants:
        size = instant.bytes(*batch)
        if instant.moment not in largest or size > largest[instant.moment][0]:
            largest[instant.moment] = size, instant
    return {name: instant for name, (_, instant) in largest.items()}


def _checkpoints_on_host(step: Step, tokens: int) -> tuple[Term, ...]:
    """Checkpoints that wait in host memory: Unsloth's in 16 bits, others in the type of the residual stream."""
    run = step.run
    if not run.offload:
        return ()
    size = (HALF if run.offload in KEEPS_LAST else residual_size(run)) * run.shape.hidden_size * tokens
    held = offloaded_checkpoint_bytes(kind=run.offload, num_layers=run.shape.num_layers, checkpoint_bytes=size)
    return (Term("host_checkpoints", held),)


def frames(settings: Settings, *, most_layers: int) -> tuple[Frame, ...]:
    """The run from loading to the end of its second step, in order of time. Raises NotExpressible."""
    step = step_of(structure(settings))
    return frames_of(step, _batch(step, settings), most_layers=most_layers)


def peak_bytes(settings: Settings) -> int:
    """The largest moment alone, in bytes."""
    step = step_of(structure(settings))
    return _peak(step, _batch(step, settings))


def fits(settings: Settings) -> bool:
    """Whether the verdict is yes or likely."""
    step = step_of(structure(settings))
    batch = _batch(step, settings)
    usable = settings.budget_bytes - settings.context_bytes
    return _largest(step.beside_layers, batch)[0] <= usable and _verdict(settings, step, batch) in (YES, LIKELY)


def weighed(settings: Settings, usable: int) -> Weighed:
    """Whether a run fits so much, and a moment that does not, if any: the first that is found, of those that need no walk over a layer
    before all others. Raises NotExpressible."""
    step = step_of(structure(settings))
    batch = _batch(step, settings)
    peak, largest = _largest(step.beside_layers, batch)
    if peak <= usable:
        peak, largest = _largest(step.instants, batch)
    if peak > usable:
        return Weighed(peak, NO, Moment(largest.moment, terms(largest, batch)))
    return Weighed(peak, _verdict(settings, step, batch))


def _largest(instants: list[Instant], batch: Batch) -> tuple[int, Instant]:
    """Bytes of the largest of some instants, and which it is."""
    sizes = [evaluate(instant.amount, *batch) for instant in instants]
    peak = max(sizes)
    return peak, instants[sizes.index(peak)]


def _verdict(settings: Settings, step: Step, batch: Batch) -> str:
    """Whether a run fits its budget."""
    budget = settings.budget_bytes
    usable, peak = budget - settings.context_bytes, _peak(step, batch)
    process = _bands(settings, step, batch)[1] if peak <= usable else None
    return verdict(usable=usable, budget=budget, peak=peak, process=process, divided=settings.divides_states)


def at_batches(settings: Settings) -> Callable[[int, int], tuple[int, str]]:
    """The peak in bytes and the verdict as a function of micro-batch and sequence length. Raises NotExpressible."""
    return Batches(settings).at


def at_batches_in_steps(settings: Settings) -> Callable[[int, int], Iterable[tuple[int, str] | None]]:
    """The same, which gives None after each small step of what has to be worked out first. Raises NotExpressible."""
    return Batches(settings).in_steps


def grid(settings: Settings, micro_batches, lengths):
    """The peak of every batch, and the place of its verdict among VERDICTS, in arrays of numpy. Raises NotExpressible."""
    from vramplan.accountings.step import arrays  # numpy is there for those who sweep alone

    return arrays.grid(Batches(settings), micro_batches, lengths)


def tensors_of_size(settings: Settings, wanted: Callable[[int], bool]) -> tuple[Placed, ...]:
    """Every single tensor whose bytes are wanted, with each instant at which it is alive. Raises NotExpressible."""
    step = step_of(structure(settings))
    return placed(step, _batch(step, settings), wanted)


def _batch(step: Step, settings: Settings) -> Batch:
    return batch_of(step.run, settings.rows, settings.sequence_length)


def _peak(step: Step, batch: Batch) -> int:
    return max([instant.bytes(*batch) for instant in step.peaks])


def writes_attention_out(settings: Settings) -> bool:
    """Whether an efficient kernel was asked for, but no such kernel takes the run's types."""
    return structure(settings).attention == MATH


def _bands(settings: Settings, step: Step, batch: Batch) -> tuple[Band, Band]:
    """What the allocator and the process are expected to hold."""
    peak = _peak(step, batch)
    resting = [step.resting(moment, *batch) for moment in (LOSS, LAST)]
    smaller = min(
        max((instant.bytes(*batch) for instant in instants), default=rest) - rest
        for instants, rest in zip(step.by_transient, resting, strict=True)
    )
    reserved = reserved_band(step.run, peak=peak, smaller_transient=smaller)
    return reserved, process_band(reserved=reserved, context=settings.context_bytes)
