"""Unsloth Studio's estimate: weights, adapters, optimizer, gradients and activations with their floors, and a CUDA overhead.

Two revisions: the document of March 2026, and what its code had become by August 2026. Everything is alive at once. Source:
Unsloth Studio, VRAM estimation for training (March 2026), sections 1 to 7; unslothai/unsloth, commit 007a781c,
studio/backend/utils/hardware/vram_estimation.py.
"""

from fractions import Fraction

from vramplan.accountings.unsloth.formulas import (
    CUDA_OVERHEAD_BYTES,
    DOUBLE_QUANTIZED_FACTOR,
    LAYERS_ALIVE,
    NF4_FACTOR,
    activation_floor_bytes,
    adapter_bytes,
    adapters_gradient_floor_bytes,
    attention_values,
    attention_workspace_bytes,
    gradient_bytes,
    gradient_floor_bytes,
    layer_activation_bytes,
    mlp_values,
    optimizer_bytes,
    pair_values,
    shared_values,
    unquantized_values,
    weights_bytes,
    width_of_keys,
)
from vramplan.accountings.unsloth.names import AUGUST, CHECKPOINTING, EMBEDDINGS, OPTIMIZER_BYTES, OwnName, optimizer_name, own_names
from vramplan.architecture import NO_MIXER, Architecture, embedding_matrices
from vramplan.errors import NotExpressible
from vramplan.fields import label_of
from vramplan.kinds import DIVIDING
from vramplan.ledger import Estimate, Frame, Moment, Parameters, Term
from vramplan.policy import policy
from vramplan.settings import Settings
from vramplan.targets import ALL_LINEAR, ATTENTION
from vramplan.units import exact, whole_bytes_up

__all__ = ["CONTEXT_IS_BESIDE", "NO_PAIRS", "OwnName", "choices", "estimate", "fits", "frames", "own_names", "peak_bytes"]

CONTEXT_IS_BESIDE = False
"""The CUDA context is in the row of its overhead."""

NO_PAIRS = "Unsloth Studio’s estimate counts next-token training only, and has no pairs and no reference."
"""Why there is no number for a step on pairs."""

EVERYTHING_AT_ONCE = "everything at once"
"""The one moment of an accounting that assumes every allocation is alive at the same time."""

METHODS = ("full", "lora", "qlora")
"""Training methods that it knows."""

QUANTIZATIONS = {"nf4": NF4_FACTOR, "nf4-double": DOUBLE_QUANTIZED_FACTOR}
"""How much smaller each quantised base is that it knows; the document of March 2026 does not tell them apart."""

Quantities = dict[str, int | Fraction]
"""Amounts by the symbol they belong to."""


def estimate(settings: Settings) -> Estimate:
    """Its estimate of one run. Raises NotExpressible when it cannot count a setting."""
    _must_be_countable(settings)
    known = _symbols(settings)
    known |= _values(known, settings)
    known |= _state(known)
    known |= _activations(known, settings)
    known |= _floors(known, settings)
    parameters = Parameters(known["D"] + known["N"], known["P_t"])
    return Estimate("unsloth", settings, parameters, (Moment(EVERYTHING_AT_ONCE, _terms(known)),), known)


def frames(settings: Settings, *, most_layers: int) -> tuple[Frame, ...]:
    """None: raises NotExpressible, for this accounting does not know when memory is held."""
    raise NotExpressible("accounting", "Unsloth Studio’s estimate adds everything up as if it were alive at once, so it has no timeline; choose the training step.")


def peak_bytes(settings: Settings) -> int:
    """The sum of all terms alone."""
    return estimate(settings).peak_bytes


def fits(settings: Settings) -> bool:
    """Whether the sum of all terms stays within the budget."""
    return estimate(settings).fits


def choices(settings: Settings) -> dict[str, str]:
    """What the estimate makes of the settings that choose between the forms of its formulas."""
    return {
        "revision": settings.unsloth_revision,
        "method": settings.method,
        "trained": "adapters" if settings.trains_adapters else "all",
        "checkpointing": CHECKPOINTING[settings.checkpointing],
        "attention": "eager" if settings.attention_kernel == "eager" and settings.unsloth_revision == AUGUST else "fused",
        "layers": "experts" if settings.architecture.num_experts > 1 else "dense",
        "mixed": "yes" if settings.architecture.num_experts > 1 and settings.architecture.dense_layers else "no",
    }


def _terms(known: Quantities) -> tuple[Term, ...]:
    """The rows, in order; what a floor adds is a row of its own."""
    gradients, activations = whole_bytes_up(known["G_0"]), whole_bytes_up(known["X_0"])
    return (
        Term("base_weights", whole_bytes_up(known["W"])),
        Term("adapters", adapter_bytes(adapters=known["R"])),
        Term("optimizer_states", known["O"]),
        Term("gradients", gradients),
        Term("gradient_floor", whole_bytes_up(known["G"]) - gradients),
        Term("saved_activations", activations),
        Term("activation_floor", whole_bytes_up(known["X"]) - activations),
        Term("fixed_allowance", whole_bytes_up(known["U"])),
    )


def _must_be_countable(settings: Settings) -> None:
    """Say which setting its document, or its code, has no term for."""
    shape, revision = settings.architecture, settings.unsloth_revision
    if shape.plain_mlp:
        raise NotExpressible("model", "Unsloth Studio’s estimate counts a gated MLP of three maps, and this model’s has two. The training step counts this model, against one card.")
    if shape.kv_lora_rank or shape.mixer != NO_MIXER or shape.attention_gate:
        raise NotExpressible("model", "Unsloth Studio’s estimate is counted here with four maps of attention in every layer, which this model has not. The training step counts this model, against one card.")
    if settings.method not in METHODS:
        came = label_of("method", settings.method)
        raise NotExpressible("method", f"Unsloth Studio’s estimate counts full fine-tuning, LoRA and QLoRA, all in 16 bits, not {came}. Choose one of these.")
    if shape.num_experts and revision != AUGUST and (shape.shared_expert_intermediate_size or shape.dense_layers):
        raise NotExpressible("model", "Unsloth Studio’s document gives every layer the same experts, none of them shared. Choose its revision 2026-08.")
    if settings.sharding in DIVIDING:
        raise NotExpressible("sharding", f"Unsloth Studio’s estimate divides no states between GPUs, as {label_of('sharding', settings.sharding)} does. Choose no sharding, or the accounting “Training step”.")
    if settings.trains_adapters and revision != AUGUST and set(settings.targets) & set(EMBEDDINGS):
        raise NotExpressible("adapter_targets", "Unsloth Studio’s document counts adapters on q, k, v, o, gate, up and down. Name these, or choose its revision 2026-08.")
    if settings.method == "qlora" and settings.quantization not in QUANTIZATIONS:
        raise NotExpressible("quantization", f"Unsloth Studio’s estimate counts a base in 4-bit NF4 only, not in {label_of('quantization', settings.quantization)}. Choose NF4, or the accounting “Training step”.")
    if not optimizer_name(settings):
        known = ", ".join(OPTIMIZER_BYTES[revision])
        came = label_of("optimizer", policy(settings).optimizer)
        raise NotExpressible("optimizer", f"Unsloth Studio’s estimate, revision {revision}, has bytes for {known} only, not for {came}.")


def _symbols(settings: Settings) -> Quantities:
    """The symbols that come straight from the settings and the constants."""
    shape, latest = settings.architecture, settings.unsloth_revision == AUGUST
    mixture = shape.num_experts > 1
    sides = {"hidden_size": shape.hidden_size, "num_attention_heads": shape.num_attention_heads}
    multiplier = LAYERS_ALIVE[CHECKPOINTING[settings.checkpointing]][1 if settings.trains_adapters else 0]
    has_experts = mixture if latest else shape.num_experts > 0
    width = shape.expert_intermediate_size if has_experts else shape.intermediate_size
    shared = shape.shared_expert_intermediate_size if mixture else 0
    return {
        "H": shape.hidden_size,
        "L": shape.num_layers,
        "n": shape.num_attention_heads,
        "k": shape.num_kv_heads,
        "d": shape.head_dim,
        "V": shape.vocab_size,
        "t": embedding_matrices(tied_embeddings=shape.tied_embeddings),
        "Q": shape.query_width if latest else shape.hidden_size,
        "K": shape.kv_width if latest else width_of_keys(**sides, num_kv_heads=shape.num_kv_heads),
        "M": width,
        "E": max(1, shape.num_experts),
        "M_s": shared,
        "j": int(shape.shared_expert_gate and mixture),
        "M_a": width * shape.experts_per_token + shared if latest and mixture else width,
        "I": shape.intermediate_size,
        "L_m": shape.num_layers - shape.dense_layers if mixture else shape.num_layers,
        "r": settings.rank,
        "B": settings.micro_batch,
        "S": settings.sequence_length,
        "q": _factor(settings),
        "o": OPTIMIZER_BYTES[settings.unsloth_revision][optimizer_name(settings)],
        "z": Fraction(shape.num_layers) if multiplier is None else multiplier,
        "phi": Fraction(exact(settings.floor_fraction)),
        "U": CUDA_OVERHEAD_BYTES,
        **_targets(settings, shape),
    }


def _factor(settings: Settings) -> Fraction:
    """How much smaller the quantised base is: 1 where it is not."""
    if settings.method != "qlora":
        return Fraction(1)
    return QUANTIZATIONS[settings.quantization] if settings.unsloth_revision == AUGUST else NF4_FACTOR


def _targets(settings: Settings, shape: Architecture) -> Quantities:
    """Maps of attention and of an MLP that get an adapter, experts with one, and matrices (V, H) that are trained whole.

    Since revision 2026-08 adapters on all linear maps leave the routed experts out, and where nothing but the embedding or the
    head is named the seven maps get one all the same.
    """
    embeddings = len(set(settings.targets) & set(EMBEDDINGS))
    maps = set(settings.targets) - set(EMBEDDINGS) or set(ALL_LINEAR)
    leaves_experts_out = shape.num_experts > 1 and settings.unsloth_revision == AUGUST and settings.adapter_targets == "all-linear"
    return {
        "a_q": len(maps & {"q", "o"}),
        "a_k": len(maps & {"k", "v"}),
        "a_m": len(maps - set(ATTENTION)),
        "E_r": 0 if leaves_experts_out else max(1, shape.num_experts),
        "E_s": int(shape.num_experts > 1 and shape.shared_expert_intermediate_size > 0),
        "e": min(embeddings, 1) if shape.tied_embeddings else embeddings,
    }


def _values(known: Quantities, settings: Settings) -> Quantities:
    """Values of a layer, of what is quantised and what is not, of the adapters, and of what is trained."""
    attention = attention_values(hidden_size=known["H"], query_width=known["Q"], key_width=known["K"])
    shared = shared_values(hidden_size=known["H"], shared_width=known["M_s"], gated=bool(known["j"]))
    mlps = mlp_values(hidden_size=known["H"], mlp_width=known["M"], experts=known["E"]) + shared
    others = known["L"] - known["L_m"]
    quantizable = attention * known["L"] + mlps * known["L_m"] + others * mlp_values(hidden_size=known["H"], mlp_width=known["I"], experts=1)
    rest = unquantized_values(hidden_size=known["H"], num_layers=known["L"], vocab_size=known["V"], matrices=known["t"])
    adapters = _adapters(known) if settings.trains_adapters else 0
    return {"A": attention, "F": mlps, "D": quantizable, "N": rest, "R": adapters, "P_t": adapters if settings.trains_adapters else quantizable + rest}


def _adapters(known: Quantities) -> int:
    """Values of all adapters, and of the matrices that are trained whole beside them."""
    def pairs(count: int, outputs: int) -> int:
        return count * pair_values(rank=known["r"], inputs=known["H"], outputs=outputs)

    attention = pairs(known["a_q"], known["Q"]) + pairs(known["a_k"], known["K"])
    mlps = known["E_r"] * pairs(known["a_m"], known["M"]) + known["E_s"] * pairs(known["a_m"], known["M_s"])
    others = known["L"] - known["L_m"]
    whole = known["e"] * known["V"] * known["H"]
    return attention * known["L"] + mlps * known["L_m"] + pairs(known["a_m"], known["I"]) * others + whole


def _state(known: Quantities) -> Quantities:
    """Bytes that do not depend on the batch."""
    return {
        "W": weights_bytes(quantizable=known["D"], others=known["N"], factor=known["q"]),
        "O": optimizer_bytes(trainable=known["P_t"], bytes_per_parameter=known["o"]),
        "G_0": gradient_bytes(trainable=known["P_t"]),
    }


def _activations(known: Quantities, settings: Settings) -> Quantities:
    """Bytes of a layer's activations, and of all that are alive, before the floor."""
    batch = {"micro_batch": known["B"], "sequence_length": known["S"]}
    widths = {"query_width": known["Q"], "key_width": known["K"]}
    others = known["L"] - known["L_m"]
    layer = layer_activation_bytes(**batch, **widths, mlp_width=known["M_a"])
    other = layer_activation_bytes(**batch, **widths, mlp_width=known["I"]) if others else Fraction(0)
    alive = known["L_m"] * layer + others * other if settings.checkpointing == "none" else known["z"] * max(layer, other)
    scores = Fraction(0)
    if settings.attention_kernel == "eager" and settings.unsloth_revision == AUGUST:
        scores = attention_workspace_bytes(**batch, num_attention_heads=known["n"], layers=known["z"])
    return {"X_m": layer, "X_d": other, "Y": scores, "X_0": max(alive, scores)}


def _floors(known: Quantities, settings: Settings) -> Quantities:
    """Gradients and activations, not below their floors."""
    share = {"weights": known["W"], "fraction": known["phi"]}
    if settings.unsloth_revision != AUGUST:
        floor = activation_floor_bytes(**share, micro_batch=known["B"])
        return {"G": max(Fraction(known["G_0"]), gradient_floor_bytes(**share)), "X": max(known["X_0"], floor)}
    floor = gradient_floor_bytes(**share)
    if settings.trains_adapters:
        floor = adapters_gradient_floor_bytes(**share, activations=known["X_0"], optimizer=known["O"])
    return {"G": max(Fraction(known["G_0"]), floor), "X": known["X_0"]}
