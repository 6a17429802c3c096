"""The one table of settings: what each may be, how it is named to people, and when it applies.

Parsing, checking, the form, the flags and the keys of a link all come from this table.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from vramplan.catalogue import CUSTOM, gpu_classes, presets
from vramplan.constants import FIXED_ALLOWANCE_BYTES
from vramplan.units import GIB, UNIT_LABELS, convert_amount, count_text

MAX_CUSTOM_SEQUENCE_LENGTH = 131_072
"""Longest sequence a custom decoder is estimated for, in tokens: that of the Llama presets."""

MIN_BUDGET_GIB, MAX_BUDGET_GIB = 1, 2_048
"""Accepted custom budget per GPU, in GiB."""


@dataclass(frozen=True)
class Option:
    """One choice of a setting: its value in links and flags, its label, and a hint where the label does not say enough."""

    value: str
    label: str
    hint: str = ""


@dataclass(frozen=True)
class Choice:
    """A setting that takes one of a few values."""

    options: tuple[Option, ...]


@dataclass(frozen=True)
class WholeNumber:
    """A setting that takes a whole number in a closed range; `model_caps`: the model's own limit may be lower."""

    minimum: int
    maximum: int
    unit: str = ""
    model_caps: bool = False


@dataclass(frozen=True)
class ExactDecimal:
    """A setting that takes a plain decimal, kept exactly as typed, in a closed range.

    The range is in `unit`, or in GiB where `unit_field` names the setting that holds the unit it is typed in.
    """

    minimum: str
    maximum: str
    unit: str = ""
    unit_field: str = ""


Kind = Choice | WholeNumber | ExactDecimal


def always(values: Mapping[str, object]) -> bool:
    """Applies whatever else is chosen."""
    return True


def with_custom_model(values: Mapping[str, object]) -> bool:
    """Applies when the dimensions are typed in."""
    return values.get("model") == CUSTOM


def with_adapters(values: Mapping[str, object]) -> bool:
    """Applies when low-rank adapters are trained."""
    return values.get("method") in ("lora", "qlora")


def with_custom_budget(values: Mapping[str, object]) -> bool:
    """Applies when the memory budget is typed in."""
    return values.get("gpu") == CUSTOM


@dataclass(frozen=True)
class Field:
    """One setting.

    name: key in Python, links and (with dashes) flags. section: group it is shown in. applies: from the values chosen
    so far. governed_by: the setting that decides whether it applies. condition: the same in words. kept: a valid value
    is kept while it does not apply, because a comparison still uses it.
    """

    name: str
    kind: Kind
    label: str
    hint: str
    section: str
    applies: Callable[[Mapping[str, object]], bool] = always
    governed_by: str = ""
    condition: str = ""
    kept: bool = False


SECTIONS = {
    "model": "Base model",
    "method": "Training",
    "gpu": "Hardware",
    "batch": "Batch and sequence",
    "memory": "Memory savers",
    "advanced": "Advanced",
}
"""Groups of settings, in the order they are shown."""


def _model_options() -> tuple[Option, ...]:
    known = tuple(Option(preset.name, preset.label) for preset in presets().values())
    return known + (Option(CUSTOM, "Custom dense decoder"),)


def _gpu_options() -> tuple[Option, ...]:
    classes = (
        Option(gpu.name, f"{gpu.capacity_gib} GiB", "e.g. " + ", ".join(gpu.cards)) for gpu in gpu_classes().values()
    )
    return (*classes, Option(CUSTOM, "Custom budget"))


def _dimension(name: str, maximum: int, label: str, hint: str) -> Field:
    kind = WholeNumber(1, maximum)
    return Field(name, kind, label, hint, "model", applies=with_custom_model, governed_by="model", condition="only with model=custom")


YES_NO = Choice((Option("true", "Yes"), Option("false", "No")))

FIELDS: tuple[Field, ...] = (
    Field(
        "accounting",
        Choice((Option("planning", "Planning formula"),)),
        "Accounting",
        "The way memory is counted.",
        "advanced",
    ),
    Field("model", Choice(_model_options()), "Model", "A preset, or your own dimensions.", "model"),
    _dimension("hidden_size", 1_048_576, "Hidden size", "Width of the residual stream: hidden_size in config.json."),
    _dimension("num_layers", 1_024, "Layers", "Decoder blocks: num_hidden_layers."),
    _dimension("num_attention_heads", 4_096, "Attention heads", "Query heads: num_attention_heads."),
    _dimension("num_kv_heads", 4_096, "Key/value heads", "num_key_value_heads; must divide the attention heads."),
    _dimension("head_dim", 4_096, "Head dimension", "Width of one head; not always hidden size ÷ heads."),
    _dimension("intermediate_size", 1_048_576, "Intermediate size", "Inner width of the gated MLP: intermediate_size."),
    _dimension("vocab_size", 4_194_304, "Vocabulary size", "Rows of the embedding table: vocab_size."),
    Field(
        "tied_embeddings",
        YES_NO,
        "Tied embeddings",
        "Yes if the output head is the embedding table itself: tie_word_embeddings.",
        "model",
        applies=with_custom_model,
        governed_by="model",
        condition="only with model=custom",
    ),
    Field(
        "method",
        Choice(
            (
                Option("full", "Full", "all weights"),
                Option("lora", "LoRA", "adapters, 16-bit base"),
                Option("qlora", "QLoRA", "adapters, 4-bit base"),
            )
        ),
        "Training method",
        "What is trained, and how the frozen base is stored.",
        "method",
    ),
    Field(
        "rank",
        WholeNumber(1, 256),
        "Adapter rank",
        "Inner width r of each adapter pair.",
        "method",
        applies=with_adapters,
        governed_by="method",
        condition="only with method=lora or method=qlora",
        kept=True,
    ),
    Field(
        "adapter_targets",
        Choice(
            (
                Option("attention", "Attention only", "q, k, v, o"),
                Option("all-linear", "All linear", "q, k, v, o, gate, up, down"),
            )
        ),
        "Adapter targets",
        "Projections that get an adapter.",
        "method",
        applies=with_adapters,
        governed_by="method",
        condition="only with method=lora or method=qlora",
        kept=True,
    ),
    Field(
        "gpu",
        Choice(_gpu_options()),
        "GPU memory class",
        "Nominal capacity of one card. A driver reports a little less.",
        "gpu",
    ),
    Field(
        "budget",
        ExactDecimal(str(MIN_BUDGET_GIB), str(MAX_BUDGET_GIB), unit_field="budget_unit"),
        "Budget per GPU",
        "Memory you can use on each card.",
        "gpu",
        applies=with_custom_budget,
        governed_by="gpu",
        condition="only with gpu=custom",
    ),
    Field(
        "budget_unit",
        Choice((Option("gib", UNIT_LABELS["gib"], "2³⁰ bytes"), Option("gb", UNIT_LABELS["gb"], "10⁹ bytes"))),
        "Budget unit",
        "Changing the unit keeps the bytes.",
        "gpu",
        applies=with_custom_budget,
        governed_by="gpu",
        condition="only with gpu=custom",
    ),
    Field(
        "replicas",
        WholeNumber(1, 128, "GPUs"),
        "GPU replicas",
        "Data-parallel copies; memory per GPU stays the same.",
        "gpu",
    ),
    Field(
        "sequence_length",
        WholeNumber(1, MAX_CUSTOM_SEQUENCE_LENGTH, "tokens", model_caps=True),
        "Sequence length",
        "Tokens in one row of a batch, padding included.",
        "batch",
    ),
    Field(
        "micro_batch",
        WholeNumber(1, 1_024, "sequences"),
        "Micro-batch per GPU",
        "Sequences in one forward pass: per_device_train_batch_size.",
        "batch",
    ),
    Field(
        "gradient_accumulation_steps",
        WholeNumber(1, 1_024, "steps"),
        "Gradient accumulation steps",
        "Micro-batches per optimizer update. Adds no memory in this estimate.",
        "advanced",
    ),
    Field(
        "trainable_precision",
        Choice(
            (
                Option("mixed-bf16", "Mixed BF16", "FP32 master weights and gradients"),
                Option("pure-bf16", "Pure BF16", "BF16 gradients, no master weights"),
            )
        ),
        "Trainable precision",
        "Which copies exist of each trained weight and its gradient.",
        "advanced",
    ),
    Field(
        "optimizer",
        Choice((Option("adamw", "AdamW", "FP32 moments"), Option("adamw-8bit", "8-bit AdamW", "8-bit moments"))),
        "Optimizer",
        "Which states are kept for each trained weight.",
        "advanced",
    ),
    Field(
        "checkpointing",
        Choice((Option("full", "On", "keep layer inputs, recompute the rest"), Option("none", "Off", "keep everything"))),
        "Gradient checkpointing",
        "Saves activations at the price of a second forward pass.",
        "memory",
    ),
    Field(
        "attention_kernel",
        Choice(
            (
                Option("efficient", "Memory-efficient", "FlashAttention, SDPA: no score matrix is stored"),
                Option("eager", "Eager", "stores scores for every pair of tokens"),
            )
        ),
        "Attention kernel",
        "What the run really uses, not what was asked for.",
        "memory",
    ),
    Field(
        "activation_multiplier",
        ExactDecimal("0.25", "4"),
        "Activation multiplier",
        "Scales saved and active activations, not the logits. Set it from a measured run.",
        "advanced",
    ),
    Field(
        "extra_allowance",
        ExactDecimal("0", "128", "GiB"),
        "Extra allowance",
        f"On top of the fixed {FIXED_ALLOWANCE_BYTES // GIB} GiB, for whatever else your measured runs show.",
        "advanced",
    ),
)

BY_NAME = {field.name: field for field in FIELDS}


def applying(values: Mapping[str, object]) -> set[str]:
    """Names of the fields that apply, given the values chosen."""
    return {field.name for field in FIELDS if field.applies(values)}


def max_sequence_length(values: Mapping[str, object]) -> int:
    """Longest sequence length for the chosen model, in tokens."""
    preset = presets().get(str(values.get("model")))
    return preset.max_sequence_length if preset else MAX_CUSTOM_SEQUENCE_LENGTH


def limits(field: Field, values: Mapping[str, object]) -> tuple[int, int]:
    """Smallest and largest whole number a WholeNumber field takes, given the other values."""
    maximum = max_sequence_length(values) if field.kind.model_caps else field.kind.maximum
    return field.kind.minimum, maximum


def decimal_limits(field: Field, values: Mapping[str, object]) -> tuple[Decimal, Decimal, str]:
    """Smallest and largest decimal an ExactDecimal field takes, and their unit, given the other values."""
    low, high, unit = Decimal(field.kind.minimum), Decimal(field.kind.maximum), field.kind.unit
    if not field.kind.unit_field:
        return low, high, unit
    typed_in = values.get(field.kind.unit_field)
    typed_in = typed_in if typed_in in UNIT_LABELS else "gib"
    low, high = (convert_amount(amount=limit, from_unit="gib", to_unit=typed_in) for limit in (low, high))
    return low, high, UNIT_LABELS[typed_in]


def range_text(field: Field, values: Mapping[str, object]) -> str:
    """What a number field takes, in short: '1 to 131,072 tokens'."""
    if isinstance(field.kind, WholeNumber):
        minimum, maximum = limits(field, values)
        return f"{count_text(minimum)} to {count_text(maximum)} {field.kind.unit}".strip()
    low, high, unit = decimal_limits(field, values)
    return f"{low:,f} to {high:,f} {unit}".strip()
