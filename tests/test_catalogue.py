"""What can be chosen by name, read from the data files: cards with their memory, training stacks with their facts.

Belongs here: that the data is complete and sound, what becomes of it, and adapter targets by name. Models: test_models.py.
"""

from dataclasses import fields
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
import tomllib

import pytest

from configurations import CARDS, GPU_CLASSES, OPENING, STACKS
from vramplan import Settings, SettingsError, estimate
from vramplan.catalogue import cards, gpu_classes
from vramplan.fit import single_changes
from vramplan.report import beside_text
from vramplan.policy import Policy
from vramplan.settings import parse
from vramplan.stacks import stacks

DATA = Path(__file__).parent.parent / "app/vramplan/data"
GIB, MIB = 2**30, 2**20


def data(name):
    return tomllib.loads((DATA / f"{name}.toml").read_text(encoding="utf-8"))


# Cards

CARD_KEYS = {"label", "source", "date"}
CARD_TABLE = data("cards")


def test_the_cards_are_those_of_the_data():
    assert tuple(cards()) == tuple(CARD_TABLE) == CARDS


@pytest.mark.parametrize("name", CARDS)
def test_a_card_has_one_total_and_says_where_its_context_was_seen(name):
    entry = CARD_TABLE[name]
    totals = {"total_mib", "total_gib"} & set(entry)
    assert len(totals) == 1
    context = {"context_mib", "context_source"} & set(entry)
    assert len(context) in (0, 2)
    kind = {"class", "unified_gib"} & set(entry)
    assert len(kind) == 1
    assert set(entry) == CARD_KEYS | kind | totals | context


@pytest.mark.parametrize("name", CARDS)
def test_a_driver_reports_somewhat_less_than_the_nominal_class(name):
    entry = CARD_TABLE[name]
    nominal = gpu_classes()[entry["class"]].budget_bytes if "class" in entry else entry["unified_gib"] * GIB
    assert (0.66 if cards()[name].unified else 0.88) * nominal < cards()[name].total_bytes < nominal


def test_nothing_is_divided_over_gpus_that_share_their_machine_s_memory():
    offered = {gpu: [change for change in single_changes(Settings(gpu=gpu)) if "sharding" in change] for gpu in ("apple-64gb", "t4")}
    assert not offered["apple-64gb"] and offered["t4"]


def test_a_gpu_with_unified_memory_gets_a_share_of_it_and_has_no_context():
    one = estimate(Settings(gpu="apple-64gb"))
    assert cards()["apple-64gb"].unified and not cards()["t4"].unified
    assert (one.budget_bytes, one.context_bytes) == (49_152 * MIB, 0)
    assert "nvidia-smi" not in beside_text(one) and "memory alone" in beside_text(one)
    assert "nvidia-smi" in beside_text(estimate(Settings(gpu="t4")))


@pytest.mark.parametrize(
    ("name", "total", "context"),
    [("rtx-4090", Fraction("23.49") * GIB, 504 * MIB), ("rtx-3090", 24_124 * MIB, 317 * MIB),
     ("rtx-4080", 16_049 * MIB, 504 * MIB), ("h100-80gb", Fraction("79.11") * GIB, 504 * MIB)])
def test_the_memory_of_a_card(name, total, context):
    """In MiB, or in GiB as a message printed it and then rounded down; the usual context where none was seen."""
    assert (cards()[name].total_bytes, cards()[name].context_bytes) == (total // 1, context)
    settings = Settings(gpu=name)
    assert (settings.budget_bytes, settings.context_bytes) == (total // 1, context)
    one = estimate(settings)
    assert (one.budget_bytes, one.context_bytes, one.usable_bytes) == (total // 1, context, total // 1 - context)


@pytest.mark.parametrize(("others", "whole_bytes"), [("0", 0), ("1.5", 3 * GIB // 2), ("0.1", 107_374_182), ("2048", 24_124 * MIB)])
def test_other_processes_take_of_the_card_but_not_more_than_it_has(others, whole_bytes):
    """A tenth of a GiB is 107,374,182.4 bytes: rounded down, as every amount that is typed."""
    assert parse({**OPENING, "gpu": "rtx-3090", "other_processes": others}).budget_bytes == 24_124 * MIB - whole_bytes


def test_a_full_card_fits_nothing():
    one = estimate(Settings(gpu="t4", other_processes="2048"))
    assert (one.budget_bytes, one.verdict, one.fits) == (0, "no", False)


def test_the_planning_formula_uses_a_card_without_context():
    one = estimate(Settings(accounting="planning", gpu="rtx-3090"))
    assert (one.budget_bytes, one.context_bytes, one.usable_bytes) == (24_124 * MIB, 0, 24_124 * MIB)


@pytest.mark.parametrize("size", GPU_CLASSES)
def test_a_class_has_the_usual_context(size):
    assert estimate(Settings(gpu=size)).context_bytes == 504 * MIB


# Stacks

ABOUT = {"label", "extends", "source", "date", "plausible"}
STACK_TABLE = data("stacks")
FACTS = {"autocast", "weight_precision", "base_precision", "quantized_base_precision", "adapter_precision", "quantized_adapter_precision",
         "kbit_preparation", "loss", "logits_release", "chunked_release", "adamw", "checkpoint_kind", "outputs_kept", "norm_kernel",
         "mlp_kernel", "adapter_kernel", "repeats_heads", "model_code", "quantized_linear", "quantized_head", "split_release", "optimizer_step",
         "unsloth_release", "checkpoint_offload", "rest_precision", "pair_loss", "experts"}
OWN_FACTS = {"fused_linear_refused", "full_loss", "quantized_adamw", "full_adamw", "full_optimizer_step"}  # of some stacks alone
DERIVED = {"trainable_precision", "optimizer", "reentrant", "assumed", "lingers", "objective", "reference"}  # of other facts, under another name
KNOWN = {
    "experts": {"grouped", "loop"},
    "pair_loss": {"none", "tiled", "logits-dpo-1.14", "logits-dpo-1.6", "logits-dpo-1.0"},
    **{name: {"logits", "triton", "fused-linear", "chunked", "tiled", "split", "unsloth", "cut"} for name in ("loss", "full_loss")},
    "kbit_preparation": {"all", "norms", "none"},
    "adamw": {"adamw-foreach", "adamw-fused", "adamw-fp32-states"},
    "quantized_adamw": {"paged-adamw-32bit"},
    "full_adamw": {"paged-adamw-8bit"},
    **dict.fromkeys(("optimizer_step", "full_optimizer_step"), {"after", "in-backward"}),
    "autocast": {True, False, "where-float32"},
    "outputs_kept": {True, False, "lingering"},
    "checkpoint_kind": {"reentrant", "non-reentrant"},
    **{name: {"bf16", "fp32"} for name in FACTS if name.endswith("_precision")},
    **{name: {True, False} for name in ("repeats_heads", "fused_linear_refused", "quantized_head")},
    "rest_precision": {"same", "fp32"},
    "checkpoint_offload": {"each", "staged", "staged-later"},
    "unsloth_release": {"2026.10", "2025.11"},
}


@pytest.mark.parametrize("name", STACKS)
def test_every_fact_of_a_stack_has_a_value_a_source_and_a_confidence(name):
    for key, fact in STACK_TABLE[name].items():
        if key not in ABOUT:
            assert set(fact) == {"value", "source", "confidence"}, key
            assert fact["confidence"] in ("traced", "measured", "read") and fact["source"].strip(), key
            assert fact["value"] in KNOWN.get(key, {fact["value"]}), key


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_extends_an_earlier_one_and_has_every_fact_in_the_end(name):
    entry = STACK_TABLE[name]
    if "extends" in entry:
        assert STACKS.index(entry["extends"]) < STACKS.index(name)
    assert FACTS <= set(stacks()[name].facts) <= FACTS | OWN_FACTS


@pytest.mark.parametrize("name", STACKS)
def test_what_a_stack_says_itself_holds_and_the_rest_is_of_the_one_it_extends(name):
    entry, found = STACK_TABLE[name], stacks()[name]
    own = {key for key in entry if key not in ABOUT}
    for key, fact in found.facts.items():
        origin = entry[key] if key in own else vars(stacks()[entry["extends"]].facts[key])
        assert (fact.value, fact.source, fact.confidence) == (origin["value"], origin["source"], origin["confidence"])
    assert set(found.unchecked) == {key for key, fact in found.facts.items() if fact.confidence == "read"}


def test_no_fact_repeats_the_stack_it_extends():
    for name, entry in STACK_TABLE.items():
        for key, fact in entry.items():
            if key not in ABOUT and "extends" in entry and key in stacks()[entry["extends"]].facts:
                assert fact["value"] != stacks()[entry["extends"]][key], (name, key)


def test_every_choice_of_the_policy_has_a_fact():
    assert {field.name for field in fields(Policy)} - DERIVED <= FACTS


@pytest.mark.parametrize(("typed", "field"), [({"stack": "trainer-6"}, "stack"), ({"gpu": "rtx-9090"}, "gpu"), ({"adapter_targets": "q,x"}, "adapter_targets")])
def test_an_unknown_name_is_one_sentence(typed, field):
    with pytest.raises(SettingsError) as caught:
        parse(typed)
    (error,) = caught.value.errors
    assert error.field == field and next(iter(typed.values())) in error.message
    assert error.message.endswith(".") and "\n" not in error.message


# Adapter targets


@pytest.mark.parametrize(
    ("typed", "normal", "parts"),
    [
        ("attention", "attention", ("q", "k", "v", "o")),
        ("all-linear", "all-linear", ("q", "k", "v", "o", "gate", "up", "down")),
        ("v,q", "q,v", ("q", "v")),
        (" q , v ", "q,v", ("q", "v")),
        ("embed,lm_head,down", "down,lm_head,embed", ("down", "lm_head", "embed")),
        ("o", "o", ("o",)),
        # the parts of a named set stay a list: it says what was typed, and counts the same
        ("k,v,o,q", "q,k,v,o", ("q", "k", "v", "o")),
    ],
)
def test_targets_are_named_sets_or_lists_in_the_order_of_a_layer(typed, normal, parts):
    settings = parse({"adapter_targets": typed})
    assert (settings.adapter_targets, settings.targets) == (normal, parts)
    assert parse({"adapter_targets": normal}) == settings == Settings(adapter_targets=typed)


@pytest.mark.parametrize("typed", ["q,q", "q,attention", "q,", ",q", ",", "Q", "q v", "q;v", "q_proj", "all", "x", "q,\x00"])
def test_targets_that_are_not_parts_once_each_are_one_error(typed):
    with pytest.raises(SettingsError) as caught:
        parse({"adapter_targets": typed})
    (error,) = caught.value.errors
    assert error.field == "adapter_targets"
    assert all(name in error.message for name in ("attention", "all-linear", "gate", "lm_head", "embed"))


def test_a_list_of_all_parts_of_a_set_counts_as_the_set():
    for accounting in ("step", "planning"):
        for named, listed in (("attention", "q,k,v,o"), ("all-linear", "down,up,gate,o,v,k,q")):
            one, other = (estimate(parse({**OPENING, "accounting": accounting, "adapter_targets": text})) for text in (named, listed))
            assert one.moments == other.moments


def test_exact_decimals_of_other_processes_stay_exact():
    assert parse({**OPENING, "gpu": "t4", "other_processes": "0.10"}).other_processes == Decimal("0.1")
