"""One decoder layer on a tape. Source: transformers 5.24.0, models/llama/modeling_llama.py, LlamaDecoderLayer.forward;
models/gemma2 (norms after attention and MLP), models/qwen3 (query/key norms), models/phi3 (fused projections)."""

from vramplan.accountings.step.operations import (
    activate,
    add,
    eager_attention,
    fused_attention,
    math_attention,
    multiply,
    norm,
    projection,
)
from vramplan.accountings.step.structure import Structure
from vramplan.accountings.step.tape import Tape, Tensor


def residual_size(run: Structure) -> int:
    """Bytes per value of the residual stream: the type of the embeddings, or float32 once a float32 norm has fed a
    quantised layer. Norms of the Gemma kind give back the type that came in."""
    float32_norms = run.norm_size if run.quantization and not run.shape.extra_norms else 0
    return max(run.embedding_size, float32_norms)


def decoder_layer(run: Structure, *, external_input: bool) -> Tape:
    """The tape of one layer. `external_input`: the layer's input is somebody else's, such as a checkpoint."""
    tape = Tape()
    x = Tensor("layer input", run.shape.hidden_size, residual_size(run), external=external_input)
    normed = norm(tape, run, x, x.width, "input norm", weight_size=run.norm_size)
    attended = _attention(tape, run, normed)
    if run.shape.extra_norms:
        attended = norm(tape, run, attended, x.width, "norm after attention", weight_size=run.norm_size)
    x = add(tape, x, attended, "residual after attention")
    normed = norm(tape, run, x, x.width, "norm before MLP", weight_size=run.norm_size)
    inner = _mlp(tape, run, normed)
    tape.operations[-1].reads += (normed,)
    if run.shape.extra_norms:
        inner = norm(tape, run, inner, x.width, "norm after MLP", weight_size=run.norm_size)
    add(tape, x, inner, "layer output")
    return tape


def _attention(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    shape = run.shape
    query, key, value = _fused_heads(tape, run, x) if run.shape.fused_projections else _separate_heads(tape, run, x)
    if shape.query_key_norms:
        query = norm(tape, run, query, shape.head_dim, "query norm", weight_size=run.norm_size, rows=shape.num_attention_heads)
        key = norm(tape, run, key, shape.head_dim, "key norm", weight_size=run.norm_size, rows=shape.num_kv_heads)
    query, key = _rotate(tape, run, query, "queries"), _rotate(tape, run, key, "keys")
    attention = {"eager": eager_attention, "math": math_attention}.get(run.attention, fused_attention)
    output = projection(tape, run, attention(tape, run, query, key, value), ("o",))
    tape.operations[-1].reads += (x, query, key, value)
    return output


def _separate_heads(tape: Tape, run: Structure, x: Tensor) -> tuple[Tensor, ...]:
    return tuple(projection(tape, run, x, (name,)) for name in ("q", "k", "v"))


def _fused_heads(tape: Tape, run: Structure, x: Tensor) -> tuple[Tensor, ...]:
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
    size = max(x.itemsize, residual_size(run))
    turned = tape.add("rotate half", (x,), Tensor(f"{name}, halves swapped", x.width, x.itemsize))
    straight = tape.add("rotate", (x,), Tensor(f"{name} times cosine", x.width, size))
    turned = tape.add("rotate", (turned,), Tensor(f"{name} times sine", x.width, size))
    return add(tape, straight, turned, name)


def _mlp(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    if run.shape.fused_projections:
        fused = projection(tape, run, x, ("gate", "up"))
        gate, up = (Tensor(name, run.shape.intermediate_size, fused.itemsize, base=fused) for name in ("gate", "up"))
        tape.add_views("chunk", fused, (gate, up))
        product = multiply(tape, up, activate(tape, gate, "activated gate"), "gate times up")
    else:
        gate = activate(tape, projection(tape, run, x, ("gate",)), "activated gate")
        product = multiply(tape, gate, projection(tape, run, x, ("up",)), "gate times up")
    return projection(tape, run, product, ("down",))
