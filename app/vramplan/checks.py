"""Text as typed becomes typed values, or one sentence per field: which field, what must hold, what came."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from vramplan.architecture import DELTA_NET, NO_LAYERS, NO_MIXER
from vramplan.errors import FieldError
from vramplan.fields import FIELDS, MAX_LAYERS
from vramplan.kinds import WHOLE_MODEL, Choice, Field, Layers, Measured, Targets, WholeNumber
from vramplan.limits import decimal_limits, limits
from vramplan.measured_run.record import format_record, parse_record
from vramplan.targets import named_parts, normal_text
from vramplan.units import UNIT_LABELS, convert_amount, count_text, plain_decimal

USUAL_ROTARY, USUAL_NORM = "halves", "rms"
"""How rotary positions are turned, and the kind of norm, of a decoder like Llama."""

MAX_TYPED_LENGTH = 128
"""Characters of one typed value that are read. A change of unit adds up to 21 decimals to a budget (2**30 = 10**9 · 2**21
/ 5**9), so any budget typed with fewer than 100 characters stays readable."""

SHOWN_LENGTH = 32
"""Characters of a rejected value that are repeated to the person who sent it."""

EXCLUDING = (
    ("shared_norm", "extra_norms"),
    ("norms_after", "extra_norms"),
    ("norms_after", "shared_norm"),
    ("wide_query_key_norms", "query_key_norms"),
    ("fused_gate_up", "plain_mlp"),
    ("fused_gate_up", "fused_projections"),
    ("alibi", "learned_positions"),
    ("partial_rotary", "learned_positions"),
    ("partial_rotary", "alibi"),
)
"""Traits that no decoder has together; the first of two is complained about."""

_WHOLE = re.compile(r"[0-9]+")
_DECIMAL = re.compile(r"[0-9]+\.?[0-9]*|\.[0-9]+")

Value = str | int | bool | Decimal


@dataclass(frozen=True)
class Checked:
    """What typed text amounts to: values that can be used, errors in field order, and names that do not apply."""

    values: dict[str, Value]
    errors: tuple[FieldError, ...]
    unused: tuple[str, ...]


def check(texts: Mapping[str, str], defaults: Mapping[str, str]) -> Checked:
    """Read every field that applies; a field without text takes its default."""
    given_texts = {field.name: texts.get(field.name, defaults[field.name]).strip() for field in FIELDS}
    values: dict[str, Value] = {}
    errors: list[FieldError] = []
    wrong: set[str] = set()
    unused: list[str] = []
    for field in FIELDS:
        if field.governed_by in wrong:
            continue  # whether it applies is known once that one is right
        applies = field.applies(values)
        if not applies and not field.kept:
            unused += [field.name] if field.name in texts else []
            continue
        value, complaint = _read(field, given_texts[field.name], given_texts)
        if not complaint:
            values[field.name] = value
        elif applies:
            errors.append(FieldError(field.name, complaint))
            wrong.add(field.name)
        else:
            values[field.name], _ = _read(field, defaults[field.name], defaults)
            unused.append(field.name)
    errors += _across(values)
    order = [field.name for field in FIELDS]
    return Checked(values, tuple(sorted(errors, key=lambda error: order.index(error.field))), tuple(unused))


def complaint(field: Field, text: str, texts: Mapping[str, str]) -> str:
    """What is wrong with one text of a field, by itself; nothing where it can be used."""
    return _read(field, text, texts)[1]


def value(field: Field, text: str, texts: Mapping[str, str]) -> Value:
    """What one text of a field stands for, where it can be used."""
    return _read(field, text, texts)[0]


def quoted(text: str) -> str:
    """A text from outside as it is repeated in a sentence: shortened, and without control characters."""
    return f"“{printable(text, SHOWN_LENGTH)}”"


def printable(text: str, length: int) -> str:
    """A text from outside without control characters, and no longer than it may be shown."""
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[: length + 1])
    return f"{shown[:length]}…" if len(shown) > length else shown


def came(text: str) -> str:
    """What came instead of a value that can be used."""
    return f"got {quoted(text)}" if text else "nothing was entered"


def converted_budget(text: str, *, from_unit: str, to_unit: str) -> str:
    """A typed budget in another unit, the same bytes; text that is not a number stays as it is."""
    if from_unit not in UNIT_LABELS or to_unit not in UNIT_LABELS or not _is_decimal(text.strip()):
        return text
    return plain_decimal(convert_amount(amount=Decimal(text.strip()), from_unit=from_unit, to_unit=to_unit))


def _is_decimal(text: str) -> bool:
    return len(text) <= MAX_TYPED_LENGTH and bool(_DECIMAL.fullmatch(text))


def _read(field: Field, text: str, texts: Mapping[str, str]) -> tuple[Value, str]:
    """The value of one text and no complaint, or the text and a complaint. Other texts may decide the limits."""
    if isinstance(field.kind, Choice):
        return _choice(field, text)
    if isinstance(field.kind, Targets):
        return _targets(field, text)
    if isinstance(field.kind, WholeNumber):
        return _whole_number(field, text, *limits(field, texts))
    if isinstance(field.kind, Layers):
        return _layers(field, text)
    if isinstance(field.kind, Measured):
        return _measured(field, text)
    return _exact_decimal(field, text, *decimal_limits(field, texts))


def _choice(field: Field, text: str) -> tuple[Value, str]:
    if text not in field.kind.values:
        return text, f"{field.label} must be one of {', '.join(field.kind.values)}; {came(text)}. Choose one of these."
    return {"true": True, "false": False}.get(text, text), ""


def _targets(field: Field, text: str) -> tuple[Value, str]:
    if len(text) <= MAX_TYPED_LENGTH and named_parts(text):
        return normal_text(text), ""
    names = ", ".join(field.kind.values)
    parts = ", ".join(field.kind.parts)
    return text, f"{field.label} must be {names}, or a comma list of {parts}; {came(text)}. Name each part once."


def _layers(field: Field, text: str) -> tuple[str, str]:
    parts = [part.strip() for part in text.split(",")] if len(text) <= MAX_TYPED_LENGTH else []
    numbers = sorted({int(part) for part in parts if _WHOLE.fullmatch(part)})
    if text == NO_LAYERS or parts and len(numbers) == len(parts) and numbers[-1] < field.kind.count:
        return text if text == NO_LAYERS else ",".join(map(str, numbers)), ""
    span = f"from 0 to {count_text(field.kind.count - 1)}"
    return text, f"{field.label} must be {NO_LAYERS}, or a comma list of different layers {span}; {came(text)}. Name each layer once, such as 3,7,11."


def _whole_number(field: Field, text: str, minimum: int, maximum: int) -> tuple[Value, str]:
    if len(text) <= MAX_TYPED_LENGTH and _WHOLE.fullmatch(text) and minimum <= int(text) <= maximum:
        return int(text), ""
    advice = "Enter a number in that range." if _WHOLE.fullmatch(text) else f"Enter digits only, such as {minimum}."
    span = f"from {count_text(minimum)} to {count_text(maximum)}"
    return text, f"{field.label} must be a whole number {span}; {came(text)}. {advice}"


def _exact_decimal(field: Field, text: str, low: Decimal, high: Decimal, unit: str) -> tuple[Value, str]:
    if _is_decimal(text) and low <= Decimal(text) <= high:
        return Decimal(text), ""
    span = f"from {low:,f} to {high:,f} {unit}".strip()
    advice = "Enter a number in that range." if _is_decimal(text) else "Enter digits, with a point for decimals."
    return text, f"{field.label} must be a plain decimal number {span}; {came(text)}. {advice}"


def _measured(field: Field, text: str) -> tuple[Value, str]:
    record = parse_record(text) if text else None
    if not text or record:
        return format_record(record) if record else "", ""
    return text, f"{field.label} must be amounts in bytes, such as allocated.13207024640; {came(text)}. Paste the measurement again."


def _across(values: Mapping[str, Value]) -> list[FieldError]:
    """Complaints about values that are fine alone but not together."""
    errors = []
    heads, kv_heads = values.get("num_attention_heads"), values.get("num_kv_heads")
    if heads and kv_heads and heads % kv_heads:
        message = (
            f"Key/value heads must divide the {count_text(heads)} attention heads evenly; got “{kv_heads}”. "
            f"Enter a divisor of {count_text(heads)}."
        )
        errors.append(FieldError("num_kv_heads", message))
    return errors + _contradictions(values)


def _contradictions(values: Mapping[str, Value]) -> list[FieldError]:
    """Complaints about traits of a custom decoder that no decoder can have together, one for each field."""
    errors = {}
    for name, other in EXCLUDING:
        if values.get(name) and values.get(other):
            errors.setdefault(name, f"{_label(name)} and {_label(other)} exclude each other. Choose one of the two.")
    if values.get("shared_norm") and not values.get("parallel_blocks", True):
        message = f"{_label('shared_norm')} goes with {_label('parallel_blocks')} only. Choose both, or neither."
        errors.setdefault("shared_norm", message)
    if values.get("broadcast_heads") and values.get("num_kv_heads", 1) > 1:
        message = f"{_label('broadcast_heads')} goes with one key/value head only; got “{values['num_kv_heads']}”. Enter 1, or choose No."
        errors["broadcast_heads"] = message
    errors |= _about_experts(values)
    errors |= _about_latent_attention(values)
    errors |= _about_mixers(values)
    if values.get("plain_mlp") and values.get("adapter_targets") == "gate" and values.get("method") not in WHOLE_MODEL:
        errors["adapter_targets"] = f"Adapter targets must be maps the model has; with {_label('plain_mlp')} there is no gate. Name another map."
    return [FieldError(name, message) for name, message in errors.items()]


NOT_WITH_MIXERS = ("sliding_window", "parallel_blocks", "norms_after", "learned_positions", "alibi", "num_experts", "kv_lora_rank")
"""Traits that are not counted in a decoder some of whose layers have something else in place of attention."""


NEEDED_BY_DELTA_NETS = ("mixer_key_heads", "mixer_value_heads", "mixer_key_dim", "mixer_value_dim")
"""Numbers that a gated delta net has to have."""


def _about_mixers(values: Mapping[str, Value]) -> dict[str, str]:
    """Complaints about what some layers have in place of attention, and about which these are."""
    if "mixer" not in values:
        return {}
    if values["mixer"] == NO_MIXER:
        given = (name for name in ("mixer_kernel", *NEEDED_BY_DELTA_NETS, "attention_gate") if values.get(name))
        listed = ["attention_layers"] if values.get("attention_layers", NO_LAYERS) != NO_LAYERS else []
        return {name: f"{_label(name)} goes with {_label('mixer')} only. Choose what the other layers have, or clear this." for name in (*listed, *given)}
    found, listed = {}, values.get("attention_layers", NO_LAYERS)
    if listed != NO_LAYERS and int(listed.rpartition(",")[2]) >= values.get("num_layers", MAX_LAYERS):
        found["attention_layers"] = f"{_label('attention_layers')} must be below the {count_text(values['num_layers'])} layers, counted from 0; got “{listed}”. Leave the others out."
    if not values.get("mixer_kernel", 1):
        found["mixer_kernel"] = f"{_label('mixer_kernel')} must be at least 1 where there is a convolution; got “0”. Enter the model’s number."
    found |= _about_delta_nets(values)
    if name := next((name for name in NOT_WITH_MIXERS if values.get(name)), ""):
        found["mixer"] = f"{_label('mixer')} and {_label(name)} are not counted together. Choose one of the two."
    return found


def _about_delta_nets(values: Mapping[str, Value]) -> dict[str, str]:
    """Complaints about the heads of a gated delta net, and about a gate on attention beside it."""
    if values["mixer"] != DELTA_NET:
        given = (name for name in NEEDED_BY_DELTA_NETS if values.get(name))
        return {name: f"{_label(name)} goes with a gated delta net only. Choose that as {_label('mixer')}, or enter 0." for name in given}
    found = {
        name: f"{_label(name)} must be at least 1 in a gated delta net; got “0”. Enter the model’s number."
        for name in NEEDED_BY_DELTA_NETS if not values.get(name, 1)
    }
    keys, heads = values.get("mixer_key_heads", 0), values.get("mixer_value_heads", 0)
    if keys and heads % keys:
        found["mixer_key_heads"] = f"{_label('mixer_key_heads')} must divide the {count_text(heads)} value heads evenly; got “{keys}”. Enter a divisor."
    if values.get("attention_gate") and values.get("fused_projections"):
        found["attention_gate"] = f"{_label('attention_gate')} and {_label('fused_projections')} exclude each other. Choose one of the two."
    return found


NEEDED_BY_EXPERTS = ("experts_per_token", "expert_intermediate_size")
"""Numbers that a decoder with experts has to have."""

ONLY_WITH_EXPERTS = (*NEEDED_BY_EXPERTS, "shared_expert_intermediate_size", "shared_expert_gate", "dense_layers", "adapters_skip_experts", "expert_biases", "attention_sinks")
"""Traits that only a decoder with experts has."""


def _about_experts(values: Mapping[str, Value]) -> dict[str, str]:
    """Complaints about a router, its experts and what stands beside them."""
    if "num_experts" not in values:
        return {}
    experts, found = values["num_experts"], {}
    if not experts:
        given = (name for name in ONLY_WITH_EXPERTS if values.get(name))
        return {name: f"{_label(name)} goes with {_label('num_experts')} only. Enter how many experts there are, or clear this." for name in given}
    for name in NEEDED_BY_EXPERTS:
        if not values.get(name, 1):
            found[name] = f"{_label(name)} must be at least 1 where there are experts; got “0”. Enter the model’s number."
    if values.get("experts_per_token", 0) > experts:
        found["experts_per_token"] = f"{_label('experts_per_token')} must be at most the {count_text(experts)} experts; got “{values['experts_per_token']}”. Enter a smaller number."
    if values.get("dense_layers", 0) >= values.get("num_layers", MAX_LAYERS):
        found["dense_layers"] = f"{_label('dense_layers')} must be fewer than the layers; got “{values['dense_layers']}”. Enter a smaller number."
    if values.get("shared_expert_gate") and not values.get("shared_expert_intermediate_size", 1):
        found["shared_expert_gate"] = f"{_label('shared_expert_gate')} goes with {_label('shared_expert_intermediate_size')} only. Enter that, or choose No."
    for name in ("plain_mlp", "fused_projections", "fused_gate_up", "mlp_biases", "parallel_blocks"):
        if values.get(name):
            found["num_experts"] = f"{_label('num_experts')} and {_label(name)} are not counted together. Choose one of the two."
    return found


WITH_LATENT_ATTENTION = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
"""Numbers that a decoder with latent attention has to have."""

NOT_LATENT = (
    "query_key_norms", "wide_query_key_norms", "query_biases", "output_biases", "mlp_biases", "fused_projections", "fused_gate_up", "plain_mlp",
    "attention_softcap", "sliding_window", "parallel_blocks", "norms_after", "extra_norms", "learned_positions", "partial_rotary", "alibi",
    "broadcast_heads", "embedding_norm", "residual_dropout", "embedding_dropout", "adapters_skip_experts", "expert_biases", "attention_sinks",
)
"""Traits that no decoder with latent attention has been counted with."""


def _about_latent_attention(values: Mapping[str, Value]) -> dict[str, str]:
    """Complaints about attention whose keys and values come out of a narrow tensor."""
    if "kv_lora_rank" not in values:
        return {}
    latent, found = _label("kv_lora_rank"), {}
    if not values["kv_lora_rank"]:
        given = [name for name in ("q_lora_rank", *WITH_LATENT_ATTENTION) if values.get(name)] + ["rotary"] * (values.get("rotary", USUAL_ROTARY) != USUAL_ROTARY)
        return {name: f"{_label(name)} goes with {latent} only. Enter that rank, or clear this." for name in given}
    for name in WITH_LATENT_ATTENTION:
        if not values.get(name, 1):
            found[name] = f"{_label(name)} must be at least 1 with {latent}; got “0”. Enter the model’s number."
    if all(name in values for name in ("head_dim", "qk_nope_head_dim", "qk_rope_head_dim")):
        whole = values["qk_nope_head_dim"] + values["qk_rope_head_dim"]
        if values["head_dim"] != whole and whole:
            found["head_dim"] = f"Head dimension must be {_label('qk_nope_head_dim')} and {_label('qk_rope_head_dim')} together, {count_text(whole)}; got “{values['head_dim']}”. Enter that sum."
    heads, shared = values.get("num_attention_heads"), values.get("num_kv_heads")
    if heads and shared and heads != shared and not heads % shared:
        found["num_kv_heads"] = f"Key/value heads must be the {count_text(heads)} attention heads with {latent}; got “{shared}”. Enter {count_text(heads)}."
    if values.get("norm", USUAL_NORM) != USUAL_NORM:
        found["norm"] = f"{_label('norm')} must be RMSNorm with {latent}. Choose that."
    for name in NOT_LATENT:
        if values.get(name):
            found["kv_lora_rank"] = f"{latent} and {_label(name)} are not counted together. Choose one of the two."
    return found


def _label(name: str) -> str:
    return f"“{next(field.label for field in FIELDS if field.name == name)}”"
