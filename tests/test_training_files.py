"""Training files become settings, with a row for every key.

Belongs here: published files of every tool and what they come to, the traps of YAML and of each tool, and files that are broken.
The page: browser/test_training_panel.py.
"""

from pathlib import Path
import random

import pytest
from vramplan.accountings import estimate
from vramplan.catalogue import defaults
from vramplan.importing.imported import import_text
from vramplan.importing.problems import ImportProblem
from vramplan.training_files.given import MAX_VALUES
from vramplan.training_files.tools import BOUNDS, TOOLS, optimizers, tool
from vramplan.training_files.training import COMBINE, is_training_text

FILES = Path(__file__).with_name("training_files")

# LLaMA-Factory checkpoints, adapts every linear map and keeps adapters in FP32, all without being asked.
LLAMA_FACTORY_LORA = {
    "stack": "llama-factory-0.9", "method": "lora", "rank": "8", "lora_dropout": "0", "adapter_targets": "all-linear", "sequence_length": "2048", "micro_batch": "1",
    "gradient_accumulation_steps": "8", "checkpointing": "full",
}
LLAMA_FACTORY_PAIRS = {"stack": "trl-1.5", "trainable_precision": "mixed-bf16", "base_precision": "bf16", "kbit_preparation": "none", "checkpoint_kind": "reentrant"}

# What the published files come to: every setting that is not as the calculator opens with.
EXPECTED = {
    "axolotl/lora-8b.yml": {
        "model": "llama-3-8b", "stack": "axolotl-0.19", "method": "qlora", "quantization": "int8", "rank": "32", "adapter_targets": "all-linear", "lora_dropout": "0.05",
        "sequence_length": "8192", "micro_batch": "1", "gradient_accumulation_steps": "4", "optimizer": "adamw-8bit", "checkpointing": "full",
    },
    "axolotl/qlora-8b.yml": {
        "model": "llama-3-8b", "stack": "axolotl-0.19", "method": "qlora", "quantization": "nf4-double", "rank": "32", "lora_dropout": "0.05", "sequence_length": "8192",
        "micro_batch": "1", "gradient_accumulation_steps": "4", "optimizer": "paged-adamw-32bit", "checkpointing": "full", "sharding": "none",
    },
    "axolotl/fft-8b.yaml": {
        "model": "llama-3-8b", "stack": "axolotl-0.19", "method": "full", "sequence_length": "8192", "micro_batch": "1", "gradient_accumulation_steps": "8",
        "optimizer": "paged-adamw-8bit", "checkpointing": "full", "checkpoint_kind": "non-reentrant",
    },
    "axolotl/fft-8b-liger-fsdp.yaml": {
        "model": "llama-3.1-8b", "stack": "axolotl-0.19", "method": "full", "sequence_length": "8192", "micro_batch": "1", "gradient_accumulation_steps": "4",
        "optimizer": "adamw-fused", "checkpointing": "full", "checkpoint_kind": "non-reentrant", "loss": "fused-linear", "layer_kernels": "liger", "sharding": "fsdp1",
        "offload": "optimizer-and-parameters",
    },
    "axolotl/qlora-fsdp-70b.yaml": {
        "stack": "axolotl-0.19", "method": "qlora", "quantization": "nf4-double", "rank": "8", "lora_dropout": "0.05", "sequence_length": "512", "micro_batch": "1",
        "gradient_accumulation_steps": "4", "optimizer": "adamw-foreach", "checkpointing": "full", "checkpoint_kind": "reentrant", "sharding": "fsdp1",
        "offload": "optimizer-and-parameters",
    },
    "axolotl/instruct-dpo-lora-8b.yml": {
        "model": "llama-3-8b", "stack": "trl-1.6", "objective": "dpo", "method": "qlora", "quantization": "int8", "base_precision": "bf16", "rank": "32", "lora_dropout": "0.05",
        "sequence_length": "4096", "micro_batch": "2", "gradient_accumulation_steps": "4", "optimizer": "adamw-8bit", "checkpointing": "full", "checkpoint_kind": "non-reentrant",
    },
    "axolotl/lora-1b-kernels.yml": {
        "model": "llama-3.2-1b", "stack": "axolotl-0.19", "method": "lora", "rank": "16", "adapter_targets": "all-linear", "lora_dropout": "0", "sequence_length": "4096",
        "micro_batch": "1", "gradient_accumulation_steps": "2", "optimizer": "adamw-8bit", "checkpointing": "full",
    },
    "axolotl/qwen3-32b-qlora.yaml": {
        "model": "qwen3-32b", "stack": "axolotl-0.19", "method": "qlora", "rank": "16", "adapter_targets": "q,k,v,o,up,down", "sequence_length": "2048", "micro_batch": "1",
        "gradient_accumulation_steps": "2", "optimizer": "adamw-8bit", "loss": "cut", "checkpointing": "offloaded", "checkpoint_kind": "non-reentrant",
    },
    "axolotl/mixtral.yml": {
        "model": "mixtral-8x7b", "stack": "axolotl-0.19", "method": "qlora", "rank": "32", "lora_dropout": "0.05", "sequence_length": "4096", "micro_batch": "1",
        "gradient_accumulation_steps": "2", "optimizer": "adamw-8bit", "checkpointing": "full", "sharding": "zero2", "offload": "optimizer",
    },
    "axolotl/qwen3-reward.yaml": {
        "stack": "trl-1.6", "objective": "reward", "method": "full", "trainable_precision": "pure-bf16", "sequence_length": "8192", "micro_batch": "1",
        "gradient_accumulation_steps": "4", "optimizer": "adamw-8bit", "checkpointing": "full", "checkpoint_kind": "non-reentrant", "sharding": "zero1", "offload": "none",
    },
    "axolotl/qlora-1b-kto.yaml": None,
    "llama-factory/lora-sft.yaml": LLAMA_FACTORY_LORA,
    "llama-factory/lora-sft.sh": LLAMA_FACTORY_LORA,
    "llama-factory/lora-pretrain.yaml": LLAMA_FACTORY_LORA,
    "llama-factory/lora-sft-ds3.yaml": LLAMA_FACTORY_LORA | {"gradient_accumulation_steps": "2", "sharding": "zero3", "offload": "none"},
    "llama-factory/qlora-sft.yaml": LLAMA_FACTORY_LORA | {"method": "qlora", "quantization": "nf4-double"},
    "llama-factory/full-sft-zero3.yaml": {
        "stack": "llama-factory-0.9", "method": "full", "sequence_length": "2048", "micro_batch": "1", "gradient_accumulation_steps": "2", "checkpointing": "full", "sharding": "zero3",
    },
    "llama-factory/galore-full.yaml": {
        "model": "llama-3-8b", "stack": "llama-factory-0.9", "method": "full", "trainable_precision": "pure-bf16", "autocast": "off", "sequence_length": "2048", "micro_batch": "1",
        "gradient_accumulation_steps": "1", "optimizer": "adamw", "checkpointing": "full",
    },
    "llama-factory/lora-dpo.yaml": LLAMA_FACTORY_LORA | LLAMA_FACTORY_PAIRS | {"objective": "dpo"},
    "llama-factory/lora-reward.yaml": LLAMA_FACTORY_LORA | LLAMA_FACTORY_PAIRS | {"objective": "reward"},
    "llama-factory/lora-kto.yaml": None,
    "trl/zephyr-7b-sft-full.yaml": {
        "model": "mistral-7b-v0.1", "stack": "trl-0.25", "method": "full", "trainable_precision": "pure-bf16", "sequence_length": "2048", "micro_batch": "16",
        "gradient_accumulation_steps": "1", "checkpointing": "full", "checkpoint_kind": "non-reentrant",
    },
    "trl/zephyr-7b-sft-qlora.yaml": {
        "model": "mistral-7b-v0.1", "stack": "trl-0.25", "method": "qlora", "quantization": "nf4", "base_precision": "bf16", "rank": "16", "lora_dropout": "0.05",
        "adapter_targets": "all-linear", "sequence_length": "2048", "micro_batch": "4", "gradient_accumulation_steps": "2", "checkpointing": "full", "checkpoint_kind": "non-reentrant",
    },
    "trl/zephyr-7b-dpo-qlora.yaml": {
        "stack": "trl-1.5", "objective": "dpo", "method": "qlora", "quantization": "nf4", "base_precision": "bf16", "rank": "16", "lora_dropout": "0.05", "sequence_length": "1024",
        "micro_batch": "4", "gradient_accumulation_steps": "1", "optimizer": "paged-adamw-32bit", "checkpointing": "full", "checkpoint_kind": "non-reentrant",
    },
    "trl/zephyr-7b-dpo-full.yaml": {
        "stack": "trl-1.5", "objective": "dpo", "method": "full", "sequence_length": "1024", "micro_batch": "8", "gradient_accumulation_steps": "2", "optimizer": "adamw-foreach",
        "checkpointing": "full", "checkpoint_kind": "non-reentrant",
    },
    "trl/smollm3-sft.yaml": {
        "stack": "trl-0.25", "method": "full", "trainable_precision": "pure-bf16", "sequence_length": "65536", "micro_batch": "1", "gradient_accumulation_steps": "2",
        "loss": "fused-linear", "layer_kernels": "liger", "checkpointing": "full", "checkpoint_kind": "reentrant",
    },
    "trl/mistral-orpo.yaml": None,
    "trl/example_config.yaml": {
        "model": "qwen2.5-0.5b", "stack": "trl-1.15", "method": "full", "sequence_length": "1024", "micro_batch": "8", "gradient_accumulation_steps": "1", "checkpointing": "full",
    },
    "trl/sft-lora.sh": {
        "model": "qwen2.5-0.5b", "stack": "trl-1.15", "method": "lora", "rank": "32", "adapter_targets": "q,v", "lora_dropout": "0.05", "sequence_length": "2048", "micro_batch": "1",
        "gradient_accumulation_steps": "8", "checkpointing": "full",
    },
    "trl/dpo-full.sh": {
        "model": "qwen2.5-0.5b", "stack": "trl-1.15", "objective": "dpo", "method": "full", "sequence_length": "1024", "micro_batch": "2", "gradient_accumulation_steps": "8", "checkpointing": "full",
    },
    "swift/demo.sh": {
        "model": "qwen2.5-7b", "stack": "swift-4.6", "method": "lora", "rank": "8", "adapter_targets": "all-linear", "lora_dropout": "0.05", "sequence_length": "2048", "micro_batch": "1",
        "gradient_accumulation_steps": "16", "checkpointing": "full", "replicas": "1",
    },
    "swift/full-train.sh": {
        "model": "qwen2.5-7b", "stack": "swift-4.6", "method": "full", "micro_batch": "1", "gradient_accumulation_steps": "16", "checkpointing": "full", "replicas": "1",
    },
    "swift/full-32b.sh": {
        "model": "qwen2.5-32b", "stack": "swift-4.6", "method": "full", "sequence_length": "8192", "micro_batch": "1", "gradient_accumulation_steps": "2", "sharding": "zero3",
        "sharded_over": "8", "loss": "fused-linear", "layer_kernels": "liger", "checkpointing": "full",
    },
    "swift/train_zero2.sh": {
        "model": "qwen2.5-7b", "stack": "swift-4.6", "method": "lora", "rank": "8", "adapter_targets": "all-linear", "lora_dropout": "0.05", "micro_batch": "1",
        "gradient_accumulation_steps": "8", "sharding": "zero2", "sharded_over": "2", "checkpointing": "full",
    },
    "swift/qlora-bnb.sh": {
        "model": "qwen2.5-7b", "stack": "swift-4.6", "method": "qlora", "quantization": "nf4-double", "rank": "8", "adapter_targets": "all-linear", "lora_dropout": "0.05",
        "sequence_length": "2048", "micro_batch": "1", "gradient_accumulation_steps": "16", "checkpointing": "full",
    },
    "swift/fsdp_qlora.sh": {
        "model": "qwen2.5-7b", "stack": "swift-4.6", "method": "qlora", "quantization": "nf4-double", "rank": "8", "adapter_targets": "all-linear", "lora_dropout": "0.05",
        "sequence_length": "2048", "micro_batch": "1", "gradient_accumulation_steps": "8", "checkpointing": "full", "checkpoint_kind": "non-reentrant", "sharding": "ddp", "replicas": "2",
    },
    "swift/dpo-lora.sh": {
        "model": "qwen2.5-7b", "stack": "swift-4.6", "objective": "dpo", "method": "lora", "rank": "8", "adapter_targets": "all-linear", "lora_dropout": "0.05", "sequence_length": "2048",
        "micro_batch": "1", "gradient_accumulation_steps": "16", "checkpointing": "full",
    },
    "swift/megatron-sft.sh": None,
    "torchtune/8B_lora_single_device.yaml": {
        "model": "llama-3.1-8b", "stack": "torchtune-0.6", "method": "lora", "rank": "8", "adapter_targets": "q,v,o,gate,up,down", "lora_dropout": "0", "micro_batch": "2",
        "gradient_accumulation_steps": "8", "optimizer": "adamw-fused", "optimizer_step": "after", "loss": "split", "checkpointing": "full",
    },
    "torchtune/8B_qlora_single_device.yaml": {
        "model": "llama-3.1-8b", "stack": "torchtune-0.6", "method": "qlora", "quantization": "nf4-double", "rank": "8", "adapter_targets": "q,v,o,gate,up,down", "micro_batch": "2",
        "gradient_accumulation_steps": "8", "optimizer": "adamw-fused", "optimizer_step": "after", "loss": "split", "checkpointing": "full",
    },
    "torchtune/8B_full_single_device.yaml": {
        "model": "llama-3.1-8b", "stack": "torchtune-0.7", "method": "full", "trainable_precision": "pure-bf16", "micro_batch": "2", "gradient_accumulation_steps": "1",
        "optimizer": "paged-adamw-8bit", "optimizer_step": "in-backward", "loss": "split", "checkpointing": "full", "sharding": "none",
    },
    "torchtune/7B_lora_single_device.yaml": {
        "model": "qwen2.5-7b", "stack": "torchtune-0.6", "method": "lora", "rank": "8", "adapter_targets": "q,v,o,gate,up,down", "micro_batch": "2", "gradient_accumulation_steps": "8",
        "optimizer": "adamw-fused", "optimizer_step": "after", "loss": "split", "checkpointing": "full",
    },
    "torchtune/8B_lora_dpo_single_device.yaml": {
        "model": "llama-3.1-8b", "stack": "torchtune-0.6", "objective": "dpo", "method": "lora", "rank": "8", "adapter_targets": "q,v,o,gate,up,down", "sequence_length": "1024",
        "micro_batch": "4", "gradient_accumulation_steps": "8", "optimizer": "adamw-fused", "optimizer_step": "after", "checkpointing": "full",
    },
    "torchtune/70B_full.yaml": {
        "model": "llama-3.1-70b", "stack": "torchtune-0.6", "method": "full", "trainable_precision": "pure-bf16", "micro_batch": "2", "gradient_accumulation_steps": "1",
        "optimizer": "adamw-foreach", "optimizer_step": "after", "loss": "split", "checkpointing": "full", "sharding": "fsdp2", "offload": "optimizer-and-parameters",
    },
    "torchtune/8B_to_1B_KD_lora_single_device.yaml": None,
    # hiyouga/LLaMA-Factory, examples/deepspeed, at 1d6e8b218240c154638f9bdcb76a1a089c27891b
    "deepspeed/ds_z2_config.json": {"sharding": "zero2", "offload": "none"},
    "deepspeed/ds_z3_offload_config.json": {"sharding": "zero3", "offload": "optimizer-and-parameters"},
    # axolotl-ai-cloud/axolotl, deepspeed_configs, at 1377ccc3e46bdc1c8b01a9c23da57446b85aa1d5
    "deepspeed/zero2_torch_compile.json": {"sharding": "zero2", "offload": "optimizer"},
    "deepspeed/zero3_bf16_cpuoffload_params.json": {"sharding": "zero3", "offload": "none", "half_precision": "bf16"},
    "accelerate/deepspeed_zero2.yaml": {"sharding": "zero2", "offload": "none", "sharded_over": "8", "replicas": "1", "gradient_accumulation_steps": "1"},
    "accelerate/deepspeed_zero3.yaml": {
        "sharding": "zero3", "offload": "none", "sharded_over": "8", "replicas": "1", "gradient_accumulation_steps": "1", "half_precision": "fp16",
    },
    "accelerate/fsdp2.yaml": {"sharding": "fsdp2", "offload": "none", "sharded_over": "8", "replicas": "1", "half_precision": "bf16"},
    "accelerate/fsdp2_config.yaml": {"sharding": "fsdp2", "offload": "none", "sharded_over": "2", "replicas": "1", "half_precision": "bf16"},
    "accelerate/fsdp_config.yaml": {"sharding": "fsdp1", "offload": "optimizer-and-parameters", "sharded_over": "2", "replicas": "1", "half_precision": "fp16"},
    "accelerate/multi_gpu.yaml": {"sharding": "ddp", "offload": "none", "replicas": "8", "sharded_over": "1"},
}


def content(name):
    return (FILES / name).read_text(encoding="utf-8")


def read(text, **chosen):
    return import_text(text, chosen)


def changed(found):
    """The settings that are not as the calculator opens with."""
    usual = defaults()
    return {name: text for name, text in found.texts.items() if text != usual[name]}


def code_of(text, **more):
    with pytest.raises(ImportProblem) as problem:
        import_text(text, {}, **more)
    assert str(problem.value).endswith(".") and len(problem.value.message) < 400
    return problem.value.code


def axolotl(*lines):
    return "\n".join(("base_model: Qwen/Qwen3-8B", "micro_batch_size: 2", "sequence_len: 1024", *lines))


def trl(*lines):
    return "\n".join(("model_name_or_path: Qwen/Qwen3-8B", "per_device_train_batch_size: 2", *lines))


# Published files


def test_every_published_file_has_its_expected_settings():
    assert {path.relative_to(FILES).as_posix() for path in FILES.rglob("*.*")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_published_file_comes_to_the_settings_of_its_run(name):
    found = read(content(name))
    assert found.kind == "training"
    if EXPECTED[name] is None:
        assert not found.texts and found.settings is None and found.uncounted
        return
    usual = defaults()
    assert changed(found) == {setting: text for setting, text in EXPECTED[name].items() if text != usual[setting]}
    assert {name: found.texts[name] for name in EXPECTED[name]} == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_no_key_of_a_published_file_is_dropped_or_unknown(name):
    found = read(content(name))
    told = {each.key.partition(".")[0] for each in (*found.read, *found.ignored, *found.unsupported)}
    written = {line.split(":")[0].strip(' "') for line in content(name).splitlines() if ":" in line and (line[0].isalpha() or line.startswith('  "'))} if not name.endswith(".sh") else set()
    assert written <= told
    assert [each.key for each in found.unsupported if "not known" in each.why] == []


@pytest.mark.parametrize("name", [name for name in EXPECTED if not name.endswith(".sh")])
def test_rows_name_the_line_they_were_read_from(name):
    lines = content(name).splitlines()
    found = read(content(name))
    for each in (*found.read, *found.unsupported):
        if each.line:
            assert lines[each.line - 1].strip().lstrip('"').startswith(each.key.rpartition(".")[2]), each
    assert all(each.line for each in found.read)


@pytest.mark.parametrize("name", EXPECTED)
def test_what_is_beyond_the_settings_says_what_the_estimate_then_is(name):
    for each in read(content(name)).unsupported:
        assert each.why and each.bound in ("", *BOUNDS)


# Traps of YAML


@pytest.mark.parametrize("written, dropout", (("0.05", "0.05"), ("5e-2", "0.05"), ("5.0e-2", "0.05"), ("'0.05'", "0.05"), (".05", "0.05"), ("0", "0"), ("", "0"), ("~", "0"), ("1_0e-2", "0.1")))
def test_numbers_count_however_yaml_takes_them(written, dropout):
    assert read(axolotl("adapter: lora", f"lora_dropout: {written}")).texts["lora_dropout"] == dropout


@pytest.mark.parametrize("written, rank", (("32", "32"), ("'32'", "32"), ("0x10", "16"), ("010", "8"), ("0o17", None), ("1:4", "64"), ("32.0", "32"), ("3_2", "32"), ("0b101", "5"), ("32.5", None), ("true", None), ("-4", None)))
def test_whole_numbers_are_those_of_yaml_1_1(written, rank):
    text = axolotl("adapter: lora", f"lora_r: {written}")
    assert (code_of(text) in ("wrong_type",)) if rank is None else read(text).texts["rank"] == rank


@pytest.mark.parametrize("written, on", (("yes", True), ("on", True), ("True", True), ("TRUE", True), ("no", False), ("off", False), ("false", False), ("'true'", True), ("1", True), ("", False), ("null", False)))
def test_flags_are_those_of_yaml_1_1(written, on):
    assert read(axolotl(f"gradient_checkpointing: {written}" if written not in ("yes", "on", "1") else f"reward_model: {written}")).texts[
        "checkpointing" if written not in ("yes", "on", "1") else "objective"] == (("full" if on else "none") if written not in ("yes", "on", "1") else "reward")


def test_an_empty_key_is_as_if_it_were_not_there():
    found = read(axolotl("adapter:", "lora_r:", "deepspeed:", "fsdp:"))
    assert found.texts["method"] == "full" and found.texts["sharding"] == "none"
    assert {"adapter", "lora_r", "deepspeed", "fsdp"} <= {each.key for each in found.ignored}


def test_aliases_and_merged_mappings_are_followed():
    text = axolotl("x: &a", "  use_reentrant: true", "gradient_checkpointing: true", "gradient_checkpointing_kwargs:", "  <<: *a")
    assert read(text).texts["checkpoint_kind"] == "reentrant"


def test_aliases_that_multiply_are_refused():
    lines = ["a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 9))]
    assert code_of(axolotl(*lines)) == "too_large"


@pytest.mark.parametrize("text, code", (
    (axolotl("a: &x [*x]"), "not_yaml"), (axolotl("a: *y"), "not_yaml"), (axolotl("a: [1"), "not_yaml"), (axolotl("a: '1"), "not_yaml"), (axolotl("\ta: 1"), "not_yaml"),
    (axolotl("a: !!python/object/apply:os.system [x]"), "not_yaml"), (axolotl("a: !x 1"), "not_yaml"), (axolotl("lora_r: 8", "lora_r: 16"), "ambiguous"),
    (axolotl("---", "a: 1"), "many_documents"), (axolotl("a: " + "[" * 60 + "]" * 60), "too_deep"), (axolotl("a: " + "{b: " * 60 + "1" + "}" * 60), "too_deep"),
    (axolotl("a: [" + "1, " * (MAX_VALUES + 1) + "1]"), "too_large"), ("name: x\nvalue: 1", "unknown_tool"), ("- a\n- b", "not_json"), ("---\n- a\n- b", "not_an_object"),
    (axolotl("sequence_len: many"), "ambiguous"), (axolotl("gradient_accumulation_steps: many"), "wrong_type"), (axolotl("gradient_accumulation_steps: 99999"), "out_of_range"),
    (axolotl("adapter: lora", "lora_target_modules: {a: 1}"), "wrong_type"), (axolotl("adapter: lora", "lora_target_linear: maybe"), "wrong_type"),
    (axolotl("? [a, b]", ": 1"), "not_yaml"),
))
def test_files_that_cannot_be_used_say_why_in_a_sentence(text, code):
    assert code_of(text) == code


def test_a_problem_names_its_line():
    with pytest.raises(ImportProblem, match="line 4"):
        read(axolotl("gradient_accumulation_steps: many"))


# Traps of the tools


def test_packing_makes_one_row_of_the_micro_batch():
    packed = read(axolotl("sample_packing: true", "flash_attention: true"))
    assert (packed.texts["micro_batch"], packed.texts["sequence_length"]) == ("1", "2048")
    loose = read(axolotl("sample_packing: true"))  # SDPA keeps the rows apart
    assert (loose.texts["micro_batch"], loose.texts["sequence_length"]) == ("2", "1024")
    wrapped = read(trl("packing: true", "packing_strategy: wrapped"))
    assert (wrapped.texts["micro_batch"], wrapped.texts["sequence_length"]) == ("2", "1024")


def test_packed_rows_longer_than_the_model_stay_rows_of_as_many_tokens():
    found = read("base_model: meta-llama/Meta-Llama-3-8B\nmicro_batch_size: 2\nsequence_len: 8192\nsample_packing: true\nflash_attention: true")
    assert (found.texts["micro_batch"], found.texts["sequence_length"]) == ("2", "8192")


def test_a_row_longer_than_the_model_is_cut_and_a_lower_bound():
    found = read("base_model: meta-llama/Meta-Llama-3-8B\nmicro_batch_size: 1\nsequence_len: 32768")
    assert found.texts["sequence_length"] == "8192"
    assert [each.bound for each in found.unsupported if each.key == "sequence_length"] == ["lower"]


@pytest.mark.parametrize("name, sharding, offload", (
    ("deepspeed_configs/zero1.json", "zero1", "none"), ("deepspeed_configs/zero2.json", "zero2", "optimizer"), ("/workspace/axolotl/deepspeed_configs/zero3_bf16.json", "zero3", "none"),
    ("deepspeed_configs/zero3_bf16_cpuoffload_all.json", "zero3", "optimizer-and-parameters"),
))
def test_a_named_configuration_is_what_is_published_under_that_name(name, sharding, offload):
    found = read(axolotl(f"deepspeed: {name}"))
    assert (found.texts["sharding"], found.texts["offload"]) == (sharding, offload)
    assert [each.source for each in found.assumed if each.setting == "offload"] != [""]


def test_another_configuration_is_told_to_be_elsewhere():
    found = read(axolotl("deepspeed: my/own.json"))
    assert found.texts["sharding"] == "none"
    assert [each.bound for each in found.unsupported if each.key == "deepspeed"] == ["upper"]


def test_llama_factory_checkpoints_unless_it_is_told_not_to():
    text = "model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nbf16: true"
    found = read(text)
    assert found.texts["checkpointing"] == "full"
    assert [each.source for each in found.assumed if each.setting == "checkpointing"] == ["llamafactory 0.9.5, hparams/model_args.py: disable_gradient_checkpointing = False"]
    assert read(f"{text}\ndisable_gradient_checkpointing: true").texts["checkpointing"] == "none"
    assert read(f"{text}\nuse_reentrant_gc: false").texts["checkpoint_kind"] == "non-reentrant"


def test_eight_bits_are_neither_lora_nor_qlora():
    found = read(axolotl("adapter: lora", "load_in_8bit: true"))
    assert (found.texts["method"], found.texts["quantization"]) == ("qlora", "int8")
    assert read(axolotl("adapter: lora", "load_in_8bit: false")).texts["method"] == "lora"
    assert read(axolotl("load_in_8bit: true")).uncounted
    found = read("model_name_or_path: Qwen/Qwen3-8B\nfinetuning_type: lora\nquantization_bit: 8")
    assert (found.texts["method"], found.texts["quantization"]) == ("qlora", "int8")


def test_dpo_counts_pairs_and_holds_a_reference():
    found = read(trl("dtype: bfloat16", "beta: 0.1"))
    assert found.settings.objective == "dpo" and found.settings.rows == 4
    names = {term.name for term in estimate(found.settings).terms}
    assert any("reference" in name for name in names)
    assert read(trl("beta: 0.1", "precompute_ref_log_probs: true")).texts["reference"] == "precomputed"


@pytest.mark.parametrize("rl", ("kto", "orpo", "simpo", "gdpo", "ebft"))
def test_a_loss_that_is_not_counted_gives_no_number(rl):
    found = read(axolotl(f"rl: {rl}"))
    assert not found.texts and rl.upper() in found.uncounted


def test_grpo_is_an_objective_that_the_estimate_refuses_itself():
    assert read(axolotl("rl: grpo")).texts["objective"] == "grpo"


def test_modules_that_are_trained_whole_make_a_lower_bound():
    found = read(axolotl("adapter: lora", "lora_modules_to_save: [embed_tokens]"))
    assert [(each.key, each.bound) for each in found.unsupported] == [("lora_modules_to_save", "lower")]


def test_an_optimizer_with_smaller_states_makes_an_upper_bound():
    found = read(trl("optim: galore_adamw", "optim_target_modules: all-linear"))
    assert found.texts["optimizer"] == "adamw"
    assert {each.bound for each in found.unsupported} == {"upper"}


def test_what_the_tool_supplies_is_listed_with_its_source():
    found = read("model_name_or_path: Qwen/Qwen3-8B")
    supplied = {each.setting: (each.value, each.source) for each in found.assumed}
    assert supplied["micro_batch"][0] == "8" and supplied["sequence_length"][0] == "1024" and supplied["checkpointing"][0] == "full"
    assert all(source for setting, (_, source) in supplied.items() if setting in ("micro_batch", "sequence_length", "checkpointing", "gradient_accumulation_steps"))


def test_unknown_keys_are_told():
    assert [(each.key, each.line, each.bound) for each in read(axolotl("own_key: 1")).unsupported] == [("own_key", 4, "none")]


# The model


def test_a_model_that_is_no_preset_asks_for_its_file_and_takes_the_chosen_one():
    found = read("base_model: someone/some-model\nmicro_batch_size: 1\nsequence_len: 512", model="qwen3-4b")
    assert "model" not in found.texts and found.settings.model == "qwen3-4b"
    assert "bring its config.json" in next(each.why for each in found.unsupported if each.key == "base_model")


def test_a_model_that_was_brought_before_is_taken():
    config = '{"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32, "intermediate_size": 8192, "vocab_size": 32000}'
    model = import_text(config, {})
    found = import_text("base_model: own/model\nmicro_batch_size: 1\nsequence_len: 512", model.texts, base=model)
    assert found.settings.model == "custom" and found.settings.hidden_size == 2048
    assert [each.bound for each in found.unsupported if each.key == "base_model"] == [""]


# Command lines


def test_a_command_is_found_in_a_script_with_variables_comments_and_continuations():
    found = read("""#!/bin/bash
# export CUDA_VISIBLE_DEVICES=0
MODEL="Qwen/Qwen3-8B"
RANK=64
accelerate launch --num_processes 4 \\
    trl/scripts/sft.py \\
    --model_name_or_path $MODEL \\
    --use_peft --lora_r ${RANK} \\
    --lora_target_modules q_proj k_proj \\
    --per-device-train-batch-size=4 --no_gradient_checkpointing && echo done
""")
    expected = {"model": "qwen3-8b", "method": "lora", "rank": "64", "adapter_targets": "q,k", "micro_batch": "4", "replicas": "4", "sharding": "ddp", "checkpointing": "none"}
    assert {name: found.texts[name] for name in expected} == expected
    assert {each.key: each.line for each in found.read if each.line}["lora_r"] == 8


@pytest.mark.parametrize("before, gpus", (
    ("torchrun --nproc_per_node 8 --nnodes 2 sft.py", "16"), ("torchrun --nproc_per_node=2 sft.py", "2"), ("CUDA_VISIBLE_DEVICES=0,1,3 python sft.py", "3"), ("python sft.py", "1"),
    ("deepspeed --num_gpus=4 sft.py", "4"), ("trl sft --num_processes 2", "2"), ("NPROC_PER_NODE=6 trl sft", "6"),
))
def test_launchers_and_variables_say_how_many_gpus_there_are(before, gpus):
    assert read(f"{before} --model_name_or_path Qwen/Qwen3-8B").texts["replicas"] == gpus


@pytest.mark.parametrize("text, code", (
    ("trl sft --config x.yaml --model_name_or_path 'a", "not_a_command"), ("axolotl train config.yml", "names_a_file"), ("trl sft", "names_a_file"),
    ("trl sft --model_name_or_path a\ntrl dpo --model_name_or_path b", "many_commands"),
))
def test_commands_that_cannot_be_used_say_why(text, code):
    assert code_of(text) == code


def test_a_variable_that_nothing_sets_is_told():
    found = read("trl sft --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size $BATCH")
    assert found.texts["micro_batch"] == "8"
    assert [each.key for each in found.unsupported] == ["per_device_train_batch_size"]


def test_a_known_configuration_of_accelerate_is_read_by_its_name():
    found = read("accelerate launch --config_file recipes/accelerate_configs/deepspeed_zero3.yaml --num_processes=4 scripts/sft.py --model_name_or_path Qwen/Qwen3-8B")
    assert (found.texts["sharding"], found.texts["sharded_over"]) == ("zero3", "4")


def test_the_tool_can_be_named():
    text = "model_name_or_path: Qwen/Qwen3-8B\nlearning_rate: 1e-4"
    assert import_text(text, {}, tool="trl").label == "TRL run"
    assert code_of(text, tool="another") == "unknown_tool"


def test_json_is_read_as_well():
    found = read('{"base_model": "Qwen/Qwen3-8B",\n "micro_batch_size": 4,\n "sequence_len": 2048}')
    assert found.texts["micro_batch"] == "4" and {each.key: each.line for each in found.read}["micro_batch_size"] == 2


# The tables


@pytest.mark.parametrize("name", TOOLS)
def test_a_table_gives_settings_that_there_are(name):
    from vramplan.fields import BY_NAME
    from vramplan.kinds import Choice

    known = tool(name)
    assert known.signs and name in COMBINE
    assert bool(known.stack) == bool(known.model_key) == (not known.part)
    for each in known.decides:
        kind = BY_NAME[each.setting].kind
        if isinstance(kind, Choice):
            assert set(each.values.values()) <= {option.value for option in kind.options}, each.key
        assert each.default is None or each.text(each.default) is not None
        assert each.source
    assert {each.bound for each in known.inexact} <= set(BOUNDS)


def test_no_key_stands_in_two_lists_of_a_table():
    for name in TOOLS:
        known = tool(name)
        lists = [*(each.key for each in known.decides), *(key for each in (*known.no_effect, *known.inexact) for key in each.keys)]
        assert sorted({key for key in lists if lists.count(key) > 1}) == [], name


def test_optimizers_are_settings_and_other_ones_say_why():
    from vramplan.fields import BY_NAME

    values = {option.value for option in BY_NAME["optimizer"].kind.options}
    for each in optimizers().values():
        assert each.setting in values and (each.bound in BOUNDS and each.why if each.bound else not each.why)


# Broken files

CHUNKS, EACH = 20, 500


def broken(text, chance):
    """A text with one of the things that happen to files."""
    lines = text.split("\n")
    at = chance.randrange(len(lines))
    what = chance.randrange(16)
    if what == 0:
        del lines[at]
    elif what == 1:
        lines[at] = lines[at].partition(":")[0] + ": " + chance.choice(VALUES)
    elif what == 2:
        lines[at] = chance.choice((" ", "  ", "\t", "- ", "? ", "# ", "@", "`", "%", "'", '"')) + lines[at]
    elif what == 3:
        lines.insert(at, chance.choice(lines))
    elif what == 4:
        other = chance.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif what == 5:
        return text[: chance.randrange(len(text))]
    elif what == 6:
        place = chance.randrange(len(text))
        return text[:place] + chance.choice(("\x00", "\ud800", "é", "\u2028", "\r", ":", "{", "[", "]", "}", "&a", "*a", "!!int", "|", ">", "\\", "$(x)", "<<", "\x1b")) + text[place + 1 :]
    elif what == 7:
        lines.insert(at, f"{'x' * chance.randrange(1, 300)}: {'[' * chance.randrange(0, 40)}")
    elif what == 8:
        lines.insert(at, f"z: &z {{k: *z, {chance.choice(VALUES)}: 1}}" if chance.random() < 0.5 else f"z: &z [1]\nw: [{'*z, ' * chance.randrange(1, 50)}1]")
    elif what == 9:
        lines[at] += chance.choice((" # note", " \\", " --lora_r", " --x=", ' "', " && trl sft", " | tee log", " $HOME"))
    elif what == 10:
        return text.replace(chance.choice(("true", "false", ":", " ", "lora", "1", "_")), chance.choice(("", "yes", "9" * 500, "ü", "null", "-")), chance.randrange(1, 5))
    elif what == 11:
        data = bytearray(text.encode("utf-8", "replace"))
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        return data.decode("utf-8", "replace")
    elif what == 12:
        return text.replace("\n", chance.choice(("\r\n", "\r", "\n\n", "\u2029")))
    elif what == 13:
        lines[at] = f"{chance.choice(KEYS)}: {chance.choice(VALUES)}"
    elif what == 14:
        lines[at] = lines[at].partition(":")[0] + ":\n" + "".join(f"{' ' * depth}k{depth}:\n" for depth in range(1, chance.randrange(2, 60)))
    else:
        return f"---\n{text}\n--- \n{text}" if chance.random() < 0.3 else "\ufeff" + text
    return "\n".join(lines)


def shortened(text, chance):
    """About half of a file, so that ten thousand are read in a minute; keys that go together stay so often enough."""
    lines = text.split("\n")
    start = chance.randrange(len(lines))
    return "\n".join([*lines[:3], *lines[start : start + 25]])


VALUES = (
    "", "~", "null", "true", "no", "0", "-1", "1", "1e9", "2e-5", "9" * 30, "9" * 400, ".inf", "-.inf", ".nan", "1:30", "0x1F", "'x'", '"\\u0000"', "[]", "{}", "[1, a, null]", "{a: {b: 1}}",
    "!!float 1", "!!str 1", "!!binary aGk=", "!!set {a}", "2024-01-01", "|", ">-", "*a", "&a 1", "lora", "qlora", "dpo", "[q_proj, 5]", "[[1]]", "auto", "flash_attention_2", "zero2.json",
    "1" * 128, "a" * 5000, "\U0001f600", "0.5.5", "1_000", "+5", "=", "<<",
)
KEYS = sorted({key for name in TOOLS for key in tool(name).keys})


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_broken_files_raise_nothing_but_a_sentence(chunk):
    chance = random.Random(chunk)
    originals = [content(name) for name in EXPECTED]
    refused = 0
    for _ in range(EACH):
        text = chance.choice(originals)
        for _ in range(chance.randrange(1, 4)):
            text = broken(text, chance) or "x"
        try:
            found = import_text(text, {})
        except ImportProblem as problem:
            refused += 1
            assert problem.message.strip() and len(str(problem)) < 700
        else:
            assert found.settings is not None or not found.texts
    assert 0 < refused < EACH


def test_what_is_no_training_file_is_not_taken_for_one():
    for text in ("", "Qwen/Qwen3-8B", "https://example.org/a", "LlamaConfig {\n}", '{"model_type": "llama"}', "<html>", "Access to model x is restricted"):
        assert not is_training_text(text)
