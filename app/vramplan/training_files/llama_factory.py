"""LLaMA-Factory: keys that count together. Source: llamafactory 0.9.5, hparams, model/adapter.py, model/model_utils, train."""

from vramplan.training_files.methods import adapt, optimize, trains_whole_modules
from vramplan.training_files.parallel import deepspeed, fsdp, known_file, spread
from vramplan.training_files.reading import Reading

OBJECTIVES = {"pt": "sft", "sft": "sft", "dpo": "dpo", "rm": "reward", "ppo": "ppo"}
"""Stages that are an objective of ours; pt is next-token training on text. Source: llamafactory 0.9.5, hparams/finetuning_args.py."""

WITHOUT_REFERENCE = ("orpo", "simpo")
"""Losses on pairs that hold no reference."""

PAIRS = ("dpo", "reward")

PAIRS_STACK = "trl-1.5"
"""The stack whose step on pairs stands for that of LLaMA-Factory, which asks for TRL up to 0.24 and has a step of its own."""

UNSLOTH_STACK = "unsloth-2026.10"
"""The stack of use_unsloth."""

SMALLER_STATES = ("use_galore", "use_apollo", "use_badam", "use_muon", "use_adam_mini")
"""Flags of optimizers whose states are smaller than AdamW’s. Source: llamafactory 0.9.5, train/trainer_utils.py, create_custom_optimizer."""

FSDP_VERSION = 1
"""What accelerate takes where nobody says, with the releases that LLaMA-Factory asks for. Source: accelerate 1.11.0, utils/dataclasses.py."""


def combine(reading: Reading) -> None:
    """Everything that more than one key decides."""
    _objective(reading)
    _method(reading)
    _precision(reading)
    _checkpointing(reading)
    _kernels(reading)
    for key in SMALLER_STATES:
        if reading.flag(key):
            reading.cannot(key, "AdamW with its two states for every weight is counted, which takes as much or more", "upper")
    optimize(reading, "optim")
    _spread(reading)


def _objective(reading: Reading) -> None:
    stage = reading.text("stage")
    loss = (reading.text("pref_loss") or "").lower()
    if stage is None:
        reading.assume_default("objective", "sft", "stage")
    elif stage.lower() not in OBJECTIVES:
        reading.refuse("stage", f"{stage.upper()[:12]} is trained with a loss whose memory is not counted")
    elif stage.lower() == "dpo" and loss in WITHOUT_REFERENCE:
        reading.refuse("pref_loss", f"{loss.upper()} is trained with a loss whose memory is not counted")
    else:
        reading.take("objective", OBJECTIVES[stage.lower()], "stage", *(["pref_loss"] if loss else []))
    if reading.texts.get("objective") in PAIRS:
        reading.assume("stack", PAIRS_STACK, "LLaMA-Factory has a step on pairs of its own, which is not counted; that of TRL 1.0 is", "llamafactory 0.9.5, train/dpo/trainer.py, train/rm")
        reading.cannot("stage", "LLaMA-Factory makes all scores in FP32, which the step of TRL 1.0 does not", "lower")
    elif reading.flag("use_unsloth"):
        reading.take("stack", UNSLOTH_STACK, "use_unsloth")


def _method(reading: Reading) -> None:
    kind = (reading.text("finetuning_type") or "").lower()
    bits = reading.whole("quantization_bit")
    if not kind:
        kind = reading.default("finetuning_type")
        reading.assume_default("method", "lora", "finetuning_type")
    if kind == "lora":
        _adapters(reading, bits)
        return
    if kind not in ("full", "freeze"):
        reading.refuse("finetuning_type", "adapters other than LoRA are not counted")
        return
    reading.take("method", "full", "finetuning_type")
    if kind == "freeze":
        reading.cannot("finetuning_type", "training some layers alone is not counted; every weight is taken to be trained", "upper")
    if bits:
        reading.refuse("quantization_bit", "a quantised model needs adapters, and LLaMA-Factory refuses it without")
    reading.without_adapters(("lora_rank", "lora_alpha", "lora_dropout", "lora_target", "additional_target"))


def _adapters(reading: Reading, bits: int | None) -> None:
    if bits is None:
        reading.take("method", "lora", "finetuning_type")
    elif bits not in BITS:
        reading.refuse("quantization_bit", "a model is counted in 4 or 8 bits")
    else:
        reading.take("method", "qlora", "finetuning_type", "quantization_bit")
        double = reading.flag("double_quantization")
        if BITS[bits] == "int8":
            reading.texts["quantization"] = "int8"
        elif double is None:
            reading.assume_default("quantization", "nf4-double", "double_quantization")
        else:
            reading.take("quantization", "nf4-double" if double else "nf4", "double_quantization")
        how = (reading.text("quantization_method") or "bnb").lower()
        if how not in ("bnb", "bitsandbytes"):
            reading.cannot("quantization_method", "what bitsandbytes makes of the weights is counted", "none")
    adapt(reading, "lora_target") if reading.has("lora_target") else reading.assume_default("adapter_targets", "all-linear", "lora_target")
    trains_whole_modules(reading, "additional_target")


BITS = {4: "nf4", 8: "int8"}
"""Bits that bitsandbytes makes on the fly. Source: llamafactory 0.9.5, model/model_utils/quantization.py."""


def _precision(reading: Reading) -> None:
    """Source: llamafactory 0.9.5, model/adapter.py, init_adapter: what is trained becomes float32 unless pure_bf16; hparams/parser.py."""
    full = reading.texts.get("method") == "full"
    pairs = reading.texts.get("stack") == PAIRS_STACK
    if reading.flag("pure_bf16"):
        reading.take("trainable_precision", "pure-bf16", "pure_bf16")
        reading.texts["autocast"] = "off"
    elif pairs:
        reading.assume("trainable_precision", "mixed-bf16", "LLaMA-Factory makes what is trained FP32", "llamafactory 0.9.5, model/adapter.py, init_adapter")
    if pairs and not full:
        reading.assume("base_precision", "bf16", "LLaMA-Factory loads the model in 16 bits", "llamafactory 0.9.5, model/patcher.py, patch_config")
        reading.assume("kbit_preparation", "none", "LLaMA-Factory does not prepare a quantised model", "llamafactory 0.9.5, model/model_utils/quantization.py")
    if reading.flag("fp16"):
        reading.take("half_precision", "fp16", "fp16")
    elif reading.flag("bf16"):
        reading.take("half_precision", "bf16", "bf16")
    elif "autocast" not in reading.texts and not reading.uncounted:
        reading.assume("autocast", "off", "without bf16 or fp16 the forward pass runs in the types of the model", "llamafactory 0.9.5, hparams/parser.py")
    if reading.flag("upcast_layernorm"):
        if reading.texts.get("method") == "qlora":
            reading.take("kbit_preparation", "norms", "upcast_layernorm")
        else:
            reading.cannot("upcast_layernorm", "norms in FP32 are not counted", "lower")


def _checkpointing(reading: Reading) -> None:
    """On unless somebody says otherwise, and reentrant. Source: llamafactory 0.9.5, model/model_utils/checkpointing.py."""
    off = reading.flag("disable_gradient_checkpointing")
    if off:
        reading.take("checkpointing", "none", "disable_gradient_checkpointing")
    elif reading.flag("use_unsloth_gc"):
        reading.take("checkpointing", "offloaded", "use_unsloth_gc")
    elif off is None:
        reading.assume_default("checkpointing", "full", "disable_gradient_checkpointing")
    else:
        reading.take("checkpointing", "full", "disable_gradient_checkpointing")
    reentrant = reading.flag("use_reentrant_gc")
    if reentrant is not None:
        reading.take("checkpoint_kind", "reentrant" if reentrant else "non-reentrant", "use_reentrant_gc")
    elif reading.texts.get("stack") == PAIRS_STACK:
        reading.assume_default("checkpoint_kind", "reentrant", "use_reentrant_gc")


def _kernels(reading: Reading) -> None:
    """Liger’s kernels, and its loss where a stage needs no scores. Source: llamafactory 0.9.5, model/model_utils/liger_kernel.py."""
    if reading.flag("enable_liger_kernel"):
        reading.take("layer_kernels", "liger", "enable_liger_kernel")
        if reading.texts.get("objective") == "sft":
            reading.texts["loss"] = "fused-linear"


def _spread(reading: Reading) -> None:
    zero = deepspeed(reading, "deepspeed", "llama-factory")
    shards = fsdp(reading, "fsdp", "fsdp_config", version=FSDP_VERSION)
    sharding, offload = zero or shards or ("none", "none")
    named = reading.launcher("config_file")
    if named:
        known = known_file("llama-factory", str(named.value))
        if known:
            sharding, offload = known.texts["sharding"], known.texts.get("offload", "none")
            reading.note_read("--config_file", "sharding", named.value, named.line)
        else:
            reading.cannot("--config_file", "it names a configuration of accelerate that is not here; copies are counted, with nothing divided", "upper")
    spread(reading, sharding, offload)
