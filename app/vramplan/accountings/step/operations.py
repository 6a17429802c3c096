"""Operations of a decoder as the libraries run them, written on a tape. Every function returns its output tensor.

Widths are elements per token. Names say what a tensor is to a reader of the ledger.
"""

from vramplan.constants import INT8_BYTES
from vramplan.accountings.step.kernels import fused_norm
from vramplan.accountings.step.structure import HALF, LITGPT, SINGLE, TORCHTUNE, Structure
from vramplan.accountings.step.tape import BLOCKS, FIXED, PAIRS, TOKENS, Tape, Tensor

SOFTMAX_PRODUCTS = 1
"""float32 score tensors that the kernel of softmax's backward holds besides output, gradient and result: their product.
Source: torch 2.13.0, ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out."""

FLASH_HEAD_STEP = 32
"""Values that FlashAttention rounds the width of a head up to, in its backward; 64 above 128, which is the same for the widths in use.
Source: torch 2.13.0, ATen/native/transformers/cuda/flash_attn/flash_api.cpp, mha_bwd."""

HALF_BLOCK, WIDE_BLOCK = 64, 128
"""Rows and columns of the blocks that the memory-efficient kernel works in, by the width of a head. Source: torch 2.13.0,
ATen/native/transformers/cuda/mem_eff_attention/kernels/cutlassB.h, dispatch_cutlassB_bf16_sm80."""

MASK_SIZE = 1
"""Bytes per value of a dropout mask: bool. Source: torch 2.13.0, native_dropout."""

INDEX_SIZE = 8
"""Bytes per value of an index: int64. Source: torch 2.13.0, Tensor.index_copy."""

WIDEST_FLASH_HEAD = 192
"""Widest head whose backward pass FlashAttention takes on every card from Ampere on. Source: torch 2.13.0,
ATen/native/transformers/cuda/sdp_utils.cpp, check_requires_grad_and_head_dim_gt192_constraints_on_sm86_89_or_120."""


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


def multiply(tape: Tape, run: Structure, a: Tensor, b: Tensor, name: str) -> Tensor:
    """a * b, both saved. The gradient of the narrower of the two has the wider type first, and both forms are there beside what
    was saved, unless a checkpoint has handed that over by then.

    Source: torch 2.13.0, MulBackward0; csrc/autograd/engine.cpp, validate_outputs; utils/checkpoint.py, unpack_hook.
    """
    wide, narrow = max(a.itemsize, b.itemsize), min(a.itemsize, b.itemsize)
    handed_over = run.checkpointing and not run.reentrant
    scratch = ((a.growth, a.width * (wide - narrow if handed_over else wide)),) if wide > narrow else ()
    return tape.add("product", (a, b), Tensor(name, a.width, wide, a.growth), saves=(a, b), scratch=scratch)


def activate(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """What stands between the maps of an MLP. SiLU and GELU save their input, ReLU its output.

    Source: torch 2.13.0, SiluBackward0, GeluBackward0, ReluBackward0; transformers 5.24.0, activations.py, ReLUSquaredActivation.
    """
    kind = run.shape.activation
    if kind == "gelu-new":
        return _gelu_new(tape, run, x, name)
    if kind == "fused":
        return tape.add("activation", (x,), Tensor(name, x.width, x.itemsize), saves=(x,))
    output = Tensor(name, x.width, x.itemsize)
    tape.add("activation", (x,), output, saves=(output,))
    return _power(tape, run, output, f"{name}, squared") if kind == "relu-squared" else output


def _power(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """A power of x, which saves it; under autocast both are float32. Backward holds a lower power, and that times the exponent.

    Source: torch 2.13.0, PowBackward0, pow_backward; ATen/autocast_mode.h, AT_FORALL_FP32.
    """
    if run.autocast:
        x = cast(tape, x, SINGLE, f"{x.name}, in float32")
    lower = (TOKENS, x.bytes)
    return tape.add("power", (x,), Tensor(name, x.width, x.itemsize), saves=(x,), scratch=(lower, lower))


def _gelu_new(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """0.5 x (1 + tanh(c (x + b x^3))), operation by operation. Source: transformers 5.24.0, activations.py, NewGELUActivation."""
    half = scale(tape, x, f"{name}: half of the input")
    cube = scale(tape, _power(tape, run, x, f"{name}: cube"), f"{name}: scaled cube")
    inner = scale(tape, add(tape, x, cube, f"{name}: input and cube"), f"{name}: inside of tanh")
    outer = tape.add("add", (tanh(tape, inner, f"{name}: tanh"),), Tensor(f"{name}: 1 + tanh", x.width, inner.itemsize), shares=True)
    return multiply(tape, run, half, outer, name)


def tanh(tape: Tape, x: Tensor, name: str) -> Tensor:
    """tanh, which saves its output. Source: torch 2.13.0, TanhBackward0."""
    output = Tensor(name, x.width, x.itemsize, x.growth)
    return tape.add("tanh", (x,), output, saves=(output,))


def softcap(tape: Tape, x: Tensor, name: str) -> Tensor:
    """x / cap through tanh, times cap. Source: transformers 5.24.0, models/gemma2/modeling_gemma2.py."""
    return scale(tape, tanh(tape, scale(tape, x, name), f"{name}, capped"), f"{name}, capped and scaled")


def norm(tape: Tape, run: Structure, x: Tensor, width: int, name: str, *, weight_size: int, rows: int = 1) -> Tensor:
    """The model's kind of norm over `width` values; `rows` of them per token. Source: see each kind."""
    output = _kind_of_norm(tape, run, x, width, name, weight_size=weight_size, rows=rows)
    if run.trains_base:
        weighted = next(operation for operation in reversed(tape.operations) if operation.name in ("norm weight", "norm"))
        weighted.gradient = run.shape.norm_vectors * width * weight_size
    return output


def _kind_of_norm(tape: Tape, run: Structure, x: Tensor, width: int, name: str, *, weight_size: int, rows: int) -> Tensor:
    if run.shape.norm not in ("rms", "rms-cast"):
        return LAYER_NORMS[run.shape.norm](tape, run, x, name, rows=rows)
    if run.norm_kernel == "as-given":
        return _root_mean_square_as_given(tape, run, x, width, name, weight_size=weight_size, rows=rows)
    if run.norm_kernel not in ("transformers", "cast-first", "float32-weight"):
        return fused_norm(tape, run, x, name, rows=rows)
    return _root_mean_square(tape, run, x, width, name, weight_size=weight_size, rows=rows)


def _root_mean_square(tape: Tape, run: Structure, x: Tensor, width: int, name: str, *, weight_size: int, rows: int) -> Tensor:
    """RMSNorm. Source: transformers 5.24.0, models/llama/modeling_llama.py, LlamaRMSNorm.forward; where its weight is applied
    in float32 models/gemma2/modeling_gemma2.py, Gemma2RMSNorm.forward; models/olmo2/modeling_olmo2.py, Olmo2RMSNorm.forward.
    LitGPT has one for all models, source: litgpt 0.4.0 (cast first) and 0.5.0 (weight in float32), model.py, RMSNorm.forward.
    """
    full = rows * width
    x32 = cast(tape, x, SINGLE, f"{name}: input in float32")
    square = tape.add("norm square", (x32,), Tensor(f"{name}: square", full, SINGLE), saves=(x32,), scratch=((TOKENS, full * SINGLE),) * 2)
    inverse = Tensor(f"{name}: inverse root mean square", rows, SINGLE)
    tape.add("norm mean", (square,), inverse, saves=(inverse,))
    normed = tape.add(
        "norm", (x32, inverse), Tensor(f"{name}: normalised", full, SINGLE), saves=(x32, inverse), scratch=((TOKENS, full * SINGLE),)
    )
    if {"cast-first": False, "float32-weight": True}.get(run.norm_kernel, run.shape.weighs_in_float32):
        return _weighted_in_float32(tape, run, normed, x.itemsize, name)
    normed = cast(tape, normed, x.itemsize, f"{name}: normalised")
    output = Tensor(f"{name}: output", full, max(x.itemsize, weight_size))
    scratch = ((TOKENS, full * output.itemsize),) if run.trains_base else ()
    return tape.add("norm weight", (normed,), output, saves=(normed,) if run.trains_base else (), scratch=scratch)


def _root_mean_square_as_given(
    tape: Tape, run: Structure, x: Tensor, width: int, name: str, *, weight_size: int, rows: int
) -> Tensor:
    """RMSNorm in the type that comes in. Source: lit-gpt (2023), lit_gpt/rmsnorm.py, RMSNorm.forward."""
    full = (TOKENS, rows * width * x.itemsize)
    square = tape.add("norm square", (x,), Tensor(f"{name}: square", rows * width, x.itemsize), saves=(x,), scratch=(full, full))
    inverse = Tensor(f"{name}: inverse root mean square", rows, x.itemsize)
    tape.add("norm mean", (square,), inverse, saves=(inverse,))
    normed = tape.add(
        "norm", (x, inverse), Tensor(f"{name}: normalised", rows * width, x.itemsize), saves=(x, inverse), scratch=(full,)
    )
    output = Tensor(f"{name}: output", rows * width, max(x.itemsize, weight_size))
    scratch = ((TOKENS, output.bytes),) if run.trains_base else ()
    return tape.add("norm weight", (normed,), output, saves=(normed,) if run.trains_base else (), scratch=scratch)


def _weighted_in_float32(tape: Tape, run: Structure, normed: Tensor, size: int, name: str) -> Tensor:
    """A weight times normalised values in float32, and the product in the type that came in."""
    output = Tensor(f"{name}: weighted", normed.width, SINGLE)
    tape.add("norm weight", (normed,), output, saves=(normed,) if run.trains_base else ())
    return cast(tape, output, size, f"{name}: output")


def _layer_norm(tape: Tape, run: Structure, x: Tensor, name: str, *, rows: int) -> Tensor:
    """LayerNorm, in float32 under autocast. Source: torch 2.13.0, ATen/autocast_mode.h, AT_FORALL_FP32."""
    x = cast(tape, x, SINGLE, f"{name}: input in float32") if run.autocast else x
    return _layer_norm_kernel(tape, x, name, rows=rows)


def _half_layer_norm(tape: Tape, run: Structure, x: Tensor, name: str, *, rows: int) -> Tensor:
    """LayerNorm, in 16 bits under autocast. Source: transformers 5.24.0, models/nemotron/modeling_nemotron.py, NemotronLayerNorm1P."""
    x = cast(tape, x, HALF, f"{name}: 16-bit input") if run.autocast else x
    return _layer_norm_kernel(tape, x, name, rows=rows)


def _layer_norm_kernel(tape: Tape, x: Tensor, name: str, *, rows: int) -> Tensor:
    """It keeps its input, and a mean and an inverse deviation per row. Source: torch 2.13.0, native_layer_norm."""
    statistics = Tensor(f"{name}: mean and inverse deviation", 2 * rows, SINGLE)
    return tape.add("norm", (x,), Tensor(f"{name}: output", x.width, x.itemsize), saves=(x, statistics))


def _plain_layer_norm(tape: Tape, run: Structure, x: Tensor, name: str, *, rows: int) -> Tensor:
    """LayerNorm in float32, given back in the type that came in. Source: transformers 5.24.0, models/olmo/modeling_olmo.py."""
    x32 = cast(tape, x, SINGLE, f"{name}: input in float32")
    return cast(tape, _layer_norm_kernel(tape, x32, name, rows=rows), x.itemsize, f"{name}: output")


def _written_out_layer_norm(tape: Tape, run: Structure, x: Tensor, name: str, *, rows: int) -> Tensor:
    """LayerNorm without a bias, operation by operation in float32; the mean is taken away twice.

    Source: transformers 5.24.0, models/cohere/modeling_cohere.py, CohereLayerNorm.forward.
    """
    full = (TOKENS, x.width * SINGLE)
    x32 = cast(tape, x, SINGLE, f"{name}: input in float32")
    mean = tape.add("norm mean", (x32,), Tensor(f"{name}: mean", rows, SINGLE))
    centred = tape.add("norm centre", (x32, mean), Tensor(f"{name}: centred", x.width, SINGLE), shares=True)
    square = tape.add("norm square", (centred,), Tensor(f"{name}: square", x.width, SINGLE), saves=(centred,), scratch=(full, full))
    inverse = Tensor(f"{name}: inverse deviation", rows, SINGLE)
    tape.add("norm mean", (square,), inverse, saves=(inverse,))
    again = tape.add("norm centre", (x32, mean), Tensor(f"{name}: centred again", x.width, SINGLE), shares=True)
    normed = tape.add("norm", (again, inverse), Tensor(f"{name}: normalised", x.width, SINGLE), saves=(again, inverse), scratch=(full,))
    return _weighted_in_float32(tape, run, normed, x.itemsize, name)


LAYER_NORMS = {
    "layer": _layer_norm, "layer-half": _half_layer_norm, "layer-plain": _plain_layer_norm, "layer-no-bias": _written_out_layer_norm,
}
"""Every kind of LayerNorm by name."""


def linear(tape: Tape, run: Structure, x: Tensor, sizes: tuple[int, int], name: str, *, weight_size: int, trained: bool) -> Tensor:
    """x times a 16- or 32-bit weight (out, in). Source: torch 2.13.0, nn.functional.linear under torch.autocast.

    A trained weight keeps the input for its gradient. Under autocast a float32 weight or input becomes a 16-bit copy,
    one for every call.
    """
    width_in, width_out = sizes
    values, given = width_in * width_out, x
    if run.autocast:
        x = cast(tape, x, HALF, f"{name}: 16-bit input")
    saves = (x,) if trained else ()
    gradient_scratch = 0
    if run.autocast and weight_size == SINGLE:
        saves = (*saves, Tensor(f"{name}: 16-bit weight", values, HALF, FIXED, cached=trained))
        gradient_scratch = HALF * values if trained else 0
    output = Tensor(f"{name}: output", width_out, x.itemsize)
    gradient = weight_size * values if trained else 0
    details = {"gradient": gradient, "gradient_scratch": gradient_scratch, "converts": gradient_scratch > 0}
    return tape.add(name, (x,), output, saves=saves, reads=(given,), viewed=True, **details)


def quantized_linear(tape: Tape, run: Structure, x: Tensor, sizes: tuple[int, int], name: str) -> Tensor:
    """x times a quantised weight, expanded to 16 bits while it is used, forward and backward; the output has x's type.

    Up to 0.42 it keeps its input as an attribute, though it does not need it. Its weight is an attribute too, but in torchao.
    Source: bitsandbytes 0.49.0 and 0.42.0, nn/modules.py, Linear4bit.forward; autograd/_functions.py, MatMul4Bit (ctx.tensors); torchao
    0.9.0, dtypes/nf4tensor.py, LinearNF4 (save_for_backward).
    """
    width_in, width_out = sizes
    expanded = ((FIXED, run.expanded_bytes(width_in * width_out)),)
    half = cast(tape, x, HALF, f"{name}: 16-bit input")
    output = Tensor(f"{name}: output", width_out, HALF)
    keeps = run.keeps_quantized_inputs
    tape.add(name, (half,), output, saves=(half,) if keeps else (), scratch=expanded, forward_scratch=expanded, escapes=keeps, unhooked=run.quantized_linear != "torchao", reads=(x,))
    result = cast(tape, output, x.itemsize, f"{name}: output")
    if result is not output:
        tape.operations[-1].reads += (x, half)
    return result


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
        x = dropout(tape, x, f"{name} adapter", keeps_input=quantized and run.adapter_kernel == "fused")
    given_to_a = x
    x = cast(tape, x, size, f"{name} adapter: 16-bit input")
    copies = run.autocast and run.adapter_size == SINGLE
    inner = _adapter_half(tape, run, x, (width_in, run.rank), f"{name} adapter A", copies=copies, reads=(given_to_a,))
    outer = _adapter_half(tape, run, inner, (run.rank, width_out), f"{name} adapter B", copies=copies)
    outer = scale(tape, outer, f"{name} adapter: scaled output")
    if quantized and not run.autocast:
        outer = cast(tape, outer, result.itemsize, f"{name} adapter: output")
    total = add(tape, result, outer, f"{name}: result", reads=given)
    return cast(tape, total, result.itemsize, f"{name}: result")


def own_adapter(tape: Tape, run: Structure, x: Tensor, result: Tensor, names: tuple[str, ...]) -> Tensor:
    """The low-rank pair beside a linear map as LitGPT and torchtune have it: its weights have the type of the model, so the input is not
    copied. Where only parts of a fused map are adapted, the update is copied between zeros, and kept.

    Source: litgpt 0.4.0, lora.py, LoRALinear.forward, LoRAQKVLinear.forward, zero_pad; torchtune 0.6.1, modules/peft/lora.py; torch 2.13.0, IndexCopyBackward0.
    """
    name, given = "+".join(names), (x,)
    width_in, inner_width, width_out = run.adapter_sizes(names)
    outer = adapter_output(tape, run, x, (width_in, inner_width, width_out), name)
    if width_out != result.width:
        places = Tensor(f"{name} adapter: places", width_out, INDEX_SIZE, FIXED)
        padded = Tensor(f"{name} adapter: output between zeros", result.width, outer.itemsize)
        outer = tape.add("index_copy", (outer,), padded, saves=(outer, places))
    return add(tape, result, scale(tape, outer, f"{name} adapter: scaled output"), f"{name}: result", reads=given)


def adapter_output(tape: Tape, run: Structure, x: Tensor, sizes: tuple[int, int, int], name: str) -> Tensor:
    """B(A(dropout(x))) of an own adapter with (in, inner, out). Source: as own_adapter."""
    width_in, inner_width, width_out = sizes
    inner = adapter_input(tape, run, x, (width_in, inner_width), name)
    copies = run.autocast and run.adapter_size == SINGLE
    return _adapter_half(tape, run, inner, (inner_width, width_out), f"{name} adapter B", copies=copies, rows=run.rank)


def adapter_input(tape: Tape, run: Structure, x: Tensor, sizes: tuple[int, int], name: str) -> Tensor:
    """A(dropout(x)) of an own adapter with (in, inner). Source: as own_adapter."""
    if run.dropout:
        x = dropout(tape, x, f"{name} adapter")
    x = cast(tape, x, HALF if run.autocast else run.adapter_size, f"{name} adapter: 16-bit input")
    copies = run.autocast and run.adapter_size == SINGLE
    return _adapter_half(tape, run, x, sizes, f"{name} adapter A", copies=copies)


def dropout(tape: Tape, x: Tensor, name: str, *, keeps_input: bool = False) -> Tensor:
    """x with some values dropped: a mask is kept, or by a fused adapter the input in its place.

    Source: torch 2.13.0, native_dropout; fms-acceleration-foak, fused_ops/unsloth_lora, LoRA_QKV and LoRA_W (quantised bases).
    """
    kept = x if keeps_input else Tensor(f"{name}: dropout mask", x.width, MASK_SIZE)
    return tape.add("dropout", (x,), Tensor(f"{name}: dropped input", x.width, x.itemsize), saves=(kept,))


def _adapter_half(
    tape: Tape, run: Structure, x: Tensor, sizes: tuple[int, int], name: str, *, copies: bool, rows: int = 0, reads: tuple[Tensor, ...] = ()
) -> Tensor:
    """One half of the pair; `rows` of its weight where these are fewer than the inputs. reads: what it was called with."""
    values = (rows or sizes[0]) * sizes[1]
    weight = (Tensor(f"{name}: 16-bit weight", values, HALF, FIXED, cached=True),) if copies else ()
    output = Tensor(f"{name}: output", sizes[1], x.itemsize)
    gradient_scratch = HALF * values if copies else 0
    return tape.add(
        name, (x,), output, saves=(x, *weight), gradient=run.adapter_size * values, gradient_scratch=gradient_scratch, converts=copies, reads=reads,
        viewed=True,
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
        if run.trains_base:
            tape.operations[-1].gradient += run.embedding_size * sum(sizes[each][1] for each in names if each in run.biased_maps)
    if run.targets.isdisjoint(names):
        return result
    if run.adapter_kernel in (LITGPT, TORCHTUNE):
        return own_adapter(tape, run, x, result, names)
    return adapter(tape, run, x, result, widths, name, quantized=bool(run.quantization))


def repeat_heads(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """Key or value heads copied to as many as there are query heads. Source: transformers 5.24.0, repeat_kv."""
    if run.shape.num_kv_heads == run.shape.num_attention_heads:
        return x
    return tape.add("repeat", (x,), Tensor(name, run.shape.query_width, x.itemsize))


def _shown_to_all_heads(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """Repeated heads for a kernel; a single head is not copied in transformers, but only shown for every query head. Source: torch
    2.13.0, Tensor.expand and reshape; transformers 5.24.0, repeat_kv."""
    if run.model_code in (LITGPT, TORCHTUNE) or run.shape.num_kv_heads > 1 or run.shape.num_attention_heads == 1:
        return repeat_heads(tape, run, x, name)
    return tape.add("expand", (x,), Tensor(name, run.shape.query_width, x.itemsize, base=x), view=True)


def attended(tape: Tape, run: Structure, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """What attention makes of its heads with the kernel of a run. Source: transformers 5.24.0, modeling_utils.py, ALL_ATTENTION_FUNCTIONS."""
    attention = {"eager": eager_attention, "math": math_attention}.get(run.attention, fused_attention)
    return attention(tape, run, query, key, value)


def fused_attention(tape: Tape, run: Structure, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention in one kernel: it keeps query, key, value, its output and a float32 number per head and token.

    Source: torch 2.13.0, _scaled_dot_product_flash_attention and its backward; transformers 5.24.0,
    integrations/sdpa_attention.py, sdpa_attention_forward (heads are repeated where the kernel needs as many of each).
    A mask is made anew for every call, (B, 1, S, S) in the type of the queries, and kept (torch 2.13.0, attention.cpp,
    convert_boolean_attn_mask). Its output has the layout of the queries: where these were put together from two parts, head
    by head, it is copied; in LitGPT they always are (litgpt 0.4.0, model.py, CausalSelfAttention.forward), unless the
    memory-efficient kernel takes them. Not counted: the room that the memory-efficient kernel has for gradients of blocks of keys, but
    under latent attention.
    """
    if run.attention == "efficient-repeated" or run.masked:
        key, value = _shown_to_all_heads(tape, run, key, "repeated keys"), _shown_to_all_heads(tape, run, value, "repeated values")
    given = query, key, value
    if run.autocast:
        query, key, value = (cast(tape, x, HALF, f"16-bit {x.name}") for x in given)
    output = Tensor("attention output", run.shape.attended_width, query.itemsize)
    sums = Tensor("attention log-sum-exp", run.shape.num_attention_heads, SINGLE)
    masks = (Tensor("attention mask", 1, query.itemsize, PAIRS),) if run.masked else ()
    flash = run.attention == "efficient" and not run.masked
    scratch = _flash_backward(run, grouped=key.width != query.width) if flash else _efficient_backward(run)
    tape.add("attention", (query, key, value), output, saves=(query, key, value, output, sums, *masks), scratch=scratch, reads=given)
    head_by_head = (run.shape.partial_rotary or run.shape.kv_lora_rank) and not run.masked and run.attention == "efficient"
    if run.model_code == LITGPT:
        head_by_head = run.shape.head_dim <= WIDEST_FLASH_HEAD
    if not head_by_head:
        return output
    return tape.add("contiguous", (output,), Tensor("attention output, token by token", output.width, output.itemsize), shares=True)


def _flash_backward(run: Structure, *, grouped: bool) -> tuple[tuple[int, int], ...]:
    """What FlashAttention's backward holds: float32 gradients of the queries, heads rounded up, a float32 sum per head, and where heads are
    grouped the gradients of key and value for every query head.

    Source: torch 2.13.0, ATen/native/transformers/cuda/flash_attn/flash_api.cpp, mha_bwd: dq_accum, softmax_d, dk_expanded, dv_expanded.
    """
    heads, width = run.shape.num_attention_heads, run.shape.head_dim
    rounded = FLASH_HEAD_STEP * -(-width // FLASH_HEAD_STEP)
    return ((TOKENS, SINGLE * heads * (rounded + 1) + (2 * HALF * heads * width if grouped else 0)),)


def _efficient_backward(run: Structure) -> tuple[tuple[int, int], ...]:
    """What the backward of the memory-efficient kernel holds: float32 gradients of the queries, heads rounded up to a block's columns, and
    a float32 sum per head; where heads are wider than 128, float32 gradients of a block of keys and values for each part of them.

    Source: torch 2.13.0, ATen/native/transformers/cuda/attention_backward.cu, _efficient_attention_backward (delta, workspace);
    mem_eff_attention/kernel_backward.h, workspace_size; mem_eff_attention/kernels/cutlassB.h, dispatch_cutlassB_bf16_sm80.
    """
    shape, widest = run.shape, max(run.shape.head_dim, run.shape.value_dim)
    columns = WIDE_BLOCK if HALF_BLOCK < widest <= WIDE_BLOCK else HALF_BLOCK
    by_token = SINGLE * shape.num_attention_heads * (_rounded(shape.head_dim, columns) + 1)
    if not run.keys_in_blocks:
        return ((TOKENS, by_token),)
    return ((TOKENS, by_token), (BLOCKS, SINGLE * HALF_BLOCK * (_rounded(shape.head_dim, WIDE_BLOCK) + _rounded(shape.value_dim, WIDE_BLOCK))))


def _rounded(width: int, step: int) -> int:
    return step * -(-width // step)


def math_attention(tape: Tape, run: Structure, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention that PyTorch writes out itself where no kernel takes the inputs: float32 and grouped heads, or heads to broadcast.

    Source: torch 2.13.0, ATen/native/transformers/attention.cpp, _scaled_dot_product_attention_math and _safe_softmax: the
    scale is split over query and key, and the scores are masked. Its float32 mask (S, S) is counted with the inputs.
    """
    if run.autocast:
        query, key, value = (cast(tape, x, HALF, f"16-bit {x.name}") for x in (query, key, value))
    heads, size = run.shape.num_attention_heads, query.itemsize
    query = scale(tape, query, "scaled queries")
    key = scale(tape, repeat_heads(tape, run, key, "repeated keys"), "scaled keys")
    value = repeat_heads(tape, run, value, "repeated values")
    scores = tape.add("scores", (query, key), Tensor("scores", heads, size, PAIRS), saves=(query, key))
    scores = tape.add("mask", (scores,), Tensor("masked scores", heads, size, PAIRS), shares=True)
    weights = Tensor("attention weights", heads, size, PAIRS)
    tape.add("softmax", (scores,), weights, saves=(weights,), scratch=((PAIRS, SOFTMAX_PRODUCTS * heads * size),), reads=(scores,))
    return tape.add(
        "weighted values", (weights, value), Tensor("attention output", run.shape.attended_width, size), saves=(weights, value)
    )


def eager_attention(tape: Tape, run: Structure, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention that writes out the scores of every pair of tokens.

    Source: transformers 5.24.0, models/llama/modeling_llama.py, eager_attention_forward. The backward of softmax holds
    a product in its own kernel (torch, ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out). Values that are a part of another tensor
    are copied where there are several rows, because rows and heads become one dimension (torch 2.13.0, matmul).
    """
    heads, size = run.shape.num_attention_heads, query.itemsize
    key, value = repeat_heads(tape, run, key, "repeated keys"), repeat_heads(tape, run, value, "repeated values")
    given = query, key, value
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
    if value.base and run.shape.kv_lora_rank and not run.one_row:
        value = tape.add("contiguous", (value,), Tensor("values, row by row", value.width, value.itemsize))
    output = tape.add(
        "weighted values", (weights, value), Tensor("attention output", run.shape.attended_width, score_size), saves=(weights, value)
    )
    return tape.add("contiguous", (output,), Tensor("attention output", output.width, score_size), shares=True, reads=given)
