"""Checkpointing by functions of its own: the reentrant form, and forms whose checkpoints wait in host memory.

Each takes the place of torch.utils.checkpoint.checkpoint in transformers' layers, runs a layer without recording, and in its
backward runs it again to its end. Tensors on the CPU are not followed.
"""

from torch import nn
import torch
from torch.utils.checkpoint import CheckpointFunction

from .moments import decoder_layers

FIRST_BUFFER = 2 * 256 * 2048
"""Values of a staging buffer at first (unsloth_zoo 2026.10.9, gradient_checkpointing.py, INITIAL_GPU_BUFFER_SIZE)."""
SMALLEST = 2 * 1024 * 1024
"""Bytes above which a checkpoint leaves (same place, MINIMUM_SIZE)."""


def install(model: nn.Module, kind: str) -> None:
    """Make every layer checkpoint in one of KINDS."""
    function = KINDS[kind]()
    model.gradient_checkpointing_enable({"use_reentrant": True})
    if not all(parameter.requires_grad for parameter in model.parameters()):
        model.enable_input_require_grads()
    for layer in decoder_layers(model):
        layer._gradient_checkpointing_func = function


def run_again(call, hidden, gradient):
    """The layer once more from its input, and backward through it; the gradient of the input."""
    hidden.requires_grad_(True)
    with torch.enable_grad():
        output = call(hidden)
    torch.autograd.backward(output, gradient)
    return hidden.grad


def reentrant():
    """torch 2.13.0, utils/checkpoint.py, CheckpointFunction."""
    return lambda call, hidden: CheckpointFunction.apply(call, False, hidden)


class EachOffloaded(torch.autograd.Function):
    """unsloth_zoo 2026.10.9, gradient_checkpointing.py, Unsloth_Offloaded_Gradient_Checkpointer; llamafactory 0.9.5,
    model/model_utils/checkpointing.py, UnslothGradientCheckpointing; axolotl 0.19.0, CPU_Offloaded_Gradient_Checkpointer."""

    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(context, call, hidden):
        kept = hidden.to("cpu")
        with torch.no_grad():
            output = call(hidden)
        context.save_for_backward(kept)
        context.call = call
        return output

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(context, gradient):
        (kept,) = context.saved_tensors
        hidden = kept.to("cuda").detach()
        return None, run_again(context.call, hidden, gradient)


class Staging:
    """What UnslothCheckpointFunction keeps in module variables: the buffers, the count of layers, and whether this is the first pass."""

    def __init__(self, buffers: int, first_leaves: bool) -> None:
        self.count, self.first_leaves = buffers, first_leaves
        self.buffers: list[torch.Tensor] = []
        self.first_pass, self.last, self.current, self.slot, self.used = True, 0, 0, 0, 1

    def leaves(self, hidden: torch.Tensor) -> bool:
        """Whether this layer's input leaves the GPU."""
        self.last += self.first_pass
        self.current += 1
        large = hidden.numel() * 2 > SMALLEST
        return large and (self.current != self.last or (self.first_pass and self.first_leaves))

    def grow(self, values: int) -> None:
        """Buffers as large as the largest input; the second one from the second pass on."""
        self.used = 1 if self.first_pass else self.count
        while len(self.buffers) < self.count:
            self.buffers.append(torch.empty(FIRST_BUFFER, dtype=torch.bfloat16, device="cuda"))
        for index in range(self.used):
            if self.buffers[index].numel() < values:
                self.buffers[index] = None
                self.buffers[index] = torch.empty(values, dtype=torch.bfloat16, device="cuda")

    def back(self, values: int, shape) -> torch.Tensor:
        """An input that came back, in one of the buffers."""
        self.slot = (self.slot + 1) % self.used
        return self.buffers[self.slot][:values].view(shape)


class StagedCheckpoint(torch.autograd.Function):
    """unsloth_zoo 2026.10.9 and 2025.11.1, gradient_checkpointing.py, UnslothCheckpointFunction."""

    @staticmethod
    def forward(context, staging, call, hidden):
        context.staging, context.call, context.shape = staging, call, hidden.shape
        context.left = staging.leaves(hidden)
        context.autocast = torch.is_autocast_enabled("cuda")
        if context.left:
            staging.grow(hidden.numel())
            context.save_for_backward(hidden.to("cpu"))
        else:
            context.save_for_backward(hidden)
        with torch.no_grad():
            return call(hidden)

    @staticmethod
    def backward(context, gradient):
        staging = context.staging
        (kept,) = context.saved_tensors
        hidden = staging.back(kept.numel(), context.shape).detach() if context.left else kept.detach()
        staging.first_pass, staging.current = False, 0
        with torch.autocast("cuda", torch.bfloat16, enabled=context.autocast):
            hidden.requires_grad_(True)
            with torch.enable_grad():
                output = context.call(hidden)
        torch.autograd.backward(output, gradient)
        return None, None, hidden.grad


def staged(buffers: int, first_leaves: bool):
    def make():
        staging = Staging(buffers, first_leaves)
        return lambda call, hidden: StagedCheckpoint.apply(staging, call, hidden)

    return make


KINDS = {
    "reentrant": reentrant,
    "offloaded": lambda: EachOffloaded.apply,
    "staged": staged(2, True),
    "staged-later": staged(1, False),
}
"""By the word of the column `checkpointing`."""
