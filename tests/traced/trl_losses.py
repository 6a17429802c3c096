"""trl's two losses that never hold all logits, emulated. Every position but the last of each row is labelled."""

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

CHUNK_ROWS = 256
"""trl 1.14.2, trainer/sft_trainer.py, _CHUNKED_LM_HEAD_CHUNK_SIZE."""
TILE_ROWS = 4096
"""trl 1.16.0, kernels/chunked_logprob.py, TOKEN_CHUNK_SIZE."""
TILE_COLUMNS = 32768
"""trl 1.16.0, trainer/utils.py, _CHUNKED_LOGPROB_CHUNK_SIZE."""


def chunk_loss(hidden, weight, labels) -> tuple[torch.Tensor, ...]:
    """trl 1.14.2, trainer/sft_trainer.py, _chunk: bf16 product, fp32 log-softmax; accuracy and entropy for the log."""
    logits = (hidden @ weight.to(hidden.dtype).t()).float()
    log_probabilities = nn.functional.log_softmax(logits, dim=-1)
    loss = nn.functional.nll_loss(log_probabilities, labels, reduction="sum")
    valid = labels != -100
    correct = ((logits.argmax(dim=-1) == labels) & valid).sum().float()
    entropy = (-(log_probabilities.exp() * log_probabilities).sum(dim=-1) * valid).sum()
    return loss, correct, entropy


def chunked_nll(hidden, weight, labels, num_items_in_batch) -> torch.Tensor:
    """trl 1.14.2, trainer/sft_trainer.py, _chunked_cross_entropy_loss: reorder, then checkpointed chunks of rows."""
    hidden = hidden[..., :-1, :].reshape(-1, hidden.shape[-1])
    labels = labels[..., 1:].reshape(-1)
    order = (labels != -100).to(torch.int8).argsort(descending=True, stable=True)
    hidden, labels = hidden[order], labels[order]
    total, correct, entropy = (hidden.new_zeros((), dtype=torch.float32) for _ in range(3))
    for start in range(0, hidden.shape[0], CHUNK_ROWS):
        rows, targets = hidden[start : start + CHUNK_ROWS], labels[start : start + CHUNK_ROWS]
        loss, hits, disorder = checkpoint(
            chunk_loss, rows, weight, targets, use_reentrant=False, preserve_rng_state=False
        )
        total, correct, entropy = total + loss, correct + hits, entropy + disorder
    return total / num_items_in_batch


class TiledLogProbabilities(torch.autograd.Function):
    """trl 1.16.0, kernels/chunked_logprob.py, ChunkedLogProbFunction with its Triton kernels."""

    @staticmethod
    def forward(context, hidden, weight, targets):
        dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else hidden.dtype
        statistics = [hidden.new_zeros(hidden.shape[0], dtype=torch.float32) for _ in range(7)]
        tile = hidden.new_empty((min(hidden.shape[0], TILE_ROWS), TILE_COLUMNS), dtype=dtype)
        visit_tiles(hidden, weight, tile)
        log_z = statistics[0] + statistics[1].log()
        log_probabilities = statistics[2] - log_z
        entropy = log_z - statistics[3] / statistics[1]
        context.save_for_backward(hidden, weight, targets, log_z, entropy)
        context.compute_dtype = dtype
        return log_probabilities, entropy

    @staticmethod
    def backward(context, gradient, entropy_gradient):
        """Gradients accumulate in fp32 and are cast at the end."""
        hidden, weight, *_ = context.saved_tensors
        sums = [
            torch.zeros(tensor.shape, device="cuda", dtype=torch.float32) if needed else None
            for tensor, needed in zip((hidden, weight), context.needs_input_grad, strict=False)
        ]
        tile = hidden.new_empty((min(hidden.shape[0], TILE_ROWS), TILE_COLUMNS), dtype=context.compute_dtype)
        visit_tiles(hidden, weight, tile)
        hidden_sum, weight_sum = sums
        del sums
        hidden_gradient = hidden_sum.to(hidden.dtype) if hidden_sum is not None else None
        weight_gradient = weight_sum.to(weight.dtype) if weight_sum is not None else None
        return hidden_gradient, weight_gradient, None


def visit_tiles(hidden, weight, tile) -> None:
    """The casts of each tile's operands; the products themselves go into `tile` or into the sums."""
    for start in range(0, hidden.shape[0], TILE_ROWS):
        rows = hidden[start : start + TILE_ROWS].to(tile.dtype)
        for column in range(0, weight.shape[0], TILE_COLUMNS):
            columns = weight[column : column + TILE_COLUMNS].to(tile.dtype)
            del columns
        del rows


def tiled_nll(hidden, weight, labels, num_items_in_batch) -> torch.Tensor:
    """trl 1.16.0, trainer/utils.py, _fused_forward. `hidden[mask]` finds every position: same sizes, known here."""
    hidden, labels = hidden[:, :-1], labels[:, 1:]
    places = torch.empty((labels.numel(), 2), dtype=torch.int64, device="cuda").unbind(-1)
    log_probabilities, _ = TiledLogProbabilities.apply(hidden[places], weight, labels[places])
    spread = log_probabilities.new_zeros(labels.shape).masked_scatter(labels != -100, log_probabilities)
    return -spread.sum() / num_items_in_batch
