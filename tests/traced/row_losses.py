"""Losses fused with the head that take labelled rows, or no scores at all, emulated: same allocations, no arithmetic.

Source: unsloth_zoo 2026.10.9, fused_losses/fused_linear.py, fused_linear_rows, _tiled_layout, _ce_impl, _tiled_forward, _ce_backward, on a
GPU of compute capability 8 or higher; cut-cross-entropy 25.1.1, cce.py, cce_backward.py.
"""

import math

import torch
from torch import nn

IGNORED = -100
SPLIT = 16384
MOST_ROWS = 4096
TILE_BYTES = 256 * 1024**2
CHUNK_BYTES = 2 * 1024**3
LEAST_SCORES = 512 * 151936
HALF = torch.bfloat16


def shifted(labels) -> torch.Tensor:
    return nn.functional.pad(labels, (0, 1), value=IGNORED)[..., 1:].contiguous().view(-1)


def power_at_most(value: float) -> int:
    return 2 ** math.floor(math.log2(max(value, 1)))


def chunk_rows(rows: int, hidden: int, vocab: int) -> int:
    found = power_at_most(rows * hidden / vocab)
    least = min(max(power_at_most(LEAST_SCORES / vocab), 512), MOST_ROWS)
    most = CHUNK_BYTES // (vocab * 4)
    return max(min(max(found, least), MOST_ROWS, most, rows), 1)


def tile(rows: int, vocab: int, small_card: bool) -> tuple[int, int]:
    rows = min(MOST_ROWS, rows)
    columns = max(TILE_BYTES // (rows * 4), SPLIT)
    if small_card:
        columns = min(columns, SPLIT)
    return rows, min(columns - columns % SPLIT, math.ceil(vocab / SPLIT) * SPLIT)


class UnslothRows(torch.autograd.Function):
    """Gradients made forward, from one buffer of float32 scores; backward scales copies of them. The last token of a row has no label."""

    @staticmethod
    def forward(context, hidden, weight, targets, unlabelled, small_card):
        (count, width), vocab = hidden.shape, weight.shape[0]
        of_hidden = torch.zeros_like(hidden)
        of_weight = torch.zeros_like(weight) if weight.requires_grad else None
        half = weight.to(HALF)
        labelled = count - unlabelled
        float32 = {"dtype": torch.float32, "device": hidden.device}
        losses = torch.empty(labelled, **float32)
        tiles = of_weight is None and vocab > 2 * SPLIT and (small_card or labelled >= MOST_ROWS)
        if tiles:
            rows, columns = tile(labelled, vocab, small_card)
            scores = torch.empty(rows, columns, **float32)
            total = torch.empty(rows, width, **float32)
        else:
            rows = chunk_rows(labelled, width, vocab)
            scores = torch.empty(rows, vocab, **float32)
        for start in range(0, labelled, rows):
            chosen = torch.empty(min(rows, labelled - start), width, dtype=hidden.dtype, device=hidden.device).to(HALF)
            if not tiles:
                given = torch.empty(chosen.shape, **float32)
                given.to(of_hidden.dtype)
                del given
            del chosen
        del scores
        if tiles:
            del total
        context.save_for_backward(of_hidden, of_weight)
        return losses.sum()

    @staticmethod
    def backward(context, gradient):
        of_hidden, of_weight = context.saved_tensors
        return torch.empty_like(of_hidden), None if of_weight is None else torch.empty_like(of_weight), None, None, None


def unsloth_rows(hidden, weight, labels, num_items_in_batch, small_card) -> torch.Tensor:
    rows = hidden.view(-1, hidden.shape[-1])
    return UnslothRows.apply(rows, weight, shifted(labels), labels.shape[0], small_card) / num_items_in_batch


class CutCrossEntropy(torch.autograd.Function):
    """Keeps 16-bit rows and a number for each; backward makes 16-bit gradients."""

    @staticmethod
    def forward(context, hidden, weight, targets):
        summed = torch.empty(hidden.shape[0], dtype=torch.float32, device=hidden.device)
        context.save_for_backward(hidden, weight, summed)
        return summed.sum()

    @staticmethod
    def backward(context, gradient):
        hidden, weight, _ = context.saved_tensors
        of_weight = torch.zeros_like(weight, dtype=hidden.dtype).to(weight.dtype) if context.needs_input_grad[1] else None
        return torch.zeros_like(hidden), of_weight, None


def cut_cross_entropy(hidden, weight, labels, num_items_in_batch) -> torch.Tensor:
    rows = hidden.view(-1, hidden.shape[-1]).to(HALF)
    return CutCrossEntropy.apply(rows, weight, shifted(labels)) / num_items_in_batch
