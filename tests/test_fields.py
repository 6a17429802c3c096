"""Bad input: each wrong value gives one error, for its field, saying which field, what must hold and what came.

Belongs here: the sentences and order of errors, and which fields are looked at. Hostile links: test_properties.py.
"""

from decimal import Decimal
import re

import pytest

from configurations import (
    EXPERTS,
    LATENT,
    LATENT_ATTENTION,
    MIXER,
    ACCOUNTINGS, CHOICES, CUSTOM, CUSTOM_STEP, DECIMAL, DIMENSION_KEYS, FIELD_ORDER, OPENING, PLANNING, TRAIT_KEYS, WHOLE, reading,
)
from oracle import PRESETS
from vramplan import Settings, SettingsError
from vramplan.catalogue import defaults
from vramplan.fields import FIELDS
from vramplan.link import read_query, texts_to_query
from vramplan.settings import carried_over, format_settings as as_strings, parse

LABELS = {field.name: field.label for field in FIELDS}


def errors(typed):
    with pytest.raises(SettingsError) as caught:
        parse(typed)
    assert str(caught.value) == caught.value.errors[0].message
    return caught.value.errors


def only_error(name, text):
    """The message of the one error that this text in this field causes, in an otherwise valid configuration."""
    found = errors({**reading(name), name: text})
    assert [error.field for error in found] == [name]
    return found[0].message


def says(message, number):
    """Whether the number stands in the message, with or without thousands separators."""
    return re.search(rf"(?<![\d.]){re.escape(str(number))}(?![\d]|\.\d)", message.replace(",", "")) is not None


def names(message, field):
    return LABELS[field].lower() in message.lower() or field in message


NOT_NUMBERS = ["abc", "٤٢", "²", "१६", "1e1", "1E1", "0x10", "1_0", "NaN", "inf", "--1", "1 0", "<b>", "½", "1/2", "true"]


@pytest.mark.parametrize("name", [*WHOLE, *DECIMAL, *CHOICES, "adapter_targets"])
@pytest.mark.parametrize("text", ["", "   "])
def test_empty(name, text):
    message = only_error(name, text)
    assert names(message, name)
    assert re.search(r"empty|nothing|blank|missing", message)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("text", [*NOT_NUMBERS, "1.5", "2.0", "-1", "-0", "under", "over"])
def test_whole_numbers(name, text):
    low, high = WHOLE[name]
    text = {"under": str(low - 1), "over": str(high + 1)}.get(text, text)
    message = only_error(name, text)
    assert names(message, name)
    assert text in message or says(message, text)
    assert "whole number" in message and says(message, low) and says(message, high)


@pytest.mark.parametrize("name", DECIMAL)
@pytest.mark.parametrize("text", [*NOT_NUMBERS, "-1", "under", "over"])
def test_decimals(name, text):
    low, high = DECIMAL[name]
    text = {"under": str(Decimal(low) - Decimal("0.000001")), "over": f"{high}.000001"}.get(text, text)
    message = only_error(name, text)
    assert names(message, name)
    assert text in message or says(message, text)
    assert (says(message, low) and says(message, high)) or name == "budget"
    assert "whole number" not in message


@pytest.mark.parametrize(("unit", "low", "high"), [("gib", "1", "2048"), ("gb", "1.073741824", "2199.023255552")])
@pytest.mark.parametrize("text", ["abc", "-1", "1e1", "0", "3000"])
def test_a_bad_budget_is_told_its_limits_in_the_chosen_unit(unit, low, high, text):
    found = errors({**CUSTOM, "budget": text, "budget_unit": unit})
    assert [error.field for error in found] == ["budget"]
    assert says(found[0].message, low) and says(found[0].message, high)


@pytest.mark.parametrize("name", ["activation_multiplier", "budget"])
def test_zero_is_too_small_where_nothing_is_no_choice(name):
    assert names(only_error(name, "0"), name)


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("text", ["abc", "0", "-1", "1e1", "٢٤", "9999", "None", "<script>"])
def test_choices(name, text):
    message = only_error(name, text)
    assert names(message, name)
    assert text in message
    assert all(option in message for option in CHOICES[name])


@pytest.mark.parametrize("name", [name for name in CHOICES if name not in ("gpu", "unsloth_revision")])
def test_choices_are_spelled_exactly(name):
    wrong = CHOICES[name][0].upper()
    assert wrong in only_error(name, wrong)


@pytest.mark.parametrize("name", WHOLE)
def test_the_limits_themselves_are_valid(name):
    for limit in WHOLE[name]:
        other = {"num_kv_heads": "1"} if name == "num_attention_heads" else {}
        other = {"num_attention_heads": "4096"} if name == "num_kv_heads" else other
        if name in MIXER and not limit:
            other = dict.fromkeys(MIXER, "0") | {"mixer": "none", "attention_layers": "none"}
        if name in EXPERTS:
            other = {"num_experts": "4096", "num_layers": "1024"} if limit else dict.fromkeys(EXPERTS, "0")
        if name in LATENT:
            other = {} if limit else dict.fromkeys(LATENT, "0")
        if name.startswith("qk_") and limit:
            other = {"head_dim": str(limit + int(LATENT_ATTENTION[{"qk_nope_head_dim": "qk_rope_head_dim"}.get(name, "qk_nope_head_dim")]))}
        assert getattr(parse({**reading(name), **other, name: str(limit)}), name) == limit


@pytest.mark.parametrize("name", DECIMAL)
def test_the_decimal_limits_themselves_are_valid(name):
    for limit in DECIMAL[name]:
        assert getattr(parse({**reading(name), name: limit}), name) == Decimal(limit)


@pytest.mark.parametrize("name", CHOICES)
def test_every_option_is_valid(name):
    for option in CHOICES[name]:
        typed = {**reading(name), "budget": "20", "sequence_length": "1024", name: option}
        if option == "none" and name == "mixer":
            typed |= dict.fromkeys(MIXER, "0") | {"attention_layers": "none"}
        if option == "short-convolution":
            typed |= dict.fromkeys((each for each in MIXER if each != "mixer_kernel"), "0")
        value = getattr(parse(typed), name)
        assert value == {"true": True, "false": False}.get(option, option)


@pytest.mark.parametrize(("model", "cap"), [(name, shape["cap"]) for name, shape in PRESETS.items()])
def test_sequence_length_ends_at_the_cap_of_the_model(model, cap):
    assert parse({**OPENING, "model": model, "sequence_length": str(cap)}).sequence_length == cap
    found = errors({**OPENING, "model": model, "sequence_length": str(cap + 1)})
    assert [error.field for error in found] == ["sequence_length"]
    assert says(found[0].message, cap) and says(found[0].message, cap + 1)


@pytest.mark.parametrize(("heads", "kv_heads"), [("6", "4"), ("6", "12"), ("32", "5")])
def test_kv_heads_must_divide_heads(heads, kv_heads):
    found = errors({**CUSTOM, "num_attention_heads": heads, "num_kv_heads": kv_heads})
    assert [error.field for error in found] == ["num_kv_heads"]
    assert "divide" in found[0].message and says(found[0].message, heads) and says(found[0].message, kv_heads)


# Traits that no decoder has together: the field that is complained about first, then what it goes with or against.
CONTRADICTIONS = [
    ({"shared_norm": "true"}, "shared_norm", ("One norm per layer", "Parallel attention and MLP")),
    ({"shared_norm": "true", "parallel_blocks": "true", "extra_norms": "true"}, "shared_norm", ("One norm per layer", "Four norms per layer")),
    ({"norms_after": "true", "extra_norms": "true"}, "norms_after", ("Norms after the blocks", "Four norms per layer")),
    ({"norms_after": "true", "shared_norm": "true", "parallel_blocks": "true"}, "norms_after", ("Norms after the blocks", "One norm per layer")),
    ({"wide_query_key_norms": "true", "query_key_norms": "true"}, "wide_query_key_norms", ("Norms over all heads", "Query/key norms")),
    ({"fused_gate_up": "true", "plain_mlp": "true"}, "fused_gate_up", ("Fused gate and up", "Plain MLP")),
    ({"fused_gate_up": "true", "fused_projections": "true"}, "fused_gate_up", ("Fused gate and up", "Fused projections")),
    ({"partial_rotary": "true", "alibi": "true"}, "partial_rotary", ("Rotary on part of a head", "Alibi")),
    ({"partial_rotary": "true", "learned_positions": "1024"}, "partial_rotary", ("Rotary on part of a head", "Learned positions")),
    ({"alibi": "true", "learned_positions": "1024"}, "alibi", ("Alibi", "Learned positions")),
    ({"broadcast_heads": "true", "num_kv_heads": "2"}, "broadcast_heads", ("Broadcast key/value head", "“2”")),
    ({"plain_mlp": "true", "adapter_targets": "gate", "method": "lora"}, "adapter_targets", ("Adapter targets", "Plain MLP")),
]


@pytest.mark.parametrize(("traits", "field", "named"), CONTRADICTIONS)
def test_traits_that_contradict_each_other_are_refused_by_one_sentence(traits, field, named):
    found = errors({**CUSTOM_STEP, **traits})
    assert [error.field for error in found] == [field]
    assert all(name in found[0].message for name in named)


def test_a_trait_that_contradicts_two_others_is_complained_about_once():
    typed = {**CUSTOM_STEP, "norms_after": "true", "extra_norms": "true", "shared_norm": "true", "parallel_blocks": "true"}
    assert [error.field for error in errors(typed)] == ["shared_norm", "norms_after"]


def test_what_a_plain_mlp_lacks_is_no_contradiction_beside_other_targets_or_without_adapters():
    for changes in ({"adapter_targets": "gate,up"}, {"adapter_targets": "gate", "method": "full"}):
        assert parse({**CUSTOM_STEP, "method": "lora", "plain_mlp": "true", **changes}).plain_mlp


def test_bad_heads_are_not_blamed_on_kv_heads():
    assert [error.field for error in errors({**CUSTOM, "num_attention_heads": "many"})] == ["num_attention_heads"]


@pytest.mark.parametrize(
    ("budget", "unit", "valid"),
    [("0.999999999", "gib", False), ("2048.000000001", "gib", False), ("1", "gb", False), ("1.073741824", "gb", True),
     ("1.073741823", "gb", False), ("2199.023255552", "gb", True), ("2199.023255553", "gb", False), ("2048", "gb", True),
     ("2048." + "0" * 39 + "1", "gib", False), ("0." + "9" * 40, "gib", False), ("1.073741823" + "9" * 40, "gb", False)])
def test_the_budget_is_1_to_2048_gib_in_either_unit(budget, unit, valid):
    typed = {**CUSTOM, "budget": budget, "budget_unit": unit}
    if valid:
        assert parse(typed).budget == Decimal(budget)
    else:
        assert [error.field for error in errors(typed)] == ["budget"]


OF_ONE_ACCOUNTING = {
    "step": {"stack", "objective", "reference", "kbit_preparation", "base_precision", "lora_dropout", "loss", "layer_kernels",
             "optimizer_step", "torch_compile", "checkpoint_kind", "half_precision", "offload", "measured"},
    "planning": {"activation_multiplier", "extra_allowance"},
    "unsloth": {"unsloth_revision", "floor_fraction"},
    "rules": {"task", "served_weights", "kv_cache"},
}
READ_BY = {  # what some accountings read and others do not
    "quantization": {"step", "unsloth", "rules"}, "trainable_precision": {"step", "planning", "rules"}, "attention_kernel": {"step", "planning", "rules"},
    **dict.fromkeys(("autocast", "sharding", "sharded_over"), {"step", "rules"}),
    **{name: {accounting} for accounting, names in OF_ONE_ACCOUNTING.items() for name in names},
}
VALID = {"stack": "loop", "loss": "triton", "activation_multiplier": "1.5", "floor_fraction": "0.2"}


def not_read_by(accounting):
    return {name for name, readers in READ_BY.items() if accounting not in readers}


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_errors_come_in_field_order_one_for_each_field_that_is_read(accounting):
    elsewhere = not_read_by(accounting)
    choosing = {"accounting", "model", "gpu", "method", "objective", "task"}
    unknown_yet = {"other_processes", "sharded_over", "offload", "served_weights", "kv_cache"}  # a card, a kind of sharding and a task decide whether these are read
    names_in_order = [name for name in FIELD_ORDER if name not in (*choosing, *elsewhere, *unknown_yet)]
    typed = {**CUSTOM, **{name: "?" for name in reversed(FIELD_ORDER) if name not in choosing}, "accounting": accounting, "objective": "dpo"}
    assert [error.field for error in errors(typed)] == names_in_order


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_what_only_other_accountings_read_is_kept_but_not_looked_at(accounting):
    elsewhere = not_read_by(accounting)
    texts = {**CUSTOM_STEP, "accounting": accounting}
    usual = parse({**texts, **dict.fromkeys(elsewhere, "nonsense")})
    assert usual == parse({name: text for name, text in texts.items() if name not in elsewhere})
    kept = {name: text for name, text in VALID.items() if name in elsewhere}
    assert as_strings(parse(texts | kept)) == as_strings(parse(texts)) | kept


def test_a_bad_model_or_gpu_is_one_error_and_not_many():
    assert [error.field for error in errors({**CUSTOM, "model": "gpt-9"})] == ["model"]
    assert [error.field for error in errors({**CUSTOM, "gpu": "a100"})] == ["gpu"]


def test_a_bad_value_is_found_whatever_the_order_of_typing():
    typed = {**OPENING, "rank": "?", "sequence_length": "40000", "model": "qwen3-8b"}
    for order in (typed, dict(reversed(typed.items()))):
        assert [error.field for error in errors(order)] == ["rank", "sequence_length"]


@pytest.mark.parametrize("name", [*DIMENSION_KEYS, *TRAIT_KEYS])
def test_dimensions_are_not_looked_at_beside_a_preset(name):
    assert getattr(parse({**OPENING, name: "nonsense"}), name) is None
    assert parse({**OPENING, name: "nonsense"}) == parse(OPENING)


@pytest.mark.parametrize("name", ["budget", "budget_unit"])
def test_a_budget_is_not_looked_at_beside_a_gpu_class(name):
    assert getattr(parse({**OPENING, name: "nonsense"}), name) is None


def test_other_processes_are_not_looked_at_beside_a_gpu_class():
    assert parse({**OPENING, "other_processes": "nonsense"}) == parse(OPENING)


def test_only_fields_that_apply_have_a_value():
    assert set(as_strings(parse(OPENING))) == set(OPENING)
    assert set(as_strings(parse(PLANNING))) == set(PLANNING)
    assert set(as_strings(parse(CUSTOM))) == set(FIELD_ORDER) - {"other_processes"}
    assert set(as_strings(parse({**OPENING, "gpu": "t4"}))) == {*OPENING, "other_processes"}


def test_the_table_lists_every_field_once_in_order_with_label_and_hint():
    assert tuple(field.name for field in FIELDS) == FIELD_ORDER
    assert len({field.label for field in FIELDS}) == len(FIELD_ORDER)
    assert all(field.hint.strip() for field in FIELDS)


def test_defaults_are_the_opening_configuration():
    assert parse({}) == parse(OPENING) == Settings()
    assert parse({}, version=1) == parse(PLANNING)


def test_surrounding_spaces_are_harmless_or_an_error_but_never_another_value():
    try:
        assert parse({**CUSTOM, "rank": " 16 "}).rank == 16
    except SettingsError as error:
        assert [one.field for one in error.errors] == ["rank"]


@pytest.mark.parametrize(("chosen", "dependent"), [({"gpu": "24GB"}, {"budget": "23.5"}), ({"model": "Custom"}, {"num_layers": "7"})])
def test_what_depends_on_a_wrong_choice_waits_for_it(chosen, dependent):
    link = read_query(texts_to_query({**chosen, **dependent}))
    assert link.texts == {**chosen, **dependent}
    assert link.notices == ()
    with pytest.raises(SettingsError) as caught:
        parse(link.texts)
    assert [error.field for error in caught.value.errors] == list(chosen)


def test_a_custom_choice_starts_from_the_last_one_but_keeps_what_was_typed():
    texts = defaults() | {"model": "custom", "gpu": "custom"}
    filled = carried_over(texts, chosen="model", before="qwen3-8b")
    assert filled["num_layers"] == "36" and filled["tied_embeddings"] == "false"
    assert filled["query_key_norms"] == "true" and filled["query_biases"] == "false" and filled["sliding_window"] == "0"
    assert set(filled) == {*DIMENSION_KEYS, *TRAIT_KEYS}
    assert carried_over(texts, chosen="gpu", before="80") == {"budget": "80", "budget_unit": "gib"}
    assert carried_over(texts | {"num_layers": "5"}, chosen="model", before="qwen3-8b") == {}
    assert carried_over(texts | {"budget": "20"}, chosen="gpu", before="80") == {}
    assert carried_over(texts, chosen="rank", before="16") == {}
    assert carried_over(texts | {"model": "llama-3.2-1b"}, chosen="model", before="qwen3-8b") == {}
