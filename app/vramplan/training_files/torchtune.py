"""torchtune: keys of its YAML that count together. Source: torchtune 0.6.1, recipes/*.py, recipes/configs, models/*/_model_builders.py."""

from vramplan.catalogue import presets
from vramplan.checks import quoted
from vramplan.importing.problems import ImportProblem
from vramplan.training_files.methods import targets
from vramplan.training_files.reading import Reading
from vramplan.training_files.tools import mirrors

BUILDER, DIRECTORY = "model._component_", "checkpointer.checkpoint_dir"

LOSSES = {
    "CEWithChunkedOutputLoss": ("split", "torchtune-0.6"), "LinearCrossEntropyLoss": ("split", "torchtune-0.7"), "CrossEntropyLoss": ("logits", "torchtune-0.6"),
}
"""Losses on labels, by the last part of their name: how the scores are kept, and the stack of the releases that have it. Source: torchtune 0.6.1 and main,
modules/loss; recipes/configs of 0.2 to 0.6: torch.nn.CrossEntropyLoss."""

PAIR_LOSSES = ("DPOLoss", "RSOLoss", "IPOLoss", "SimPOLoss")
"""Losses on pairs. Source: torchtune 0.4.0 and 0.6.1, rlhf/loss/dpo.py."""

OPTIMIZERS = {
    "bitsandbytes.optim.pagedadamw8bit": "paged-adamw-8bit", "bitsandbytes.optim.pagedadamw": "paged-adamw-32bit", "bitsandbytes.optim.adamw8bit": "adamw-8bit",
    "bitsandbytes.optim.adamw": "adamw-fp32-states", "torch.optim.adafactor": "adafactor",
}
"""Optimizers by the whole name of their class, in small letters. Source: torchtune 0.6.1, recipes/configs; bitsandbytes 0.50.2, optim/adamw.py."""

ADAM = ("torch.optim.adamw", "torch.optim.adam")
"""PyTorch’s, which have a fused form, and take foreach on CUDA without it. Source: torch 2.13, optim/adamw.py."""

LOW_BITS = ("torchao.prototype.low_bit_optim.adamw8bit", "torchao.optim.adamw8bit", "torchao.prototype.low_bit_optim.adamw4bit", "torchao.optim.adamw4bit")

ATTENTION = {"q_proj": "q_proj", "k_proj": "k_proj", "v_proj": "v_proj", "output_proj": "o_proj"}
"""torchtune’s names of the maps of attention, and those of transformers. Source: torchtune 0.6.1, modules/peft/_utils.py, LORA_ATTN_MODULES."""

MLP = ("gate_proj", "up_proj", "down_proj")

OF_SEVERAL_GPUS = ("fsdp_cpu_offload", "fsdp_reshard_after_forward", "fsdp_sharding_strategy", "custom_sharded_layers", "fsdp", "memory_efficient_fsdp_wrap", "data_parallel_shard_dim",
                   "tensor_parallel_dim", "tensor_parallel_plan")
"""Keys that distributed recipes alone read. Source: torchtune 0.4.0, 0.6.1 and main, recipes/*_distributed.py."""

OLD = ("fsdp_sharding_strategy", "fsdp", "memory_efficient_fsdp_wrap")
"""Keys that no recipe reads from 0.5 on. Source: torchtune 0.4.0 and 0.5.0, recipes/*_distributed.py, recipes/configs."""

OTHER_RECIPES = {
    "teacher_model": "distillation holds a second model, which is not counted", "policy_model": "PPO holds several models and generates text, which is not counted",
    "reward_and_value_model": "PPO holds several models and generates text, which is not counted", "grpo_samples": "GRPO generates text between its steps, which is not counted",
}
"""Keys of recipes with several models. Source: torchtune 0.6.1, recipes/knowledge_distillation_*.py, ppo_full_finetune_single_device.py; main, recipes/dev/grpo_*.py."""

FUSED = (".phi3.", ".phi4.")
"""Families whose projections are one weight in transformers and several in torchtune. Source: torchtune 0.6.1, models/phi3/_component_builders.py."""

TYPES = {"bf16": "bf16", "fp32": "", "fp16": ""}


def combine(reading: Reading) -> None:
    """Everything that more than one key decides."""
    if reading.command:
        raise ImportProblem("names_a_file", "A tune command has its settings in a file, which is not here.", "Bring that file: tune cp writes a copy of it.")
    for key, why in OTHER_RECIPES.items():
        if reading.has(key):
            reading.refuse(key, why)
    _loss(reading)
    _model(reading)
    _method(reading)
    _batch(reading)
    _checkpointing(reading)
    _optimizer(reading)
    _precision(reading)
    _spread(reading)


def _last(reading: Reading, key: str) -> str:
    """The last part of a component’s name."""
    return (reading.text(key) or "").rpartition(".")[2]


def _loss(reading: Reading) -> None:
    """The objective, how scores are kept, and the release by its loss."""
    name, key = _last(reading, "loss._component_"), "loss._component_"
    old = next((each for each in OLD if reading.has(each)), "")
    reading.texts["objective"] = "sft"
    if name in PAIR_LOSSES:
        reading.take("objective", "dpo", key)
    elif name in LOSSES:
        loss, stack = LOSSES[name]
        reading.take("loss", loss, key)
        if not old:
            reading.assume("stack", stack, "its loss came with 0.7" if stack == "torchtune-0.7" else "its loss is that of 0.4 to 0.6, of which the newest is taken")
    elif name:
        reading.refuse(key, f"the loss {quoted(name)} is not counted")
    if old:
        reading.assume("stack", "torchtune-0.4", f"{old} is a key of torchtune before 0.5")


def _model(reading: Reading) -> None:
    """The preset by the builder’s name, else by the directory of the checkpoint."""
    builder = reading.text(BUILDER) or ""
    if any(part in builder for part in FUSED):
        reading.cannot("model", "its projections are several weights in torchtune, which are counted as the one that transformers makes of them", "none")
    if builder.lower() in mirrors():
        return
    folder = (reading.text(DIRECTORY) or "").rstrip("/").rpartition("/")[2].lower()
    found = next((each.repository for each in presets().values() if folder and each.repository.rpartition("/")[2].lower() == folder), "")
    if not found:
        found = next((name for name in mirrors() if folder and name.rpartition("/")[2] == folder), "")
    if found:
        reading.model = (found, reading.line(DIRECTORY))
        reading.note_used(DIRECTORY)


def _method(reading: Reading) -> None:
    name = _last(reading, BUILDER)
    if not name.startswith(("lora_", "qlora_")):
        reading.take("method", "full", BUILDER)
        for key in ("model.lora_rank", "model.lora_dropout"):
            reading.note_used(key)
        return
    quantised = name.startswith("qlora_") or bool(reading.flag("model.quantize_base"))
    reading.take("method", "qlora" if quantised else "lora", BUILDER, *(["model.quantize_base"] if reading.has("model.quantize_base") else []))
    if quantised:
        reading.assume("quantization", "nf4-double", "torchao’s NF4 quantises its scales too", "torchao 0.9.0, dtypes/nf4tensor.py: scaler_block_size = 256")
    names = reading.words("model.lora_attn_modules") or ()
    own, unknown = [ATTENTION[each] for each in names if each in ATTENTION], [each for each in names if each not in ATTENTION]
    mlp, head = reading.flag("model.apply_lora_to_mlp"), reading.flag("model.apply_lora_to_output")
    text, _ = targets((*own, *(MLP if mlp else ()), *(["lm_head"] if head else [])))
    if unknown or not text:
        reading.cannot("model.lora_attn_modules", f"no map of attention has the name {quoted(unknown[0])}" if unknown else "no adapter is named, and one is needed; the calculator’s own are counted", "none")
    if text:
        reading.take("adapter_targets", text, "model.lora_attn_modules", *(["model.apply_lora_to_mlp"] if mlp else []), *(["model.apply_lora_to_output"] if head else []))


def _batch(reading: Reading) -> None:
    length = reading.whole("tokenizer.max_seq_len")
    if length:
        reading.take("sequence_length", str(length), "tokenizer.max_seq_len")
    else:
        reading.leave_open("sequence_length", "tokenizer.max_seq_len", "no row is cut, so rows are as long as they come; the chosen length is counted")
    for key, setting in (("batch_size", "micro_batch"), ("gradient_accumulation_steps", "gradient_accumulation_steps")):
        if not reading.has(key):
            reading.assume(setting, "1", f"the file has no {key}")
    if reading.flag("dataset.packed"):
        reading.cannot("dataset.packed", "packed rows are counted as whole ones; what their mask takes is not", "lower")


def _checkpointing(reading: Reading) -> None:
    """Source: torchtune 0.6.1, recipes/full_finetune_single_device.py: offloading needs checkpointing; training/_activation_offloading.py."""
    on, away = reading.flag("enable_activation_checkpointing"), reading.flag("enable_activation_offloading")
    if on is None:
        reading.assume("checkpointing", "none", "the file has no enable_activation_checkpointing")
    elif on and away:
        reading.take("checkpointing", "offloaded", "enable_activation_checkpointing", "enable_activation_offloading")
        reading.cannot("enable_activation_offloading", "layer inputs that are still on their way to the host are not counted", "lower")
    else:
        reading.take("checkpointing", "full" if on else "none", "enable_activation_checkpointing")
        if away:
            reading.cannot("enable_activation_offloading", "torchtune offloads with checkpointing only, and refuses this", "none")
    compiles = reading.mapping("compile") is not None or reading.flag("compile")
    reading.texts["torch_compile"] = "on" if compiles else "off"
    if compiles:
        reading.take("torch_compile", "on", "compile")


def _optimizer(reading: Reading) -> None:
    key = "optimizer._component_"
    name = (reading.text(key) or "").lower()
    if name in ADAM:
        fused = reading.flag("optimizer.fused")
        reading.take("optimizer", "adamw-fused" if fused else "adamw-foreach", key, *(["optimizer.fused"] if fused else []))
    elif name == "torch.optim.sgd":
        momentum = reading.number("optimizer.momentum")
        reading.take("optimizer", "sgd-momentum" if momentum else "sgd", key, *(["optimizer.momentum"] if momentum else []))
    elif name in OPTIMIZERS:
        reading.take("optimizer", OPTIMIZERS[name], key)
    elif name in LOW_BITS:
        reading.take("optimizer", "adamw-8bit", key)
        reading.cannot(key, "torchao’s AdamW is counted as that of bitsandbytes in 8 bits; what it makes during its step may differ", "none")
    else:
        reading.texts["optimizer"] = "adamw-fused"
        reading.cannot(key, f"the optimizer {quoted(name)} is not known to this calculator; AdamW is counted in its place" if name else "the file has no optimizer; AdamW is counted", "none")
    early = reading.flag("optimizer_in_bwd")
    if reading.has("optimizer_in_bwd"):
        reading.take("optimizer_step", "in-backward" if early else "after", "optimizer_in_bwd")
    else:
        reading.assume("optimizer_step", "after", "the file has no optimizer_in_bwd", "torchtune 0.6.1, recipes/full_finetune_distributed.py: optimizer_in_bwd, False")


def _precision(reading: Reading) -> None:
    """Every tensor has one type. Source: torchtune 0.6.1, training/precision.py."""
    kind = (reading.text("dtype") or "bf16").lower()
    if TYPES.get(kind) == "bf16":
        reading.take("half_precision", "bf16", "dtype")
        if reading.texts.get("method") == "full":
            reading.take("trainable_precision", "pure-bf16", "dtype")
    else:
        reading.cannot("dtype", f"training in {quoted(kind)} throughout is not counted; BF16 is", "lower" if kind == "fp32" else "none")


def _spread(reading: Reading) -> None:
    """Whether a recipe for several GPUs is meant; which recipe it is stands in the command alone."""
    signs = [key for key in OF_SEVERAL_GPUS if reading.has(key)]
    divides = bool(signs)
    if divides:
        reading.take("sharding", "fsdp2", signs[0])
        away = reading.flag("fsdp_cpu_offload")
        reading.texts["offload"] = "none"
        if away:
            reading.take("offload", "optimizer-and-parameters", "fsdp_cpu_offload")
        reading.assume("sharded_over", "1", "the command says how many GPUs there are, the file does not")
    else:
        reading.texts |= {"sharding": "none", "offload": "none"}
        reading.assume("replicas", "1", "the recipe and its GPUs stand in the command; no key of the file is one of several GPUs")
