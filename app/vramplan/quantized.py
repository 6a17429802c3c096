"""Bytes of a linear weight (out, in) as each kind of quantisation stores it: values, scales, and what else lies beside them."""

from fractions import Fraction

from vramplan.constants import (
    BF16_BYTES,
    FP32_BYTES,
    GPTQ_GROUP_SIZE,
    INT8_BYTES,
    NF4_BLOCK_SIZE,
    NF4_BYTES,
    NF4_DOUBLE_QUANTIZED_BYTES,
)


def _nf4_double(*, values: int, inputs: int, outputs: int) -> Fraction:
    """4-bit values, an 8-bit scale per block, a float32 scale per group of scales. Source: Dettmers et al. 2023, section 3."""
    return NF4_DOUBLE_QUANTIZED_BYTES * values


def _nf4(*, values: int, inputs: int, outputs: int) -> Fraction:
    """4-bit values and a float32 scale per block. Source: Dettmers et al. 2023, section 3."""
    return (NF4_BYTES + Fraction(FP32_BYTES, NF4_BLOCK_SIZE)) * values


def _int8(*, values: int, inputs: int, outputs: int) -> int:
    """8-bit values and a float32 scale per output. Source: bitsandbytes 0.50.2, nn/modules.py, Int8Params (CB, SCB)."""
    return INT8_BYTES * values + FP32_BYTES * outputs


def _awq(*, values: int, inputs: int, outputs: int) -> Fraction:
    """4-bit values; a 16-bit scale and a 4-bit zero point per group. Source: AutoAWQ, WQLinear_GEMM (qweight, scales, qzeros)."""
    return (NF4_BYTES + Fraction(BF16_BYTES + NF4_BYTES, GPTQ_GROUP_SIZE)) * values


def _gptq_ungrouped(*, values: int, inputs: int, outputs: int) -> Fraction:
    """4-bit values, one scale and zero point per output, and an int32 group index per input. Source: as GPTQ, group_size -1."""
    return NF4_BYTES * values + (BF16_BYTES + NF4_BYTES) * outputs + FP32_BYTES * inputs


def _gptq(*, values: int, inputs: int, outputs: int) -> Fraction:
    """As AWQ, and an int32 group index per input. Source: AutoGPTQ, QuantLinear (qweight, scales, qzeros, g_idx)."""
    return _awq(values=values, inputs=inputs, outputs=outputs) + FP32_BYTES * inputs


QUANTIZED = {"nf4-double": _nf4_double, "nf4": _nf4, "int8": _int8, "gptq": _gptq, "gptq-ungrouped": _gptq_ungrouped, "awq": _awq}
"""Bytes of one quantised (out, in) weight by the kind of quantisation."""
