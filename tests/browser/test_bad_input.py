"""Input that cannot be used: named once at the top and once at the field, in the words of the estimator; nothing lost."""

import re

from playwright.sync_api import expect
import pytest

import runs

BAD = {
    "rank": "0",
    "replicas": "129",
    "sequence_length": "2,048",
    "micro_batch": "",
    "gradient_accumulation_steps": "-1",
    "lora_dropout": "1e-1",
}
GOOD = {"rank": "8", "replicas": "2", "sequence_length": "1024", "micro_batch": "2", "gradient_accumulation_steps": "4",
        "lora_dropout": "0.5"}
RESULTS = ("What fills the memory", "What fits", "Methods compared", "Memory against sequence length")


def expect_problem(page, texts):
    """The summary names the first field, each wrong field says its sentence, and no result is shown."""
    sentences = runs.sentences(**texts)
    assert sentences
    first = next(iter(sentences.values()))
    expect(page.problems).to_be_visible()
    expect(page.problems.get_by_role("link").first).to_have_text(first)
    for name, sentence in sentences.items():
        expect(page.control(name)).to_have_attribute("aria-invalid", "true")
        expect(page.control(name)).to_have_accessible_description(re.compile(re.escape(sentence)))
        expect(page.form.get_by_text(sentence, exact=True)).to_be_visible()
    for part in RESULTS:
        expect(page.region(part)).not_to_be_visible()
    expect(page.answer).not_to_contain_text("Estimated peak per GPU", use_inner_text=True)


@pytest.mark.parametrize("name", BAD)
def test_one_wrong_number(calculator, name):
    calculator.type_number(name, BAD[name])
    expect_problem(calculator, {name: BAD[name]})
    calculator.control(name).blur()
    calculator.page.mouse.click(1, 1)
    calculator.problems.get_by_role("link").first.click()
    expect(calculator.control(name)).to_be_focused()
    expect(calculator.control(name)).to_be_in_viewport()
    calculator.expect_setting(name, BAD[name])

    calculator.type_number(name, GOOD[name])
    calculator.expect_headline(runs.of(**{name: GOOD[name]}))
    expect(calculator.control(name)).not_to_have_attribute("aria-invalid", "true")
    expect(calculator.problems).not_to_be_visible()
    for part in RESULTS:
        expect(calculator.region(part)).to_be_visible()


def test_many_wrong_numbers_are_mended_one_by_one(calculator):
    texts = dict(BAD)
    for name, text in reversed(BAD.items()):
        calculator.type_number(name, text)
    expect_problem(calculator, texts)
    calculator.expect_problems(runs.sentences(**texts).values())
    for name in BAD:
        texts[name] = GOOD[name]
        calculator.set_number(name, GOOD[name])
        for other, text in texts.items():
            calculator.expect_setting(other, text)
        if runs.sentences(**texts):
            expect_problem(calculator, texts)
    calculator.expect_headline(runs.of(**texts))


def test_a_folded_field_opens_when_it_is_wrong(calculator):
    calculator.type_number("lora_dropout", "2")
    calculator.form.get_by_text("Advanced", exact=True).click()
    expect(calculator.control("lora_dropout")).not_to_be_visible()
    calculator.problems.get_by_role("link").first.click()
    expect(calculator.control("lora_dropout")).to_be_focused()
    calculator.expect_setting("lora_dropout", "2")

    calculator.button("Reset").click()
    calculator.form.get_by_text("Advanced", exact=True).click()
    expect(calculator.control("lora_dropout")).not_to_be_visible()
    calculator.travel("?v=1&extra_allowance=130&activation_multiplier=0.2")
    expect(calculator.control("extra_allowance")).to_be_visible()
    expect_problem(calculator, {"accounting": "planning", "activation_multiplier": "0.2", "extra_allowance": "130"})

    calculator.button("Reset").click()
    calculator.travel("?v=2&model=custom&sliding_window=none")
    expect(calculator.control("sliding_window")).to_be_visible()
    expect_problem(calculator, {"model": "custom", "sliding_window": "none"})


def test_a_list_of_targets_with_a_mistake(calculator):
    calculator.list_targets("q, w")
    sentence = runs.sentences(adapter_targets="q, w")["adapter_targets"]
    expect(calculator.problems.get_by_role("link").first).to_have_text(sentence)
    expect(calculator.own_targets).to_have_attribute("aria-invalid", "true")
    expect(calculator.own_targets).to_have_accessible_description(re.compile(re.escape(sentence)))
    calculator.page.mouse.click(1, 1)
    calculator.problems.get_by_role("link").first.click()
    expect(calculator.own_targets).to_be_focused()
    calculator.page.reload()
    calculator.wait_ready()
    calculator.expect_setting("adapter_targets", "q, w")
    calculator.own_targets.fill("")
    expect(calculator.problems.get_by_role("link").first).to_have_text(runs.sentences(adapter_targets="")["adapter_targets"])
    calculator.own_targets.fill("q")
    calculator.expect_headline(runs.of(adapter_targets="q"))
    expect(calculator.own_targets).not_to_have_attribute("aria-invalid", "true")


def test_dimensions_that_do_not_go_together(calculator):
    calculator.set(model="custom", num_attention_heads="12", num_kv_heads="5")
    expect_problem(calculator, {"model": "custom", "num_attention_heads": "12", "num_kv_heads": "5"})
    calculator.type_number("num_kv_heads", "six")
    expect_problem(calculator, {"model": "custom", "num_attention_heads": "12", "num_kv_heads": "six"})
    calculator.choose("model", "llama-3.1-8b")
    calculator.expect_headline(runs.of())
    calculator.choose("model", "custom")
    calculator.expect_setting("num_kv_heads", "six")
    expect_problem(calculator, {"model": "custom", "num_attention_heads": "12", "num_kv_heads": "six"})
    calculator.set_number("num_kv_heads", "6")
    calculator.expect_headline(runs.of(model="custom", num_attention_heads="12", num_kv_heads="6"))


def test_a_model_with_a_shorter_cap_and_a_budget_in_the_wrong_unit(calculator):
    calculator.set(sequence_length="40000", model="qwen3-8b")
    expect_problem(calculator, {"sequence_length": "40000", "model": "qwen3-8b"})
    calculator.choose("model", "llama-3.2-3b")
    calculator.expect_headline(runs.of(sequence_length="40000", model="llama-3.2-3b"))

    calculator.button("Reset").click()
    calculator.set(gpu="custom", budget="a lot")
    expect_problem(calculator, {"gpu": "custom", "budget": "a lot"})
    calculator.choose("budget_unit", "gb")
    calculator.expect_setting("budget", "a lot")
    expect_problem(calculator, {"gpu": "custom", "budget": "a lot", "budget_unit": "gb"})
    calculator.set_number("budget", "2199.023255552")
    calculator.expect_headline(runs.of(gpu="custom", budget="2199.023255552", budget_unit="gb"))
