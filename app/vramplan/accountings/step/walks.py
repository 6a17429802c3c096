"""The walks over a layer's tape and over the head's, each with only the points that are the largest for some batch.

They are kept for as long as another run needs the same ones: a change of the optimizer leaves both as they are, a change of
the loss leaves the layer's.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from operator import attrgetter

from vramplan.accountings.step.head import FORWARD_ENDS, REFERENCE_TURN, head_and_loss
from vramplan.accountings.step.layer import decoder_layer
from vramplan.accountings.step.layers import rows_of_layers
from vramplan.accountings.step.remembered import remembered
from vramplan.accountings.step.structure import SINGLE, Structure
from vramplan.accountings.step.tape import BLOCKS, CHUNKS, FIXED, LATER_CHUNKS, NOTHING, PAIRS, POSITIONS, SQUARES, TOKENS, Amount, Tape

KEPT_WALKS = 128
"""Walks that are remembered, each a few kilobytes."""

Points = list[tuple[int, Amount]]
"""Points of a walk by their index in it."""


class LayerWalks:
    """The tape of a layer and its walks, each walked once it is asked for: a run that is too large at another moment needs none."""

    def __init__(self, run: Structure):
        self._run = run

    @cached_property
    def tape(self) -> Tape:
        """The operations of the layer."""
        return decoder_layer(self._run, external_input=self._run.checkpointing)

    @cached_property
    def gradients(self) -> int:
        """Bytes of the weight gradients that it makes."""
        return self.tape.gradient_bytes()

    @cached_property
    def saved(self) -> Amount:
        """Everything that is left for the backward pass."""
        return self.tape.saved()

    @cached_property
    def escaped(self) -> Amount:
        """What checkpointing cannot drop."""
        return self.tape.escaped()

    @cached_property
    def forward(self) -> Points:
        """The forward pass."""
        return tallest(self.tape.forward(keeps=not self._run.checkpointing, caches=self._run.checkpointing))

    @cached_property
    def without_graph(self) -> Points:
        """The forward pass of a layer that no gradient reaches."""
        return tallest(self.tape.forward(keeps=False))

    @cached_property
    def recomputation(self) -> Points:
        """A checkpointed layer's second forward pass; the reentrant form runs it to its end."""
        return tallest(self.tape.forward(keeps=True) if self._run.reentrant else self.tape.recomputation()) if self._run.checkpointing else []

    @cached_property
    def waiting(self) -> Amount:
        """What waits while it is run again, beside the gradient of its output."""
        return self.tape.before_recomputation() if self._run.checkpointing and not self._run.reentrant else NOTHING

    @cached_property
    def backward(self) -> Points:
        """The backward pass with the weight gradients it makes."""
        return tallest(self._backward[0])

    @cached_property
    def adding(self) -> Points:
        """The same where others are there, which they are added to."""
        return tallest(self._backward[1])

    @cached_property
    def _backward(self) -> tuple[list[Amount], list[Amount]]:
        return _with_and_without(self.tape.backward())

    def in_parts(self) -> Iterator[Points]:
        """Every walk of a step, one after the other."""
        yield self.forward
        yield self.recomputation
        yield self.backward
        yield self.adding


class HeadWalks:
    """The tape of the head and the loss, and its walks; `after` the points once the model's own forward pass has ended; `every_…`
    all points of a walk, in order. waits: bytes of the head's gradient where it waits for that of the embedding, whose weight it is,
    however many gradients are there from earlier micro-batches (torch 2.13.0, csrc/autograd/input_buffer.cpp)."""

    def __init__(self, run: Structure):
        self.tape = head_and_loss(run)
        self.gradients = self.tape.gradient_bytes()
        tied = run.trains_base and run.shape.tied_embeddings
        self.waits = run.head_size * run.shape.vocab_size * run.shape.hidden_size if tied else 0
        forward, backward, adding = self.tape.forward(keeps=True), *_with_and_without(self.tape.backward(), waits=self.waits)
        self.forward, self.after = _parted(self.tape, forward)
        self.backward, self.adding = tallest(backward), tallest(adding)
        self.every_forward, self.every_backward, self.every_adding = (list(enumerate(each)) for each in (forward, backward, adding))
        self.forward_ends = _place(self.tape, FORWARD_ENDS)


class ReferenceWalks:
    """The forward pass of DPO's reference, without a backward pass; `beside`: what the trained model's head has left by then,
    at the operation with the index `turn`. `every`: all points of the head's walk, up to its end and after it."""

    def __init__(self, run: Structure):
        reference = reference_of(run)
        self.kept_copies = _keeps_copies(run)
        self.layer_tape = decoder_layer(reference, external_input=False)
        self.head_tape = head_and_loss(reference)
        self.layer = tallest(self.layer_tape.forward_alone(copies=not self.kept_copies))
        points, end = self.head_tape.forward_alone(copies=not self.kept_copies), _place(self.head_tape, FORWARD_ENDS)
        self.head, self.after = _parted(self.head_tape, points)
        self.every = list(enumerate(points))[:end], list(enumerate(points))[end:]
        head = head_and_loss(run)
        self.turn = _place(head, REFERENCE_TURN)
        self.beside, self.alive_beside = head.forward(keeps=True)[self.turn], head.alive_forward(self.turn, keeps=True)


def reference_of(run: Structure) -> Structure:
    """The model DPO compares with, as a run that trains nothing: a second one as it was loaded, or the first without adapters.

    Source: transformers 5.24.0, trainer.py: Liger's kernels are put into the trained model alone.
    """
    plain = replace(run, trains_base=False, targets=frozenset(), rank=0, dropout=False, checkpointing=False, offload="")
    if run.reference != "copy":
        return plain
    size, as_written = run.weight_size, "transformers"
    return replace(plain, norm_size=size, embedding_size=size, head_size=size, norm_kernel=as_written, mlp_kernel=as_written)


def _keeps_copies(run: Structure) -> bool:
    """Whether autocast keeps a 16-bit copy of every weight of the reference: those of a second model were never frozen.

    Source: trl 1.16.0, trainer/dpo_trainer.py, create_model_from_path; torch 2.13.0, ATen/autocast_mode.cpp, cached_cast, which
    asks only whether the parameter could have a gradient.
    """
    return run.reference == "copy" and run.autocast and run.weight_size == SINGLE


OF_A_LAYER = (
    "shape", "trains_base", "weight_size", "norm_size", "embedding_size", "autocast", "adapter_size", "targets", "expert_targets", "rank", "dropout", "quantization",
    "compute_is_fp16", "attention", "masked", "one_row", "keys_in_blocks", "checkpointing", "reentrant", "norm_kernel", "mlp_kernel", "adapter_kernel", "model_code",
    "quantized_linear", "compiled", "one_chunk",
)
"""What of a structure a layer depends on."""

OF_THE_HEAD = (
    "shape", "trains_base", "weight_size", "norm_size", "embedding_size", "head_size", "autocast", "adapter_size", "quantization", "compute_is_fp16", "one_row",
    "norm_kernel", "adapter_kernel", "loss", "loss_rows", "loss_columns", "outputs_kept", "head_width", "pairs", "reference", "model_code", "quantized_linear",
    "quantized_head", "lingers", "compiled",
)
"""What the head depends on; with an adapter on it also on OF_ITS_ADAPTER."""

OF_ITS_ADAPTER = ("targets", "rank", "dropout")

_layer_key, _head_key, _adapter_key = (attrgetter(*names) for names in (OF_A_LAYER, OF_THE_HEAD, OF_ITS_ADAPTER))


@remembered(lambda run: replace(run, sorts_embedding=False, optimizer="", accumulates=False, reentrant=False), most=KEPT_WALKS)
def reference_walks(run: Structure) -> ReferenceWalks:
    """The walks over the reference of this run."""
    return ReferenceWalks(run)


@remembered(_layer_key, most=KEPT_WALKS)
def layer_walks(run: Structure) -> LayerWalks:
    """The walks over a layer of this run."""
    return LayerWalks(run)


@remembered(lambda run: (_head_key(run), "lm_head" in run.targets and _adapter_key(run)), most=KEPT_WALKS)
def head_walks(run: Structure) -> HeadWalks:
    """The walks over the head and the loss of this run."""
    return HeadWalks(run)


def walks_of_rows(run: Structure) -> list[tuple[LayerWalks, int]]:
    """The walks over each row of layers that are of one kind, and how many there are."""
    rows = rows_of_layers(run)
    of_kinds = {id(kind): layer_walks(kind) for kind in {id(kind): kind for kind, _ in rows}.values()}
    return [(of_kinds[id(kind)], count) for kind, count in rows]


def _place(tape: Tape, name: str) -> int:
    """Where an operation is on a tape; its end if it is not there."""
    return next((index for index, operation in enumerate(tape.operations) if operation.name == name), len(tape.operations))


def _parted(tape: Tape, points: list[Amount]) -> tuple[Points, Points]:
    """The points of a head's forward walk within the model's own forward pass, under its autocast, and after it."""
    end = _place(tape, FORWARD_ENDS)
    return tallest(points[:end]), [(index + end, amount) for index, amount in tallest(points[end:])]


def _with_and_without(points: list[tuple[Amount, int]], *, waits: int = 0) -> tuple[list[Amount], list[Amount]]:
    """A backward walk with the weight gradients it makes, and without where they are added to earlier ones, but for the first, which may wait."""
    return [amount for amount, _ in points], [(amount[0] - max(made - waits, 0), *amount[1:]) for amount, made in points]


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
    return (
        a[FIXED] >= b[FIXED] and a[TOKENS] >= b[TOKENS] and a[PAIRS] >= b[PAIRS] and a[POSITIONS] >= b[POSITIONS] and a[SQUARES] >= b[SQUARES]
        and a[BLOCKS] >= b[BLOCKS] and a[CHUNKS] >= b[CHUNKS] and a[LATER_CHUNKS] >= b[LATER_CHUNKS]
    )

