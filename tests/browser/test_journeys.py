"""The main job: set a run, read the answer, see what would fit, follow it, read the curve and the formulas."""

import re

from playwright.sync_api import expect
import pytest

from vramplan import accounts, report, studio, words
from vramplan.calculation import steps, value_texts
from vramplan.catalogue import cards
from vramplan.curve import curve
from vramplan.data import table
from vramplan.fields import BY_NAME
from vramplan.fit import fit
import runs

HARDWARE = {
    "llama-3.2-1b": {"method": "full", "gpu": "24"},
    "llama-3.2-3b": {"method": "lora", "rank": "64", "adapter_targets": "attention", "gpu": "16"},
    "llama-3.1-8b": {"method": "full", "gpu": "80"},
    "qwen3-8b": {"method": "qlora", "rank": "8", "gpu": "12", "sequence_length": "32768"},
}
CUSTOM_DECODER = {
    "hidden_size": "3584", "num_layers": "28", "num_attention_heads": "28", "num_kv_heads": "4", "head_dim": "160",
    "intermediate_size": "18944", "vocab_size": "152064", "tied_embeddings": "true",
}
TRAITS = {"query_key_norms": "true", "extra_norms": "true", "logit_softcap": "true", "sliding_window": "512"}
ADVANCED = {
    "trainable_precision": "pure-bf16", "optimizer": "adafactor", "gradient_accumulation_steps": "3", "base_precision": "fp32",
    "lora_dropout": "0.05", "kbit_preparation": "norms", "loss": "chunked", "checkpointing": "none", "attention_kernel": "eager",
    "half_precision": "fp16", "quantization": "gptq", "stack": "trl-0.25", "adapter_targets": "q,v,down",
    "replicas": "4", "micro_batch": "2", "sequence_length": "1024",
}
PLANNED = {"accounting": "planning", "trainable_precision": "pure-bf16", "optimizer": "adamw-8bit", "activation_multiplier": "1.25",
           "extra_allowance": "0.75", "checkpointing": "none", "attention_kernel": "eager"}
LIKELY = {"model": "llama-3.2-3b", "method": "lora", "loss": "fused-linear", "gpu": "8"}
UNLIKELY = {"sequence_length": "7000"}
METHOD_FIELDS = ("rank", "adapter_targets")
BUDGET_FIELDS = ("budget", "budget_unit")


def expect_everything(page, run):
    """Every part of the results tells this run."""
    found = fit(run.settings)
    page.expect_headline(run)
    for fact in report.facts(run):
        expect(page.fact(fact.label)).to_contain_text(f"{fact.text} {fact.exact}")
    page.expect_rows(page.table("What fills the memory"), runs.component_rows(run))
    expect_behind_the_number(page, run)
    page.expect_rows(page.table("What fits"), runs.change_rows(report.alternatives(run, found)))
    page.expect_rows(page.table("Methods compared"), runs.change_rows(report.methods(run)))
    for answer in (*report.maxima(run, found), report.smallest_gpu(run, found)):
        expect(page.tile(answer.label)).to_contain_text(answer.text)
        expect(page.tile(answer.label)).to_contain_text(answer.sentence)
    expect(page.region("Memory against sequence length")).to_contain_text(report.curve_sentence(run, found))


def expect_behind_the_number(page, run):
    """Moments, assumptions and differences tell this run; a run by a sum of formulas has no moments and no stack."""
    of_steps = run.process is not None
    for part in ("The step, moment by moment", "What is assumed"):
        expect(page.region(part)).to_be_visible(visible=of_steps)
    if of_steps:
        page.expect_rows(page.moments(), runs.moment_rows(run))
        told = accounts.assumptions(run)
        for sentence in (told.sentence, told.spread, accounts.unchecked_text(run)):
            expect(page.region("What is assumed")).to_contain_text(sentence)
        expect(page.answer).to_contain_text(accounts.unchecked_text(run))
        page.expect_rows(page.table("What is assumed"), runs.stack_rows(run))
    page.expect_rows(page.table("How others count this run"), runs.other_rows(run))
    differences = accounts.differences(run)
    expect(page.by_component()).to_be_visible(visible=bool(differences))
    if differences:
        page.expect_rows(page.table("How others count this run", 1), runs.difference_rows(run))


@pytest.mark.parametrize("model", HARDWARE)
def test_a_preset_from_start_to_answer(calculator, model):
    texts = {"model": model, **HARDWARE[model]}
    calculator.set(**texts)
    run = runs.of(**texts)
    expect_everything(calculator, run)
    expect(calculator.page).to_have_title(re.compile(f"^{report.headline(run).peak} GiB"))


def test_a_custom_decoder_dimension_by_dimension(calculator):
    for name in CUSTOM_DECODER:
        expect(calculator.form.get_by_label(BY_NAME[name].label, exact=True)).not_to_be_visible()
    calculator.choose("model", "custom")
    for name, text in CUSTOM_DECODER.items():
        calculator.set(**{name: text})
    expect_everything(calculator, runs.of(model="custom", **CUSTOM_DECODER))

    calculator.set(**TRAITS)
    calculator.set(**ADVANCED)
    run = runs.of(model="custom", **CUSTOM_DECODER, **TRAITS, **ADVANCED)
    assert run.settings.effective_batch == 24
    expect_everything(calculator, run)

    calculator.choose("model", "llama-3.2-1b")
    expect(calculator.control("hidden_size")).not_to_be_visible()
    calculator.choose("model", "custom")
    for name, text in CUSTOM_DECODER.items():
        calculator.expect_setting(name, text)
    calculator.expect_headline(run)


def test_settings_are_shown_only_where_they_apply(calculator):
    calculator.set(rank="12")
    for method, shown in (("full", False), ("lora", True), ("full", False), ("qlora", True)):
        calculator.choose("method", method)
        for name in METHOD_FIELDS:
            expect(calculator.control(name)).to_be_visible(visible=shown)
        calculator.expect_headline(runs.of(method=method, rank="12"))
    calculator.expect_setting("rank", "12")
    for gpu, shown in (("custom", True), ("48", False)):
        calculator.choose("gpu", gpu)
        for name in BUDGET_FIELDS:
            expect(calculator.control(name)).to_be_visible(visible=shown)

    expect(calculator.form).to_contain_text("1 to 131,072 tokens")
    calculator.choose("model", "qwen3-8b")
    expect(calculator.form).to_contain_text("1 to 32,768 tokens")


def test_dpo_takes_a_stack_that_has_it_and_shows_its_reference(calculator):
    expect(calculator.control("reference")).not_to_be_visible()
    calculator.set(objective="dpo", method="full", gpu="288")
    calculator.expect_setting("stack", "trl-1.15")
    run = runs.of(objective="dpo", method="full", gpu="288", stack="trl-1.15")
    expect_everything(calculator, run)
    expect(calculator.table("What fills the memory")).to_contain_text("Reference model")
    expect(calculator.moments()).to_contain_text("Forward of the reference")

    calculator.set(reference="precomputed")
    calculator.expect_headline(runs.of(objective="dpo", method="full", gpu="288", stack="trl-1.15", reference="precomputed"))
    expect(calculator.table("What fills the memory")).not_to_contain_text("Reference model")
    calculator.choose("objective", "grpo")
    expect(calculator.answer).to_contain_text("GRPO is not counted")
    calculator.choose("objective", "reward")
    expect(calculator.control("loss")).not_to_be_visible()
    expect_everything(calculator, runs.of(objective="reward", method="full", gpu="288", stack="trl-1.15"))


def test_the_planning_formula_with_its_own_settings(calculator):
    for name in ("activation_multiplier", "extra_allowance"):
        expect(calculator.form.get_by_label(BY_NAME[name].label, exact=True)).not_to_be_visible()
    calculator.set(**PLANNED)
    expect_everything(calculator, runs.of(**PLANNED))
    for name in ("stack", "quantization", "loss", "lora_dropout"):
        expect(calculator.form.get_by_label(BY_NAME[name].label, exact=True)).not_to_be_visible()


def test_the_accountings_stand_side_by_side_and_are_followed(calculator):
    calculator.set(sequence_length="4096")
    texts = {"sequence_length": "4096"}
    for label, name in (("Planning formula", "planning"), ("Unsloth Studio", "unsloth"), ("Training step", "step")):
        calculator.accounting(label).click()
        calculator.expect_setting("accounting", name)
        expect_everything(calculator, runs.of(**texts, accounting=name))
        assert runs.of_query(calculator.query) == runs.of(**texts, accounting=name)
    peaks = {name: runs.of(**texts, accounting=name).peak_bytes for name in ("planning", "unsloth", "step")}
    assert len(set(peaks.values())) == 3


def test_another_stack_is_another_number(calculator):
    before = runs.of()
    calculator.set(stack="trl-1.15")
    run = runs.of(stack="trl-1.15")
    assert run.peak_bytes < before.peak_bytes
    assert accounts.unchecked(run)
    expect_everything(calculator, run)
    label = next(each.label for each in accounts.assumptions(run).stacks if not each.current)
    calculator.apply("What is assumed", re.compile(f"^{re.escape(label)}$"))
    calculator.expect_headline(before)
    calculator.expect_setting("stack", before.settings.stack)


def test_adapter_targets_one_by_one(calculator):
    expect(calculator.own_targets).not_to_be_visible()
    calculator.control("adapter_targets").get_by_role("radio", name=re.compile("^A list")).check()
    expect(calculator.own_targets).to_have_value("q,k,v,o,gate,up,down")
    calculator.list_targets("v, q")
    run = runs.of(adapter_targets="v, q")
    assert run.parameters.trainable < runs.of(adapter_targets="attention").parameters.trainable
    expect_everything(calculator, run)
    assert runs.of_query(calculator.query) == run
    calculator.choose("method", "full")
    calculator.choose("method", "qlora")
    calculator.expect_setting("adapter_targets", "v, q")
    calculator.choose("adapter_targets", "attention")
    expect(calculator.own_targets).not_to_be_visible()
    calculator.expect_headline(runs.of(adapter_targets="attention"))
    calculator.control("adapter_targets").get_by_role("radio", name=re.compile("^A list")).check()
    calculator.expect_setting("adapter_targets", "v, q")
    calculator.expect_headline(run)


def test_a_card_by_name_and_what_others_use_of_it(calculator):
    expect(calculator.form.get_by_label(BY_NAME["other_processes"].label, exact=True)).not_to_be_visible()
    calculator.set(gpu="rtx-4090")
    expect_everything(calculator, runs.of(gpu="rtx-4090"))
    groups = calculator.control("gpu").locator("optgroup")
    unified = [card for card in cards().values() if card.unified]
    assert [groups.nth(place).get_by_role("option").count() for place in range(1, groups.count())] == [len(cards()) - len(unified), len(unified)]
    calculator.set(other_processes="1.5")
    run = runs.of(gpu="rtx-4090", other_processes="1.5")
    assert run.budget_bytes == runs.of(gpu="rtx-4090").budget_bytes - 3 * 2**29
    calculator.expect_headline(run)


@pytest.mark.parametrize(
    ("pasted", "gib"),
    [
        ("|  0%   41C    P8     21W / 450W |    1234MiB /  24564MiB |      2%      Default |", "1.205078125"),
        ("index, memory.total [MiB], memory.used [MiB], memory.free [MiB]\n0, 24564 MiB, 512 MiB, 23559 MiB", "0.5"),
        ("2048 MiB", "2"),
    ],
)
def test_nvidia_smi_output_is_pasted(calculator, pasted, gib):
    calculator.set(gpu="rtx-4090")
    calculator.root.evaluate("text => navigator.clipboard.writeText(text)", pasted)
    calculator.control("other_processes").select_text()
    calculator.page.keyboard.press("ControlOrMeta+V")
    calculator.expect_setting("other_processes", gib)
    expect(calculator.status(f"= {gib} GiB from what was pasted")).to_be_visible()
    run = runs.of(gpu="rtx-4090", other_processes=gib)
    calculator.expect_headline(run)
    assert runs.of_query(calculator.query) == run


@pytest.mark.parametrize("texts", [LIKELY, UNLIKELY], ids=("likely", "unlikely"))
def test_a_verdict_between_yes_and_no(calculator, texts):
    run = runs.of(**texts)
    assert run.verdict == {id(LIKELY): "likely", id(UNLIKELY): "unlikely"}[id(texts)]
    calculator.set(**texts)
    expect_everything(calculator, run)
    told = report.headline(run)
    expect(calculator.page).to_have_title(f"{told.peak} GiB: {told.verdict.lower()} {told.budget} GiB | VRAM Plan")
    expect(calculator.status(told.sentence)).to_have_count(1)


def test_a_run_the_planning_formula_cannot_count(calculator):
    texts = {"optimizer": "lion"}
    calculator.set(**texts)
    expect_everything(calculator, runs.of(**texts))
    calculator.accounting("Planning formula").click()
    settings, reason = runs.why_not(**texts, accounting="planning")
    calculator.expect_no_number(settings, reason)
    expect(calculator.control("optimizer")).to_have_accessible_description(re.compile(re.escape(reason.message)))
    expect(calculator.status(reason.message)).to_have_count(1)
    expect(calculator.region("What fits")).not_to_be_visible()
    calculator.share()
    assert calculator.shared("Terminal").endswith("--accounting planning --optimizer lion")
    expect(calculator.dialog.get_by_role("button", name="Save as JSON")).to_have_count(0)
    calculator.page.keyboard.press("Escape")
    calculator.page.reload()
    calculator.wait_ready()
    calculator.expect_no_number(settings, reason)
    calculator.answer.get_by_role("link", name=reason.message).click()
    expect(calculator.control("optimizer")).to_be_focused()
    calculator.choose("optimizer", "adamw-8bit")
    expect_everything(calculator, runs.of(optimizer="adamw-8bit", accounting="planning"))

    calculator.set(accounting="step", quantization="awq")
    expect(calculator.region("How it is calculated")).to_contain_text(runs.by(runs.of(quantization="awq"), "planning").message)
    calculator.choose("accounting", "planning")
    settings, reason = runs.why_not(quantization="awq", optimizer="adamw-8bit", accounting="planning")
    calculator.expect_no_number(settings, reason)
    expect(calculator.control("accounting")).to_have_accessible_description(re.compile(re.escape(reason.message)))


def test_a_run_the_training_step_cannot_count(calculator):
    texts = {"stack": "trl-1.15", "loss": "fused-linear"}
    calculator.set(**texts)
    calculator.expect_no_number(*runs.why_not(**texts))
    calculator.accounting("Planning formula").click()
    expect_everything(calculator, runs.of(**texts, accounting="planning"))


def test_a_custom_decoder_starts_from_the_preset_with_its_traits(calculator):
    calculator.set(model="gemma-2-2b")
    before = runs.of(model="gemma-2-2b")
    calculator.choose("model", "custom")
    expect(calculator.figure("Estimated peak per GPU")).to_contain_text(report.headline(before).peak)
    calculator.expect_setting("extra_norms", "true")  # the folded part is open, since it explains the number
    assert runs.of_query(calculator.query).terms == before.terms


def test_changing_the_budget_unit_keeps_the_bytes(calculator):
    calculator.set(gpu="custom", budget="24")
    calculator.expect_headline(runs.of(gpu="custom", budget="24"))
    calculator.choose("budget_unit", "gb")
    calculator.expect_setting("budget", "25.769803776")
    in_gb = runs.of(gpu="custom", budget="25.769803776", budget_unit="gb")
    assert in_gb.budget_bytes == 24 * 2**30
    calculator.expect_headline(in_gb)
    calculator.choose("budget_unit", "gib")
    calculator.expect_setting("budget", "24")

    calculator.choose("budget_unit", "gb")
    calculator.set_number("budget", "24")
    calculator.choose("budget_unit", "gib")
    typed = calculator.control("budget").input_value()
    same = runs.of(gpu="custom", budget=typed)
    assert same.budget_bytes == 24 * 10**9
    calculator.expect_headline(same)
    calculator.choose("budget_unit", "gb")
    calculator.expect_setting("budget", "24")


def test_a_peak_at_the_budget_says_on_which_side_it_lies(calculator):
    for accounting, what in (("step", "the budget less the CUDA context"), ("planning", "the budget")):
        run = runs.of(accounting=accounting)
        needed = run.peak_bytes + run.context_bytes
        exact = f"{needed // 10**9}.{needed % 10**9:09d}"
        below = f"{(needed - 1) // 10**9}.{(needed - 1) % 10**9:09d}"
        calculator.set(accounting=accounting, gpu="custom", budget_unit="gb", budget=exact)
        calculator.expect_headline(runs.of(accounting=accounting, gpu="custom", budget=exact, budget_unit="gb"))
        expect(calculator.answer).to_contain_text(f"The peak equals {what} to the byte")
        calculator.set(budget=below)
        calculator.expect_headline(runs.of(accounting=accounting, gpu="custom", budget=below, budget_unit="gb"))
        expect(calculator.answer).to_contain_text(f"the peak is 1 byte above {what}")
        expect(calculator.answer).to_contain_text("Shortfall")


def test_what_fits_is_followed_by_clicks(calculator):
    texts = {"sequence_length": "8192", "micro_batch": "4"}
    calculator.set(**texts)
    for change in ({"adapter_targets": "attention"}, {"optimizer": "adamw-8bit"}, {"sequence_length": 4096}, {"micro_batch": 1}):
        assert change in [each.change for each in fit(runs.of(**texts).settings).alternatives]
        calculator.apply("What fits", words.change_text(change))
        ((name, value),) = change.items()
        texts[name] = str(value)
        calculator.expect_headline(runs.of(**texts))
        calculator.open_advanced()
        calculator.expect_setting(name, texts[name])
    expect_everything(calculator, runs.of(**texts))

    for title, name in (("Largest micro-batch", "micro_batch"), ("Longest sequence", "sequence_length"), ("Smallest GPU class", "gpu")):
        run = runs.of(**texts)
        found = fit(run.settings)
        value = {"micro_batch": found.largest_micro_batch.value, "sequence_length": found.longest_sequence.value,
                 "gpu": found.smallest_gpu and found.smallest_gpu.gpu.name}[name]
        (answer,) = [each for each in (*report.maxima(run, found), report.smallest_gpu(run, found)) if each.label == title]
        expect(calculator.tile(title)).to_contain_text(answer.sentence)
        calculator.tile(title).get_by_role("link").click()
        texts[name] = str(value)
        calculator.expect_headline(runs.of(**texts))
        calculator.expect_setting(name, texts[name])
    assert runs.of(**texts).fits


def test_nothing_fits_and_everything_fits(calculator):
    texts = {"method": "full", "gpu": "8"}
    calculator.set(**texts)
    run = runs.of(**texts)
    assert fit(run.settings).largest_micro_batch.value is None
    expect_everything(calculator, run)
    for title in ("Largest micro-batch", "Longest sequence"):
        expect(calculator.tile(title).get_by_role("link")).to_have_count(0)

    texts = {"model": "llama-3.2-1b", "method": "qlora", "gpu": "288", "loss": "fused-linear"}
    calculator.set(**texts)
    run = runs.of(**texts)
    assert fit(run.settings).longest_sequence.at_cap
    expect_everything(calculator, run)
    expect(calculator.tile("Longest sequence")).to_contain_text("131,072+")


def test_methods_are_compared_and_chosen(calculator):
    calculator.set(rank="32")
    for label, method in (("Full", "full"), ("LoRA", "lora"), ("QLoRA", "qlora")):
        if method != "full":
            expect(calculator.table("Methods compared").get_by_role("link", name=label, exact=True)).to_be_visible()
        calculator.region("Methods compared").get_by_role("link", name=label, exact=True).click()
        calculator.expect_setting("method", method)
        run = runs.of(method=method, rank="32")
        calculator.expect_headline(run)
        calculator.expect_rows(calculator.table("Methods compared"), runs.change_rows(report.methods(run)))


def test_the_curve_is_read_by_keyboard_and_by_pointer_and_as_a_table(calculator):
    texts = {"attention_kernel": "eager", "sequence_length": "3000"}
    calculator.set(**texts)
    run = runs.of(**texts)
    expect(calculator.region("Memory against sequence length")).to_contain_text(report.line_label(run))
    points = {f"{point.sequence_length:,}": point for point in curve(run.settings).points}
    part = calculator.region("Memory against sequence length")
    slider, reading = calculator.curve_slider, calculator.curve_reading
    expect(reading).to_have_text(report.reading(points["3,000"]))

    slider.focus()
    seen = [reading.text_content()]
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Home", "End"):
        calculator.page.keyboard.press(key)
        expect(reading).not_to_have_text(seen[-1])
        seen.append(reading.text_content())
        expect(slider).to_have_attribute("aria-valuetext", seen[-1])
        expect(slider).to_be_focused()
    assert seen[1] == seen[3]
    for text in seen:
        tokens = re.match("[0-9,]+", text)[0].replace(",", "")
        (at,) = [each for each in curve(runs.of(**texts | {"sequence_length": tokens}).settings).points if str(each.sequence_length) == tokens]
        assert text == report.reading(at)

    drawing = part.get_by_role("img")
    drawing.scroll_into_view_if_needed()
    size = drawing.bounding_box()
    drawing.hover(position={"x": size["width"] * 0.3, "y": size["height"] / 2})
    expect(reading).not_to_have_text(seen[-1])
    hovered = reading.text_content()
    drawing.hover(position={"x": size["width"] * 0.8, "y": size["height"] / 3})
    expect(reading).not_to_have_text(hovered)
    calculator.answer.hover()
    expect(reading).to_have_text(report.reading(points["3,000"]))
    assert runs.of_query(calculator.query) == run

    part.locator("summary").click()
    calculator.expect_rows(calculator.table("Memory against sequence length"), runs.curve_rows(run))
    expect(drawing).to_contain_text(f"{fit(run.settings).longest_sequence.value:,}")


FORMULAS = {"planning": ("The planning formula’s steps", ("W", "T", "X", "Z", "J")), "unsloth": ("Unsloth Studio’s formulas", ("W", "O", "G", "X", "q"))}


@pytest.mark.parametrize("accounting", FORMULAS)
def test_the_formulas_show_the_values_of_the_run(calculator, accounting):
    label, symbols_shown = FORMULAS[accounting]
    if accounting == "unsloth":
        calculator.region("How it is calculated").locator("summary").filter(has_text="Its formulas, its names and what it records").click()
    part = calculator.region("How it is calculated").get_by_role("group", name=label)
    part.locator("summary").filter(has_text="Symbols and their values now").click()
    texts = {}
    for change in ({"method": "full", "checkpointing": "none"}, {"method": "lora", "attention_kernel": "eager", "gradient_accumulation_steps": "3"}):
        texts |= change
        calculator.set(**change)
        values = value_texts(runs.by(runs.of(**texts), accounting))
        for number, step in enumerate(steps(accounting)):
            shown = part.get_by_role("list").first.get_by_role("listitem").nth(number)
            expect(shown).to_contain_text(step.title)
            outcome = shown.get_by_text(re.compile("^= ")).filter(visible=True)
            expect(outcome).to_contain_text(f"= {values[step.symbol]} {step.unit}".strip())
        symbols = part.get_by_role("table", name="Symbols and their values now")
        for symbol in symbols_shown:
            expect(symbols).to_contain_text(values[symbol])


def test_unsloth_studio_with_its_own_settings_names_and_records(calculator):
    texts = {"accounting": "unsloth", "unsloth_revision": "2026-08", "floor_fraction": "0.2", "checkpointing": "offloaded", "quantization": "nf4"}
    calculator.set(**texts)
    expect_everything(calculator, runs.of(**texts))
    for name in ("stack", "loss", "trainable_precision", "activation_multiplier"):
        expect(calculator.form.get_by_label(BY_NAME[name].label, exact=True)).not_to_be_visible()
    fold = calculator.region("How it is calculated")
    fold.locator("summary").filter(has_text="Its formulas, its names and what it records").click()
    names = fold.get_by_role("table", name="This run as its own inputs have it")
    for label, each in studio.names(runs.of(**texts).settings):
        expect(names.get_by_role("row").filter(has_text=each.name)).to_have_text(re.compile(rf"{label}\s*{each.name}\s*{re.escape(each.value)}"))
    totals = fold.get_by_role("table", name="Totals of its reference table, GiB")
    for row in studio.table_rows():
        expect(totals).to_contain_text("".join((row.row, row.printed, row.with_table_floor, row.with_text_floor)))
    measured = fold.get_by_role("table", name="Its measured runs, GiB")
    for row in studio.validation_rows():
        expect(measured).to_contain_text("".join((row.row, row.printed, row.computed, row.measured)))


def test_worked_examples_open_as_runs(calculator):
    examples = calculator.region("Worked examples")
    count = len(table("examples")["example"])
    assert count == 3
    expect(examples.get_by_role("listitem")).to_have_count(count)
    for number in range(count):
        told = examples.get_by_role("listitem").nth(number)
        link = told.get_by_role("link")
        link.click()
        run = runs.of_query(link.get_attribute("href"))
        expect(told).to_contain_text(report.headline(run).sentence)
        expect_everything(calculator, run)
        assert runs.of_query(calculator.query) == run
