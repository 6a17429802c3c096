"""Liger's RMSNorm, gated MLP and rotary positions, emulated: the same tensors kept, the same buffers written over.

Source: liger-kernel 0.8.5, liger_kernel/ops/rms_norm.py, LigerRMSNormFunction; ops/swiglu.py, LigerSiLUMulFunction (ops/geglu.py is
the same); ops/rope.py, LigerRopeFunction; transformers/monkey_patch.py for what is patched and where in_place is False.
"""

import sys
from types import MethodType

import torch
from torch import nn

MULTIPROCESSORS = 132
"""Rows of partial sums of a norm weight's gradient: those of an H100."""
NEW_GRADIENT = ("gemma2", "gemma3_text", "olmo2", "glm4", "exaone4")
"""Model types whose norms give a new gradient (in_place=False)."""
NO_ROTARY = ("glm4",)
"""Model types that keep their own rotary positions."""


def install(model: nn.Module) -> None:
    """Patch a model as apply_liger_kernel_to_... does, its loss left alone."""
    kind = model.config.model_type
    for module in model.modules():
        if type(module).__name__.endswith("RMSNorm"):
            module.in_place = kind not in NEW_GRADIENT
            module.forward = MethodType(norm_forward, module)
        elif hasattr(module, "gate_proj"):
            module.forward = MethodType(gated_forward, module)
        elif hasattr(module, "gate_up_proj"):
            module.forward = MethodType(halved_forward, module)
    if kind not in NO_ROTARY:
        sys.modules[type(model).__module__].apply_rotary_pos_emb = rotate


def norm_forward(self, hidden):
    return RMSNorm.apply(hidden, self.weight, self.in_place)


def gated_forward(self, x):
    return self.down_proj(Gate.apply(self.gate_proj(x), self.up_proj(x)))


def halved_forward(self, x):
    up = self.gate_up_proj(x)
    gate, up = up.chunk(2, dim=-1)
    return self.down_proj(Gate.apply(gate, up))


def rotate(query, key, cos, sin, position_ids=None, unsqueeze_dim=1):
    return Rotary.apply(query, key, cos, sin)


class RMSNorm(torch.autograd.Function):
    """Keeps its input and a float32 number per row; the output has the input's type."""

    @staticmethod
    def forward(context, value, weight, in_place):
        rows = value.contiguous().view(-1, value.shape[-1])
        inverse = torch.empty(rows.shape[0], dtype=torch.float32, device=value.device)
        context.save_for_backward(rows, weight, inverse)
        context.in_place = in_place
        return torch.empty_like(rows).view(value.shape)

    @staticmethod
    def backward(context, gradient):
        rows, weight, _ = context.saved_tensors
        partial = None
        if context.needs_input_grad[1]:
            partial = torch.empty(MULTIPROCESSORS, rows.shape[-1], dtype=torch.float32, device=rows.device)
        flat = gradient.contiguous().view(-1, rows.shape[-1])
        given = flat if context.in_place else torch.zeros_like(flat)
        return given.view(gradient.shape), None if partial is None else partial.sum(0).to(weight.dtype), None


class Gate(torch.autograd.Function):
    """Keeps gate and up, and writes their gradients over them."""

    @staticmethod
    def forward(context, gate, up):
        gate, up = gate.contiguous(), up.contiguous()
        product = torch.empty_like(gate)
        context.save_for_backward(gate, up)
        return product

    @staticmethod
    def backward(context, gradient):
        gate, up = context.saved_tensors
        return gate.view(gradient.shape), up.view(gradient.shape)


class Rotary(torch.autograd.Function):
    """Written over query and key, as they lie in memory token by token, and over their gradients."""

    @staticmethod
    def forward(context, query, key, cos, sin):
        context.save_for_backward(cos, sin)
        return as_it_lies(query), as_it_lies(key)

    @staticmethod
    def backward(context, of_query, of_key):
        return as_it_lies(of_query), as_it_lies(of_key), None, None


def as_it_lies(heads):
    """The same memory where it is contiguous with tokens before heads, else a copy that is."""
    return heads.transpose(1, 2).contiguous().transpose(1, 2)
