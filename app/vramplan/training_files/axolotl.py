"""Axolotl: keys of its YAML that count together. Source: axolotl 0.19.0, loaders/model.py, loaders/adapter.py, utils/schemas, core/builders."""

from vramplan.training_files.methods import adapt, checkpoint_kind, optimize, trains_whole_modules
from vramplan.training_files.parallel import deepspeed, fsdp, spread
from vramplan.training_files.reading import NO, Reading

OBJECTIVES = {"dpo": "dpo", "ipo": "dpo", "grpo": "grpo"}
"""Values of rl that are an objective of ours; ipo is DPO with another function of the same log-probabilities."""

PACKING_KERNELS = ("flash_attention_2", "flash_attention_3", "flash_attention_4", "flash_attention_torch", "flex_attention", "xformers", "sage", "flash", "flex")
"""Attention that packs several sequences into one row. Source: axolotl 0.19.0, utils/schemas/enums.py, ATTN_IMPLS_SUPPORTING_PACKING."""

OLD_KERNELS = ("flash_attention", "xformers_attention", "flex_attention", "sage_attention", "sdp_attention", "eager_attention")
"""Flags of older files, each for one kind of attention. Source: axolotl 0.19.0, utils/schemas/enums.py, LEGACY_ATTN_FLAG_TO_IMPL."""

ADAPTER_KERNELS = ("lora_mlp_kernel", "lora_qkv_kernel", "lora_o_kernel")

NO_KERNELS = {"trust_remote_code": "Axolotl then leaves its fused kernels for adapters off", "peft_use_dora": "DoRA’s magnitudes and its work are not counted, and it has no fused kernels"}
"""Flags with which Axolotl does not switch on its kernels for adapters. Source: axolotl 0.19.0, utils/schemas/config.py, check_auto_enable_lora_kernels."""

OLD_OFFLOAD = {"offload": "true", "offload_disk": "disk"}
"""Older values of gradient_checkpointing, as those of activation_offloading. Source: axolotl 0.19.0, utils/schemas/validation.py."""

LIGER_LAYERS = ("liger_rms_norm", "liger_glu_activation", "liger_rope")


def combine(reading: Reading) -> None:
    """Everything that more than one key decides."""
    _objective(reading)
    _method(reading)
    _on_pairs(reading)
    _precision(reading)
    packs = _attention(reading)
    _batch(reading, packs)
    _checkpointing(reading)
    _kernels(reading)
    optimize(reading, "optimizer")
    _spread(reading)


def _objective(reading: Reading) -> None:
    rl = reading.text("rl")
    if rl is None or rl == "false":
        if reading.flag("reward_model"):
            reading.take("objective", "reward", "reward_model")
        else:
            reading.texts["objective"] = "sft"
        return
    objective = OBJECTIVES.get(rl.lower())
    if objective is None:
        reading.refuse("rl", f"{rl.upper()[:12]} is trained with a loss whose memory is not counted")
        return
    reading.take("objective", objective, "rl")
    if objective == "dpo" and reading.flag("precompute_ref_log_probs"):
        reading.take("reference", "precomputed", "precompute_ref_log_probs")


def _method(reading: Reading) -> None:
    adapter = reading.text("adapter")
    four, eight = reading.flag("load_in_4bit"), reading.flag("load_in_8bit")
    if reading.has("unfrozen_parameters"):
        reading.cannot("unfrozen_parameters", "training some of the weights alone is not counted; every weight is taken to be trained", "upper")
    if not adapter or adapter == "false":
        if four or eight:
            reading.refuse("load_in_4bit" if four else "load_in_8bit", "a quantised model needs an adapter, which the file does not have, and Axolotl refuses it")
        reading.assume("method", "full", "without adapter every weight is trained", "axolotl 0.19.0, utils/schemas/peft.py")
        reading.without_adapters(("lora_r", "lora_dropout", "lora_target_modules", "lora_target_linear", "lora_modules_to_save"))
        return
    if adapter not in ("lora", "qlora"):
        reading.refuse("adapter", "adapters other than LoRA and QLoRA are not counted")
        return
    if reading.flag("gptq"):
        reading.take("method", "qlora", "adapter")
        reading.take("quantization", "gptq", "gptq")
    elif adapter == "lora" and eight:
        reading.take("method", "qlora", "adapter")
        reading.take("quantization", "int8", "load_in_8bit")
    elif four or adapter == "qlora":
        reading.take("method", "qlora", "adapter", *(["load_in_4bit"] if four else []))
        if adapter == "qlora":
            reading.assume("quantization", "nf4-double", "QLoRA is loaded with double quantisation", "axolotl 0.19.0, loaders/model.py, _set_quantization_config")
        else:
            reading.texts["quantization"] = "nf4-double"
            reading.cannot("load_in_4bit", "adapter: lora with load_in_4bit is no QLoRA for Axolotl, which then loads the model as it is stored; 4 bits are counted", "lower")
    else:
        reading.take("method", "lora", "adapter")
    adapt(reading, "lora_target_modules", everything="lora_target_linear")
    trains_whole_modules(reading, "lora_modules_to_save")


def _on_pairs(reading: Reading) -> None:
    """DPO and reward models are TRL’s trainers, with a model that Axolotl has loaded in 16 bits. Source: axolotl 0.19.0, core/trainers/dpo/trainer.py."""
    if reading.texts.get("objective") not in ("dpo", "reward"):
        return
    reading.assume("stack", PAIRS_STACK, "pairs are trained by TRL’s trainer, of the release that Axolotl 0.19.0 asks for, 1.9.0", "axolotl 0.19.0, METADATA: trl==1.9.0")
    setting, text = ("trainable_precision", "pure-bf16") if reading.texts.get("method") == "full" else ("base_precision", "bf16")
    reading.assume(setting, text, "Axolotl loads the model in 16 bits", "axolotl 0.19.0, loaders/model.py")


PAIRS_STACK = "trl-1.6"
"""The stack of TRL 1.9. Source: data/stacks.toml."""


def _precision(reading: Reading) -> None:
    """Types of the weights and of the forward pass. Source: axolotl 0.19.0, utils/config/__init__.py, resolve_dtype."""
    bf16, fp16 = reading.text("bf16"), reading.flag("fp16")
    pure_bf16, pure_fp16 = reading.flag("bfloat16"), reading.flag("float16")
    bf16 = bf16 in ("auto", "true", "full") or bf16 is None and not (fp16 or pure_bf16 or pure_fp16 or reading.flag("float32"))
    if pure_bf16 or pure_fp16:
        reading.take("half_precision", "bf16" if pure_bf16 else "fp16", "bfloat16" if pure_bf16 else "float16")
        reading.take("autocast", "off", "bfloat16" if pure_bf16 else "float16")
    elif bf16 and not fp16:
        reading.take("half_precision", "bf16", "bf16")
    elif fp16:
        reading.take("half_precision", "fp16", "fp16")
    else:
        reading.cannot("bf16", "training in FP32 throughout is not counted; 16 bits are", "lower")


def _attention(reading: Reading) -> bool:
    """Set the kernel; whether it packs."""
    kernel = reading.text("attn_implementation") or reading.text("attention")
    key = "attn_implementation" if reading.has("attn_implementation") else "attention"
    if kernel is None:
        key = next((name for name in OLD_KERNELS if reading.flag(name)), "")
        kernel = "" if not key else {"sdp_attention": "sdpa", "eager_attention": "eager"}.get(key, "flash_attention_2")
    for name in OLD_KERNELS:
        reading.note_used(name)
    if not kernel:
        reading.assume("attention_kernel", "efficient", "transformers takes SDPA where no kernel is named", "transformers 5.24.0, modeling_utils.py, _check_and_adjust_attn_implementation")
        return False
    reading.take("attention_kernel", "eager" if kernel == "eager" else "efficient", key)
    return kernel in PACKING_KERNELS or "flash" in kernel


def _batch(reading: Reading, packs: bool) -> None:
    """Rows and their length. Source: axolotl 0.19.0, utils/trainer.py: packed rows are one, of micro_batch_size times sequence_len."""
    if reading.flag("sample_packing"):
        reading.packed = packs and not reading.flag("multipack_real_batches") and reading.texts.get("objective") == "sft"
        reading.note_read("sample_packing", "micro_batch", True, reading.line("sample_packing"))
    total, micro = reading.whole("batch_size"), reading.whole("micro_batch_size")
    if total and not reading.has("gradient_accumulation_steps"):
        reading.take("gradient_accumulation_steps", str(max(1, total // (micro or 1))), "batch_size")


def _checkpointing(reading: Reading) -> None:
    """Source: axolotl 0.19.0, core/builders/base.py, _configure_gradient_checkpointing; loaders/model.py, _apply_activation_checkpointing."""
    on, offload = reading.text("gradient_checkpointing"), reading.text("activation_offloading")
    key = "activation_offloading"
    if on in OLD_OFFLOAD:
        key, offload = "gradient_checkpointing", OLD_OFFLOAD[on]
    if offload in ("true", "legacy", "disk", "hidden_states"):
        reading.take("checkpointing", "offloaded", *dict.fromkeys((key, "gradient_checkpointing")))
        if offload != "hidden_states" and reading.texts.get("method") != "full":
            reading.cannot(key, "with adapters every activation leaves for the host and nothing is computed again; layer inputs that leave are counted", "none")
    elif on is not None:
        reading.take("checkpointing", "none" if on in NO else "full", "gradient_checkpointing")
    else:
        reading.assume_default("checkpointing", "none", "gradient_checkpointing")
    checkpoint_kind(reading, "gradient_checkpointing_kwargs")
    if "checkpoint_kind" not in reading.texts and reading.texts.get("objective") != "sft":
        reading.assume("checkpoint_kind", "non-reentrant", "Axolotl takes it with rl", "axolotl 0.19.0, core/builders/base.py")


def _kernels(reading: Reading) -> None:
    """The loss, and kernels of layers and adapters."""
    pairs = reading.texts.get("objective") in ("dpo", "reward")
    cut = reading.flag("cut_cross_entropy")
    plugged = any("cut_cross_entropy" in name for name in reading.words("plugins") or ())
    if pairs:
        for key in ("cut_cross_entropy", "liger_fused_linear_cross_entropy"):
            if reading.flag(key):
                reading.ignore(key, "pairs have a loss of their own")
    elif cut or plugged and cut is not False:
        reading.take("loss", "cut", "cut_cross_entropy" if cut else "plugins")
    elif reading.flag("liger_fused_linear_cross_entropy"):
        reading.take("loss", "fused-linear", "liger_fused_linear_cross_entropy")
    elif reading.flag("chunked_cross_entropy"):
        reading.take("loss", "logits", "chunked_cross_entropy")
        reading.cannot("chunked_cross_entropy", "the loss in chunks of Axolotl is not counted; the whole one is", "upper")
    _liger_layers(reading)
    if reading.texts.get("method") in ("lora", "qlora") and not any(reading.has(key) for key in ADAPTER_KERNELS):
        for key, why in NO_KERNELS.items():
            if reading.flag(key):
                reading.cannot(key, f"{why}; the estimate takes them, which keep less", "lower")
    for key in ADAPTER_KERNELS:
        if reading.flag(key) is False:
            reading.cannot(key, "the estimate takes the fused kernels for adapters, which keep less", "lower")


def _liger_layers(reading: Reading) -> None:
    on = [key for key in LIGER_LAYERS if reading.flag(key)]
    if reading.flag("liger_swiglu"):
        on.append("liger_swiglu")
    counted = {"liger_swiglu": "liger_glu_activation"}
    if {counted.get(key, key) for key in on} >= {"liger_rms_norm", "liger_glu_activation"}:
        reading.take("layer_kernels", "liger", *on)
    else:
        for key in on:
            reading.cannot(key, "Liger’s kernels are counted all together only; the model’s own are taken, which keep more", "upper")


def _spread(reading: Reading) -> None:
    zero = deepspeed(reading, "deepspeed", "axolotl")
    version = reading.whole("fsdp_version") or 1
    shards = fsdp(reading, "fsdp", "fsdp_config", version=version)
    sharding, offload = zero or shards or ("none", "none")
    if shards and reading.flag("fsdp_config.activation_checkpointing") or shards and reading.flag("fsdp_config.fsdp_activation_checkpointing"):
        reading.take("checkpointing", "full", "fsdp_config.activation_checkpointing", "fsdp_config.fsdp_activation_checkpointing")
    if sharding == "fsdp1" and reading.texts.get("method") in ("lora", "qlora"):
        reading.cannot("fsdp_config", "under FSDP 1 Axolotl leaves its fused kernels for adapters off; the estimate takes them, which keep less", "lower")
    spread(reading, sharding, offload)
