"""A run that ran out of memory: which tensor it asked for, what was alive then, and how much was missing at least."""

from dataclasses import dataclass

from vramplan.accountings import step
from vramplan.checks import Value
from vramplan.errors import NotExpressible
from vramplan.ledger import Estimate, Holding, Placed
from vramplan.measured_run.against import is_of, least_needed
from vramplan.measured_run.amounts import LARGE_BUFFER, ROUNDING, as_printed, asked_of_driver, rounded_up
from vramplan.measured_run.doubts import single_changes
from vramplan.measured_run.record import Record
from vramplan.settings import Settings

MOST_CANDIDATES = 6
"""Tensors that are named."""

MOST_SUGGESTIONS = 3
"""Other settings that are named because a tensor of theirs fits."""

TOLD_PERCENT, HUNDRED_PERCENT = 2, 100
"""Per cent of what was allocated within which what the estimate has alive at an instant is said to be the same."""


@dataclass(frozen=True)
class Candidate:
    """A tensor of the size that was asked for: its moment, and what the estimate has alive besides it then, None where not known.

    before_update: that is without the optimizer's states, as in the very first step. apart: bytes between that and what
    was allocated, None where one of the two is not known.
    """

    moment: str
    tensor: Holding
    beside_bytes: int | None
    before_update: bool
    apart: int | None


@dataclass(frozen=True)
class Suggestion:
    """Changed settings under which a tensor of the size that was asked for exists at an instant like the one of the failure."""

    change: dict[str, Value]
    candidate: Candidate


@dataclass(frozen=True)
class Failure:
    """What a message says against the estimate. All in bytes.

    shared: the request was so small that many tensors share it. needed: allocated at least, had it succeeded. missing: what
    the driver lacked. in_pieces: whether the allocator held enough, but not in one piece.
    """

    shared: bool
    candidates: tuple[Candidate, ...]
    suggestions: tuple[Suggestion, ...]
    needed: int | None
    missing: int | None
    in_pieces: bool


def failure(estimate: Estimate, record: Record) -> Failure | None:
    """What an out-of-memory message tells; None for a run that went through, or an accounting without tensors."""
    if not record.failed or estimate.reserved is None:
        return None
    shared = record.tried <= LARGE_BUFFER
    found = () if shared else candidates(estimate.settings, record)
    told = any(each.apart is not None and same(each, record) for each in found)
    unused = record.pool - record.held if record.pool is not None and record.held is not None else 0
    return Failure(
        shared=shared,
        candidates=found,
        suggestions=() if shared or told or not is_of(record, estimate.settings) else suggestions(estimate.settings, record),
        needed=least_needed(record),
        missing=record.tried - record.free if record.free is not None and record.tried > record.free else None,
        in_pieces=unused >= record.tried,
    )


def same(candidate: Candidate, record: Record) -> bool:
    """Whether the estimate has about as much alive as the run had when it failed."""
    return candidate.apart is not None and HUNDRED_PERCENT * candidate.apart <= TOLD_PERCENT * record.held


def candidates(settings: Settings, record: Record) -> tuple[Candidate, ...]:
    """Tensors of the size that was asked for, those first at whose instant the estimate has alive what the run had."""
    best: dict[tuple[str, str, str], Candidate] = {}
    for each in step.tensors_of_size(settings, lambda size: asks_for(size, record.tried)):
        key = (each.tensor.name, each.tensor.shape, each.tensor.dtype)
        for candidate in _candidates(each, record):
            if key not in best or _order(candidate) < _order(best[key]):
                best[key] = candidate
    return tuple(sorted(best.values(), key=_order)[:MOST_CANDIDATES])


def asks_for(size: int, tried: int) -> bool:
    """Whether a tensor of `size` bytes leads to a request that reads as `tried`: messages have two decimals, snapshots all bytes."""
    return bool(size) and (tried == rounded_up(size, ROUNDING) or as_printed(asked_of_driver(size)) == as_printed(tried))


def suggestions(settings: Settings, record: Record) -> tuple[Suggestion, ...]:
    """Single changes under which such a tensor is asked for while as much is alive as the run had."""
    found: dict[Candidate, Suggestion] = {}
    for change in single_changes(settings):
        try:
            best = candidates(settings.varied(**change), record)[:1]
        except NotExpressible:
            continue
        for each in best:
            if same(each, record):
                found.setdefault(each, Suggestion(change, each))
    return tuple(sorted(found.values(), key=lambda each: each.candidate.apart)[:MOST_SUGGESTIONS])


def _candidates(each: Placed, record: Record) -> list[Candidate]:
    """A tensor at an instant, with and without the optimizer's states."""
    if each.alive_bytes is None:
        return [Candidate(each.moment, each.tensor, None, False, None)]
    beside = each.alive_bytes - each.tensor.bytes
    amounts = [(beside, False), (beside - each.state_bytes, True)] if each.state_bytes else [(beside, False)]
    return [
        Candidate(each.moment, each.tensor, amount, early, None if record.held is None else abs(amount - record.held)) for amount, early in amounts
    ]


def _order(candidate: Candidate) -> tuple[bool, int]:
    return candidate.apart is None, candidate.apart or 0
