"""Attention with sinks on a tape: a learned number for each head stands beside the scores, takes its share of the softmax and is left out.

No kernel of PyTorch’s takes sinks, so a run writes the scores out unless it asks for a kernel that does, which is not counted: flex attention,
or FlashAttention 3 or 4 from elsewhere. Source: transformers 5.24.0, models/gpt_oss/modeling_gpt_oss.py, eager_attention_forward and
GptOssPreTrainedModel (_supports_sdpa, _compatible_flash_implementations); modeling_utils.py, get_correct_attn_implementation.
"""

from vramplan.accountings.step.operations import INDEX_SIZE, SOFTMAX_PRODUCTS, cast, repeat_heads, scale
from vramplan.accountings.step.structure import HALF, Structure
from vramplan.accountings.step.tape import PAIRS, TOKENS, Tape, Tensor

SOFTMAX_TENSORS = 3
"""Tensors as large as the scores that softmax's backward holds beside what it has saved: what comes in, what it gives, their product.
Source: torch 2.13.0, ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out."""


def attention_with_sinks(tape: Tape, run: Structure, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """What attention makes of its heads. The scores (B, n, S, S) have one column more from where the sinks are beside them, of which the
    largest is taken away before the softmax, in the wider type of the two. A variable of the layer keeps the weights until its MLP is done.

    Source: transformers 5.24.0, models/gpt_oss/modeling_gpt_oss.py, eager_attention_forward; torch 2.13.0, ATen/autocast_mode.h,
    AT_FORALL_PROMOTE (cat); csrc/autograd/FunctionsManual.cpp, value_selecting_reduction_backward.
    """
    heads, value_size = run.shape.num_attention_heads, value.itemsize
    key, value = repeat_heads(tape, run, key, "repeated keys"), repeat_heads(tape, run, value, "repeated values")
    held = key, value
    score_size = HALF if run.autocast else query.itemsize
    query, key = (cast(tape, x, score_size, f"16-bit {x.name}") for x in (query, key))
    scores = tape.add("scores", (query, key), Tensor("scores", heads, score_size, PAIRS), saves=(query, key))
    masked = Tensor("masked scores", heads, score_size, PAIRS)
    tape.add("mask", (scale(tape, scores, "scaled scores"),), masked, shares=True)
    weights, lowered = _weights(tape, run, masked)
    seen = tape.add("slice", (weights,), Tensor("attention weights of tokens", heads, weights.itemsize, PAIRS, base=weights), view=True, reads=(masked,))
    seen = cast(tape, seen, value_size, "attention weights in the type of the values")
    (seen.base or seen).held = True
    seen = cast(tape, seen, score_size, "16-bit attention weights")
    value = cast(tape, value, score_size, "16-bit values")
    output = Tensor("attention output", run.shape.attended_width, score_size)
    tape.add("weighted values", (seen, value), output, saves=(seen, value))
    copied = Tensor("attention output", output.width, score_size)
    return tape.add("contiguous", (output,), copied, shares=True, reads=(*held, lowered, weights))


def _weights(tape: Tape, run: Structure, masked: Tensor) -> tuple[Tensor, Tensor]:
    """The softmax over scores and sinks, and what it was taken of. Taking the largest away negates its gradient first and adds that up after."""
    heads, size = masked.width, max(masked.itemsize, run.embedding_size)
    column = (TOKENS, heads * size)
    beside = tape.add(
        "cat", (cast(tape, masked, size, "masked scores in the sinks’ type"),), Tensor("scores and sinks", heads, size, PAIRS), shares=True,
        forward_scratch=(column,),
    )
    largest = Tensor("largest scores", heads, size)
    tape.add("largest", (beside,), largest, saves=(Tensor("places of the largest scores", heads, INDEX_SIZE),))
    lowered = Tensor("scores and sinks, lowered", heads, size, PAIRS)
    tape.add("subtract", (beside, largest), lowered, shares=True, scratch=((PAIRS, heads * size), column), forward_scratch=(column, column))
    weights = Tensor("attention weights", heads, size, PAIRS)
    of_sinks = Tensor("attention weights of sinks", heads, size)
    tape.add(
        "softmax", (lowered,), weights, saves=(weights, of_sinks),
        scratch=((PAIRS, SOFTMAX_PRODUCTS * heads * size), (TOKENS, SOFTMAX_TENSORS * heads * size)),
    )
    return weights, lowered
