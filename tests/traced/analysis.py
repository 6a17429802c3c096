"""Turns a tracker's events into the peaks of each moment and the list of tensors alive at the peak."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .tracker import Block, Event


@dataclass(frozen=True, slots=True)
class Moment:
    """`forward_3/1/0` is the forward of layer 3 in step 1, micro-batch 0."""

    name: str
    layer: int | None
    step: int
    micro_batch: int

    @classmethod
    def parse(cls, text: str) -> "Moment":
        name, step, micro_batch = text.split("/")
        head, _, tail = name.rpartition("_")
        if tail.isdigit():
            return cls(head, int(tail), int(step), int(micro_batch))
        return cls(name, None, int(step), int(micro_batch))


def levels(events: Iterable[Event]) -> Iterator[tuple[Event, int]]:
    """Each event with the bytes in use just after it (during it, for a kernel's temporary memory)."""
    current = 0
    for event in events:
        if event.transient:
            yield event, current + event.change
        else:
            current += event.change
            yield event, current


def peaks(events: list[Event]) -> dict[str, int]:
    """The highest level within each moment, in order of appearance."""
    highest: dict[str, int] = {}
    for event, level in levels(events):
        highest[event.moment] = max(level, highest.get(event.moment, 0))
    return highest


def starts(events: list[Event]) -> dict[str, int]:
    """The level at which each moment starts, in order of appearance."""
    first: dict[str, int] = {}
    for event, level in levels(events):
        first.setdefault(event.moment, level)
    return first


def growth_in_recomputation(events: list[Event], moment: str) -> int:
    """How much the forward inside a checkpointed layer's backward leaves behind."""
    level = starts(events)
    return level[f"recomputed {moment}"] - level[f"recomputing {moment}"]


def alive_at_peak(events: list[Event]) -> tuple[str, Counter[Block]]:
    """The moment of the highest level and every block alive then, kernel temporaries included."""
    _, top = max(enumerate(level for _, level in levels(events)), key=lambda pair: pair[1])
    index = next(i for i, (_, level) in enumerate(levels(events)) if level == top)
    alive: Counter[Block] = Counter()
    for position, event in enumerate(events[: index + 1]):
        if event.block is not None and (not event.transient or position == index):
            alive[event.block] += 1 if event.change > 0 else -1
    return events[index].moment, +alive
