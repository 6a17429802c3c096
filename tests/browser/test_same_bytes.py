"""The estimator inside the page gives what it gives in CPython, to the byte; so does the JSON document it saves."""

from decimal import Context, Decimal
from itertools import cycle
import json
from pathlib import Path

from playwright.sync_api import expect
import pytest

import answers
from command import flags, run
from configurations import CUSTOM, GPU_CLASSES, STACKS, random_configurations
from oracle import PRESETS
import runs

GIB, GB = 2**30, 10**9
RANDOM = [*random_configurations(24, seed=20), *random_configurations(36, seed=21, accounting="step")]


def custom_budget(peak, unit):
    """A number of bytes as an exact decimal number of GiB or GB."""
    exact = Context(prec=120).divide(Decimal(peak), Decimal({"gib": GIB, "gb": GB}[unit]))
    return {"gpu": "custom", "budget": f"{exact:f}", "budget_unit": unit}


def at_the_budget():
    """Runs whose peak is the budget to the byte, one byte above and one below, typed in each unit."""
    found = []
    planned = {"accounting": "planning", "activation_multiplier": "1.37", "extra_allowance": "0.3"}
    for texts in ({}, planned, {"model": "qwen3-8b", "method": "lora"}):
        run = runs.of(**texts)
        needed = run.peak_bytes + run.context_bytes
        for unit in ("gib", "gb"):
            found += [{**texts, **custom_budget(needed + off, unit)} for off in (0, -1, 1)]
    return found


CASES = [
    *({"model": model, "method": method, "sequence_length": "512"} for model, method in zip((*PRESETS, "custom"), cycle(("full", "lora", "qlora")))),
    *({"gpu": str(gpu), "model": "llama-3.2-3b", "method": "lora"} for gpu in GPU_CLASSES),
    {**CUSTOM, "hidden_size": "1", "num_layers": "1", "num_attention_heads": "1", "num_kv_heads": "1", "head_dim": "1",
     "intermediate_size": "1", "vocab_size": "1", "rank": "1", "sequence_length": "1"},
    {**CUSTOM, "hidden_size": "1048576", "num_layers": "1024", "num_attention_heads": "4096", "num_kv_heads": "4096",
     "head_dim": "4096", "intermediate_size": "1048576", "vocab_size": "4194304", "sequence_length": "131072",
     "micro_batch": "1024", "attention_kernel": "eager", "checkpointing": "none", "activation_multiplier": "4"},
    {"accounting": "planning", "activation_multiplier": "0.333333333333333333333333333333", "extra_allowance": "0.1"},
    {"accounting": "planning", "activation_multiplier": "1.10", "extra_allowance": "127.99999999999999999999"},
    {"accounting": "unsloth", "floor_fraction": "0.333333333333333333", "model": "mixtral-8x7b", "sequence_length": "333"},
    {"accounting": "unsloth", "unsloth_revision": "2026-08", "attention_kernel": "eager", "method": "full", "floor_fraction": "0.2"},
    *({"stack": stack, "sequence_length": "3000"} for stack in STACKS),
    {"gpu": "rtx-4090", "other_processes": "1.205078125", "sequence_length": "6000", "adapter_targets": "q,v,lm_head", "loss": "logits"},
    {"gpu": "t4", "other_processes": "40"},
    {"model": "llama-3.2-3b", "method": "lora", "loss": "fused-linear", "gpu": "8"},
    {"trainable_precision": "pure-bf16", "optimizer": "adamw-8bit", "checkpointing": "none", "attention_kernel": "eager"},
    {"method": "full", "rank": "3", "adapter_targets": "attention"},
    *at_the_budget(),
    *RANDOM,
    {"rank": "0", "sequence_length": "40000", "model": "qwen3-8b", "gpu": "23", "micro_batch": "٣"},
    {"accounting": "planning", "activation_multiplier": "NaN", "extra_allowance": "1e2", "method": "<b>"},
    {"accounting": "planning", "optimizer": "lion"},
    {"stack": "trl-1.15", "loss": "fused-linear"},
]

IN_PAGE = """([source, cases]) => {
    const scope = pyodide.globals.get('dict')();
    pyodide.runPython(source, { globals: scope });
    return [scope.get('where')(), scope.get('answers')(cases)];
}"""


@pytest.fixture
def in_page(calculator):
    """What the page's own Python answers to all cases."""
    source = Path(answers.__file__).read_text(encoding="utf-8")
    where, text = calculator.root.evaluate(IN_PAGE, [source, json.dumps(CASES)])
    assert where == "emscripten"
    return json.loads(text)


def test_every_answer_is_the_same_in_the_page(in_page):
    here = json.loads(answers.answers(json.dumps(CASES)))
    assert len(here) == len(in_page) == len(CASES) > 90
    wrong = [(case, mine, its) for case, mine, its in zip(CASES, here, in_page, strict=True) if mine != its]
    assert [(case, _apart(mine, its)) for case, mine, its in wrong[:1]] == []
    outcomes = [answer["estimate"]["headroom_bytes"] for answer in here if "estimate" in answer]
    assert {0, -1, 1} <= set(outcomes)
    assert sum("errors" in answer for answer in here) == 2
    assert sum("reason" in answer for answer in here) >= 2
    assert {answer["estimate"]["verdict"] for answer in here if "estimate" in answer} == {"yes", "likely", "unlikely", "no"}


def _apart(mine, its):
    """Only what differs of two answers."""
    return {key: (mine.get(key), its.get(key)) for key in {*mine, *its} if mine.get(key) != its.get(key)}


def test_the_saved_document_is_the_one_the_terminal_prints(calculator, shared_visit, tmp_path):
    texts = {"model": "qwen3-8b", "method": "lora", "gpu": "custom", "budget": "20.125", "lora_dropout": "0.05"}
    assert shared_visit.watch.asked_for("pydantic") == []
    calculator.set(**texts)
    calculator.share()
    with calculator.page.expect_download() as started:
        calculator.dialog.get_by_role("button", name="Save as JSON").click()
    assert started.value.suggested_filename == "estimate.json"
    saved = tmp_path / "estimate.json"
    started.value.save_as(saved)
    printed = run("estimate", "--json", *flags(texts))
    assert saved.read_text(encoding="utf-8") == printed.out.rstrip("\n")
    assert json.loads(printed.out)["peak_bytes"] == runs.of(**texts).peak_bytes
    expect(calculator.dialog.get_by_role("status")).to_contain_text("estimate.json")
    assert shared_visit.watch.asked_for("pydantic") != []


def test_a_failed_download_of_the_document_parts_is_told_and_works_again(visit):
    visitor = visit()
    visitor.watch.expect_error(r"/stdlib-")
    visitor.context.route("**/stdlib-*", lambda route: route.abort())
    page = visitor.open()
    page.share()
    save = page.dialog.get_by_role("button", name="Save as JSON")
    save.click()
    expect(page.dialog.get_by_role("status")).to_contain_text("try again")
    visitor.context.unroute("**/stdlib-*")
    with page.page.expect_download() as started:
        save.click()
    assert json.loads(Path(started.value.path()).read_text(encoding="utf-8"))["peak_bytes"] == runs.of().peak_bytes
