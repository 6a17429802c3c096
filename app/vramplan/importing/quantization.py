"""How a file says its weights are stored: the settings that say the same, and the bytes they take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from vramplan.constants import BF16_BYTES, FP32_BYTES, INT8_BYTES, NF4_BYTES
from vramplan.importing.inventory import Inventory, Module
from vramplan.importing.values import absent, shown, typed
from vramplan.quantized import QUANTIZED
from vramplan.units import whole_bytes_up

FP8_BLOCK = 128
"""Rows and columns of a block of 8-bit floats that share a float32 scale. Source: DeepSeek-V3's config.json,
weight_block_size; transformers 5.24.0, integrations/finegrained_fp8.py."""

MXFP4_BLOCK = 32
"""Values of a block of 4-bit floats that share one byte of scale. Source: OCP Microscaling Formats 1.0, section 5.2."""

GPTQ_GROUPS = {128: "gptq", -1: "gptq-ungrouped"}
"""Settings by group_size of 4-bit GPTQ."""


@dataclass(frozen=True)
class Storage:
    """How a model's weights are stored: `quantization` as the setting takes it (empty if it has no such value), bytes of
    all weights (None if unknown), and why an estimate cannot use it (empty if it can)."""

    quantization: str
    bytes: int | None
    unsupported: str


def storage(config: Mapping[str, object], inventory: Inventory) -> Storage:
    """The storage of a model by its config.json. `config` is the part that describes the decoder."""
    size = FP32_BYTES if (config.get("dtype") or config.get("torch_dtype")) == "float32" else BF16_BYTES
    given = config.get("quantization_config")
    if not isinstance(given, Mapping):
        why = "" if absent(given) else f"quantization_config must be an object; got {shown(given)}"
        return Storage("", size * inventory.total, why)
    method = str(given.get("quant_method") or ("bitsandbytes" if given.get("load_in_4bit") or given.get("load_in_8bit") else ""))
    kept = _kept(given)
    name = _setting(method, given)
    if name:
        return Storage(name, _bytes(inventory, size, kept, lambda module: QUANTIZED[name](
            values=module.inputs * module.outputs, inputs=module.inputs, outputs=module.outputs)), "")
    if method == "fp8":
        return Storage("", _bytes(inventory, size, kept, _fp8, experts=True), "the weights are stored in FP8, which no accounting trains on")
    if method == "mxfp4":
        return Storage("", _bytes(inventory, size, kept, _mxfp4, experts=True, linear=False), "the experts are stored in MXFP4, which no accounting trains on")
    return Storage("", None, f"the weights are stored as {shown(method) if method else 'something unnamed'}, which this calculator does not count")


def _kept(given: Mapping[str, object]) -> tuple[str, ...]:
    """Parts of the names of modules that are not quantised."""
    for key in ("modules_to_not_convert", "llm_int8_skip_modules"):
        if not absent(given.get(key)):
            return tuple(map(str, typed(given[key], "list", f"quantization_config.{key}")))
    return ()


def _setting(method: str, given: Mapping[str, object]) -> str:
    """The value of the setting `quantization`, or nothing."""
    bits, group = given.get("bits", given.get("w_bit")), given.get("group_size", given.get("q_group_size", 128))
    if method == "bitsandbytes":
        if given.get("load_in_4bit"):
            return "nf4-double" if given.get("bnb_4bit_use_double_quant") else "nf4"
        return "int8" if given.get("load_in_8bit") else ""
    if method == "gptq" and bits == 4 and isinstance(group, int):
        return GPTQ_GROUPS.get(group, "")
    return "awq" if method == "awq" and bits == 4 and group == 128 else ""


def _bytes(
    inventory: Inventory, size: int, kept: tuple[str, ...], quantized: Callable[[Module], Fraction | int], *, experts: bool = False, linear: bool = True
) -> int:
    """Bytes of all weights: `quantized` gives those of one quantised matrix; the head, tables and norms keep their size."""
    total = 0
    for module in inventory.modules:
        if ((module.adaptable and linear) or (experts and module.fused)) and not any(part in module.path for part in kept):
            total += module.count * (whole_bytes_up(quantized(module)) + size * module.bias)
        else:
            total += size * module.parameters
    return total


def _fp8(module: Module) -> int:
    """8-bit values and a float32 scale per block."""
    blocks = -(-module.inputs // FP8_BLOCK) * -(-module.outputs // FP8_BLOCK)
    return INT8_BYTES * module.inputs * module.outputs + FP32_BYTES * blocks


def _mxfp4(module: Module) -> Fraction:
    """4-bit values and a byte of scale per block."""
    return (NF4_BYTES + Fraction(INT8_BYTES, MXFP4_BLOCK)) * module.inputs * module.outputs
