"""Where in a step a tensor of some size is alive: for a run that failed while it asked for one."""

from collections.abc import Callable
from dataclasses import replace

from vramplan.accountings.step import state
from vramplan.accountings.step.batch import growths
from vramplan.accountings.step.describe import alive_holdings, dtype_text, weight_holding
from vramplan.accountings.step.moments import STEP, Instant, Step, evaluate
from vramplan.accountings.step.tape import FIXED, NOTHING, Batch, Tape
from vramplan.ledger import Holding, Placed

LOADING, GRADIENTS, FIRST_UPDATE = "loading of the model", "backward pass", f"first {STEP}"
"""Moments of tensors that are on no tape."""


def placed(step: Step, batch: Batch, wanted: Callable[[int], bool]) -> tuple[Placed, ...]:
    """Every tensor of a wanted size, with each instant at which it comes to be: as the last and as the first of those that come with it."""
    found = [*_parameters(step, wanted)]
    growth, tapes = growths(*batch), {step.head.tape, *(row.walks.tape for row in step.rows)}
    if not any(wanted(size * growth[kind]) for tape in tapes for kind, size in _sizes(tape)):
        return tuple(found)
    walk, before = None, {}
    for instant in step.instants:
        before = before if walk == (instant.moment, instant.walk, instant.walks) else {}
        walk, alive = (instant.moment, instant.walk, instant.walks), alive_holdings(step.alive(instant), batch)
        now = {(each.name, each.shape, each.dtype): each.count for each in alive}
        new = [_one(each) for each in alive if each.count > before.get((each.name, each.shape, each.dtype), 0)]
        everything, states = instant.bytes(*batch), _states(instant, batch)
        for each in new:
            if wanted(each.bytes):
                others = sum(other.bytes for other in new) - each.bytes
                found += [Placed(instant.moment, each, amount, states) for amount in {everything, everything - others}]
        before = now
    return tuple(found)


def _sizes(tape: Tape) -> set[tuple[int, int]]:
    """How every tensor on a tape grows, and its bytes per unit of that."""
    sizes = set()
    for operation in tape.operations:
        sizes |= {(tensor.growth, tensor.bytes) for tensor in (*operation.inputs, *operation.outputs, *operation.saves, *operation.reads)}
        sizes |= {*operation.scratch, *operation.forward_scratch, (FIXED, operation.gradient + operation.gradient_scratch), (FIXED, operation.gradient_scratch)}
        sizes.add((FIXED, tape.gradient_bytes()))
    return sizes


def _states(instant: Instant, batch: Batch) -> int:
    return evaluate(dict(instant.held).get("optimizer_states", NOTHING), *batch)


def _parameters(step: Step, wanted: Callable[[int], bool]) -> list[Placed]:
    """Parameters as they are loaded, their gradients, and their states as the first update makes them."""
    run, found = step.run, []
    for weight in (*state.base_weights(run), *state.adapter_weights(run)):
        if wanted(weight.values * weight.itemsize):
            found.append(Placed(LOADING, _one(weight_holding(weight, "there from loading to the end")), None))
    for weight in state.trained_weights(run):
        if wanted(weight.values * weight.itemsize):
            found.append(Placed(GRADIENTS, replace(_one(weight_holding(weight, "kept until the optimizer step")), name=f"gradient of {weight.name}"), None))
        size = state.state_tensor_bytes(run, weight)
        if wanted(size):
            holding = replace(_one(weight_holding(weight, "kept from the first update on")), name=f"optimizer state of {weight.name}", bytes=size, dtype=dtype_text(size // weight.values))
            found.append(Placed(FIRST_UPDATE, holding, None))
    return found


def _one(holding: Holding) -> Holding:
    return replace(holding, count=1, bytes=holding.bytes // holding.count)
