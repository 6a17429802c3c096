"""Files that set a part of a run: DeepSpeed’s JSON and accelerate’s configuration.

Belongs here: what they leave as it is, how many GPUs there are then, and the traps of both. Published files: test_training_files.py.
"""

import json

import pytest
from vramplan import brought
from vramplan.accountings import estimate
from vramplan.importing.imported import import_text
from vramplan.importing.problems import ImportProblem

RUN = {"model": "qwen3-8b", "stack": "trl-1.15", "method": "full", "micro_batch": "4", "gradient_accumulation_steps": "2", "sharding": "ddp", "replicas": "8", "checkpointing": "none"}


def zero(chosen=RUN, *, zero_optimization=None, **keys):
    content = {"zero_optimization": zero_optimization or {"stage": 2}, **keys}
    return import_text(json.dumps(content, indent=1), chosen)


def accelerate(*lines, chosen=RUN):
    return import_text("\n".join(("compute_environment: LOCAL_MACHINE", *lines)), chosen)


def bounds(found):
    return [(each.key, each.bound) for each in found.unsupported]


def test_a_part_leaves_everything_else_of_the_run_as_it_is():
    found = zero()
    assert found.part and found.texts == {"sharding": "zero2", "offload": "none", "sharded_over": "8", "replicas": "1", "measured": ""}
    before = {name: getattr(found.settings, name) for name in ("model", "stack", "method", "micro_batch", "gradient_accumulation_steps", "checkpointing")}
    assert {name: str(value) for name, value in before.items()} == {name: RUN[name] for name in before}
    assert "the others stay as they are" in brought.sentence(found)


def test_all_gpus_of_the_run_stay_whatever_divides():
    for chosen, gpus in ((RUN, 8), (RUN | {"sharding": "fsdp2", "sharded_over": "4", "replicas": "2"}, 8), (RUN | {"replicas": "1"}, 1)):
        for stage in (0, 1, 2, 3):
            assert zero(chosen, zero_optimization={"stage": stage}).settings.gpus == gpus


def test_dividing_takes_less_than_copies():
    peaks = [estimate(zero(zero_optimization={"stage": stage}).settings).peak_bytes for stage in (0, 1, 2, 3)]
    assert peaks == sorted(peaks, reverse=True) and len(set(peaks)) == len(peaks)


@pytest.mark.parametrize("zero_optimization, sharding, offload", (
    ({"stage": 0}, "ddp", "none"), ({"stage": "3"}, "zero3", "none"), ({"stage": 1, "offload_optimizer": {"device": "none"}}, "zero1", "none"),
    ({"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/x"}, "offload_param": {"device": "cpu"}}, "zero3", "optimizer-and-parameters"),
    ({"stage": 2, "cpu_offload": True}, "zero2", "optimizer"), ({"stage": 3, "cpu_offload": True, "cpu_offload_params": True}, "zero3", "optimizer-and-parameters"),
    ({"stage": 2, "offload_optimizer": None}, "zero2", "none"), ({"stage": 0, "offload_optimizer": {"device": "cpu"}}, "ddp", "none"), ({"overlap_comm": True}, "ddp", "none"),
))
def test_stage_and_offload_are_those_of_the_file(zero_optimization, sharding, offload):
    found = zero(zero_optimization=zero_optimization)
    assert (found.texts["sharding"], found.texts["offload"]) == (sharding, offload)


def test_a_batch_that_is_auto_stays_and_numbers_are_taken():
    assert "micro_batch" not in zero(train_micro_batch_size_per_gpu="auto", train_batch_size="auto").texts
    found = zero(train_micro_batch_size_per_gpu=2, gradient_accumulation_steps=4, train_batch_size=32)
    assert {name: found.texts[name] for name in ("micro_batch", "gradient_accumulation_steps", "sharded_over")} == {
        "micro_batch": "2", "gradient_accumulation_steps": "4", "sharded_over": "4"}
    alone = zero(train_batch_size=64)
    assert "micro_batch" not in alone.texts and bounds(alone) == [("train_batch_size", "none")]


@pytest.mark.parametrize("keys, precision", (
    ({"bf16": {"enabled": True}}, "bf16"), ({"fp16": {"enabled": True}}, "fp16"), ({"bf16": {"enabled": "auto"}}, None), ({"bf16": {"enabled": False}}, None), ({}, None),
))
def test_precision_is_taken_where_it_is_on(keys, precision):
    assert zero(**keys).texts.get("half_precision") == precision


@pytest.mark.parametrize("name, setting", (("AdamW", "adamw-fused"), ("Adam", "adamw-fused"), ("Lion", "lion"), ("Lamb", None), (None, None)))
def test_an_optimizer_of_deepspeed_counts_where_it_is_known(name, setting):
    found = zero(**({"optimizer": {"type": name, "params": {"lr": "auto"}}} if name else {}))
    assert found.texts.get("optimizer") == setting
    assert bounds(found) == ([("optimizer.type", "none")] if name and not setting else [])


def test_sizes_of_buckets_that_are_not_auto_are_told():
    found = zero(zero_optimization={"stage": 3, "reduce_bucket_size": 5e8, "stage3_prefetch_bucket_size": "auto", "offload_optimizer": {"device": "cpu", "ratio": 0.5}})
    assert set(bounds(found)) == {("zero_optimization.reduce_bucket_size", "none"), ("zero_optimization.offload_optimizer.ratio", "lower")}


@pytest.mark.parametrize("content", ({"zero_optimization": {"stage": 5}}, {"zero_optimization": {"stage": "two"}}, {"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": [1]},
                                     {"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 3, "gradient_accumulation_steps": 2, "train_batch_size": 32},
                                     {"zero_optimization": {"stage": 2}, "train_micro_batch_size_per_gpu": 10**6}))
def test_what_deepspeed_refuses_is_refused(content):
    with pytest.raises(ImportProblem):
        import_text(json.dumps(content), RUN)


@pytest.mark.parametrize("lines, sharding, gpus", (
    (("distributed_type: 'NO'", "num_processes: 1"), "none", 1), (("distributed_type: NO",), "none", 1), (("distributed_type: MULTI_GPU", "num_processes: 4"), "ddp", 4),
    (("distributed_type: MULTI_GPU",), "ddp", 8), (("distributed_type: DEEPSPEED",), "zero2", 8), (("distributed_type: DEEPSPEED", "deepspeed_config: {zero_stage: 3}", "num_processes: 2"), "zero3", 2),
    (("distributed_type: DEEPSPEED", "deepspeed_config: {zero_stage: 0}", "num_processes: 2"), "ddp", 2), (("distributed_type: FSDP", "num_processes: 16"), "fsdp1", 16),
    (("distributed_type: FSDP", "fsdp_config: {fsdp_version: 2}"), "fsdp2", 8), (("distributed_type: FSDP", "fsdp_config: {fsdp_sharding_strategy: NO_SHARD}"), "ddp", 8),
    (("distributed_type: DEEPSPEED", "deepspeed_config: {deepspeed_config_file: a/ds_z3_own.json}", "num_processes: 4"), "zero3", 4),
))
def test_the_kind_of_run_and_its_gpus(lines, sharding, gpus):
    found = accelerate(*lines)
    assert (found.texts["sharding"], found.settings.gpus) == (sharding, gpus)


def test_a_whole_model_as_one_unit_is_more_than_is_counted():
    wrapped = ("distributed_type: FSDP", "fsdp_config:", "  fsdp_auto_wrap_policy: ")
    assert bounds(accelerate(*wrapped[:2], f"{wrapped[2]}NO_WRAP")) == [("fsdp_config.fsdp_auto_wrap_policy", "lower")]
    assert bounds(accelerate(*wrapped[:2], f"{wrapped[2]}TRANSFORMER_BASED_WRAP")) == []
    assert bounds(accelerate(wrapped[0])) == [("fsdp_config", "lower")]


def test_keys_of_fsdp_may_leave_the_prefix_out_and_checkpoint_layers():
    found = accelerate("distributed_type: FSDP", "fsdp_config: {version: 2, auto_wrap_policy: TRANSFORMER_BASED_WRAP, offload_params: true, activation_checkpointing: true}")
    assert {name: found.texts[name] for name in ("sharding", "offload", "checkpointing")} == {"sharding": "fsdp2", "offload": "optimizer-and-parameters", "checkpointing": "full"}


def test_offload_of_zero_is_read_from_accelerate_too():
    found = accelerate("distributed_type: DEEPSPEED", "deepspeed_config:", "  zero_stage: 3", "  offload_optimizer_device: cpu", "  offload_param_device: cpu", "  gradient_accumulation_steps: auto")
    assert found.texts["offload"] == "optimizer-and-parameters" and "gradient_accumulation_steps" not in found.texts


def test_other_accelerators_give_no_run():
    found = accelerate("distributed_type: TPU")
    assert not found.texts and found.settings is None and "tpu" in found.uncounted


def test_precision_of_accelerate():
    assert accelerate("distributed_type: MULTI_GPU", "mixed_precision: bf16").texts["half_precision"] == "bf16"
    assert "half_precision" not in accelerate("distributed_type: MULTI_GPU", "mixed_precision: 'no'").texts
    assert bounds(accelerate("distributed_type: MULTI_GPU", "mixed_precision: fp8")) == [("mixed_precision", "none")]


def test_accelerate_is_read_as_json_too():
    assert import_text('{"distributed_type": "FSDP", "num_processes": 2, "fsdp_config": {"fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP"}}', RUN).texts["sharded_over"] == "2"
