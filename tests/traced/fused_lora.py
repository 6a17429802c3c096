"""Unsloth's and Axolotl's functions for several adapted linear maps at once, emulated: the same tensors kept, the same buffers.

Source: unsloth 2026.10.9 and 2025.11.1, kernels/fast_lora.py, LoRA_QKV, LoRA_W, LoRA_MLP; kernels/utils.py, matmul_lora,
fast_dequantize; kernels/rms_layernorm.py, Fast_RMS_Layernorm; kernels/rope_embedding.py; axolotl 0.19.0, kernels/lora.py, kernels/swiglu.py.
"""

import sys
from dataclasses import dataclass, field
from types import MethodType

import torch
from torch import nn

from .liger_layers import RMSNorm, as_it_lies
from .moments import decoder_layers

SCALES_BLOCK = 64


@dataclass
class Kernels:
    """One library's choices. in_place: the input's gradient is written over the input. buffers: unpacked weights have buffers that
    stay, with their scales or without. saves_copies: 16-bit copies of adapters are kept."""

    in_place: bool
    buffers: bool
    scales: bool
    saves_copies: bool
    kept: dict = field(default_factory=dict)

    def unpack(self, layer: nn.Module, *, stays: bool = False) -> torch.Tensor:
        """The weight (out, in) in 16 bits."""
        if isinstance(layer, nn.Linear) and not hasattr(layer, "dequantize"):
            return layer.weight
        values = layer.in_features * layer.out_features
        if not (stays and self.buffers):
            scales = torch.empty(values // SCALES_BLOCK, dtype=torch.float32, device="cuda") if self.scales else None
            weight = torch.empty(layer.out_features, layer.in_features, dtype=torch.bfloat16, device="cuda")
            del scales
            return weight
        if self.kept.get("weight") is None or self.kept["weight"].numel() < values:
            self.kept["weight"] = torch.empty(values, dtype=torch.bfloat16, device="cuda")
            if self.scales:
                self.kept["scales"] = torch.empty(values // SCALES_BLOCK, dtype=torch.float32, device="cuda")
        return self.kept["weight"][:values].view(layer.out_features, layer.in_features)


UNSLOTH_2026 = dict(in_place=True, buffers=True, scales=False, saves_copies=False)
UNSLOTH_2025 = dict(in_place=True, buffers=True, scales=True, saves_copies=False)
AXOLOTL = dict(in_place=False, buffers=False, scales=True, saves_copies=True)


class Map:
    """A linear map with its adapter, looked up when it is used: the base layer, A (r, in), B (out, r)."""

    def __init__(self, wrapped: nn.Module) -> None:
        self.wrapped, self.scale = wrapped, wrapped.scaling["default"]

    @property
    def base(self) -> nn.Module:
        return self.wrapped.base_layer

    @property
    def a(self) -> torch.Tensor:
        return self.wrapped.lora_A["default"].weight

    @property
    def b(self) -> torch.Tensor:
        return self.wrapped.lora_B["default"].weight


def product(kernels: Kernels, x, base, a, b, scale, transposed=False) -> torch.Tensor:
    """x times a weight, plus the adapter's part. `transposed`: for the gradient. (matmul_lora)"""
    weight = kernels.unpack(base, stays=True)
    result = torch.matmul(x, weight if transposed else weight.t())
    del weight
    inner = torch.matmul(x, a.t().to(x.dtype))
    result.addmm_(inner, b.t().to(x.dtype), alpha=scale)
    return result


def adapter_gradients(x, gradient, a, b) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(of A, of B, the gradient behind B), in the type of x. a is (in, r), b (r, out)."""
    behind = gradient @ b.t()
    of_a, of_b = torch.empty_like(a), torch.empty_like(b)
    of_a.addmm_(x.t(), behind, beta=0)
    of_b.addmm_(a.t() @ x.t(), gradient, beta=0)
    return of_a, of_b, behind


def add_input_gradient(kernels, total, gradient, one, a, behind, out=None):
    """dX of one map: a new tensor, one written over X, or added to what there is."""
    weight = kernels.unpack(one.base)
    if total is None:
        total = torch.matmul(gradient, weight, out=out)
    else:
        total.addmm_(gradient, weight)
    del weight
    return total.addmm_(behind, a.t())


def pairs(maps):
    return [each for one in maps for each in (one.a, one.b)]


class Heads(torch.autograd.Function):
    """Query, key and value (LoRA_QKV)."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(context, kernels, maps, x, *adapters):
        rows = x.view(-1, x.shape[-1])
        results = [product(kernels, rows, one.base, one.a, one.b, one.scale).view(*x.shape[:-1], -1) for one in maps]
        context.kernels, context.maps = kernels, maps
        context.save_for_backward(x, *(each.to(x.dtype) if kernels.saves_copies else each for each in adapters))
        return tuple(results)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(context, *gradients):
        x, *adapters = context.saved_tensors
        kernels, shape = context.kernels, x.shape
        gradients = [each.reshape(-1, each.shape[-1]) for each in gradients]
        x = x.view(-1, x.shape[-1])
        adapters = [each.to(x.dtype).t() for each in adapters]
        found = [adapter_gradients(x, gradient, *adapters[2 * i : 2 * i + 2]) for i, gradient in enumerate(gradients)]
        total = None
        for i, (one, gradient) in enumerate(zip(context.maps, gradients, strict=True)):
            out = x if kernels.in_place and total is None else None
            total = add_input_gradient(kernels, total, gradient, one, adapters[2 * i], found[i][2], out)
        return None, None, total.view(shape), *(each.t() for of_a, of_b, _ in found for each in (of_a, of_b))


class Output(torch.autograd.Function):
    """The output map of attention (LoRA_W, LoRA_O)."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(context, kernels, one, x, a, b):
        result = product(kernels, x.view(-1, x.shape[-1]), one.base, a, b, one.scale).view(*x.shape[:-1], -1)
        context.kernels, context.one = kernels, one
        a, b = (each.to(x.dtype) if kernels.saves_copies else each for each in (a, b))
        context.save_for_backward(a, b, x)
        return result

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(context, gradient):
        a, b, x = context.saved_tensors
        shape = x.shape
        gradient, x = gradient.reshape(-1, gradient.shape[-1]), x.reshape(-1, x.shape[-1])
        a, b = a.to(x.dtype).t(), b.to(x.dtype).t()
        of_a, of_b, behind = adapter_gradients(x, gradient, a, b)
        total = add_input_gradient(context.kernels, None, gradient, context.one, a, behind)
        return None, None, total.view(shape), of_a.t(), of_b.t()


class MLP(torch.autograd.Function):
    """Gate, up, their product, down (LoRA_MLP)."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(context, kernels, maps, x, *adapters):
        rows = x.view(-1, x.shape[-1])
        gate, up = (product(kernels, rows, one.base, one.a, one.b, one.scale) for one in maps[:2])
        inner = torch.empty_like(gate)
        result = product(kernels, inner, maps[2].base, maps[2].a, maps[2].b, maps[2].scale)
        context.kernels, context.maps = kernels, maps
        kept = [each.to(x.dtype) if kernels.saves_copies else each for each in adapters]
        context.save_for_backward(*kept, x, gate, up)
        return result.view(*x.shape[:-1], -1)

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(context, gradient):
        *adapters, x, gate, up = context.saved_tensors
        kernels, shape = context.kernels, x.shape
        of_gate_map, of_up_map, of_down_map = context.maps
        gradient = gradient.reshape(-1, gradient.shape[-1])
        x = x.view(-1, x.shape[-1])
        gate_a, gate_b, up_a, up_b, down_a, down_b = (each.to(x.dtype).t() for each in adapters)
        inner = product(kernels, gradient, of_down_map.base, down_b, down_a, of_down_map.scale, transposed=True)
        of_up, of_gate = gate, up  # the kernel writes the product over `inner` and both gradients over gate and up
        down = adapter_gradients(inner, gradient, down_a, down_b)
        of_up_pair = adapter_gradients(x, of_up, up_a, up_b)
        of_gate_pair = adapter_gradients(x, of_gate, gate_a, gate_b)
        total = add_input_gradient(kernels, None, of_up, of_up_map, up_a, of_up_pair[2], x if kernels.in_place else None)
        total = add_input_gradient(kernels, total, of_gate, of_gate_map, gate_a, of_gate_pair[2])
        found = (*of_gate_pair[:2], *of_up_pair[:2], *down[:2])
        return None, None, total.view(shape), *(each.t() for each in found)


class Rotary(torch.autograd.Function):
    """In place forward, new tensors backward (Fast_RoPE_Embedding_QK_Positions)."""

    @staticmethod
    def forward(context, query, key, cos, sin):
        context.kept = cos, sin
        return as_it_lies(query), as_it_lies(key)

    @staticmethod
    def backward(context, of_query, of_key):
        new = (torch.empty_like(each.transpose(1, 2)).transpose(1, 2) for each in (of_query, of_key))
        return *new, None, None


def adapted(module: nn.Module, names: tuple[str, ...], *, biases: bool) -> list[Map] | None:
    """The maps of these names where each has an adapter and, unless `biases`, none a bias."""
    found = [getattr(module, name) for name in names]
    if not all(hasattr(each, "lora_A") for each in found):
        return None
    if not biases and any(each.base_layer.bias is not None for each in found):
        return None
    return [Map(each) for each in found]


def own_attention(kernels: Kernels, module: nn.Module, rotate):
    """A forward pass of attention with the fused functions."""
    heads = adapted(module, ("q_proj", "k_proj", "v_proj"), biases=not kernels.in_place)
    output = adapted(module, ("o_proj",), biases=not kernels.in_place)

    def forward(self, hidden_states, position_embeddings=None, attention_mask=None, **kwargs):
        shape = (*hidden_states.shape[:-1], -1, self.head_dim)
        if heads:
            query, key, value = Heads.apply(kernels, heads, hidden_states, *pairs(heads))
        else:
            query, key, value = self.q_proj(hidden_states), self.k_proj(hidden_states), self.v_proj(hidden_states)
        query, key, value = (each.view(shape) for each in (query, key, value))
        if hasattr(self, "q_norm"):
            query, key = self.q_norm(query), self.k_norm(key)
        query, key, value = (each.transpose(1, 2) for each in (query, key, value))
        query, key = rotate(query, key, *position_embeddings)
        result = nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=True, enable_gqa=query.shape[1] != key.shape[1]
        )
        result = result.transpose(1, 2).reshape(*hidden_states.shape[:-1], -1)
        result = Output.apply(kernels, output[0], result, output[0].a, output[0].b) if output else self.o_proj(result)
        return result, None

    return forward


def install(model: nn.Module, choices: dict, *, own_norms: bool) -> None:
    """Patch a model with adapters: what is fused where every map of a group has one, and with `own_norms` Unsloth's norms and rotary."""
    kernels = Kernels(**choices)
    rotate = lambda query, key, cos, sin: Rotary.apply(query, key, cos, sin)  # noqa: E731
    for layer in decoder_layers(model):
        module = sys.modules[type(layer).__module__]
        layer.self_attn.forward = MethodType(own_attention(kernels, layer.self_attn, rotate if own_norms else module.apply_rotary_pos_emb), layer.self_attn)
        maps = adapted(layer.mlp, ("gate_proj", "up_proj", "down_proj"), biases=not kernels.in_place)
        if maps:
            layer.mlp.forward = MethodType(lambda self, x, maps=maps: MLP.apply(kernels, maps, x, *pairs(maps)), layer.mlp)
    if own_norms:
        for name, norm in model.named_modules():
            if type(norm).__name__.endswith("RMSNorm"):
                before_block = name.endswith(("input_layernorm", "post_attention_layernorm"))
                norm.forward = MethodType(lambda self, x, over=before_block: RMSNorm.apply(x, self.weight, over), norm)
