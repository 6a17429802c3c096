"""Files that people bring: what is read, what is repaired and said, and a sentence for everything else.

Belongs here: the text and the shape of files. Counts of published models: test_imported_models.py.
"""

import json
from pathlib import Path
import subprocess
import sys
from time import process_time

from hypothesis import HealthCheck, given, settings, strategies as st
import pytest

from vramplan import Settings, brought, cli, documents, tables
from vramplan.catalogue import defaults
from vramplan.importing.imported import import_text
from vramplan.importing.problems import ImportProblem
from vramplan.importing.text import MAX_BYTES, check_size, decoded, read_object

RECORDED = [json.loads(line) for line in Path(__file__).with_name("imported").joinpath("models.jsonl").read_text("utf-8").splitlines()]
LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
         "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": False, "rope_theta": 500000.0}
TEXT = json.dumps(LLAMA, indent=2)
TOTAL = 8_030_261_248
DIMENSIONS = {"hidden_size": 4096, "num_layers": 32, "num_attention_heads": 32, "num_kv_heads": 8, "head_dim": 128, "intermediate_size": 14336,
              "vocab_size": 128256, "tied_embeddings": False}

IN_TIME = 10
"""Seconds of processor time; 2 on an idle machine is the aim, and these take about 1 there."""


def run(capsys, *arguments):
    status = cli.main(["import", "--json", *map(str, arguments)])
    return status, json.loads(capsys.readouterr().out)


def code_of(text, **options):
    with pytest.raises(ImportProblem) as refused:
        import_text(text, {}, **options)
    problem = refused.value
    assert problem.message.endswith(".") and problem.hint.endswith(".") and len(problem.message) < 400
    return problem.code


# What is read


def test_a_config_becomes_a_document_of_counts_and_settings(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(TEXT, "utf-8")
    status, document = run(capsys, path)
    assert status == 0
    assert {"kind", "settings", "parameters", "read", "assumed", "ignored", "unsupported"} <= document.keys()
    assert document["kind"] == "model"
    assert document["parameters"] == {"total": TOTAL, "active": TOTAL, "trainable": 41_943_040}
    assert document["settings"].items() >= ({"model": "custom"} | DIMENSIONS).items()
    assert [each["key"] for each in document["ignored"]] == ["rope_theta"]
    assert {each["setting"] for each in document["assumed"]} >= {"head_dim"}
    assert document["unsupported"] == []
    assert document["stored_bytes"] == 2 * TOTAL


def test_the_settings_of_a_file_are_those_of_a_run_typed_by_hand(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(TEXT, "utf-8")
    typed = [part for name, value in DIMENSIONS.items() for part in (f"--{name.replace('_', '-')}", str(value).lower())]
    assert cli.main(["estimate", "--json", "--model", "custom", *typed]) == 0
    by_hand = capsys.readouterr().out
    assert cli.main(["estimate", "--json", "--config", str(path)]) == 0
    assert capsys.readouterr().out == by_hand
    assert cli.main(["link", "--config", str(path), "--rank", "8"]) == 0
    assert "rank=8" in capsys.readouterr().out


def test_flags_go_before_what_the_file_says(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(TEXT, "utf-8")
    assert cli.main(["estimate", "--json", "--config", str(path), "--num-layers", "2"]) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["num_layers"] == 2


def test_trainable_parameters_follow_the_chosen_method(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(TEXT, "utf-8")
    for flags, trainable in ((["--method", "full"], TOTAL), (["--adapter-targets", "attention"], 13_631_488), (["--method", "lora", "--rank", "32"], 83_886_080)):
        assert run(capsys, path, *flags)[1]["parameters"]["trainable"] == trainable


def test_a_model_and_its_adapter_come_together(capsys, tmp_path):
    (tmp_path / "config.json").write_text(TEXT, "utf-8")
    (tmp_path / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 64, "target_modules": ["q_proj", "v_proj"]}), "utf-8")
    status, document = run(capsys, tmp_path / "adapter_config.json", "--config", tmp_path / "config.json")
    assert (status, document["kind"], document["parameters"]) == (0, "adapter", {"total": TOTAL, "active": TOTAL, "trainable": 27_262_976})
    assert len(document["modules"]["matched"]) == 64 and len(document["modules"]["not_matched"]) == 32 * 5 + 1
    assert cli.main(["estimate", "--json", "--config", str(tmp_path / "config.json"), "--adapter", str(tmp_path / "adapter_config.json")]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"]["trainable"] == 27_262_976


def test_standard_input_is_read(tmp_path):
    done = subprocess.run([sys.executable, "-m", "vramplan", "import", "-", "--json"], input=TEXT, capture_output=True, text=True,
                          env={"PYTHONPATH": "app"}, cwd=Path(__file__).parent.parent, timeout=60)
    assert (done.returncode, json.loads(done.stdout)["parameters"]["total"], done.stderr) == (0, TOTAL, "")


def test_a_saved_run_is_opened_again(capsys, tmp_path):
    assert cli.main(["estimate", "--json", "--model", "qwen3-8b", "--rank", "24"]) == 0
    saved = capsys.readouterr().out
    (tmp_path / "run.json").write_text(saved, "utf-8")
    assert cli.main(["estimate", "--json", "--config", str(tmp_path / "run.json")]) == 0
    assert capsys.readouterr().out == saved


@pytest.mark.parametrize("given, settings", (
    ({"quant_method": "gptq", "bits": 4, "group_size": 128}, {"quantization": "gptq"}),
    ({"quant_method": "gptq", "bits": 4, "group_size": -1}, {"quantization": "gptq-ungrouped"}),
    ({"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm"}, {"quantization": "awq"}),
    ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True, "bnb_4bit_quant_type": "nf4"}, {"quantization": "nf4-double"}),
    ({"load_in_4bit": True}, {"quantization": "nf4"}),
    ({"quant_method": "bitsandbytes", "load_in_8bit": True}, {"quantization": "int8"}),
))
def test_a_quantised_base_is_recognised(given, settings):
    found = import_text(json.dumps(LLAMA | {"quantization_config": given}), {"method": "full"})
    assert found.texts.items() >= ({"method": "qlora"} | settings).items()
    assert found.total == TOTAL and found.stored_bytes < 2 * TOTAL * 0.6 and not found.unsupported


@pytest.mark.parametrize("given, stored", (
    ({"quant_method": "fp8", "weight_block_size": [128, 128]}, True), ({"quant_method": "gptq", "bits": 3}, False), ({"quant_method": "aqlm"}, False),
    ({"quant_method": ["x"]}, False), ({}, False),
))
def test_other_quantisations_are_named_and_the_parameters_stay_right(given, stored):
    found = import_text(json.dumps(LLAMA | {"quantization_config": given}), {})
    assert found.total == TOTAL and [each.key for each in found.unsupported] == ["quantization_config"]
    assert (found.stored_bytes is not None) is stored


def test_fp8_blocks_take_a_byte_a_value_and_a_scale_a_block():
    found = import_text(json.dumps(LLAMA | {"quantization_config": {"quant_method": "fp8"}}), {})
    linear = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    assert found.stored_bytes == linear + linear // 128**2 * 4 + 2 * (TOTAL - linear)


def test_the_page_of_a_multimodal_file_is_its_decoder():
    whole = {"model_type": "gemma3", "text_config": {"hidden_size": 2560, "intermediate_size": 10240, "model_type": "gemma3_text", "num_hidden_layers": 34,
                                                     "sliding_window": 1024}, "vision_config": {"hidden_size": 1152, "model_type": "siglip_vision_model"}}
    found = import_text(json.dumps(whole), {})
    assert found.total == 3_880_263_168
    assert {each.setting for each in found.assumed} >= {"num_attention_heads", "vocab_size", "tied_embeddings"}
    assert [each.key for each in found.unsupported] == ["vision_config"]


ONE_EACH = list({line["config"].get("model_type", ""): line["config"] for line in RECORDED}.values())


def test_nothing_of_the_model_brought_before_stays():
    usual = defaults()
    alone = [import_text(json.dumps(config), usual) for config in ONE_EACH]
    for before in alone[::7]:
        for config, known in zip(ONE_EACH, alone, strict=True):
            again = import_text(json.dumps(config), usual | before.texts)
            assert again.settings == known.settings or before.texts.get("method"), (before.label, again.label)


def test_a_quantisation_of_the_file_brought_before_does_not_stay():
    quantised = import_text(json.dumps(LLAMA | {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}), defaults())
    found = import_text(TEXT, defaults() | quantised.texts)
    assert found.settings.quantization == defaults()["quantization"]
    assert "quantization" in [each.setting for each in found.assumed]


def test_what_is_wrong_elsewhere_in_the_form_is_not_the_files_fault():
    found = import_text(TEXT, defaults() | {"rank": "", "gpu": "nothing", "sequence_length": "x"})
    assert found.settings.hidden_size == 4096
    assert code_of(json.dumps(LLAMA | {"vocab_size": 10**8})) == "out_of_range"


def test_settings_that_no_run_can_have_are_opened_all_the_same():
    found = import_text(json.dumps({"settings": {"hidden_size": "9" * 2_500, "model": "custom", "rank": 8, "unheard": 1, "gpu": None}}), {})
    assert found.settings is None and found.texts == {"hidden_size": "9" * 2_500, "model": "custom", "rank": "8"}
    assert [each.key for each in found.unsupported] == ["hidden_size"]
    assert [each.key for each in found.ignored] == ["unheard", "gpu"]


def test_a_settings_file_that_no_run_can_have_is_refused_in_a_terminal(capsys, tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"settings": {"rank": "x"}}), "utf-8")
    status, document = run(capsys, tmp_path / "run.json")
    assert (status, document["error"]["code"]) == (2, "out_of_range") and "Adapter rank must be" in document["error"]["message"]
    assert cli.main(["estimate", "--config", str(tmp_path / "run.json")]) == 2


# What is repaired, and said


@pytest.mark.parametrize("text, repaired", (
    (TEXT.replace("\n}", ",\n}"), ["commas before"]), ("// from the Hub\n" + TEXT, ["comments"]), ("/* a */" + TEXT.replace("{", "{ # b\n", 1), ["comments"]),
    (TEXT.replace('"LlamaForCausalLM"', '"LlamaForCausalLM", // c\n'), ["comments", "commas before"]), ("\ufeff" + TEXT, []),
    (f"```json\n{TEXT}\n```", ["the Markdown fence"]), (TEXT.replace("500000.0", "Infinity"), ["Infinity, which JSON does not have"]), (TEXT.replace("4096", "4096.0"), []),
))
def test_what_is_plainly_meant_is_repaired_and_said(text, repaired):
    found = import_text(text, {})
    assert found.total == TOTAL
    assert len(found.repaired) == len(repaired) and all(told.startswith(start) for told, start in zip(found.repaired, repaired, strict=True))


def test_texts_are_never_repaired_inside():
    config = LLAMA | {"note": "// no comment, # neither, /* nor this */ ,]"}
    assert read_object(json.dumps(config)[:-1] + ",}").content == config


@pytest.mark.parametrize("data", (TEXT.encode("utf-8-sig"), TEXT.encode("utf-16")))
def test_marks_of_byte_order_are_no_hindrance(data):
    assert import_text(decoded(data), {}).total == TOTAL


# What gets a sentence


@pytest.mark.parametrize("text, code", (
    ("", "empty"), ("  \n", "empty"), ("<!doctype html><html>", "html"), ("<?xml version='1.0'?>", "html"), ("version https://git-lfs.github.com/spec/v1", "lfs_pointer"),
    ("LlamaConfig {\n  \"hidden_size\": 4096\n}", "printed"), ("LlamaConfig(hidden_size=4096)", "printed"), ("model_type: llama\nhidden_size: 4096", "unknown_tool"),
    (TEXT[:120], "truncated"), (TEXT[:-1], "truncated"), ("[" + TEXT + "]", "not_an_object"), ('"text"', "not_an_object"), ("12", "not_an_object"), ("null", "not_an_object"),
    ("true", "not_an_object"), (TEXT.replace("4096", "NaN", 1), "wrong_type"), (TEXT.replace("4096", "-Infinity", 1), "wrong_type"), (TEXT.replace(":", "=", 1), "not_json"),
    (TEXT.replace("'", '"').replace('"', "'"), "printed"), ('{"a": 1, "a": 2}', "ambiguous"), ("[" * 100_000, "too_deep"), ('{"a":' * 5_000, "too_deep"),
    ('{"hidden_size": ' + "9" * 5_000 + "}", "out_of_range"), ("{}", "empty"), ('{"model_type": 5}', "not_a_model"),
    ("<svg xmlns='x'>", "html"), ("Access to model x is restricted", "refusal"), ("Qwen/Qwen3-8B", "name"), ("https://example.org/a", "name"), ("---\nbase_model: x", "unknown_tool"),
    (TEXT + "\n" + TEXT, "not_json"), (TEXT + ";", "not_json"), (TEXT.replace('"', "\u201c"), "not_json"), (TEXT[: TEXT.index("llama") + 2], "truncated"),
    (TEXT[: TEXT.index("false") + 2], "truncated"),
))
def test_texts_that_are_no_file_of_a_model(text, code):
    assert code_of(text) == code


@pytest.mark.parametrize("content, code", (
    ({"weight_map": {}, "metadata": {}}, "other_file"), ({"tokenizer_class": "LlamaTokenizer"}, "other_file"), ({"added_tokens": [], "model": {}}, "other_file"),
    ({"_class_name": "FluxPipeline"}, "other_file"), ({"eos_token_id": 2, "transformers_version": "5.0"}, "other_file"),
    ({"dim": 4096, "n_layers": 32, "n_heads": 32}, "other_file"), ({"error": "Invalid username or password."}, "other_file"),
    ({"model_type": "t5", "d_model": 512}, "not_a_decoder"), ({"model_type": "bert", "hidden_size": 768, "num_hidden_layers": 12}, "not_a_decoder"),
    ({"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 12}, "not_a_decoder"), ({"model_type": "vit"}, "not_a_decoder"),
    ({"model_type": "whisper"}, "not_a_decoder"), ({"model_type": "x", "is_encoder_decoder": True}, "not_a_decoder"),
    ({"model_type": "unheard"}, "not_a_model"), ({"model_type": "unheard", "hidden_size": 64, "num_hidden_layers": 2}, "unknown_model_type"),
    ({"hidden_size": 64, "num_hidden_layers": 2}, "unknown_model_type"), ({"model_type": "x", "hidden_size": 64, "num_hidden_layers": 2, "num_experts": 8}, "not_dense"),
))
def test_files_that_are_something_else_are_named_for_what_they_are(content, code):
    assert code_of(json.dumps(content)) == code


@pytest.mark.parametrize("changes, code", (
    ({"hidden_size": None}, "missing"), ({"num_hidden_layers": None}, "missing"), ({"hidden_size": "4096"}, "wrong_type"), ({"hidden_size": 4096.5}, "wrong_type"),
    ({"hidden_size": True}, "wrong_type"), ({"hidden_size": [4096]}, "wrong_type"), ({"hidden_size": -1}, "out_of_range"), ({"hidden_size": 10**30}, "out_of_range"),
    ({"num_hidden_layers": 0}, "out_of_range"), ({"num_hidden_layers": 10**9}, "out_of_range"), ({"num_attention_heads": 0}, "contradiction"),
    ({"tie_word_embeddings": "false"}, "wrong_type"), ({"num_key_value_heads": 7}, "contradiction"), ({"vocab_size": 0}, "out_of_range"),
))
def test_values_that_cannot_be_are_named(changes, code):
    assert code_of(json.dumps({name: value for name, value in (LLAMA | changes).items() if value is not None})) == code


EXPERTS = LLAMA | {"model_type": "mixtral", "num_local_experts": 4}
GEMMA_4 = LLAMA | {"model_type": "gemma4_text", "per_layer_config": {"03": {"head_dim": 512}}}


@pytest.mark.parametrize("content, said", (
    (EXPERTS | {"num_experts_per_tok": 5}, "Each token would go through 5 experts, and there are 4."),
    (LLAMA | {"model_type": "hunyuan_v1_moe", "num_experts": 4, "moe_topk": [1] * (LLAMA["num_hidden_layers"] - 1) + [5]}, "Each token would go through 5 experts, and there are 4."),
    (LLAMA | {"model_type": "nemotron_h", "hybrid_override_pattern": "M-X*"}, "a layer is of no kind they have"),
    (LLAMA | {"per_layer_config": {"3": {"head_dim": 512}}}, "per_layer_config gives single layers a “head_dim” of their own"),
    (GEMMA_4 | {"per_layer_config": {"3": {"moe_top_k": 2}}}, "per_layer_config gives single layers a “moe_top_k” of their own"),
    (GEMMA_4 | {"per_layer_config": {"3000": {}}}, "per_layer_config must be an object with one object for each layer"),
    (GEMMA_4 | {"per_layer_config": {"3": 512}}, "per_layer_config must be an object with one object for each layer"),
    (GEMMA_4 | {"per_layer_config": [512]}, "per_layer_config must be an object with one object for each layer"),
    (GEMMA_4 | {"per_layer_config": {"3": {"head_dim": "512"}}}, "per_layer_config.3.head_dim must be a whole number"),
))
def test_experts_and_layers_that_cannot_be_are_named(content, said):
    with pytest.raises(ImportProblem) as caught:
        import_text(json.dumps(content), {})
    assert said in str(caught.value.args)


def test_control_characters_of_a_file_never_reach_a_terminal():
    nasty = "\x1b]0;x\x07\n_config"
    found = import_text(json.dumps({"model_type": "llava", nasty: {}, "text_config": LLAMA | {nasty: nasty}}), {})
    adapter = import_text(json.dumps({"peft_type": "LORA", "r": 8, "target_modules": ["q_proj", nasty], "base_model_name_or_path": nasty}), {}, base=found)
    for each in (found, adapter):
        told = (*brought.notes(each), brought.spoken(each), brought.why_not(each), *tables.import_table(each).splitlines())
        assert all(character.isprintable() for line in told for character in line)


def test_a_number_of_heads_that_was_assumed_is_said_to_be():
    with pytest.raises(ImportProblem, match="num_key_value_heads is not in the file, and the model’s class then takes 32, which does not divide the 12"):
        import_text(json.dumps(LLAMA | {"model_type": "qwen2", "num_attention_heads": 12, "num_key_value_heads": None} | {}).replace('"num_key_value_heads": null, ', ""), {})


def test_an_unknown_type_is_read_as_dense_by_a_flag(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA | {"model_type": "brandnew"}), "utf-8")
    assert run(capsys, path)[1]["error"]["code"] == "unknown_model_type"
    status, document = run(capsys, path, "--as-dense")
    assert (status, document["parameters"]["total"]) == (0, TOTAL) and document["assumed"][0]["setting"] == "model_type"


def test_an_unknown_type_is_read_as_dense_only_when_asked():
    unknown = json.dumps(LLAMA | {"model_type": "brandnew", "architectures": ["BrandNewForCausalLM"]})
    assert code_of(unknown) == "unknown_model_type"
    found = import_text(unknown, {}, as_dense=True)
    assert found.total == TOTAL
    assert found.assumed[0].setting == "model_type" and "you asked for" in found.assumed[0].why


@pytest.mark.parametrize("changes, key", (
    ({"block_configs": [{}]}, "block_configs"), ({"num_local_experts": 8}, "num_local_experts"), ({"draft_vocab_size": 32000}, "draft_vocab_size"),
))
def test_what_tells_of_another_structure_is_not_read_over(changes, key):
    found = import_text(json.dumps(LLAMA | changes), {})
    assert [each.key for each in found.unsupported] == [key] and found.settings is None


@pytest.mark.parametrize("name", ("LlamaModel", "LlamaForSequenceClassification"))
def test_a_class_without_a_head_is_counted_with_one_and_said_to_be(name):
    found = import_text(json.dumps(LLAMA | {"architectures": [name]}), {})
    assert found.total == TOTAL and [each.setting for each in found.assumed][0] == "architectures"


@pytest.mark.parametrize("outer, inner, tied", ((True, False, True), (False, True, False), (True, None, True), (None, True, True), (None, None, False)))
def test_the_whole_model_decides_about_the_tied_head(outer, inner, tied):
    text = {"model_type": "mistral", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 500}
    whole = {"model_type": "llava", "text_config": text | ({} if inner is None else {"tie_word_embeddings": inner})} | ({} if outer is None else {"tie_word_embeddings": outer})
    assert import_text(json.dumps(whole), {}).settings.tied_embeddings is tied


def test_the_type_may_be_written_in_any_case():
    assert import_text(json.dumps(LLAMA | {"model_type": " LLaMA "}), {}).total == TOTAL


def test_a_missing_type_is_taken_from_the_class_and_said():
    found = import_text(json.dumps({name: value for name, value in LLAMA.items() if name != "model_type"}), {})
    assert found.total == TOTAL and found.assumed[0].setting == "model_type"


@pytest.mark.parametrize("data, code", (
    (b"\x10\x00\x00\x00\x00\x00\x00\x00{\"__metadata__\":{}}", "not_text"), (b"GGUF\x03", "not_text"), (b"PK\x03\x04archive", "not_text"), (b"\x80\x02}q\x00.", "not_text"),
    (b"\xff\xfe\x00", "not_text"), (b"caf\xe9", "not_text"), (b"{}\x00", "not_text"), (b"\xff\xd8\xff\xe0", "not_text"), (b"\x1f\x8b\x08", "not_text"),
))
def test_files_that_are_no_text_are_named(data, code):
    with pytest.raises(ImportProblem) as refused:
        decoded(data)
    assert refused.value.code == code


def test_large_files_are_refused_by_their_size(capsys, tmp_path):
    path = tmp_path / "model.safetensors"
    with path.open("wb") as file:
        file.truncate(50 * 2**30)  # fifty GiB that are never read
    started = process_time()
    status, document = run(capsys, path)
    assert (status, document["error"]["code"]) == (2, "too_large")
    assert process_time() - started < IN_TIME
    check_size(MAX_BYTES)


@pytest.mark.parametrize("path", ("no-such-file.json", ".", "/dev/null", "bad\0name"))
def test_paths_that_are_no_file_get_a_sentence(capsys, path):
    status, document = run(capsys, path)
    assert status == 2 and document["error"]["code"] in ("unreadable", "not_a_file", "empty")


def test_errors_are_one_line_for_people_and_nothing_is_printed(capsys, tmp_path):
    path = tmp_path / "config.json"
    path.write_text("<html>", "utf-8")
    assert cli.main(["import", str(path)]) == 2
    output = capsys.readouterr()
    assert output.out == "" and output.err.count("\n") == 1 and output.err.startswith("vramplan: This is a web page")
    assert cli.main(["estimate", "--config", str(path), "--json"]) == 2
    assert cli.main(["import"]) == 2


def test_a_model_no_accounting_has_terms_for_is_counted_and_its_estimate_refused(capsys, tmp_path):
    path = tmp_path / "config.json"
    phimoe = {"model_type": "phimoe", "intermediate_size": 6400, "num_local_experts": 16, "num_experts_per_tok": 2, "vocab_size": 32064}
    path.write_text(json.dumps(LLAMA | phimoe | {"attention_bias": True, "lm_head_bias": True}), "utf-8")
    status, document = run(capsys, path)
    assert (status, document["settings"], document["parameters"]["total"], document["parameters"]["active"]) == (0, {}, 41_873_153_344, 6_640_999_744)
    assert document["unsupported"]
    assert cli.main(["estimate", "--config", str(path)]) == 2
    assert "cannot be estimated" in capsys.readouterr().err


@pytest.mark.parametrize("text", (
    '{"a": ' + "/* " * 1_300_000, '{"a": "' + '\\"' * 2_000_000, json.dumps(LLAMA | {f"key{number}": number for number in range(50_000)}), json.dumps(LLAMA | {"layer_types": ["x"] * 100_000}),
    '{"model_type": "llama", "x": "' + "\\u0041" * 600_000 + '"}', "/*" * 1_000_000, '{"a": ' + "[" * 50 + "]" * 50 + "," * 1_000_000 + "}", "#" * (MAX_BYTES - 1),
    '"' * 1_000_000, '{"a": "' + "\\" * 1_000_000, "//\n" * 1_000_000,
))
def test_large_texts_are_answered_in_time(text):
    started = process_time()
    try:
        import_text(text, {})
    except ImportProblem:
        pass
    assert process_time() - started < IN_TIME


# Whatever comes

MODELS = [line["config"] for line in RECORDED]
ADAPTERS = [json.loads(line)["adapter"] for line in Path(__file__).with_name("imported").joinpath("adapters.jsonl").read_text("utf-8").splitlines()]
JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 70), st.integers(), st.floats(allow_nan=False), st.text(max_size=8), st.lists(st.integers(-1, 9), max_size=4),
    st.lists(st.text(max_size=3), max_size=3), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    st.sampled_from(["full_attention", "linear_attention", "all-linear", "(.+)+$", "<b>x</b>", 10**9, 0, -1]),
)


@st.composite
def mutated(draw):
    """A published file with some of its values replaced, its keys dropped, and its text damaged."""
    content = dict(draw(st.sampled_from(MODELS + ADAPTERS)))
    for key in draw(st.lists(st.sampled_from(sorted(content)), max_size=3)):
        if draw(st.booleans()):
            content[key] = draw(JUNK)
        else:
            content.pop(key, None)
    if draw(st.booleans()):
        return json.dumps(content)
    text = json.dumps(content)
    at, length = draw(st.integers(0, len(text))), draw(st.integers(0, 12))
    return text[:at] + draw(st.text(max_size=6)) + text[at + length :]


@settings(max_examples=10_000, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(mutated(), st.booleans())
def test_ten_thousand_damaged_files_raise_nothing_but_sentences(text, as_dense):
    try:
        found = import_text(text, {}, as_dense=as_dense)
    except ImportProblem as problem:
        assert problem.code and problem.message.endswith(".") and problem.hint.endswith(".")
        assert len(problem.message) < 1_000
    else:
        assert found.total >= 0 and (found.settings is None or isinstance(found.settings, Settings))
        told = "\n".join((tables.import_table(found), brought.spoken(found), *brought.notes(found)))
        assert all(character.isprintable() or character == "\n" for character in told)
        assert len(told) < 100_000
        assert json.loads(documents.ImportDocument.of(found).to_json())["parameters"]["total"] == found.total


@pytest.mark.parametrize("changes", (
    {"rank_pattern": {f"model.layers.{number}.self_attn.q_proj": 8 for number in range(1_000)}}, {"rank_pattern": {f".*{number}.*x": 8 for number in range(1_000)}},
    {"target_modules": [f"q{number}" for number in range(4_096)]}, {"modules_to_save": ["a" * 1_000] * 4_096}, {"exclude_modules": ["x"] * 4_096},
))
def test_long_lists_of_an_adapter_are_answered_in_time(changes):
    started = process_time()
    try:
        import_text(json.dumps({"peft_type": "LORA", "r": 8, "target_modules": ["q_proj"]} | changes), {"model": "llama-3.1-405b"})
    except ImportProblem:
        pass
    assert process_time() - started < IN_TIME


@pytest.mark.parametrize("changes", ({"num_local_experts": 10**9}, {"num_local_experts": 10**6, "num_hidden_layers": 1_024}))
def test_any_number_of_experts_is_answered_in_time(changes):
    started = process_time()
    config = LLAMA | {"model_type": "mixtral", "num_experts_per_tok": 2} | changes
    try:
        model = import_text(json.dumps(config), {})
        import_text(json.dumps({"peft_type": "LORA", "r": 8, "target_modules": ["q_proj", "w1"]}), {}, base=model)
    except ImportProblem:
        pass
    assert process_time() - started < IN_TIME


@pytest.mark.parametrize("text", (json.dumps({"note": "[" * 70, **LLAMA}), json.dumps({"note": "// \"[ /*", **LLAMA}), json.dumps({"note": "\\\\ud83d", **LLAMA})))
def test_what_stands_in_texts_is_no_structure(text):
    assert import_text(text, {}).total == TOTAL
    assert import_text(text[:-1] + ",}", {}).total == TOTAL


def test_brackets_in_texts_hide_no_depth():
    assert code_of('{"n": "' + "]" * 200_000 + '", "b": ' + "[" * 200_000) == "too_deep"


def test_half_a_character_is_refused():
    assert code_of('{"model_type": "llama", "x": "\\ud83d"}') == "not_text"
    assert code_of('{"model_type": "llama", "\\ude00": 1}') == "not_text"


@pytest.mark.parametrize("pattern", ("(" + "|".join(["(.*)*"] * 150) + ")*X", "((.*)*)*X", "(.+)+" * 100 + "X", "(?=" * 300 + "x" + ")" * 300, "[" * 500, "a" * 3_000_000))
def test_hostile_patterns_are_answered_in_time(pattern):
    started = process_time()
    try:
        import_text(json.dumps({"peft_type": "LORA", "r": 8, "target_modules": pattern}), {})
    except ImportProblem:
        pass
    assert process_time() - started < IN_TIME
