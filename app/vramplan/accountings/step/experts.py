"""A mixture of experts on a tape: router, tokens copied to their experts, one matrix product per map for all experts together.

Every token goes to k experts, so k copies of it are at work however evenly the router shares them out; what is held does
not depend on that. Source: transformers 5.24.0, integrations/moe.py, grouped_mm_experts_forward, the implementation that
runs on GPUs from Ampere on.
"""

from vramplan.accountings.step.operations import INDEX_SIZE, MASK_SIZE, activate, add, cast, linear, multiply, scale
from vramplan.accountings.step.structure import HALF, SINGLE, Structure
from vramplan.accountings.step.tape import FIXED, TOKENS, Tape, Tensor


def routed_experts(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    """What the experts of a layer make of x together."""
    shape = run.shape
    copies, inner = shape.experts_per_token, shape.expert_intermediate_size
    weights, logits = _weights_of_chosen(tape, run, x) if shape.router in OF_CHOSEN else (_routing_weights(tape, run, x), ())
    places = Tensor("places of the routed tokens", copies, INDEX_SIZE)
    routed = tape.add("route", (x,), Tensor("routed tokens", copies * x.width, x.itemsize), saves=(places,))
    routed = cast(tape, routed, run.embedding_size, "routed tokens for the experts")
    if shape.expert_biases:
        made, biases = _experts_with_biases(tape, run, routed)
        return _weighted_sum(tape, run, made, weights, x, (*logits, routed, biases))
    both = _grouped(tape, run, routed, "gate and up")
    gate, up = (Tensor(f"experts: {name}", copies * inner, both.itemsize, base=both) for name in ("gate", "up"))
    tape.add_views("chunk", both, (gate, up))
    product = multiply(tape, run, activate(tape, run, gate, "experts: activated gate"), up, "experts: gate times up")
    made = _grouped(tape, run, product, "down")
    held = *logits, routed, *(tensor for operation in tape.operations for tensor in operation.outputs if tensor.name.endswith(WITH_ADAPTER))
    return _weighted_sum(tape, run, made, weights, x, held)


def _routing_weights(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    """Weights of the k experts a token goes to: a softmax over all experts in float32, then the largest.

    Source: transformers 5.24.0, models/qwen3_moe/modeling_qwen3_moe.py, Qwen3MoeTopKRouter; models/mixtral, MixtralTopKRouter,
    whose weights stay float32.
    """
    if run.shape.router in IN_FLOAT32:
        return _in_order(tape, run, _weights_in_float32(tape, run, x))
    experts, chosen = run.shape.num_experts, run.shape.experts_per_token
    logits = linear(tape, run, x, (x.width, experts), "router", weight_size=run.embedding_size, trained=run.trains_base)
    size = logits.itemsize
    logits = cast(tape, logits, SINGLE, "router logits in float32")
    probabilities = Tensor("routing probabilities", experts, SINGLE)
    tape.add("softmax", (logits,), probabilities, saves=(probabilities,))
    weights = tape.add("topk", (probabilities,), Tensor("routing weights", chosen, SINGLE), saves=(Tensor("chosen experts", chosen, INDEX_SIZE),))
    divided = Tensor("routing weights, summing to one", chosen, SINGLE)
    tape.add("division", (weights,), divided, saves=(weights, Tensor("sum of the routing weights", 1, SINGLE)))
    return _in_order(tape, run, divided if run.shape.router == "softmax-float32" else cast(tape, divided, size, "routing weights"))


IN_THEIR_TYPE, IN_SINGLE = OF_CHOSEN = "softmax-of-chosen", "softmax-of-chosen-float32"
"""Routers that choose first, with scores in the type of what came in, or in float32."""


def _weights_of_chosen(tape: Tape, run: Structure, x: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Weights of the k experts a token goes to: a softmax over those with the largest scores; and all scores, which a variable keeps.

    Source: transformers 5.24.0, models/gpt_oss/modeling_gpt_oss.py, GptOssTopKRouter, GptOssMLP.forward;
    models/granitemoe/modeling_granitemoe.py, GraniteMoeTopKRouter (in float32, and then in the type that came in).
    """
    experts, chosen = run.shape.num_experts, run.shape.experts_per_token
    logits = linear(tape, run, x, (x.width, experts), "router", weight_size=run.embedding_size, trained=run.trains_base)
    logits = cast(tape, logits, SINGLE, "router logits in float32") if run.shape.router == IN_SINGLE else logits
    indices = Tensor("chosen experts", chosen, INDEX_SIZE)
    largest = tape.add("topk", (logits,), Tensor("scores of the chosen experts", chosen, logits.itemsize), saves=(indices,))
    weights = Tensor("routing weights", chosen, logits.itemsize)
    tape.add("softmax", (largest,), weights, saves=(weights,), scratch=((TOKENS, weights.bytes),))
    weights = cast(tape, weights, x.itemsize, "routing weights as what came in") if run.shape.router == IN_SINGLE else weights
    return _in_order(tape, run, weights), (logits,)


def _experts_with_biases(tape: Tape, run: Structure, routed: Tensor) -> tuple[Tensor, Tensor]:
    """What experts with biases make of the routed tokens, and the biases that a variable keeps to the end. Values of gate and up lie in turn,
    and both are clamped: up + 1 times gate times a sigmoid of the scaled gate.

    Source: transformers 5.24.0, models/gpt_oss/modeling_gpt_oss.py, GptOssExperts._apply_gate; torch 2.13.0, ClampBackward0 and 1 (masks).
    """
    width = run.shape.experts_per_token * run.shape.expert_intermediate_size
    both, biases = _grouped_with_biases(tape, run, routed, "gate and up")
    parts = [tape.add("slice", (both,), Tensor(name, width, both.itemsize, base=both), view=True) for name in ("experts: gate", "experts: up")]
    gate, up = (
        tape.add("clamp", (part,), Tensor(f"{part.name}, clamped", width, part.itemsize), saves=(part,), scratch=((TOKENS, masks * MASK_SIZE * width),))
        for masks, part in enumerate(parts, start=1)
    )
    opened = Tensor("experts: sigmoid of gate", width, gate.itemsize)
    tape.add("sigmoid", (scale(tape, gate, "experts: scaled gate"),), opened, saves=(opened,))
    activated = multiply(tape, run, gate, opened, "experts: activated gate")
    raised = tape.add("add", (up,), Tensor("experts: up and one", width, up.itemsize), shares=True)
    product = multiply(tape, run, raised, activated, "experts: gate times up")
    tape.operations[-1].reads += (both, gate, up, activated)
    return _grouped_with_biases(tape, run, product, "down", before=(biases,))


def _grouped_with_biases(tape: Tape, run: Structure, x: Tensor, name: str, *, before: tuple[Tensor, ...] = ()) -> tuple[Tensor, Tensor]:
    """A map of all experts with a bias added in place, and the biases: a row for every routed token, in the place of which `before` was.

    Source: transformers 5.24.0, integrations/moe.py, grouped_mm_experts_forward, _grouped_linear.
    """
    width, size, trained = run.shape.experts_per_token * run.expert_maps[name][1], run.embedding_size, run.trains_base
    biases = Tensor(f"experts, {name}: biases of the routed tokens", width, size)
    indices = (Tensor("experts of the routed tokens", run.shape.experts_per_token, INDEX_SIZE),) if trained and not before else ()
    gradient = size * run.shape.num_experts * run.expert_maps[name][1] if trained else 0
    tape.add(f"experts, {name}: biases", (), biases, saves=indices, gradient=gradient, reads=before)
    output = _grouped(tape, run, x, name)
    total = Tensor(output.name, width, output.itemsize, base=output)
    tape.add("add biases", (output, biases) if trained else (output,), total, view=True, shares=True, reads=(biases,))
    return total, biases


def _in_order(tape: Tape, run: Structure, weights: Tensor) -> Tensor:
    """Weights in the order of the routed tokens. Source: transformers 5.24.0, integrations/moe.py, grouped_mm_experts_forward."""
    order = Tensor("order of the routed tokens", run.shape.experts_per_token, INDEX_SIZE)
    return tape.add("route weights", (weights,), Tensor("routing weights in order", weights.width, weights.itemsize), saves=(order,))


def _weights_in_float32(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    """Weights of a token's experts by a router whose map is kept in float32 whatever the model's type: a softmax, from which groups of
    experts may be masked out, or a sigmoid, of which those of the chosen ones are divided by their sum; then times a number.

    Source: transformers 5.24.0, models/deepseek_v2/modeling_deepseek_v2.py, DeepseekV2TopkRouter; models/deepseek_v3/
    modeling_deepseek_v3.py, DeepseekV3TopkRouter: what is only there for the choice is gone when it is made.
    """
    experts, chosen = run.shape.num_experts, run.shape.experts_per_token
    x32 = cast(tape, x, SINGLE, "router: input in float32")
    logits = linear(tape, run, x32, (x.width, experts), "router", weight_size=SINGLE, trained=run.trains_base)
    indices = Tensor("chosen experts", chosen, INDEX_SIZE)
    if run.shape.router == "sigmoid-grouped":
        scores = Tensor("routing scores", experts, logits.itemsize)
        tape.add("sigmoid", (logits,), scores, saves=(scores,), reads=(x32,))
        weights = tape.add("gather", (scores,), Tensor("routing weights", chosen, scores.itemsize), saves=(indices,))
        divided = Tensor("routing weights, summing to one", chosen, weights.itemsize)
        weights = tape.add("division", (weights,), divided, saves=(weights, Tensor("sum of the routing weights", 1, weights.itemsize)))
        return scale(tape, weights, "routing weights, scaled")
    logits = cast(tape, logits, SINGLE, "router logits in float32")
    scores = Tensor("routing probabilities", experts, SINGLE)
    tape.add("softmax", (logits,), scores, saves=(scores,), reads=(x32,))
    if run.shape.router == "softmax-grouped":
        masked = Tensor("routing probabilities of the chosen groups", experts, SINGLE)
        scores = tape.add("mask groups", (scores,), masked, saves=(Tensor("groups left out", experts, MASK_SIZE),))
    weights = tape.add("topk", (scores,), Tensor("routing weights", chosen, SINGLE), saves=(indices,))
    return scale(tape, weights, "routing weights, scaled")


IN_FLOAT32 = ("softmax-scaled", "softmax-grouped", "sigmoid-grouped")
"""Routers whose map is kept in float32. Source: transformers 5.24.0, models/deepseek_v3, _keep_in_fp32_modules_strict."""


def _grouped(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """Routed tokens times the weight (E, out, in) of their expert, in the type of the weight, which autocast leaves alone.

    Source: transformers 5.24.0, integrations/moe.py, _grouped_linear; torch 2.13.0, _grouped_mm.
    """
    width_in, width_out = run.expert_maps[name]
    size, values = run.embedding_size, run.shape.num_experts * width_in * width_out
    x = cast(tape, x, size, f"experts, {name}: input")
    output = Tensor(f"experts, {name}: output", run.shape.experts_per_token * width_out, size)
    if name in run.expert_targets:
        whole = _with_adapter(tape, run, name, values)
        return tape.add(f"experts, {name}", (x, whole), output, saves=(x, whole))
    gradient = size * values if run.trains_base else 0
    return tape.add(f"experts, {name}", (x,), output, saves=(x,) if run.trains_base else (), gradient=gradient)


WITH_ADAPTER = "with their adapters"
"""What a weight is called that adapters have been added to."""


def _with_adapter(tape: Tape, run: Structure, name: str, values: int) -> Tensor:
    """All experts' weights with their low-rank pairs added, made anew for every forward pass; their gradient is made whole too.

    Source: peft 0.21.2, tuners/lora/layer.py, ParamWrapper and _LoraFactorsProxy: one baddbmm in the type of the weight.
    """
    size, pairs = run.embedding_size, sum(rows * columns for rows, columns in run.expert_adapter(name))
    copies = (Tensor(f"experts, {name}: adapters in the weights’ type", pairs, size, FIXED),) if size != run.adapter_size else ()
    whole = Tensor(f"experts, {name}: weights {WITH_ADAPTER}", values, size, FIXED)
    return tape.add(
        f"experts, {name}: adding adapters", (), whole, saves=copies, gradient=run.adapter_size * pairs,
        gradient_scratch=size * pairs if copies else 0,
    )


def _weighted_sum(tape: Tape, run: Structure, made: Tensor, weights: Tensor, x: Tensor, held: tuple[Tensor, ...]) -> Tensor:
    """What the experts made, weighted, put back in the order of the tokens and added up for each of them."""
    wide = max(made.itemsize, weights.itemsize)
    weighted = Tensor("experts: weighted output", made.width, wide)
    tape.add("weigh", (made, weights), weighted, saves=(made, weights), scratch=_products(run, made, wide))
    ordered = Tensor("experts: output in order", made.width, wide)
    tape.add("order back", (weighted,), ordered, saves=(Tensor("places of the output", run.shape.experts_per_token, INDEX_SIZE),))
    total = tape.add("sum over experts", (ordered,), Tensor("experts: sum", x.width, wide), reads=held)
    return cast(tape, total, x.itemsize, "experts: output")


def _products(run: Structure, made: Tensor, wide: int) -> tuple[tuple[int, int], ...]:
    """What weighing holds in its backward: the products for the weights, before they are added up; and where the weights have the wider
    type, the gradient of what the experts made in that type, beside what was saved unless a checkpoint has handed that over by then.

    Source: torch 2.13.0, MulBackward0; csrc/autograd/engine.cpp, validate_outputs; utils/checkpoint.py, unpack_hook.
    """
    products = (TOKENS, made.width * wide)
    if wide == made.itemsize:
        return (products,)
    handed_over = run.checkpointing and not run.reentrant
    return products, (TOKENS, made.width * (wide - made.itemsize if handed_over else wide))
