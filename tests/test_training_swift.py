"""ms-swift's commands: old names of its flags, its accumulation, its configurations by name, and what is Megatron's.

Belongs here: traps of this tool. Published commands: test_training_files.py.
"""

import pytest
from vramplan.importing.imported import import_text

MODEL = "--model Qwen/Qwen2.5-7B-Instruct"


def read(flags, before="", program="swift sft", chosen=None):
    return import_text(f"{before} {program} {flags}", chosen or {})


def bounds(found):
    return {each.key: each.bound for each in found.unsupported}


def test_its_own_defaults_are_taken_and_told():
    found = read(f"{MODEL} --max_length 2048")
    expected = {"method": "lora", "rank": "8", "lora_dropout": "0.05", "adapter_targets": "all-linear", "micro_batch": "1", "gradient_accumulation_steps": "16", "checkpointing": "full"}
    assert {name: found.texts[name] for name in expected} == expected
    assert set(expected) <= {each.setting for each in found.assumed}


@pytest.mark.parametrize("flags, before, steps", (
    ("", "", "16"), ("--per_device_train_batch_size 4", "", "4"), ("--per_device_train_batch_size 3", "", "6"), ("", "NPROC_PER_NODE=8", "2"), ("--per_device_train_batch_size 4", "NPROC_PER_NODE=8", "1"),
    ("--gradient_accumulation_steps 5", "NPROC_PER_NODE=8", "5"), ("--gradient_accumulation_steps $(expr 16 / 4)", "", "4"), ("--gradient_accumulation_steps $((32/4))", "", "8"),
))
def test_steps_accumulate_to_sixteen_rows_where_nobody_says(flags, before, steps):
    assert read(f"{MODEL} {flags}", before).texts["gradient_accumulation_steps"] == steps


def test_the_shell_divides_variables():
    text = f"n=2\nswift sft {MODEL} --gradient_accumulation_steps $(expr 16 / $n) \\\n  --lora_rank 4"
    found = import_text(text, {})
    assert (found.texts["gradient_accumulation_steps"], found.texts["rank"]) == ("8", "4")
    open_one = read(f"{MODEL} --per_device_train_batch_size $(expr 16 / $m)")
    assert open_one.texts["micro_batch"] == "1" and "per_device_train_batch_size" in bounds(open_one)
    assert "per_device_train_batch_size" in bounds(read(f"{MODEL} --per_device_train_batch_size $n"))


@pytest.mark.parametrize("name, sharding, offload", (
    ("zero1", "zero1", "none"), ("zero2", "zero2", "none"), ("default-zero2", "zero2", "none"), ("zero2_offload", "zero2", "optimizer"), ("zero3", "zero3", "none"), ("zero3_offload", "zero3", "optimizer-and-parameters"),
    ("zero0", "ddp", "none"), ("./own/ds_z3_config.json", "zero3", "none"),
))
def test_configurations_by_their_names(name, sharding, offload):
    found = read(f"{MODEL} --deepspeed {name}", "NPROC_PER_NODE=4")
    assert (found.texts["sharding"], found.texts["offload"], found.settings.gpus) == (sharding, offload, 4)


def test_fsdp2_checkpoints_by_its_configuration():
    found = read(f"{MODEL} --fsdp fsdp2 --gradient_checkpointing false", "NPROC_PER_NODE=4")
    assert (found.texts["sharding"], found.texts["checkpointing"], found.texts["sharded_over"]) == ("fsdp2", "full", "4")


def test_several_gpus_without_processes_hold_parts_of_one_model():
    found = read(MODEL, "CUDA_VISIBLE_DEVICES=0,1,2,3")
    assert found.settings.gpus == 1 and bounds(found)["CUDA_VISIBLE_DEVICES"] == "upper"
    copies = read(MODEL, "CUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=4")
    assert (copies.texts["replicas"], copies.texts["checkpoint_kind"]) == ("4", "non-reentrant") and "CUDA_VISIBLE_DEVICES" not in bounds(copies)
    assert "checkpoint_kind" not in {name for name, text in read(f"{MODEL} --deepspeed zero0", "NPROC_PER_NODE=4").texts.items() if text != "stack"}


@pytest.mark.parametrize("flags, setting, text", (
    ("--model_id_or_path Qwen/Qwen2.5-7B-Instruct --sft_type full", "method", "full"), ("--model_id_or_path Qwen/Qwen2.5-7B-Instruct --sft_type lora --quantization_bit 4", "method", "qlora"),
    ("--model_id_or_path Qwen/Qwen2.5-7B-Instruct --sft_type lora --batch_size 4", "micro_batch", "4"), (f"{MODEL} --train_type full", "method", "full"), (f"{MODEL} --tuner_type full", "method", "full"),
    ("--model_id_or_path Qwen/Qwen2.5-7B-Instruct --sft_type lora --lora_target_modules ALL", "adapter_targets", "all-linear"),
    ("--model_id_or_path Qwen/Qwen2.5-7B-Instruct --sft_type lora --lora_dropout_p 0.1", "lora_dropout", "0.1"), (f"{MODEL} --sft_type lora --dtype fp16", "half_precision", "fp16"),
))
def test_older_names_of_flags_are_read(flags, setting, text):
    found = read(flags)
    assert found.texts[setting] == text and found.settings.model == "qwen2.5-7b"


def test_a_family_is_no_model():
    found = read("--model_type qwen2_5-7b-instruct --sft_type lora", chosen={"model": "qwen3-4b"})
    assert found.settings.model == "qwen3-4b" and bounds(found)["model_type"] == "none"


@pytest.mark.parametrize("flags, quantization", (
    ("--quant_method bnb --quant_bits 4", "nf4-double"), ("--quant_bits 4 --bnb_4bit_use_double_quant false", "nf4"), ("--quant_method bnb --quant_bits 8", "int8"),
))
def test_bits_make_qlora(flags, quantization):
    found = read(f"{MODEL} {flags}")
    assert (found.texts["method"], found.texts["quantization"]) == ("qlora", quantization) and "quant_method" not in bounds(found)


def test_other_quantisation_is_told():
    assert bounds(read(f"{MODEL} --quant_method hqq --quant_bits 4"))["quant_method"] == "none"


def test_packing_fills_one_row():
    found = read(f"{MODEL} --packing true --attn_impl flash_attn --per_device_train_batch_size 2 --max_length 4096")
    assert (found.texts["micro_batch"], found.texts["sequence_length"]) == ("1", "8192")


def test_rows_that_are_not_cut_keep_the_chosen_length():
    found = read(MODEL, chosen={"sequence_length": "4096"})
    assert found.settings.sequence_length == 4096 and bounds(found)["max_length"] == "none"


def test_the_head_on_labelled_tokens_makes_an_upper_bound():
    assert bounds(read(f"{MODEL} --max_length 512")) == {"use_logits_to_keep": "upper"}
    assert bounds(read(f"{MODEL} --max_length 512 --use_logits_to_keep false")) == {}


@pytest.mark.parametrize("program, flags, objective", (
    ("swift rlhf", "--rlhf_type dpo", "dpo"), ("swift rlhf", "", "dpo"), ("swift rlhf", "--rlhf_type rm", "reward"), ("swift rlhf", "--rlhf_type grpo", "grpo"), ("swift pt", "", "sft"),
    ("python swift/cli/sft.py", "", "sft"),
))
def test_the_objective_is_that_of_the_command(program, flags, objective):
    found = read(f"{MODEL} {flags}", program=program)
    assert found.texts["objective"] == objective and found.label == "ms-swift run"


@pytest.mark.parametrize("program, flags", (
    ("megatron sft", "--tensor_model_parallel_size 2"), ("swift rlhf", "--rlhf_type kto"), ("swift sft", "--tuner_type adalora"), ("swift sft", "--task_type embedding"), ("swift sft", "--tuner_type full --quant_bits 4"),
))
def test_what_is_not_counted_gives_no_number(program, flags):
    found = read(f"{MODEL} {flags}", program=program)
    assert not found.texts and found.settings is None and found.uncounted
    assert [each for each in found.unsupported if "not known" in each.why] == []


def test_yaml_with_its_keys_is_read():
    found = import_text("model: Qwen/Qwen2.5-7B-Instruct\ntuner_type: lora\ndataset: a\nlora_rank: 64\nmax_length: 1024\n", {})
    assert found.label == "ms-swift run" and found.texts["rank"] == "64"


def test_a_script_of_trl_stays_one_of_trl():
    assert import_text("python trl/scripts/sft.py --model_name_or_path Qwen/Qwen3-8B", {}).label == "TRL run"
