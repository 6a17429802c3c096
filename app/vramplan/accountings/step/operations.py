"""Operations of a decoder as the libraries run them, written on a tape. Every function returns its output tensor.

Widths are elements per token. Names say what a tensor is to a reader of the ledger.
"""

from vramplan.constants import INT8_BYTES
from vramplan.accountings.step.structure import HALF, SINGLE, Structure
from vramplan.accountings.step.tape import FIXED, PAIRS, TOKENS, Tape, Tensor

SOFTMAX_PRODUCTS = 1
"""float32 score tensors that the kernel of softmax's backward holds besides output, gradient and result: their product.
Source: torch 2.13.0, ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out."""

MASK_SIZE = 1
"""Bytes per value of a dropout mask: bool. Source: torch 2.13.0, native_dropout."""


def cast(tape: Tape, x: Tensor, size: int, name: str = "") -> Tensor:
    """x in another type; x itself where it has that type already. Source: torch 2.13.0, Tensor.to."""
    if x.itemsize == size:
        return x
    return tape.add("cast", (x,), Tensor(name or x.name, x.width, size, x.growth))


def add(tape: Tape, a: Tensor, b: Tensor, name: str, reads: tuple[Tensor, ...] = ()) -> Tensor:
    """a + b in the wider of the two types; their gradients are the one that comes in. Source: torch 2.13.0, AddBackward0."""
    total = Tensor(name, a.width, max(a.itemsize, b.itemsize), a.growth)
    return tape.add("add", (a, b), total, shares=True, reads=reads)


def scale(tape: Tape, x: Tensor, name: str) -> Tensor:
    """x times a number: nothing is saved. Source: torch 2.13.0, MulBackward0 with a scalar."""
    return tape.add("scale", (x,), Tensor(name, x.width, x.itemsize, x.growth))


def multiply(tape: Tape, a: Tensor, b: Tensor, name: str) -> Tensor:
    """a * b, both saved. Source: torch 2.13.0, MulBackward0."""
    return tape.add("product", (a, b), Tensor(name, a.width, max(a.itemsize, b.itemsize), a.growth), saves=(a, b))


def activate(tape: Tape, x: Tensor, name: str) -> Tensor:
    """SiLU or GELU, which saves its input. Source: torch 2.13.0, SiluBackward0, GeluBackward0."""
    return tape.add("activation", (x,), Tensor(name, x.width, x.itemsize), saves=(x,))


def tanh(tape: Tape, x: Tensor, name: str) -> Tensor:
    """tanh, which saves its output. Source: torch 2.13.0, TanhBackward0."""
    output = Tensor(name, x.width, x.itemsize, x.growth)
    return tape.add("tanh", (x,), output, saves=(output,))


def softcap(tape: Tape, x: Tensor, name: str) -> Tensor:
    """x / cap through tanh, times cap. Source: transformers 5.24.0, models/gemma2/modeling_gemma2.py."""
    return scale(tape, tanh(tape, scale(tape, x, name), f"{name}, capped"), f"{name}, capped and scaled")


def norm(tape: Tape, run: Structure, x: Tensor, width: int, name: str, *, weight_size: int, rows: int = 1) -> Tensor:
    """RMSNorm over `width` values; `rows` of them per token.

    Source: transformers 5.24.0, models/llama/modeling_llama.py, LlamaRMSNorm.forward; with extra_norms
    models/gemma2/modeling_gemma2.py, Gemma2RMSNorm.forward.
    """
    if run.norm_kernel == "triton":
        return _fused_norm(tape, x, name, rows=rows)
    full = rows * width
    x32 = cast(tape, x, SINGLE, f"{name}: input in float32")
    square = tape.add("norm square", (x32,), Tensor(f"{name}: square", full, SINGLE), saves=(x32,), scratch=((TOKENS, full * SINGLE),) * 2)
    inverse = Tensor(f"{name}: inverse root mean square", rows, SINGLE)
    tape.add("norm mean", (square,), inverse, saves=(inverse,))
    normed = tape.add(
        "norm", (x32, inverse), Tensor(f"{name}: normalised", full, SINGLE), saves=(x32, inverse), scratch=((TOKENS, full * SINGLE),)
    )
    if run.shape.extra_norms:
        output = Tensor(f"{name}: weighted", full, SINGLE)
        tape.add("norm weight", (normed,), output, saves=(normed,) if run.trains_base else ())
        return cast(tape, output, x.itemsize, f"{name}: output")
    normed = cast(tape, normed, x.itemsize, f"{name}: normalised")
    output = Tensor(f"{name}: output", full, max(x.itemsize, weight_size))
    scratch = ((TOKENS, full * output.itemsize),) if run.trains_base else ()
    return tape.add("norm weight", (normed,), output, saves=(normed,) if run.trains_base else (), scratch=scratch)


def _fused_norm(tape: Tape, x: Tensor, name: str, *, rows: int) -> Tensor:
    """A norm in one kernel: it keeps its input and one number per row. Source: fms-acceleration-foak, Fast_RMS_Layernorm."""
    inverse = Tensor(f"{name}: inverse root mean square", rows, SINGLE)
    return tape.add("norm", (x,), Tensor(f"{name}: output", x.width, x.itemsize), saves=(x, inverse))


def linear(tape: Tape, run: Structure, x: Tensor, sizes: tuple[int, int], name: str, *, weight_size: int, trained: bool) -> Tensor:
    """x times a 16- or 32-bit weight (out, in). Source: torch 2.13.0, nn.functional.linear under torch.autocast.

    A trained weight keeps the input for its gradient. Under autocast a float32 weight or input becomes a 16-bit copy,
    one for every call.
    """
    width_in, width_out = sizes
    values = width_in * width_out
    if run.autocast:
        x = cast(tape, x, HALF, f"{name}: 16-bit input")
    saves = (x,) if trained else ()
    gradient_scratch = 0
    if run.autocast and weight_size == SINGLE:
        saves = (*saves, Tensor(f"{name}: 16-bit weight", values, HALF, FIXED))
        gradient_scratch = HALF * values if trained else 0
    output = Tensor(f"{name}: output", width_out, x.itemsize)
    gradient = weight_size * values if trained else 0
    return tape.add(name, (x,), output, saves=saves, gradient=gradient, gradient_scratch=gradient_scratch)


def quantized_linear(tape: Tape, run: Structure, x: Tensor, sizes: tuple[int, int], name: str) -> Tensor:
    """x times a quantised weight, expanded to 16 bits while it is used, forward and backward; the output has x's type.

    Source: bitsandbytes 0.49.0, nn/modules.py, Linear4bit.forward; autograd/_functions.py, MatMul4Bit.
    """
    width_in, width_out = sizes
    expanded = ((FIXED, HALF * width_in * width_out),)
    half = cast(tape, x, HALF, f"{name}: 16-bit input")
    output = Tensor(f"{name}: output", width_out, HALF)
    tape.add(name, (half,), output, scratch=expanded, forward_scratch=expanded)
    return cast(tape, output, x.itemsize, f"{name}: output")


def int8_linear(tape: Tape, run: Structure, x: Tensor, sizes: tuple[int, int], name: str) -> Tensor:
    """x times an 8-bit weight. The input is kept, though only its shape is needed; backward expands the weight to x's type.

    Forward holds the input in 8 bits, the product as int32 and its 16-bit form.
    Source: bitsandbytes 0.50.2, autograd/_functions.py, MatMul8bitLt; nn/modules.py, Linear8bitLt.forward.
    """
    width_in, width_out = sizes
    work = ((TOKENS, INT8_BYTES * width_in + (SINGLE + HALF) * width_out),)
    expanded = ((FIXED, x.itemsize * width_in * width_out),)
    output = Tensor(f"{name}: output", width_out, x.itemsize)
    return tape.add(name, (x,), output, saves=(x,), scratch=expanded, forward_scratch=work, escapes=True)


def adapter(tape: Tape, run: Structure, x: Tensor, result: Tensor, sizes: tuple[int, int], name: str, *, quantized: bool) -> Tensor:
    """The low-rank pair beside a linear map: result + B(A(dropout(x))) * scaling.

    Source: peft 0.21.2, tuners/lora/layer.py, Linear.forward; tuners/lora/bnb.py, Linear4bit.forward.
    """
    width_in, width_out = sizes
    given, size = (x,), HALF if run.autocast else run.adapter_size
    if quantized and run.quantization != "int8":
        result = tape.add("clone", (result,), Tensor(result.name, result.width, result.itemsize), shares=True)
    if not (quantized and run.autocast):
        x = cast(tape, x, run.adapter_size, f"{name} adapter: input")
        given = (*given, x)
    if run.dropout:
        x = _dropout(tape, run, x, f"{name} adapter", fused=quantized and run.adapter_kernel == "fused")
    x = cast(tape, x, size, f"{name} adapter: 16-bit input")
    copies = run.autocast and run.adapter_size == SINGLE
    inner = _adapter_half(tape, run, x, (width_in, run.rank), f"{name} adapter A", copies=copies)
    outer = _adapter_half(tape, run, inner, (run.rank, width_out), f"{name} adapter B", copies=copies)
    outer = scale(tape, outer, f"{name} adapter: scaled output")
    if quantized and not run.autocast:
        outer = cast(tape, outer, result.itemsize, f"{name} adapter: output")
    total = add(tape, result, outer, f"{name}: result", reads=given)
    return cast(tape, total, result.itemsize, f"{name}: result")


def _dropout(tape: Tape, run: Structure, x: Tensor, name: str, *, fused: bool) -> Tensor:
    """x with some values dropped: a mask is kept, or by a fused adapter the input in its place.

    Source: torch 2.13.0, native_dropout; fms-acceleration-foak, fused_ops/unsloth_lora, LoRA_QKV and LoRA_W (quantised bases).
    """
    kept = x if fused else Tensor(f"{name}: dropout mask", x.width, MASK_SIZE)
    return tape.add("dropout", (x,), Tensor(f"{name}: dropped input", x.width, x.itemsize), saves=(kept,))


def _adapter_half(tape: Tape, run: Structure, x: Tensor, sizes: tuple[int, int], name: str, *, copies: bool) -> Tensor:
    values = sizes[0] * sizes[1]
    weight = (Tensor(f"{name}: 16-bit weight", values, HALF, FIXED),) if copies else ()
    output = Tensor(f"{name}: output", sizes[1], x.itemsize)
    gradient_scratch = HALF * values if copies else 0
    return tape.add(
        name, (x,), output, saves=(x, *weight), gradient=run.adapter_size * values, gradient_scratch=gradient_scratch
    )


def projection(tape: Tape, run: Structure, x: Tensor, names: tuple[str, ...]) -> Tensor:
    """One linear map of a layer with the adapter it may have; several names are one fused map.

    Source: transformers 5.24.0, models/phi3/modeling_phi3.py, Phi3Attention and Phi3MLP, for fused maps.
    """
    sizes = run.projection_sizes
    width_in = sizes[names[0]][0]
    widths = (width_in, sum(sizes[name][1] for name in names))
    name = "+".join(names)
    if run.quantization == "int8":
        result = int8_linear(tape, run, x, widths, name)
    elif run.quantization:
        result = quantized_linear(tape, run, x, widths, name)
    else:
        result = linear(tape, run, x, widths, name, weight_size=run.weight_size, trained=run.trains_base)
    if run.targets.isdisjoint(names):
        return result
    return adapter(tape, run, x, result, widths, name, quantized=bool(run.quantization))


def repeat_heads(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """Key or value heads copied to as many as there are query heads. Source: transformers 5.24.0, repeat_kv."""
    if run.shape.num_kv_heads == run.shape.num_attention_heads:
        return x
    return tape.add("repeat", (x,), Tensor(name, run.shape.query_width, x.itemsize))


def fused_attention(tape: Tape, run: Structure, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention in one kernel: it keeps query, key, value, its output and a float32 number per head and token.

    Source: torch 2.13.0, _scaled_dot_product_flash_attention and its backward; transformers 5.24.0,
    integrations/sdpa_attention.py, sdpa_attention_forward (heads are repeated where the kernel needs as many of each).
    Not counted: what the backward kernel itself allocates.
    """
    if run.attention == "efficient-repeated" or run.masked:
        key, value = repeat_heads(tape, run, key, "repeated keys"), repeat_heads(tape, run, value, "repeated values")
    if run.autocast:
        query, key, value = (cast(tape, x, HALF, f"16-bit {x.name}") for x in (query, key, value))
    output = Tensor("attention output", run.shape.query_width, query.itemsize)
    sums = Tensor("attention log-sum-exp", run.shape.num_attention_heads, SINGLE)
    return tape.add("attention", (query, key, value), output, saves=(query, key, value, output, sums))


def math_attention(tape: Tape, run: Structure, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention that PyTorch writes out itself where no kernel takes the inputs: float32 and grouped heads.

    Source: torch 2.13.0, ATen/native/transformers/attention.cpp, _scaled_dot_product_attention_math and _safe_softmax: the
    scale is split over query and key, and the scores are masked. Its float32 mask (S, S) is counted with the inputs.
    """
    heads, size = run.shape.num_attention_heads, query.itemsize
    query = scale(tape, query, "scaled queries")
    key = scale(tape, repeat_heads(tape, run, key, "repeated keys"), "scaled keys")
    value = repeat_heads(tape, run, value, "repeated values")
    scores = tape.add("scores", (query, key), Tensor("scores", heads, size, PAIRS), saves=(query, key))
    scores = tape.add("mask", (scores,), Tensor("masked scores", heads, size, PAIRS), shares=True)
    weights = Tensor("attention weights", heads, size, PAIRS)
    tape.add("softmax", (scores,), weights, saves=(weights,), scratch=((PAIRS, SOFTMAX_PRODUCTS * heads * size),), reads=(scores,))
    return tape.add(
        "weighted values", (weights, value), Tensor("attention output", run.shape.query_width, size), saves=(weights, value)
    )


def eager_attention(tape: Tape, run: Structure, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention that writes out the scores of every pair of tokens.

    Source: transformers 5.24.0, models/llama/modeling_llama.py, eager_attention_forward. The backward of softmax holds
    a product in its own kernel (torch, ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out).
    """
    heads, size = run.shape.num_attention_heads, query.itemsize
    key, value = repeat_heads(tape, run, key, "repeated keys"), repeat_heads(tape, run, value, "repeated values")
    score_size = HALF if run.autocast else size
    query, key = (cast(tape, x, score_size, f"16-bit {x.name}") for x in (query, key))
    scores = tape.add("scores", (query, key), Tensor("scores", heads, score_size, PAIRS), saves=(query, key))
    scores = scale(tape, scores, "scaled scores")
    if run.shape.attention_softcap:
        scores = softcap(tape, scores, "scores")
    scores = tape.add("mask", (scores,), Tensor("masked scores", heads, scores.itemsize, PAIRS), shares=True)
    masked = scores
    if not run.compute_is_fp16:
        scores = cast(tape, scores, SINGLE, "scores in float32")
    weights = Tensor("attention weights in float32", heads, SINGLE, PAIRS)
    product = ((PAIRS, SOFTMAX_PRODUCTS * heads * SINGLE),)
    tape.add("softmax", (scores,), weights, saves=(weights,), scratch=product, reads=(masked,))
    weights = cast(tape, cast(tape, weights, size, "attention weights"), score_size, "attention weights")
    value = cast(tape, value, score_size, "16-bit values")
    output = tape.add(
        "weighted values", (weights, value), Tensor("attention output", run.shape.query_width, score_size), saves=(weights, value)
    )
    return tape.add("contiguous", (output,), Tensor("attention output", output.width, score_size), shares=True)
