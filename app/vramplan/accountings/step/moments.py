"""The moments of one training step, and which of them is the largest.

Moments, in the order of a step: forward, loss, backward of the last and of the first layer (and between them of others, where
layers are of several kinds or several GPUs divide the run), end of the backward pass, optimizer step; with gradient accumulation the first five again, on top of the gradients that are there already.
"""

from dataclasses import replace
from functools import cached_property, lru_cache
from itertools import pairwise

from vramplan.accountings.step import remembered, state
from vramplan.accountings.step.host import KEEPS_LAST, STAGED_LATER, STAGING_BUFFERS
from vramplan.accountings.step.layer import normed_size, residual_size
from vramplan.accountings.step.operations import MASK_SIZE, dropout, norm
from vramplan.accountings.step.shares import shares_of, total
from vramplan.accountings.step.structure import HALF, LITGPT, SINGLE, TRANSFORMERS, Structure
from vramplan.accountings.step.tape import FIXED, NOTHING, PAIRS, POSITIONS, SQUARES, TOKENS, Alive, Amount, Tape, Tensor
from vramplan.accountings.step.walks import HeadWalks, LayerWalks, Points, ReferenceWalks, covers, head_walks, reference_of, reference_walks, walks_of_rows
from vramplan.constants import CUBLAS_HANDLES, CUBLAS_WORKSPACE_BYTES

TOKEN_INPUT_BYTES = 8 + 8
"""Bytes per token of input_ids and labels: int64. Source: transformers 5.24.0, data/data_collator.py."""

COMPLETION_BYTES = 8
"""Bytes per token of completion_mask: int64, beside input_ids and attention_mask. Source: trl 1.16.0, trainer/dpo_trainer.py,
DataCollatorForPreference."""

SORTED_EMBEDDING_TENTHS, TENTHS = 11, 10
"""float32 rows (H) per ten tokens that the embedding's backward sums sorted tokens in: one for each token that is new,
and one for each part of ten. Source: torch, ATen/native/cuda/EmbeddingBackwardKernel.cu, from memory."""


class Instant:
    """One instant that may be the peak: its moment, what is held besides the tape, where on which tape it is, and how many
    layers, from the first on, have left something for the backward pass that is still there."""

    __slots__ = ("amount", "held", "index", "layers", "moment", "walk", "walks")

    def __init__(
        self, moment: str, held, amount: Amount, walk: str = "", index: int = 0, walks: LayerWalks | HeadWalks | ReferenceWalks | None = None, layers: int = 0
    ):
        self.moment = moment
        self.held = held
        self.amount = amount
        self.walk = walk
        self.index = index
        self.walks = walks
        self.layers = layers

    def bytes(self, *batch: int) -> int:
        """All of it, for a batch."""
        return evaluate(self.amount, *batch)


def evaluate(amount: Amount, tokens: int, sequence_length: int, key_blocks: int = 0, chunks: int = 0, later_chunks: int = 0) -> int:
    """Bytes of an amount for a batch."""
    fixed, per_token, per_pair, per_position, per_square, per_block, per_chunk, per_later_chunk = amount
    found = fixed + tokens * (per_token + sequence_length * per_pair) + sequence_length * (per_position + sequence_length * per_square)
    if per_block or per_chunk or per_later_chunk:
        found = found + key_blocks * per_block + chunks * per_chunk + later_chunks * per_later_chunk
    return found


def plus(*amounts: Amount) -> Amount:
    """The sum of amounts."""
    fixed = tokens = pairs = positions = squares = blocks = chunks = later_chunks = 0
    for a, b, c, d, e, f, g, h in amounts:
        fixed += a
        tokens += b
        pairs += c
        positions += d
        squares += e
        blocks += f
        chunks += g
        later_chunks += h
    return fixed, tokens, pairs, positions, squares, blocks, chunks, later_chunks


def times(count: int, amount: Amount) -> Amount:
    """An amount several times."""
    a, b, c, d, e, f, g, h = amount
    return count * a, count * b, count * c, count * d, count * e, count * f, count * g, count * h


def grown(growth: int, size: int) -> Amount:
    """So many bytes for each unit of one way to grow."""
    return (*NOTHING[:growth], size, *NOTHING[growth + 1 :])


def total_of(tensors: list[Tensor]) -> Amount:
    """What several tensors take together."""
    total = [*NOTHING]
    for tensor in tensors:
        total[tensor.growth] += tensor.bytes
    return tuple(total)


FORWARD, REFERENCE, LOSS, LAST, BETWEEN, FIRST, END, STEP = (
    "forward", "forward of the reference", "loss", "backward of the last layer", "backward of a layer between",
    "backward of the first layer", "end of the backward pass", "optimizer step",
)
"""The moments of a step, in order."""

WITHOUT_GRAPH = "layer forward without a graph"
"""The walk of a layer that no gradient reaches."""

LATER = ", later micro-batch"
"""Added to a moment's name where earlier micro-batches have left their gradients."""


IN_FIRST_STEP = ", first step"
"""Added to a moment's name where the first step of a run holds more than the others."""

NO_STATES = "sgd"
"""An optimizer that keeps no states."""
class Row:
    """Layers of one kind in a row: their walks, how many there are, and what each leaves for the backward pass.

    escaped: what of that stays to the end of the backward pass. gradients: what each leaves of its gradients, in bytes. before:
    layers before the first of them. kept_before, escaped_after: what the layers before and after them leave.
    """

    __slots__ = ("before", "count", "escaped", "escaped_after", "kept", "kept_before", "walks")

    def __init__(self, walks: LayerWalks, count: int, before: int, kept: Amount, escaped: Amount, kept_before: Amount):
        self.walks = walks
        self.count = count
        self.before = before
        self.kept = kept
        self.escaped = escaped
        self.kept_before = kept_before
        self.escaped_after = NOTHING


class Step:
    """Everything that does not depend on how many tokens go through: the tapes, and the instants that may be the peak."""

    def __init__(self, run: Structure):
        self.run = run
        self.head = head_walks(run)
        self.reference = reference_walks(run) if run.reference in ("copy", "shared") else None
        self.output = _per_token(run.shape.hidden_size * residual_size(run))
        self.walks = walks_of_rows(run)
        self.first_trained = self._first_trained()
        self.rows = self._rows()
        self._places: dict[str, tuple[tuple[str, Amount], ...]] = {}
        self.shares = shares_of(run, of_head=self.head.gradients)
        self.gradients = _fixed(self.shares.collected)
        masks = _masks(run)
        self.masks, self.kept_masks = (NOTHING, masks) if run.checkpointing else (masks, NOTHING)
        self.resident = (
            *self._states(),
            ("dequantization", _fixed(state.dequantization_bytes(run))),
            ("staging", _per_token(STAGING_BUFFERS[run.offload] * HALF * run.shape.hidden_size if run.offload else 0)),
            ("inputs", plus(self._batch(), self.kept_masks)),
            ("workspace", _fixed(CUBLAS_WORKSPACE_BYTES * CUBLAS_HANDLES)),
        )
        self.resident_later = (*self.resident, ("gradients", _fixed(self.shares.accumulated)))
        self.autocast_copies = _fixed(state.autocast_bytes(run) if run.checkpointing else self._unsaved_copies())
        self.first_saves_less = self._first_layer_saves_less()
        self.of_embedding = self._of_embedding()
        self.embedded = self._embedded()
        self.outputs_kept = self._outputs_kept()
        self.left_behind = self._left_behind()

    @cached_property
    def parameters(self) -> tuple[int, int]:
        """Parameters of the base model, and those that are trained."""
        return state.parameters(self.run), state.trained_parameters(self.run)

    @cached_property
    def beside_layers(self) -> list[Instant]:
        """The instants of the loss and of the optimizer step, which need no walk over a layer."""
        return [*(instant for each in self._micro_batches() for instant in self.loss(each[0], accumulating=each[1])), self.update()]

    @cached_property
    def peaks(self) -> list[Instant]:
        """The instants that are the largest for some batch."""
        return _undominated(self.instants)

    @cached_property
    def by_transient(self) -> list[list[Instant]]:
        """The same of the loss, and of the backward pass of the last layer."""
        return [_undominated([i for i in self.instants if i.moment == moment]) for moment in (LOSS, LAST)]

    def _batch(self) -> Amount:
        """Token ids, labels and what else comes with them, and rotary positions."""
        run = self.run
        width, size = run.shape.qk_rope_head_dim or run.shape.head_dim, SINGLE if run.shape.rotary == "complex" else residual_size(run)
        turned = width if run.shape.attention_sinks else 2 * width  # cos and sin; where halves are turned by themselves, of half a head
        return plus(_per_token(TOKEN_INPUT_BYTES + (COMPLETION_BYTES if run.reference else 0)), grown(POSITIONS, turned * size))

    def _rows(self) -> list[Row]:
        """The layers of the model, those of one kind that follow each other together."""
        found, before, kept_before = [], 0, NOTHING
        for walks, count in self.walks:
            escaped = walks.escaped if self.run.checkpointing and not self.run.reentrant and self.run.keeps_inputs else NOTHING
            kept = NOTHING
            if not (self.layers_need_no_gradient() or before < self.first_trained):
                kept = plus(self.output, escaped) if self.run.checkpointing else walks.saved
            found.append(Row(walks, count, before, kept, escaped, kept_before))
            before, kept_before = before + count, plus(kept_before, times(count, kept))
        for row, before in pairwise(reversed(found)):
            before.escaped_after = plus(row.escaped_after, times(row.count, row.escaped))
        return found

    def _first_trained(self) -> int:
        """Layers before the first whose input or weights need a gradient: without checkpointing those of a frozen model up to its
        first adapter. Source: torch 2.13.0, autograd saves what a gradient needs."""
        run, before = self.run, 0
        if run.checkpointing or run.trains_base or "embed" in run.targets or self.layers_need_no_gradient():
            return 0
        for walks, count in self.walks:
            if walks.gradients:
                return before
            before += count
        return before

    @cached_property
    def _gradients_by_rows(self) -> dict[int, tuple[int, int]]:
        """What a layer of every row leaves of its gradients, and what the layers after the row have left, by the layers before the row."""
        found, left = {}, 0
        for row in reversed(self.rows):
            of_each = row.walks.gradients if self.shares.of_layer is None else self.shares.of_layer
            found[row.before] = of_each, left
            left += row.count * of_each
        return found

    def row_of(self, layer: int) -> Row:
        """The row a layer is in; layers are numbered from 0."""
        return next(row for row in self.rows if layer < row.before + row.count)

    def latest(self) -> list[int]:
        """The last layer of each kind: the one with the most saved when it runs forward."""
        return list({row.walks: row.before + row.count - 1 for row in self.rows}.values())

    @cached_property
    def looked_at(self) -> list[int]:
        """The layers whose backward pass may hold the peak, from the last to the first.

        What is held grows or shrinks evenly from layer to layer of a row, and from row to row where rows come again and
        again: of layers on a straight line only the two at its ends can be the largest. Where the last and the first
        layer have other tensors beside them, as with several GPUs or checkpoints in host memory, their neighbours are ends too.
        """
        last, lines = self.run.shape.num_layers - 1, {}
        for row in reversed(self.rows):
            for number in _ends(row):
                layer = row.before + number
                lines.setdefault((row.walks, number > 0, layer in (0, last)), []).append(layer)
        corners = {layer for line in lines.values() for layer in self._corners(line)}
        places = {self.at_place(place) for place in ("last", "middle", "first")}
        beside_ends = {1, last - 1} & set(range(1, last)) if len(places) > 1 or self.run.offload else set()
        return sorted(corners | beside_ends, reverse=True)

    def _corners(self, line: list[int]) -> list[int]:
        """Layers of one kind without those that lie on a straight line between their neighbours."""
        first, later = ([_total(self.held_backward(layer, accumulating=each)) for layer in line] for each in (False, True))
        held = [one + other for one, other in zip(first, later, strict=True)]
        steps = [[b - a for a, b in zip(one, other, strict=True)] for one, other in pairwise(held)]
        return [layer for layer, before, after in zip(line, (None, *steps), (*steps, None), strict=True) if before is None or before != after]

    @cached_property
    def instants(self) -> list[Instant]:
        """Every instant, moment by moment, in the order of the step."""
        found = [instant for instant in self.first.instants if not instant.moment.startswith(STEP)] if self.first else []
        for resident, accumulating in self._micro_batches():
            found += self._micro_batch(resident, accumulating=accumulating)
        return [*found, self.update()]

    def _micro_batches(self) -> list[tuple[tuple, bool]]:
        """What is there for the whole run in each kind of micro-batch, and whether earlier ones have left their gradients."""
        return [(self.resident, False), (self.resident_later, True)] if self.run.accumulates else [(self.resident, False)]

    @cached_property
    def first(self) -> "Step | None":
        """A first step whose checkpoints stay on the GPU; there are no optimizer states and no buffers yet.

        Source: unsloth_zoo 2025.11.1, gradient_checkpointing.py, UnslothCheckpointFunction.forward: while the layers are counted,
        every layer is the last.
        """
        if self.run.offload != STAGED_LATER:
            return None
        first = Step(replace(self.run, offload="", optimizer=NO_STATES, accumulates=False))
        for instant in first.instants:
            instant.moment += IN_FIRST_STEP
        return first

    def with_chunks(self) -> list[Instant]:
        """Every instant of the head, of the loss and of the reference, in order: those whose bytes may have rows of a chunk in them."""
        found = []
        for resident, accumulating in self._micro_batches():
            for part in (self.reference_forward, self.loss):
                found += part(resident, accumulating=accumulating, every=True)
        return found

    def _micro_batch(self, resident, *, accumulating: bool) -> list[Instant]:
        """The moments of one micro-batch, before whose first others may have left their gradients."""
        last, run = self.run.shape.num_layers - 1, {"accumulating": accumulating}
        moments = [
            (layer, moment) for layer in self.looked_at for moment in [LAST] * (layer == last) + [FIRST] * (layer == 0) or [BETWEEN]
        ]
        return [
            *(instant for layer in self.latest() for instant in self.forward(resident, layer, **run)),
            *self.reference_forward(resident, **run),
            *self.loss(resident, **run),
            *(instant for layer, moment in moments for instant in self.backward(resident, layer, moment, **run)),
            *self.end(resident, **run),
        ]

    def _states(self) -> list[tuple[str, Amount]]:
        """Weights, optimizer states, and whatever else is there for the whole run besides batch and workspace."""
        run = self.run
        rows = {name: total(holdings) for name, holdings in self.shares.resident.items()}
        if not run.sharding.divides:
            rows |= {"base_weights": state.weight_bytes(run), "adapters": state.adapter_bytes(run), "optimizer_states": state.state_bytes(run)}
        if run.reference == "copy":
            rows["reference_weights"] = state.weight_bytes(reference_of(run))
        return [(name, _fixed(size)) for name, size in rows.items()]

    def at_place(self, place: str) -> tuple[tuple[str, Amount], ...]:
        """What several GPUs have gathered, and what they are reducing, at one place of the step."""
        if place not in self._places:
            rows = ("gathered_weights", self.shares.gathered), ("reduction_buffers", self.shares.buffers)
            found = [(name, total(getattr(by_place, place))) for name, by_place in rows]
            self._places[place] = tuple((name, _fixed(size)) for name, size in found if size)
        return self._places[place]

    def place(self, layer: int) -> str:
        """Where a layer's backward pass is, for what is gathered then."""
        return "last" if layer == self.run.shape.num_layers - 1 else "middle" if layer else "first"

    def forward(self, resident, layer: int, *, accumulating: bool) -> list[Instant]:
        """The instants of one layer's forward pass; layers are numbered from 0."""
        inputs = plus(self.masks, self.embedded if layer else NOTHING)
        beside = ("inputs", inputs), ("saved_activations", self.saved_before(layer)), ("autocast_copies", self._copies(layer - 1 if self.run.checkpointing else layer))
        held, layer_walks = (*resident, *self._lingering(), *beside, *self.at_place("forward")), self.row_of(layer).walks
        untrained = layer < self.first_trained
        points, walk = (layer_walks.without_graph, WITHOUT_GRAPH) if untrained else (layer_walks.forward, "layer forward")
        return _at(_named(FORWARD, accumulating), held, points, walk, layer_walks, self.layers_before(layer))

    def reference_forward(self, resident, *, accumulating: bool, every: bool = False) -> list[Instant]:
        """The instants of the reference's forward pass, its last layer's and its head's, while what the trained model saves is there:
        those that may be the peak, or every one of the head."""
        if self.reference is None:
            return []
        moment, walk, where = _named(REFERENCE, accumulating), "head of the reference", (self.reference, self.run.shape.num_layers)
        after = (*resident, ("saved_activations", self.saved()), ("logits", self.reference.beside))
        held = (*after, ("autocast_copies", self._reference_copies()))
        in_head, beyond = self.reference.every if every else (self.reference.head, self.reference.after)
        return [
            *_at(moment, held, self.reference.layer, "layer of the reference", *where),
            *_at(moment, held, in_head, walk, *where),
            *_at(moment, after, beyond, walk, *where),
        ]

    def _reference_copies(self) -> Amount:
        """Autocast's copies of the reference's weights, where they stay until its forward pass ends."""
        if not self.reference.kept_copies or self.run.quantization:
            return NOTHING
        shape = self.run.shape
        linear = sum(into * out for into, out in self.run.projection_sizes.values())
        head = shape.vocab_size * shape.hidden_size if self.run.loss.startswith("logits-dpo") else 0
        return _fixed(HALF * (shape.num_layers * linear + head))

    def loss(self, resident, *, accumulating: bool, every: bool = False) -> list[Instant]:
        """The instants of the head and the loss, forward and backward: those that may be the peak, or every one, in order."""
        moment, walk, where = _named(LOSS, accumulating), _named("head backward", accumulating), (self.head, self.run.shape.num_layers)
        head, held = self.head, (*resident, ("saved_activations", self.saved()))
        forward, after = head.forward, head.after
        backward = head.adding if accumulating else head.backward
        if every:
            forward, after = head.every_forward[: head.forward_ends], head.every_forward[head.forward_ends :]
            backward = head.every_adding if accumulating else head.every_backward
        return [
            *_at(moment, (*held, *self.left_behind, ("autocast_copies", self.autocast_copies), *self.at_place("loss")), forward, "head forward", *where),
            *_at(moment, (*held, *self.at_place("loss")), after, "head forward", *where),
            *_at(moment, (*held, *self.outputs_kept, *self.at_place("loss_backward")), backward, walk, *where),
        ]

    def backward(self, resident, layer: int, moment: str, *, accumulating: bool) -> list[Instant]:
        """The instants of one layer's backward pass, its second forward pass included; none where layers have none."""
        if self.layers_need_no_gradient() or layer < self.first_trained:
            return []
        held = (*resident, *self.held_backward(layer, accumulating=accumulating), *self.at_place(self.place(layer)))
        where = self.row_of(layer).walks, self.layers_before(layer)
        walks = self._layer_walks(where[0], accumulating, _named("layer backward", accumulating))
        moment = _named(moment, accumulating)
        found = [instant for beside, points, name in walks for instant in _at(moment, (*held, *beside), points, name, *where)]
        return [*found, *self._in_one_piece(moment, held)]

    def _in_one_piece(self, moment: str, held) -> list[Instant]:
        """The gradients of a layer that is done, and beside them all of them in one piece, where a kind of sharding makes that."""
        size = self.shares.flattened
        if not size:
            return []
        held = (*held, ("gradients", _fixed(size)), ("reduction_buffers", _fixed(size)), ("waiting_gradient", self.output))
        return [Instant(moment, held, _total(held))]

    def handing_on(self, resident, layer: int, moment: str, *, accumulating: bool, forward: bool) -> Instant:
        """The instant between a layer and the next one to run: its output, or the gradient of its input, is passed on."""
        if forward:
            saved = self.saved_before(layer if self.run.checkpointing else layer + 1)
            copies, layers = ("autocast_copies", self._copies(layer if self.run.checkpointing else layer + 1)), layer + 1
            held = (*resident, *self._lingering(), ("inputs", self.masks), ("saved_activations", saved), copies, *self.at_place("forward"))
            held = (*held, ("layer_output", self.output))
        else:
            kept, layers = self.held_backward(layer - 1, accumulating=accumulating), self.layers_before(layer - 1)
            held = (*resident, *kept, *self.at_place(self.place(layer)), ("waiting_gradient", self.output))
        return Instant(_named(moment, accumulating), held, _total(held), layers=layers)

    def saved(self) -> Amount:
        """What the whole forward pass leaves for the backward pass, up to the head."""
        layers = self.run.shape.num_layers
        if self.run.offload:
            return self._behind(layers - 1 if self.run.offload in KEEPS_LAST else -1)
        return self.saved_before(layers - 1 if self.run.checkpointing else layers)

    def saved_before(self, layer: int) -> Amount:
        """What is left for the backward pass when a layer starts forward: by the layers before it, and its checkpoint; of those that
        wait in host memory its own alone."""
        if self.run.offload:
            return self._behind(layer)
        row, count = self.rows[-1] if layer >= self.run.shape.num_layers else self.row_of(layer), self.layers_before(layer)
        by_layers = plus(row.kept_before, times(count - row.before, row.kept))
        return plus(by_layers, self.first_saves_less if count > self.first_trained else NOTHING, total_of(self.of_embedding))

    def layers_before(self, layer: int) -> int:
        """How many layers have left something when a layer starts forward: with checkpointing itself too."""
        return layer + 1 if self.run.checkpointing else max(0, layer)

    def _behind(self, layer: int) -> Amount:
        """What is saved where the checkpoint of one layer alone is on the GPU; none of -1."""
        first = self.first_saves_less if not layer else NOTHING
        return plus(self.output if layer >= 0 else NOTHING, first, total_of(self.of_embedding))

    def _saved_backward(self, layer: int) -> Amount:
        """What is saved while a layer goes backward. A checkpoint that came back through a buffer is counted there."""
        if self.run.offload in KEEPS_LAST and layer != self.run.shape.num_layers - 1:
            return self._behind(-1)
        return self.saved_before(layer)

    def _unsaved_copies(self) -> int:
        """Autocast's copies of the first trained layer that nothing has saved, where no gradient goes beyond that layer. They stay until the
        forward pass ends."""
        run = self.run
        reaches = run.checkpointing or run.trains_base or "embed" in run.targets
        return 0 if reaches or not run.autocast or self.layers_need_no_gradient() else self.row_of(self.first_trained).walks.tape.unsaved_copies()

    def _copies(self, layer: int) -> Amount:
        """Autocast's copies once a layer has run forward, beside what is saved: those of the layers so far."""
        if not self.run.checkpointing:
            return self.autocast_copies if layer > self.first_trained else NOTHING
        return _fixed(self.autocast_copies[FIXED] * (layer + 1) // self.run.shape.num_layers)

    def held_backward(self, layer: int, *, accumulating: bool) -> tuple[tuple[str, Amount], ...]:
        """What is held besides the tape while a layer goes backward: what is saved still, and the gradients made before.

        What escapes checkpointing stays to the end; -1 stands for what is behind the first layer.
        """
        row, done = self.row_of(layer), self.run.shape.num_layers - 1 - layer
        after = row.before + row.count - 1 - layer
        stays = times(done, row.kept) if self._hooks_keep else plus(row.escaped_after, times(after, row.escaped))
        left = plus(self._saved_backward(layer), stays)
        of_each, of_later = self._gradients_by_rows[row.before]
        made = _fixed(self.shares.of_head + of_later + after * of_each)
        kept = ("saved_activations", left), *self.outputs_kept, ("gradients", _fixed(self.head.waits) if accumulating else made)
        return (*kept, *self._kept_by_hooks(done - 1))

    @property
    def _hooks_keep(self) -> bool:
        """Whether every frozen layer's input and its gradient stay to the end of the backward pass.

        Source: torch 2.13.0, distributed/fsdp/_runtime_utils.py, _register_post_backward_reshard_only_hook: its handle stays
        until _finalize_params, and with it the leaf that reentrant checkpointing made of the layer's input.
        """
        run = self.run
        return run.sharding.kind == "fsdp1" and run.checkpointing and run.reentrant and not run.trains_base

    def _kept_by_hooks(self, count: int) -> tuple[tuple[str, Amount], ...]:
        """Gradients of so many layers' inputs, where hooks keep them; the newest is the one the next layer has."""
        return (("hook_gradients", times(count, self.output)),) if self._hooks_keep and count > 0 else ()

    def _layer_walks(self, layer: LayerWalks, accumulating: bool, name: str):
        """The walks a layer takes in the backward pass: (what is beside its tape, points, name)."""
        beside = (("layer_output", self.output if self.run.reentrant and self.run.checkpointing else NOTHING),)
        adding = accumulating or self.shares.reduced_at_once
        found = [(beside, layer.adding if adding else layer.backward, name)]
        if self.run.checkpointing:
            waiting = (("waiting_gradient", plus(self.output, layer.waiting)),)
            found.append((waiting, layer.recomputation, "layer recomputation"))
        return found

    def _first_layer_saves_less(self) -> Amount:
        """The first layer's input has the type of the embeddings, though later layers may have float32 inputs. Without
        checkpointing the embeddings of a frozen model get no gradient, so the first layer with an adapter saves nothing before
        that.

        Source: torch 2.13.0, autograd saves what a gradient needs; transformers 5.24.0, enable_input_require_grads is
        called for gradient checkpointing.
        """
        run = self.run
        if run.checkpointing:
            first = max(run.embedding_size, normed_size(run)) if run.shape.embedding_norm else run.embedding_size
            return _per_token(-(residual_size(run) - first) * run.shape.hidden_size)
        if run.trains_base or "embed" in run.targets or self.layers_need_no_gradient():
            return NOTHING
        of_first = self.row_of(self.first_trained).walks
        return plus(of_first.tape.saved(input_gradient=False), times(-1, of_first.saved))

    def layers_need_no_gradient(self) -> bool:
        """Whether nothing is trained up to the head, and no checkpointing makes the embeddings need a gradient."""
        run = self.run
        return not run.trains_base and not run.checkpointing and run.targets <= {"lm_head"} and not run.expert_targets

    def _of_embedding(self) -> list[Tensor]:
        """What stays between the embedding and the first layer, where the embedding needs a gradient: what a norm or a dropout
        there keeps, and in a checkpointed frozen model the tensor that was made to require a gradient, if the first layer's
        input is another, or waits in host memory. Embeddings are multiplied by their own module in Gemma and MiniCPM3, and after it in
        Granite and MiniCPM, whose blocks’ outputs are scaled too.

        Source: transformers 5.24.0, modeling_utils.py, enable_input_require_grads; models/granite/modeling_granite.py;
        models/bloom/modeling_bloom.py (word_embeddings_layernorm); models/gpt2/modeling_gpt2.py (wpe, drop).
        """
        run, shape = self.run, self.run.shape
        if not (run.trains_base or run.checkpointing or "embed" in run.targets):
            return []
        outside = shape.scaled_embeddings and shape.scaled_residual and not shape.kv_lora_rank
        changed = outside or shape.learned_positions or shape.embedding_norm or shape.embedding_dropout
        leaf = run.checkpointing and not run.trains_base and bool(changed or run.offload)
        tape, x = Tape(), Tensor("embedding", shape.hidden_size, run.embedding_size, external=leaf)
        kept = [x] if leaf else []
        if shape.embedding_norm:
            x = norm(tape, run, x, x.width, "norm of the embedding", weight_size=run.norm_size)
        if shape.embedding_dropout:
            dropout(tape, x, "embedding")
        return [*kept, *tape.saved_tensors()]

    def _embedded(self) -> Amount:
        """The embeddings, which a variable of the model keeps while its layers run, where the first layer has not kept them anyway.

        Source: transformers 5.24.0, models/llama/modeling_llama.py, LlamaModel.forward (inputs_embeds).
        """
        run, shape = self.run, self.run.shape
        changed = shape.learned_positions or shape.embedding_norm or shape.embedding_dropout
        if run.checkpointing or run.model_code != TRANSFORMERS or changed:
            return NOTHING
        tape = self.rows[0].walks.tape
        if tape.operations[0].inputs[0] in tape.saved_tensors(input_gradient=run.trains_base or "embed" in run.targets):
            return NOTHING
        return _per_token(run.embedding_size * shape.hidden_size)

    def _outputs_kept(self) -> tuple[tuple[str, Amount], ...]:
        """Logits that a training loop keeps through its backward pass."""
        run = self.run
        if run.outputs_kept and run.loss.endswith(LITGPT):
            return (("outputs_kept", _per_token(SINGLE * run.shape.vocab_size)),)
        if not run.outputs_kept or not run.loss.startswith(("logits", "triton")):
            return ()
        size = SINGLE if run.loss.endswith("4.45") or (run.head_size == SINGLE and not run.autocast) else HALF
        return (("outputs_kept", _per_token(size * run.shape.vocab_size)),)

    def _left_behind(self) -> tuple[tuple[str, Amount], ...]:
        """What the micro-batch before has left, where the loop's variables keep its graph until the next loss is there:
        tensors that are attributes, which no backward pass lets go.

        Source: litgpt 0.4.0, finetune/lora.py, fit (loss, logits); bitsandbytes 0.42.0, autograd/_functions.py, MatMul4Bit.
        """
        if not self.run.lingers:
            return ()
        return (("left_behind", plus(*(times(row.count, row.walks.escaped) for row in self.rows))),)

    def _lingering(self) -> tuple[tuple[str, Amount], ...]:
        """The same, and the logits, from one loss to the next."""
        return (*self.left_behind, *self.outputs_kept) if self.run.lingers else ()

    def end(self, resident, *, accumulating: bool) -> list[Instant]:
        """The gradient of the embedding, on top of all others: while it is made out of that of its output, and where that of a tied
        head waits for it and the two are added out of place, while they are.

        Source: torch 2.13.0, embedding_dense_backward; csrc/autograd/input_buffer.cpp: the two gradients of a tied
        embedding are added in place, unless the first is a transposed view, as a linear map makes it whose weight is not cast;
        ATen/native/cuda/EmbeddingBackwardKernel.cu: sums of sorted rows.
        """
        run = self.run
        table = run.embedding_size * run.shape.vocab_size * run.shape.hidden_size if run.trains_base else 0
        is_view = not (run.autocast and run.embedding_size == SINGLE) and run.loss.startswith(("logits", "triton"))
        sums = SORTED_EMBEDDING_TENTHS * SINGLE * run.shape.hidden_size // TENTHS if run.sorts_embedding else 0
        made = 1 if accumulating else 0  # beside the gradients that are counted already
        waits = 1 if run.shape.tied_embeddings and (self.head.waits or not accumulating) else 0
        extras = [plus(_fixed((made + waits) * table), _per_token(run.shape.hidden_size * residual_size(run) + sums))]
        extras += [_fixed((made + waits + 1) * table)] if waits and is_view and table else []
        gradients = () if accumulating else (("gradients", self.gradients),)
        layers = run.shape.num_layers
        left = self.saved() if self._hooks_keep else plus(*(times(row.count, row.escaped) for row in self.rows))
        hooks = self._kept_by_hooks(layers - 1)
        masks = NOTHING if run.reentrant else times(-1, self.kept_masks)  # the layers that were called with them are done
        held = (*resident, ("inputs", masks), ("saved_activations", left), *hooks, *self.outputs_kept, *gradients, *self.at_place("end"))
        every = [(*held, ("embedding_gradient", extra)) for extra in extras]
        return [Instant(_named(END, accumulating), each, _total(each)) for each in every]

    def update(self) -> Instant:
        """The optimizer step."""
        rows = max(self.shares.updates, key=lambda each: sum(size for _, size in each))
        held = (*self.resident, ("inputs", times(-1, self.kept_masks)), *self._lingering(), *((name, _fixed(size)) for name, size in rows))
        return Instant(STEP, held, _total(held))

    def resting(self, moment: str, *batch: int) -> int:
        """Bytes that are held at the loss or in the last layer's backward pass besides the tensors of that moment."""
        return evaluate(self.rest(moment), *batch)

    def rest(self, moment: str) -> Amount:
        """The same for every batch."""
        saved = self.saved() if moment == LOSS else self._saved_backward(self.run.shape.num_layers - 1)
        return plus(_total(self.resident), saved)

    def alive(self, instant: Instant) -> list[Alive]:
        """The tensors of the tape that are alive at an instant."""
        if not instant.walks:
            return []
        if isinstance(instant.walks, ReferenceWalks):
            tape = instant.walks.layer_tape if instant.walk.startswith("layer") else instant.walks.head_tape
            return tape.alive_alone(instant.index, copies=not instant.walks.kept_copies)
        if "backward" in instant.walk:
            adding = instant.walk.endswith(LATER) or (self.shares.reduced_at_once and instant.walks is not self.head)
            return instant.walks.tape.alive_backward(instant.index, accumulating=adding, waits=self.head.waits if instant.walks is self.head else 0)
        caches = instant.walk == "layer forward" and self.run.checkpointing
        return instant.walks.tape.alive_forward(instant.index, keeps=instant.walk != WITHOUT_GRAPH and not caches, caches=caches)


def _named(moment: str, accumulating: bool) -> str:
    """A moment's name in a first or in a later micro-batch."""
    return moment + LATER if accumulating else moment


def _masks(run: Structure) -> Amount:
    """Attention masks: 16-bit ones (B, 1, S, S) where scores are written out, two where some layers have a window and others do
    not, however short the rows are; else a bool one (S, S) for layers with a window. They are there while the layers run, and stay where these run again.

    Source: transformers 5.24.0, masking_utils.py, eager_mask and sdpa_mask, without padding.
    """
    if run.attention == "eager":
        return grown(PAIRS, HALF * (2 if run.shape.sliding_window_pattern else 1))
    return grown(SQUARES, MASK_SIZE) if run.masked else NOTHING


def _fixed(size: int) -> Amount:
    return (size, *NOTHING[1:])


def _per_token(size: int) -> Amount:
    return grown(TOKENS, size)


def _total(held) -> Amount:
    return plus(*[amount for _, amount in held])


def _at(moment: str, held, points: Points, walk: str, walks: LayerWalks | HeadWalks | ReferenceWalks, layers: int) -> list[Instant]:
    base = _total(held)
    return [Instant(moment, held, plus(base, amount), walk, index, walks, layers) for index, amount in points]


def _ends(row: Row) -> tuple[int, ...]:
    """The last and the first layer of a row by their numbers; a row of one has one."""
    return (row.count - 1, 0) if row.count > 1 else (0,)


def _undominated(instants: list[Instant]) -> list[Instant]:
    """The instants that are the largest for some batch."""
    kept: list[Instant] = []
    for instant in sorted(instants, key=lambda each: each.amount, reverse=True):
        if not any(covers(other.amount, instant.amount) for other in kept):
            kept.append(instant)
    return kept


STEPS_KEPT = 512
"""Steps that are remembered: more than one search or table asks for."""


@lru_cache(maxsize=STEPS_KEPT)
def step_of(run: Structure) -> Step:
    """The step of a structure."""
    return Step(run)


def forget() -> None:
    """Drop every remembered step: for tests that change what they are made of."""
    step_of.cache_clear()
    remembered.forget()
