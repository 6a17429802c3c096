"""Names the moments of a training step and switches between them as the model runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from .tracker import AllocationTracker

LOADED = "load"
FORWARD = "forward"
LOSS_FORWARD = "loss_forward"
REFERENCE_FORWARD = "reference_forward"
LOSS_BACKWARD = "loss_backward"
BACKWARD_END = "backward_end"
CLIP = "clip"
OPTIMIZER_STEP = "optimizer_step"


class Moments:
    """Marks on the tracker where each moment starts. A mark is `step/micro-batch/moment`."""

    def __init__(self, tracker: AllocationTracker) -> None:
        self.tracker = tracker
        self.step = 0
        self.micro_batch = 0
        self.silent = False

    def start(self, moment: str) -> None:
        self.tracker.start(f"{moment}/{self.step}/{self.micro_batch}")

    @contextmanager
    def reference(self) -> Iterator[None]:
        """Everything within is the reference's forward, whichever layers run."""
        self.start(REFERENCE_FORWARD)
        self.silent = True
        try:
            yield
        finally:
            self.silent = False
            self.start(LOSS_FORWARD)

    def attach(self, model: torch.nn.Module) -> None:
        """Follow the decoder layers forward by module hooks and backward by hooks on autograd's nodes."""
        layers = decoder_layers(model)
        for index, layer in enumerate(layers):
            layer.register_forward_pre_hook(self._before_layer(index), with_kwargs=True)
            layer.register_forward_hook(self._after_layer(index, len(layers)))

    def _before_layer(self, index: int) -> Callable:
        def hook(module, args, kwargs):
            if self.silent:
                return
            hidden = args[0] if args else kwargs["hidden_states"]
            self.start(f"{FORWARD}_{index}")
            if index == 0 and hidden.requires_grad:
                hidden.register_hook(lambda gradient: self.start(BACKWARD_END))

        return hook

    def _after_layer(self, index: int, count: int) -> Callable:
        def hook(module, args, output):
            if self.silent:
                return
            hidden = output[0] if isinstance(output, tuple) else output
            if hidden.grad_fn is not None:
                hidden.grad_fn.register_prehook(lambda gradients: self.start(f"backward_{index}"))
            if index == count - 1:
                self.start(LOSS_FORWARD)

        return hook


def decoder_layers(model: torch.nn.Module) -> torch.nn.ModuleList:
    """The list of decoder layers, however many wrappers there are around it."""
    return next(module for name, module in model.named_modules() if name.split(".")[-1] in ("layers", "h"))
