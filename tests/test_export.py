"""A run becomes a file of a tool, and the file becomes the run again.

Belongs here: what is written, what cannot be said, the way there and back, scripts that are brought, the command. The page: browser/test_export_dialog.py.
"""

import ast
from pathlib import Path
import random
import tomllib

import pytest
from command import run
from vramplan import Settings
from vramplan.accountings import estimate
from vramplan.catalogue import CUSTOM, DIMENSIONS, TRAITS, defaults, presets
from vramplan.errors import NotExpressible, SettingsError
from vramplan.exporting.draft import FACTS, as_a_step
from vramplan.exporting.export import FORMS, MARKDOWN, TOOLS_OUT, export
from vramplan.fields import BY_NAME, FIELDS, applying
from vramplan.importing.imported import OF_A_RUN, import_text
from vramplan.importing.problems import ImportProblem
from vramplan.kinds import Choice
from vramplan.link import read_query
from vramplan.policy import policy
from vramplan.report import headline
from vramplan.settings import format_settings, parse
from vramplan.stacks import stacks
from vramplan.targets import EVERYTHING
from vramplan.training_files.tools import tool
from vramplan.training_files.training import needs_yaml

LINK = "https://example.org/vram/?v=2&model=qwen3-8b"
RUNS = 350
FIELDS_OF = tomllib.loads(Path(__file__).with_name("exported").joinpath("fields.toml").read_text(encoding="utf-8"))
DISTINCT = {"lora_dropout": ("0", "0.05", "0.1"), "micro_batch": ("1", "2", "7", "64"), "rank": ("1", "8", "32", "256"), "gradient_accumulation_steps": ("1", "4", "16"),
            "replicas": ("1", "2", "8"), "sharded_over": ("1", "4", "16"), "adapter_targets": ("attention", "all-linear", "q,v", "q,k,v,o,up,down", "gate")}
RUN_SETTINGS = ("stack", "model", *OF_A_RUN)


def drawn(chance):
    """A run with some settings at random, that an accounting can count."""
    while True:
        texts = {"model": chance.choice([*presets(), CUSTOM])} if chance.random() < 0.6 else {}
        for name in chance.sample([name for name in RUN_SETTINGS if name not in ("model", "task", "measured")], chance.randrange(0, 14)):
            kind = BY_NAME[name].kind
            if name in DISTINCT:
                texts[name] = chance.choice(DISTINCT[name])
            elif isinstance(kind, Choice):
                texts[name] = chance.choice([option.value for option in kind.options])
        if chance.random() < 0.2:
            texts |= {"objective": chance.choice(("dpo", "reward")), "stack": chance.choice(("trl-1.15", "trl-1.6", "trl-1.5"))}
        if chance.random() < 0.2:
            texts["adapter_targets"] = ",".join(part for part in EVERYTHING if chance.random() < 0.4) or "v"
        texts["sequence_length"] = str(chance.choice((1, 333, 512, 1000)))
        texts["accounting"] = chance.choice(("step", "step", "step", "step", "planning", "unsloth"))
        try:
            return estimate(parse(texts))
        except (SettingsError, NotExpressible):
            continue


def given_back(text, current):
    """The settings that a file gives, read where the same model is chosen, as a model that is typed in has no name."""
    chosen = {name: each for name, each in format_settings(current.settings).items() if name in ("model", *DIMENSIONS, *TRAITS)}
    return import_text(text, chosen)


def exported(to="trl", **chosen):
    return export(estimate(Settings(**chosen)), to, link=LINK)


def keywords(text):
    """Arguments of every call of a script, by the name that is called."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    return [(call.func.id, [each.arg for each in call.keywords]) for call in calls]


# There and back


@pytest.mark.parametrize("to", TOOLS_OUT)
def test_a_file_that_is_brought_back_gives_every_setting_that_it_does_not_name_as_lost(to):
    chance = random.Random(f"there and back: {to}")
    said = set()
    for _ in range(RUNS):
        current = drawn(chance)
        made = export(current, to, link=LINK)
        back = given_back(made.text, current)
        meant = format_settings(made.means)
        assert {name: back.texts[name] for name in RUN_SETTINGS if name not in ("model", "task")} == {name: meant[name] for name in RUN_SETTINGS if name not in ("model", "task")}
        wanted, lost = as_a_step(current.settings), {each.setting for each in made.lost}
        assert back.texts.get("model", CUSTOM) == wanted.model or "model" in lost
        texts = format_settings(wanted)
        for name in applying(texts) & set(RUN_SETTINGS):
            if texts[name] != meant[name] and name not in lost and name != "task":
                assert same_by_another_name(name, wanted, parse(meant | {"accounting": "step"})), (name, texts[name], meant[name])
            said |= {(name, meant[name])} if texts[name] == meant[name] else set()
    usual = defaults()
    assert {name for name, text in said if text != usual[name]} >= {"stack", "model", "method", "objective", "rank", "adapter_targets", "optimizer", "sharding", "replicas", "checkpoint_kind", "autocast"}


def same_by_another_name(name, wanted, meant):
    """Whether a setting comes to the same in both runs: as the stack does it, or by naming the maps."""
    if name == "adapter_targets":
        return set(wanted.targets) == set(meant.targets)
    return name in FACTS and FACTS[name](policy(wanted)) == FACTS[name](policy(meant))


@pytest.mark.parametrize("to", TOOLS_OUT)
def test_nothing_is_lost_of_a_run_as_the_tool_makes_it(to):
    for method in ("full", "lora", "qlora"):
        made = exported(to, stack=tool(to).stack, method=method, model="qwen3-8b", rank=32, sequence_length=1000, micro_batch=3, gradient_accumulation_steps=2)
        assert made.lost == ()
        assert made.means.method == method and made.means.rank == (32 if method != "full" else 16)


@pytest.mark.parametrize("to", TOOLS_OUT)
def test_no_key_of_an_export_is_unknown_to_its_reader(to):
    chance = random.Random(f"known: {to}")
    for _ in range(40):
        current = drawn(chance)
        found = given_back(export(current, to, link=LINK).text, current)
        assert [each.key for each in found.unsupported if "not known to this" in each.why] == []


# What stands on top


def test_a_file_names_the_run_the_link_and_the_estimate_on_top():
    current = estimate(Settings(model="qwen3-8b", stack="trl-1.15"))
    lines = export(current, "trl", link=LINK).text.splitlines()
    assert lines[0].startswith("# TRL 1.16.0: Qwen3 8B") and lines[1] == f"# Link: {LINK}" and lines[2] == f"# {headline(current).sentence}"
    assert any("YOUR_DATASET" in line for line in lines if line.startswith("#"))
    assert not any("As this file says it" in line for line in lines)


def test_what_the_tool_has_no_key_for_is_named_with_what_that_comes_to():
    made = exported("trl", stack="trl-1.15", checkpointing="offloaded")
    line = next(line for line in made.text.splitlines() if line.startswith("# Not in this file: Gradient checkpointing:"))
    assert [each.setting for each in made.lost] == ["checkpointing"] and made.lost[0].why in line
    assert f"# As this file says it: {headline(estimate(made.means)).sentence}" in made.text


def test_a_model_that_is_typed_in_has_a_placeholder():
    made = exported("axolotl", model="custom")
    assert 'base_model: "YOUR_MODEL"' in made.text and "# To fill in: YOUR_MODEL" in made.text
    assert "model" in {each.setting for each in made.lost}


@pytest.mark.parametrize("quantization", ("gptq", "awq"))
@pytest.mark.parametrize("to", TOOLS_OUT)
def test_a_checkpoint_that_is_quantised_itself_has_a_placeholder(to, quantization):
    made = exported(to, method="qlora", quantization=quantization)
    assert "YOUR_QUANTISED_MODEL" in made.text and presets()["llama-3.1-8b"].repository not in made.text


@pytest.mark.parametrize("to", TOOLS_OUT)
def test_several_gpus_are_started_by_a_command_that_is_read_again(to):
    made = exported(to, method="lora", sharding="zero3", sharded_over=8, stack=tool(to).stack, optimizer="adamw-fused")
    assert any(line.startswith("# Start: ") and " 8 " in line.replace("=", " ") for line in made.text.splitlines())
    found = import_text(made.text, {})
    assert (found.texts["sharding"], found.texts["sharded_over"], found.texts["replicas"]) == ("zero3", "8", "1")


def test_a_link_cannot_end_the_comment_it_stands_in():
    for to in FORMS:
        text = export(estimate(Settings()), to, link="https://example.org/?v=2\nimport os\n").text
        assert "\nimport os" not in text


def test_a_model_that_answers_has_no_training_file():
    current = estimate(Settings(accounting="rules", task="inference"))
    with pytest.raises(NotExpressible, match="not trained"):
        export(current, "trl", link=LINK)
    assert "inference" in export(current, MARKDOWN, link=LINK).text


# The script


def test_every_argument_of_a_script_is_one_of_its_class():
    chance = random.Random("arguments")
    classes = set()
    for _ in range(150):
        text = export(drawn(chance), "trl", link=LINK).text
        compile(text, "script", "exec")
        for name, arguments in keywords(text):
            if name != "load_dataset":
                classes.add(name)
                known = {*FIELDS_OF[name]["names"], *(FIELDS_OF["TrainingArguments"]["names"] if name in ("SFTConfig", "DPOConfig", "RewardConfig") else ())}
                assert set(arguments) <= known, name
    assert classes == set(FIELDS_OF) - {"TrainingArguments"}


@pytest.mark.parametrize("to", ("axolotl", "llama-factory"))
def test_keys_of_a_yaml_are_those_of_its_tables(to):
    chance = random.Random(f"keys: {to}")
    for _ in range(60):
        text = export(drawn(chance), to, link=LINK).text
        written = {line.split(":")[0] for line in text.splitlines() if line and line[0] not in "# "}
        assert written <= tool(to).keys


def test_unsloth_inside_llama_factory_is_a_key():
    made = exported("llama-factory", stack="unsloth-2026.10", method="lora")
    assert "use_unsloth: true" in made.text and made.lost == () and made.means.stack == "unsloth-2026.10"


SCRIPT = """
import torch
from peft import LoraConfig
from transformers import AutoModelForCausalLM, BitsAndBytesConfig
from trl import SFTTrainer, SFTConfig

NAME = "Qwen/Qwen3-8B"
bnb = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16)
model = AutoModelForCausalLM.from_pretrained(NAME, quantization_config=bnb, dtype=torch.bfloat16, attn_implementation="flash_attention_2")
peft_config = LoraConfig(r=64, target_modules=["q_proj", "v_proj"])
args = SFTConfig("out", per_device_train_batch_size=4, max_length=len(NAME), optim="paged_adamw_8bit", **more)
SFTTrainer(model, args=args, train_dataset=data, peft_config=peft_config).train()
"""


def test_a_script_of_somebody_else_is_read_without_running_it():
    found = import_text(SCRIPT, {})
    said = {name: found.texts[name] for name in ("model", "method", "quantization", "base_precision", "rank", "lora_dropout", "adapter_targets", "micro_batch", "optimizer", "sequence_length")}
    assert said == {
        "model": "qwen3-8b", "method": "qlora", "quantization": "nf4", "base_precision": "bf16", "rank": "64", "lora_dropout": "0", "adapter_targets": "q,v", "micro_batch": "4",
        "optimizer": "paged-adamw-8bit", "sequence_length": "1024",
    }
    assert {each.key for each in found.unsupported} == {"max_length", "**"}
    assert not needs_yaml(SCRIPT)


@pytest.mark.parametrize("broken, code", (
    ("import os\nprint(1)", "not_a_script"), ("import os\nx = (", "not_a_script"), ('"""A text."""', "not_a_script"), ("from trl import SFTConfig\nSFTConfig('x')", "not_a_script"),
    ("from trl import A\nSFTTrainer(m, args=SFTConfig())\nDPOTrainer(m, args=DPOConfig())", "many_commands"), ("import x\n" + "a" * 5000, "too_large"),
    ("import x\nx = " + "[" * 400 + "]" * 400, "not_a_script"), ("import x\n\0", "not_a_script"), ("from transformers import Trainer, TrainingArguments\nTrainer(m, args=TrainingArguments('x'))", "not_a_script"),
    ("from trl import A\nSFTTrainer('m/x', args=SFTConfig(per_device_train_batch_size='many'))", "wrong_type"),
))
def test_a_script_of_another_shape_is_refused_in_one_sentence(broken, code):
    with pytest.raises(ImportProblem) as problem:
        import_text(broken, {})
    assert problem.value.code == code and len(str(problem.value)) < 300


def test_broken_scripts_raise_nothing_but_a_sentence():
    chance = random.Random("broken scripts")
    refused = 0
    for _ in range(600):
        text = export(estimate(Settings(model="qwen3-8b")), "trl", link=LINK).text if chance.random() < 0.02 else SCRIPT
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(text))
            text = text[:at] + chance.choice(("", "(", ")", "\n", " ", '"', "None", "-", "[1]", "\x00", "{'a': 1}", "\ud800", "9" * 50, "lambda: 0")) + text[at + chance.randrange(8):]
        try:
            import_text(text, {})
        except ImportProblem as problem:
            refused += 1
            assert len(str(problem)) < 500
    assert 0 < refused < 600


# The summary


def test_the_summary_has_settings_components_verdict_and_link():
    current = estimate(Settings(model="qwen3-8b", rank=64, gpu="48"))
    text = export(current, MARKDOWN, link=LINK).text
    told = headline(current)
    for part in (f"# {told.run}", told.sentence, "| Adapter rank | 64 |", f"| Verdict | {told.verdict} |", f"(<{LINK}>)", "**Peak per GPU**"):
        assert part in text
    assert all(line.count("|") == text.splitlines()[at - 1].count("|") for at, line in enumerate(text.splitlines()) if line.startswith("| ---"))


# The command


def test_the_command_writes_what_the_export_is(tmp_path):
    printed = run("export", "--to", "axolotl", "--model", "qwen3-8b", "--link", LINK.partition("?")[0] + "?v=2")
    assert printed.returncode == 0 and "# Link: https://example.org/vram/?v=2&model=qwen3-8b" in printed.out
    path = tmp_path / "run.yaml"
    written = run("export", "--to", "axolotl", "--model", "qwen3-8b", "--output", str(path), "--link", LINK.partition("?")[0] + "?v=2")
    assert written.returncode == 0 and path.read_text(encoding="utf-8") == printed.out
    again = run("link", "--training", str(path))
    assert read_query(again.out).texts["model"] == "qwen3-8b" and read_query(again.out).texts["stack"] == "axolotl-0.19"


@pytest.mark.parametrize("arguments, said", ((["export"], "--to: Must be one of trl"), (["export", "--to", "word"], "got “word”"), (["export", "--to", "trl", "--accounting", "rules", "--task", "inference"], "--task:"),
                                             (["export", "--to", "trl", "--output", "/nowhere/x.py"], "could not be written")))
def test_the_command_says_what_it_cannot_do(arguments, said):
    done = run(*arguments)
    assert done.returncode == 2 and said in done.err and done.out == ""


def test_every_stack_is_named_where_the_file_runs_with_another():
    for name in stacks():
        try:
            current = estimate(Settings(stack=name, method="lora"))
        except NotExpressible:
            continue
        lost = {each.setting for each in export(current, "trl", link=LINK).lost}
        assert ("stack" in lost) == (name != tool("trl").stack)


def test_every_setting_of_a_run_is_one_of_the_table():
    assert set(RUN_SETTINGS) <= {field.name for field in FIELDS}
