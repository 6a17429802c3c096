"""A small eager framework in which tensors have bytes but no values: the memory of PyTorch's eager mode and autograd.

A tensor is alive as long as something in Python refers to its storage, as in PyTorch, where tensors die by their reference
counts. So model code is run here, not described: what its variables, its graph and its hooks hold is held, and what they let
go is freed. Sizes are numpy arrays with an entry for each of many batches and dimensions, which all go through the same program.

Belongs here: operations and what their backward keeps, the engine's order and its sums, autocast's copies, checkpoints. Not
here: what a model or a trainer does, and anything of the package under test.

Sources: torch 2.13.0, tools/autograd/derivatives.yaml (what is saved), csrc/autograd/engine.cpp (order, release, validate_outputs),
csrc/autograd/input_buffer.cpp (sums), csrc/autograd/functions/accumulate_grad.h, ATen/autocast_mode.cpp (cached_cast),
utils/checkpoint.py (_checkpoint_without_reentrant_generator, CheckpointFunction).
Not followed: one number per row that nothing saves, index tensors, scalars, the allocator's rounding.
"""

from contextlib import contextmanager
import heapq
import math
import sys

import numpy as np

HALF, SINGLE = 2, 4


class Memory:
    """Bytes in use now and the most there have been, and the most within each named moment."""

    def __init__(self, entries):
        self.now = np.zeros(entries, np.int64)
        self.most = np.zeros(entries, np.int64)
        self.moments = {}
        self.within("load")

    def within(self, moment):
        """Everything from here on belongs to this moment."""
        self.moment = self.moments.setdefault(moment, np.zeros_like(self.now))
        np.maximum(self.moment, self.now, out=self.moment)

    def take(self, size):
        self.now += size
        np.maximum(self.moment, self.now, out=self.moment)

    def peak(self):
        return np.maximum.reduce(list(self.moments.values()))


class Storage:
    """Bytes that are taken as long as this object lives."""

    __slots__ = ("memory", "size")

    def __init__(self, memory, size):
        self.memory, self.size = memory, size
        memory.take(size)

    def __del__(self):
        self.memory.now -= self.size


class Tensor:
    """values of `itemsize` bytes; node: the operation in the graph that made it, or that takes its gradient, if it needs one."""

    __slots__ = ("is_view", "itemsize", "node", "storage", "values")

    def __init__(self, storage, values, itemsize, node=None, is_view=False):
        self.storage, self.values, self.itemsize, self.node, self.is_view = storage, values, itemsize, node, is_view


def _references():
    """What sys.getrefcount says of a local variable's object that nobody else has, and of what stands in a slot of it."""
    alone = Tensor(object(), 0, 0)
    return sys.getrefcount(alone), sys.getrefcount(alone.storage)


UNSHARED, UNSHARED_STORAGE = _references()


class Parameter:
    """A weight (out, in), or a vector (out), whose bytes are taken from the start. node: where its gradient is kept, if it is trained."""

    __slots__ = ("columns", "itemsize", "node", "rows", "values")

    def __init__(self, rows, columns, itemsize, trained):
        self.rows, self.columns, self.itemsize = rows, columns, itemsize
        self.values = rows * columns
        self.node = Accumulate(self) if trained else None


class Node:
    """One operation in the graph. edges: (node, values, itemsize) of each input, or None where it needs no gradient; kept: what the
    operation saved; run(gradient, kept): a list with the gradient of every input, as the kernels give them."""

    __slots__ = ("edges", "kept", "order", "run")

    def __init__(self, order, inputs, run):
        self.order, self.run, self.kept = order, run, []
        self.edges = [(each.node, each.values, each.itemsize) if each is not None and each.node else None for each in inputs]


class Accumulate:
    """Where the gradient of a leaf is kept. It takes the first one as it is, if nobody else has it, and adds others to it in place."""

    __slots__ = ("edges", "gradient", "order", "parameter")

    def __init__(self, parameter):
        self.parameter, self.gradient, self.edges, self.order = parameter, None, (), math.inf


class Held:
    """A place for a saved tensor that a checkpointed function will have to make again."""

    __slots__ = ("frame", "number")

    def __init__(self, frame, number):
        self.frame, self.number = frame, number


class Frame:
    """One call of a checkpointed function: what it was called with, how many tensors it saved, and those once they are there again."""

    __slots__ = ("again", "argument", "autocast", "count", "function")

    def __init__(self, function, argument, autocast):
        self.function, self.argument, self.autocast, self.count, self.again = function, argument, autocast, 0, None


class EnoughRecomputedError(Exception):
    """The last saved tensor is there again: nothing of the second forward pass is needed any more."""


def call(module, *arguments):
    """Call a module as torch does: its arguments are held until it returns. Source: torch 2.13.0, nn/modules/module.py, _call_impl."""
    return module(*arguments)


class Machine:
    """Operations on tensors, and the state of the process: gradients on or off, autocast and its copies, hooks on what is saved."""

    def __init__(self, entries):
        self.memory = Memory(entries)
        self.order = 0
        self.autocast = False
        self.copies = {}
        self.hook = None
        self.records = True

    # Tensors and the graph.

    def new(self, values, itemsize, *, is_view=False):
        return Tensor(Storage(self.memory, values * itemsize), values, itemsize, None, is_view)

    def node(self, run, *inputs):
        """A node for an operation on these inputs, or None where none of them needs a gradient."""
        if not self.records or all(each is None or each.node is None for each in inputs):
            return None
        self.order += 1
        return Node(self.order, inputs, run)

    def save(self, node, *tensors):
        """Keep tensors for the backward pass, or what a hook gives in their place. A parameter is kept as such."""
        if node:
            for each in tensors:
                kept = Tensor(each.storage, each.values, each.itemsize) if isinstance(each, Tensor) else None
                node.kept.append(self.hook(kept) if self.hook else kept)

    def result(self, node, values, itemsize):
        made = self.new(values, itemsize)
        made.node = node
        return made

    # Operations.

    def to(self, x, itemsize):
        """x in another type, or x itself."""
        return x if x.itemsize == itemsize else self.cast(x, itemsize)

    def cast(self, x, itemsize):
        """A tensor or a parameter in another type; its backward only needs the type it had."""
        values, before = x.values, x.itemsize
        return self.result(self.node(lambda came, kept: [self.new(values, before)], x), values, itemsize)

    def weight_as(self, weight, itemsize):
        """A parameter for a product under autocast: a copy in 16 bits, which is kept for a leaf that needs a gradient."""
        if weight.itemsize == itemsize:
            return weight
        if weight in self.copies:
            return self.copies[weight]
        copy = self.cast(weight, itemsize)
        if weight.node:
            self.copies[weight] = copy
        return copy

    def add(self, a, b):
        """a + b: both get the very gradient that comes in, in their type."""
        return self.result(self.node(lambda came, kept: [came, came], a, b), a.values, max(a.itemsize, b.itemsize))

    def scale(self, x):
        """x times a number."""
        values, itemsize = x.values, x.itemsize
        return self.result(self.node(lambda came, kept: [self.new(values, itemsize)], x), values, itemsize)

    def multiply(self, a, b):
        """a * b of one shape."""
        values, size, for_a, for_b = a.values, max(a.itemsize, b.itemsize), a.node, b.node

        def run(came, kept):
            return [self.new(values, size) if for_a else None, self.new(values, size) if for_b else None]

        node = self.node(run, a, b)
        self.save(node, *((b,) if for_a else ()), *((a,) if for_b else ()))
        return self.result(node, values, size)

    def multiply_rows(self, x, factors):
        """x times one number per row, which needs a gradient too: made in full, then summed."""
        values, size = x.values, x.itemsize
        node = self.node(lambda came, kept: [self.new(values, size), self.new(values, size)], x, factors)
        self.save(node, x, factors)
        return self.result(node, values, size)

    def multiply_weight(self, weight, x):
        """x times a vector: the gradient of that is made in full, then summed."""
        values, size, trained, needs = x.values, max(x.itemsize, weight.itemsize), weight.node, x.node
        node = self.node(lambda came, kept: [self.new(values, size) if trained else None, self.new(values, size) if needs else None], weight, x)
        self.save(node, *((x,) if trained else ()), *((weight,) if needs else ()))
        return self.result(node, values, size)

    def square(self, x):
        """x ** 2: backward makes x ** 1, that times two, and the product."""
        values, size = x.values, x.itemsize

        def run(came, kept):
            power = self.new(values, size)
            double = self.new(values, size)
            made = self.new(values, size)
            del power, double
            return [made]

        node = self.node(run, x)
        self.save(node, x)
        return self.result(node, values, size)

    def inverse_root_of_mean(self, x, rows):
        """One number per row out of x; the root's output is kept."""
        values, size = x.values, x.itemsize
        node = self.node(lambda came, kept: [self.new(values, size)], x)
        made = self.result(node, rows, size)
        self.save(node, made)
        return made

    def activate(self, x):
        """SiLU or GELU in one kernel, backward too."""
        values, size = x.values, x.itemsize
        node = self.node(lambda came, kept: [self.new(values, size)], x)
        self.save(node, x)
        return self.result(node, values, size)

    def dropout(self, x):
        """A mask of one byte per value is kept."""
        values, size = x.values, x.itemsize
        node = self.node(lambda came, kept: [self.new(values, size)], x)
        made, mask = self.result(node, values, size), self.new(values, 1)
        self.save(node, mask)
        return made

    def rotate_half(self, x):
        """torch.cat((-x2, x1)): the second half is negated first. Backward fills a tensor of zeros for every half."""
        values, size = x.values, x.itemsize
        node = self.node(self._halves_back(values, size), x)
        negated = self.new(values // 2, size)
        made = self.result(node, values, size)
        del negated
        return made

    def _halves_back(self, values, size):
        def run(came, kept):
            negated = self.new(values // 2, size)
            of_second = self.new(values, size)
            del negated
            of_first = self.new(values, size)  # added to the other one in place
            del of_first
            return [of_second]

        return run

    def times_table(self, x, itemsize):
        """x times cosines or sines, a table without a gradient. Its itemsize is that of the table."""
        values, size = x.values, max(x.itemsize, itemsize)
        node = self.node(lambda came, kept: [self.new(values, size)], x)
        self.save(node, None)
        return self.result(node, values, size)

    def linear(self, x, weight, tokens, bias=None):
        """x (tokens, in) times a weight (out, in), both in 16 bits under autocast. The gradient of x comes out as another view."""
        if self.autocast:
            x, weight_now = self.to(x, HALF), self.weight_as(weight, HALF)
        else:
            weight_now = weight
        into, out, size = tokens * weight.columns, tokens * weight.rows, x.itemsize
        matrix, needs, trained = weight.values, x.node, weight_now.node

        def run(came, kept):
            of_weight = self.new(matrix, size, is_view=True) if trained else None
            return [self.new(into, size, is_view=True) if needs else None, of_weight, *([self.new(bias.values, size)] if bias and bias.node else [])]

        node = self.node(run, x, weight_now, *((bias,) if bias and bias.node else ()))
        self.save(node, *((x,) if trained else ()), *((weight_now,) if needs else ()))
        return self.result(node, out, size)

    def products(self, a, b, values):
        """A batch of matrix products, both operands with a gradient; a and b are in one type."""
        of_a, of_b, size = a.values, b.values, a.itemsize
        node = self.node(lambda came, kept: [self.new(of_a, size), self.new(of_b, size)], a, b)
        self.save(node, a, b)
        return self.result(node, values, size)

    def softmax(self, x):
        """In float32; its backward holds the product of output and gradient in the kernel."""
        values = x.values

        def run(came, kept):
            product = self.new(values, SINGLE)
            made = self.new(values, SINGLE)
            del product
            return [made]

        node = self.node(run, x)
        made = self.result(node, values, SINGLE)
        self.save(node, made)
        return made

    def copy(self, x):
        """x in another order; the gradient is the one that comes in, put back."""
        return self.result(self.node(lambda came, kept: [came], x), x.values, x.itemsize)

    def repeat(self, x, values):
        """Heads copied to as many as there are others; backward sums them."""
        before, size = x.values, x.itemsize
        return self.result(self.node(lambda came, kept: [self.new(before, size)], x), values, size)

    def expand(self, x, values):
        """A view that shows a head several times; backward sums."""
        before, size = x.values, x.itemsize
        node = self.node(lambda came, kept: [self.new(before, size)], x)
        return Tensor(x.storage, values, size, node)

    def slice(self, x):
        """A part of x, counted as large as x: a view. Backward fills a tensor of zeros."""
        values, size = x.values, x.itemsize
        node = self.node(lambda came, kept: [self.new(values, size)], x)
        return Tensor(x.storage, values, size, node)

    def contiguous(self, x, copies):
        """x in one piece: a copy where it is not in one (`copies`, for each entry)."""
        made = Tensor(Storage(self.memory, np.where(copies, x.values * x.itemsize, 0)), x.values, x.itemsize)
        made.node = self.node(lambda came, kept: [came], x)
        return made

    def attention(self, query, key, value, *, sums, workspace):
        """Attention in one kernel: sums float32 numbers are kept, backward holds a workspace (bytes) beside the gradients."""
        widths, size = (query.values, key.values, value.values), query.itemsize

        def run(came, kept):
            made = [self.new(values, size) for values in widths]
            room = self.new(workspace, 1)
            del room
            return made

        node = self.node(run, query, key, value)
        self.save(node, query, key, value)
        output, logsumexp = self.result(node, query.values, size), self.new(sums, SINGLE)
        self.save(node, output, logsumexp)
        return output

    def log_softmax(self, x):
        values, size = x.values, x.itemsize
        node = self.node(lambda came, kept: [self.new(values, size)], x)
        made = self.result(node, values, size)
        self.save(node, made)
        return made

    def nll(self, x):
        """The mean or sum of one value per row; its gradient is one of zeros but for those."""
        values, size = x.values, x.itemsize
        node = self.node(lambda came, kept: [self.new(values, size)], x)
        self.save(node, x)
        return self.result(node, np.ones_like(values), SINGLE)

    def embedding(self, weight, values, scratch):
        """Rows of a table. scratch: bytes that the kernel of its backward holds beside the gradient of the table."""
        matrix, size = weight.values, weight.itemsize

        def run(came, kept):
            made = self.new(matrix, size)
            room = self.new(scratch, 1)
            del room
            return [made]

        return self.result(self.node(run, weight), values, size)

    def leaf(self, x):
        """x.requires_grad_(True) on a tensor without a graph."""
        x.node = Accumulate(None)
        return x

    # Autocast, checkpoints, backward.

    @contextmanager
    def under_autocast(self, on):
        """torch.autocast: its copies live until the outermost one ends."""
        before = self.autocast
        self.autocast = on
        try:
            yield
        finally:
            self.autocast = before
            if not before:
                self.copies.clear()

    def checkpoint(self, function, argument):
        """torch.utils.checkpoint without reentrance: what is saved waits for a second forward pass, which stops at the last of it."""
        frame, before = Frame(function, argument, self.autocast), self.hook

        def pack(tensor):
            frame.count += 1
            return Held(frame, frame.count)

        self.hook = pack
        try:
            return function(argument)
        finally:
            self.hook = before

    def _run_again(self, frame):
        frame.again = {}

        def pack(tensor):
            number = len(frame.again) + 1
            frame.again[number] = tensor
            if number == frame.count:
                raise EnoughRecomputedError
            return tensor

        before, self.hook, recording, self.records = self.hook, pack, self.records, True
        argument = frame.argument
        try:
            with self.under_autocast(frame.autocast):
                frame.function(self.leaf(Tensor(argument.storage, argument.values, argument.itemsize)))
        except EnoughRecomputedError:
            pass
        finally:
            self.hook, self.records = before, recording

    def _unpack(self, kept):
        """Saved tensors; those of a checkpoint are made again with the first of them, and handed over."""
        found = []
        for each in kept:
            if isinstance(each, Held):
                if each.frame.again is None:
                    self._run_again(each.frame)
                each = each.frame.again.pop(each.number)
            found.append(each)
        return found

    def checkpoint_reentrant(self, function, argument):
        """torch.utils.checkpoint with reentrance: the forward pass without a graph; in backward again, with a graph of its own, through which
        backward goes at once. What it was given and what it makes are variables until then."""
        autocast = self.autocast

        def run(came, kept):
            inner = self.leaf(Tensor(kept[0].storage, kept[0].values, kept[0].itemsize))
            recording, self.records = self.records, True
            with self.under_autocast(autocast):
                output = function(inner)
            self.records = recording
            self.run_graph(output.node, came)
            return [inner.node.gradient]

        node = self.node(run, argument)
        self.save(node, argument)
        recording, self.records = self.records, False
        output = function(argument)
        self.records = recording
        output.node = node
        return output

    def backward(self, loss):
        """Run the graph from a scalar, newest operation first."""
        root, values, itemsize = loss.node, loss.values, loss.itemsize
        del loss
        self.run_graph(root, self.new(values, itemsize))

    def run_graph(self, root, gradient):
        """Give a node its gradient and run everything it leads to, the newest operation first, leaves before all."""
        missing = _dependencies(root)
        waiting, ready, turn = {root: gradient}, [(-root.order, 0, root)], 0
        del gradient
        while ready:
            _, _, node = heapq.heappop(ready)
            made = self._evaluate(node, waiting)
            for index, edge in enumerate(node.edges):
                if edge is None:
                    continue
                gradient, made[index] = made[index], None
                following = edge[0]
                before = waiting.pop(following, None)
                if before is None:
                    waiting[following] = gradient
                elif not before.is_view and sys.getrefcount(before) == UNSHARED and sys.getrefcount(before.storage) == UNSHARED_STORAGE:
                    waiting[following] = before
                else:
                    waiting[following] = self.new(before.values, before.itemsize)
                del gradient, before
                missing[following] -= 1
                if not missing[following]:
                    turn += 1
                    heapq.heappush(ready, (-following.order, turn, following))

    def _evaluate(self, node, waiting):
        """The gradients of a node's inputs, in their shapes and types; what it saved is let go."""
        if isinstance(node, Accumulate):
            node.gradient = node.gradient or waiting.pop(node)
            waiting.pop(node, None)
            return []
        came, kept = waiting.pop(node), self._unpack(node.kept)
        made = node.run(came, kept)
        del kept
        for index, edge in enumerate(node.edges):
            if edge is None:
                made[index] = None
                continue
            _, values, itemsize = edge
            if made[index].values is not values and not np.array_equal(made[index].values, values):
                made[index] = self.new(values, made[index].itemsize)
            if made[index].itemsize != itemsize:
                made[index] = self.new(values, itemsize)
        node.kept = []
        return made


def _dependencies(root):
    """How many gradients each node of a graph waits for."""
    missing, stack, seen = {root: 0}, [root], {root}
    while stack:
        for edge in stack.pop().edges:
            if edge is None:
                continue
            missing[edge[0]] = missing.get(edge[0], 0) + 1
            if edge[0] not in seen:
                seen.add(edge[0])
                stack.append(edge[0])
    return missing
