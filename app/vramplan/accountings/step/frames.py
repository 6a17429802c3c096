"""The run as frames in the order of time: from loading, through the first step, to a step as every later one is.

Each frame is an instant of the step, so the largest frame of a moment is that moment of the ledger. Step 1 has no optimizer
states before its end; step 2 has them from the start. Equal micro-batches are drawn once.

Source: torch 2.13.0, optim/adamw.py, _init_group: states are made in the first step; optim/optimizer.py, zero_grad: gradients
are dropped, not set to zero. bitsandbytes 0.50.2, optim/optimizer.py, step: as torch.
"""

from collections.abc import Iterator
from functools import partial
from itertools import islice

from vramplan.accountings.step.describe import holdings, terms
from vramplan.accountings.step.moments import BETWEEN, END, FIRST, FORWARD, IN_FIRST_STEP, LAST, STEP, Instant, Step, plus
from vramplan.accountings.step.tape import Batch
from vramplan.ledger import Frame, Holding, Term

LOAD, STEP_1, UPDATE_1, STEP_2, LATER_2, UPDATE_2 = (
    "load", "step 1, micro-batch 1", "step 1, optimizer step", "step 2, micro-batch 1", "step 2, a later micro-batch",
    "step 2, optimizer step",
)
"""The parts of a drawn run, in order."""

LOADED = ("base_weights", "adapters", "reference_weights")
"""Rows that are there before the first batch."""


def frames(step: Step, batch: Batch, *, most_layers: int) -> tuple[Frame, ...]:
    """Every frame, in order of time. most_layers: layers drawn of each pass at the most, evenly spread, the first and the last among them."""
    film = _Film(step, batch, _spread(step, most_layers))
    known: dict[tuple, Term] = {}
    return tuple(
        Frame(name, terms(instant, batch, known), partial(film.inspect, number), part, instant.moment)
        for number, (part, name, instant, _) in enumerate(film.roll())
    )


Shot = tuple[str, str, Instant, Step]
"""One instant: its part, its name, itself, and the step whose tapes it is on."""


class _Film:
    """The run of one step at one batch, instant by instant. Instants are made when they are asked for, and not kept."""

    def __init__(self, step: Step, batch: Batch, layers: list[int]):
        self.step = step
        self.batch = batch
        self.layers = layers

    def inspect(self, number: int) -> dict[str, tuple[Holding, ...]]:
        """The tensors behind the rows of the frame with this number."""
        _, _, instant, step = next(islice(self.roll(), number, None))
        return holdings(step, instant, self.batch)

    def roll(self) -> Iterator[Shot]:
        """Every instant, with its part, its name and the step it is of."""
        step, first = self.step, self.step.first or self.step
        at_start = tuple(row for row in first.resident if row[0] != "optimizer_states")
        loaded = tuple(row for row in at_start if row[0] in LOADED)
        yield LOAD, "model loaded", Instant("", loaded, plus(*(amount for _, amount in loaded))), first
        for part, name, instant, of in self._micro_batch(first, STEP_1, at_start, accumulating=False):
            instant.moment += IN_FIRST_STEP if self.step.first else ""
            yield part, name, instant, of
        yield UPDATE_1, STEP, step.update(), step
        yield from self._micro_batch(step, STEP_2, step.resident, accumulating=False)
        if step.run.accumulates:
            yield from self._micro_batch(step, LATER_2, step.resident_later, accumulating=True)
        yield UPDATE_2, STEP, step.update(), step

    def _micro_batch(self, step: Step, part: str, resident, **accumulating: bool) -> Iterator[Shot]:
        """Forward layer by layer, the loss operation by operation, backward layer by layer, and the end."""
        for layer in self.layers:
            yield part, f"forward, layer {layer + 1}", self._tallest(step.forward(resident, layer, **accumulating)), step
            yield part, f"forward, behind layer {layer + 1}", step.handing_on(resident, layer, FORWARD, forward=True, **accumulating), step
        reference = self._of_reference(step, part, resident, **accumulating)
        for instant in step.loss(resident, every=True, **accumulating):
            if step.reference and (instant.walk != "head forward" or instant.index > step.reference.turn):
                yield from reference
            yield part, self._operation(step, instant), instant, step
        for layer in reversed(self.layers) if not step.layers_need_no_gradient() else ():
            for moment in self._moments(layer):
                tallest = self._tallest(step.backward(resident, layer, moment, **accumulating))
                again = "second forward pass" if tallest.walk == "layer recomputation" else "backward"
                yield part, f"{again}, layer {layer + 1}", tallest, step
            behind = step.handing_on(resident, layer, moment, forward=False, **accumulating)
            yield part, f"backward, behind layer {layer + 1}", behind, step
        for instant in step.end(resident, **accumulating):
            yield part, END, instant, step

    def _of_reference(self, step: Step, part: str, resident, **accumulating: bool) -> Iterator[Shot]:
        """The reference's forward pass: its layers, which are alike and leave nothing, and its head."""
        walks: dict[str, list[Instant]] = {}
        for instant in step.reference_forward(resident, **accumulating):
            walks.setdefault(instant.walk, []).append(instant)
        for walk, instants in walks.items():
            yield part, f"forward, {'each ' if walk.startswith('layer') else ''}{walk}", self._tallest(instants), step

    def _moments(self, layer: int) -> list[str]:
        """The moments of a layer's backward pass: an only layer is the last and the first."""
        last = self.step.run.shape.num_layers - 1
        return [moment for moment, place in ((LAST, last), (FIRST, 0)) if layer == place] or [BETWEEN]

    def _operation(self, step: Step, instant: Instant) -> str:
        """The operation of the head or the loss that is at work."""
        operations, forward = step.head.tape.operations, instant.walk == "head forward"
        operation = operations[instant.index if forward else len(operations) - 1 - instant.index]
        return f"{'loss' if forward else 'backward of the loss'}: {operation.name}"

    def _tallest(self, instants: list[Instant]) -> Instant:
        return max(instants, key=lambda instant: instant.bytes(*self.batch))


def _spread(step: Step, most: int) -> list[int]:
    """So many layers of all, evenly spread, among them those that may be the peak."""
    layers = step.run.shape.num_layers
    if layers <= most:
        return list(range(layers))
    evenly = {place * (layers - 1) // (most - 1) for place in range(most)}
    return sorted(evenly.union(step.looked_at, step.latest()))
