"""One optimizer step as transformers' Trainer runs it, on the imaginary device.

Source: transformers 5.24.0, trainer.py: _run_epoch, training_step, compute_loss, _clip_grad_norm; accelerate 1.15.0,
accelerator.py: prepare_model, backward, clip_grad_norm_. What those functions keep alive across moments is kept here:
the micro-batches of the step, num_items_in_batch, the running loss; the model's outputs are dropped before backward.
"""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import torch
from accelerate.utils.operations import convert_outputs_to_fp32

from .configurations import Configuration
from .moments import CLIP, FORWARD, LOSS_BACKWARD, OPTIMIZER_STEP, Moments
from .tracker import AllocationTracker

MAX_GRAD_NORM = 1.0
"""TrainingArguments.max_grad_norm's default (transformers 5.24.0)."""


def prepare_model(model: torch.nn.Module, autocast: str) -> None:
    """Wrap the forward as Accelerator.prepare_model does for mixed_precision="bf16"."""
    model.train()
    if autocast == "bf16":
        context = torch.autocast(device_type="cuda", dtype=torch.bfloat16)
        model.forward = convert_outputs_to_fp32(context(model.forward))


def enable_checkpointing(model: torch.nn.Module, tracker: AllocationTracker) -> None:
    """transformers 5's default kind. The random state is a tensor on the CPU, so it is not kept here."""
    options = {"use_reentrant": False, "preserve_rng_state": False}
    model.gradient_checkpointing_enable(options | {"context_fn": lambda: (nullcontext(), tracker.recomputation())})


def micro_batches(configuration: Configuration) -> list[dict[str, torch.Tensor]]:
    """The step's micro-batches, all on the device at once as the data loader leaves them: packed, no mask."""
    size = (configuration.micro_batch, configuration.sequence_length)
    return [
        {name: torch.empty(size, dtype=torch.int64, device="cuda") for name in ("input_ids", "labels")}
        for _ in range(configuration.gradient_accumulation_steps)
    ]


def compute_loss(model, inputs, num_items_in_batch) -> torch.Tensor:
    """Trainer.compute_loss: the outputs (and the logits in them) die when it returns."""
    outputs = model(**inputs, num_items_in_batch=num_items_in_batch)
    return outputs["loss"]


def training_step(loss_of: Callable, inputs, moments: Moments) -> torch.Tensor:
    """Trainer.training_step for one micro-batch."""
    loss = loss_of(inputs)
    moments.start(LOSS_BACKWARD)
    loss.backward()
    return loss.detach()


def first_step(model, optimizer, moments: Moments) -> None:
    """An optimizer step on empty gradients, so that the second step finds optimizer states.

    Its forward and backward would be the second step's without the states, so they cannot hold the peak.
    """
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.grad = torch.empty_like(parameter)
    clip_and_update(model, optimizer, moments)


def training_loop_turn(model, optimizer, batches, total_loss, moments: Moments, loss_of: Callable | None = None) -> None:
    """One turn of Trainer._run_epoch's outer loop. Micro-batches after the second repeat the second: not run.

    loss_of: the loss of one micro-batch where it is not the model's own, which is divided by the labels of all of them.
    """
    moments.start(FORWARD)
    if loss_of is None:
        num_items_in_batch = sum(batch["labels"][..., 1:].ne(-100).sum() for batch in batches)
        loss_of = partial(compute_loss, model, num_items_in_batch=num_items_in_batch)
    for index, inputs in enumerate(batches[:2]):
        moments.micro_batch = index
        moments.start(FORWARD)
        total_loss += training_step(loss_of, inputs, moments)
    clip_and_update(model, optimizer, moments)


def clip_and_update(model, optimizer, moments: Moments) -> None:
    """Clip the gradients by their norm, update, drop the gradients."""
    moments.micro_batch = 0
    moments.start(CLIP)
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM, foreach=True)
    moments.start(OPTIMIZER_STEP)
    optimizer.step()
    model.zero_grad()
    del norm
