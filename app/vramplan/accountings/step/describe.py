"""An instant of a step as rows of a ledger, with the tensors behind every row."""

from dataclasses import replace

from vramplan.accountings.step import state
from vramplan.accountings.step.batch import growths
from vramplan.accountings.step.layer import residual_size
from vramplan.accountings.step.moments import BETWEEN, END, FIRST, FORWARD, LAST, LATER, LOSS, Instant, Step, evaluate, plus, times, total_of
from vramplan.accountings.step.operations import INDEX_SIZE
from vramplan.accountings.step.structure import HALF, SINGLE
from vramplan.accountings.step.tape import (
    BLOCKS, CHUNKS, FIXED, LATER_CHUNKS, NOTHING, PAIRS, POSITIONS, SAVED, SQUARES, TOKENS, WORKSPACE, Alive, Amount, Batch,
)
from vramplan.accountings.step.walks import LayerWalks, reference_of
from vramplan.ledger import Holding, Term

ROWS = (
    "base_weights", "gathered_weights", "reference_weights", "adapters", "master_weights", "gradients", "gradient_buckets",
    "reduction_buffers", "optimizer_states", "dequantization", "saved_activations", "staging", "hook_gradients", "active_layer", "logits", "outputs_kept",
    "left_behind", "autocast_copies", "layer_output", "waiting_gradient", "embedding_gradient", "flat_gradients", "optimizer_scratch", "inputs", "workspace",
)
"""Rows of a ledger, in order."""

PLACE = {name: place for place, name in enumerate(ROWS)}
"""The place of each row in that order."""

TAPE_ROW = {"layer": "active_layer", "head": "logits"}
"""The row that the tensors of each tape belong to."""

SHAPES = {
    TOKENS: "(B, S, {width:,})", PAIRS: "(B, {width:,}, S, S)", POSITIONS: "(S, {width:,})", SQUARES: "({width:,}, S, S)", FIXED: "{width:,} values",
    BLOCKS: "(blocks of keys, {width:,})", CHUNKS: "(chunks, {width:,})", LATER_CHUNKS: "(chunks after the first of a row, {width:,})",
}
"""The shape of a tensor that grows in each way."""


def terms(instant: Instant, batch: Batch, known: dict[tuple, Term] | None = None) -> tuple[Term, ...]:
    """Every row of one instant that is not empty, in order. known: rows made before for this batch; new ones are added."""
    known = {} if known is None else known
    rows: dict[str, Term] = {}
    rest = instant.bytes(*batch)
    for row in instant.held:
        name = row[0]
        term = known.get(row)
        if term is None:
            term = known[row] = Term(name, evaluate(row[1], *batch))
        rest -= term.bytes
        rows[name] = Term(name, rows[name].bytes + term.bytes) if name in rows else term
    if rest:
        name = TAPE_ROW[instant.walk.partition(" ")[0]]
        rows[name] = Term(name, rest + (rows[name].bytes if name in rows else 0))
    return tuple([rows[name] for name in sorted(rows, key=PLACE.__getitem__) if rows[name].bytes])


def holdings(step: Step, instant: Instant, batch: Batch) -> dict[str, tuple[Holding, ...]]:
    """The tensors behind the rows of one instant, as far as they are kinds of parameters or written on a tape."""
    run = step.run
    found = _shared(step, instant) if run.sharding.divides else {
        "base_weights": _parameters(state.base_weights(run), "there from loading to the end"),
        "reference_weights": _parameters(state.base_weights(reference_of(run)), "compared with, never trained") if run.reference == "copy" else (),
        "adapters": _parameters(state.adapter_weights(run), "trained, there from the start"),
    }
    found["saved_activations"] = _saved(step, instant, batch)
    if run.sharding.kind == "ddp":
        found |= step.shares.resident
    if not (run.sharding.divides or run.steps_in_backward) and dict(instant.held).get("gradients") == step.gradients:
        found["gradients"] = _parameters(state.trained_weights(run), "kept until the optimizer step")
    if instant.walk:
        found[TAPE_ROW[instant.walk.split()[0]]] = alive_holdings(step.alive(instant), batch)
    if instant.walk.endswith("of the reference"):
        of_head = alive_holdings(step.reference.alive_beside, batch)
        found["logits"] = (*of_head, *found.get("logits", ()))
    there = {*dict(instant.held), TAPE_ROW.get(instant.walk.partition(" ")[0])}
    return {row: listed for row, listed in found.items() if listed and row in there}


PLACES = {FORWARD: "forward", LOSS: "loss", LAST: "last", BETWEEN: "middle", FIRST: "first", END: "end"}
"""What the tensors of a moment are found under among those that GPUs divide."""


def _shared(step: Step, instant: Instant) -> dict[str, tuple[Holding, ...]]:
    """The tensors that several GPUs divide, and those that are gathered at an instant."""
    found = {row: listed for row, listed in step.shares.resident.items() if row in ("base_weights", "adapters", "master_weights", "optimizer_states")}
    place = PLACES.get(instant.moment.removesuffix(LATER))
    if place:
        place = "loss_backward" if instant.walk.startswith("head backward") else place
        found["gathered_weights"] = getattr(step.shares.gathered, place)
    return found


def _saved(step: Step, instant: Instant, batch: Batch) -> tuple[Holding, ...]:
    """What is kept for backward: of the embedding, and by the layers."""
    kept = dict(instant.held).get("saved_activations", NOTHING)
    if not kept[1]:
        return ()
    of_embedding = alive_holdings([Alive(t.name, t, SAVED) for t in step.of_embedding], batch)
    by_layers = plus(kept, times(-1, total_of(step.of_embedding)))
    listed = _checkpoints if step.run.checkpointing else _saved_by_layers
    return (*listed(step, instant, by_layers, batch), *of_embedding)


def _checkpoints(step: Step, instant: Instant, kept: Amount, batch: Batch) -> tuple[Holding, ...]:
    """Inputs of layers under checkpointing, and what checkpointing cannot drop."""
    width, size, count = step.run.shape.hidden_size, residual_size(step.run), instant.layers
    if step.run.offload:
        size_left = evaluate(kept, *batch)
        one = Holding("layer input", SHAPES[TOKENS].format(width=width), dtype_text(size), 1, size_left, "checkpoint of a layer, the others in host memory")
        return (one,) if size_left else ()
    inputs = evaluate(plus(times(count, step.output), step.first_saves_less if count else NOTHING), *batch)
    beyond = evaluate(kept, *batch) - inputs
    found = [Holding("layer input", SHAPES[TOKENS].format(width=width), dtype_text(size), count, inputs, "checkpoint of a layer")] if count else []
    return (*found, *([Holding("inputs of 8-bit linear maps", SHAPES[FIXED].format(width=beyond), dtype_text(1), 1, beyond, SAVED)] if beyond else ()))


def _saved_by_layers(step: Step, instant: Instant, kept: Amount, batch: Batch) -> tuple[Holding, ...]:
    """Every saved tensor of every layer without checkpointing."""
    if not kept[1] or not instant.layers:
        return ()
    counts: dict[LayerWalks, int] = {}
    for row in (row for row in step.rows if row.before >= step.first_trained):
        counts[row.walks] = counts.get(row.walks, 0) + max(0, min(row.count, instant.layers - row.before))
    of_first, first = step.row_of(min(step.first_trained, step.run.shape.num_layers - 1)).walks, []
    if step.first_saves_less != NOTHING and instant.layers > step.first_trained:
        counts[of_first] -= 1
        first = of_first.tape.saved_tensors(input_gradient=False)
    of_others = (
        replace(each, count=count * each.count, bytes=count * each.bytes)
        for walks, count in counts.items() if count
        for each in alive_holdings([Alive(t.name, t, SAVED) for t in walks.tape.saved_tensors()], batch)
    )
    return (*of_others, *alive_holdings([Alive(f"first layer’s {t.name}", t, SAVED) for t in first], batch))


def _parameters(weights: tuple[state.Weight, ...], why: str) -> tuple[Holding, ...]:
    """Kinds of parameter tensors, largest first."""
    return tuple(sorted((weight_holding(weight, why) for weight in weights), key=lambda holding: -holding.bytes))


def weight_holding(weight: state.Weight, why: str) -> Holding:
    """One kind of parameter tensor."""
    shape = f"({weight.rows:,}, {weight.columns:,})" if weight.columns > 1 else f"({weight.rows:,},)"
    return Holding(weight.name, shape, dtype_text(weight.itemsize), weight.count, weight.bytes, why)


def alive_holdings(alive: list[Alive], batch: Batch) -> tuple[Holding, ...]:
    """Alive tensors, equal ones counted together, largest first."""
    growth = growths(*batch)
    counts: dict[tuple, int] = {}
    for each in alive:
        if not each.tensor.bytes or not growth[each.tensor.growth]:
            continue
        key = (each.name, each.tensor.growth, each.tensor.width, each.tensor.itemsize, each.why)
        counts[key] = counts.get(key, 0) + 1
    found = [
        Holding(name, SHAPES[kind].format(width=width), dtype_text(size), count, count * width * size * growth[kind], why)
        for (name, kind, width, size, why), count in counts.items()
    ]
    return tuple(sorted(_without_less(found), key=lambda holding: -holding.bytes))


def _without_less(found: list[Holding]) -> list[Holding]:
    """A workspace that is less than another is by something that is gone by then, as the one tensor that they come to."""
    less = {holding.name for holding in found if holding.bytes < 0}
    sums = {name: sum(holding.bytes for holding in found if holding.name == name) for name in less}
    put = [Holding(name, SHAPES[FIXED].format(width=size), dtype_text(1), 1, size, WORKSPACE) for name, size in sums.items()]
    return [*(holding for holding in found if holding.name not in less), *put]


def dtype_text(size: int) -> str:
    """The type of values of so many bytes."""
    return {HALF: "16-bit", SINGLE: "float32", 1: "bytes", INDEX_SIZE: "int64"}[size]
