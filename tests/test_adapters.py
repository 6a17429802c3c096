"""adapter_config.json: the modules PEFT itself adapts, and their parameters to the last one.

Belongs here: tests/imported/adapters.jsonl (what PEFT made of each file), and files that cannot be followed.
"""

import hashlib
import json
from pathlib import Path

import pytest

from vramplan.importing.adapter import read_adapter
from vramplan.importing.imported import import_text
from vramplan.importing.model import read_model
from vramplan.importing.problems import ImportProblem

RECORDED = [json.loads(line) for line in Path(__file__).with_name("imported").joinpath("adapters.jsonl").read_text("utf-8").splitlines()]
BASE = RECORDED[3]["base"]
LORA = {"peft_type": "LORA", "r": 8, "target_modules": ["q_proj"]}


def label(line):
    return f"{line['base']['model_type']}-{json.dumps(line['adapter'])}"[:90]


@pytest.mark.parametrize("line", RECORDED, ids=label)
def test_the_same_modules_and_parameters_as_peft(line):
    found = read_adapter(line["adapter"], read_model(line["base"]).inventory)
    names = hashlib.sha256("\n".join(sorted(found.matched)).encode()).hexdigest()
    assert (found.trainable, len(found.matched), names) == (line["trainable"], line["matched"], line["names_sha256"])
    assert not set(found.matched) & set(found.unmatched)


def test_modules_that_stay_and_targets_that_match_nothing_are_named():
    found = read_adapter(LORA | {"target_modules": ["q_proj", "not_there"]}, read_model(BASE).inventory)
    assert found.unknown == ("not_there",)
    assert found.matched == tuple(f"model.layers.{layer}.self_attn.q_proj" for layer in range(4))
    assert "model.layers.3.mlp.down_proj" in found.unmatched and "lm_head" in found.unmatched


@pytest.mark.parametrize("changes, texts, keys", (
    ({}, {"rank": "8", "adapter_targets": "q"}, []),
    ({"target_modules": "all-linear"}, {"rank": "8", "adapter_targets": "all-linear"}, []),
    ({"target_modules": ["v_proj", "o_proj", "k_proj", "q_proj"], "lora_dropout": 0.05}, {"rank": "8", "adapter_targets": "attention", "lora_dropout": "0.05"}, []),
    ({"target_modules": ["lm_head", "embed_tokens"]}, {"rank": "8", "adapter_targets": "lm_head,embed"}, []),
    ({"layers_to_transform": [0]}, {"rank": "8", "adapter_targets": "q"}, ["target_modules"]),
    ({"rank_pattern": {"q_proj": 64}}, {"rank": "64", "adapter_targets": "q"}, []),
    ({"lora_dropout": 1e-7}, {"rank": "8", "adapter_targets": "q", "lora_dropout": "0.0000001"}, []),
    ({"target_modules": ["nothing"], "modules_to_save": ["lm_head"]}, {}, ["modules_to_save"]),
    ({"target_modules": ["q_proj", "v_proj"], "rank_pattern": {"v_proj": 4}}, {"rank": "8", "adapter_targets": "q,v"}, ["rank_pattern"]),
    ({"modules_to_save": ["lm_head"], "use_dora": True, "bias": "all"}, {"rank": "8", "adapter_targets": "q"}, ["modules_to_save", "use_dora", "bias"]),
))
def test_the_settings_say_what_they_can_and_the_rest_is_named(changes, texts, keys):
    found = read_adapter(LORA | changes, read_model(BASE).inventory)
    assert found.texts == texts
    assert [key for key, _ in found.inexact] == keys


@pytest.mark.parametrize("changes, code", (
    ({"peft_type": "IA3"}, "not_lora"), ({"r": None}, "missing"), ({"r": 0}, "out_of_range"), ({"r": "8"}, "wrong_type"), ({"r": True}, "wrong_type"),
    ({"target_modules": None}, "missing"), ({"target_modules": ["nothing"]}, "no_match"), ({"target_modules": 5}, "wrong_type"),
    ({"target_modules": [["q"]]}, "wrong_type"), ({"target_modules": "("}, "pattern"), ({"exclude_modules": {"a": 1}}, "wrong_type"),
    ({"rank_pattern": ["q"]}, "wrong_type"), ({"rank_pattern": {"q_proj": "4"}}, "wrong_type"), ({"rank_pattern": {"(": 4}}, "pattern"),
    ({"modules_to_save": "lm_head"}, "wrong_type"), ({"modules_to_save": [1]}, "wrong_type"), ({"layers_to_transform": "all"}, "wrong_type"),
    ({"use_dora": True, "lora_bias": True}, "refused_by_peft"), ({"target_modules": []}, "no_match"), ({"layers_to_transform": [99]}, "no_match"), ({"r": -8}, "out_of_range"),
    ({"use_dora": "true"}, "wrong_type"), ({"lora_bias": [None]}, "wrong_type"), ({"bias": "ALL"}, "wrong_type"), ({"bias": [{}]}, "wrong_type"),
    ({"lora_dropout": "0.1"}, "out_of_range"), ({"lora_dropout": 1.5}, "out_of_range"), ({"rank_pattern": {"q_proj": 0}}, "out_of_range"),
    ({"layers_to_transform": [1], "layers_pattern": "(x"}, "pattern"), ({"layers_to_transform": [0], "layers_pattern": "h"}, "no_match"),
))
def test_files_that_cannot_be_followed_get_a_sentence(changes, code):
    with pytest.raises(ImportProblem) as refused:
        read_adapter(LORA | changes, read_model(BASE).inventory)
    assert refused.value.code == code
    assert refused.value.message.endswith(".") and refused.value.hint.endswith(".")


def test_an_adapter_takes_the_preset_it_names_as_its_base():
    text = json.dumps(LORA | {"base_model_name_or_path": "Qwen/Qwen3-8B"})
    found = import_text(text, {})
    assert found.texts["model"] == "qwen3-8b"
    assert found.trainable == 36 * 8 * (4096 + 4096)
    assert found.settings.targets == ("q",) and found.settings.rank == 8


def test_an_adapter_of_a_model_that_cannot_be_counted_gives_no_settings():
    base = import_text(json.dumps({"model_type": "phimoe", "hidden_size": 4096, "num_hidden_layers": 32, "num_key_value_heads": 8, "num_local_experts": 8}), {})
    found = import_text(json.dumps(LORA | {"base_model_name_or_path": "somebody/phimoe"}), {}, base=base)
    assert (found.texts, found.settings, found.trainable) == ({}, None, 32 * 8 * (4096 + 4096))
    assert "Phi" in found.label
    assert import_text(json.dumps(LORA | {"base_model_name_or_path": "Qwen/Qwen3-8B"}), {}, base=base).texts["model"] == "qwen3-8b"


def test_an_adapter_for_full_fine_tuning_becomes_lora_and_a_quantised_base_stays():
    assert import_text(json.dumps(LORA), {"method": "full"}).texts["method"] == "lora"
    assert "method" not in import_text(json.dumps(LORA), {"method": "qlora"}).texts
