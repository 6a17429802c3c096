"""`from vramplan import ...`: what a Python program sees, typed values in and out.

Belongs here: the public names, their types, their documentation and their errors. Numbers: test_planning.py.
"""

import dataclasses
from decimal import Decimal
import doctest
import inspect
import os
import pickle
import subprocess
import sys

from hypothesis import given, settings as hypothesis_settings
import pytest

from configurations import CUSTOM_STEP, DIMENSION_KEYS, FIELD_ORDER, OPENINGS, TRAIT_KEYS
from strategies import configurations
import vramplan
from vramplan import NotExpressible, Settings, SettingsError, compare, curve, estimate, fit
from vramplan.settings import format_settings, parse

TYPED_CUSTOM = {
    "model": "custom", "hidden_size": 64, "num_layers": 3, "num_attention_heads": 6, "num_kv_heads": 2, "head_dim": 12,
    "intermediate_size": 200, "vocab_size": 1000, "tied_embeddings": False, "gpu": "custom", "budget": 20, "budget_unit": "gib",
}


@pytest.mark.parametrize("name", ["Settings", "SettingsError", "NotExpressible", "estimate", "fit", "curve", "compare"])
def test_the_documented_names_are_public_and_explained(name):
    assert name in vramplan.__all__
    thing = getattr(vramplan, name)
    assert len(inspect.getdoc(thing).split()) >= 5
    assert not inspect.getdoc(thing).startswith(f"{name}(")  # what a dataclass without a docstring gets


@pytest.mark.parametrize("name", ["Settings", "Estimate", "estimate", "fit", "curve", "compare"])
def test_public_methods_and_properties_are_explained(name):
    thing = getattr(vramplan, name)
    if inspect.isclass(thing):
        own = {key: value for key, value in vars(thing).items() if not key.startswith("_")}
        members = {key: value for key, value in own.items() if inspect.isfunction(value) or isinstance(value, property)}
        assert members
        assert [key for key, value in members.items() if not value.__doc__] == []
    else:
        first, *others = inspect.signature(thing).parameters.values()
        assert first.annotation is Settings
        assert all(other.kind is other.KEYWORD_ONLY and other.default is not other.empty for other in others)
        assert inspect.signature(thing).return_annotation is not inspect.Signature.empty


def test_every_public_name_is_there_and_what_reads_files_waits_for_its_first_use():
    assert set(vramplan.__all__) <= set(dir(vramplan)) and all(hasattr(vramplan, name) for name in vramplan.__all__)
    with pytest.raises(AttributeError, match="module 'vramplan' has no attribute 'import_txt'"):
        vramplan.import_txt
    program = "import sys, vramplan; before = 'vramplan.importing' in sys.modules; vramplan.import_text; print(before, 'vramplan.importing' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert told.stdout.split() == ["False", "True"]


def test_the_package_docstring_runs():
    tests = doctest.DocTestFinder(recurse=False).find(vramplan, "vramplan")
    examples = [example for test in tests for example in test.examples]
    namespace = {}
    for example in examples:
        exec(example.source, namespace)
    assert namespace["result"].settings.sequence_length == 4096


@pytest.mark.parametrize("accounting", OPENINGS)
def test_the_first_minutes_of_a_new_user(accounting):
    settings = Settings(accounting=accounting, model="llama-3.1-8b", method="qlora", sequence_length=4096, micro_batch=1)
    result = estimate(settings)
    assert result.accounting == accounting and result.settings == settings
    assert result.fits and result.headroom_bytes == 24 * 2**30 - result.context_bytes - result.peak_bytes
    assert result.terms[0].name == "base_weights" and result.terms[0].bytes > 4 * 10**9
    answers = fit(settings)
    assert answers.largest_micro_batch.value >= 1 and answers.longest_sequence.value >= 4096
    assert answers.smallest_gpu.headroom_bytes >= 0
    methods = ["full", "lora", "qlora", "pretraining"]
    counted = methods[:3] if accounting == "unsloth" else methods
    assert [row.settings.method for row in compare(settings)] == counted
    assert [row.fits for row in compare(settings)] == [False, accounting != "step", True, False][: len(counted)]
    assert any(point.sequence_length == 4096 and point.peak_bytes == result.peak_bytes for point in curve(settings).points)


def test_an_estimate_knows_its_moments_and_the_tensors_behind_them():
    result = estimate(Settings())
    assert result.verdict == "yes" and len(result.moments) > 4
    assert result.peak_bytes <= result.reserved.low < result.reserved.high < result.process.high
    behind = result.moment.inspect()
    assert sum(holding.bytes for holding in behind["adapters"]) == next(t.bytes for t in result.terms if t.name == "adapters")


def test_arguments_are_the_settings_and_nothing_else():
    assert tuple(inspect.signature(Settings).parameters) == FIELD_ORDER
    assert all(p.kind is p.KEYWORD_ONLY for p in inspect.signature(Settings).parameters.values())
    with pytest.raises(TypeError):
        Settings(batch_size=4)
    with pytest.raises(TypeError):
        Settings().replace(batch_size=4)


def test_values_are_typed():
    custom = Settings(**TYPED_CUSTOM)
    assert custom == parse(CUSTOM_STEP)
    assert {type(getattr(custom, name)) for name in ("rank", "hidden_size", "micro_batch", "sequence_length")} == {int}
    assert custom.tied_embeddings is False and custom.method == "qlora"
    assert [type(getattr(custom, name)) for name in ("budget", "activation_multiplier", "extra_allowance")] == [Decimal] * 3


@pytest.mark.parametrize("amount", ["24.1", Decimal("24.1"), Decimal("24.10")])
def test_exact_decimals_may_be_text_or_decimal(amount):
    assert Settings(gpu="custom", budget=amount, budget_unit="gb").budget_bytes == 24_100_000_000


def test_whole_amounts_may_be_int():
    assert Settings(gpu="custom", budget=24).budget_bytes == Settings(gpu="24").budget_bytes == 24 * 2**30


def test_settings_that_do_not_apply_are_none():
    preset = Settings()
    assert {getattr(preset, name) for name in (*DIMENSION_KEYS, *TRAIT_KEYS, "budget", "budget_unit", "other_processes")} == {None}
    assert Settings(accounting="planning").stack == "trainer-5" and preset.extra_allowance == 0
    assert Settings(method="full").rank == 16 and Settings(method="full").adapter_targets == "all-linear"


def test_settings_are_frozen_and_comparable():
    settings = Settings()
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.rank = 8
    assert settings.rank == 16
    assert {settings, Settings(rank=16), Settings(rank=8)} == {Settings(), Settings(rank=8)}


def test_replace_gives_another_valid_run_and_leaves_the_first_alone():
    settings = Settings()
    assert settings.replace(rank=8, method="lora") == Settings(rank=8, method="lora")
    assert settings == Settings()
    with pytest.raises(SettingsError):
        settings.replace(rank=0)
    assert Settings(**TYPED_CUSTOM).replace(model="qwen3-8b").hidden_size is None
    with pytest.raises(SettingsError) as caught:
        Settings(sequence_length=131_072).replace(model="qwen3-8b")
    assert caught.value.errors[0].field == "sequence_length"


def test_errors_are_value_errors_with_a_sentence_per_field():
    with pytest.raises(ValueError) as caught:
        Settings(micro_batch=0, rank=300, optimizer="adam")
    error = caught.value
    assert isinstance(error, SettingsError)
    assert [one.field for one in error.errors] == ["rank", "micro_batch", "optimizer"]
    assert str(error) == error.errors[0].message
    assert "1,024" in error.errors[1].message and "whole number" in error.errors[1].message and "0" in error.errors[1].message


@pytest.mark.parametrize(
    "wrong",
    [{"rank": 16.5}, {"rank": True}, {"rank": float("nan")}, {"rank": []}, {"micro_batch": -1},
     {"gpu": 25}, {"gpu": 24.0}, {"method": 3}, {"activation_multiplier": float("inf")}, {"extra_allowance": Decimal("NaN")},
     {"extra_allowance": Decimal("1E+9")}, {"extra_allowance": Decimal("-0.1")},
     {"model": b"llama-3.1-8b"}, {"checkpointing": True}, {"adapter_targets": ["q", "w"]}, {"gpu": "RTX 4090"}])
def test_wrong_types_and_values_are_settings_errors(wrong):
    with pytest.raises(SettingsError) as caught:
        Settings(accounting="planning", **wrong)
    assert [one.field for one in caught.value.errors] == list(wrong)


@pytest.mark.parametrize("huge", [10**5_000, -(10**5_000)], ids=["huge", "minus huge"])
def test_numbers_too_long_for_python_to_print_are_settings_errors(huge):
    with pytest.raises(SettingsError) as caught:
        Settings(rank=huge)
    assert len(str(caught.value)) < 500


@given(configurations())
@hypothesis_settings(max_examples=60)
def test_typed_values_and_typed_text_give_the_same_settings(typed):
    settings = parse(typed)
    values = {name: getattr(settings, name) for name in format_settings(settings)}
    assert Settings(**values) == settings


@pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS)
def test_results_survive_pickling(opening):
    result = estimate(parse(opening))
    assert pickle.loads(pickle.dumps(result)) == result


def test_errors_survive_pickling():
    with pytest.raises(SettingsError) as caught:
        Settings(rank=0)
    assert pickle.loads(pickle.dumps(caught.value)).errors == caught.value.errors
    with pytest.raises(NotExpressible) as refused:
        estimate(Settings(accounting="planning", optimizer="lion"))
    again = pickle.loads(pickle.dumps(refused.value))
    assert (again.field, again.message, str(again)) == ("optimizer", refused.value.message, refused.value.message)


def test_targets_may_be_a_list():
    assert Settings(method="lora", adapter_targets=["v", "q"]) == Settings(method="lora", adapter_targets="q,v")
