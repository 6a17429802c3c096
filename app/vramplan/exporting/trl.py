"""A run as keys of TRL's configuration classes. The other way round, with sources: training_files/trl.py."""

from vramplan.exporting.draft import YOUR_OUTPUT, Draft
from vramplan.exporting.spread import fsdp_version, launched, processes, zero
from vramplan.importing.imported import OF_CHECKPOINTS
from vramplan.settings import Settings
from vramplan.training_files.tools import Tool

FILE = "vramplan_trl.py"

TASKS = {"sft": "CAUSAL_LM", "dpo": "CAUSAL_LM", "reward": "SEQ_CLS"}
"""What the adapted model does. Source: peft 0.21.2, utils/peft_types.py, TaskType; trl 1.16.0, trainer/reward_trainer.py."""

HALVES = {"bf16": "bfloat16", "fp16": "float16"}


def draft_of(settings: Settings, known: Tool) -> Draft:
    """A run on its way into a script with TRL, which does what its stack does."""
    return Draft(settings, known, stack=known.stack)


def keys(draft: Draft) -> tuple[dict[str, object], str]:
    """Keys of the configuration classes by the names of TRL's command line, and the command that starts the run."""
    run = draft.settings
    draft.say("objective", run.objective)
    found: dict[str, object] = {"model_name_or_path": draft.repository()} | _method(draft)
    found |= {"output_dir": YOUR_OUTPUT, "max_length": run.sequence_length}
    draft.say("sequence_length", str(run.sequence_length))
    found |= dict(draft.number(name) for name in ("micro_batch", "gradient_accumulation_steps"))
    found |= _precision(draft) | _checkpointing(draft) | _kernels(draft)
    if name := draft.optimizer():
        found["optim"] = name
    if run.objective == "dpo" and draft.settle("reference", ("precomputed",)):
        found["precompute_ref_log_probs"] = True
    for setting in ("kbit_preparation", "optimizer_step"):
        draft.settle(setting)
    draft.leave_uncompiled("script")
    gpus = processes(draft)
    found |= _spread(draft)
    return found, launched(gpus, FILE) if gpus > 1 else f"python {FILE}"


def _method(draft: Draft) -> dict[str, object]:
    run = draft.settings
    if not run.trains_adapters:
        draft.say("method", "full")
        said = draft.settle("trainable_precision", ("mixed-bf16", "pure-bf16"))
        return {"dtype": "float32" if said == "mixed-bf16" else HALVES[run.half_precision]} if said else {}
    draft.say("method", run.method)
    itself = run.method == "qlora" and run.quantization in OF_CHECKPOINTS
    if itself:
        draft.quantized_elsewhere()
    draft.settle("trainable_precision")
    said = draft.settle("base_precision", ("bf16", "fp32"))
    found: dict[str, object] = {"dtype": "float32" if said == "fp32" else HALVES[run.half_precision]} if said else {}
    if run.method == "qlora" and not itself:
        found |= _quantized(draft, found.get("dtype", "float32"))
    modules = draft.modules()
    found |= {"use_peft": True} | dict([draft.number("rank")]) | {"lora_alpha": 2 * run.rank} | dict([draft.number("lora_dropout")])
    return found | {"lora_target_modules": "all-linear" if modules is None else modules, "lora_task_type": TASKS[run.objective]}


def _quantized(draft: Draft, dtype: object) -> dict[str, object]:
    """Source of the type of the products: trl 1.16.0, trainer/utils.py, get_quantization_config: that of the weights."""
    kind = draft.settings.quantization
    draft.say("quantization", kind)
    if kind == "int8":
        return {"load_in_8bit": True}
    stored = {"bnb_4bit_quant_storage": dtype} if draft.settings.sharding in FLATTENS else {}
    return {"load_in_4bit": True, "bnb_4bit_quant_type": "nf4", "use_bnb_nested_quant": kind == "nf4-double", "bnb_4bit_compute_dtype": dtype} | stored


FLATTENS = ("zero3", "fsdp1", "fsdp2")
"""Sharding under which 4 bits have to be stored in the type of the other weights. Source: peft 0.21.2, docs/source/accelerate/fsdp.md, deepspeed.md: bnb_4bit_quant_storage."""


def _precision(draft: Draft) -> dict[str, object]:
    half = draft.settings.half_precision
    if draft.settle("autocast", ("off",)):
        if half == "fp16":
            draft.lose("half_precision", "without autocast no key says FP16 beside the type of the weights")
        return {"bf16": False}
    draft.say("half_precision", half)
    return {"bf16": True} if half == "bf16" else {"fp16": True}


def _checkpointing(draft: Draft) -> dict[str, object]:
    kind = draft.settings.checkpointing
    if kind == "offloaded":
        draft.lose("checkpointing", "no key moves layer inputs alone to host memory; they stay on the GPU")
        kind = "full"
    draft.say("checkpointing", kind)
    said = draft.settle("checkpoint_kind", ("reentrant", "non-reentrant"))
    found: dict[str, object] = {"gradient_checkpointing": kind == "full"}
    return found | ({"gradient_checkpointing_kwargs": {"use_reentrant": said == "reentrant"}} if said else {})


def _kernels(draft: Draft) -> dict[str, object]:
    run = draft.settings
    eager = draft.attends_eagerly()
    if run.objective != "reward":
        draft.settle("loss")
    found: dict[str, object] = {"use_liger_kernel": True} if draft.settle("layer_kernels", ("liger",)) else {}
    return found | ({"attn_implementation": "eager"} if eager else {})


def _spread(draft: Draft) -> dict[str, object]:
    if content := zero(draft):
        return {"deepspeed": content}
    if version := fsdp_version(draft):
        offloads = draft.settings.offload == "optimizer-and-parameters"
        return {"fsdp": True, "fsdp_config": {"version": version} | ({"cpu_offload": True} if offloads else {})}
    return {}
