"""Questions people ask, answered with the figures of the run: every figure is that of an estimate."""

import json
from string import Formatter
from pathlib import Path
import tomllib

import pytest

from command import run
from configurations import OPENING, OPENINGS, RULES
from vramplan.accountings import estimate
from vramplan.questions import FIGURES, Runs, answered
from vramplan.settings import parse

ASKED = tomllib.loads((Path(__file__).parent.parent / "app/vramplan/data/questions.toml").read_text(encoding="utf-8"))["question"]
GB = 10**9


def figure(name, **changes):
    return FIGURES[name](Runs(parse({**OPENING, **changes})))


def peak(**changes):
    return estimate(parse({**OPENING, **changes})).peak_bytes


def row(name, **changes):
    return max(term.bytes for moment in estimate(parse({**OPENING, **changes})).moments for term in moment.terms if term.name == name)


FULL = {"method": "full", "trainable_precision": "mixed-bf16"}


def test_every_figure_is_named_by_an_answer_and_every_name_has_a_figure():
    assert {name for entry in ASKED for _, name, _, _ in Formatter().parse(entry["answer"]) if name} == set(FIGURES)
    assert not any("{" in entry["question"] + entry["claim"] for entry in ASKED)


@pytest.mark.parametrize(("name", "count"), [
    ("full", peak(**FULL)), ("qlora", peak()), ("peak_without", peak(checkpointing="none")), ("kept_without", row("saved_activations", checkpointing="none")),
    ("adam8", row("optimizer_states", **FULL, optimizer="adamw-8bit")), ("batch_more", peak(micro_batch="2") - peak()),
    ("first_accumulation", peak(gradient_accumulation_steps="2") - peak(gradient_accumulation_steps="1")), ("zero3", peak(**FULL, sharding="zero3", sharded_over="8")),
    ("offloaded", peak(**FULL, sharding="zero2", sharded_over="8", offload="optimizer")), ("qlora13", peak(model="llama-2-13b", gradient_accumulation_steps="1")),
    ("inference", peak(accounting="rules", task="inference")), ("weights4", 8_030_261_248 // 2), ("weights32", 4 * 8_030_261_248)])
def test_amounts_are_those_of_estimates(name, count):
    assert figure(name) == f"{count / GB:,.1f}"


def test_ratios():
    eager = [row("saved_activations", checkpointing="none", attention_kernel="eager", sequence_length=each) for each in ("2048", "4096")]
    efficient = row("saved_activations", checkpointing="none")
    assert figure("eager_growth") == f"{eager[1] / eager[0]:.1f}" and 2 < eager[1] / eager[0] < 4
    assert figure("flash_saving") == f"{100 * (eager[0] - efficient) / eager[0]:.1f}"
    assert figure("full_ratio") == f"{peak(**FULL) / peak(accounting='rules', task='inference'):.1f}"


def test_a_length_that_the_model_does_not_have_twice_is_halved():
    assert (figure("length", model="llama-2-7b", sequence_length="4096"), figure("doubled", model="llama-2-7b", sequence_length="4096")) == ("2,048", "4,096")


@pytest.mark.parametrize("typed", [*OPENINGS.values(), {**RULES, "task": "inference"}, {**OPENING, "stack": "trl-1.15", "objective": "dpo"}])
def test_all_questions_are_answered_whatever_accounting_is_chosen(typed):
    found = answered(parse(typed))
    assert [each.question for each in found] == [entry["question"] for entry in ASKED]
    assert not any("{" in each.answer or "None" in each.answer for each in found)


def test_a_question_whose_figures_cannot_be_counted_is_left_out():
    found = [each.question for each in answered(parse({**OPENING, "model": "mixtral-8x7b"}))]
    assert 0 < len(found) < len(ASKED) and not any("ZeRO-3" in question for question in found)


def test_the_terminal_answers():
    out = run("questions").out
    assert all(entry["question"] in out and entry["claim"] in out for entry in ASKED)
    printed = json.loads(run("questions", "--json").out)["questions"]
    assert [each["claim"] for each in printed] == [entry["claim"] for entry in ASKED]


def test_small_amounts_are_not_told_as_nothing():
    states = row("optimizer_states", model="gpt2", method="lora", sequence_length="512")
    assert figure("adapter_states", model="gpt2", sequence_length="512") == f"{states / GB:.3f}"
    assert 0 < states < GB / 20


def test_more_accumulation_takes_no_more_than_a_second_step():
    assert figure("later_accumulation") == "0.0"
    assert float(figure("first_accumulation", method="full", gradient_accumulation_steps="1")) > 0


def test_a_share_below_nothing_has_the_minus_sign_of_every_other_number():
    assert figure("flash_saving", model="phi-4-mini", method="full", sequence_length="1").startswith("\N{MINUS SIGN}")
