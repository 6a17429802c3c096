"""What CUDA kernels do that fake tensors on a CPU build do not show.

Two kinds: operations that CUDA runs as one kernel and a CPU build takes apart, and memory that a kernel holds only
while it runs (invisible from outside, but part of the peak that torch.cuda.max_memory_allocated reports).
Sources: torch, files named at each function. Kernel sources are not part of the wheel; they were read on GitHub.
"""

from collections.abc import Callable

import torch
from torch import _meta_registrations
from torch.library import Library

aten = torch.ops.aten
FLOAT32_BYTES = 4
INT64_BYTES = 8
_library = Library("aten", "IMPL")


def register_single_kernels() -> None:
    """silu_backward is one CUDA kernel with one output (native_functions.yaml: `CUDA: silu_backward`).

    A CPU build falls back to math_silu_backward, which holds four temporaries. Source: torch 2.13.0,
    aten/src/ATen/native/Activation.cpp and native_functions.yaml.
    """
    _library.impl("silu_backward", lambda gradient, value: torch.empty_like(gradient), "CUDA")


def take_grouped_products_of_float32() -> None:
    """The shape function of _grouped_mm refuses what its CUDA kernel takes: float32, one matrix product after another into one
    output. Source: torch 2.13.0, ATen/native/GroupedMMUtils.h, _grouped_mm_validate_inputs and _grouped_mm_fallback;
    _meta_registrations.py, _meta_grouped_mm_common.
    """
    shape_in_16_bits = _meta_registrations._meta_grouped_mm_common

    def shape_of_product(first, second, *rest, **options):
        return shape_in_16_bits(first.to(torch.bfloat16), second.to(torch.bfloat16), *rest, **options).to(first.dtype)

    _meta_registrations._meta_grouped_mm_common = shape_of_product


def ceil_div(value: int, divisor: int) -> int:
    return -(-value // divisor)


def align(value: int, multiple: int) -> int:
    return ceil_div(value, multiple) * multiple


def softmax_backward(gradient, output, dim, input_dtype, **options) -> int:
    """The product gradient x output, in the gradient's dtype.

    Source: torch 2.13.0, aten/src/ATen/native/cuda/SoftMax.cu, softmax_backward_cuda_out (`tmp = grad * output`).
    log_softmax has no such product.
    """
    return gradient.numel() * gradient.element_size()


def flash_attention_backward(gradient, query, key, *rest, **options) -> int:
    """fp32 query gradient, row sums, and key and value gradients per query head when heads are grouped.

    Shapes: (B, S, A, head_dim) float32, sequence rounded to 128 and head_dim to 32 (64 above 128); (B, A, S) float32;
    2 x (B, S, A, head_dim) in the input's dtype. Source: torch, aten/src/ATen/native/transformers/cuda/flash_attn/
    flash_api.cpp, mha_bwd: dq_accum, softmax_d, dk_expanded, dv_expanded.
    """
    batch, heads, length, head_dim = query.shape
    rounded = align(length, 128)
    accumulator = batch * rounded * heads * align(head_dim, 32 if head_dim <= 128 else 64) * FLOAT32_BYTES
    row_sums = batch * heads * rounded * FLOAT32_BYTES
    expanded = 2 * batch * key.shape[2] * heads * head_dim * query.element_size() if key.shape[1] != heads else 0
    return accumulator + row_sums + expanded


def efficient_attention_backward(gradient, query, key, value, *rest, **options) -> int:
    """fp32 query gradient in the kernel's workspace and row sums; where heads are wider than 128, also the key and value
    gradients of the blocks of keys that are in work at once.

    Shapes: (B, A, S, head_dim) in whole blocks of rows and columns, 16 bytes more for each; (B, A, S). Of keys: 64 rows of both widths,
    rounded to 128, for each of 200 // (B A) parts. Source: torch, aten/src/ATen/native/transformers/cuda/
    attention_backward.cu, _efficient_attention_backward (delta, num_splits_key, workspace), mem_eff_attention/kernel_backward.h,
    workspace_size, and mem_eff_attention/kernels/cutlassB.h, dispatch_cutlassB_bf16_sm80 (rows and columns of a block).
    """
    batch, heads, length, head_dim = query.shape
    widest = max(head_dim, value.shape[-1])
    rows, columns = (64, 64) if widest <= 64 else (128, 128) if widest <= 128 else (128, 64)
    blocks = ceil_div(length, rows) * ceil_div(head_dim, columns)
    elements = blocks * (rows * columns + 4)
    if widest > 128:
        parts = max(1, min(ceil_div(key.shape[2], columns), 200 // (batch * heads)))
        elements += parts * columns * (align(head_dim, rows) + align(value.shape[-1], rows))
    return batch * heads * (align(elements, 4) + length) * FLOAT32_BYTES


def embedding_backward(gradient, indices, num_weights, *rest, **options) -> int:
    """Partial sums per group of ten equal tokens, float32, and sorted indices; none up to 3,072 tokens.

    Source: torch, aten/src/ATen/native/cuda/Embedding.cu, embedding_dense_backward_cuda (the limit, sorted_indices,
    orig_indices) and EmbeddingBackwardKernel.cu, embedding_backward_cuda_kernel (max_partial_segment and the rest).
    """
    tokens = indices.numel()
    if tokens <= 3072:
        return 0
    segments = min(tokens, num_weights)
    partial_segments = tokens // 10 + segments
    index_bytes = INT64_BYTES * (3 * tokens + 2 * segments + partial_segments)
    return partial_segments * gradient.shape[-1] * FLOAT32_BYTES + index_bytes


def foreach_norm(tensors, *rest, **options) -> int:
    """Partial norms: one float32 per tensor and chunk, as many chunks for all as the largest tensor has.

    Source: torch, aten/src/ATen/native/cuda/ForeachReduceOp.cu, foreach_tensor_norm_cuda (output_per_tensor),
    kChunkSize = 65,536 elements.
    """
    chunks = max(ceil_div(tensor.numel(), 65536) for tensor in tensors)
    return len(tensors) * chunks * FLOAT32_BYTES


def logsumexp(value, *rest, **options) -> int:
    """The exponentials of what is left above the largest. Source: torch 2.13.0, aten/src/ATen/native/ReduceOps.cpp,
    logsumexp_out_impl (`(self - maxes).exp_()`)."""
    return value.numel() * value.element_size()


def contiguous_copy(value: torch.Tensor) -> int:
    """A copy of what lies in another order than its own."""
    return 0 if value.is_contiguous() else value.numel() * value.element_size()


def convolution(value, weight, *rest, **options) -> int:
    """The input of a convolution over one dimension in its own order.

    Source: torch 2.13.0, aten/src/ATen/native/Convolution.cpp, _convolution (`input = input.contiguous()`); a depthwise one in bfloat16
    or float32 is the kernel of native/cuda/DepthwiseConv2d.cu, which needs nothing else (ConvParams::use_cudnn_depthwise).
    """
    return contiguous_copy(value)


def convolution_backward(gradient, value, weight, *rest, **options) -> int:
    """The same for the input that was kept, and for the gradient. Source: torch 2.13.0, Convolution.cpp, convolution_backward;
    native/cuda/DepthwiseConv2d.cu, conv_depthwise2d_backward_cuda_out."""
    return contiguous_copy(gradient) + contiguous_copy(value)


TEMPORARIES: dict[object, Callable[..., int]] = {
    aten._softmax_backward_data.default: softmax_backward,
    aten._scaled_dot_product_flash_attention_backward.default: flash_attention_backward,
    aten._scaled_dot_product_efficient_attention_backward.default: efficient_attention_backward,
    aten.embedding_dense_backward.default: embedding_backward,
    aten._foreach_norm.Scalar: foreach_norm,
    aten.logsumexp.default: logsumexp,
    aten.convolution.default: convolution,
    aten.convolution_backward.default: convolution_backward,
}


def temporary_bytes(func, args, kwargs) -> int:
    """Bytes that the CUDA kernel of `func` holds while it runs, beside inputs and outputs."""
    size = TEMPORARIES.get(func)
    return size(*args, **kwargs) if size else 0
