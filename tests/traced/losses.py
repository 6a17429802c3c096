"""Losses other than transformers 5.24.0's own: which tensors each holds from the head to the gradient of the hidden
state.

Each replaces the causal model's forward. Kernels are emulated: same allocations, no arithmetic. Every position is
labelled.
"""

from collections.abc import Callable
from types import MethodType

import torch
from torch import nn
from transformers.modeling_outputs import CausalLMOutputWithPast

from .liger import fused_linear_cross_entropy
from .row_losses import cut_cross_entropy, unsloth_rows
from .trl_losses import chunked_nll, tiled_nll

IGNORED = -100


def install(model: nn.Module, loss: str) -> None:
    """Make the causal language model compute `loss`."""
    if loss != "logits":
        model.forward = MethodType(forward_with(LOSSES[loss]), model)


def forward_with(loss: Callable) -> Callable:
    """A causal model's forward whose loss takes (model, last hidden state, labels, num_items_in_batch)."""

    def forward(self, input_ids=None, labels=None, num_items_in_batch=None, **kwargs):
        outputs = self.base_model(input_ids=input_ids, use_cache=False, **kwargs)
        value, logits = loss(self, outputs.last_hidden_state, labels, num_items_in_batch)
        return CausalLMOutputWithPast(loss=value, logits=logits)

    return forward


def logits_4_45(model, hidden, labels, num_items_in_batch):
    """transformers 4.45.2, models/llama/modeling_llama.py, LlamaForCausalLM.forward: fp32 logits replace bf16 ones."""
    logits = model.lm_head(hidden).float()
    shifted = logits[..., :-1, :].contiguous()
    targets = labels[..., 1:].contiguous()
    value = nn.functional.cross_entropy(shifted.view(-1, shifted.shape[-1]), targets.view(-1))
    return value, logits


def logits_4_48(model, hidden, labels, num_items_in_batch):
    """transformers 4.48.1: the bf16 logits stay beside the fp32 ones, because the output keeps them."""
    logits = model.lm_head(hidden)
    return shifted_loss(logits, labels, cross_entropy_sum) / num_items_in_batch, logits


def shifted_loss(logits, labels, sum_of_losses):
    """transformers 4.48.1, loss/loss_utils.py, ForCausalLMLoss: fp32 logits and their shifted copy live until it
    returns.

    With one row the shifted slice is contiguous already and no copy is made.
    """
    logits = logits.float()
    shifted = logits[..., :-1, :].contiguous()
    targets = labels[..., 1:].contiguous()
    return sum_of_losses(shifted.view(-1, shifted.shape[-1]), targets.view(-1))


def cross_entropy_sum(rows, targets):
    return nn.functional.cross_entropy(rows, targets, ignore_index=IGNORED, reduction="sum")


class TritonCrossEntropy(torch.autograd.Function):
    """Cross entropy that keeps the logits and writes their gradient over them.

    Emulates unsloth's kernel as fms-acceleration-foak 0.7.4 carries it: kernels/unsloth/cross_entropy_loss.py,
    Fast_CrossEntropyLoss. Allocates per row one fp32 loss and one fp32 log-sum-exp (one per 65,536 columns).
    """

    WIDEST = 65536

    @staticmethod
    def forward(context, logits, targets):
        rows, columns = logits.shape
        losses = logits.new_empty(rows, dtype=torch.float32)
        blocks = -(-columns // TritonCrossEntropy.WIDEST)
        log_sum_exp = logits.new_empty((rows, blocks) if blocks > 1 else (rows,), dtype=torch.float32)
        if blocks > 1:
            log_sum_exp = torch.logsumexp(log_sum_exp, dim=1)
        context.save_for_backward(logits, log_sum_exp, targets)
        return losses

    @staticmethod
    def backward(context, gradient):
        logits, _, _ = context.saved_tensors
        return logits, None


def triton(model, hidden, labels, num_items_in_batch):
    """Upcast and shift as in transformers 4.48.1, then the Triton cross entropy."""
    logits = model.lm_head(hidden)
    loss = shifted_loss(logits, labels, lambda rows, targets: TritonCrossEntropy.apply(rows, targets).sum())
    return loss / num_items_in_batch, logits


def fused_linear(model, hidden, labels, num_items_in_batch):
    """Liger's fused linear cross entropy, as its model patches call it; no logits are returned."""
    return fused_linear_cross_entropy(hidden, model.get_output_embeddings().weight, labels, num_items_in_batch), None


def chunked(model, hidden, labels, num_items_in_batch):
    """trl 1.6 to 1.14's chunked_nll."""
    return chunked_nll(hidden, model.get_output_embeddings().weight, labels, num_items_in_batch), None


def tiled(model, hidden, labels, num_items_in_batch):
    """trl 1.15 and later."""
    return tiled_nll(hidden, model.get_output_embeddings().weight, labels, num_items_in_batch), None


def unsloth(small_card: bool):
    """Unsloth 2026.10's fused loss on a small card or on a large one."""

    def loss(model, hidden, labels, num_items_in_batch):
        return unsloth_rows(hidden, model.get_output_embeddings().weight, labels, num_items_in_batch, small_card), None

    return loss


def cut(model, hidden, labels, num_items_in_batch):
    """cut-cross-entropy 25.1.1."""
    return cut_cross_entropy(hidden, model.get_output_embeddings().weight, labels, num_items_in_batch), None


LOSSES = {
    "logits-4.45": logits_4_45,
    "logits-4.48": logits_4_48,
    "triton": triton,
    "fused-linear": fused_linear,
    "chunked": chunked,
    "tiled": tiled,
    "unsloth": unsloth(True),
    "unsloth-80": unsloth(False),
    "cut": cut,
}
