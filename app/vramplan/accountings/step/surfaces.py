"""The peak of one structure for every batch: the largest of a few polynomials, of whole numbers or of arrays of them alike."""

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from functools import lru_cache, reduce

from vramplan.accountings.step.bands import process_band, reserved_band
from vramplan.accountings.step.layers import counts_of_layers
from vramplan.accountings.step.moments import LAST, LOSS, REFERENCE, STEP, Step, evaluate, step_of
from vramplan.accountings.step.structure import Structure
from vramplan.accountings.step.tape import FIXED
from vramplan.accountings.step.walks import head_walks, layer_walks, reference_walks
from vramplan.accountings.step.whole import least, most
from vramplan.ledger import Band

Growing = tuple[int, ...]
"""An amount, and bytes for each row of a chunk of the loss."""

BatchWithRows = tuple[int, ...]
"""A batch, and the rows of a chunk of the loss in it."""

KEPT_SURFACES = 128
"""Surfaces that are remembered."""

OF_THE_FIRST_STEP = "first step"
"""The moments of a first step that is unlike the others."""


class Surface:
    """One structure, whatever rows a chunk of its loss has.

    peaks: amounts that are the largest for some batch. transients: for the loss and for the last layer's backward pass, the amounts of
    that moment, and what is held besides its own tensors.
    """

    __slots__ = ("peaks", "run", "transients")

    def __init__(self, run: Structure):
        self.run = run
        if run.loss_rows:
            step = step_of(replace(run, loss_rows=0))
            amounts = _amounts(step, _with_one_row(step))
            self.peaks = _undominated([amount for _, amount in amounts])
            by_moment = [_undominated([amount for name, amount in amounts if name == moment]) for moment in (LOSS, LAST)]
        else:
            step = step_of(run)
            self.peaks, *by_moment = ([(*instant.amount, 0) for instant in kept] for kept in (step.peaks, *step.by_transient))
        self.transients = [(amounts, (*step.rest(moment), 0)) for amounts, moment in zip(by_moment, (LOSS, LAST), strict=True)]

    def peak(self, batch: BatchWithRows) -> int:
        """Bytes of the largest moment."""
        return _largest(self.peaks, batch)

    def bound(self, batch: BatchWithRows) -> int:
        """Bytes that no amount of this exceeds, up to such a batch, nor any part of one."""
        every = [*self.peaks, *(amount for amounts, rest in self.transients for amount in (*amounts, rest))]
        return max(_bytes(tuple(map(abs, amount)), batch) for amount in every)

    def process(self, peak: int, batch: BatchWithRows, *, context: int) -> Band:
        """What the process is expected to hold at that peak."""
        smaller = [_largest(amounts or [rest], batch) - _bytes(rest, batch) for amounts, rest in self.transients]
        return process_band(reserved=reserved_band(self.run, peak=peak, smaller_transient=least(*smaller)), context=context)


def _with_one_row(step: Step) -> Step:
    """The same step as far as `with_chunks` goes, where chunks of the loss have one row: nothing else of a step knows of rows."""
    one, run = copy(step), replace(step.run, loss_rows=1)
    one.head = head_walks(run)
    one.reference = reference_walks(run) if step.reference else None
    one.first = _with_one_row(step.first) if step.first else None
    return one


def _amounts(none: Step, one: Step) -> list[tuple[str, Growing]]:
    """Every instant's moment and amount, from the step whose chunks have no row and the one whose chunks have one: rows only multiply
    bytes, so the difference is what each of them adds."""
    found = [(i.moment, (*i.amount, 0)) for i in none.instants if not i.moment.startswith((LOSS, REFERENCE))]
    for instant, with_row in zip(none.with_chunks(), one.with_chunks(), strict=True):
        found.append((instant.moment, (*instant.amount, with_row.amount[FIXED] - instant.amount[FIXED])))
    if none.first:
        found += [(OF_THE_FIRST_STEP, amount) for moment, amount in _amounts(none.first, one.first) if not moment.startswith(STEP)]
    return found


def _bytes(amount: Growing, batch: BatchWithRows) -> int:
    *others, per_row = amount
    *counts, rows = batch
    return evaluate(others, *counts) + rows * per_row


def _largest(amounts: list[Growing], batch: BatchWithRows) -> int:
    return reduce(most, (_bytes(amount, batch) for amount in amounts))


def _undominated(amounts: list[Growing]) -> list[Growing]:
    """The amounts that are the largest for some batch."""
    kept: list[Growing] = []
    for amount in sorted(set(amounts), reverse=True):
        if not any(all(a >= b for a, b in zip(other, amount, strict=True)) for other in kept):
            kept.append(amount)
    return kept


_surface_of = lru_cache(maxsize=KEPT_SURFACES)(Surface)


def surface_of(run: Structure) -> Surface:
    """The surface a structure lies on."""
    return _surface_of(replace(run, loss_rows=1) if run.loss_rows else run)


def made_ready(run: Structure) -> Iterator[object]:
    """Make what the surface of a structure is made of, in small steps, for `surface_of` to find."""
    for kind in counts_of_layers(run):
        yield from layer_walks(kind).in_parts()
    yield step_of(replace(run, loss_rows=0)).peaks


def forget() -> None:
    """Drop every remembered surface: for tests that change what they are made of."""
    _surface_of.cache_clear()

