"""A gated delta net in place of attention, on a tape. Source: transformers 5.24.0, models/qwen3_5/modeling_qwen3_5.py,
Qwen3_5GatedDeltaNet.forward and torch_chunk_gated_delta_rule (what runs where the package fla is not installed).

The rule goes through a row chunk by chunk, and rows are filled up to whole chunks: what is in chunks grows with their number.
"""

from vramplan.accountings.step.operations import cast, multiply, projection, scale
from vramplan.accountings.step.short_convolution import depthwise_convolution
from vramplan.accountings.step.structure import DELTA_MAPS, HALF, SINGLE, Structure
from vramplan.accountings.step.tape import CHUNKS, LATER_CHUNKS, TOKENS, Tape, Tensor

CHUNK = 64
"""Tokens of a chunk. Source: transformers 5.24.0, models/qwen3_5/modeling_qwen3_5.py, torch_chunk_gated_delta_rule, chunk_size."""

KEY_INPUTS = 3
"""Inputs of a chunk that are as wide as its keys: decayed queries, decayed keys, keys that read the state. Source: as above, second phase."""

WRITTEN = 3
"""float32 tensors as wide as a chunk's values while its write goes backward: the part that was written, zeros in its place, and the gradient
of its new values, which waits. Source: torch 2.13.0, csrc/autograd/functions/tensor.cpp, CopySlices::apply_impl."""


def delta_net(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    """Maps to queries, keys and values together, to a gate, and to a rate and a decay of each head; a convolution; the rule; a norm
    under the gate; a map back."""
    shape = run.shape
    mixed, gate, rates, decays = (projection(tape, run, x, (name,)) for name in DELTA_MAPS)
    whole = depthwise_convolution(tape, run, mixed, copied=True, activated=True)
    widths = {"queries": shape.mixer_key_width, "keys": shape.mixer_key_width, "values": shape.mixer_value_width}
    parts = tuple(Tensor(name, width, whole.itemsize, base=whole) for name, width in widths.items())
    tape.add_views("split", whole, parts)
    rate = Tensor("rates", rates.width, rates.itemsize)
    tape.add("sigmoid", (rates,), rate, saves=(rate,))
    decay = _decay(tape, decays)
    ruled = chunked_rule(tape, run, *parts, rate, decay)
    output = projection(tape, run, gated_norm(tape, run, ruled, gate), ("out",))
    tape.operations[-1].reads += (x, whole, gate, rates, decays, rate, decay)
    return output


def _decay(tape: Tape, decays: Tensor) -> Tensor:
    """How fast each head forgets, in float32: the softplus of a map and a bias, times a number of the head."""
    moved = tape.add("add", (cast(tape, decays, SINGLE, "decays in float32"),), Tensor("decays with bias", decays.width, SINGLE))
    soft = tape.add("softplus", (moved,), Tensor("softplus of decays", decays.width, SINGLE), saves=(moved,))
    return tape.add("product", (soft,), Tensor("log decays", decays.width, SINGLE), saves=(soft,))


def chunked_rule(tape: Tape, run: Structure, queries: Tensor, keys: Tensor, values: Tensor, rate: Tensor, decay: Tensor) -> Tensor:
    """The gated delta rule, in float32 but for products of matrices under autocast."""
    repeated = [_repeated(tape, run, each) for each in (queries, keys)]
    query, key, value, rate = (tape.add("float32", (x,), Tensor(f"{x.name} in float32", x.width, SINGLE)) for x in (*repeated, values, rate))
    tape.operations[-1].reads += tuple(repeated)
    query, key = _unit_length(tape, run, query), _unit_length(tape, run, key)
    inside = (scale(tape, query, "scaled queries"), key, value)
    query, key, value = (tape.add("pad", (x,), Tensor(f"{x.name}, filled up", CHUNK * x.width, SINGLE, CHUNKS)) for x in inside)
    tape.operations[-1].reads += inside
    rated_values, rated_keys = _times(tape, value, rate, "values times rate"), _times(tape, key, rate, "keys times rate")
    rated_keys, rated_values = (tape.add("chunks", (x,), Tensor(x.name, x.width, SINGLE, CHUNKS, base=x), view=True) for x in (rated_keys, rated_values))
    pairwise = _pairwise_decay(tape, run, decay)
    system = multiply(tape, run, _scores(tape, run, rated_keys, key), pairwise, "triangular system")
    inner = multiply(tape, run, _scores(tape, run, query, key), pairwise, "attention inside a chunk")
    decayed = _times(tape, rated_keys, _exponential(tape, decay), "decayed keys")
    news, reads = _solved(tape, system, rated_values, "new values"), _solved(tape, system, decayed, "keys that read the state")
    late_query = _times(tape, query, _exponential(tape, decay), "decayed queries")
    late_key = _times(tape, key, _exponential(tape, decay), "keys, decayed to the end of a chunk")
    core = _scan(tape, run, (inner, late_query, late_key, reads, news))
    core = tape.add("contiguous", (core,), Tensor("what the rule gives, in order", core.width, SINGLE, CHUNKS), shares=True)
    given = tape.add("cut off", (core,), Tensor("what the rule gives", values.width, values.itemsize))
    tape.operations[-1].reads += (rated_values, system, inner, decayed, news, reads, late_query, late_key)
    return given


def _repeated(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    """Queries or keys of as many heads as the values have."""
    heads = run.shape.mixer_value_heads
    if heads == run.shape.mixer_key_heads:
        return x
    return tape.add("repeat", (x,), Tensor(f"repeated {x.name}", heads * run.shape.mixer_key_dim, x.itemsize))


def _unit_length(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    """Every head of x by its length. Source: models/qwen3_5/modeling_qwen3_5.py, l2norm."""
    full = ((TOKENS, x.bytes),)
    square = tape.add("square", (x,), Tensor(f"{x.name}: square", x.width, SINGLE), saves=(x,), scratch=full)
    inverse = Tensor(f"{x.name}: inverse length", run.shape.mixer_value_heads, SINGLE)
    tape.add("length", (square,), inverse, saves=(inverse,))
    return tape.add("norm", (x, inverse), Tensor(f"{x.name}, of unit length", x.width, SINGLE), saves=(x, inverse), scratch=full)


def _times(tape: Tape, x: Tensor, factor: Tensor, name: str) -> Tensor:
    """x times a number of each head. Its backward makes a product of x's size before it adds that up. Source: torch 2.13.0, MulBackward0."""
    return tape.add("product", (x, factor), Tensor(name, x.width, SINGLE, x.growth), saves=(x, factor), scratch=((x.growth, x.bytes),))


def _exponential(tape: Tape, x: Tensor) -> Tensor:
    factor = Tensor("decay", x.width, SINGLE)
    return tape.add("exp", (x,), factor, saves=(factor,))


def _pairwise_decay(tape: Tape, run: Structure, decay: Tensor) -> Tensor:
    """How much each token of a chunk has decayed for each later one."""
    width = _pairs(run)
    differences = tape.add("difference", (decay,), Tensor("differences of decays", width, SINGLE, CHUNKS), scratch=((CHUNKS, SINGLE * width),))
    masked = tape.add("mask", (differences,), Tensor("masked differences", width, SINGLE, CHUNKS))
    pairwise = Tensor("decay of every pair in a chunk", width, SINGLE, CHUNKS)
    return tape.add("exp", (masked,), pairwise, saves=(pairwise,))


def _scores(tape: Tape, run: Structure, a: Tensor, key: Tensor) -> Tensor:
    """Products of every pair of tokens in a chunk."""
    size = HALF if run.autocast else SINGLE
    key = cast(tape, key, size, f"16-bit {key.name}")
    a = cast(tape, a, size, f"16-bit {a.name}")
    return tape.add("scores", (a, key), Tensor("products in a chunk", _pairs(run), size, CHUNKS), saves=(a, key))


def _pairs(run: Structure) -> int:
    """Pairs of tokens of a chunk, for every head."""
    return CHUNK * CHUNK * run.shape.mixer_value_heads


def _solved(tape: Tape, system: Tensor, x: Tensor, name: str) -> Tensor:
    """What solves a triangular system for every chunk. Source: torch 2.13.0, csrc/autograd/FunctionsManual.cpp,
    linalg_solve_triangular_backward: the gradient of the system is a product, its negative, and the lower half of that."""
    output = Tensor(name, x.width, SINGLE, CHUNKS)
    return tape.add("solve", (system, x), output, saves=(system, output), scratch=((CHUNKS, system.bytes),))


def _scan(tape: Tape, run: Structure, given: tuple[Tensor, ...]) -> Tensor:
    """Chunk after chunk reads a state, the output takes its part, and the state moves on: as one operation.

    In 16 bits every chunk keeps two copies of the state, one of what it takes of each input but the last, and of its new values; in float32
    the state and the new values alone. The first chunk's reading needs no gradient of the state, the last state is never read.
    The highest point of the backward pass is where the second last chunk begins: the gradients of all inputs are there, each as large
    as the input, and a second one of the output.
    Source: torch 2.13.0, BmmBackward0, select_backward; csrc/autograd/functions/tensor.cpp, CopySlices: a copy for every write.
    """
    shape = run.shape
    state = shape.mixer_value_heads * shape.mixer_key_dim * shape.mixer_value_dim
    keys = CHUNK * shape.mixer_value_heads * shape.mixer_key_dim
    values, pairs = CHUNK * shape.mixer_value_width, _pairs(run)
    if run.autocast:
        kept = (
            Tensor("16-bit copies of states, values and products of all chunks", 2 * state + values + pairs, HALF, CHUNKS),
            Tensor("16-bit copies of queries, keys and values of later chunks", KEY_INPUTS * keys + values, HALF, LATER_CHUNKS),
            Tensor("states of later chunks", state, SINGLE, LATER_CHUNKS),
        )
    else:
        kept = (*given, Tensor("states and new values of all chunks", state + values, SINGLE, CHUNKS))
    core = Tensor("what the chunks give", values, SINGLE, CHUNKS)
    begun = SINGLE * (state + WRITTEN * values) + (HALF * values if run.autocast else 0)
    if run.one_chunk:
        scratch = ((CHUNKS, core.bytes + begun),)
    else:
        released = sum(tensor.bytes for tensor in kept if tensor not in given)
        scratch = ((CHUNKS, core.bytes + begun - released), (LATER_CHUNKS, released - begun))
    return tape.add("scan", given, core, saves=kept, scratch=scratch)


def gated_norm(tape: Tape, run: Structure, x: Tensor, gate: Tensor) -> Tensor:
    """An RMSNorm of every head, times a gate in float32. Source: models/qwen3_5/modeling_qwen3_5.py, Qwen3_5RMSNormGated.forward."""
    full = ((TOKENS, SINGLE * x.width),)
    x32 = cast(tape, x, SINGLE, "what the rule gives, in float32")
    square = tape.add("norm square", (x32,), Tensor("norm under a gate: square", x.width, SINGLE), saves=(x32,), scratch=full * 2)
    inverse = Tensor("norm under a gate: inverse root mean square", run.shape.mixer_value_heads, SINGLE)
    tape.add("norm mean", (square,), inverse, saves=(inverse,))
    normed = tape.add("norm", (x32, inverse), Tensor("norm under a gate: normalised", x.width, SINGLE), saves=(x32, inverse), scratch=full)
    normed = cast(tape, normed, x.itemsize, "norm under a gate: normalised")
    weighted = Tensor("norm under a gate: weighted", x.width, max(x.itemsize, run.norm_size))
    trained = run.trains_base
    tape.add("norm weight", (normed,), weighted, saves=(normed,) if trained else (), scratch=((TOKENS, weighted.bytes),) if trained else ())
    gate = cast(tape, gate, SINGLE, "gate in float32")
    opened = tape.add("activation", (gate,), Tensor("open gate", gate.width, SINGLE), saves=(gate,))
    product = multiply(tape, run, weighted, opened, "normalised and gated")
    return cast(tape, product, x.itemsize, "normalised and gated")
