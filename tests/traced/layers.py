"""Which kernels the layers of a model run with."""

import sys

from torch import nn

from . import fused_lora, liger_layers

PATCHES = {"liger": liger_layers.install}
"""What patches a model before it gets adapters, by the word of the column `kernels`."""

OF_ADAPTERS = {
    "unsloth-2026": (fused_lora.UNSLOTH_2026, True), "unsloth-2025": (fused_lora.UNSLOTH_2025, True), "axolotl": (fused_lora.AXOLOTL, False),
}  # fmt: skip
"""What patches it afterwards: the choices of the kernels, and whether norms and rotary positions are the library's too."""

_own: dict[object, object] = {}
"""Rotary positions as every model's module has them, to be put back."""


def install(model: nn.Module, kernels: str) -> None:
    """Make a base model's layers run with `kernels`; what an earlier model's patch left in its module is taken back."""
    module = sys.modules[type(model).__module__]
    if hasattr(module, "apply_rotary_pos_emb"):
        module.apply_rotary_pos_emb = _own.setdefault(module, module.apply_rotary_pos_emb)
    if kernels in PATCHES:
        PATCHES[kernels](model)


def install_for_adapters(model: nn.Module, kernels: str) -> None:
    """The same for a model that has its adapters."""
    if kernels in OF_ADAPTERS:
        choices, own_norms = OF_ADAPTERS[kernels]
        fused_lora.install(model, choices, own_norms=own_norms)
