"""Records every allocation and release of device memory while a training step runs on fake tensors.

The record is a list of events. Peaks per moment and the tensors alive at the peak are computed from it afterwards.
"""

import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter

from .kernels import align, temporary_bytes

ALLOCATION_GRANULARITY = 512
"""Bytes the CUDA caching allocator rounds every request up to (c10/cuda/CUDACachingAllocator.cpp, kMinBlockSize)."""


@dataclass(frozen=True, slots=True)
class Block:
    """One allocation: what asked for it and when."""

    operation: str
    shape: tuple[int, ...]
    dtype: str
    size: int
    moment: str


@dataclass(frozen=True, slots=True)
class Event:
    """A change of `change` bytes by `block`, or (block is None) the start of a moment."""

    moment: str
    change: int
    block: Block | None
    transient: bool = False


class AllocationTracker(TorchDispatchMode):
    """Watches every operation and follows the storages it creates until they are freed.

    gather's backward scatters into its zeros in place, but out of place where a tensor is a subclass, as fake ones are
    (torch 2.13.0, aten/src/ATen/native/TensorAdvancedIndexing.cpp, gather_backward).
    """

    def __init__(self, device: str = "cuda", granularity: int = ALLOCATION_GRANULARITY) -> None:
        super().__init__()
        self.device = device
        self.granularity = granularity
        self.unshared = unshared_counts(device)
        self.events: list[Event] = []
        self.moment = "load"
        self.current = 0
        self._live: dict[int, Block] = {}
        self._references: dict[int, weakref.ref] = {}
        self._recomputed = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func is torch.ops.prim.device.default:
            return func(*args, **kwargs)
        self._mark_end_of_recomputation()
        if func is torch.ops.aten.add.Tensor and self._engine_adds_in_place(args, kwargs):
            args[0].add_(args[1])
            return args[0]
        if func is torch.ops.aten.scatter_add.default and torch._C._current_autograd_node() is not None:
            return args[0].scatter_add_(*args[1:])
        result = func(*args, **kwargs)
        self.track(func.name().removeprefix("aten::"), tree_iter(result))
        self._hold_briefly(func, args, kwargs)
        return result

    def track(self, operation: str, values: Iterable[object]) -> None:
        """Register the storages of all tensors in `values` that are not yet known."""
        for value in values:
            if not isinstance(value, torch.Tensor) or value.device.type != self.device:
                continue
            storage = value.untyped_storage()
            key = storage._cdata
            if key in self._live or not storage.nbytes():
                continue
            size = align(storage.nbytes(), self.granularity)
            block = Block(operation, tuple(value.shape), str(value.dtype).removeprefix("torch."), size, self.moment)
            self._live[key] = block
            self._references[key] = weakref.ref(storage, lambda _, key=key: self._release(key))
            self._log(size, block)

    def start(self, moment: str) -> None:
        """Everything from here on belongs to `moment`."""
        self.moment = moment
        self._log(0, None)

    def live_blocks(self) -> Iterator[Block]:
        return iter(self._live.values())

    def _release(self, key: int) -> None:
        block = self._live.pop(key)
        del self._references[key]
        self._log(-block.size, block)

    def _log(self, change: int, block: Block | None, transient: bool = False) -> None:
        if not transient:
            self.current += change
        self.events.append(Event(self.moment, change, block, transient))

    def _hold_briefly(self, func, args, kwargs) -> None:
        """Memory that only the CUDA kernel itself holds: beside its inputs and outputs, for the time it runs."""
        size = temporary_bytes(func, args, kwargs)
        if size:
            operation = f"inside {func.name().removeprefix('aten::')}"
            block = Block(operation, (), "", align(size, self.granularity), self.moment)
            self._log(block.size, block, transient=True)

    @contextmanager
    def recomputation(self) -> Iterator[None]:
        """Marks the forward that checkpointing repeats inside a layer's backward. It ends by an exception, whose frames
        hold tensors until it is dropped, so the mark of its end waits for the next operation."""
        self.events.append(Event(f"recomputing {self.moment}", 0, None))
        try:
            yield
        finally:
            self._recomputed = True

    def _mark_end_of_recomputation(self) -> None:
        if self._recomputed:
            self.events.append(Event(f"recomputed {self.moment}", 0, None))
            self._recomputed = False

    def _engine_adds_in_place(self, args, kwargs) -> bool:
        """Would autograd's engine sum these two gradients into the first one's memory?

        A dispatch mode makes it add out of place, so the tracker takes the decision the engine takes without one: the
        first gradient must be held by nobody else. Source: torch 2.13.0, torch/csrc/autograd/input_buffer.cpp,
        accumulate() and can_accumulate_inplace().
        """
        return sums_gradients(args, kwargs) and use_counts(args) == self.unshared


def sums_gradients(args: tuple, kwargs: dict) -> bool:
    """Whether aten.add.Tensor was called by autograd's engine: in backward, gradients off, two tensors of one kind."""
    if torch.is_grad_enabled() or kwargs or len(args) != 2 or torch._C._current_autograd_node() is None:
        return False
    return isinstance(args[1], torch.Tensor) and args[0].shape == args[1].shape and args[0].dtype == args[1].dtype


def use_counts(args: tuple) -> tuple[int, int]:
    """References to the first argument's tensor and to its storage."""
    return args[0]._use_count(), torch._C._storage_Use_Count(args[0].untyped_storage()._cdata)


class CountProbe(TorchDispatchMode):
    """Sees the use counts of the first gradient in a sum where nobody but the engine holds it."""

    counts = (0, 0)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is torch.ops.aten.add.Tensor and sums_gradients(args, kwargs or {}):
            self.counts = use_counts(args)
        return func(*args, **(kwargs or {}))


def unshared_counts(device: str) -> tuple[int, int]:
    """The counts of a gradient held by the engine alone: x's first gradient in d(sin x + cos x), freshly made."""
    value = torch.ones(2, device=device, requires_grad=True)
    with CountProbe() as probe:
        (value.sin() + value.cos()).sum().backward()
    return probe.counts
