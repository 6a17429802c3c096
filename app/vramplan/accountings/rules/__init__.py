"""Bytes per parameter: what people know by heart, with what ZeRO divides. Nothing for logits, workspaces, the allocator or the CUDA context.

Symbols: P parameters, R adapter parameters, B micro_batch, S sequence_length, H hidden_size, L num_layers, n
num_attention_heads, k num_kv_heads, d head_dim, N GPUs of one copy. Each function returns bytes, exact; `estimate` rounds
every term up to a whole byte once.
"""

from fractions import Fraction

from vramplan.accountings.rules.formulas import (
    CACHED_BYTES,
    DIVIDED,
    HALF,
    MIXED,
    MOMENTS,
    NOTHING,
    QUANTIZED_BYTES,
    SERVED_BYTES,
    SINGLE,
    Copies,
    activations_bytes,
    cache_bytes,
    states_bytes,
    weights_bytes,
)
from vramplan.architecture import NO_MIXER
from vramplan.constants import BF16_BYTES
from vramplan.errors import NotExpressible
from vramplan.fields import label_of
from vramplan.kinds import INFERENCE
from vramplan.ledger import Estimate, Frame, Moment, Parameters, Term
from vramplan.parameters import adapter_parameters, base_parameters
from vramplan.policy import policy
from vramplan.settings import Settings
from vramplan.units import whole_bytes_up

CONTEXT_IS_BESIDE = False
"""The rules are compared with what is printed on the box, without a CUDA context."""

NO_PAIRS = "The byte rules count next-token training only, and have no pairs and no reference."
"""Why there is no number for a step on pairs."""

EVERYTHING_AT_ONCE = "everything at once"
"""The one moment of an accounting that assumes every allocation is alive at the same time."""


def copies_of(settings: Settings) -> Copies:
    """Which copies exist of a trained parameter. What the stack would decide is left to the rule: mixed precision."""
    if settings.autocast == "off" and settings.trainable_precision != "pure-bf16":
        usual = SINGLE
    else:
        usual = HALF if settings.trainable_precision == "pure-bf16" and settings.method != "pretraining" else MIXED
    moments = MOMENTS[policy(settings).optimizer]
    return usual if moments is None else Copies(usual.weight, usual.gradient, usual.master, moments)


Quantities = dict[str, int | Fraction]
"""Amounts by the symbol they belong to."""

TERMS = {"W": "base_weights", "A": "adapters", "M": "master_weights", "G": "gradients", "O": "optimizer_states", "X": "saved_activations", "Y": "kv_cache"}
"""Rows of the ledger by symbol, in order."""

OF_TRAINING, OF_INFERENCE = "WAMGOX", "WY"
"""Symbols of the rows that a model has while it is trained, and while it answers."""


def estimate(settings: Settings) -> Estimate:
    """The byte rules applied to a run. Raises NotExpressible for what no rule is about."""
    shape = settings.architecture
    if shape.mixer != NO_MIXER:
        raise NotExpressible("model", "The byte rules count attention in every layer. Choose the accounting “Training step”.")
    if settings.serves:
        known = _of_inference(settings, _symbols(settings))
    else:
        _must_be_countable(settings)
        known = _of_training(settings, _symbols(settings))
    rows = OF_INFERENCE if settings.serves else OF_TRAINING
    terms = tuple(Term(TERMS[symbol], whole_bytes_up(known[symbol])) for symbol in rows)
    return Estimate("rules", settings, Parameters(known["P"], known["P_t"]), (Moment(EVERYTHING_AT_ONCE, terms),), known)


def choices(settings: Settings) -> dict[str, str]:
    """What the rules make of the settings that choose between the forms of their formulas."""
    return {
        "task": INFERENCE if settings.serves else "training",
        "trained": "adapters" if settings.trains_adapters else "all",
        "checkpointing": settings.checkpointing,
        "attention": "eager" if settings.attention_kernel == "eager" else "efficient",
    }


def _symbols(settings: Settings) -> Quantities:
    """The symbols that come straight from the settings and the constants."""
    shape, copies = settings.architecture, NOTHING if settings.serves else copies_of(settings)
    divided = DIVIDED.get(settings.sharding, DIVIDED["zero3"]) if settings.divides_states else ()
    trained = settings.trains_adapters and not settings.serves
    parts = settings.sharded_over if settings.divides_states else 1
    frozen = SERVED_BYTES[settings.served_weights] if settings.serves else _frozen_bytes(settings)
    return {
        "H": shape.hidden_size,
        "L": shape.num_layers,
        "n": shape.num_attention_heads,
        "k": shape.num_kv_heads,
        "d": shape.head_dim,
        "B": settings.micro_batch,
        "S": settings.sequence_length,
        "P": base_parameters(shape),
        "R": adapter_parameters(shape, targets=settings.targets, rank=settings.rank) if trained else 0,
        "f": frozen,
        "w": copies.weight,
        "g": copies.gradient,
        "m": copies.master,
        "o": copies.moments,
        "v": CACHED_BYTES[settings.kv_cache],
        "N_w": parts if "base_weights" in divided else 1,
        "N_g": parts if "gradients" in divided else 1,
        "N_o": parts if "optimizer_states" in divided else 1,
    }


def _frozen_bytes(settings: Settings) -> int | Fraction:
    """Bytes per weight of the base model under adapters."""
    return QUANTIZED_BYTES[settings.quantization] if settings.method == "qlora" else BF16_BYTES


def _of_training(settings: Settings, known: Quantities) -> Quantities:
    """What a model that is trained takes, row by row."""
    adapters = settings.trains_adapters
    trained = known["R"] if adapters else known["P"]
    return known | {
        "P_t": trained,
        "W": weights_bytes(parameters=known["P"], per_parameter=known["f"] if adapters else known["w"], gpus=known["N_w"]),
        "A": states_bytes(parameters=known["R"], per_parameter=known["w"], gpus=known["N_w"]),
        "M": states_bytes(parameters=trained, per_parameter=known["m"], gpus=known["N_o"]),
        "G": states_bytes(parameters=trained, per_parameter=known["g"], gpus=known["N_g"]),
        "O": states_bytes(parameters=trained, per_parameter=known["o"], gpus=known["N_o"]),
        "X": activations_bytes(
            micro_batch=known["B"],
            sequence_length=known["S"],
            hidden_size=known["H"],
            num_layers=known["L"],
            num_attention_heads=known["n"],
            checkpointing=settings.checkpointing == "full",
            stores_scores=settings.attention_kernel == "eager",
        ),
        "Y": 0,
    }


def _of_inference(settings: Settings, known: Quantities) -> Quantities:
    """Weights, and keys and values of every sequence at its full length."""
    if settings.architecture.kv_lora_rank:
        raise NotExpressible("model", "The byte rules count whole keys and values in the cache; latent attention (MLA) keeps a narrow tensor instead. Count the model’s training, or choose another model.")
    cache = cache_bytes(
        num_layers=known["L"], num_kv_heads=known["k"], head_dim=known["d"], tokens=known["B"] * known["S"], per_value=known["v"]
    )
    weights = weights_bytes(parameters=known["P"], per_parameter=known["f"], gpus=1)
    return known | dict.fromkeys("AMGOX", 0) | {"P_t": 0, "W": weights, "Y": cache}


def frames(settings: Settings, *, most_layers: int) -> tuple[Frame, ...]:
    """None: raises NotExpressible, for the rules do not know when memory is held."""
    raise NotExpressible("accounting", "The byte rules add everything up as if it were alive at once, so they have no timeline; choose the training step.")


def peak_bytes(settings: Settings) -> int:
    """The sum of all terms alone."""
    return estimate(settings).peak_bytes


def fits(settings: Settings) -> bool:
    """Whether the sum of all terms stays within the budget."""
    return estimate(settings).fits


def _must_be_countable(settings: Settings) -> None:
    """Say which setting no rule is about."""
    if settings.trains_adapters and settings.architecture.kv_lora_rank:
        raise NotExpressible("method", "The byte rules count no adapters on latent attention (MLA); choose full fine-tuning, or the training step.")
    if settings.checkpointing == "offloaded":
        raise NotExpressible("checkpointing", "The byte rules count checkpoints on the GPU only; choose On or Off.")
    optimizer = policy(settings).optimizer
    if optimizer not in MOMENTS:
        raise NotExpressible("optimizer", f"The byte rules count AdamW and 8-bit AdamW only, not {label_of('optimizer', optimizer)}.")
