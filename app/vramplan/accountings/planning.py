"""The planning formula: every listed allocation is assumed to be alive at once.

Symbols: P total_parameters, D linear_parameters, R adapter_parameters, B micro_batch, S sequence_length, H hidden_size,
L num_layers, n num_attention_heads, r rank, V vocab_size. Each function returns bytes, exact; `estimate` rounds every
term up to a whole byte once.
"""

from collections.abc import Callable
from fractions import Fraction

from vramplan.architecture import (
    NO_MIXER,
    Architecture,
    adapted_projections,
    adapter_parameters,
    embedding_matrices,
    layer_bias_parameters,
    linear_parameters,
    norms_per_layer,
    other_parameters,
    query_key_norm_parameters,
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
from vramplan.errors import NotExpressible
from vramplan.fields import label_of
from vramplan.kinds import DIVIDING
from vramplan.ledger import Estimate, Frame, Moment, Parameters, Term, verdict
from vramplan.policy import policy
from vramplan.settings import Settings
from vramplan.targets import ALL_LINEAR, NAMED
from vramplan.units import GIB, exact, whole_bytes_up

Quantities = dict[str, int | Fraction]
"""Amounts by the symbol or the term they belong to."""

TERMS = (
    "base_weights",
    "adapters",
    "master_weights",
    "gradients",
    "optimizer_states",
    "saved_activations",
    "active_layer",
    "adapter_activations",
    "logits",
    "dequantization",
    "fixed_allowance",
    "extra_allowance",
)
"""Rows of the ledger, in order."""

MASTER_BYTES = {"mixed-bf16": FP32_BYTES, "pure-bf16": 0}
"""Bytes of master copy per trainable parameter (m)."""

GRADIENT_BYTES = {"mixed-bf16": FP32_BYTES, "pure-bf16": BF16_BYTES}
"""Bytes of gradient per trainable parameter (g)."""

OPTIMIZER_BYTES = {
    "adamw-foreach": ADAM_MOMENTS * FP32_BYTES,
    "adamw-fused": ADAM_MOMENTS * FP32_BYTES,
    "adamw-fp32-states": ADAM_MOMENTS * FP32_BYTES,
    "adamw-8bit": ADAM_MOMENTS * INT8_BYTES,
}
"""Bytes of optimizer state per trainable parameter (o); the formula does not tell implementations of AdamW apart."""

COUNTED_TARGETS = tuple(set(parts) for parts in NAMED.values())
"""Sets of projections the formula has a term for."""

COUNTED_QUANTIZATION = "nf4-double"
"""The storage of the quantised base that the formula's bytes per weight stand for."""

CONTEXT_IS_BESIDE = False
"""The CUDA context is in the fixed allowance."""

NO_PAIRS = "The planning formula counts next-token training only, and has no pairs and no reference."
"""Why there is no number for a step on pairs."""

EVERYTHING_AT_ONCE = "everything at once"
"""The one moment of an accounting that assumes every allocation is alive at the same time."""


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


def live_adapter_layers(*, num_layers: int, checkpointing: bool) -> int:
    """Layers whose adapter activations are alive at once: one with checkpointing, else all.

    Source: planning formula, ell.
    """
    return 1 if checkpointing else num_layers


def adapter_activations_bytes(
    *, micro_batch: int, sequence_length: int, rank: int, projections: int, layers: int
) -> int:
    """Bytes of the inner activations of the adapters.

    Shape: BF16 (B, S, r) for each targeted projection of each layer that is alive. Source: planning formula, X_r.
    """
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
    """Bytes of the largest linear map of a layer, expanded to BF16 while it is used; 0 unless the base is quantized.

    Shapes: (Q, H), (U, H) or (M, H). Source: planning formula, J.
    """
    if not quantized:
        return 0
    return BF16_BYTES * max(hidden_size * query_width, hidden_size * kv_width, hidden_size * intermediate_size)


def extra_allowance_bytes(*, gib: Fraction) -> Fraction:
    """Bytes of the allowance the user adds, from GiB. Source: planning formula, E."""
    return gib * GIB


def estimate(settings: Settings) -> Estimate:
    """The planning estimate of one run. Source: planning formula, peak = W + T + X + Z + J + 2 GiB + E."""
    _must_be_countable(settings)
    known = _symbols(settings)
    known |= _counts(known, settings)
    layer, saved, active, inner = _activations(known, settings)
    known |= {"a": layer, "X_base": saved + active, "X_r": inner}
    amounts = _model_state(known, settings) | _with_tokens(known, saved, active, inner)
    amounts |= {
        "dequantization": dequantization_bytes(**_widths(known), quantized=settings.method == "qlora"),
        "fixed_allowance": FIXED_ALLOWANCE_BYTES,
        "extra_allowance": extra_allowance_bytes(gib=known["E"]),
    }
    terms = tuple(Term(name, whole_bytes_up(amounts[name])) for name in TERMS)
    parameters = Parameters(known["P"], known["P_t"])
    return Estimate("planning", settings, parameters, (Moment(EVERYTHING_AT_ONCE, terms),), known | _sums(amounts))


def _with_tokens(known: Quantities, saved: int, active: int, inner: int) -> Quantities:
    """The terms that a batch decides."""
    return {
        "saved_activations": known["alpha"] * saved,
        "active_layer": known["alpha"] * active,
        "adapter_activations": known["alpha"] * inner,
        "logits": logits_bytes(micro_batch=known["B"], sequence_length=known["S"], vocab_size=known["V"]),
    }


def at_batches(settings: Settings) -> Callable[[int, int], tuple[int, str]]:
    """The sum of all terms and the verdict as a function of micro-batch and sequence length. Raises NotExpressible."""
    counted = estimate(settings)
    known = dict(counted.quantities)

    def with_tokens(micro_batch: int, length: int) -> int:
        at = known | {"B": micro_batch, "S": length}
        return sum(map(whole_bytes_up, _with_tokens(at, *_activations(at, settings)[1:]).values()))

    usable = counted.usable_bytes
    others = counted.peak_bytes - with_tokens(settings.micro_batch, settings.sequence_length)

    def at(micro_batch: int, length: int) -> tuple[int, str]:
        peak = others + with_tokens(micro_batch, length)
        return peak, verdict(usable=usable, budget=usable, peak=peak, process=None)

    return at


def frames(settings: Settings, *, most_layers: int) -> tuple[Frame, ...]:
    """None: raises NotExpressible, for this accounting does not know when memory is held."""
    raise NotExpressible("accounting", "The planning formula adds everything up as if it were alive at once, so it has no timeline; choose the training step.")


def peak_bytes(settings: Settings) -> int:
    """The sum of all terms alone."""
    return estimate(settings).peak_bytes


def fits(settings: Settings) -> bool:
    """Whether the sum of all terms stays within the budget."""
    return estimate(settings).fits


def choices(settings: Settings) -> dict[str, str]:
    """What the formula makes of the settings that choose between its forms."""
    decided = policy(settings)
    return {
        "method": "full" if settings.trains_base else settings.method,
        "adapter_targets": "all-linear" if set(ALL_LINEAR) <= set(settings.targets) else "attention",
        "trainable_precision": decided.trainable_precision,
        "optimizer": "adamw-8bit" if decided.optimizer == "adamw-8bit" else "adamw",
        "checkpointing": settings.checkpointing,
        "attention_kernel": "eager" if settings.attention_kernel == "eager" else "efficient",
    }


def _must_be_countable(settings: Settings) -> None:
    """Say which setting the documented formula has no term for."""
    chosen = policy(settings)
    if settings.architecture.num_experts:
        raise NotExpressible("model", "The planning formula counts one MLP in every layer, no experts. Choose the accounting “Training step”.")
    if settings.architecture.kv_lora_rank:
        raise NotExpressible("model", "The planning formula counts four maps of attention, no latent attention (MLA). Choose the accounting “Training step”.")
    if settings.architecture.mixer != NO_MIXER:
        raise NotExpressible("model", "The planning formula counts attention in every layer. Choose the accounting “Training step”.")
    if settings.sharding in DIVIDING:
        raise NotExpressible("sharding", f"The planning formula divides nothing between GPUs, as {label_of('sharding', settings.sharding)} does. Choose no sharding, or the accounting “Training step”.")
    if settings.trains_adapters and set(settings.targets) not in COUNTED_TARGETS:
        came = f"on {settings.adapter_targets}"
        raise NotExpressible("adapter_targets", f"The planning formula counts adapters on attention, or on all linear maps, not {came}.")
    if settings.method == "qlora" and settings.quantization != COUNTED_QUANTIZATION:
        counted, came = (label_of("quantization", value) for value in (COUNTED_QUANTIZATION, settings.quantization))
        raise NotExpressible("quantization", f"The planning formula counts a base in {counted} only, not in {came}.")
    if settings.checkpointing == "offloaded":
        raise NotExpressible("checkpointing", "The planning formula counts checkpoints on the GPU only; choose On or Off.")
    if chosen.optimizer not in OPTIMIZER_BYTES:
        came = label_of("optimizer", chosen.optimizer)
        raise NotExpressible("optimizer", f"The planning formula counts AdamW and 8-bit AdamW only, not {came}.")


def _symbols(settings: Settings) -> Quantities:
    """The symbols that come straight from the settings and the constants."""
    shape = settings.architecture
    chosen = policy(settings)
    mlp_targets = set(ALL_LINEAR) <= set(settings.targets)
    checkpointing = settings.checkpointing == "full"
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
        "t": embedding_matrices(tied_embeddings=shape.tied_embeddings),
        "h": shape.mlp_projections,
        **_small_counts(shape),
        "r": settings.rank,
        "B": settings.micro_batch,
        "S": settings.sequence_length,
        "G": settings.gradient_accumulation_steps,
        "N": settings.replicas,
        "c": NF4_DOUBLE_QUANTIZED_BYTES,
        "m": MASTER_BYTES[chosen.trainable_precision],
        "g": GRADIENT_BYTES[chosen.trainable_precision],
        "o": OPTIMIZER_BYTES[chosen.optimizer],
        "chi": int(settings.attention_kernel == "eager"),
        "p": adapted_projections(mlp_targets=mlp_targets, mlp_projections=shape.mlp_projections),
        "ell": live_adapter_layers(num_layers=shape.num_layers, checkpointing=checkpointing),
        "alpha": exact(settings.activation_multiplier),
        "E": exact(settings.extra_allowance),
    }


def _small_counts(shape: Architecture) -> Quantities:
    """What a model has beside its matrices: norm vectors, values of query and key norms and biases of a layer, and the rest."""
    vectors = shape.norm_vectors
    return {
        "w": vectors * norms_per_layer(extra_norms=shape.extra_norms, shared_norm=shape.shared_norm),
        "epsilon": query_key_norm_parameters(
            head_dim=shape.head_dim,
            query_width=shape.query_width,
            kv_width=shape.kv_width,
            query_key_norms=shape.query_key_norms,
            wide_query_key_norms=shape.wide_query_key_norms,
            norm_vectors=vectors,
        ),
        "b": layer_bias_parameters(
            hidden_size=shape.hidden_size,
            query_width=shape.query_width,
            kv_width=shape.kv_width,
            intermediate_size=shape.intermediate_size,
            mlp_projections=shape.mlp_projections,
            query_biases=shape.query_biases,
            output_biases=shape.output_biases,
            mlp_biases=shape.mlp_biases,
        ),
        "f": other_parameters(
            hidden_size=shape.hidden_size,
            vocab_size=shape.vocab_size,
            norm_vectors=vectors,
            learned_positions=shape.learned_positions,
            embedding_norm=shape.embedding_norm,
            head_bias=shape.head_bias,
        ),
    }


def _widths(known: Quantities) -> dict[str, int]:
    """The widths of a layer's linear maps."""
    return {
        "hidden_size": known["H"],
        "query_width": known["Q"],
        "kv_width": known["U"],
        "intermediate_size": known["M"],
    }


def _counts(known: Quantities, settings: Settings) -> Quantities:
    """Parameter counts: linear, all, adapters, trained."""
    shape = settings.architecture
    total = total_parameters(
        num_layers=known["L"],
        **_widths(known),
        vocab_size=known["V"],
        tied_embeddings=shape.tied_embeddings,
        mlp_projections=known["h"],
        norms=known["w"],
        query_key_norms=known["epsilon"],
        biases=known["b"],
        others=known["f"],
    )
    adapters = 0
    if settings.trains_adapters:
        mlp_targets = set(ALL_LINEAR) <= set(settings.targets)
        adapters = adapter_parameters(
            rank=known["r"],
            num_layers=known["L"],
            **_widths(known),
            mlp_projections=known["h"],
            mlp_targets=mlp_targets,
        )
    return {
        "D": linear_parameters(num_layers=known["L"], **_widths(known), mlp_projections=known["h"]),
        "P": total,
        "R": adapters,
        "P_t": adapters if settings.trains_adapters else total,
    }


def _model_state(known: Quantities, settings: Settings) -> Quantities:
    """Bytes of weights and training state, which do not depend on the batch."""
    quantized = settings.method == "qlora"
    trainable = known["P_t"]
    return {
        "base_weights": base_weights_bytes(parameters=known["P"], linear=known["D"], quantized=quantized),
        "adapters": adapter_weights_bytes(adapters=known["R"]),
        "master_weights": training_state_bytes(trainable=trainable, bytes_per_parameter=known["m"]),
        "gradients": training_state_bytes(trainable=trainable, bytes_per_parameter=known["g"]),
        "optimizer_states": training_state_bytes(trainable=trainable, bytes_per_parameter=known["o"]),
    }


def _activations(known: Quantities, settings: Settings) -> tuple[int, int, int, int]:
    """Bytes before the multiplier: what one layer keeps, all that is saved, the active layer, inside the adapters."""
    batch = {"micro_batch": known["B"], "sequence_length": known["S"]}
    checkpointing = settings.checkpointing == "full"
    layer = layer_activation_bytes(
        **batch,
        hidden_size=known["H"],
        num_attention_heads=known["n"],
        stores_scores=settings.attention_kernel == "eager",
    )
    saved = saved_activations_bytes(
        **batch,
        hidden_size=known["H"],
        num_layers=known["L"],
        layer_activation=layer,
        checkpointing=checkpointing,
    )
    active = active_layer_bytes(layer_activation=layer, checkpointing=checkpointing)
    inner = 0
    if settings.trains_adapters:
        inner = adapter_activations_bytes(**batch, rank=known["r"], projections=known["p"], layers=known["ell"])
    return layer, saved, active, inner


def _sums(amounts: Quantities) -> Quantities:
    """The sums the formula gives a symbol to, before rounding."""
    return {
        "W": amounts["base_weights"] + amounts["adapters"],
        "T": amounts["master_weights"] + amounts["gradients"] + amounts["optimizer_states"],
        "X": amounts["saved_activations"] + amounts["active_layer"] + amounts["adapter_activations"],
        "Z": amounts["logits"],
        "J": amounts["dequantization"],
    }
