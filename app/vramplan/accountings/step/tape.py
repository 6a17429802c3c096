"""A tape of tensor operations, and what is alive while it runs forward and backward.

The tape is written down operation by operation, as the framework's source has it; the walk over it follows the rules of
PyTorch's autograd engine (torch 2.13.0, csrc/autograd/engine.cpp): nodes run in the reverse order of their creation, a
node's saved tensors and its incoming gradient are released when it has run, and a second gradient for the same tensor
is added in place unless the first is still used elsewhere, or is a view.

Amounts are kept as eight numbers, one for each way a tensor can grow: bytes that are fixed, per token (B·S), per pair of
tokens (B·S·S), per position (S), per pair of positions (S·S), and per block or chunk that a kernel or a layer goes through a row in.
So one walk answers for every batch and sequence length.
"""

from collections.abc import Iterable

FIXED, TOKENS, PAIRS, POSITIONS, SQUARES, BLOCKS, CHUNKS, LATER_CHUNKS = range(8)
"""How a tensor grows: not at all, with B·S, with B·S·S, with S, with S·S, with the blocks of keys that a kernel works on at once, with the
chunks of all rows, and with those but the first of every row."""

SAVED, IN_USE, WORKSPACE = "saved for the backward pass", "in use", "workspace of the operation in work"
"""Why a tensor is alive."""

Amount = tuple[int, int, int, int, int, int, int, int]
"""Bytes that are fixed, per token, per pair of tokens, per position, per pair of positions, per block of keys, per chunk, per chunk but
the first of a row."""

NOTHING: Amount = (0, 0, 0, 0, 0, 0, 0, 0)

Batch = tuple[int, int, int, int, int]
"""Tokens (B·S), the length of a row (S), blocks of keys, chunks of all rows, and those but the first of every row."""

NEED_NOTHING = frozenset(("add", "cast", "scale", "sum over experts"))
"""Operations whose backward asks a checkpoint for nothing, not even for a weight. Source: torch 2.13.0, AddBackward0, ToCopyBackward0,
MulBackward0 with a scalar, SumBackward1; utils/checkpoint.py, _checkpoint_hook.unpack_hook."""

SUMMED = frozenset(("norm weight",))
"""Operations whose weight's gradient is summed once they are done, when what a checkpoint handed over is gone. Source: torch 2.13.0,
csrc/autograd/engine.cpp, validate_outputs (sum_to)."""


class Tensor:
    """One tensor: what it is, how it grows, its elements per unit of growth and their size in bytes.

    external: somebody else accounts for it. base: the tensor whose storage this one shows. held: a variable of the
    program keeps it until the forward pass has ended. cached: autocast does, whether or not it is saved.
    """

    __slots__ = ("base", "bytes", "cached", "external", "growth", "held", "itemsize", "name", "width")

    def __init__(self, name, width, itemsize, growth=TOKENS, *, external=False, base=None, held=False, cached=False):
        self.name = name
        self.width = width
        self.itemsize = itemsize
        self.growth = growth
        self.bytes = width * itemsize
        self.external = external
        self.base = base.base or base if base else None
        self.held = held
        self.cached = cached


class Operation:
    """One operation, with what its backward needs.

    inputs: tensors that get a gradient. saves: tensors kept until its backward has run. scratch: (growth, bytes) that
    only its backward holds, `forward_scratch` only its forward. shares: the gradient of an input is the very tensor that came in. view: the
    outputs have no storage of their own. gradient: bytes of the weight gradients it makes, kept until the optimizer
    step; gradient_scratch: bytes of their unconverted form; converts: these become the gradients once the operation itself is done, what came in and
    what it saved gone. hands_over: the gradient was made in the forward pass, and saved.
    escapes: what it saves is an attribute that checkpointing cannot drop. unhooked: its weight is one. viewed: the gradients of its inputs are other views of what it
    makes. reads: tensors that a variable of the program keeps at least until this operation has run forward.
    """

    __slots__ = (
        "converts", "escapes", "forward_scratch", "gradient", "gradient_scratch", "hands_over", "inputs", "name", "outputs", "reads", "saves", "scratch",
        "shares", "unhooked", "view", "viewed",
    )

    def __init__(
        self, name, inputs, outputs, saves=(), scratch=(), forward_scratch=(), shares=False, view=False,
        gradient=0, gradient_scratch=0, hands_over=False, reads=(), escapes=False, converts=False, unhooked=False, viewed=False,
    ):
        self.name = name
        self.inputs = inputs
        self.outputs = outputs
        self.saves = saves
        self.scratch = scratch
        self.forward_scratch = forward_scratch
        self.shares = shares
        self.view = view
        self.gradient = gradient
        self.gradient_scratch = gradient_scratch
        self.hands_over = hands_over
        self.reads = reads
        self.escapes = escapes
        self.converts = converts
        self.unhooked = unhooked
        self.viewed = viewed

    @property
    def asks(self) -> bool:
        """Whether its backward asks a checkpoint for anything, be it a weight."""
        return self.name not in NEED_NOTHING and not self.escapes and not self.unhooked


class Gradient:
    """The gradient of a tensor while it waits; `uses` counts who still needs this very storage. viewed: it is a view, whose storage
    another tensor has too, so that nothing is added to it in place.

    Source: torch 2.13.0, csrc/autograd/input_buffer.cpp, can_accumulate_inplace; ATen/native/Linear.cpp and LinearAlgebra.cpp, matmul: the input
    is reshaped to a matrix, and its gradient back.
    """

    __slots__ = ("bytes", "growth", "itemsize", "name", "uses", "viewed", "width")

    def __init__(self, tensor, *, viewed=False):
        self.viewed = viewed
        self.name = tensor.name
        self.growth = tensor.growth
        self.width = tensor.width
        self.itemsize = tensor.itemsize
        self.bytes = tensor.bytes
        self.uses = 1


class Alive:
    """A tensor that is alive at a moment: its name, the tensor itself, and why it is."""

    __slots__ = ("name", "tensor", "why")

    def __init__(self, name: str, tensor: "Tensor | Gradient", why: str):
        self.name = name
        self.tensor = tensor
        self.why = why


class Tape:
    """Operations in the order in which the forward pass runs them. recomputed: backward goes through what a checkpoint's second forward
    pass has saved; of what escapes checkpointing, only what the first pass left is there. reentrant: backward is called with the gradient of
    the output, which it holds to its end (torch 2.13.0, utils/checkpoint.py, CheckpointFunction.backward, args).

    Source: torch 2.13.0, utils/checkpoint.py, _checkpoint_without_reentrant_generator: the second graph is dropped, tensors handed
    to its hooks are kept.
    """

    def __init__(self, *, recomputed: bool = False, reentrant: bool = False):
        self.operations: list[Operation] = []
        self.recomputed = recomputed
        self.reentrant = reentrant

    def add(self, name, inputs, output, **details) -> Tensor:
        """Write down an operation with one output and return that."""
        self.operations.append(Operation(name, inputs, (output,), **details))
        return output

    def add_views(self, name, whole: Tensor, parts: tuple[Tensor, ...]) -> None:
        """Write down parts of one tensor, whose gradients come together again."""
        self.operations.append(Operation(name, (whole,), parts, view=True))

    def saved(self, *, input_gradient: bool = True) -> Amount:
        """Everything the forward pass leaves behind for the backward pass."""
        total = [*NOTHING]
        for tensor in self.saved_tensors(input_gradient=input_gradient):
            total[tensor.growth] += tensor.bytes
        return tuple(total)

    def saved_tensors(self, *, input_gradient: bool = True) -> list[Tensor]:
        """The same, tensor by tensor. Where the input needs no gradient (`input_gradient` false), an operation saves
        nothing until a trained weight has come in, and that operation no copy of its weight."""
        needing: set[Tensor] = set()
        found: dict[Tensor, None] = {}
        for operation in self.operations:
            if input_gradient or operation.gradient or not needing.isdisjoint(operation.inputs):
                alone = not input_gradient and needing.isdisjoint(operation.inputs)
                needing.update(operation.outputs)
                found.update(dict.fromkeys(tensor.base or tensor for tensor in operation.saves if not (alone and tensor.cached)))
        return [tensor for tensor in found if not tensor.external]

    def unsaved_copies(self) -> int:
        """Bytes of the weights' copies that are not saved where the input needs no gradient. Source: torch 2.13.0, derivatives.yaml, mm."""
        kept = self.saved_tensors(input_gradient=False)
        trained = [tensor for operation in self.operations if operation.gradient for tensor in operation.saves if tensor.cached]
        return sum(tensor.bytes for tensor in dict.fromkeys(trained) if tensor not in kept)

    def escaped(self) -> Amount:
        """What stays of a checkpointed layer's first forward pass besides its input."""
        total = [*NOTHING]
        for tensor in {tensor.base or tensor for operation in self.operations if operation.escapes for tensor in operation.saves}:
            total[tensor.growth] += tensor.bytes
        return tuple(total)

    def gradient_bytes(self) -> int:
        """Bytes of weight gradients that the backward pass makes."""
        return sum(operation.gradient for operation in self.operations)

    def forward(self, *, keeps: bool, caches: bool = False) -> list[Amount]:
        """The moments of the forward pass; `keeps` what backward needs, as it does unless the layer is checkpointed; `caches` the copies of
        weights that autocast keeps."""
        return self._run(keeps, None, caches=caches)

    def forward_alone(self, *, copies: bool) -> list[Amount]:
        """The moments of a forward pass without a backward pass. What an operation makes beside its output is there while it
        runs; `copies`: 16-bit copies of weights among it, unless somebody else accounts for them."""
        amounts = self._run(False, None)
        beside = ([(t.growth, t.bytes) for t in self._made_beside(operation, copies)] for operation in self.operations)
        return [_with(list(amount), scratch) for amount, scratch in zip(amounts, beside, strict=True)]

    def alive_alone(self, index: int, *, copies: bool) -> list["Alive"]:
        """Everything alive at the moment with this index of `forward_alone`."""
        beside = self._made_beside(self.operations[index], copies)
        return [*self.alive_forward(index, keeps=False), *(Alive(tensor.name, tensor, IN_USE) for tensor in beside)]

    def _made_beside(self, operation: Operation, copies: bool) -> list[Tensor]:
        passed_on = {tensor for each in self.operations for tensor in each.inputs + each.outputs}
        return [tensor for tensor in operation.saves if tensor not in passed_on and (copies or tensor.growth != FIXED)]

    def recomputation(self) -> list[Amount]:
        """The moments of the forward pass when a checkpointed layer runs again: it ends where the last tensor is saved,
        before the operation that saves it has run, but after a copy of its weight was made.

        Source: torch 2.13.0, utils/checkpoint.py, early stop of the non-reentrant form.
        """
        operations = enumerate(self.operations)
        last = max(index for index, operation in operations if (operation.saves or operation.forward_scratch) and operation.asks)
        moments, operation = self._run(True, None), self.operations[last]
        if all(tensor.growth != FIXED for tensor in operation.saves):
            return moments[:last]
        output = operation.outputs[0]
        return [*moments[:last], _with(moments[last], ((output.growth, -output.bytes),))]

    def before_recomputation(self) -> Amount:
        """The gradients that wait beside that of the output while a checkpointed layer runs again: it does when the first operation goes
        backward that has saved anything, be it a weight, so those after it have by then; also one that escapes checkpointing."""
        output = Gradient(self.operations[-1].outputs[0])
        waiting = dict.fromkeys(self.operations[-1].outputs, output)
        for operation in reversed(self.operations):
            if operation.asks:
                break
            came = [waiting.pop(tensor) for tensor in operation.outputs if tensor in waiting]
            for tensor in operation.inputs if came else ():
                same = operation.shares and tensor.itemsize == operation.outputs[0].itemsize
                waiting[tensor] = came[0] if same else Gradient(tensor)
            if operation.escapes:
                break
        total = [*NOTHING]
        for gradient in {id(each): each for each in waiting.values() if each is not output}.values():
            total[gradient.growth] += gradient.bytes
        return tuple(total)

    def backward(self) -> list[tuple[Amount, int]]:
        """The moments of the backward pass, from the gradient of the last output on.

        Each with the bytes of weight gradients made so far, which stay. Where earlier gradients are there already, new
        ones are added to them in place, and these bytes are not there.
        """
        return self._walk(None)

    def alive_forward(self, index: int, *, keeps: bool, caches: bool = False) -> list["Alive"]:
        """Everything alive at the moment with this index of `forward`."""
        live: list[Alive] = []
        self._run(keeps, (index, live), caches=caches)
        return live

    def alive_backward(self, index: int, *, accumulating: bool = False, waits: int = 0) -> list["Alive"]:
        """Everything alive at the moment with this index of `backward`; `accumulating` where earlier gradients are there, which all but
        the first `waits` bytes of new ones are added to."""
        live: list[Alive] = []
        self._walk((index, live, waits if accumulating else None))
        return live

    def _run(self, keeps, wanted, *, caches=False):
        waiting = self._uses()
        kept = self._saved_counts() if keeps else {}
        passed_on = {tensor for operation in self.operations for tensor in operation.inputs + operation.outputs}
        total, moments = [*NOTHING], []
        live: dict[Tensor, None] = {}
        first = self.operations[0].inputs[0]
        if not first.external:
            total[first.growth] += first.bytes
            live[first] = None
        for operation in self.operations:
            made = () if operation.view else operation.outputs
            if keeps or caches:
                made += tuple(tensor for tensor in operation.saves if tensor not in passed_on and (keeps or tensor.cached))
            for tensor in made:
                total[tensor.growth] += tensor.bytes
                live[tensor] = None
            moments.append(_with(total, operation.forward_scratch))
            if wanted and len(moments) - 1 == wanted[0]:
                wanted[1].extend(Alive(t.name, t, SAVED if t in kept else IN_USE) for t in live)
                wanted[1].extend(_scratch(operation.forward_scratch, operation.name))
                return moments
            for tensor in operation.inputs + operation.reads:
                owner = tensor.base or tensor
                waiting[owner] -= 1
                if not waiting[owner] and owner in live and owner not in kept and not owner.held:
                    total[owner.growth] -= owner.bytes
                    del live[owner]
        return moments

    def _uses(self) -> dict[Tensor, int]:
        """How often each tensor is still needed in the forward pass."""
        uses: dict[Tensor, int] = {}
        for operation in self.operations:
            for tensor in operation.inputs + operation.reads:
                owner = tensor.base or tensor
                uses[owner] = uses.get(owner, 0) + 1
        return uses

    def _saved_counts(self, *, again: bool = False) -> dict[Tensor, int]:
        """How often each tensor is saved; `again`: by a second forward pass."""
        counts: dict[Tensor, int] = {}
        for operation in self.operations:
            if again and operation.escapes:
                continue
            for tensor in operation.saves:
                owner = tensor.base or tensor
                if not owner.external:
                    counts[owner] = counts.get(owner, 0) + 1
        return counts

    def _walk(self, wanted):
        again, saved, total = self._saved_counts(again=self.recomputed), {}, [*NOTHING]
        last = next(operation.outputs[0] for operation in reversed(self.operations) if operation.outputs)
        given = Gradient(last)
        given.uses += self.reentrant
        waiting = {last: given}
        total[last.growth] += last.bytes
        moments, kept = [], 0
        for operation in reversed(self.operations):
            if again and (operation.asks or not self.recomputed):
                saved, again = again, {}
                for tensor in saved:
                    total[tensor.growth] += tensor.bytes
            if operation.hands_over:
                _forget(operation, saved, total)
            came = [waiting.pop(output) for output in operation.outputs if output in waiting]
            made = []
            for tensor in operation.inputs:
                if operation.shares and tensor.itemsize == operation.outputs[0].itemsize:
                    came[0].uses += 1
                    made.append((tensor, came[0]))
                else:
                    made.append((tensor, Gradient(tensor, viewed=operation.viewed)))
                    total[tensor.growth] += tensor.bytes
            scratch = operation.scratch
            if operation.gradient:
                later = operation.converts or (self.recomputed and operation.name in SUMMED)
                scratch = (*scratch, (FIXED, operation.gradient_scratch + (0 if later else operation.gradient)))
            moments.append((_with(total, scratch), kept))
            if wanted and len(moments) - 1 == wanted[0]:
                gradients = [*([given] if self.reentrant else []), *came, *waiting.values(), *(gradient for _, gradient in made)]
                _list_alive(wanted[1], saved, gradients, scratch, kept if wanted[2] is None else min(kept, wanted[2]), operation.name)
                return moments
            for gradient in came:
                _release(gradient, total)
            if not operation.hands_over and not (self.recomputed and operation.escapes):
                _forget(operation, saved, total)
            if operation.converts:
                converting = ((FIXED, operation.gradient + operation.gradient_scratch),)
                moments.append((_with(total, converting), kept))
                if wanted and len(moments) - 1 == wanted[0]:
                    gradients = [*([given] if self.reentrant else []), *waiting.values(), *(gradient for _, gradient in made)]
                    _list_alive(wanted[1], saved, gradients, converting, kept if wanted[2] is None else min(kept, wanted[2]), operation.name)
                    return moments
            if operation.gradient:
                total[FIXED] += operation.gradient
                kept += operation.gradient
            for tensor, gradient in made:
                before = waiting.get(tensor)
                if before is None:
                    waiting[tensor] = gradient
                elif before.uses == 1 and not before.viewed:
                    _release(gradient, total)
                else:
                    added = Gradient(tensor)
                    total[added.growth] += added.bytes
                    _release(before, total)
                    _release(gradient, total)
                    waiting[tensor] = added
        return moments


def _forget(operation: Operation, saved: dict[Tensor, int], total: list[int]) -> None:
    """An operation's saved tensors go, those that no other operation still needs."""
    for tensor in operation.saves:
        owner = tensor.base or tensor
        if owner in saved:
            saved[owner] -= 1
            if not saved[owner]:
                del saved[owner]
                total[owner.growth] -= owner.bytes


def _release(gradient: Gradient, total: list[int]) -> None:
    gradient.uses -= 1
    if not gradient.uses:
        total[gradient.growth] -= gradient.bytes


def _with(total: list[int], scratch: Iterable[tuple[int, int]]) -> Amount:
    if not scratch:
        return tuple(total)
    more = list(total)
    for growth, size in scratch:
        more[growth] += size
    return tuple(more)


def _scratch(scratch, name: str) -> list["Alive"]:
    return [Alive(f"workspace of {name}", Tensor(name, size, 1, growth), WORKSPACE) for growth, size in scratch]


def _list_alive(live, saved, gradients, scratch, kept, name) -> None:
    live.extend(Alive(tensor.name, tensor, SAVED) for tensor in saved)
    seen = set()
    for gradient in gradients:
        if id(gradient) not in seen:
            seen.add(id(gradient))
            live.append(Alive(f"gradient of {gradient.name}", gradient, "a gradient on its way"))
    live.extend(_scratch(scratch, name))
    if kept:
        live.append(Alive("weight gradients of this layer", Tensor(name, kept, 1, FIXED), "kept until the optimizer step"))
