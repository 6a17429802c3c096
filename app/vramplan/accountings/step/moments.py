"""The moments of one training step, and which of them is the largest.

Moments, in the order of a step: forward, loss, backward of the last and of the first layer, end of the backward pass,
optimizer step; with gradient accumulation the first five again, on top of the gradients that are there already.
"""

from dataclasses import replace
from functools import lru_cache

from vramplan.accountings.step import state, walks
from vramplan.accountings.step.host import KEEPS_LAST, STAGED_LATER, STAGING_BUFFERS
from vramplan.accountings.step.layer import normed_size, residual_size
from vramplan.accountings.step.operations import dropout, norm
from vramplan.accountings.step.shares import shares_of, total
from vramplan.accountings.step.structure import HALF, LITGPT, SINGLE, Structure
from vramplan.accountings.step.tape import FIXED, Alive, Amount, Tape, Tensor
from vramplan.accountings.step.walks import Points, covers, head_walks, layer_walks, reference_of, reference_walks
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
    """One instant that may be the peak: its moment, what is held besides the tape, and where on which tape it is."""

    __slots__ = ("amount", "held", "index", "moment", "walk")

    def __init__(self, moment: str, held, amount: Amount, walk: str = "", index: int = 0):
        self.moment = moment
        self.held = held
        self.amount = amount
        self.walk = walk
        self.index = index

    def bytes(self, tokens: int, sequence_length: int) -> int:
        """All of it, for a batch of so many tokens."""
        return evaluate(self.amount, tokens, sequence_length)


def evaluate(amount: Amount, tokens: int, sequence_length: int) -> int:
    """Bytes of an amount for a batch of so many tokens."""
    fixed, per_token, per_pair, per_position = amount
    return fixed + tokens * (per_token + sequence_length * per_pair) + sequence_length * per_position


def plus(*amounts: Amount) -> Amount:
    """The sum of amounts."""
    fixed = tokens = pairs = positions = 0
    for a, b, c, d in amounts:
        fixed += a
        tokens += b
        pairs += c
        positions += d
    return fixed, tokens, pairs, positions


def times(count: int, amount: Amount) -> Amount:
    """An amount several times."""
    return tuple(count * part for part in amount)


def total_of(tensors: list[Tensor]) -> Amount:
    """What several tensors take together."""
    total = [0, 0, 0, 0]
    for tensor in tensors:
        total[tensor.growth] += tensor.bytes
    return tuple(total)


NOTHING: Amount = (0, 0, 0, 0)

FORWARD, REFERENCE, LOSS, LAST, FIRST, END, STEP = (
    "forward", "forward of the reference", "loss", "backward of the last layer", "backward of the first layer", "end of the backward pass", "optimizer step",
)
"""The moments of a step, in order."""

LATER = ", later micro-batch"
"""Added to a moment's name where earlier micro-batches have left their gradients."""


IN_FIRST_STEP = ", first step"
"""Added to a moment's name where the first step of a run holds more than the others."""

NO_STATES = "sgd"
"""An optimizer that keeps no states."""


class Step:
    """Everything that does not depend on how many tokens go through: the tapes, and the instants that may be the peak."""

    def __init__(self, run: Structure):
        self.run = run
        hidden = run.shape.hidden_size
        self.layer, self.head = layer_walks(run), head_walks(run)
        self.reference = reference_walks(run) if run.reference in ("copy", "shared") else None
        self.parameters = state.parameters(run), state.trained_parameters(run)
        self.shares = shares_of(run, of_layer=self.layer.gradients, of_head=self.head.gradients)
        self.gradients = _fixed(self.shares.collected)
        self.resident = (
            *self._states(),
            ("dequantization", _fixed(state.dequantization_bytes(run))),
            ("staging", (0, STAGING_BUFFERS[run.offload] * HALF * hidden if run.offload else 0, 0, 0)),
            ("inputs", (0, TOKEN_INPUT_BYTES + (COMPLETION_BYTES if run.reference else 0), _mask_bytes(run), 2 * run.shape.head_dim * residual_size(run))),
            ("workspace", _fixed(CUBLAS_WORKSPACE_BYTES * CUBLAS_HANDLES)),
        )
        self.resident_later = (*self.resident, ("gradients", _fixed(self.shares.accumulated)))
        self.autocast_copies = _fixed(state.autocast_bytes(run) if run.checkpointing else 0)
        self.escaped = NOTHING if run.reentrant or not run.checkpointing else self.layer.tape.escaped()
        self.output = (0, hidden * residual_size(run), 0, 0)
        self.per_layer = plus(self.output, self.escaped) if run.checkpointing else self.layer.saved
        if self.layers_need_no_gradient():
            self.per_layer = NOTHING
        self.first_saves_less = self._first_layer_saves_less()
        self.of_embedding = self._of_embedding()
        self.outputs_kept = self._outputs_kept()
        self.left_behind = self._left_behind()
        self.instants = self._instants()
        self.peaks = _undominated(self.instants)
        self.by_transient = [_undominated([i for i in self.instants if i.moment == moment]) for moment in (LOSS, LAST)]

    def _instants(self) -> list[Instant]:
        """Every instant, moment by moment, in the order of the step."""
        found = self._first_step() if self.run.offload == STAGED_LATER else []
        found += self._micro_batch(self.resident, accumulating=False)
        if self.run.accumulates:
            found += self._micro_batch(self.resident_later, accumulating=True)
        return [*found, self.update()]

    def _first_step(self) -> list[Instant]:
        """The instants of a first micro-batch whose checkpoints stay on the GPU; there are no optimizer states and no buffers yet.

        Source: unsloth_zoo 2025.11.1, gradient_checkpointing.py, UnslothCheckpointFunction.forward: while the layers are counted,
        every layer is the last.
        """
        first = Step(replace(self.run, offload="", optimizer=NO_STATES, accumulates=False))
        for instant in first.instants:
            instant.moment += IN_FIRST_STEP
        return [instant for instant in first.instants if not instant.moment.startswith(STEP)]

    def _micro_batch(self, resident, *, accumulating: bool) -> list[Instant]:
        """The moments of one micro-batch, before whose first others may have left their gradients."""
        last, run = self.run.shape.num_layers - 1, {"accumulating": accumulating}
        return [
            *self.forward(resident, last, **run),
            *self.reference_forward(resident, **run),
            *self.loss(resident, **run),
            *self.backward(resident, last, LAST, **run),
            *self.backward(resident, 0, FIRST, **run),
            self.end(resident, **run),
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
        rows = ("gathered_weights", self.shares.gathered), ("reduction_buffers", self.shares.buffers)
        found = ((name, total(getattr(by_place, place))) for name, by_place in rows)
        return tuple((name, _fixed(size)) for name, size in found if size)

    def place(self, layer: int) -> str:
        """Where a layer's backward pass is, for what is gathered then."""
        return "last" if layer == self.run.shape.num_layers - 1 else "middle" if layer else "first"

    def forward(self, resident, layer: int, *, accumulating: bool) -> list[Instant]:
        """The instants of one layer's forward pass; layers are numbered from 0."""
        before = (*self.left_behind, *self.outputs_kept) if self.run.lingers else ()
        saved, copies = ("saved_activations", self.saved_before(layer)), ("autocast_copies", self._copies(layer))
        held = (*resident, *before, saved, copies, *self.at_place("forward"))
        return _at(_named(FORWARD, accumulating), held, self.layer.forward, "layer forward")

    def reference_forward(self, resident, *, accumulating: bool) -> list[Instant]:
        """The instants of the reference's forward pass, its last layer's and its head's, while what the trained model saves is there."""
        if self.reference is None:
            return []
        moment, walk = _named(REFERENCE, accumulating), "head of the reference"
        after = (*resident, ("saved_activations", self.saved()), ("logits", self.reference.beside))
        held = (*after, ("autocast_copies", self._reference_copies()))
        return [
            *_at(moment, held, self.reference.layer, "layer of the reference"),
            *_at(moment, held, self.reference.head, walk),
            *_at(moment, after, self.reference.after, walk),
        ]

    def _reference_copies(self) -> Amount:
        """Autocast's copies of the reference's weights, where they stay until its forward pass ends."""
        if not self.reference.kept_copies or self.run.quantization:
            return NOTHING
        shape = self.run.shape
        linear = sum(into * out for into, out in self.run.projection_sizes.values())
        head = shape.vocab_size * shape.hidden_size if self.run.loss.startswith("logits-dpo") else 0
        return _fixed(HALF * (shape.num_layers * linear + head))

    def loss(self, resident, *, accumulating: bool) -> list[Instant]:
        """The instants of the head and the loss, forward and backward."""
        moment, walk = _named(LOSS, accumulating), _named("head backward", accumulating)
        held = (*resident, ("saved_activations", self.saved()))
        return [
            *_at(moment, (*held, *self.left_behind, ("autocast_copies", self.autocast_copies), *self.at_place("loss")), self.head.forward, "head forward"),
            *_at(moment, (*held, *self.at_place("loss")), self.head.after, "head forward"),
            *_at(moment, (*held, *self.outputs_kept, *self.at_place("loss_backward")), self.head.adding if accumulating else self.head.backward, walk),
        ]

    def backward(self, resident, layer: int, moment: str, *, accumulating: bool) -> list[Instant]:
        """The instants of one layer's backward pass, its second forward pass included; none where layers have none."""
        if self.layers_need_no_gradient():
            return []
        held = (*resident, *self.held_backward(layer, accumulating=accumulating), *self.at_place(self.place(layer)))
        walks = self._layer_walks(accumulating, _named("layer backward", accumulating))
        moment = _named(moment, accumulating)
        found = [instant for beside, points, name in walks for instant in _at(moment, (*held, *beside), points, name)]
        return [*found, *self._in_one_piece(moment, held)]

    def _in_one_piece(self, moment: str, held) -> list[Instant]:
        """The gradients of a layer that is done, and beside them all of them in one piece, where a kind of sharding makes that."""
        size = self.shares.flattened
        if not size:
            return []
        held = (*held, ("gradients", _fixed(size)), ("reduction_buffers", _fixed(size)), ("waiting_gradient", self.output))
        return [Instant(moment, held, _total(held))]

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
        count = layer + 1 if self.run.checkpointing else layer
        return plus(times(count, self.per_layer), self.first_saves_less if count else NOTHING, total_of(self.of_embedding))

    def _behind(self, layer: int) -> Amount:
        """What is saved where the checkpoint of one layer alone is on the GPU; none of -1."""
        first = self.first_saves_less if not layer else NOTHING
        return plus(self.output if layer >= 0 else NOTHING, first, total_of(self.of_embedding))

    def _saved_backward(self, layer: int) -> Amount:
        """What is saved while a layer goes backward. A checkpoint that came back through a buffer is counted there."""
        if self.run.offload in KEEPS_LAST and layer != self.run.shape.num_layers - 1:
            return self._behind(-1)
        return self.saved_before(layer)

    def _copies(self, layer: int) -> Amount:
        """Autocast's copies once a layer has run forward: those of the layers so far."""
        return _fixed(self.autocast_copies[FIXED] * (layer + 1) // self.run.shape.num_layers)

    def held_backward(self, layer: int, *, accumulating: bool) -> tuple[tuple[str, Amount], ...]:
        """What is held besides the tape while a layer goes backward: what is saved still, and the gradients made before.

        What escapes checkpointing stays to the end; -1 stands for what is behind the first layer.
        """
        done = self.run.shape.num_layers - 1 - layer
        left = plus(self._saved_backward(layer), times(done, self.per_layer if self._hooks_keep else self.escaped))
        made = plus(_fixed(self.shares.of_head), times(done, _fixed(self.shares.of_layer)))
        kept = ("saved_activations", left), *self.outputs_kept, ("gradients", NOTHING if accumulating else made)
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

    def _layer_walks(self, accumulating: bool, name: str):
        """The walks a layer takes in the backward pass: (what is beside its tape, points, name)."""
        beside = (("layer_output", self.output if self.run.reentrant and self.run.checkpointing else NOTHING),)
        adding = accumulating or self.shares.reduced_at_once
        found = [(beside, self.layer.adding if adding else self.layer.backward, name)]
        if self.run.checkpointing:
            scaled = "down" in self.run.targets and not self.run.reentrant
            waiting = (("waiting_gradient", times(2 if scaled else 1, self.output)),)
            found.append((waiting, self.layer.recomputation, "layer recomputation"))
        return found

    def _first_layer_saves_less(self) -> Amount:
        """The first layer's input has the type of the embeddings, though later layers may have float32 inputs. Without
        checkpointing the embeddings of a frozen model get no gradient, so the first layer saves nothing before its first
        adapter.

        Source: torch 2.13.0, autograd saves what a gradient needs; transformers 5.24.0, enable_input_require_grads is
        called for gradient checkpointing.
        """
        run = self.run
        if run.checkpointing:
            first = max(run.embedding_size, normed_size(run)) if run.shape.embedding_norm else run.embedding_size
            return 0, -(residual_size(run) - first) * run.shape.hidden_size, 0, 0
        if run.trains_base or "embed" in run.targets or self.layers_need_no_gradient():
            return NOTHING
        return plus(self.layer.tape.saved(input_gradient=False), times(-1, self.layer.saved))

    def layers_need_no_gradient(self) -> bool:
        """Whether nothing is trained up to the head, and no checkpointing makes the embeddings need a gradient."""
        run = self.run
        return not run.trains_base and not run.checkpointing and run.targets <= {"lm_head"}

    def _of_embedding(self) -> list[Tensor]:
        """What stays between the embedding and the first layer, where the embedding needs a gradient: what a norm or a dropout
        there keeps, and in a checkpointed frozen model the tensor that was made to require a gradient, if the first layer's
        input is another, or waits in host memory.

        Source: transformers 5.24.0, modeling_utils.py, enable_input_require_grads; models/granite/modeling_granite.py;
        models/bloom/modeling_bloom.py (word_embeddings_layernorm); models/gpt2/modeling_gpt2.py (wpe, drop).
        """
        run, shape = self.run, self.run.shape
        if not (run.trains_base or run.checkpointing or "embed" in run.targets):
            return []
        changed = shape.scaled_embeddings or shape.learned_positions or shape.embedding_norm or shape.embedding_dropout
        leaf = run.checkpointing and not run.trains_base and bool(changed or run.offload)
        tape, x = Tape(), Tensor("embedding", shape.hidden_size, run.embedding_size, external=leaf)
        kept = [x] if leaf else []
        if shape.embedding_norm:
            x = norm(tape, run, x, x.width, "norm of the embedding", weight_size=run.norm_size)
        if shape.embedding_dropout:
            dropout(tape, x, "embedding")
        return [*kept, *tape.saved_tensors()]

    def _outputs_kept(self) -> tuple[tuple[str, Amount], ...]:
        """Logits that a training loop keeps through its backward pass."""
        run = self.run
        if run.outputs_kept and run.loss.endswith(LITGPT):
            return (("outputs_kept", (0, SINGLE * run.shape.vocab_size, 0, 0)),)
        if not run.outputs_kept or not run.loss.startswith(("logits", "triton")):
            return ()
        size = SINGLE if run.loss.endswith("4.45") or (run.head_size == SINGLE and not run.autocast) else HALF
        return (("outputs_kept", (0, size * run.shape.vocab_size, 0, 0)),)

    def _left_behind(self) -> tuple[tuple[str, Amount], ...]:
        """What the micro-batch before has left, where the loop's variables keep its graph until the next loss is there:
        tensors that are attributes, which no backward pass lets go.

        Source: litgpt 0.4.0, finetune/lora.py, fit (loss, logits); bitsandbytes 0.42.0, autograd/_functions.py, MatMul4Bit.
        """
        if not self.run.lingers:
            return ()
        return (("left_behind", times(self.run.shape.num_layers, self.layer.tape.escaped())),)

    def end(self, resident, *, accumulating: bool) -> Instant:
        """The gradient of the embedding, on top of all others, and of the gradient of its output.

        Source: torch 2.13.0, embedding_dense_backward; csrc/autograd/input_buffer.cpp: the two gradients of a tied
        embedding are added in place, unless the first is a transposed view, as a 16-bit linear map makes it;
        ATen/native/cuda/EmbeddingBackwardKernel.cu: sums of sorted rows.
        """
        run = self.run
        table = run.embedding_size * run.shape.vocab_size * run.shape.hidden_size if run.trains_base else 0
        is_view = run.embedding_size == HALF and run.loss.startswith(("logits", "triton"))
        of_tied = 1 + is_view if run.shape.tied_embeddings else 0
        copies = 1 if accumulating else of_tied
        sums = SORTED_EMBEDDING_TENTHS * SINGLE * run.shape.hidden_size // TENTHS if run.sorts_embedding else 0
        extra = plus(_fixed(copies * table), (0, run.shape.hidden_size * residual_size(run) + sums, 0, 0))
        gradients = () if accumulating else (("gradients", self.gradients),)
        layers = run.shape.num_layers
        left = self.saved() if self._hooks_keep else times(layers, self.escaped)
        hooks = self._kept_by_hooks(layers - 1)
        held = (*resident, ("saved_activations", left), *hooks, *self.outputs_kept, *gradients, ("embedding_gradient", extra), *self.at_place("end"))
        return Instant(_named(END, accumulating), held, _total(held))

    def update(self) -> Instant:
        """The optimizer step."""
        rows = max(self.shares.updates, key=lambda each: sum(size for _, size in each))
        before = (*self.left_behind, *self.outputs_kept) if self.run.lingers else ()
        held = (*self.resident, *before, *((name, _fixed(size)) for name, size in rows))
        return Instant(STEP, held, _total(held))

    def resting(self, moment: str, tokens: int, sequence_length: int) -> int:
        """Bytes that are held at the loss or in the last layer's backward pass besides the tensors of that moment."""
        saved = self.saved() if moment == LOSS else self._saved_backward(self.run.shape.num_layers - 1)
        return evaluate(plus(_total(self.resident), saved), tokens, sequence_length)

    def alive(self, instant: Instant) -> list[Alive]:
        """The tensors of the tape that are alive at an instant."""
        accumulating = instant.walk.endswith(LATER)
        if instant.walk.startswith("layer backward"):
            return self.layer.tape.alive_backward(instant.index, accumulating=accumulating or self.shares.reduced_at_once)
        if instant.walk.startswith("head backward"):
            return self.head.tape.alive_backward(instant.index, accumulating=accumulating)
        if instant.walk == "layer of the reference":
            return self.reference.layer_tape.alive_alone(instant.index, copies=not self.reference.kept_copies)
        if instant.walk == "head of the reference":
            return self.reference.head_tape.alive_alone(instant.index, copies=not self.reference.kept_copies)
        if instant.walk == "layer recomputation":
            return self.layer.tape.alive_forward(instant.index, keeps=True)
        if instant.walk == "layer forward":
            return self.layer.tape.alive_forward(instant.index, keeps=not self.run.checkpointing)
        return self.head.tape.alive_forward(instant.index, keeps=True) if instant.walk else []


def _named(moment: str, accumulating: bool) -> str:
    """A moment's name in a first or in a later micro-batch."""
    return moment + LATER if accumulating else moment


def _mask_bytes(run: Structure) -> int:
    """Bytes per pair of tokens of the attention mask: (B, 1, S, S), for kernels that take one.

    Source: transformers 5.24.0, masking_utils.py, eager_mask.
    """
    return HALF if run.attention == "eager" or run.masked else 0


def _fixed(size: int) -> Amount:
    return size, 0, 0, 0


def _total(held) -> Amount:
    return plus(*(amount for _, amount in held))


def _at(moment: str, held, points: Points, walk: str) -> list[Instant]:
    base = _total(held)
    return [Instant(moment, held, plus(base, amount), walk, index) for index, amount in points]


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
    walks.forget()
