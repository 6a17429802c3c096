"""TRL, also as the alignment handbook uses it: keys that count together.

Source: trl 1.16.0, trainer/model_config.py, sft_config.py, dpo_config.py, base_config.py, utils.py; transformers 5.24.0, training_args.py.
"""

from vramplan.training_files.methods import adapt, checkpoint_kind, optimize, trains_whole_modules
from vramplan.training_files.parallel import deepspeed, fsdp, known_file, spread
from vramplan.training_files.reading import Reading

OBJECTIVES = {"sft": "sft", "dpo": "dpo", "reward": "reward", "grpo": "grpo", "ppo": "ppo"}
"""Trainers of TRL that are an objective of ours, by the name of their script or command."""

PAIRS = ("dpo", "reward")

OF_DPO = ("beta", "loss_type", "precompute_ref_log_probs", "max_prompt_length", "rpo_alpha", "ref_model_init_kwargs", "label_smoothing", "f_divergence_type")
"""Keys of DPOConfig that SFTConfig does not have. Source: trl 0.24.0 and 1.16.0, trainer/dpo_config.py, sft_config.py (loss_type of SFT: other values)."""

OF_GRPO = ("num_generations", "use_vllm", "max_completion_length", "reward_funcs")
"""Keys of trainers that generate text. Source: trl 1.16.0, trainer/grpo_config.py, rloo_config.py."""

OF_ORPO = "orpo"

NAMES = ("hub_model_id", "output_dir", "run_name")
"""Keys under which a run is called something."""

SFT_LOSSES = ("nll", "dft", "chunked_nll")

TYPES = {"float32": "fp32", "fp32": "fp32", "bfloat16": "bf16", "bf16": "bf16", "float16": "bf16", "fp16": "bf16", "half": "bf16", "auto": "bf16"}
"""Types a model is loaded in, as 16 or 32 bits."""

ONE_ROW = ("bfd", "bfd_split", "ffd")
"""Ways of packing that lay all rows of a batch end to end. Source: trl 1.16.0, trainer/sft_trainer.py, __init__ (padding_free); `ffd` was their name up to 0.19."""

LAUNCHED = ("config_file", "accelerate_config")
"""Flags that name a configuration of accelerate."""


def combine(reading: Reading) -> None:
    """Everything that more than one key decides."""
    _objective(reading)
    _stack(reading)
    _method(reading)
    _precision(reading)
    _batch(reading)
    _checkpointing(reading)
    _liger(reading)
    optimize(reading, "optim")
    _spread(reading)


def _objective(reading: Reading) -> None:
    word = reading.command.split()[-1].removesuffix(".py").removeprefix("run_").removesuffix("Trainer").lower() if reading.command else ""
    if word == OF_ORPO or reading.has("orpo_alpha"):
        reading.refuse("orpo_alpha", "ORPO is trained with a loss whose memory is not counted")
    elif word in OBJECTIVES:
        reading.note_read("command", "objective", reading.command, 0)
        reading.texts["objective"] = OBJECTIVES[word]
    elif word and word not in ("train",):
        reading.refuse("command", f"{word.upper()[:12]} is trained with a loss whose memory is not counted")
    elif any(reading.has(key) for key in OF_GRPO):
        reading.assume("objective", "grpo", "keys such as num_generations are those of trainers that generate text")
    elif dpo := [key for key in OF_DPO if reading.has(key) and not (key == "loss_type" and reading.text(key) in SFT_LOSSES)]:
        other = next((name for name in ("orpo", "kto") for key in NAMES if name in str(reading.text(key) or "").lower()), "")
        if other:
            reading.refuse(dpo[0], f"the run is called one of {other.upper()}, which is trained with a loss whose memory is not counted")
        else:
            reading.assume("objective", "dpo", f"{dpo[0]} is a key of DPO; KTO and ORPO have it too")
    else:
        reading.texts["objective"] = "sft"
    if reading.texts.get("objective") == "dpo" and reading.flag("precompute_ref_log_probs"):
        reading.take("reference", "precomputed", "precompute_ref_log_probs")


def _stack(reading: Reading) -> None:
    """The release, by keys that only some have."""
    sign = next((each for each in reading.tool.releases if any(reading.has(key) for key in each.keys)), None)
    if sign is None:
        reading.assume("stack", reading.tool.stack, f"the file does not say which release; the newest that was read is {reading.tool.version}")
        return
    key = next(key for key in sign.keys if reading.has(key))
    stack = sign.stack
    if reading.texts.get("objective") in PAIRS and stack == NO_PAIRS:
        stack = FIRST_WITH_PAIRS
        reading.cannot(key, "it is of TRL before 1.0, whose step on pairs kept hidden states too; the step of TRL 1.0 is counted", "lower")
    reading.assume("stack", stack, f"{key} is a key of {sign.why}")


NO_PAIRS, FIRST_WITH_PAIRS = "trl-0.25", "trl-1.5"
"""The stack that has no step on pairs, and the next that has one. Source: data/stacks.toml."""


def _method(reading: Reading) -> None:
    peft = reading.flag("use_peft")
    four, eight = reading.flag("load_in_4bit"), reading.flag("load_in_8bit")
    if not peft:
        if four or eight:
            key = "load_in_4bit" if four else "load_in_8bit"
            reading.refuse(key, "a quantised model without use_peft has nothing that is trained")
        if peft is None:
            reading.assume_default("method", "full", "use_peft")
        else:
            reading.take("method", "full", "use_peft")
        reading.without_adapters(("lora_r", "lora_alpha", "lora_dropout", "lora_target_modules", "lora_modules_to_save", "lora_task_type"))
        return
    if four:
        reading.take("method", "qlora", "use_peft", "load_in_4bit")
        nested = reading.flag("use_bnb_nested_quant")
        if reading.text("bnb_4bit_quant_type") not in (None, "nf4"):
            reading.cannot("bnb_4bit_quant_type", "another type of 4 bits than NF4 takes as much, and is counted as NF4", "none")
        if nested is None:
            reading.assume_default("quantization", "nf4", "use_bnb_nested_quant")
        else:
            reading.take("quantization", "nf4-double" if nested else "nf4", "use_bnb_nested_quant")
    elif eight:
        reading.take("method", "qlora", "use_peft", "load_in_8bit")
        reading.texts["quantization"] = "int8"
    else:
        reading.take("method", "lora", "use_peft")
    adapt(reading, "lora_target_modules")
    trains_whole_modules(reading, "lora_modules_to_save")
    for setting, key in (("rank", "lora_r"), ("lora_dropout", "lora_dropout")):
        if not reading.has(key):
            reading.assume_default(setting, reading.default(key), key)


def _precision(reading: Reading) -> None:
    fp16 = reading.flag("fp16")
    if fp16:
        reading.take("half_precision", "fp16", "fp16")
    elif reading.flag("bf16") is False:
        reading.take("autocast", "off", "bf16")
    elif reading.has("bf16"):
        reading.take("half_precision", "bf16", "bf16")
    for key in ("dtype", "torch_dtype"):
        name = reading.text(key)
        kind = TYPES.get((name or "").removeprefix("torch.").lower())
        if name and kind is None:
            reading.cannot(key, "it is no type that is known here, so the stack’s own is taken", "none")
        elif kind and reading.texts["method"] == "full":
            reading.take("trainable_precision", "mixed-bf16" if kind == "fp32" else "pure-bf16", key)
        elif kind:
            reading.take("base_precision", kind, key)


def _batch(reading: Reading) -> None:
    key = "max_length" if reading.has("max_length") else "max_seq_length"
    length = reading.whole(key)
    if length is None:
        reading.assume_default("sequence_length", reading.default("max_length"), "max_length")
    else:
        reading.take("sequence_length", str(length), key)
    for other in ("max_length", "max_seq_length"):
        if other != key and reading.has(other):
            reading.ignore(other, f"{key} decides")
    if reading.flag("packing") and reading.texts.get("objective") == "sft":
        strategy = reading.text("packing_strategy")
        reading.packed = strategy is None or strategy in ONE_ROW
        reading.note_read("packing", "micro_batch", True, reading.line("packing"))
    elif reading.flag("padding_free"):
        reading.note_read("padding_free", "sequence_length", True, reading.line("padding_free"))


def _checkpointing(reading: Reading) -> None:
    on = reading.flag("gradient_checkpointing")
    new = reading.flag("activation_checkpointing")
    if on is None and new is None:
        reading.assume_default("checkpointing", "full", "gradient_checkpointing")
    else:
        reading.take("checkpointing", "full" if new or on else "none", "gradient_checkpointing", "activation_checkpointing")
    for key in ("gradient_checkpointing_kwargs", "activation_checkpointing_kwargs"):
        checkpoint_kind(reading, key)


def _liger(reading: Reading) -> None:
    if not (reading.flag("use_liger_kernel") or reading.flag("use_liger")):
        return
    keys = ("use_liger_kernel", "use_liger")
    reading.take("layer_kernels", "liger", *keys)
    if reading.texts.get("objective") in PAIRS:
        reading.cannot("use_liger_kernel", "Liger’s loss on pairs is not counted; the stack’s is", "upper")
    elif reading.texts.get("stack") != REFUSES_LIGER:
        reading.texts["loss"] = "fused-linear"


REFUSES_LIGER = "trl-1.15"
"""The stack that refuses Liger’s fused loss. Source: trl 1.16.0, trainer/sft_trainer.py."""


def _spread(reading: Reading) -> None:
    zero = deepspeed(reading, "deepspeed", "trl")
    shards = fsdp(reading, "fsdp", "fsdp_config", version=FSDP_VERSION)
    named = next((key for key in LAUNCHED if reading.launcher(key)), "")
    sharding, offload = zero or shards or ("none", "none")
    gpus, file = 0, ""
    if named:
        file = str(reading.launcher(named).value)
        known = known_file("accelerate", file) or known_file("accelerate", f"{file}.yaml")
        if known:
            sharding, offload, gpus = known.texts.get("sharding", "none"), known.texts.get("offload", "none"), known.gpus
            reading.note_read(f"--{named}", "sharding", file, reading.launcher(named).line)
        else:
            reading.cannot(f"--{named}", "it names a configuration of accelerate that is not here; copies are counted, with nothing divided", "upper")
    spread(reading, sharding, offload, gpus_of_file=gpus, file=file)


FSDP_VERSION = 2
"""What transformers takes where nobody says. Source: transformers 5.24.0, training_args.py, _process_fsdp_args."""
