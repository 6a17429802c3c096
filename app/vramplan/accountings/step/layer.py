"""One decoder layer on a tape. Source: transformers 5.24.0, models/llama/modeling_llama.py, LlamaDecoderLayer.forward;
models/gemma2 (norms after attention and MLP), models/qwen3 (query/key norms), models/phi3 (fused projections)."""

from vramplan.accountings.step.delta_net import delta_net
from vramplan.accountings.step.experts import routed_experts
from vramplan.accountings.step.fused_adapters import HEADS, MLP, OUTPUT, fused_heads, fused_mlp, fused_output, fuses
from vramplan.accountings.step.kernels import fused_gate, rotate_in_place
from vramplan.accountings.step.latent import latent_attention, rotate_parts
from vramplan.accountings.step.operations import (
    activate,
    add,
    attended,
    cast,
    dropout,
    multiply,
    norm,
    projection,
    scale,
)
from vramplan.accountings.step.short_convolution import short_convolution
from vramplan.accountings.step.sinks import attention_with_sinks
from vramplan.accountings.step.structure import HALF, LITGPT, SINGLE, TORCHTUNE, TRANSFORMERS, Structure
from vramplan.accountings.step.tape import TOKENS, Tape, Tensor
from vramplan.architecture import DELTA_NET, SHORT_CONVOLUTION

MIXERS = {SHORT_CONVOLUTION: short_convolution, DELTA_NET: delta_net}
"""What may stand in place of attention."""


def normed_size(run: Structure) -> int:
    """Bytes per value of what a norm gives for input of the embedding's type: LayerNorm runs in float32 under autocast, a
    float32 weight makes an RMSNorm's output float32, and the others and fused kernels give back the type that came in."""
    kind = run.shape.norm
    if run.norm_kernel != "transformers":
        return run.embedding_size
    if run.autocast and kind in ("layer", "layer-half"):
        return SINGLE if kind == "layer" else HALF
    if kind in ("rms", "rms-cast") and not run.shape.weighs_in_float32:
        return max(run.embedding_size, run.norm_size)
    return run.embedding_size


def residual_size(run: Structure) -> int:
    """Bytes per value of the residual stream: the type of the embeddings, or that of a norm's output once a quantised layer
    has given it back, or where a norm comes after a block or after the embedding."""
    shape = run.shape
    normed = run.quantization or shape.extra_norms or shape.norms_after or shape.embedding_norm
    return max(run.embedding_size, normed_size(run)) if normed else run.embedding_size


def decoder_layer(run: Structure, *, external_input: bool) -> Tape:
    """The tape of one layer. `external_input`: the layer's input is somebody else's, such as a checkpoint; otherwise transformers’ loop
    over the layers has a variable with it until the layer is done. Source: transformers 5.24.0, models/llama/modeling_llama.py, LlamaModel.forward.
    """
    tape = Tape(recomputed=run.checkpointing and not run.reentrant, reentrant=run.checkpointing and run.reentrant)
    x = Tensor("layer input", run.shape.hidden_size, residual_size(run), external=external_input)
    if run.shape.parallel_blocks:
        _side_by_side(tape, run, x)
    else:
        _one_after_the_other(tape, run, x)
    if not external_input and run.model_code == TRANSFORMERS:
        tape.operations[-1].reads += (x,)
    return tape


def _one_after_the_other(tape: Tape, run: Structure, x: Tensor) -> None:
    normed = _norm_before(tape, run, x, "input norm")
    mixed = MIXERS.get(run.shape.mixer, _attention)(tape, run, normed)
    x = add(tape, x, _block_output(tape, run, mixed, "attention"), "residual after attention")
    normed = _norm_before(tape, run, x, "norm before MLP")
    inner = _mlp(tape, run, normed)
    tape.operations[-1].reads += (normed,)
    add(tape, x, _block_output(tape, run, inner, "MLP"), "layer output")


def _side_by_side(tape: Tape, run: Structure, x: Tensor) -> None:
    """Source: transformers 5.24.0, models/gpt_neox/modeling_gpt_neox.py, GPTNeoXLayer.forward; with one norm
    models/gptj/modeling_gptj.py, GPTJBlock.forward."""
    normed = _norm_before(tape, run, x, "input norm")
    attended = _block_output(tape, run, _attention(tape, run, normed), "attention")
    if not run.shape.shared_norm:
        normed = _norm_before(tape, run, x, "norm before MLP")
    inner = _mlp(tape, run, normed)
    tape.operations[-1].reads += (normed,)
    both = add(tape, attended, _block_output(tape, run, inner, "MLP"), "attention and MLP")
    add(tape, both, x, "layer output")


def _norm_before(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """What a block reads: x itself where norms come after the blocks. Source: transformers 5.24.0, models/olmo2/modeling_olmo2.py."""
    return x if run.shape.norms_after else norm(tape, run, x, x.width, name, weight_size=run.norm_size)


def _block_output(tape: Tape, run: Structure, x: Tensor, block: str) -> Tensor:
    """What a block adds to the residual stream. Source: transformers 5.24.0, models/gpt2/modeling_gpt2.py (dropout),
    models/gemma2/modeling_gemma2.py (norm), models/granite/modeling_granite.py (scale)."""
    if run.shape.residual_dropout:
        x = dropout(tape, x, f"{block} output")
    if run.shape.extra_norms or run.shape.norms_after:
        x = norm(tape, run, x, x.width, f"norm after {block}", weight_size=run.norm_size)
    return scale(tape, x, f"{block} output, scaled") if run.shape.scaled_residual else x


def _attention(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    shape = run.shape
    if shape.kv_lora_rank:
        return latent_attention(tape, run, x, rotary_size=residual_size(run))
    query, key, value = _heads(tape, run, x)
    if shape.attention_gate:
        query, gate = _query_and_gate(tape, run, query)
    if shape.query_key_norms:
        query = norm(tape, run, query, shape.head_dim, "query norm", weight_size=run.norm_size, rows=shape.num_attention_heads)
        key = norm(tape, run, key, shape.head_dim, "key norm", weight_size=run.norm_size, rows=shape.num_kv_heads)
    if shape.wide_query_key_norms:
        query = norm(tape, run, query, query.width, "query norm", weight_size=run.norm_size)
        key = norm(tape, run, key, key.width, "key norm", weight_size=run.norm_size)
    if not (shape.learned_positions or shape.alibi):
        rotate = _rotate_compiled if run.compiled else {LITGPT: _rotate_in_float32, TORCHTUNE: _rotate_pairs}.get(run.model_code, _rotate)
        given = (query, key) if rotate is _rotate else ()
        query, key = rotate(tape, run, query, "queries"), rotate(tape, run, key, "keys")
        tape.operations[-1].reads += given
    together = (attention_with_sinks if shape.attention_sinks else attended)(tape, run, query, key, value)
    if shape.attention_gate:
        opened = Tensor("open gate of attention", gate.width, gate.itemsize)
        tape.add("sigmoid", (gate,), opened, saves=(opened,))
        together = multiply(tape, run, together, opened, "gated attention")
    output = fused_output(tape, run, together) if fuses(run, together, OUTPUT) else projection(tape, run, together, OUTPUT)
    tape.operations[-1].reads += (x, query, key, value)
    return output


def _heads(tape: Tape, run: Structure, x: Tensor) -> tuple[Tensor, ...]:
    if run.fuses_heads:
        return _slices_of_one(tape, run, x)
    if fuses(run, x, HEADS):
        return fused_heads(tape, run, x)
    return tuple(projection(tape, run, x, (name,)) for name in HEADS)


def _query_and_gate(tape: Tape, run: Structure, both: Tensor) -> tuple[Tensor, Tensor]:
    """Queries, and a gate of the same width that is copied out of the same map. Source: transformers 5.24.0,
    models/qwen3_5/modeling_qwen3_5.py, Qwen3_5Attention.forward."""
    query, gate = (Tensor(name, run.shape.query_width, both.itemsize, base=both) for name in ("queries", "gate of attention"))
    tape.add_views("chunk", both, (query, gate))
    return query, tape.add("contiguous", (gate,), Tensor("gate of attention", gate.width, gate.itemsize))


def _slices_of_one(tape: Tape, run: Structure, x: Tensor) -> tuple[Tensor, ...]:
    fused = projection(tape, run, x, ("q", "k", "v"))
    widths = (run.shape.query_width, run.shape.kv_width, run.shape.kv_width)
    return tuple(
        tape.add("slice", (fused,), Tensor(name, width, fused.itemsize, base=fused), view=True)
        for name, width in zip(("queries", "keys", "values"), widths, strict=True)
    )


def _rotate(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """Rotary positions: x * cos + rotate_half(x) * sin; cos and sin have the type of the residual stream.

    Source: transformers 5.24.0, models/llama/modeling_llama.py, apply_rotary_pos_emb.
    """
    fused = run.mlp_kernel != "transformers" or run.norm_kernel == "unsloth"
    if fused and not run.shape.partial_rotary:
        return rotate_in_place(tape, run, x, name)
    if run.shape.attention_sinks:
        return _rotate_both_halves(tape, run, x, name)
    size = max(x.itemsize, residual_size(run))
    turned = tape.add("rotate half", (x,), Tensor(f"{name}, halves swapped", x.width, x.itemsize))
    straight = tape.add("rotate", (x,), Tensor(f"{name} times cosine", x.width, size))
    turned = tape.add("rotate", (turned,), Tensor(f"{name} times sine", x.width, size))
    return add(tape, straight, turned, name)


def _rotate_both_halves(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """Rotary positions of the first and the second half of a head by themselves. Source: transformers 5.24.0,
    models/gpt_oss/modeling_gpt_oss.py, _apply_rotary_emb."""
    first, second = (Tensor(f"{name}, {place} halves", x.width // 2, x.itemsize, base=x) for place in ("first", "second"))
    tape.add_views("chunk", x, (first, second))
    return rotate_parts(tape, first, second, name, residual_size(run))


def _rotate_in_float32(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """Rotary positions with float32 cos and sin, put together with what is not turned in a new tensor.

    Source: litgpt 0.4.0, model.py, apply_rope, CausalSelfAttention.forward; GPT.max_seq_length makes cos and sin anew.
    """
    turned = tape.add("rotate half", (x,), Tensor(f"{name}, halves swapped", x.width, x.itemsize))
    straight = tape.add("rotate", (x,), Tensor(f"{name} times cosine", x.width, SINGLE))
    turned = tape.add("rotate", (turned,), Tensor(f"{name} times sine", x.width, SINGLE))
    turned = cast(tape, add(tape, straight, turned, f"{name} in float32"), x.itemsize, f"{name}, turned")
    return tape.add("cat", (turned,), Tensor(name, x.width, x.itemsize), shares=True)


def _rotate_compiled(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """Rotary positions in one compiled kernel. Source: torchtune 0.6.1, training/_compile.py, compile_model: layer by layer."""
    return tape.add("rotate", (x,), Tensor(name, x.width, x.itemsize))


def _rotate_pairs(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """Rotary positions of pairs of values, in float32. Source: torchtune 0.6.1, modules/position_embeddings.py,
    RotaryPositionalEmbeddings.forward."""
    x32 = cast(tape, x, SINGLE, f"{name} in float32")
    halves = []
    for half in ("first", "second"):
        straight = tape.add("rotate", (x32,), Tensor(f"{name}, {half} of each pair times cosine", x.width // 2, SINGLE))
        crossed = tape.add("rotate", (x32,), Tensor(f"{name}, {half} of each pair times sine", x.width // 2, SINGLE))
        halves.append(add(tape, straight, crossed, f"{name}, {half} of each pair turned"))
    turned = tape.add("stack", tuple(halves), Tensor(f"{name}, turned", x.width, SINGLE), reads=(x32,))
    return cast(tape, turned, x.itemsize, name)


def _mlp(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    """The MLP, or the experts, with the shared ones beside them: before them where these have a gate.

    Source: transformers 5.24.0, models/qwen2_moe/modeling_qwen2_moe.py, Qwen2MoeSparseMoeBlock.forward;
    models/deepseek_v3/modeling_deepseek_v3.py, DeepseekV3MoE.forward.
    """
    if not run.shape.num_experts:
        return _one_mlp(tape, run, x)
    if not run.mlp_width:
        return routed_experts(tape, run, x)
    if not run.shape.shared_expert_gate:
        return add(tape, routed_experts(tape, run, x), _one_mlp(tape, run, x), "experts and shared expert")
    shared = _one_mlp(tape, run, x)
    routed = routed_experts(tape, run, x)
    return add(tape, routed, _gated(tape, run, x, shared), "experts and shared expert")


def _gated(tape: Tape, run: Structure, x: Tensor, shared: Tensor) -> Tensor:
    """What a shared expert makes times a sigmoid of a map (1, H). The gate is a linear map, so a quantised base quantises it."""
    gate = projection(tape, run, x, ("shared gate",))
    opened = Tensor("shared expert’s gate, open", 1, gate.itemsize)
    tape.add("sigmoid", (gate,), opened, saves=(opened,))
    product = Tensor("shared expert, gated", shared.width, max(shared.itemsize, opened.itemsize))
    return tape.add("product", (opened, shared), product, saves=(opened, shared), scratch=((TOKENS, product.bytes),))


def _one_mlp(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    if not run.shape.plain_mlp and fuses(run, x, MLP):
        return fused_mlp(tape, run, x)
    if run.shape.plain_mlp:
        product = activate(tape, run, projection(tape, run, x, ("up",)), "activated up")
    elif run.fuses_gate_up:
        fused = projection(tape, run, x, ("gate", "up"))
        gate, up = (Tensor(name, run.mlp_width, fused.itemsize, base=fused) for name in ("gate", "up"))
        tape.add_views("chunk", fused, (gate, up))
        if run.mlp_kernel != "transformers":
            output = projection(tape, run, fused_gate(tape, gate, up, "gate times up"), ("down",))
            tape.operations[-1].reads += (gate, up)
            return output
        product = multiply(tape, run, up, activate(tape, run, gate, "activated gate"), "gate times up")
    elif run.mlp_kernel != "transformers" and run.shape.activation == "fused":
        gate, up = projection(tape, run, x, ("gate",)), projection(tape, run, x, ("up",))
        product = fused_gate(tape, gate, up, "gate times up")
    else:
        gate = activate(tape, run, projection(tape, run, x, ("gate",)), "activated gate")
        product = multiply(tape, run, gate, projection(tape, run, x, ("up",)), "gate times up")
    return projection(tape, run, product, ("down",))
