"""How many rows, and how many entries of the vocabulary, Unsloth's losses take at a time.

Belongs here: the rules by which they are chosen, for whole numbers of tokens and for arrays of them. Not here: what is held for
them, which is head.py.
"""

from vramplan.accountings.step.whole import either, least, most, power_from
from vramplan.units import GIB, MIB

FEWEST_LOGITS = 512 * 151_936
"""Scores that a chunk has at least room for. Source: unsloth_zoo 2026.10.9, fused_losses/fused_linear.py, _MIN_LOGITS."""

FEWEST_ROWS = 512
"""Rows of a chunk at least. Source: the same, fused_linear_rows."""

MOST_ROWS = 4_096
"""Rows of a chunk and of a tile at most. Source: the same, _MAX_ROWS and _BWD_ROWS."""

CHUNK_BUDGET_BYTES = 2 * GIB
"""Bytes of a chunk's scores at most. Source: the same, _CHUNK_GB; half of the free memory where that is less is not counted."""

SCORE_TILE_BYTES = 256 * MIB
"""Bytes of a tile of scores at most. Source: the same, _BWD_TILE_BYTES."""

TILE_STEP = 16_384
"""Columns that the width of a tile is a multiple of. Source: the same, _SPLIT_COLS; two such steps are not tiled: _tiled_vocab."""

SMALL_CARD_BYTES = 49 * GIB // 2
"""Memory up to which scores are always tiled, in narrow tiles. Source: the same, _SMALL_CARD_BYTES."""

CHUNK_MULTIPLE = 4
"""Chunks are counted in fours. Source: unsloth_zoo 2025.11.1, fused_losses/cross_entropy_loss.py, get_chunk_size."""

SCORE_BYTES = 4
"""Bytes of a float32 score."""


def rows_and_columns(*, tokens: int, vocab_size: int, hidden_size: int, tiles: bool, small_card: bool) -> tuple[int, int]:
    """(rows, columns) of the scores that Unsloth 2026 holds at a time; columns 0 where it is all of the vocabulary.

    tokens: labelled ones. tiles: a frozen head, and a GPU from compute capability 8.0 on. Source: unsloth_zoo 2026.10.9,
    fused_losses/fused_linear.py, fused_linear_rows, _tiled_layout, _ce_impl, _flash_min_rows_auto.
    """
    usual = _power_below(tokens * hidden_size // vocab_size)
    fewest = min(max(_power_below(FEWEST_LOGITS // vocab_size), FEWEST_ROWS), MOST_ROWS)
    by_budget = max(CHUNK_BUDGET_BYTES // (vocab_size * SCORE_BYTES), 2)
    whole = most(least(least(most(usual, fewest), min(MOST_ROWS, by_budget)), tokens), 1)
    if not tiles or vocab_size <= 2 * TILE_STEP:
        return whole, 0
    rows = least(MOST_ROWS, tokens)
    widest = TILE_STEP if small_card else most(SCORE_TILE_BYTES // (rows * SCORE_BYTES), TILE_STEP)
    columns = least(widest - widest % TILE_STEP, TILE_STEP * -(-vocab_size // TILE_STEP))
    tiled = (tokens >= MOST_ROWS) | small_card
    return either(tiled, rows, whole), either(tiled, columns, 0)


def rows_by_free_memory(*, tokens: int, vocab_size: int, free_bytes: int) -> int:
    """Tokens of one chunk of Unsloth 2025: the scores of a chunk, in float32, may take half of the memory that is free.

    Chunks are rounded to the nearest multiple of four, and to one: all scores at once where they fit the free memory.
    Source: unsloth_zoo 2025.11.1, fused_losses/cross_entropy_loss.py, _get_chunk_multiplier and get_chunk_size.
    """
    scores, part = SCORE_BYTES * tokens * vocab_size, CHUNK_MULTIPLE * most(free_bytes // 2, 1)
    fours, beyond = (2 * scores + part) // (2 * part), (2 * scores + part) % (2 * part)
    fours = fours - (beyond == 0) * (fours % 2)  # a half goes to the even neighbour, as Python rounds
    chunks = least(most(CHUNK_MULTIPLE * fours, 1), tokens)
    return -(-tokens // chunks)


def _power_below(value: int) -> int:
    """The largest power of two that is not above a number; 1 below 2."""
    return power_from(most(value, 1) + 1) // 2
