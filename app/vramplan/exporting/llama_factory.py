"""A run as keys of LLaMA-Factory's YAML. The other way round, with sources: training_files/llama_factory.py."""

from vramplan.exporting.draft import YOUR_DATASET, YOUR_OUTPUT, Draft
from vramplan.exporting.spread import fsdp_version, processes, zero
from vramplan.importing.imported import OF_CHECKPOINTS
from vramplan.settings import Settings
from vramplan.training_files.llama_factory import BITS, PAIRS, PAIRS_STACK, UNSLOTH_STACK
from vramplan.training_files.tools import Tool

FILE = "vramplan-llama-factory.yaml"

STAGES = {"sft": "sft", "dpo": "dpo", "reward": "rm"}
"""Stages by objective. Source: llamafactory 0.9.5, hparams/finetuning_args.py."""


def draft_of(settings: Settings, known: Tool) -> Draft:
    """A run on its way into a file of LLaMA-Factory: what it does by itself."""
    if settings.objective not in PAIRS:
        return Draft(settings, known, stack=UNSLOTH_STACK if settings.stack == UNSLOTH_STACK else known.stack)
    by_itself = {"trainable_precision": "mixed-bf16", "checkpoint_kind": "reentrant"}
    if settings.trains_adapters:
        by_itself |= {"base_precision": "bf16", "kbit_preparation": "none"}
    return Draft(settings, known, stack=PAIRS_STACK, by_itself=by_itself)


def keys(draft: Draft) -> tuple[dict[str, object], str]:
    """Keys of the file, and the command that starts the run."""
    run = draft.settings
    draft.say("objective", run.objective)
    found: dict[str, object] = {"model_name_or_path": draft.repository(), "stage": STAGES[run.objective], "do_train": True} | _method(draft)
    if draft.means["stack"] == UNSLOTH_STACK:
        found["use_unsloth"] = True
    found |= {"dataset": YOUR_DATASET, "output_dir": YOUR_OUTPUT}
    found |= dict(draft.number(name) for name in ("sequence_length", "micro_batch", "gradient_accumulation_steps"))
    found |= _precision(draft) | _checkpointing(draft) | _kernels(draft)
    if name := draft.optimizer():
        found["optim"] = name
    if run.objective == "dpo":
        draft.settle("reference")
    draft.settle("optimizer_step")
    draft.leave_uncompiled("file")
    gpus = processes(draft)
    found |= _spread(draft)
    command = f"llamafactory-cli train {FILE}"
    return found, f"FORCE_TORCHRUN=1 NPROC_PER_NODE={gpus} {command}" if gpus > 1 or "deepspeed" in found else command


def _method(draft: Draft) -> dict[str, object]:
    run = draft.settings
    draft.say("method", run.method)
    if not run.trains_adapters:
        return {"finetuning_type": "full"}
    found: dict[str, object] = {"finetuning_type": "lora"}
    if run.method == "qlora" and run.quantization in OF_CHECKPOINTS:
        draft.quantized_elsewhere()
    elif run.method == "qlora":
        kind = run.quantization
        draft.say("quantization", kind)
        found["quantization_bit"] = next(bits for bits, name in BITS.items() if kind.startswith(name))
        found |= {} if kind == "int8" else {"double_quantization": kind == "nf4-double"}
    draft.settle("base_precision")
    if draft.settle("kbit_preparation", ("norms",) if "quantization_bit" in found else ()):
        found["upcast_layernorm"] = True
    modules = draft.modules()
    found |= dict([draft.number("rank")]) | {"lora_alpha": 2 * run.rank} | dict([draft.number("lora_dropout")])
    return found | {"lora_target": "all" if modules is None else ",".join(modules)}


def _precision(draft: Draft) -> dict[str, object]:
    """One key stands for 16-bit weights without autocast; without any key there is no autocast."""
    half = draft.settings.half_precision
    off = draft.uses("autocast") == "off"
    if off and half == "bf16" and draft.uses("trainable_precision") == "pure-bf16" and draft.settings.sharding != "zero3":
        draft.say("trainable_precision", "pure-bf16")
        draft.say("autocast", "off")
        return {"pure_bf16": True}
    draft.settle("trainable_precision")
    if off:
        draft.say("autocast", "off")
        if half == "fp16":
            draft.lose("half_precision", "without autocast no key says FP16")
        return {}
    draft.say("half_precision", half)
    return {half: True}


def _checkpointing(draft: Draft) -> dict[str, object]:
    kind = draft.settings.checkpointing
    draft.say("checkpointing", kind)
    found: dict[str, object] = {"disable_gradient_checkpointing": kind == "none"}
    if kind == "offloaded":
        found["use_unsloth_gc"] = True
    if said := draft.settle("checkpoint_kind", ("reentrant", "non-reentrant")):
        found["use_reentrant_gc"] = said == "reentrant"
    return found


def _kernels(draft: Draft) -> dict[str, object]:
    run = draft.settings
    eager = draft.attends_eagerly()
    found: dict[str, object] = {"flash_attn": "disabled" if eager else "sdpa"}
    if draft.settle("layer_kernels", ("liger",)):
        found["enable_liger_kernel"] = True
        if run.objective == "sft":  # Liger's loss comes with its kernels
            draft.say("loss", "fused-linear")
            if draft.uses("loss") != "fused-linear":
                draft.lose("loss", "Liger’s kernels come with its loss")
            return found
    if run.objective != "reward":
        draft.settle("loss")
    return found


def _spread(draft: Draft) -> dict[str, object]:
    if content := zero(draft):
        return {"deepspeed": content}
    if version := fsdp_version(draft):
        offloads = " offload" if draft.settings.offload == "optimizer-and-parameters" else ""
        return {"fsdp": f"full_shard auto_wrap{offloads}", "fsdp_config": {"version": version}}
    return {}
