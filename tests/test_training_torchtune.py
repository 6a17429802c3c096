"""torchtune's files: builders of models, adapters, the optimizer in the backward pass, and what a file leaves to its command.

Belongs here: traps of this tool. Published files: test_training_files.py.
"""

import pytest
from vramplan.accountings import estimate
from vramplan.catalogue import presets
from vramplan.errors import NotExpressible
from vramplan.importing.imported import import_text
from vramplan.importing.problems import ImportProblem
from vramplan.training_files.tools import mirrors

LORA = ("model:", "  _component_: torchtune.models.llama3_2.lora_llama3_2_1b", "  lora_attn_modules: [q_proj, v_proj]")
FULL = ("model: {_component_: torchtune.models.llama3_2.llama3_2_1b}",)


def read(*lines, model=LORA, chosen=None, optimizer="{_component_: torch.optim.AdamW, fused: True}"):
    common = ("tokenizer: {max_seq_len: 2048}", "batch_size: 2", "gradient_accumulation_steps: 1", f"optimizer: {optimizer}", "enable_activation_checkpointing: True", "dtype: bf16")
    given = {line.partition(":")[0] for line in lines}
    return import_text("\n".join((*model, *(line for line in common if line.partition(":")[0] not in given), *lines)), chosen or {})


def bounds(found):
    return [(each.key, each.bound) for each in found.unsupported]


def test_a_run_is_counted_from_its_file_alone():
    found = read("loss: {_component_: torchtune.modules.loss.LinearCrossEntropyLoss}")
    assert found.unsupported == () and found.settings.model == "llama-3.2-1b"
    assert estimate(found.settings).peak_bytes > 0


@pytest.mark.parametrize("builder, preset", (
    ("llama3_1.llama3_1_8b", "llama-3.1-8b"), ("llama3.qlora_llama3_8b", "llama-3-8b"), ("llama2.lora_llama2_13b", "llama-2-13b"), ("mistral.mistral_7b", "mistral-7b-v0.1"),
    ("gemma2.lora_gemma2_9b", "gemma-2-9b"), ("qwen2_5.qwen2_5_1_5b_instruct", "qwen2.5-1.5b"), ("qwen3.lora_qwen3_8b_base", "qwen3-8b"), ("llama3_3.llama3_3_70b", "llama-3.3-70b"),
))
def test_a_builder_is_a_preset(builder, preset):
    assert read(model=(f"model: {{_component_: torchtune.models.{builder}, lora_attn_modules: [q_proj]}}",)).settings.model == preset


def test_every_builder_stands_for_a_preset_and_no_name_stands_twice():
    from vramplan.data import table

    names = [name for each in table("mirrors")["mirror"] for name in each["names"]]
    assert len(names) == len(set(names))
    assert {preset for preset, _ in mirrors().values()} <= set(presets())


def test_a_builder_with_dimensions_of_its_own_takes_the_checkpoints_name():
    model = ("model: {_component_: torchtune.models.llama3_1.llama3_1, embed_dim: 4096}",)
    assert read("checkpointer: {checkpoint_dir: /tmp/Llama-3.1-8B/}", model=model).settings.model == "llama-3.1-8b"
    other = read("checkpointer: {checkpoint_dir: /tmp/mine/}", model=model, chosen={"model": "qwen3-4b"})
    assert other.settings.model == "qwen3-4b" and "model._component_" in {each.key for each in other.unsupported}


@pytest.mark.parametrize("lines, targets", (
    (("  lora_attn_modules: ['q_proj', 'k_proj', 'v_proj', 'output_proj']",), "attention"),
    (("  lora_attn_modules: [q_proj, k_proj, v_proj, output_proj]", "  apply_lora_to_mlp: True"), "all-linear"),
    (("  lora_attn_modules: [q_proj, v_proj, v_proj]",), "q,v"), (("  lora_attn_modules: []", "  apply_lora_to_mlp: True"), "gate,up,down"),
    (("  lora_attn_modules: [q_proj]", "  apply_lora_to_output: True"), "q,lm_head"),
))
def test_adapters_are_on_the_maps_that_are_named(lines, targets):
    found = read(model=(*LORA[:2], *lines))
    assert found.texts["adapter_targets"] == targets and found.texts["rank"] == "8"


def test_a_quantised_base_is_qlora_with_either_builder():
    assert read(model=(*LORA, "  quantize_base: True")).texts["method"] == "qlora"
    assert read(model=("model: {_component_: torchtune.models.llama3_2.qlora_llama3_2_1b, lora_attn_modules: [q_proj]}",)).texts["method"] == "qlora"
    assert read(model=(*LORA, "  quantize_base: False")).texts["method"] == "lora"


@pytest.mark.parametrize("component, setting", (
    ("{_component_: torch.optim.AdamW}", "adamw-foreach"), ("{_component_: torch.optim.AdamW, fused: True}", "adamw-fused"), ("{_component_: bitsandbytes.optim.PagedAdamW8bit}", "paged-adamw-8bit"),
    ("{_component_: bitsandbytes.optim.PagedAdamW}", "paged-adamw-32bit"), ("{_component_: torch.optim.SGD}", "sgd"), ("{_component_: torch.optim.SGD, momentum: 0.9}", "sgd-momentum"),
))
def test_optimizers_by_their_class(component, setting):
    found = read(optimizer=component)
    assert found.texts["optimizer"] == setting and bounds(found) == []


def test_an_unknown_optimizer_is_told():
    assert ("optimizer._component_", "none") in bounds(read(optimizer="{_component_: mine.Best}"))


def test_the_optimizer_in_the_backward_pass_frees_gradients():
    usual, early = (estimate(read(f"optimizer_in_bwd: {flag}", "tokenizer: {max_seq_len: 128}", model=FULL).settings).peak_bytes for flag in (False, True))
    assert early < usual
    assert read(model=FULL).texts["optimizer_step"] == "after"


@pytest.mark.parametrize("loss, setting, stack", (
    ("torchtune.modules.loss.CEWithChunkedOutputLoss", "split", "torchtune-0.6"), ("torchtune.modules.loss.LinearCrossEntropyLoss", "split", "torchtune-0.7"), ("torch.nn.CrossEntropyLoss", "logits", "torchtune-0.6"),
))
def test_the_loss_says_the_release(loss, setting, stack):
    found = read(f"loss: {{_component_: {loss}}}")
    assert (found.texts["loss"], found.texts["stack"]) == (setting, stack)


def test_keys_of_older_recipes_say_the_release():
    found = read("memory_efficient_fsdp_wrap: True", "loss: {_component_: torchtune.modules.loss.CEWithChunkedOutputLoss}")
    assert found.texts["stack"] == "torchtune-0.4"


def test_rows_that_are_not_cut_keep_the_chosen_length():
    for chosen, length in (({"sequence_length": "4096"}, "4096"), ({}, "2048")):
        found = read("tokenizer: {max_seq_len: null}", chosen=chosen)
        assert str(found.settings.sequence_length) == length and ("tokenizer.max_seq_len", "none") in bounds(found)


def test_offloading_is_offloading_only_with_checkpointing():
    both = read("enable_activation_offloading: True")
    assert both.texts["checkpointing"] == "offloaded"
    alone = read("enable_activation_offloading: True", "enable_activation_checkpointing: False")
    assert alone.texts["checkpointing"] == "none" and ("enable_activation_offloading", "none") in bounds(alone)


def test_compiling_is_counted():
    assert read("compile: True").texts["torch_compile"] == "on"
    assert read("compile: False").texts["torch_compile"] == "off"


def test_several_gpus_are_said_by_keys_of_their_recipes_and_refused_by_the_estimate():
    found = read("fsdp_cpu_offload: True", model=FULL)
    assert (found.texts["sharding"], found.texts["offload"]) == ("fsdp2", "optimizer-and-parameters")
    with pytest.raises(NotExpressible, match="counted on one GPU"):
        estimate(found.settings)


def test_full_precision_is_a_lower_bound():
    assert bounds(read("dtype: fp32")) == [("dtype", "lower")]


@pytest.mark.parametrize("lines", (("teacher_model: {_component_: torchtune.models.llama3_1.llama3_1_8b}",), ("loss: {_component_: torchtune.modules.loss.ForwardKLLoss}",), ("loss: {_component_: torchtune.rlhf.loss.PPOLoss}",)))
def test_several_models_give_no_run(lines):
    found = read(*lines)
    assert not found.texts and found.uncounted


def test_a_tune_command_asks_for_its_file():
    with pytest.raises(ImportProblem, match="Bring that file"):
        import_text("tune run lora_finetune_single_device --config llama3_1/8B_lora_single_device batch_size=4", {})
