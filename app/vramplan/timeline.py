"""A run in the order of time: every frame from loading to the end of its second step."""

from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from vramplan.accountings import estimate, frames
from vramplan.ledger import Estimate, Frame
from vramplan.settings import Settings

MOST_LAYERS = 32
"""Layers drawn of each pass at the most, unless told otherwise; of more, so many are drawn, evenly spread."""


LOSS = "loss"
"""What the moments of the loss begin with."""


NUMBER_DIGITS = 9
"""Digits of a frame's number that are looked at: there are far fewer frames."""


@dataclass(frozen=True)
class Stretch:
    """Frames that belong together: their name, the first of them, and the first after them."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Timeline:
    """The frames of a run in order of time; the largest is the peak of its estimate."""

    estimate: Estimate
    frames: tuple[Frame, ...]

    @cached_property
    def peak_index(self) -> int:
        """Place of the largest frame; the first where several are."""
        return max(range(len(self.frames)), key=lambda index: self.frames[index].bytes)

    @property
    def peak(self) -> Frame:
        """The largest frame."""
        return self.frames[self.peak_index]

    @cached_property
    def layers_drawn(self) -> int:
        """Layers that have frames, of each pass."""
        return len({frame.name for frame in self.frames if frame.name.startswith("forward, layer ")})

    @cached_property
    def parts(self) -> tuple[Stretch, ...]:
        """The parts of the run: loading, micro-batches, optimizer steps."""
        return _stretches([frame.part for frame in self.frames])

    @cached_property
    def phases(self) -> tuple[Stretch, ...]:
        """The same in finer pieces: the forward pass, the loss and the backward pass of a micro-batch each."""
        return _stretches([f"{frame.part}, {frame.moment.partition(' ')[0].rstrip(',')}" for frame in self.frames])

    def find(self, name: str) -> int | None:
        """Place of a frame by its number, counted from 1, or of the largest with this name or of this moment; None where there is none."""
        wanted = name.strip().lower()
        if wanted.isdecimal() and wanted.isascii():
            number = int(wanted[:NUMBER_DIGITS])
            return number - 1 if 1 <= number <= len(self.frames) else None
        found = [
            index for index, frame in enumerate(self.frames)
            if wanted and wanted in (frame.name.lower(), frame.moment.lower(), f"{frame.part}: {frame.name}".lower())
        ]
        return max(found, key=lambda index: self.frames[index].bytes, default=None)


def timeline(settings: Settings, *, most_layers: int = MOST_LAYERS) -> Timeline:
    """The run from loading to the end of its second step, as frames. Raises NotExpressible where the accounting has none."""
    return Timeline(estimate(settings), frames(settings, most_layers=most_layers))


def _stretches(names: list[str]) -> tuple[Stretch, ...]:
    found, start = [], 0
    for name, group in groupby(names):
        end = start + len(list(group))
        found.append(Stretch(name, start, end))
        start = end
    return tuple(found)
