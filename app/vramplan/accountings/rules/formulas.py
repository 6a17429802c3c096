"""The formulas and the bytes of the byte rules. Symbols as in the package."""

from dataclasses import dataclass
from fractions import Fraction

from vramplan.constants import ADAM_MOMENTS, ATTENTION_SCORE_BYTES, BF16_BYTES, FP32_BYTES, INT8_BYTES, LAYER_ACTIVATION_BYTES, NF4_BYTES


@dataclass(frozen=True)
class Copies:
    """Bytes per trained parameter: its weight, its gradient, its master copy, and both moments together."""

    weight: int
    gradient: int
    master: int
    moments: int

    @property
    def all(self) -> int:
        """Bytes of all of them."""
        return self.weight + self.gradient + self.master + self.moments


MIXED = Copies(BF16_BYTES, BF16_BYTES, FP32_BYTES, ADAM_MOMENTS * FP32_BYTES)
"""16 bytes: 2, 2, 4, 4 and 4. Source: Rajbhandari et al. 2020 (ZeRO), section 3.1."""

SINGLE = Copies(FP32_BYTES, FP32_BYTES, 0, ADAM_MOMENTS * FP32_BYTES)
"""16 bytes too: 4, 4, none, 4 and 4; the weights are their own masters. Source: Kingma and Ba 2015 in float32."""

HALF = Copies(BF16_BYTES, BF16_BYTES, 0, ADAM_MOMENTS * BF16_BYTES)
"""8 bytes: moments have the type of their parameter. Source: torch 2.13.0, optim/adamw.py, _init_group (zeros_like)."""

NOTHING = Copies(0, 0, 0, 0)
"""Nothing is trained."""

MOMENTS = {
    "adamw-foreach": None,
    "adamw-fused": None,
    "adamw-fp32-states": ADAM_MOMENTS * FP32_BYTES,
    "adamw-8bit": ADAM_MOMENTS * INT8_BYTES,
}
"""Bytes of both moments where the optimizer has a say in them. Source: Dettmers et al. 2022 (8-bit optimizers), table 1."""

QUANTIZED_BYTES = {
    "nf4-double": NF4_BYTES,
    "nf4": NF4_BYTES,
    "int8": INT8_BYTES,
    "gptq": NF4_BYTES,
    "gptq-ungrouped": NF4_BYTES,
    "awq": NF4_BYTES,
}
"""Bytes per weight of a quantised base, scales left out, embeddings quantised like the rest: half a byte, or one."""

FP8_BYTES = INT8_BYTES
"""Bytes per 8-bit floating-point value. Source: Micikevicius et al. 2022 (FP8 formats)."""

SERVED_BYTES = {"fp32": FP32_BYTES, "bf16": BF16_BYTES, "fp8": FP8_BYTES, "int8": INT8_BYTES, "int4": NF4_BYTES}
"""Bytes per weight of a model that is served."""

CACHED_BYTES = {"16-bit": BF16_BYTES, "8-bit": FP8_BYTES}
"""Bytes per value of the key/value cache."""

DIVIDED = {
    "none": (), "ddp": (),
    "zero1": ("master_weights", "optimizer_states"),
    "zero2": ("master_weights", "optimizer_states", "gradients"),
    "zero3": ("master_weights", "optimizer_states", "gradients", "base_weights", "adapters"),
}
"""Rows that the GPUs of one copy share out. Source: Rajbhandari et al. 2020 (ZeRO), section 5; FSDP divides what ZeRO-3 does."""


def states_bytes(*, parameters: int, per_parameter: int, gpus: int) -> Fraction:
    """Bytes of one kind of state over all its parameters, the part of one of so many GPUs. Source: Rajbhandari et al. 2020, section 5."""
    return Fraction(parameters * per_parameter, gpus)


def weights_bytes(*, parameters: int, per_parameter: Fraction, gpus: int) -> Fraction:
    """Bytes of all weights at so many bytes each, the part of one GPU.

    Source: byte counts of the formats. Not counted: scales of quantised weights, and what a quantised model leaves unquantised.
    """
    return Fraction(parameters * per_parameter) / gpus


def activations_bytes(
    *, micro_batch: int, sequence_length: int, hidden_size: int, num_layers: int, num_attention_heads: int, checkpointing: bool, stores_scores: bool
) -> int:
    """Bytes kept from forward to backward: 34 B S H in each layer, with stored scores 5 B n S S more; with checkpointing the input of each, 2 B S H.

    Source: Korthikanti et al. 2022, section 4.1, equation 2, and section 5 (full recomputation).
    Not counted: the width of the MLP, grouped heads, the layer that is computed again, adapters.
    """
    tokens = micro_batch * sequence_length
    if checkpointing:
        return num_layers * BF16_BYTES * tokens * hidden_size
    scores = ATTENTION_SCORE_BYTES * num_attention_heads * tokens * sequence_length if stores_scores else 0
    return num_layers * (LAYER_ACTIVATION_BYTES * tokens * hidden_size + scores)


def cache_bytes(*, num_layers: int, num_kv_heads: int, head_dim: int, tokens: int, per_value: int) -> int:
    """Bytes of keys and values of so many tokens: 2 L k d of them for each.

    Source: Pope et al. 2022, section 3.3. Not counted: windows, which would need less, and what a server reserves ahead.
    """
    return 2 * num_layers * num_kv_heads * head_dim * per_value * tokens
