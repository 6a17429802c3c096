"""One fine-tuning run: every setting, typed and valid, and the facts that follow from them."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal

from vramplan import units
from vramplan.architecture import Architecture
from vramplan.catalogue import CUSTOM, DEFAULT_CONTEXT_BYTES, DIMENSIONS, TRAITS, cards, defaults, gpu_classes, presets
from vramplan.checks import MAX_TYPED_LENGTH, Checked, Value, check, converted_budget
from vramplan.errors import SettingsError
from vramplan.fields import BY_NAME, FIELDS
from vramplan.kinds import WHOLE_MODEL, serving, with_divided_states
from vramplan.limits import max_sequence_length
from vramplan.stacks import stacks
from vramplan.targets import attention_maps, mixer_maps, named_parts


TOO_LARGE = 10**MAX_TYPED_LENGTH
"""A whole number that no setting takes, and that Python may refuse to write out."""


ON_PAIRS = ("dpo", "reward")
"""Objectives whose micro-batch counts pairs."""


class UnusedSettingWarning(UserWarning):
    """A setting was given that the other settings make meaningless."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A valid fine-tuning run. Every argument is optional; what is left out takes its default.

    Exact decimals (budget, other_processes, lora_dropout, activation_multiplier, extra_allowance, floor_fraction) may be given as str, int, Decimal or float; a float
    counts as the decimal it prints as. Attributes that do not apply are None: dimensions under a model preset, budget
    and budget_unit under a GPU class. What only another method or accounting reads (`rank` under full fine-tuning) stays,
    for comparisons.

    Raises SettingsError with a sentence for every field that cannot be used. Warns with UnusedSettingWarning about a
    setting that does not apply.
    """

    accounting: str | None = None
    stack: str | None = None
    unsloth_revision: str | None = None
    task: str | None = None
    served_weights: str | None = None
    kv_cache: str | None = None
    model: str | None = None
    hidden_size: int | None = None
    num_layers: int | None = None
    num_attention_heads: int | None = None
    num_kv_heads: int | None = None
    head_dim: int | None = None
    intermediate_size: int | None = None
    vocab_size: int | None = None
    tied_embeddings: bool | None = None
    query_key_norms: bool | None = None
    extra_norms: bool | None = None
    query_biases: bool | None = None
    fused_projections: bool | None = None
    scaled_embeddings: bool | None = None
    attention_softcap: bool | None = None
    logit_softcap: bool | None = None
    sliding_window: int | None = None
    plain_mlp: bool | None = None
    norm: str | None = None
    parallel_blocks: bool | None = None
    shared_norm: bool | None = None
    norms_after: bool | None = None
    wide_query_key_norms: bool | None = None
    output_biases: bool | None = None
    mlp_biases: bool | None = None
    head_bias: bool | None = None
    learned_positions: int | None = None
    embedding_norm: bool | None = None
    fused_gate_up: bool | None = None
    activation: str | None = None
    scaled_residual: bool | None = None
    residual_dropout: bool | None = None
    embedding_dropout: bool | None = None
    partial_rotary: bool | None = None
    alibi: bool | None = None
    broadcast_heads: bool | None = None
    sliding_window_pattern: int | None = None
    num_experts: int | None = None
    experts_per_token: int | None = None
    expert_intermediate_size: int | None = None
    shared_expert_intermediate_size: int | None = None
    shared_expert_gate: bool | None = None
    dense_layers: int | None = None
    router: str | None = None
    adapters_skip_experts: bool | None = None
    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None
    v_head_dim: int | None = None
    rotary: str | None = None
    mixer: str | None = None
    attention_layers: str | None = None
    mixer_kernel: int | None = None
    mixer_key_heads: int | None = None
    mixer_value_heads: int | None = None
    mixer_key_dim: int | None = None
    mixer_value_dim: int | None = None
    attention_gate: bool | None = None
    expert_biases: bool | None = None
    attention_sinks: bool | None = None
    objective: str | None = None
    reference: str | None = None
    method: str | None = None
    rank: int | None = None
    adapter_targets: str | list[str] | tuple[str, ...] | None = None
    quantization: str | None = None
    kbit_preparation: str | None = None
    base_precision: str | None = None
    lora_dropout: Decimal | int | float | str | None = None
    gpu: str | int | None = None
    budget: Decimal | int | float | str | None = None
    budget_unit: str | None = None
    replicas: int | None = None
    sharding: str | None = None
    sharded_over: int | None = None
    offload: str | None = None
    other_processes: Decimal | int | float | str | None = None
    sequence_length: int | None = None
    micro_batch: int | None = None
    gradient_accumulation_steps: int | None = None
    trainable_precision: str | None = None
    optimizer: str | None = None
    optimizer_step: str | None = None
    loss: str | None = None
    layer_kernels: str | None = None
    checkpointing: str | None = None
    attention_kernel: str | None = None
    checkpoint_kind: str | None = None
    autocast: str | None = None
    torch_compile: str | None = None
    half_precision: str | None = None
    activation_multiplier: Decimal | int | float | str | None = None
    extra_allowance: Decimal | int | float | str | None = None
    floor_fraction: Decimal | int | float | str | None = None
    measured: str | None = None

    def __post_init__(self) -> None:
        given = {field.name: getattr(self, field.name) for field in FIELDS}
        checked = check({name: as_text(value) for name, value in given.items() if value is not None}, defaults())
        if checked.errors:
            raise SettingsError(checked.errors)
        _warn_unused(checked.unused, checked.unused)
        for field in FIELDS:
            object.__setattr__(self, field.name, checked.values.get(field.name))

    def replace(self, **changes: Value) -> "Settings":
        """The same run with some settings changed. What no longer applies is dropped; what now applies is a default.

        Raises SettingsError when the result is not valid, TypeError for a name that is not a setting; warns with
        UnusedSettingWarning about a change that does not apply.
        """
        changed = {name: as_text(value) for name, value in changes.items()}
        _known(changed)
        checked = check(format_settings(self) | changed, defaults())
        _warn_unused(checked.unused, changes)
        return of_checked(checked)

    def varied(self, **known_values: int | str) -> "Settings":
        """The same run with values that are known to be valid; unlike replace, nothing is checked again.

        For searches and curves, which try many values of one setting.
        """
        return _of({**self.__dict__, **known_values})

    @property
    def architecture(self) -> Architecture:
        """Dimensions of the base model."""
        if self.model == CUSTOM:
            return Architecture(**{name: getattr(self, name) for name in (*DIMENSIONS, *TRAITS)})
        return presets()[self.model].architecture

    @property
    def model_label(self) -> str:
        """The model as people call it."""
        return next(option.label for option in BY_NAME["model"].kind.options if option.value == self.model)

    @property
    def dimensions_source(self) -> str:
        """Where the dimensions come from."""
        return "as entered" if self.model == CUSTOM else presets()[self.model].source

    @property
    def budget_bytes(self) -> int:
        """Whole bytes of memory each GPU has for the run."""
        if self.gpu == CUSTOM:
            return units.budget_bytes(amount=self.budget, unit=self.budget_unit)
        if self.gpu in cards():
            others = units.budget_bytes(amount=self.other_processes, unit="gib")
            return max(0, cards()[self.gpu].total_bytes - others)
        return gpu_classes()[self.gpu].budget_bytes

    @property
    def context_bytes(self) -> int:
        """What a CUDA context takes of the budget before the first tensor."""
        return cards()[self.gpu].context_bytes if self.gpu in cards() else DEFAULT_CONTEXT_BYTES

    @property
    def has_unified_memory(self) -> bool:
        """Whether the GPU shares the machine's memory."""
        return self.gpu in cards() and cards()[self.gpu].unified

    @property
    def targets(self) -> tuple[str, ...]:
        """The linear maps that get an adapter."""
        shape = self.architecture
        attention = attention_maps(q_lora_rank=shape.q_lora_rank, kv_lora_rank=shape.kv_lora_rank)
        return named_parts(self.adapter_targets, attention, mixer_maps(shape.mixer))

    @property
    def max_sequence_length(self) -> int:
        """Longest sequence length the model is estimated for, in tokens."""
        return max_sequence_length({"model": self.model})

    @property
    def serves(self) -> bool:
        """Whether the model answers, and is not trained."""
        return serving({"accounting": self.accounting, "task": self.task})

    @property
    def trains_adapters(self) -> bool:
        """Whether low-rank adapters are trained instead of the base model."""
        return not self.trains_base

    @property
    def trains_base(self) -> bool:
        """Whether every weight of the model is trained."""
        return self.method in WHOLE_MODEL

    @property
    def trains_on_pairs(self) -> bool:
        """Whether a micro-batch counts pairs of a chosen and a rejected row."""
        return self.accounting == "step" and self.objective in ON_PAIRS

    @property
    def example(self) -> str:
        """What a micro-batch counts: a sequence, or a pair of two."""
        return "pair" if self.trains_on_pairs else "sequence"

    @property
    def rows(self) -> int:
        """Sequences that go through the model together. Source: trl 1.16.0, trainer/dpo_trainer.py and reward_trainer.py,
        DataCollatorForPreference: the chosen rows, then the rejected ones."""
        return 2 * self.micro_batch if self.trains_on_pairs else self.micro_batch

    @property
    def effective_batch(self) -> int:
        """Sequences, or pairs, that contribute to one optimizer update, over all GPUs."""
        return self.micro_batch * self.gradient_accumulation_steps * self.gpus

    @property
    def divides_states(self) -> bool:
        """Whether the states of one copy are divided over GPUs."""
        return with_divided_states({"accounting": self.accounting, "sharding": self.sharding})

    @property
    def gpus(self) -> int:
        """All GPUs of the run: those of one copy, times the copies."""
        return self.replicas * self.sharded_over if self.divides_states else self.replicas


def carried_over(texts: Mapping[str, str], *, chosen: str, before: str) -> dict[str, str]:
    """The texts that follow when somebody changes the choice `chosen` from `before` to what `texts` now say.

    Another budget unit keeps the bytes. A custom model or GPU starts from the dimensions or the size chosen before, but
    only where the fields still hold their defaults; what somebody typed stays. So does a stack: an objective on pairs takes
    the newest that has one in place of a default that has none.
    """
    if chosen == "budget_unit":
        return {"budget": converted_budget(texts["budget"], from_unit=before, to_unit=texts["budget_unit"])}
    usual = defaults()
    if chosen == "objective":
        return _stack_for_pairs(texts) if texts["objective"] in ON_PAIRS and texts["stack"] == usual["stack"] else {}
    if chosen == "model" and before in presets():
        known = asdict(presets()[before].architecture)
        started = {name: as_text(known[name]) for name in (*DIMENSIONS, *TRAITS)}
    elif chosen == "gpu" and before in gpu_classes():
        started = {"budget": str(gpu_classes()[before].capacity_gib), "budget_unit": "gib"}
    elif chosen == "gpu" and before in cards():
        started = {"budget": units.gib_text(cards()[before].total_bytes), "budget_unit": "gib"}
    else:
        return {}
    untouched = all(texts[name] == usual[name] for name in started)
    return started if untouched and texts[chosen] == CUSTOM else {}


def _stack_for_pairs(texts: Mapping[str, str]) -> dict[str, str]:
    """The first stack in the list that trains on pairs, unless the one that is chosen does."""
    able = [name for name, stack in stacks().items() if stack["pair_loss"] != "none"]
    return {} if texts["stack"] in able else {"stack": able[0]}


def as_text(value: Value | float) -> str:
    """A typed value as it stands in a link: True -> 'true', Decimal('1.50') -> '1.5'."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) >= TOO_LARGE:
        return f"a number of more than {MAX_TYPED_LENGTH} digits"
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}"
    return units.plain_decimal(value) if isinstance(value, Decimal) and value.is_finite() else str(value)


def parse(texts: Mapping[str, str], *, version: int | None = None) -> Settings:
    """Settings from text as typed, in a form, a link or on a command line. What is missing takes its default.

    Texts of fields that do not apply are neither checked nor complained about (link.unused_notices names them).
    Raises SettingsError with a sentence for every field that cannot be used, in field order, and TypeError for a name
    that is not a setting.
    """
    _known(texts)
    return of_checked(check(texts, defaults(version)))


def of_checked(checked: Checked) -> Settings:
    """Settings from texts that have been checked. Raises SettingsError when something was wrong with them."""
    if checked.errors:
        raise SettingsError(checked.errors)
    return _of({field.name: checked.values.get(field.name) for field in FIELDS})


def _warn_unused(unused: Iterable[str], given: Iterable[str]) -> None:
    for name in unused:
        if name in given:
            warnings.warn(f"{name} is not used: {BY_NAME[name].condition}", UnusedSettingWarning, stacklevel=4)


def _known(names: Iterable[str]) -> None:
    for name in names:
        if name not in BY_NAME:
            raise TypeError(f"{name!r} is not a setting")


def _of(values: Mapping[str, Value | None]) -> Settings:
    """Settings from values that have been checked."""
    settings = object.__new__(Settings)
    settings.__dict__.update(values)
    return settings


def format_settings(settings: Settings) -> dict[str, str]:
    """The text of every setting that has a value; parse() of it gives the same Settings."""
    values = settings.__dict__
    return {field.name: as_text(value) for field in FIELDS if (value := values[field.name]) is not None}
