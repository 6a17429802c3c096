"""Liger's fused linear cross entropy, emulated: the gradient is ready when the forward ends.

Source: liger-kernel 0.8.5, liger_kernel/ops/fused_linear_cross_entropy.py, fused_linear_cross_entropy_forward,
fused_linear_cross_entropy_backward, LigerFusedLinearCrossEntropyFunction; transformers/model/loss_utils.py,
LigerForCausalLMLoss. Compute capability 8 or higher.
"""

import torch
from torch import nn

from .kernels import ceil_div

IGNORED = -100


def chunk_rows(tokens: int, hidden_size: int, vocab_size: int) -> int:
    """Rows of logits at a time: tokens over ceil(V / H), rounded up to a power of two, at most all."""
    rows = ceil_div(tokens, ceil_div(vocab_size, hidden_size))
    return min(tokens, 1 << (rows - 1).bit_length())


def logits_buffer(hidden, weight, rows: int) -> torch.Tensor | None:
    """One buffer for all chunks, where the product's dtype needs no cast (_can_use_mm_out)."""
    if hidden.dtype != weight.dtype:
        return None
    if torch.is_autocast_enabled("cuda") and hidden.dtype != torch.get_autocast_dtype("cuda"):
        return None
    return hidden.new_empty(rows, weight.shape[0])


class FusedLinearCrossEntropy(torch.autograd.Function):
    """Walks over chunks of rows: logits, their gradient in place, its products with weight and input."""

    @staticmethod
    def forward(context, hidden, weight, targets):
        rows = chunk_rows(*hidden.shape, weight.shape[0])
        hidden_gradient = torch.zeros_like(hidden)
        weight_gradient = torch.zeros_like(weight) if weight.requires_grad else None
        losses = hidden.new_zeros(hidden.shape[0], dtype=torch.float32)
        buffer = logits_buffer(hidden, weight, rows)
        for start in range(0, hidden.shape[0], rows):
            chunk = hidden[start : start + rows]
            logits = project(chunk, weight, buffer)
            add_products(hidden_gradient[start : start + rows], weight_gradient, logits, chunk, weight, buffer)
            del logits
        context.save_for_backward(hidden_gradient, weight_gradient)
        return losses.sum()

    @staticmethod
    def backward(context, gradient):
        """The stored gradients are scaled in place (element_mul_kernel)."""
        hidden_gradient, weight_gradient = context.saved_tensors
        return hidden_gradient, weight_gradient, None


def project(chunk, weight, buffer) -> torch.Tensor:
    """The chunk's logits: in the buffer, or (under autocast with fp32 operands) a new tensor."""
    if buffer is None:
        return chunk @ weight.t()
    return torch.mm(chunk, weight.t(), out=buffer[: chunk.shape[0]])


def add_products(hidden_gradient, weight_gradient, logits, chunk, weight, buffer) -> None:
    """The two products of one chunk; weight_gradient accumulates without a temporary (addmm with out=)."""
    if buffer is None:
        hidden_gradient.copy_(logits @ weight)
    else:
        torch.mm(logits, weight, out=hidden_gradient)
    if weight_gradient is not None and chunk.dtype != logits.dtype:
        chunk.to(logits.dtype)


def fused_linear_cross_entropy(hidden, weight, labels, num_items_in_batch) -> torch.Tensor:
    labels = nn.functional.pad(labels, (0, 1), value=IGNORED)
    targets = labels[..., 1:].contiguous().view(-1)
    loss = FusedLinearCrossEntropy.apply(hidden.view(-1, hidden.shape[-1]), weight, targets)
    return loss / num_items_in_batch
