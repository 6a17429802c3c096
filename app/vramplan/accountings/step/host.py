"""Checkpoints that wait in host memory: how many bytes they take there, and what stays of them on the GPU.

Source: unsloth_zoo 2026.10.9 and 2025.11.1, gradient_checkpointing.py, UnslothCheckpointFunction and
Unsloth_Offloaded_Gradient_Checkpointer; llamafactory 0.9.5, model/model_utils/checkpointing.py; axolotl 0.19.0,
monkeypatch/gradient_checkpointing/offload_cpu.py.
"""

from vramplan.accountings.step.sharding import pinned_bytes

EACH, STAGED, STAGED_LATER = "each", "staged", "staged-later"
"""Ways to move checkpoints. Each: every layer's input leaves, and comes back as a new tensor. Staged: the last layer's stays, the others
come back through two buffers that stay. Staged later: one buffer, and in the first step nothing leaves yet."""

STAGING_BUFFERS = {EACH: 0, STAGED: 2, STAGED_LATER: 1}
"""Buffers on the GPU, each of the size of a checkpoint in 16 bits. The second one is left out with less than 512 MiB free, which is not
counted. Source: unsloth_zoo, GPU_BUFFERS, GPU_BUFFERS_B and USE_DOUBLE_BUFFER."""

KEEPS_LAST = (STAGED, STAGED_LATER)
"""Where the last layer's checkpoint stays on the GPU. Source: unsloth_zoo, LAST_GC_INDEX."""


def offloaded_checkpoint_bytes(*, kind: str, num_layers: int, checkpoint_bytes: int) -> int:
    """Bytes of host memory that one GPU's checkpoints take.

    checkpoint_bytes: of one checkpoint as it is stored. Pinned blocks are rounded up to powers of two. Unsloth's buffers stay for the whole run;
    in 2026 the last layer's leaves in the first step too, so it has one. Source: unsloth_zoo 2026.10.9, gradient_checkpointing.py, _pinned_block_bytes. Not counted: buffers of 256 KiB that no checkpoint uses.
    """
    if kind == EACH:
        return num_layers * checkpoint_bytes
    count = num_layers if kind == STAGED else num_layers - 1
    return count * pinned_bytes(size=checkpoint_bytes)
