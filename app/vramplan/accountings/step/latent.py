"""Multi-head latent attention (MLA) on a tape: keys and values, and often queries, come out of narrow tensors.

Only a part of each query and key head has rotary positions, and that part of the keys is one for all heads; value heads have a width
of their own. Source: transformers 5.24.0, models/deepseek_v3/modeling_deepseek_v3.py, DeepseekV3Attention; models/deepseek_v2 (complex
rotary positions); models/minicpm3 (halves), whose attention is the same.
"""

from vramplan.accountings.step.operations import add, attended, cast, norm, projection
from vramplan.accountings.step.structure import SINGLE, Structure
from vramplan.accountings.step.tape import TOKENS, Tape, Tensor


def latent_attention(tape: Tape, run: Structure, x: Tensor, *, rotary_size: int) -> Tensor:
    """What attention makes of x. rotary_size: bytes per value of cos and sin."""
    shape, heads = run.shape, run.shape.num_attention_heads
    all_queries = _queries(tape, run, x)
    still, turning = (
        Tensor(name, heads * width, all_queries.itemsize, base=all_queries)
        for name, width in (("queries without rotary positions", shape.qk_nope_head_dim), ("queries to turn", shape.qk_rope_head_dim))
    )
    tape.add_views("split", all_queries, (still, turning))
    narrow = projection(tape, run, x, ("kv_a",))
    latent = Tensor("narrow keys and values", shape.kv_lora_rank, narrow.itemsize, base=narrow)
    shared = Tensor("shared key to turn", shape.qk_rope_head_dim, narrow.itemsize, base=narrow)
    tape.add_views("split", narrow, (latent, shared))
    latent = norm(tape, run, latent, latent.width, "norm of narrow keys and values", weight_size=run.norm_size)
    rotate = ROTATIONS[shape.rotary]
    turned, shared = rotate(tape, turning, "queries", rotary_size), rotate(tape, shared, "shared key", rotary_size)
    queries = _together(tape, run, still, turned)
    keys, values, both = _keys_and_values(tape, run, latent, shared)
    attention = attended(tape, run, queries, keys, values)
    output = projection(tape, run, attention, ("o",))
    tape.operations[-1].reads += (x, all_queries, narrow, latent, turned, shared, queries, keys, both)
    return output


def _queries(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    """All query heads: one map, or two with a norm between them."""
    if not run.shape.q_lora_rank:
        return projection(tape, run, x, ("q",))
    narrow = projection(tape, run, x, ("q_a",))
    narrow = norm(tape, run, narrow, narrow.width, "norm of narrow queries", weight_size=run.norm_size)
    return projection(tape, run, narrow, ("q_b",))


def _together(tape: Tape, run: Structure, still: Tensor, turned: Tensor) -> Tensor:
    """Both parts of all queries in one tensor; under autocast the narrower type becomes the other first.

    Source: torch 2.13.0, cat; ATen/autocast_mode.h, AT_FORALL_PROMOTE.
    """
    size = max(still.itemsize, turned.itemsize)
    if run.autocast:
        still, turned = (cast(tape, part, size, part.name) for part in (still, turned))
    return tape.add("cat", (still, turned), Tensor("queries", run.shape.query_width, size), shares=True)


def _keys_and_values(tape: Tape, run: Structure, latent: Tensor, shared: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """All key heads, all value heads, and the tensor that these are a part of. Keys are written part by part into a new tensor, and
    so are their gradients: a copy of the whole for each part, and one of the part.

    Source: transformers 5.24.0, models/deepseek_v3/modeling_deepseek_v3.py, DeepseekV3Attention.expand_kv; torch 2.13.0,
    csrc/autograd/functions/tensor.cpp, CopySlices.
    """
    shape, heads = run.shape, run.shape.num_attention_heads
    both = projection(tape, run, latent, ("kv_b",))
    still = Tensor("keys without rotary positions", heads * shape.qk_nope_head_dim, both.itemsize, base=both)
    values = Tensor("values", shape.attended_width, both.itemsize, base=both)
    tape.add_views("split", both, (still, values))
    begun = Tensor("keys", shape.query_width, both.itemsize)
    tape.add("copy", (still,), begun, scratch=((TOKENS, begun.bytes),))
    keys, turned = Tensor("keys", begun.width, begun.itemsize, base=begun), heads * shape.qk_rope_head_dim * both.itemsize
    tape.add("copy", (begun, shared), keys, view=True, scratch=((TOKENS, turned),))
    return keys, values, both


def _rotate_halves(tape: Tape, x: Tensor, name: str, rotary_size: int) -> Tensor:
    """x * cos + rotate_half(x) * sin. Source: transformers 5.24.0, models/minicpm3/modeling_minicpm3.py, apply_rotary_pos_emb."""
    size = max(x.itemsize, rotary_size)
    straight = tape.add("rotate", (x,), Tensor(f"{name} times cosine", x.width, size))
    swapped = tape.add("rotate half", (x,), Tensor(f"{name}, halves swapped", x.width, x.itemsize))
    return add(tape, straight, tape.add("rotate", (swapped,), Tensor(f"{name} times sine", x.width, size)), f"{name}, turned")


def _rotate_pairs(tape: Tape, x: Tensor, name: str, rotary_size: int) -> Tensor:
    """The first and the second of each pair of values by themselves, and both results in one tensor.

    Source: transformers 5.24.0, models/deepseek_v3/modeling_deepseek_v3.py, apply_rotary_pos_emb_interleave.
    """
    first, second = (
        tape.add("slice", (x,), Tensor(f"{name}, {place} of each pair", x.width // 2, x.itemsize, base=x), view=True) for place in ("first", "second")
    )
    return rotate_parts(tape, first, second, name, rotary_size)


def rotate_parts(tape: Tape, first: Tensor, second: Tensor, name: str, rotary_size: int) -> Tensor:
    """Two parts of each head, each times cosine and the other times sine, and both results in one tensor. Source: as _rotate_pairs."""
    size, half, halves = max(first.itemsize, rotary_size), first.width, []
    for one, other in ((first, second), (second, first)):
        straight = tape.add("rotate", (one,), Tensor(f"{one.name} times cosine", half, size))
        crossed = tape.add("rotate", (other,), Tensor(f"{other.name} times sine", half, size))
        halves.append(add(tape, straight, crossed, f"{one.name}, turned"))
    return tape.add("cat", tuple(halves), Tensor(f"{name}, turned", 2 * half, size), shares=True)


def _rotate_complex(tape: Tape, x: Tensor, name: str, rotary_size: int) -> Tensor:
    """Pairs of float32 values times complex numbers, in the type that came in. Source: transformers 5.24.0,
    models/deepseek_v2/modeling_deepseek_v2.py, apply_rotary_emb."""
    x32 = cast(tape, x, SINGLE, f"{name} in float32")
    turned = tape.add("rotate", (x32,), Tensor(f"{name} in float32, turned", x.width, SINGLE))
    return cast(tape, turned, x.itemsize, f"{name}, turned")


ROTATIONS = {"halves": _rotate_halves, "pairs": _rotate_pairs, "complex": _rotate_complex}
"""How the rotary part is turned, by name."""
