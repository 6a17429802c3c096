"""ms-swift: flags of `swift sft`, `pt` and `rlhf` that count together, also as YAML.

Source: ms-swift 4.6.0, arguments/sft_args.py, tuner_args.py, rlhf_args.py, base_args/*.py, trainers/arguments.py, trainers/mixin.py, cli/main.py, config/*.json.
"""

from vramplan.checks import quoted
from vramplan.training_files.methods import adapt, optimize, trains_whole_modules
from vramplan.training_files.parallel import deepspeed, known_file, spread
from vramplan.training_files.reading import Reading
from vramplan.units import count_text

OLD_KEYS = {"train_type": "tuner_type", "sft_type": "tuner_type", "model_id_or_path": "model", "batch_size": "per_device_train_batch_size", "quantization_bit": "quant_bits", "lora_target_modules": "target_modules",
            "lora_dropout_p": "lora_dropout", "dtype": "torch_dtype", "use_flash_attn": "attn_impl"}
"""Keys of releases before 4, and what they are called since. Source: modelscope/ms-swift, docs/source_en/Instruction/ReleaseNote3.0.md at 1b132f6 (release 2 to 3);
train_type: examples/train of release 3, tuner_type in release 4."""

OBJECTIVES = {"dpo": "dpo", "rm": "reward", "grpo": "grpo", "ppo": "ppo"}
"""Values of rlhf_type that are an objective of ours."""

ADAPTERS = ("lora", "longlora")
"""Values of tuner_type that are LoRA."""

GLOBAL_BATCH = 16
"""Rows that an optimizer step has where nobody says how many steps accumulate. Source: trainers/arguments.py, TrainArgumentsMixin.__post_init__."""

FLASH = ("flash_attn", "flash_attention_2", "flash_attention_3", "flash_attention_4")
"""Kernels with which rows are packed. Source: arguments/sft_args.py, _check_padding_free."""

NOT_CAUSAL = ("seq_cls", "embedding", "reranker", "generative_reranker", "decision")
"""Tasks that no head for words is trained for."""

HALF = {"bfloat16": "bf16", "bf16": "bf16", "float16": "fp16", "fp16": "fp16"}

WIDE_BUCKETS = ("zero1", "zero2", "zero2_offload")
"""Configurations with reduce_bucket_size 2e8. Source: config/*.json."""

MEGATRON = "megatron"


def combine(reading: Reading) -> None:
    """Everything that more than one key decides."""
    if reading.command.startswith(MEGATRON):
        reading.refuse("command", "Megatron divides matrices, rows and layers over GPUs and keeps what it chooses of them, none of which is counted")
        reading.ignore_the_rest("Megatron’s runs are not counted")
        return
    _model(reading)
    _objective(reading)
    _method(reading)
    _precision(reading)
    sharding = _spread(reading)
    _batch(reading)
    _checkpointing(reading, sharding)
    _kernels(reading)
    optimize(reading, "optim")


def _first(reading: Reading, key: str) -> str:
    """The key itself, or an older name of it that the file has instead."""
    return key if reading.has(key) else next((old for old, new in OLD_KEYS.items() if new == key and reading.has(old)), key)


def _model(reading: Reading) -> None:
    key = _first(reading, "model")
    if key != "model":
        reading.model = (reading.text(key) or "", reading.line(key))
    elif not reading.has("model") and reading.has("model_type"):
        reading.cannot("model_type", "before release 3 it named the model; since then it names its family, and model the model itself", "none")


def _objective(reading: Reading) -> None:
    program = reading.command.split()[-1].removesuffix(".py") if reading.command else ""
    kind = (reading.text("rlhf_type") or ("dpo" if program == "rlhf" else "")).lower()
    if not kind:
        reading.texts["objective"] = "sft"
    elif kind in OBJECTIVES:
        reading.take("objective", OBJECTIVES[kind], "rlhf_type")
    else:
        reading.refuse("rlhf_type", f"{kind.upper()[:12]} is trained with a loss whose memory is not counted")
    task = (reading.text("task_type") or "").lower()
    if task in NOT_CAUSAL:
        reading.refuse("task_type", "a model without a head for words is not counted")


def _method(reading: Reading) -> None:
    key = _first(reading, "tuner_type")
    kind = (reading.text(key) or "lora").lower()
    bits_key = _first(reading, "quant_bits")
    bits = reading.whole(bits_key) if (reading.text(bits_key) or "0").isdecimal() else 0
    how = (reading.text("quant_method") or ("bnb" if bits else "")).lower()
    if kind == "full":
        if bits:
            reading.refuse(bits_key, "a quantised model is not trained in full")
        reading.take("method", "full", key)
        reading.without_adapters(("lora_rank", "lora_alpha", "lora_dropout", "lora_dropout_p", "lora_dtype", "target_modules", "lora_target_modules", "modules_to_save", "target_regex"))
        return
    if kind not in ADAPTERS:
        reading.refuse(key, f"{quoted(kind)} is not counted; LoRA and full training are")
        return
    reading.take("method", "qlora" if bits else "lora", key)
    if not reading.has(key):
        reading.assume_default("method", "qlora" if bits else "lora", "tuner_type")
    if bits:
        _quantise(reading, bits_key, bits, how)
    targets = _first(reading, "target_modules")
    if reading.has(targets):
        adapt(reading, targets)
    else:
        reading.assume_default("adapter_targets", "all-linear", "target_modules")
    trains_whole_modules(reading, "modules_to_save")
    for setting, name in (("rank", "lora_rank"), ("lora_dropout", "lora_dropout")):
        own = _first(reading, name)
        if not reading.has(own):
            reading.assume_default(setting, reading.default(name) or "0", name)
        elif own != name and (number := reading.number(own)) is not None:
            reading.take(setting, str(number), own)


def _quantise(reading: Reading, key: str, bits: int, how: str) -> None:
    """What a model is quantised to as it is loaded. Source: arguments/base_args/quant_args.py."""
    if how != "bnb" or bits not in (4, 8):
        reading.texts["quantization"] = "int8" if bits == 8 else "nf4-double"
        reading.cannot("quant_method" if reading.has("quant_method") else key, f"{quoted(how)} with {count_text(bits)} bits is counted as bitsandbytes with {8 if bits == 8 else 4}", "none")
        return
    if bits == 8:
        reading.take("quantization", "int8", key)
        return
    nested = reading.flag("bnb_4bit_use_double_quant")
    reading.take("quantization", "nf4" if nested is False else "nf4-double", key, "bnb_4bit_use_double_quant")
    if (reading.text("bnb_4bit_quant_type") or "nf4") != "nf4":
        reading.cannot("bnb_4bit_quant_type", "another type of 4 bits than NF4 takes as much, and is counted as NF4", "none")


def _precision(reading: Reading) -> None:
    """The type of the weights is that of mixed precision. Source: arguments/base_args/model_args.py, _init_mixed_precision."""
    key = _first(reading, "torch_dtype")
    name = (reading.text(key) or "bfloat16").lower()
    if reading.flag("fp16") and not reading.flag("bf16"):
        reading.take("half_precision", "fp16", "fp16")
    elif name in HALF:
        reading.take("half_precision", HALF[name], key, *(["bf16"] if reading.flag("bf16") else []))
        if HALF[name] == "fp16" and reading.texts.get("method") == "full":
            reading.assume("trainable_precision", "mixed-bf16", "what is trained in FP16 becomes FP32", "ms-swift 4.6.0, pipelines/train/tuner.py")
    elif name in ("float32", "fp32"):
        bf16 = bool(reading.flag("bf16"))
        reading.take("half_precision", "bf16" if bf16 else "fp16", key, *(["bf16"] if bf16 else []))
        full = reading.texts.get("method") == "full"
        reading.take("trainable_precision" if full else "base_precision", "mixed-bf16" if full else "fp32", key)
    else:
        reading.cannot(key, "it is no type that is known here, so BF16 is counted", "none")


def _spread(reading: Reading) -> str:
    """How states are divided, and over how many GPUs. Without NPROC_PER_NODE one process places the model on all GPUs that it sees."""
    given, key = reading.gpus, _first(reading, "deepspeed")
    name = (reading.text(key) or "").removeprefix("default-") if reading.text_or_list(key) else ""
    sharding, offload = "none", "none"
    if name and (known := known_file("ms-swift", name)):
        sharding, offload = known.texts["sharding"], known.texts.get("offload", "none")
        reading.take("sharding", sharding, key)
        reading.assume("offload", offload, f"so says {name}.json of ms-swift", known.source)
        if name in WIDE_BUCKETS:
            reading.cannot(key, "its buckets of 200 million values are not counted; those that transformers sizes by itself are", "lower")
    elif (file := reading.launcher("config_file")) is not None:
        named = known_file("accelerate", str(file.value))
        sharding, offload = (named.texts.get("sharding", "none"), named.texts.get("offload", "none")) if named else ("none", "none")
        if not named:
            reading.cannot("--config_file", "it names a configuration of accelerate that is not here; copies are counted, with nothing divided", "upper")
    elif zero := deepspeed(reading, key, "ms-swift"):
        sharding, offload = zero
    elif named := reading.text("fsdp"):
        sharding = "fsdp2"
        reading.take("sharding", sharding, "fsdp")
        if named != "fsdp2":
            reading.cannot("fsdp", f"{quoted(named)} is a file of its own, which is not here; the configuration of ms-swift is counted", "none")
    spread(reading, sharding, offload)
    if given and int(given.value) > 1 and not reading.processes:
        reading.texts |= {"replicas": "1", "sharded_over": "1"}
        reading.texts["sharding"] = sharding
        reading.cannot("CUDA_VISIBLE_DEVICES", "without NPROC_PER_NODE one process puts layers on every GPU that it sees; one GPU with all of them is counted", "upper")
    return reading.texts["sharding"]


def _batch(reading: Reading) -> None:
    key = _first(reading, "per_device_train_batch_size")
    micro = reading.whole(key) if reading.has(key) else None
    if micro and key != "per_device_train_batch_size":
        reading.take("micro_batch", str(micro), key)
    steps, gpus = "gradient_accumulation_steps", int(reading.texts["replicas"]) * int(reading.texts["sharded_over"])
    if not reading.has(steps):
        rows = (micro or 1) * gpus
        reading.assume(steps, str(max(1, -(-GLOBAL_BATCH // rows))), f"ms-swift makes {GLOBAL_BATCH} rows of a step where nobody says", "ms-swift 4.6.0, trainers/arguments.py, __post_init__")
    length = reading.whole("packing_length") if reading.flag("packing") and reading.has("packing_length") else None
    own = reading.whole("max_length")
    if length or own:
        reading.take("sequence_length", str(length or own), "packing_length" if length else "max_length")
    else:
        reading.leave_open("sequence_length", "max_length", "rows are cut at the length of the model only; the chosen length is counted")
    if reading.flag("packing"):
        reading.note_used("packing")
        reading.packed = True
    elif reading.flag("padding_free"):
        reading.packed = True


def _checkpointing(reading: Reading, sharding: str) -> None:
    """On by itself. Source: trainers/arguments.py: gradient_checkpointing = True; trainers/mixin.py, _fix_gradient_checkpointing."""
    on = reading.flag("gradient_checkpointing")
    if sharding == "fsdp2":
        reading.assume("checkpointing", "full", "fsdp2.json of ms-swift checkpoints every layer", "ms-swift 4.6.0, config/fsdp2.json: activation_checkpointing")
    elif on is None:
        reading.assume_default("checkpointing", "full", "gradient_checkpointing")
    else:
        reading.take("checkpointing", "full" if on else "none", "gradient_checkpointing")
    kind = reading.flag("gradient_checkpointing_kwargs.use_reentrant") if reading.mapping("gradient_checkpointing_kwargs") is not None else None
    if kind is not None:
        reading.take("checkpoint_kind", "reentrant" if kind else "non-reentrant", "gradient_checkpointing_kwargs.use_reentrant")
    elif sharding == "ddp" and not reading.has("deepspeed"):
        reading.assume("checkpoint_kind", "non-reentrant", "ms-swift takes it with several processes without DeepSpeed or FSDP", "ms-swift 4.6.0, trainers/mixin.py, _fix_gradient_checkpointing")


def _kernels(reading: Reading) -> None:
    if reading.flag("use_liger_kernel"):
        reading.take("layer_kernels", "liger", "use_liger_kernel")
        if reading.texts.get("objective") == "sft":
            reading.texts["loss"] = "fused-linear"
    key = _first(reading, "attn_impl")
    name = (reading.text(key) or "").lower()
    if name:
        reading.take("attention_kernel", "eager" if name == "eager" else "efficient", key)
    if reading.texts.get("objective") == "sft" and reading.flag("use_logits_to_keep") is not False and reading.texts.get("loss") != "fused-linear":
        reading.cannot("use_logits_to_keep", "the head runs on labelled tokens alone; every token is counted", "upper")
