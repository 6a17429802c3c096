"""Bytes per value and the other fixed numbers of the accountings, each with its unit and source."""

from fractions import Fraction

from vramplan.units import GIB

BF16_BYTES = 2
"""Bytes per bfloat16 value: 16 bits."""

FP32_BYTES = 4
"""Bytes per float32 value: 32 bits (IEEE 754)."""

INT8_BYTES = 1
"""Bytes per 8-bit value: one quantized optimizer moment, or one first-level quantized scale."""

NF4_BYTES = Fraction(1, 2)
"""Bytes per 4-bit NormalFloat value. Source: Dettmers et al. 2023 (QLoRA), section 3."""

NF4_BLOCK_SIZE = 64
"""Weights that share one scale. Source: QLoRA, section 3, double quantization."""

NF4_SCALE_GROUP_SIZE = 256
"""First-level scales that share one second-level float32 scale. Source: QLoRA, section 3, double quantization."""

NF4_DOUBLE_QUANTIZED_BYTES = (
    NF4_BYTES
    + Fraction(INT8_BYTES, NF4_BLOCK_SIZE)
    + Fraction(FP32_BYTES, NF4_BLOCK_SIZE * NF4_SCALE_GROUP_SIZE)
)
"""Bytes per quantized weight with its share of both levels of scales: 0.515869140625."""

CUBLAS_WORKSPACE_BYTES = 4_096 * 1_024 * 2 + 16 * 1_024 * 8
"""Bytes of the workspace PyTorch gives a cuBLAS handle, inside its own allocator, on cards before Hopper: 8,519,680.
Source: torch 2.13.0, ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize."""

CUBLAS_HANDLES = 2
"""Handles that a training process opens: for the main thread and for autograd's. Measured: recorded runs on T4 and A100."""

GPTQ_GROUP_SIZE = 128
"""Weights that share one scale in GPTQ and AWQ checkpoints. Source: the group_size of nearly all published checkpoints."""

EIGHT_BIT_BLOCK_SIZE = 256
"""Values of an 8-bit optimizer state that share a float32 scale. Source: bitsandbytes 0.50.2, optim/optimizer.py,
Optimizer2State.init_state."""

EIGHT_BIT_SMALLEST_TENSOR = 4_096
"""Values from which a parameter's states are kept in 8 bits. Source: bitsandbytes 0.50.2, min_8bit_size."""

PAGED_SMALLEST_TENSOR = 100_000
"""Values from which a paged state is unified memory. Source: bitsandbytes 0.50.2, optim/optimizer.py, get_state_buffer."""

ADAM_MOMENTS = 2
"""Running statistics AdamW keeps per trainable parameter: first and second moment. Source: Loshchilov and Hutter 2019."""

LAYER_ACTIVATION_BYTES = 34
"""Bytes per token and hidden unit that one transformer layer keeps for backward, without the attention scores.

Source: Korthikanti et al. 2022, section 4.1, equation 1 (16-bit activations, no parallelism)."""

ATTENTION_SCORE_BYTES = 5
"""Bytes per attention head and pair of tokens that conventional attention keeps for backward: softmax output 2,
dropout mask 1, dropout output 2. Source: Korthikanti et al. 2022, section 4.1, equation 1."""

FIXED_ALLOWANCE_BYTES = 2 * GIB
"""Bytes set aside for the CUDA context, library workspaces and allocator slack. Nobody measured it: it is a round
margin. Source: planning formula, constant term."""
