"""One GPU's share of a run whose states several GPUs divide: what it keeps, what it gathers, and what it sends.

Everything here is fixed: none of it grows with the batch. Kinds: nothing divided, DDP's buckets, DeepSpeed's ZeRO, FSDP and
FSDP2 as accelerate 1.15.0 wraps a model: every layer a unit, the rest the root (FSDP), or embedding and tail (FSDP2).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from vramplan.accountings.step import sharding as formulas
from vramplan.accountings.step import state
from vramplan.accountings.step.state import Weight
from vramplan.accountings.step.structure import HALF, SINGLE, Structure
from vramplan.ledger import Holding

Holdings = tuple[Holding, ...]

DTYPES = {HALF: "16-bit", SINGLE: "float32", 1: "bytes"}
"""Names of types by bytes per value."""

KEPT, GATHERED, COPIED_OUT, FETCHED = "this GPU’s part", "gathered for the layer in work", "what arrived, before it is copied out", "gathered ahead for the next layer"
"""Why parts of weights are alive."""


@dataclass(frozen=True)
class ByMoment:
    """Tensors that are there at some places of a step only. loss: its forward pass; loss_backward: the other way. last, middle,
    first: the backward pass of the last layer, of one that is neither, of the first."""

    forward: Holdings = ()
    loss: Holdings = ()
    loss_backward: Holdings = ()
    last: Holdings = ()
    middle: Holdings = ()
    first: Holdings = ()
    end: Holdings = ()


@dataclass(frozen=True)
class Shares:
    """What dividing changes. Amounts are bytes.

    resident: rows that are there all the time. gathered, buffers: rows of some moments. reduced_at_once: whether a gradient goes
    as soon as it is made, so that a layer never has all of its own. of_head: gradients that the head leaves behind; of_layer:
    those of a layer that is done, None where they are all that it makes; collected: all of them at the end of the backward pass; accumulated: what earlier
    micro-batches leave. flattened: the copy of a layer's gradients in one piece, beside them. updates: rows of the instants of
    the optimizer step. host: rows of host memory, per GPU.
    """

    resident: dict[str, Holdings]
    gathered: ByMoment
    buffers: ByMoment
    reduced_at_once: bool
    of_head: int
    of_layer: int | None
    collected: int
    accumulated: int
    flattened: int
    updates: tuple[tuple[tuple[str, int], ...], ...]
    host: dict[str, Holdings]


def _loading(run: Structure) -> dict[str, Holdings]:
    """The model in host memory while it is loaded, on its way to the GPU. ZeRO-3 and a quantised base pass it on tensor by tensor.

    Source: transformers 5.24.0, modeling_utils.py, from_pretrained, and integrations/fsdp.py (the first process only, with
    fsdp_cpu_ram_efficient_loading, which is on); integrations/deepspeed.py (zero.Init).
    """
    kind = run.sharding.kind
    if kind in ("none", "zero3") or run.quantization:
        return {}
    where = "in the first process of a machine" if run.sharding.is_fsdp else "in every process"
    return {"host_loading": _single("the checkpoint", run.sharding.loaded_size * state.parameters(run), where, "all weights", DTYPES[run.sharding.loaded_size])}


def total(holdings: Iterable[Holding]) -> int:
    """Bytes of all of them."""
    return sum(holding.bytes for holding in holdings)


def shares_of(run: Structure, *, of_head: int) -> Shares:
    """The share of one GPU. of_head: bytes of the gradients that the head makes, in the type it computes in."""
    if run.sharding.is_zero:
        found = _zero(run, of_head)
    else:
        found = _fsdp(run) if run.sharding.is_fsdp else _undivided(run, of_head)
    return replace(found, host=found.host | _loading(run))


def _undivided(run: Structure, of_head: int) -> Shares:
    """Each GPU has everything; DDP keeps every gradient a second time, in buckets.

    Source: torch 2.13.0, csrc/distributed/c10d/reducer.cpp, initialize_buckets; nn/parallel/distributed.py: gradient_as_bucket_view
    is off, and accelerate 1.15.0 leaves it so.
    """
    if run.steps_in_backward:
        return _stepping_in_backward(run, of_head)
    gradients = state.gradient_bytes(run)
    buckets = _whole(state.trained_weights(run), "a second time, in the buckets that are averaged") if run.sharding.kind == "ddp" else ()
    return Shares(
        resident={"gradient_buckets": buckets},
        gathered=ByMoment(),
        buffers=ByMoment(),
        reduced_at_once=False,
        of_head=of_head,
        of_layer=None,
        collected=gradients,
        accumulated=gradients,
        flattened=0,
        updates=((("gradients", gradients), ("optimizer_scratch", state.step_scratch_bytes(run))),),
        host={},
    )


def _stepping_in_backward(run: Structure, of_head: int) -> Shares:
    """No gradient stays, but that of a head that waits for the embedding it is tied to.

    Source: torchtune 0.6.1, training/memory.py, register_optim_in_bwd_hooks; torch 2.13.0, csrc/autograd/input_buffer.cpp.
    """
    trained = state.trained_weights(run)
    last = max((weight.bytes for weight in trained if weight.name == "embedding"), default=0)
    return Shares(
        resident={},
        gathered=ByMoment(),
        buffers=ByMoment(),
        reduced_at_once=True,
        of_head=of_head if run.shape.tied_embeddings else 0,
        of_layer=0,
        collected=last,
        accumulated=0,
        flattened=0,
        updates=((("gradients", 0),),),
        host={},
    )


# What both forms of dividing need


def stored(run: Structure) -> Structure:
    """The same run with the types its parameters are kept in, which need not be those it computes with."""
    kept = run.sharding
    sizes = ("weight_size", "norm_size", "embedding_size", "head_size", "adapter_size")
    return replace(run, **{name: getattr(kept, name) for name in sizes})


def _units(run: Structure) -> tuple[list[Weight], list[Weight]]:
    """Parameters of one layer, adapters included, and those outside the layers."""
    layers, inside, outside = run.shape.num_layers, [], []
    for weight in (*state.base_weights(run), *state.adapter_weights(run)):
        in_each, rest = divmod(weight.count, layers)
        if weight.group in ("embedding", "head") or weight.name == "head bias" or weight.name.startswith(("lm_head ", "embed ")):
            in_each, rest = 0, weight.count
        elif weight.name == "norms":
            rest = 2 if run.shape.embedding_norm else 1
            in_each = (weight.count - rest) // layers
        inside += [replace(weight, count=in_each)] if in_each else []
        outside += [replace(weight, count=rest)] if rest else []
    return inside, outside


def _packed(run: Structure) -> int:
    """Bytes of one layer's quantised weights without their scales: what a 16-bit quant_storage lets others divide.

    Source: bitsandbytes 0.50.2, nn/modules.py, Params4bit; docs of FSDP-QLoRA: bnb_4bit_quant_storage.
    """
    values = sum(into * out for into, out in run.projection_sizes.values())
    return -(-values // 2) if run.quantization else 0


def _whole(weights: Iterable[Weight], why: str) -> Holdings:
    return tuple(Holding(w.name, _shape(w), DTYPES[w.itemsize], w.count, w.bytes, why) for w in weights if w.bytes)


def _shape(weight: Weight) -> str:
    return f"({weight.rows:,}, {weight.columns:,})" if weight.columns > 1 else f"({weight.rows:,},)"


def _part(run: Structure, weight: Weight, size: int = 0) -> int:
    """Bytes of this GPU's part of a kind of weights, `size` bytes per value if that is not their own."""
    ways, size = run.sharding.ways, size or weight.itemsize
    if run.sharding.kind == "fsdp2":
        return weight.count * formulas.rows_part_bytes(rows=weight.rows, columns=weight.columns, size=size, ways=ways)
    return weight.count * formulas.part_bytes(values=weight.values, size=size, ways=ways)


def _parts(run: Structure, weights: Iterable[Weight], why: str, size: int = 0) -> Holdings:
    ways = f"1/{run.sharding.ways} of " if run.sharding.ways > 1 else ""
    return tuple(
        Holding(w.name, ways + _shape(w), DTYPES[size or w.itemsize], w.count, _part(run, w, size), why) for w in weights
    )


def _as_parts(kept: Structure) -> list[Weight]:
    """The tensors that an optimizer sees: under FSDP the flat part of every layer, of the root, and of every adapter; under FSDP2
    the part of every parameter.

    Source: accelerate 1.15.0, utils/dataclasses.py: use_orig_params is off; peft 0.21.2, utils/other.py, fsdp_auto_wrap_policy.
    """
    weights = state.trained_weights(kept)
    if kept.sharding.kind == "fsdp1" and kept.trains_base:
        layer, root = (total(_parts(kept, unit, KEPT)) // kept.weight_size for unit in _units(kept))
        flat = (("layers", kept.shape.num_layers, layer), ("root", 1, root))
        return [Weight(name, count, values, 1, kept.weight_size, "parts") for name, count, values in flat]
    values = ((weight, _part(kept, weight) // (weight.itemsize * weight.count)) for weight in weights)
    return [replace(weight, rows=part, columns=1, group="parts") for weight, part in values]


def _single(name: str, size: int, why: str, shape: str = "one piece", dtype: str = "16-bit") -> Holdings:
    return (Holding(name, shape, dtype, 1, size, why),) if size else ()


# ZeRO


def _zero(run: Structure, of_head: int) -> Shares:
    """DeepSpeed's three stages with transformers' automatic buckets, 16-bit parameters and float32 masters.

    Source: DeepSpeed 0.19.8, runtime/zero/stage_1_and_2.py and stage3.py; overlap_comm is on by default in stage 3 only.
    """
    kind, ways = run.sharding.kind, run.sharding.ways
    trained, hidden = state.trained_weights(run), run.shape.hidden_size
    masters = _parts(run, trained, "float32 copy of this GPU’s part, updated by the optimizer", SINGLE)
    flat = [Weight("flat part", 1, total(masters) // SINGLE, 1, SINGLE, "parts")]
    states = state.states_bytes(run.optimizer, flat)
    part, whole = total(masters) // SINGLE * HALF, state.gradient_bytes(run)
    inside, _ = _units(run)
    sizes = sorted((w.bytes // w.count for w in inside if w in _trained_of(run, inside)), reverse=True) or [0]
    bucket = formulas.reduce_bucket_bytes(hidden_size=hidden, size=HALF, buckets=1)
    pending = formulas.pending_gradient_bytes(largest=sizes[0], second=sizes[min(1, len(sizes) - 1)], bucket=bucket)
    on_cpu = run.sharding.offload != "none"
    resident = {"base_weights": _zero_weights(run), "adapters": _zero_adapters(run)}
    host: dict[str, Holdings] = {}
    if on_cpu:
        host = _zero_host(run, masters, states, part)
        resident["reduction_buffers"] = _single("buffer of offloaded gradients", max(w.values for w in trained) * HALF, "sums a gradient before it leaves") if kind != "zero3" else ()
    else:
        resident["master_weights"] = masters
        resident["optimizer_states"] = _single("optimizer states", states, "of this GPU’s part", "flat", "float32")
    collected = 0 if on_cpu else part
    reducing = _single("bucket of gradients", bucket, "filled, then reduced") + _single("the bucket flattened", bucket, "as it is sent")
    if kind == "zero1":
        buffers = ByMoment(last=reducing, middle=reducing, first=reducing, end=reducing + _single("gradients of this GPU’s part", collected, "copied together before the step"))
        updates = _zero_updates(run, flat, part, on_cpu)
        return Shares(resident, ByMoment(), buffers, False, of_head, None, whole, whole, 0, updates, host)
    waiting = _single("gradients of single parameters", pending, "made, not yet reduced")
    if kind == "zero2":
        buffers = ByMoment(last=reducing + waiting, middle=reducing + waiting, first=reducing + waiting, end=reducing)
        twice = 2 * collected if run.accumulates else collected
        updates = _zero_updates(run, flat, part, on_cpu)
        return Shares(resident, ByMoment(), buffers, True, collected + of_head, 0, collected, twice, 0, updates, host)
    resident["reduction_buffers"] = reducing[:1]
    if not on_cpu:
        resident["gradients"] = _single("gradients of this GPU’s part", part, "one flat buffer from the start", "flat")
    buffers = ByMoment(last=waiting, middle=waiting, first=waiting)
    updates = _zero3_updates(run, flat, part // HALF, on_cpu)
    return Shares(resident, _zero3_gathered(run), buffers, True, of_head, 0, 0, 0, 0, updates, host)


def _trained_of(run: Structure, weights: list[Weight]) -> list[Weight]:
    return [w for w in weights if run.trains_base or w.group == "adapters"]


def _zero_weights(run: Structure) -> Holdings:
    """16-bit weights: whole up to stage 2, this GPU's part in stage 3, where small ones are also there whole."""
    weights = state.base_weights(run)
    scales = state.quantized_bytes(run) - run.shape.num_layers * _packed(run)
    if run.sharding.kind != "zero3":
        return _whole(weights, "there from loading to the end") + _quantized(run, run.shape.num_layers * _packed(run), scales)
    small = [w for w in weights if formulas.persists(values=w.values, hidden_size=run.shape.hidden_size)]
    kept = _whole(small, "small enough to stay gathered")
    if run.sharding.offload == "optimizer-and-parameters":
        return kept + _quantized(run, 0, scales)
    packed = formulas.part_bytes(values=run.shape.num_layers * _packed(run), size=1, ways=run.sharding.ways)
    return _parts(run, weights, KEPT) + kept + _quantized(run, packed, scales)


def _quantized(run: Structure, packed: int, scales: int) -> Holdings:
    kept = _single("quantised weights", packed, KEPT if run.sharding.divides_weights else "there from loading to the end", "packed", "bytes")
    return kept + _single("scales of quantised weights", scales, "whole on every GPU", "scales", "bytes")


def _zero_adapters(run: Structure) -> Holdings:
    weights = state.adapter_weights(run)
    if run.sharding.kind != "zero3":
        return _whole(weights, "trained, there from the start")
    small = [w for w in weights if formulas.persists(values=w.values, hidden_size=run.shape.hidden_size)]
    parts = () if run.sharding.offload == "optimizer-and-parameters" else _parts(run, weights, KEPT)
    return parts + _whole(small, "small enough to stay gathered")


def _zero_updates(run: Structure, flat: list[Weight], part: int, on_cpu: bool):
    """Stages 1 and 2: the part's gradients become one flat tensor, then float32; the optimizer sees those."""
    if on_cpu:
        return ((),)
    return (
        (("gradients", part), ("flat_gradients", part + part // HALF * SINGLE)),
        (("flat_gradients", part // HALF * SINGLE), ("optimizer_scratch", state.scratch_bytes(run.optimizer, flat))),
    )


def _zero3_updates(run: Structure, flat: list[Weight], values: int, on_cpu: bool):
    """Stage 3: the same by sub-groups, each of them a part of the part."""
    if on_cpu:
        return ((),)
    taken = formulas.sub_group(part=values)
    scratch = state.scratch_bytes(run.optimizer, flat) * taken // values if values else 0
    return ((("flat_gradients", (HALF + SINGLE) * taken),), (("flat_gradients", SINGLE * taken), ("optimizer_scratch", scratch)))


def _zero3_gathered(run: Structure) -> ByMoment:
    """Weights that stage 3 has gathered, those it fetches ahead included; towards the first layer little is left to fetch."""
    inside, outside = _units(run)
    large = [[w for w in unit if not formulas.persists(values=w.values, hidden_size=run.shape.hidden_size)] for unit in (inside, outside)]
    of_layer, of_rest = (sum(w.bytes for w in unit) for unit in large)
    of_layer += _packed(run)
    biggest = max((w.values * w.itemsize for unit in large for w in unit), default=0)
    ahead = formulas.live_bytes(gathered=run.shape.num_layers * of_layer + of_rest, largest=biggest, size=HALF)
    near = formulas.live_bytes(gathered=of_layer + of_rest, largest=biggest, size=HALF)
    found, last = (_single("gathered weights", size, "fetched for the modules at work and ahead of them") for size in (ahead, near))
    return ByMoment(found, found, found, found, found, last, last)


def _zero_host(run: Structure, masters: Holdings, states: int, part: int) -> dict[str, Holdings]:
    """What an offloaded optimizer keeps on the host, page-locked but for the moments.

    Source: DeepSpeed 0.19.8, runtime/zero/stage_1_and_2.py, __init__ and initialize_optimizer_states; stage3.py,
    _create_fp32_partitions and initialize_optimizer_states; offload_config.py: pin_memory is on.
    """
    of_masters = total(masters)
    found = {
        "host_master_weights": _pinned("master weights", of_masters, "updated on the host"),
        "host_gradients": _pinned("float32 gradients", of_masters, "what the optimizer on the host reads"),
        "host_optimizer_states": _single("optimizer states", states, "pageable", "flat", "float32"),
    }
    if run.sharding.kind == "zero3":
        found["host_gradients"] += _pinned("16-bit gradients", part, "as they arrive")
        if run.sharding.offload == "optimizer-and-parameters":
            weights = (*state.base_weights(run), *state.adapter_weights(run))
            packed = formulas.part_bytes(values=run.shape.num_layers * _packed(run), size=1, ways=run.sharding.ways)
            found["host_parameters"] = _pinned("weights", total(_parts(run, weights, KEPT)) + packed, KEPT)
    else:
        found["host_parameters"] = _pinned("16-bit copy of the updated part", part, "on its way back to the GPU")
    return found


def _pinned(name: str, size: int, why: str) -> Holdings:
    return _single(name, formulas.pinned_bytes(size=size), f"{why}; page-locked, a power of two", "pinned", "bytes")


# FSDP


def _fsdp(run: Structure) -> Shares:
    """Both forms of FSDP. Trained parameters are kept in float32 under mixed precision and gathered in 16 bits.

    Source: torch 2.13.0, distributed/fsdp/_runtime_utils.py and _fully_shard/_fsdp_param_group.py; accelerate 1.15.0,
    accelerator.py, prepare_model, and utils/fsdp_utils.py, fsdp2_prepare_model.
    """
    kept, ways, two = stored(run), run.sharding.ways, run.sharding.kind == "fsdp2"
    offloaded = run.sharding.offload != "none"
    base, adapters, trained = state.base_weights(kept), state.adapter_weights(kept), state.trained_weights(kept)
    layers, layer_packed = run.shape.num_layers, _packed(run)
    scales = state.quantized_bytes(run) - layers * layer_packed
    packed = layers * layer_packed if two else formulas.part_bytes(values=layers * layer_packed, size=1, ways=ways)
    parts = _as_parts(kept)
    states = state.states_bytes(run.optimizer, parts)
    gradients = total(_parts(kept, trained, KEPT))
    resident = {"base_weights": _parts(kept, base, KEPT) + _quantized(run, packed, scales), "adapters": _parts(kept, adapters, KEPT)}
    host = {}
    if offloaded:
        pieces = _pieces(kept, 0 if two else layer_packed)
        trains = pieces if not two else [(count, size) for count, size, trained in pieces if trained]
        host = {
            "host_parameters": _pinned_pieces("parameters", pieces, KEPT),
            "host_gradients": _pinned_pieces("gradients", trains, "copied there as they are reduced"),
            "host_optimizer_states": _single("optimizer states", states, "pageable", "flat", "float32"),
        }
        resident = {"base_weights": _quantized(run, packed if two else 0, scales), "adapters": ()}
        updates = ((),)
    else:
        resident["optimizer_states"] = _single("optimizer states", states, "of this GPU’s part", "flat", "float32")
        updates = ((("gradients", gradients), ("optimizer_scratch", state.scratch_bytes(run.optimizer, parts))),)
    inside, outside = _units(run)
    own_layer, own_rest = (_trained_of(run, unit) for unit in _units(kept))
    layer_part = 0 if offloaded else total(_parts(kept, own_layer, KEPT))
    tail_part = 0 if offloaded else total(_parts(kept, [w for w in own_rest if w.group != "embedding"], KEPT))
    of_layer, of_rest = (sum(w.bytes for w in _trained_of(run, unit)) for unit in (inside, outside))
    of_tail = sum(w.bytes for w in _trained_of(run, outside) if w.group != "embedding" or run.shape.tied_embeddings)
    make = _fsdp2_moments if two else _fsdp1_moments
    gathered, buffers = make(run, inside, outside, 0 if two else layer_packed, of_layer, of_tail if two else of_rest)
    at_end = of_rest - of_tail if two and not run.shape.tied_embeddings else of_rest
    at_end_parts = tail_part if two and not run.shape.tied_embeddings else 0
    whole = layers * of_layer + of_rest
    return Shares(
        resident=resident,
        gathered=gathered,
        buffers=buffers,
        reduced_at_once=False,
        of_head=at_end_parts if two and not run.shape.tied_embeddings else of_tail,
        of_layer=layer_part,
        collected=layers * layer_part + at_end + at_end_parts,
        accumulated=max(whole, 0 if offloaded else gradients),
        flattened=0 if two else of_layer,
        updates=updates,
        host=host,
    )


def _pieces(kept: Structure, packed: int) -> list[tuple[int, int, bool]]:
    """(how many, bytes, whether trained) of this GPU's parts as they lie in host memory: under FSDP one of every layer, of the root
    and of every adapter, under FSDP2 one of every parameter."""
    inside, outside = _units(kept)
    if kept.sharding.kind == "fsdp2":
        layers = kept.shape.num_layers
        weights = [(w.count * times, _part(kept, w) // w.count, w) for unit, times in ((inside, layers), (outside, 1)) for w in unit]
        return [(count, size, kept.trains_base or w.group == "adapters") for count, size, w in weights]
    found = []
    for unit, times, also in ((inside, kept.shape.num_layers, packed), (outside, 1, 0)):
        own = [w for w in unit if w.group != "adapters"]
        found.append((times, total(_parts(kept, own, KEPT)) + formulas.part_bytes(values=also, size=1, ways=kept.sharding.ways), kept.trains_base))
        found += [(times * w.count, _part(kept, w) // w.count, True) for w in unit if w.group == "adapters"]
    return found


def _pinned_pieces(name: str, pieces: list[tuple], why: str) -> Holdings:
    """The same page-locked, each in a block of its own.

    Source: torch 2.13.0, distributed/fsdp/_flat_param.py, init_flat_param_attributes (a gradient for every part, frozen ones too);
    _fully_shard/_fsdp_param.py, _init_sharded_param (pin_memory), and _fsdp_collectives.py, foreach_reduce.
    """
    size = sum(count * formulas.pinned_bytes(size=piece) for count, piece, *_ in pieces)
    return _single(name, size, f"{why}; page-locked, powers of two", "pinned", "bytes")


def _needs_gathering(run: Structure, weights: list[Weight]) -> list[Weight]:
    """Those that are not there already in the type the layers compute in."""
    if run.sharding.ways > 1 or run.sharding.kind == "fsdp2":
        return weights
    kept = {w.name: w.itemsize for w in (*state.base_weights(stored(run)), *state.adapter_weights(stored(run)))}
    return [w for w in weights if kept[w.name] != w.itemsize]


def _fsdp1_moments(run: Structure, inside: list[Weight], outside: list[Weight], packed: int, of_layer: int, of_rest: int) -> tuple[ByMoment, ByMoment]:
    """The root stays gathered from the forward pass to the end. Backward fetches the layer before ahead, unless reentrant
    checkpointing runs the first forward pass without gradients, where FSDP plans nothing ahead.

    Source: torch 2.13.0, distributed/fsdp/_runtime_utils.py, _post_forward_reshard (root), _register_pre_backward_hooks
    (_needs_pre_backward_unshard), _pre_backward_hook (BACKWARD_PRE, the default of accelerate 1.15.0); the flat gradient of a
    unit is concatenated by autograd once all of its parameters have theirs.
    """
    root = _whole(_needs_gathering(run, outside), "the root stays gathered")
    layer = _whole(_needs_gathering(run, inside), GATHERED) + _single("quantised weights", packed if run.sharding.ways > 1 else 0, GATHERED, "packed", "bytes")
    ahead = () if run.checkpointing and run.reentrant else tuple(replace(each, why=FETCHED) for each in layer)
    upload = _uploaded(run, inside)
    next_one = ahead if run.shape.num_layers > 1 else ()
    behind = root + layer + next_one + upload
    gathered = ByMoment(root + layer + upload, root, root, behind, behind, root + layer + upload, root)
    return gathered, ByMoment(end=_single("gradients of the root in one piece", of_rest, "reduced once the embedding has its own"))


def _fsdp2_moments(run: Structure, inside: list[Weight], outside: list[Weight], packed: int, of_layer: int, of_tail: int) -> tuple[ByMoment, ByMoment]:
    """What arrives is copied out. In the forward pass the arrived buffer stays until the next one has arrived; in the backward
    pass the layer before is fetched ahead. The tail (final norm and head) stays gathered until its backward; a tied one to the end.

    Source: torch 2.13.0, distributed/fsdp/_fully_shard/_fsdp_param_group.py, wait_for_unshard, _backward_prefetch, post_backward
    (one reduce-scatter input is kept until the next); _fsdp_state.py, _post_forward; accelerate 1.15.0, utils/fsdp_utils.py,
    fsdp2_prepare_model (tail units).
    """
    tied, alone = run.shape.tied_embeddings, run.sharding.ways == 1
    table = [w for w in outside if w.group == "embedding" and not tied]
    tail = _whole([w for w in outside if w not in table], "final norm and head stay gathered")
    embedding = _whole(table, FETCHED)
    layer = _whole(inside, GATHERED)
    arrived = () if alone else tuple(replace(each, why=COPIED_OUT) for each in layer)
    ahead = () if alone else tuple(replace(each, why=FETCHED) for each in layer) if run.shape.num_layers > 1 else embedding
    behind = layer + ahead
    tail_arrived = () if alone else tuple(replace(each, why=COPIED_OUT) for each in tail)
    always, upload = tail if tied else (), _uploaded(run, inside)
    gathered = ByMoment(
        always + layer + arrived + upload, tail + (arrived if tied else tail_arrived), tail, always + behind + upload, always + behind + upload,
        always + layer + (() if alone else embedding) + upload, always + embedding,
    )
    sent_layer = _single("gradients of the layer before, as they were sent", of_layer, "kept until the next are sent")
    sent_tail = _single("gradients of the tail, as they were sent", 0 if tied else of_tail, "kept until the next are sent")
    return gathered, ByMoment(last=sent_tail, middle=sent_layer, first=sent_layer, end=sent_layer)


def _uploaded(run: Structure, inside: list[Weight]) -> Holdings:
    """This GPU's part of a layer on its way from the host.

    Source: torch 2.13.0, distributed/fsdp/_flat_param.py, pre_unshard; _fully_shard/_fsdp_param.py, all_gather_inputs.
    """
    if run.sharding.offload == "none":
        return ()
    return _single("this GPU’s part of the layer", total(_parts(run, inside, KEPT)), "uploaded from host memory")
