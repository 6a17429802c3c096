"""bitsandbytes' quantised linear layers, emulated: the same tensors at rest and the same temporaries at work.

The classes derive from bitsandbytes' own, because peft chooses its adapter class by them.
"""

import bitsandbytes
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from .kernels import ceil_div

BLOCK = 64
"""Weights per absmax, bitsandbytes 0.50.2, functional.py, quantize_4bit."""
NESTED_BLOCK = 256
"""absmax values per second absmax, same place, compress_statistics."""
CODE_LENGTH = 16
NESTED_CODE_LENGTH = 256


class Linear4bit(bitsandbytes.nn.Linear4bit):
    """bitsandbytes 0.50.2, nn/modules.py, Linear4bit with compute dtype bf16 (transformers' bnb_4bit_compute_dtype)."""

    def __init__(self, linear: nn.Linear, nested: bool, nested_code: torch.Tensor) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = widths(linear)
        self.bias = linear.bias
        self.compute_dtype, self.nested = torch.bfloat16, nested
        count = linear.weight.numel()
        self.weight = nn.Parameter(torch.empty(ceil_div(count, 2), 1, dtype=torch.uint8, device="meta"), False)
        self.weight.unpacked_numel = count
        self.weight.compress_statistics, self.weight.quant_type = nested, "nf4"
        blocks = ceil_div(count, BLOCK)
        self.code = nn.Buffer(torch.empty(CODE_LENGTH, device="meta"))
        self.absmax = nn.Buffer(torch.empty(blocks, dtype=torch.uint8 if nested else torch.float32, device="meta"))
        if nested:
            self.nested_absmax = nn.Buffer(torch.empty(ceil_div(blocks, NESTED_BLOCK), device="meta"))
            self.offset = nn.Buffer(torch.empty((), device="meta"))
            self.nested_code = nested_code

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Cast to the compute dtype, multiply, cast back to the input's dtype."""
        dtype = value.dtype
        value = value.to(self.compute_dtype)
        return MatMul4bit.apply(value, self.weight, self).to(dtype)

    def dequantize(self) -> torch.Tensor:
        """The weight in the compute dtype; with nested statistics, absmax is restored to fp32 first."""
        if self.nested:
            absmax = torch.empty_like(self.absmax, dtype=torch.float32)
            absmax = absmax + self.offset
        weight = torch.empty(self.out_features, self.in_features, dtype=self.compute_dtype, device="cuda")
        return weight


class MatMul4bit(torch.autograd.Function):
    """bitsandbytes 0.50.2, autograd/_functions.py, MatMul4Bit, and backends/cuda/ops.py, _dequant_linear_fallback.

    Dequantise, multiply, drop the weight; backward dequantises again. Keeps (None, packed weight). Exact above 1,536
    tokens; below that a fused kernel may do without the dequantised weight in the forward.
    """

    @staticmethod
    def forward(context, value, weight, layer):
        context.layer = layer
        return nn.functional.linear(value, layer.dequantize(), layer.bias)

    @staticmethod
    def backward(context, gradient):
        return torch.matmul(gradient, context.layer.dequantize().to(gradient.dtype)), None, None


class Linear8bit(bitsandbytes.nn.Linear8bitLt):
    """bitsandbytes 0.50.2, nn/modules.py, Linear8bitLt: one byte per weight and one fp32 scale per row."""

    def __init__(self, linear: nn.Linear) -> None:
        nn.Module.__init__(self)
        self.in_features, self.out_features = widths(linear)
        self.bias = linear.bias
        self.weight = nn.Parameter(torch.empty(self.out_features, self.in_features, dtype=torch.int8, device="meta"), False)
        self.scales = nn.Buffer(torch.empty(self.out_features, device="meta"))
        self.state = bitsandbytes.MatmulLtState()
        self.state.threshold = 6.0
        self.index = None

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return MatMul8bit.apply(value, self.weight, self)


class MatMul8bit(torch.autograd.Function):
    """bitsandbytes 0.50.2, autograd/_functions.py, MatMul8bitLt without outlier columns (threshold 6, none found).

    fp16 copy of the input, int8 rows and scales, int32 product, fp16 result, cast. Keeps its input; backward
    dequantises.
    """

    @staticmethod
    def forward(context, value, weight, layer):
        rows = value.reshape(-1, value.shape[-1])
        quantised = quantise_rows(rows)
        product = torch.empty(rows.shape[0], layer.out_features, dtype=torch.int32, device="cuda")
        result = torch.empty_like(product, dtype=torch.float16).to(value.dtype)
        del quantised, product
        context.layer, context.shape = layer, value.shape
        context.tensors = rows
        return result.reshape(*value.shape[:-1], layer.out_features)

    @staticmethod
    def backward(context, gradient):
        layer, dtype = context.layer, context.tensors.dtype
        gradient = gradient.reshape(-1, gradient.shape[-1]).contiguous()
        weight = layer.weight.to(dtype, copy=True).mul_(layer.scales.unsqueeze(1).mul(1 / 127))
        return torch.matmul(gradient.to(dtype), weight).view(context.shape), None, None


def quantise_rows(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """int8 rows and fp32 scales (backends/cuda/ops.py, int8_vectorwise_quant; the outlier search is a bool mask)."""
    half = rows.to(torch.float16)
    outliers = half.abs() >= 6.0
    del outliers
    scales = torch.empty(rows.shape[0], dtype=torch.float32, device="cuda")
    return torch.empty_like(half, dtype=torch.int8), scales


def widths(linear: nn.Module) -> tuple[int, int]:
    """(in, out) of a linear layer; GPT-2's keeps its weight the other way round."""
    if isinstance(linear, Conv1D):
        return linear.nx, linear.nf
    return linear.in_features, linear.out_features


def quantise(model: nn.Module, quantization: str) -> None:
    """Replace every linear layer but the head (transformers 5.24.0, quantizers: the output embedding is skipped, or the score;
    integrations/bitsandbytes.py, replace_with_bnb_linear: subclasses of nn.Linear, such as Falcon's, stay as they are).
    """
    nested_code = nn.Buffer(torch.empty(NESTED_CODE_LENGTH, device="meta"))
    head = getattr(model, "score", None) or model.get_output_embeddings()
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) not in (nn.Linear, Conv1D) or child is head:
                continue
            if quantization == "int8":
                setattr(parent, name, Linear8bit(child))
            else:
                setattr(parent, name, Linear4bit(child, quantization == "nf4-double", nested_code))
    model.is_quantized = True
    model.is_loaded_in_8bit = quantization == "int8"
    model.is_loaded_in_4bit = not model.is_loaded_in_8bit


def prepare(model: nn.Module, preparation: str) -> None:
    """What becomes of the weights that are not quantised: everything fp32 (peft), only norms fp32, or nothing."""
    if preparation == "peft":
        from peft import prepare_model_for_kbit_training

        prepare_model_for_kbit_training(model, use_gradient_checkpointing=False)
    if preparation == "norms":
        for name, module in model.named_modules():
            if "norm" in name.rpartition(".")[2]:
                module.to(torch.float32)
