"""The formulas of Unsloth Studio's estimate, term by term.

Symbols, as its document has them: H hidden_size, L num_hidden_layers, n num_attention_heads, V vocab_size, K width of all keys,
M intermediate_size or moe_intermediate_size, E num_experts, r lora_r, B per_device_train_batch_size, S max_seq_length. Q is the
width of all queries, which its document takes to be H. Each function returns bytes or values, exact; `estimate` rounds every
term up to a whole byte once.

Source of all: Unsloth Studio, VRAM estimation for training (March 2026); since revised in its code, read in August 2026
(unslothai/unsloth, commit 007a781c, studio/backend/utils/hardware/vram_estimation.py).
"""

from fractions import Fraction

from vramplan.architecture import MLP_PROJECTIONS
from vramplan.constants import BF16_BYTES
from vramplan.units import GIB

NF4_FACTOR = Fraction(16, 5)
"""Times that a 4-bit weight with its scales is smaller than a 16-bit one, by its count: 3.2. Source: section 1."""

DOUBLE_QUANTIZED_FACTOR = Fraction(18, 5)
"""The same with double quantisation, since revision 2026-08: 3.6. Source: DOUBLE_QUANT_4BIT_FACTOR."""

ACTIVATION_MARGIN = Fraction(5, 4)
"""What the activations of a layer are multiplied by: 1.25. Source: section 5."""

ATTENTION_WORKSPACE_FACTOR = 12
"""16-bit copies of the scores that attention without a fused kernel is given, since revision 2026-08. Source:
NON_FLASH_ATTENTION_FACTOR."""

BATCH_OF_THE_FLOOR = 2
"""Micro-batch for which the floor of the activations is stated. Source: section 6."""

CUDA_OVERHEAD_BYTES = Fraction(14, 10) * GIB
"""Bytes for the CUDA driver and PyTorch's runtime: 1.4 GiB, which its authors fitted on an RTX 5070 Ti. Source: section 7."""

LAYERS_ALIVE = {"none": (None, None), "true": (Fraction(2), Fraction(1)), "unsloth": (Fraction(3, 2), Fraction(1))}
"""Layers whose activations are alive, by its mode of checkpointing: full fine-tuning, then adapters; none stands for all layers.
Source: section 5."""


def width_of_keys(*, hidden_size: int, num_attention_heads: int, num_kv_heads: int) -> int:
    """K: width of all keys, from a head that is the hidden size divided by the heads, rounded down.

    Source: symbols; its code divides whole numbers.
    """
    return hidden_size // num_attention_heads * num_kv_heads


def attention_values(*, hidden_size: int, query_width: int, key_width: int) -> int:
    """Values of one layer's four attention matrices: (Q, H), (K, H) twice, (H, Q). Source: section 1, QKVO. Not counted: biases."""
    return (query_width + key_width + key_width + query_width) * hidden_size


def mlp_values(*, hidden_size: int, mlp_width: int, experts: int) -> int:
    """Values of one layer's MLPs: gate, up and down (M, H) of every expert, and a router (E, H) where there are several.

    Source: section 1, MLP. Not counted: biases.
    """
    router = experts * hidden_size if experts > 1 else 0
    return hidden_size * mlp_width * MLP_PROJECTIONS * experts + router


def shared_values(*, hidden_size: int, shared_width: int, gated: bool) -> int:
    """Values of the experts that every token goes through: gate, up and down (M, H), and their own gate (1, H) where there is one.

    Source: _compute_shared_moe_elements. Not in the document of March 2026.
    """
    gate = hidden_size if gated else 0
    return hidden_size * shared_width * MLP_PROJECTIONS + gate


def unquantized_values(*, hidden_size: int, num_layers: int, vocab_size: int, matrices: int) -> int:
    """Values that stay in 16 bits: two norms (H) a layer, and the embedding (V, H) with the output head unless it is tied.

    Source: section 1, Non-quantizable. Not counted: the last norm, norms of queries and keys, biases.
    """
    return 2 * hidden_size * num_layers + matrices * vocab_size * hidden_size


def weights_bytes(*, quantizable: int, others: int, factor: Fraction) -> Fraction:
    """Bytes of the base model in 16 bits, the quantizable part smaller by `factor`. Source: section 1."""
    return BF16_BYTES * quantizable / factor + BF16_BYTES * others


def pair_values(*, rank: int, inputs: int, outputs: int) -> int:
    """Values of one adapter: A (in, r) and B (r, out). Source: section 2."""
    return inputs * rank + rank * outputs


def adapter_bytes(*, adapters: int) -> int:
    """Bytes of the adapters in 16 bits. Source: section 2, LoRA_bytes."""
    return BF16_BYTES * adapters


def optimizer_bytes(*, trainable: int, bytes_per_parameter: int) -> int:
    """Bytes of the optimizer's states. Source: section 3."""
    return trainable * bytes_per_parameter


def gradient_bytes(*, trainable: int) -> int:
    """Bytes of the gradients in 16 bits, before the floor. Source: section 4."""
    return BF16_BYTES * trainable


def layer_activation_bytes(*, micro_batch: int, sequence_length: int, query_width: int, key_width: int, mlp_width: int) -> Fraction:
    """Bytes of the activations of one layer.

    Shapes in 16 bits: queries (B, S, Q), keys and values (B, S, K), two values a token, two (B, S, M); a quarter on top.
    Source: section 5, Per_layer.
    """
    tokens = sequence_length * micro_batch
    values = tokens * (query_width + key_width + key_width) + tokens * 2 + tokens * (mlp_width + mlp_width)
    return values * BF16_BYTES * ACTIVATION_MARGIN


def attention_workspace_bytes(*, micro_batch: int, num_attention_heads: int, sequence_length: int, layers: Fraction) -> Fraction:
    """Bytes of scores (B, n, S, S) and of what goes with them, in the layers that are alive, for attention without a fused kernel.

    Source: section 5 as revised, Non_flash_attention. Not in the document of March 2026.
    """
    scores = micro_batch * num_attention_heads * sequence_length**2
    return scores * BF16_BYTES * ATTENTION_WORKSPACE_FACTOR * layers


def gradient_floor_bytes(*, weights: Fraction, fraction: Fraction) -> Fraction:
    """The least that gradients are taken to be: a fraction of the weights. Source: section 6."""
    return weights * fraction


def adapters_gradient_floor_bytes(*, weights: Fraction, fraction: Fraction, activations: Fraction, optimizer: int) -> Fraction:
    """The same for adapters since revision 2026-08: no more than activations or optimizer states. Source: section 6 as revised."""
    return min(weights * fraction, max(activations, Fraction(optimizer)))


def activation_floor_bytes(*, weights: Fraction, fraction: Fraction, micro_batch: int) -> Fraction:
    """The least that activations are taken to be: a fraction of the weights for every two sequences. Source: section 6; gone since
    revision 2026-08."""
    return weights * fraction * micro_batch / BATCH_OF_THE_FLOOR
