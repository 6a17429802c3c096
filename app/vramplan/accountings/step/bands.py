"""What is held beyond the tensors: by PyTorch's caching allocator, and by the process as nvidia-smi shows it."""

from vramplan.accountings.step.structure import Structure
from vramplan.accountings.step.whole import most
from vramplan.ledger import HUNDRED_PERCENT, Band

CHUNKED, IN_A_LOOP, WITH_LOGITS, DIVIDED = (98, 107), (80, 102), (90, 120), (97, 141)
"""Per cent of (peak + smaller transient) that is held: with a loss that never has all logits; with eager attention or
outputs kept by a loop; with logits otherwise; where GPUs divide the states. Measured: the recorded runs on T4 and A100, between
the 5th and the 95th of each kind; checked by tests/test_measured.py."""


def reserved_band(run: Structure, *, peak: int, smaller_transient: int) -> Band:
    """Bytes the caching allocator holds.

    The allocator keeps blocks for the loss and for a layer's backward pass, and cannot fully use one for the other, so
    it tends to hold the peak and the smaller of the two. Never less than the peak itself. Arrays of both give arrays.
    """
    both = peak + smaller_transient
    low, high = (most(peak, percent * both // HUNDRED_PERCENT) for percent in _percents(run))
    return Band(low, high)


def process_band(*, reserved: Band, context: int) -> Band:
    """Bytes the process holds: what the allocator does, and the CUDA context."""
    return Band(reserved.low + context, reserved.high + context)


def _percents(run: Structure) -> tuple[int, int]:
    if run.sharding.divides:
        return DIVIDED
    if run.loss.startswith(("fused-linear", "chunked", "tiled", "unsloth", "cut", "score")):
        return CHUNKED
    return IN_A_LOOP if run.attention == "eager" or run.outputs_kept else WITH_LOGITS
