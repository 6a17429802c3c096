"""The planning formula: every listed allocation is assumed to be alive at once.

Symbols: P total_parameters, D linear_parameters, R adapter_parameters, B micro_batch, S sequence_length, H hidden_size,
L num_layers, n num_attention_heads, r rank, V vocab_size. Each function returns bytes, exact; `estimate` rounds every
term up to a whole byte once.
"""

from decimal import Decimal
from fractions import Fraction

from vramplan.architecture import (
    ATTENTION_PROJECTIONS,
    MLP_PROJECTIONS,
    adapter_parameters,
    linear_parameters,
    total_parameters,
)
from vramplan.constants import (
    ADAM_MOMENTS,
    ATTENTION_SCORE_BYTES,
    BF16_BYTES,
    FIXED_ALLOWANCE_BYTES,
    FP32_BYTES,
    INT8_BYTES,
    LAYER_ACTIVATION_BYTES,
    NF4_DOUBLE_QUANTIZED_BYTES,
)
from vramplan.ledger import Estimate, Parameters, Term
from vramplan.settings import Settings
from vramplan.units import GIB, whole_bytes_up

MASTER_BYTES = {"mixed-bf16": FP32_BYTES, "pure-bf16": 0}
"""Bytes of master copy per trainable parameter (m)."""

GRADIENT_BYTES = {"mixed-bf16": FP32_BYTES, "pure-bf16": BF16_BYTES}
"""Bytes of gradient per trainable parameter (g)."""

OPTIMIZER_BYTES = {"adamw": ADAM_MOMENTS * FP32_BYTES, "adamw-8bit": ADAM_MOMENTS * INT8_BYTES}
"""Bytes of optimizer state per trainable parameter (o)."""


def base_weights_bytes(*, parameters: int, linear: int, quantized: bool) -> Fraction:
    """Bytes of the base model's weights.

    BF16 throughout, or with `quantized` 4-bit NormalFloat with double quantization for the linear maps and FP32 for
    embeddings, output head and norms. Source: planning formula, W without adapters; Dettmers et al. 2023.
    Not counted: padding of the last block of scales.
    """
    if not quantized:
        return Fraction(BF16_BYTES * parameters)
    return NF4_DOUBLE_QUANTIZED_BYTES * linear + FP32_BYTES * (parameters - linear)


def adapter_weights_bytes(*, adapters: int) -> int:
    """Bytes of the adapters' BF16 working weights. Source: planning formula, 2R."""
    return BF16_BYTES * adapters


def training_state_bytes(*, trainable: int, bytes_per_parameter: int) -> int:
    """Bytes of one kind of training state (master weights, gradients or moments) over all trained parameters.

    Source: planning formula, T. Not counted: scales of 8-bit moments, and moments kept wider for small tensors.
    """
    return trainable * bytes_per_parameter


def layer_activation_bytes(
    *, micro_batch: int, sequence_length: int, hidden_size: int, num_attention_heads: int, stores_scores: bool
) -> int:
    """Bytes one layer keeps for backward.

    Shapes: about 17 BF16 tensors' worth of (B, S, H); with `stores_scores` also the (B, n, S, S) attention intermediates.
    Source: Korthikanti et al. 2022, section 4.1; planning formula, a.
    Not counted: the width of the MLP, and the smaller keys and values of grouped-query attention.
    """
    tokens = micro_batch * sequence_length
    linear_in_tokens = LAYER_ACTIVATION_BYTES * tokens * hidden_size
    scores = ATTENTION_SCORE_BYTES * num_attention_heads * tokens * sequence_length if stores_scores else 0
    return linear_in_tokens + scores


def saved_activations_bytes(
    *, micro_batch: int, sequence_length: int, hidden_size: int, num_layers: int, layer_activation: int, checkpointing: bool
) -> int:
    """Bytes kept from forward to backward over all layers.

    With checkpointing one BF16 (B, S, H) layer input each, else everything each layer keeps.
    Source: planning formula, X_base without its active layer.
    """
    if not checkpointing:
        return num_layers * layer_activation
    return BF16_BYTES * micro_batch * sequence_length * hidden_size * num_layers


def active_layer_bytes(*, layer_activation: int, checkpointing: bool) -> int:
    """Bytes of the one layer that is recomputed during backward; 0 without checkpointing, where it is already kept.

    Source: planning formula, X_base.
    """
    return layer_activation if checkpointing else 0


def adapter_activations_bytes(
    *, micro_batch: int, sequence_length: int, rank: int, num_layers: int, mlp_targets: bool, checkpointing: bool
) -> int:
    """Bytes of the inner activations of the adapters.

    Shape: BF16 (B, S, r) for each targeted projection of each layer kept: 1 with checkpointing, else all.
    Source: planning formula, X_r.
    """
    projections = ATTENTION_PROJECTIONS + (MLP_PROJECTIONS if mlp_targets else 0)
    layers = 1 if checkpointing else num_layers
    return layers * projections * BF16_BYTES * micro_batch * sequence_length * rank


def logits_bytes(*, micro_batch: int, sequence_length: int, vocab_size: int) -> int:
    """Bytes of one FP32 copy of the prediction scores.

    Shape: (B, S, V), float32. Source: planning formula, Z.
    Not counted: the loss's own copies and the gradient of the scores.
    """
    return FP32_BYTES * micro_batch * sequence_length * vocab_size


def dequantization_bytes(
    *, hidden_size: int, query_width: int, kv_width: int, intermediate_size: int, quantized: bool
) -> int:
    """Bytes of the largest linear map of a layer, expanded to BF16 while it is used; 0 unless the base is quantised.

    Shapes: (Q, H), (U, H) or (M, H). Source: planning formula, J.
    """
    if not quantized:
        return 0
    return BF16_BYTES * max(hidden_size * query_width, hidden_size * kv_width, hidden_size * intermediate_size)


def extra_allowance_bytes(*, gib: Decimal) -> Fraction:
    """Bytes of the allowance the user adds, from GiB. Source: planning formula, E."""
    return Fraction(gib) * GIB


def estimate(settings: Settings) -> Estimate:
    """The planning estimate of one run. Source: planning formula, peak = W + T + X + Z + J + 2 GiB + E."""
    shape = settings.architecture
    quantized = settings.method == "qlora"
    checkpointing = settings.checkpointing == "full"
    mlp_targets = settings.adapter_targets == "all-linear"
    widths = dict(
        hidden_size=shape.hidden_size,
        query_width=shape.query_width,
        kv_width=shape.kv_width,
        intermediate_size=shape.intermediate_size,
    )
    batch = dict(micro_batch=settings.micro_batch, sequence_length=settings.sequence_length)

    linear = linear_parameters(num_layers=shape.num_layers, **widths)
    total = total_parameters(
        num_layers=shape.num_layers,
        **widths,
        vocab_size=shape.vocab_size,
        head_dim=shape.head_dim,
        tied_embeddings=shape.tied_embeddings,
        query_key_norms=shape.query_key_norms,
    )
    adapters = 0
    adapter_activations = 0
    if settings.trains_adapters:
        adapters = adapter_parameters(
            rank=settings.rank, num_layers=shape.num_layers, **widths, mlp_targets=mlp_targets
        )
        adapter_activations = adapter_activations_bytes(
            **batch,
            rank=settings.rank,
            num_layers=shape.num_layers,
            mlp_targets=mlp_targets,
            checkpointing=checkpointing,
        )
    trainable = adapters if settings.trains_adapters else total
    layer = layer_activation_bytes(
        **batch,
        hidden_size=shape.hidden_size,
        num_attention_heads=shape.num_attention_heads,
        stores_scores=settings.attention_kernel == "eager",
    )
    saved = saved_activations_bytes(
        **batch,
        hidden_size=shape.hidden_size,
        num_layers=shape.num_layers,
        layer_activation=layer,
        checkpointing=checkpointing,
    )
    active = active_layer_bytes(layer_activation=layer, checkpointing=checkpointing)
    multiplier = Fraction(settings.activation_multiplier)
    precision, optimizer = settings.trainable_precision, settings.optimizer

    amounts = {
        "base_weights": base_weights_bytes(parameters=total, linear=linear, quantized=quantized),
        "adapters": adapter_weights_bytes(adapters=adapters),
        "master_weights": training_state_bytes(trainable=trainable, bytes_per_parameter=MASTER_BYTES[precision]),
        "gradients": training_state_bytes(trainable=trainable, bytes_per_parameter=GRADIENT_BYTES[precision]),
        "optimizer_states": training_state_bytes(trainable=trainable, bytes_per_parameter=OPTIMIZER_BYTES[optimizer]),
        "saved_activations": multiplier * saved,
        "active_layer": multiplier * active,
        "adapter_activations": multiplier * adapter_activations,
        "logits": logits_bytes(**batch, vocab_size=shape.vocab_size),
        "dequantization": dequantization_bytes(**widths, quantized=quantized),
        "fixed_allowance": FIXED_ALLOWANCE_BYTES,
        "extra_allowance": extra_allowance_bytes(gib=settings.extra_allowance),
    }
    terms = tuple(Term(name, whole_bytes_up(amount)) for name, amount in amounts.items())
    quantities = _symbols(settings) | {
        "D": linear,
        "P": total,
        "R": adapters,
        "P_t": trainable,
        "W": amounts["base_weights"] + amounts["adapters"],
        "T": amounts["master_weights"] + amounts["gradients"] + amounts["optimizer_states"],
        "a": layer,
        "X_base": saved + active,
        "X_r": adapter_activations,
        "X": multiplier * (saved + active + adapter_activations),
        "Z": amounts["logits"],
        "J": amounts["dequantization"],
    }
    return Estimate("planning", settings, Parameters(total, trainable), terms, quantities)


def _symbols(settings: Settings) -> dict[str, int | Fraction]:
    """The symbols that come straight from the settings and the constants, with their values."""
    shape = settings.architecture
    checkpointing = settings.checkpointing == "full"
    mlp_targets = settings.adapter_targets == "all-linear"
    return {
        "H": shape.hidden_size,
        "L": shape.num_layers,
        "n": shape.num_attention_heads,
        "k": shape.num_kv_heads,
        "d": shape.head_dim,
        "Q": shape.query_width,
        "U": shape.kv_width,
        "M": shape.intermediate_size,
        "V": shape.vocab_size,
        "t": 1 if shape.tied_embeddings else 2,
        "epsilon": 1 if shape.query_key_norms else 0,
        "r": settings.rank,
        "B": settings.micro_batch,
        "S": settings.sequence_length,
        "G": settings.gradient_accumulation_steps,
        "N": settings.replicas,
        "c": NF4_DOUBLE_QUANTIZED_BYTES,
        "m": MASTER_BYTES[settings.trainable_precision],
        "g": GRADIENT_BYTES[settings.trainable_precision],
        "o": OPTIMIZER_BYTES[settings.optimizer],
        "chi": 1 if settings.attention_kernel == "eager" else 0,
        "p": ATTENTION_PROJECTIONS + (MLP_PROJECTIONS if mlp_targets else 0),
        "ell": 1 if checkpointing else shape.num_layers,
        "alpha": Fraction(settings.activation_multiplier),
        "E": Fraction(settings.extra_allowance),
    }
