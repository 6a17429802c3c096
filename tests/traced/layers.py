"""Which kernels the layers of a model run with."""

import sys

from torch import nn

from . import liger_layers

PATCHES = {"liger": liger_layers.install}
"""What patches a model, by the word of the column `kernels`."""

_own: dict[object, object] = {}
"""Rotary positions as every model's module has them, to be put back."""


def install(model: nn.Module, kernels: str) -> None:
    """Make a base model's layers run with `kernels`; what an earlier model's patch left in its module is taken back."""
    module = sys.modules[type(model).__module__]
    if hasattr(module, "apply_rotary_pos_emb"):
        module.apply_rotary_pos_emb = _own.setdefault(module, module.apply_rotary_pos_emb)
    if kernels != "plain":
        PATCHES[kernels](model)
