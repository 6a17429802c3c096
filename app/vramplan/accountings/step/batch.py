"""A batch as what tensors grow with: tokens, the length of a row, and the blocks and chunks that rows are gone through in."""

from vramplan.accountings.step.delta_net import CHUNK
from vramplan.accountings.step.structure import Structure
from vramplan.accountings.step.tape import BLOCKS, CHUNKS, FIXED, LATER_CHUNKS, PAIRS, POSITIONS, SQUARES, TOKENS, Batch
from vramplan.accountings.step.whole import least, most
from vramplan.architecture import DELTA_NET

KEY_PARTS, ROWS_OF_KEYS = 200, 64
"""Parts that all heads' keys are worked on in at most, and keys of a block, in the memory-efficient kernel. Source: torch 2.13.0,
ATen/native/transformers/cuda/attention_backward.cu, _efficient_attention_backward (num_splits_key)."""


def batch_of(run: Structure, rows: int, length: int) -> Batch:
    """What the tensors of a run grow with where so many rows go through the model together; of arrays, arrays."""
    of_a_row = -(-length // CHUNK)  # the last one filled up
    chunks = (rows * of_a_row, rows * (of_a_row - 1)) if run.shape.mixer == DELTA_NET else (0, 0)
    return rows * length, length, _key_blocks(run, rows, length), *chunks


def _key_blocks(run: Structure, rows: int, length: int) -> int:
    """Blocks of keys whose gradients the memory-efficient kernel adds up at once."""
    if not run.keys_in_blocks:
        return 0
    heads = rows * run.shape.num_attention_heads
    return heads * most(least(-(-length // ROWS_OF_KEYS), KEY_PARTS // heads), 1)


def growths(tokens: int, sequence_length: int, key_blocks: int, chunks: int, later_chunks: int) -> dict[int, int]:
    """How many times its width a tensor has values in a batch, by the way it grows."""
    return {
        FIXED: 1, TOKENS: tokens, PAIRS: tokens * sequence_length, POSITIONS: sequence_length, SQUARES: sequence_length**2,
        BLOCKS: key_blocks, CHUNKS: chunks, LATER_CHUNKS: later_chunks,
    }
