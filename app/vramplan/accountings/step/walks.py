"""The walks over a layer's tape and over the head's, each with only the points that are the largest for some batch.

They are kept for as long as another run needs the same ones: a change of the optimizer leaves both as they are, a change of
the loss leaves the layer's.
"""

from dataclasses import replace
from functools import lru_cache

from vramplan.accountings.step.head import head_and_loss
from vramplan.accountings.step.layer import decoder_layer
from vramplan.accountings.step.structure import UNDIVIDED, Structure
from vramplan.accountings.step.tape import FIXED, PAIRS, POSITIONS, TOKENS, Amount

KEPT_WALKS = 128
"""Walks that are remembered, each a few kilobytes."""

Points = list[tuple[int, Amount]]
"""Points of a walk by their index in it."""


class LayerWalks:
    """The tape of a layer and its walks; `backward` with the weight gradients it makes, `adding` where others are there."""

    def __init__(self, run: Structure):
        self.tape = decoder_layer(run, external_input=run.checkpointing)
        self.saved = self.tape.saved()
        self.gradients = self.tape.gradient_bytes()
        self.forward = tallest(self.tape.forward(keeps=not run.checkpointing))
        self.recomputation = tallest(self._second_forward(run)) if run.checkpointing else []
        self.backward, self.adding = _both(self.tape.backward())

    def _second_forward(self, run: Structure) -> list[Amount]:
        """The moments of a checkpointed layer's second forward pass; the reentrant form runs it to its end."""
        return self.tape.forward(keeps=True) if run.reentrant else self.tape.recomputation()


class HeadWalks:
    """The tape of the head and the loss, and its walks."""

    def __init__(self, run: Structure):
        self.tape = head_and_loss(run)
        self.gradients = self.tape.gradient_bytes()
        self.forward = tallest(self.tape.forward(keeps=True))
        self.backward, self.adding = _both(self.tape.backward())


def layer_walks(run: Structure) -> LayerWalks:
    """The walks over a layer of this run."""
    return _layer_walks(replace(run, **NOT_IN_A_LAYER))


def head_walks(run: Structure) -> HeadWalks:
    """The walks over the head and the loss of this run."""
    return _head_walks(replace(run, **NOT_IN_THE_HEAD))


NOT_IN_A_LAYER = {
    "loss": "", "loss_rows": 0, "loss_columns": 0, "one_row": False, "sorts_embedding": False, "outputs_kept": False, "optimizer": "", "accumulates": False,
    "head_size": 0, "sharding": UNDIVIDED, "offload": "", "quantized_head": False, "lingers": False,
    "steps_in_backward": False,
}
"""What a layer does not depend on."""

NOT_IN_THE_HEAD = {
    "steps_in_backward": False,
    "sorts_embedding": False, "optimizer": "", "accumulates": False, "attention": "", "masked": False, "checkpointing": False,
    "reentrant": False, "sharding": UNDIVIDED, "offload": "",
}
"""What the head does not depend on."""

_layer_walks = lru_cache(maxsize=KEPT_WALKS)(LayerWalks)
_head_walks = lru_cache(maxsize=KEPT_WALKS)(HeadWalks)


def forget() -> None:
    """Drop every remembered walk: for tests that change what they are made of."""
    _layer_walks.cache_clear()
    _head_walks.cache_clear()


def _both(points: list[tuple[Amount, int]]) -> tuple[Points, Points]:
    """A backward walk with the weight gradients it makes, and without where they are added to earlier ones."""
    return tallest([amount for amount, _ in points]), tallest([(amount[0] - made, *amount[1:]) for amount, made in points])


def tallest(points: list[Amount]) -> Points:
    """The points of a walk that are the largest for some batch, each with its index."""
    kept: Points = []
    for amount, index in sorted(zip(points, range(len(points)), strict=True), reverse=True):
        for _, other in kept:
            if covers(other, amount):
                break
        else:
            kept.append((index, amount))
    return kept


def covers(a: Amount, b: Amount) -> bool:
    """Whether a is at least as large as b for every batch."""
    return a[FIXED] >= b[FIXED] and a[TOKENS] >= b[TOKENS] and a[PAIRS] >= b[PAIRS] and a[POSITIONS] >= b[POSITIONS]

