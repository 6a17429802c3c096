"""Traces one configuration: builds the model, runs two optimizer steps, and returns one CSV row and a breakdown."""

import gc
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from . import attention, checkpoints, kernels
from .analysis import Moment, alive_at_peak, growth_in_recomputation, peaks, starts
from .configurations import Configuration
from .methods import load_model, load_reference
from .models import place_on_device
from .moments import LOADED, Moments
from .optimizers import make_optimizer
from .preferences import pair_batches, preference_loss
from .step import enable_checkpointing, first_step, micro_batches, prepare_model, training_loop_turn
from .tracker import AllocationTracker, Event

BREAKDOWN_ROWS = 12
PACKAGES = ("torch", "transformers", "peft", "accelerate", "bitsandbytes")

kernels.register_single_kernels()
kernels.take_grouped_products_of_float32()


def trace(
    configuration: Configuration, num_layers: int | None = None, two_full_steps: bool = False
) -> tuple[dict, list[dict]]:
    """The row of results and the rows of the breakdown."""
    began = time.monotonic()
    attention.install(configuration.attention)
    model = load_model(configuration, num_layers)
    reference = load_reference(configuration, num_layers)
    with FakeTensorMode():
        place_on_device(model)
        if reference is not None:
            place_on_device(reference)
        tracker = AllocationTracker()
        facts = run_steps(configuration, model, reference, tracker, two_full_steps)
    row = configuration.row() | facts | summarise(tracker.events, configuration)
    row["versions"] = "; ".join(f"{name} {version(name).partition('+')[0]}" for name in PACKAGES)
    row["seconds"] = round(time.monotonic() - began, 1)
    return row, breakdown(configuration.id, tracker.events)


def run_steps(
    configuration: Configuration,
    model: torch.nn.Module,
    reference: torch.nn.Module | None,
    tracker: AllocationTracker,
    two_full_steps: bool,
) -> dict:
    """Run the steps under the tracker; returns the counts that do not change."""
    moments = Moments(tracker)
    moments.start(LOADED)
    tracker.track("weight", [*model.parameters(), *model.buffers()])
    weights = tracker.current
    if reference is not None:
        tracker.track("reference weight", [*reference.parameters(), *reference.buffers()])
        prepare_model(reference, configuration.autocast)
    pairs = configuration.objective != "sft"
    loss_of = preference_loss(configuration, model, reference, moments) if pairs else None
    optimizer = make_optimizer(configuration.optimizer, model)
    if configuration.checkpointing == "full":
        enable_checkpointing(model, tracker)
    own_checkpoints = configuration.checkpointing in checkpoints.KINDS
    if own_checkpoints:
        checkpoints.install(model, configuration.checkpointing)
    prepare_model(model, configuration.autocast)
    moments.attach(model)
    two_full_steps = two_full_steps or own_checkpoints
    with quiet_collector(), tracker:
        total_loss = torch.zeros((), device="cuda")
        if not two_full_steps:
            first_step(model, optimizer, moments)
        for moments.step in (0, 1) if two_full_steps else (1,):
            batches = pair_batches(configuration) if pairs else micro_batches(configuration)
            training_loop_turn(model, optimizer, batches, total_loss, moments, loss_of)
            del batches
    parameters = list(model.parameters())
    return {
        "parameters": count_parameters(model),
        "trainable_parameters": sum(p.numel() for p in parameters if p.requires_grad),
        "weights": weights,
        "optimizer_states": sum(b.size for b in tracker.live_blocks() if b.moment.startswith("optimizer_step/0")),
    }


@contextmanager
def quiet_collector() -> Iterator[None]:
    """No cyclic garbage collection: tensors die by reference counts alone, and the trace is the same every time."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def count_parameters(model: torch.nn.Module) -> int:
    """Elements of all parameters; a packed 4-bit weight counts the weights it stands for."""
    return sum(getattr(p, "unpacked_numel", p.numel()) for p in model.parameters())


def summarise(events: list[Event], configuration: Configuration) -> dict:
    """The columns that are peaks of moments."""
    highest, later = peaks_by_moment(events)
    backward = {layer: level for (name, layer), level in highest.items() if name == "backward"}
    return {
        "forward": max(level for (name, _), level in highest.items() if name == "forward"),
        "loss_forward": highest["loss_forward", None],
        "reference_forward": highest.get(("reference_forward", None), ""),
        "loss_backward": highest["loss_backward", None],
        "backward_last": backward[max(backward)],
        "backward_first": backward[min(backward)],
        "backward_max": max(backward.values()),
        "backward_end": highest.get(("backward_end", None), ""),
        "clip": highest["clip", None],
        "optimizer_step": highest["optimizer_step", None],
        "second_micro_batch": later or "",
        "peak": max(peaks(events).values()),
        "peak_moment": alive_at_peak(events)[0],
        "saved_per_layer": saved_per_layer(events, configuration.checkpointing),
    }


def peaks_by_moment(events: list[Event]) -> tuple[dict[tuple[str, int | None], int], int]:
    """The highest level of each moment and layer in the first micro-batch, and the highest of any later micro-batch."""
    highest: dict[tuple[str, int | None], int] = defaultdict(int)
    later = 0
    for text, level in peaks(events).items():
        if text.startswith("recomput"):
            continue
        moment = Moment.parse(text)
        if moment.micro_batch:
            later = max(later, level)
        else:
            highest[moment.name, moment.layer] = max(highest[moment.name, moment.layer], level)
    return highest, later


def saved_per_layer(events: list[Event], checkpointing: str) -> int | str:
    """Bytes that the second layer's forward (its second forward, under checkpointing) leaves for backward."""
    if checkpointing in checkpoints.KINDS:
        return ""
    if checkpointing == "full":
        return growth_in_recomputation(events, "backward_1/1/0")
    level = starts(events)
    after = next(name for name in ("forward_2/1/0", "loss_forward/1/0") if name in level)
    return level[after] - level["forward_1/1/0"]


def breakdown(identifier: str, events: list[Event]) -> list[dict]:
    """The largest groups of equal tensors alive at the peak."""
    moment, alive = alive_at_peak(events)
    groups: dict[tuple, list[int]] = defaultdict(lambda: [0, 0])
    for block, count in alive.items():
        born = block.moment.split("/")[0].rstrip("0123456789").rstrip("_")
        group = groups[f"{block.operation} ({born})", "x".join(map(str, block.shape)), block.dtype]
        group[0] += count
        group[1] += count * block.size
    largest = sorted(groups.items(), key=lambda item: -item[1][1])[:BREAKDOWN_ROWS]
    names = ("id", "moment", "operation", "shape", "dtype", "count", "bytes")
    return [dict(zip(names, (identifier, moment, *key, *totals), strict=True)) for key, totals in largest]
