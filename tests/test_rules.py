"""The byte rules: figures as they were read, random runs against a second count in numpy, and what no rule is about.

Sources of the figures: [B] GPU memory and hardware basics, VRAM estimation and sharding (last reviewed 2026-09); [E] Model training
VRAM estimator, questions and answers; ZeRO, Rajbhandari et al. 2020, figure 1.
"""

from fractions import Fraction
import random

import pytest

import oracle_rules
from command import run
from configurations import MIXTURES, OPENING, OPENINGS, PRESETS, RULES, random_configurations
from vramplan import needs, report
from vramplan.accountings import estimate
from vramplan.accountings.rules import copies_of
from vramplan.accountings.rules.formulas import HALF, MIXED, QUANTIZED_BYTES, SERVED_BYTES, SINGLE, cache_bytes, states_bytes, weights_bytes
from vramplan.compare import by_accounting, compare
from vramplan.errors import NotExpressible
from vramplan.fields import applying
from vramplan.fit import fit
from vramplan.gpus import gpu_curves
from vramplan.link import read_query, to_query
from vramplan.parameters import base_parameters
from vramplan.settings import Settings, parse

GB, B = 10**9, 10**9


def of(**changes):
    return estimate(parse({**RULES, **changes}))


def held(**changes):
    return {term.name: term.bytes for term in of(**changes).terms}


# Figures

@pytest.mark.parametrize(("billions", "gb"), [(7, 14), (13, 26), (70, 140), (405, 810)])
def test_weights_in_16_bits(billions, gb):
    """[B] quick mental math."""
    assert weights_bytes(parameters=billions * B, per_parameter=SERVED_BYTES["bf16"], gpus=1) == gb * GB


def test_bytes_of_every_precision():
    """[B] bytes per precision: FP32 4, BF16 2, INT8 1, INT4 and NF4 half a byte; FP8 1."""
    assert SERVED_BYTES == {"fp32": 4, "bf16": 2, "fp8": 1, "int8": 1, "int4": Fraction(1, 2)}
    assert QUANTIZED_BYTES["nf4"] == Fraction(1, 2)
    assert weights_bytes(parameters=70 * B, per_parameter=SERVED_BYTES["int4"], gpus=1) == 35 * GB


def test_bytes_of_the_states_of_training():
    """[B] 2 + 2 + 4 + 4 + 4; [E] 8-bit Adam; FP32 has no master."""
    assert (MIXED.weight, MIXED.gradient, MIXED.master, MIXED.moments) == (2, 2, 4, 4 + 4) and MIXED.all == 16
    assert (SINGLE.weight, SINGLE.gradient, SINGLE.master, SINGLE.moments) == (4, 4, 0, 4 + 4)
    eight = copies_of(parse({**RULES, "optimizer": "adamw-8bit"}))
    assert (eight.weight, eight.gradient, eight.master, eight.moments) == (2, 2, 4, 1 + 1)


@pytest.mark.parametrize(("billions", "gb"), [(7, 112), (70, 1_120)])
def test_model_state_of_mixed_precision_training(billions, gb):
    """[B] 7B × 16 = 112 GB, 70B × 16 = 1.12 TB."""
    assert sum(states_bytes(parameters=billions * B, per_parameter=each, gpus=1) for each in (MIXED.weight, MIXED.gradient, MIXED.master, MIXED.moments)) == gb * GB


def test_gradients_and_states_of_a_7b_model():
    """[E] 14 GB of gradients; AdamW states of 28 to 56 GB, by the type of the moments."""
    assert states_bytes(parameters=7 * B, per_parameter=HALF.gradient, gpus=1) == 14 * GB
    assert [states_bytes(parameters=7 * B, per_parameter=each.moments, gpus=1) for each in (HALF, MIXED)] == [28 * GB, 56 * GB]


STAGES = {"none": lambda n: 16, "ddp": lambda n: 16, "zero1": lambda n: 4 + Fraction(12, n), "zero2": lambda n: 2 + Fraction(14, n),
          "zero3": lambda n: Fraction(16, n), "fsdp1": lambda n: Fraction(16, n), "fsdp2": lambda n: Fraction(16, n)}


@pytest.mark.parametrize("gpus", [1, 2, 7, 64, 1024])
@pytest.mark.parametrize("sharding", STAGES)
def test_bytes_per_parameter_and_gpu_of_every_stage(sharding, gpus):
    """[B] stage 1: 4 + 12/N, stage 2: 2 + 14/N, stage 3: 16/N; FSDP divides as stage 3 does."""
    one = of(method="full", sharding=sharding, sharded_over=str(gpus))
    states = sum(term.bytes for term in one.terms if term.name != "saved_activations")
    assert 0 <= states - STAGES[sharding](gpus) * one.parameters.total < len(one.terms)


@pytest.mark.parametrize(("sharding", "gb"), [("none", 120), ("zero1", 31.4), ("zero2", 16.6), ("zero3", 1.9)])
def test_the_example_of_the_zero_paper(sharding, gb):
    """7.5 B parameters on 64 GPUs (figure 1)."""
    per_parameter = STAGES[sharding](64)
    assert float(per_parameter * Fraction(15, 2)) == pytest.approx(gb, abs=0.05)


def test_seventy_billion_parameters_take_fourteen_gpus_of_80_gb_fully_divided():
    """[B] 1.12 TB of model state: 14 and more GPUs of 80 GB."""
    assert Fraction(70 * B * MIXED.all, 80 * GB) == 14
    found = fit(parse({**RULES, "model": "llama-3.1-70b", "method": "full", "gpu": "80"})).fewest_gpus
    assert found["zero3"] == found["fsdp2"] >= 14 and found["zero1"] is None


def test_keys_and_values_of_a_served_model():
    """[B] 2 × layers × kv heads × head dim × bytes × tokens."""
    assert cache_bytes(num_layers=32, num_kv_heads=8, head_dim=128, tokens=4_096, per_value=2) == 2 * 32 * 8 * 128 * 2 * 4_096
    served = held(task="inference", sequence_length="4096", micro_batch="1")
    assert served["kv_cache"] == 2 * 32 * 8 * 128 * 2 * 4_096 and set(served) == {"base_weights", "kv_cache"}


def test_worked_examples_of_inference():
    """[B] 70B in 16 bits takes at least two GPUs of 80 GB; in 4 bits its weights fit one and leave about 40 GB."""
    sixteen, four = (held(task="inference", model="llama-3.1-70b", served_weights=each)["base_weights"] for each in ("bf16", "int4"))
    assert 80 * GB < sixteen < 2 * 80 * GB and 40 * GB < 80 * GB - four < 46 * GB


# Random runs against the oracle

@pytest.mark.parametrize("seed", range(5))
def test_ten_thousand_random_runs_agree_with_a_second_count(seed):
    runs = [{**RULES, **typed, "task": "training"} for typed in random_configurations(2_500, seed=seed, accounting="rules") if typed["model"] in (*PRESETS, "custom")]
    counted = oracle_rules.ledger(runs)
    for index, typed in enumerate(runs):
        rows = {term.name: term.bytes for term in estimate(parse(typed)).terms}
        assert rows == {name: column[index] for name, column in counted.items()}, typed
    assert len(runs) > 2_000  # of each of the five: the others are mixtures of experts


def test_random_served_models_agree_with_a_second_count():
    runs = [{**RULES, **typed, "task": "inference"} for typed in random_configurations(1_000, seed=9, accounting="rules") if typed["model"] in (*PRESETS, "custom")]
    counted = oracle_rules.serving(runs)
    for index, typed in enumerate(runs):
        assert {term.name: term.bytes for term in estimate(parse(typed)).terms} == {name: column[index] for name, column in counted.items()}


@pytest.mark.parametrize("model", (*PRESETS, *MIXTURES))
def test_parameters_are_those_of_the_training_step(model):
    shape = Settings(model=model, sequence_length=128).architecture
    if shape.mixer == "none":
        assert base_parameters(shape) == estimate(Settings(model=model, sequence_length=128)).parameters.total


# Precision

def test_what_the_stack_decides_is_left_to_the_rule():
    assert copies_of(parse(RULES)) == copies_of(parse({**RULES, "stack": "trainer-4.49"})) == MIXED


@pytest.mark.parametrize(("changes", "copies"), [
    ({"trainable_precision": "pure-bf16"}, HALF), ({"trainable_precision": "mixed-bf16"}, MIXED), ({"autocast": "off"}, SINGLE),
    ({"method": "pretraining", "trainable_precision": "pure-bf16"}, MIXED), ({"autocast": "off", "trainable_precision": "pure-bf16"}, HALF)])
def test_copies_by_precision(changes, copies):
    assert copies_of(parse({**RULES, **changes})) == copies


# Inference

def test_while_a_model_answers_nothing_about_training_is_asked():
    shown = applying({**RULES, "task": "inference"})
    assert {"served_weights", "kv_cache", "gpu", "model", "sequence_length", "micro_batch"} <= shown
    assert not {"method", "rank", "optimizer", "checkpointing", "sharding", "replicas", "stack", "attention_kernel"} & shown
    assert not {"served_weights", "kv_cache"} & applying(RULES) and "task" not in applying(OPENING)


def test_an_optimizer_that_no_rule_counts_does_not_keep_a_model_from_answering():
    assert of(task="inference", optimizer="lion").peak_bytes == of(task="inference").peak_bytes


def test_the_other_accountings_say_that_they_count_training_only():
    counted = by_accounting(parse({**RULES, "task": "inference"}))
    assert {name for name, each in counted.items() if isinstance(each, NotExpressible)} == set(OPENINGS) - {"rules"}


def test_served_models_are_compared_by_the_type_of_their_weights():
    rows = compare(parse({**RULES, "task": "inference"}))
    assert [row.settings.served_weights for row in rows] == ["bf16", "fp32", "fp8", "int8", "int4"]
    now = of(task="inference", served_weights="int8")
    assert [row.label for row in report.methods(now) if row.current] == ["INT8"]


def test_how_many_sequences_fit_and_how_long_one_may_be():
    now = of(task="inference", gpu="24")
    found = fit(now.settings)
    per_token = held(task="inference", sequence_length="1", micro_batch="1")["kv_cache"]
    left = now.budget_bytes - held(task="inference")["base_weights"]
    assert found.largest_micro_batch.value == left // (2_048 * per_token)
    assert found.longest_sequence.value == left // per_token
    assert [answer.label for answer in report.maxima(now, found)] == ["Sequences at once", "Longest sequence"]
    assert report.run_text(now.settings) == "Llama 3.1 8B · inference, 16-bit weights · 2,048 tokens × 1"
    assert found.fewest_gpus == {}


def test_a_link_keeps_the_task_and_a_change_of_accounting_brings_the_training_back():
    served = parse({**RULES, "task": "inference", "served_weights": "int4"})
    link = read_query(to_query(served))
    assert parse(link.texts, version=link.version) == served
    assert not served.varied(accounting="step").serves


# What no rule is about

@pytest.mark.parametrize(("field", "changes"), [
    ("optimizer", {"optimizer": "adafactor"}), ("checkpointing", {"checkpointing": "offloaded"}), ("model", {"model": "lfm2-1.2b"}),
    ("method", {"model": "deepseek-v2-lite"}), ("model", {"model": "deepseek-v2-lite", "task": "inference"})])
def test_what_no_rule_is_about_is_named(field, changes):
    with pytest.raises(NotExpressible) as refused:
        of(**changes)
    assert refused.value.field == field and refused.value.message.startswith("The byte rules ")


def test_experts_count_with_all_their_parameters():
    one = of(model="mixtral-8x7b", method="full")
    assert one.parameters.total > 46 * B and held(model="mixtral-8x7b", method="full")["base_weights"] == 2 * one.parameters.total


def test_a_model_that_answers_is_not_divided():
    served = parse({**RULES, "task": "inference", "model": "llama-3.1-405b", "gpu": "80"})
    lengths, rows = needs.need_rows(served)
    assert gpu_curves(served) == () and "no single GPU" in {cell.text for row in rows for cell in row.cells}
    assert "FSDP2" not in needs.need_sentence(served) and "FSDP2" in needs.need_sentence(parse({**RULES}))


def test_a_sequence_that_is_alone_is_said_to_be():
    runs = [parse({**RULES, "task": "inference", "micro_batch": each}) for each in ("1", "4")]
    alone, among = (report.maxima(estimate(each), fit(each))[1].sentence for each in runs)
    assert "for one alone" in alone and "for each of 4 sequences" in among


@pytest.mark.parametrize(("arguments", "noted"), [(("--task", "inference"), True), (("--task", "inference", "--accounting", "rules"), False)])
def test_the_terminal_says_when_a_model_is_trained_that_was_to_answer(arguments, noted):
    assert ("task=inference" in run("estimate", *arguments).err) is noted
