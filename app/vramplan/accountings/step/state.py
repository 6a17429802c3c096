"""What is there for the whole run: weights, adapters, gradients and optimizer states, and what the step adds to them."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from operator import attrgetter

from vramplan.accountings.step.experts import IN_FLOAT32
from vramplan.accountings.step.fused_adapters import HEADS, IN_PLACE, MLP, OUTPUT, fuses
from vramplan.accountings.step.layers import counts_of_layers
from vramplan.accountings.step.remembered import remembered
from vramplan.accountings.step.structure import HALF, SINGLE, Structure
from vramplan.accountings.step.tape import Tensor
from vramplan.architecture import DELTA_NET, norms_per_layer
from vramplan.constants import EIGHT_BIT_BLOCK_SIZE, EIGHT_BIT_SMALLEST_TENSOR, FP32_BYTES, INT8_BYTES, PAGED_SMALLEST_TENSOR
from vramplan.quantized import NF4_BLOCK_SIZE, QUANTIZED
from vramplan.units import whole_bytes_up


WEIGHTS_KEPT = 64
"""Lists of parameter tensors that are remembered, and sums over them: the functions below ask for the same few again and again."""

OF_BASE_WEIGHTS = ("shape", "weight_size", "norm_size", "embedding_size", "head_size", "head_width", "quantization", "quantized_head", "masked")
"""What of a structure the tensors of the base model depend on."""

OF_ADAPTERS = ("shape", "trains_base", "adapter_size", "targets", "expert_targets", "rank", "adapter_kernel", "model_code", "head_width", "loss", "masked")
"""What the adapters depend on."""

_base_key, _adapter_key = (attrgetter(*names) for names in (OF_BASE_WEIGHTS, OF_ADAPTERS))


def _trained_key(run: Structure) -> tuple:
    """The same for the tensors that are trained."""
    return _base_key(run) if run.trains_base else _adapter_key(run)


@dataclass(frozen=True)
class Weight:
    """A kind of parameter tensor: how many there are, their (rows, columns), bytes per value, and what they are.

    columns is 1 for vectors. group: the row of the ledger. A quantised weight has `itemsize` 0 and its own count.
    """

    name: str
    count: int
    rows: int
    columns: int
    itemsize: int
    group: str

    @property
    def values(self) -> int:
        """Parameters of one such tensor."""
        return self.rows * self.columns

    @property
    def bytes(self) -> int:
        """Bytes of all of them."""
        return self.count * self.values * self.itemsize


@remembered(_base_key, most=WEIGHTS_KEPT)
def base_weights(run: Structure) -> tuple[Weight, ...]:
    """Every parameter tensor of the base model that is not quantised.

    Shapes: linear maps (out, in), embeddings and head (V, H), norms (H) or (d), biases (out).
    Source: transformers 5.24.0, models/llama/modeling_llama.py, and for the traits as in vramplan.architecture.
    """
    shape, hidden, kinds = run.shape, run.shape.hidden_size, counts_of_layers(run).items()
    rows = [] if run.quantization else [weight for kind, count in kinds for weight in _linear(kind, count)]
    rows += [weight for kind, count in kinds for weight in _experts(kind, count)]
    rows += [weight for kind, count in kinds for weight in _convolutions(kind, count)]
    rows += [weight for kind, count in kinds for weight in _biases(kind, count)]
    if shape.head_bias:
        rows.append(Weight("head bias", 1, shape.vocab_size, 1, run.head_size, "biases"))
    rows += [weight for kind, count in kinds for weight in _norms(kind, count)]
    if shape.norm_vectors:
        rows.append(Weight("norms", shape.norm_vectors * (2 if shape.embedding_norm else 1), hidden, 1, run.norm_size, "norms"))
    rows.append(Weight("embedding", 1, shape.vocab_size, hidden, run.embedding_size, "embedding"))
    if shape.learned_positions:
        rows.append(Weight("positions", 1, shape.learned_positions, hidden, run.embedding_size, "embedding"))
    if not shape.tied_embeddings and not run.quantized_head:
        rows.append(Weight("head", 1, run.head_width, hidden, run.head_size, "head"))
    return _together(rows)


def _together(weights: list[Weight]) -> tuple[Weight, ...]:
    """Weights of one name and shape as one kind."""
    counts: dict[tuple, int] = {}
    for each in weights:
        key = (each.name, each.rows, each.columns, each.itemsize, each.group)
        counts[key] = counts.get(key, 0) + each.count
    return tuple(Weight(key[0], count, *key[1:]) for key, count in counts.items())


def _linear(kind: Structure, layers: int) -> list[Weight]:
    """Linear maps (out, in) of layers of one kind."""
    return [Weight(name, layers, out, into, kind.weight_size, "linear weights") for name, (into, out) in kind.projection_sizes.items()]


def _experts(kind: Structure, layers: int) -> list[Weight]:
    """Maps (E, out, in) of experts and the router (E, H), which no library quantises: they are parameters, no linear modules.

    Source: transformers 5.24.0, models/mixtral/modeling_mixtral.py, MixtralExperts; integrations/bitsandbytes.py,
    replace_with_bnb_linear.
    """
    shape = kind.shape
    if not shape.num_experts:
        return []
    maps = kind.expert_maps.items()
    found = [Weight(f"experts, {name}", layers, shape.num_experts * out, into, kind.embedding_size, "experts") for name, (into, out) in maps]
    size = SINGLE if shape.router in IN_FLOAT32 else kind.embedding_size
    biases = [Weight("selection bias", layers, shape.num_experts, 1, SINGLE, BUFFERS)] if shape.router == "sigmoid-grouped" else []
    if shape.expert_biases:
        widths = [(f"experts, {name} bias", out) for name, (into, out) in maps] + [("router bias", 1)]
        biases += [Weight(name, layers, shape.num_experts, width, kind.embedding_size, "biases") for name, width in widths]
    return [*found, Weight("router", layers, shape.num_experts, shape.hidden_size, size, "linear weights"), *biases]


BUFFERS = "buffers"
"""What is stored with the model and never trained. Source: transformers 5.24.0, models/deepseek_v3/modeling_deepseek_v3.py,
DeepseekV3TopkRouter (e_score_correction_bias)."""


def _convolutions(kind: Structure, layers: int) -> list[Weight]:
    """Weights (channels, 1, taps) of convolutions, and of a gated delta net two numbers of each head, none of which a library quantises. Adafactor keeps a value for every channel less than is
    counted, for it takes them as (1, taps) each.

    Source: transformers 5.24.0, models/lfm2/modeling_lfm2.py, Lfm2ShortConv; integrations/bitsandbytes.py, replace_with_bnb_linear.
    """
    if not kind.mixes:
        return []
    shape = kind.shape
    if shape.mixer != DELTA_NET:
        return [Weight("convolution", layers, shape.hidden_size * shape.mixer_kernel, 1, kind.embedding_size, "convolutions")]
    channels = 2 * shape.mixer_key_width + shape.mixer_value_width
    return [
        Weight("convolution", layers, channels * shape.mixer_kernel, 1, kind.embedding_size, "convolutions"),
        Weight("decays of heads", 2 * layers, shape.mixer_value_heads, 1, kind.embedding_size, "convolutions"),
    ]


def _biases(kind: Structure, layers: int) -> list[Weight]:
    """Biases (out) of linear maps, and attention's sinks (n); preparation of a quantised model gives them the type of the embedding."""
    shape, sizes = kind.shape, kind.projection_sizes
    with_bias = [name for name in kind.biased_maps if name in sizes]
    sinks = [Weight("attention sinks", layers, shape.num_attention_heads, 1, kind.embedding_size, "biases")] if shape.attention_sinks else []
    return [*(Weight(f"{name} bias", layers, sizes[name][1], 1, kind.embedding_size, "biases") for name in with_bias), *sinks]


def _norms(kind: Structure, layers: int) -> list[Weight]:
    """Weights and biases of norms: (H) each, (d) on heads, (Q) and (U) over all of them."""
    shape, vectors = kind.shape, kind.shape.norm_vectors
    rows = [("norms", layers * norms_per_layer(extra_norms=shape.extra_norms, shared_norm=shape.shared_norm), shape.hidden_size)]
    if shape.mixer == DELTA_NET:
        rows.append(("norms under gates", layers, shape.mixer_value_dim))
    if shape.kv_lora_rank and not kind.mixes:
        rows += [(name, layers, width) for name, width in (("norms of narrow queries", shape.q_lora_rank), ("norms of narrow keys and values", shape.kv_lora_rank)) if width]
    if shape.query_key_norms and not kind.mixes:
        rows.append(("query and key norms", 2 * layers, shape.head_dim))
    if shape.wide_query_key_norms and not kind.mixes:
        rows += [("query norms", layers, shape.query_width), ("key norms", layers, shape.kv_width)]
    return [Weight(name, vectors * count, width, 1, kind.norm_size, "norms") for name, count, width in rows if vectors]


def quantized_bytes(run: Structure) -> int:
    """Bytes of the quantised linear weights with their scales; 0 unless the base is quantised."""
    return sum(
        count * whole_bytes_up(QUANTIZED[run.quantization](values=into * out, inputs=into, outputs=out))
        for count, into, out in _quantized_weights(run)
    )


def _quantized_weights(run: Structure) -> list[tuple[int, int, int]]:
    """(how many, in, out) of every quantised linear map."""
    if not run.quantization:
        return []
    of_layers = [(layers, into, out) for kind, layers in counts_of_layers(run).items() for into, out in kind.projection_sizes.values()]
    return of_layers + ([(1, run.shape.hidden_size, run.shape.vocab_size)] if run.quantized_head else [])


@remembered(_adapter_key, most=WEIGHTS_KEPT)
def adapter_weights(run: Structure) -> tuple[Weight, ...]:
    """The low-rank pairs A (inner, in) and B (out, r) of every target, a fused map's one, and a reward model's head, which is
    trained in a copy.

    Source: Structure.adapter_sizes; peft 0.21.2, peft_model.py, PeftModelForSequenceClassification (modules_to_save).
    """
    shape, rank, kinds = run.shape, run.rank, counts_of_layers(run).items()
    pairs = [
        ("+".join(names), layers, *kind.adapter_sizes(names))
        for kind, layers in kinds for names in kind.projection_groups if not kind.targets.isdisjoint(names)
    ]
    of_experts = [
        Weight(f"experts, {name} adapter {half}", layers, *sizes, run.adapter_size, "adapters")
        for kind, layers in kinds if kind.shape.num_experts
        for name in sorted(run.expert_targets)
        for half, sizes in zip("AB", kind.expert_adapter(name), strict=True)
    ]
    pairs += [("lm_head", 1, shape.hidden_size, rank, shape.vocab_size)] if "lm_head" in run.targets else []
    pairs += [("embed", 1, shape.vocab_size, rank, shape.hidden_size)] if "embed" in run.targets else []
    copied = [Weight("copy of the head", 1, run.head_width, shape.hidden_size, run.adapter_size, "adapters")] if copies_head(run) else []
    return _together(copied + [
        Weight(f"{name} adapter {half}", count, rows, columns, run.adapter_size, "adapters")
        for name, count, into, inner, out in pairs
        for half, rows, columns in (("A", inner, into), ("B", out, rank))
    ] + of_experts)


def copies_head(run: Structure) -> bool:
    """Whether the head is trained beside adapters, in a copy of its own. Source: peft 0.21.2, utils/other.py, ModulesToSaveWrapper."""
    return run.loss == "score" and not run.trains_base


@remembered(_base_key, most=WEIGHTS_KEPT)
def weight_bytes(run: Structure) -> int:
    """Bytes of the base model, quantised or not."""
    return quantized_bytes(run) + sum(weight.bytes for weight in base_weights(run))


@remembered(_adapter_key, most=WEIGHTS_KEPT)
def adapter_bytes(run: Structure) -> int:
    """Bytes of the adapters."""
    return sum(weight.bytes for weight in adapter_weights(run))


def autocast_bytes(run: Structure) -> int:
    """Bytes of the 16-bit copies autocast keeps of float32 parameters of the layers that are trained, until the forward pass ends.

    Source: torch 2.13.0, ATen/autocast_mode.cpp, cached_cast: one copy per leaf that requires a gradient. Not of adapters that are
    fused: unsloth 2026.10.9, kernels/utils.py, matmul_lora, casts them by hand.
    """
    if not run.autocast:
        return 0
    by_hand = {f"{name} adapter {half}" for name in _fused_names(run) for half in "AB"}
    in_layers = (
        w for w in trained_weights(run)
        if w.group in ("linear weights", "adapters") and w.itemsize == SINGLE and w.name not in by_hand and not w.name.startswith("experts")
    )
    return sum(HALF * w.count * w.values for w in in_layers)


def parameters(run: Structure) -> int:
    """Parameters of the base model, quantised ones included."""
    quantized = sum(count * into * out for count, into, out in _quantized_weights(run))
    return quantized + sum(weight.count * weight.values for weight in base_weights(run))


def trained_parameters(run: Structure) -> int:
    """Parameters that get a gradient."""
    return sum(weight.count * weight.values for weight in trained_weights(run))


def trained_weights(run: Structure) -> tuple[Weight, ...]:
    """Every parameter tensor that gets a gradient."""
    if not run.trains_base:
        return adapter_weights(run)
    weights = base_weights(run)
    return tuple(weight for weight in weights if weight.group != BUFFERS) if run.shape.num_experts else weights


@remembered(_trained_key, most=WEIGHTS_KEPT)
def gradient_bytes(run: Structure) -> int:
    """Bytes of all gradients: each has its parameter's type. Source: torch 2.13.0, AccumulateGrad."""
    return sum(weight.bytes for weight in trained_weights(run))


@remembered(lambda run: (run.optimizer, _trained_key(run)), most=WEIGHTS_KEPT)
def state_bytes(run: Structure) -> int:
    """Bytes of optimizer states that PyTorch's allocator holds."""
    return states_bytes(run.optimizer, trained_weights(run))


def states_bytes(optimizer: str, weights: Iterable[Weight]) -> int:
    """The same for the tensors that an optimizer is given."""
    return sum(weight.count * whole_bytes_up(_state(optimizer, weight)) for weight in weights)


def state_tensor_bytes(run: Structure, weight: Weight) -> int:
    """Bytes of one state that has the shape of its parameter; 0 where the optimizer keeps none on the GPU.

    Shape: (rows, columns), in whole bytes per value: the scales of 8-bit states are tensors of their own. Source: as for all states, below.
    """
    if run.optimizer == "adafactor":
        return 0
    states = 1 if run.optimizer in ("sgd-momentum", "lion") else 2
    return floor(Fraction(_state(run.optimizer, weight), states * weight.values)) * weight.values


def _state(optimizer: str, weight: Weight) -> Fraction | int:
    """Bytes of one tensor's optimizer state.

    Source: torch 2.13.0, optim/adamw.py and sgd.py; transformers 5.24.0, optimization.py, Adafactor (first moment off);
    bitsandbytes 0.50.2, optim/optimizer.py, Optimizer1State and Optimizer2State.init_state.
    """
    if optimizer in ("adamw-foreach", "adamw-fused"):
        return 2 * weight.itemsize * weight.values
    if optimizer == "adafactor":
        return FP32_BYTES * (weight.rows + weight.columns if weight.columns > 1 else weight.rows)
    if optimizer in ("sgd", "sgd-momentum"):
        return weight.itemsize * weight.values if optimizer == "sgd-momentum" else 0
    states = 1 if optimizer == "lion" else 2
    in_8_bits = optimizer.endswith("8bit") and weight.values >= EIGHT_BIT_SMALLEST_TENSOR and weight.group != "embedding"
    paged = optimizer.startswith("paged") and weight.values >= PAGED_SMALLEST_TENSOR
    value_bytes = 0 if paged else INT8_BYTES if in_8_bits else FP32_BYTES
    scale_bytes = Fraction(FP32_BYTES, EIGHT_BIT_BLOCK_SIZE) if in_8_bits else 0
    return states * (value_bytes + scale_bytes) * weight.values


def dequantization_bytes(run: Structure) -> int:
    """Bytes of the buffers that Unsloth unpacks quantised weights into, which stay for the run: the largest map of those whose adapters
    are fused in 16 bits, and until 2025 its scales in float32.

    Source: unsloth 2026.10.9, kernels/utils.py, _scratch; 2025.11.1, fast_dequantize, WEIGHT_BUFFER and ABSMAX_BUFFER.
    """
    if run.quantization != "nf4-double" or run.adapter_kernel not in IN_PLACE:
        return 0
    values = max((into * out for into, out in (run.projection_sizes[name] for name in _fused_names(run))), default=0)
    scales = SINGLE * values // NF4_BLOCK_SIZE if run.adapter_kernel == "unsloth-2025" else 0
    return HALF * values + scales


def _fused_names(run: Structure) -> list[str]:
    """The maps that Unsloth's functions take with their adapters, where what comes in is in 16 bits."""
    x = Tensor("input", 1, HALF)
    groups = (HEADS, OUTPUT, MLP) if run.adapter_kernel in IN_PLACE else ()
    return [name for names in groups if fuses(run, x, names) for name in names]


def step_scratch_bytes(run: Structure) -> int:
    """Bytes that only the optimizer step holds.

    Source: torch 2.13.0, optim/adamw.py, _multi_tensor_adamw: the square roots of all second moments at once;
    transformers 5.24.0, optimization.py, Adafactor.step.
    """
    return scratch_bytes(run.optimizer, trained_weights(run))


def scratch_bytes(optimizer: str, trained: Iterable[Weight]) -> int:
    """The same for the tensors that an optimizer is given."""
    if optimizer == "adamw-foreach":
        return sum(weight.bytes for weight in trained)
    if optimizer == "adafactor":
        in_turn = sorted((weight for weight in trained if weight.columns > 1), key=lambda weight: weight.name != "embedding")
        return max((_adafactor_scratch_bytes(weight, before) for before, weight in zip((None, *in_turn), in_turn)), default=0)
    return 0


def _adafactor_scratch_bytes(weight: Weight, before: Weight | None) -> int:
    """Squares and update of one tensor, float32 copies of a 16-bit parameter and its gradient, and the update of the
    tensor before it, which a variable still holds. Source: transformers 5.24.0, optimization.py, Adafactor.step."""
    copies = 2 if weight.itemsize == HALF else 0
    return (copies + 2) * SINGLE * weight.values + (SINGLE * before.values if before else 0)
