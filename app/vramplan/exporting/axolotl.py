"""A run as keys of Axolotl's YAML. The other way round, with sources: training_files/axolotl.py."""

from vramplan.exporting.draft import YOUR_DATASET, YOUR_OUTPUT, Draft
from vramplan.exporting.spread import fsdp_version, launched, processes, zero
from vramplan.settings import Settings
from vramplan.training_files.axolotl import PAIRS_STACK
from vramplan.training_files.tools import Tool, optimizers, tool

TYPES = {"sft": "chat_template", "dpo": "chat_template.default", "reward": "bradley_terry.chat_template"}
"""Kinds of data, by objective. Source: axolotl 0.19.0, prompt_strategies."""

LEARNING_RATE = 0.0002
"""A learning rate, which Axolotl asks for; it changes nothing in memory. Source: axolotl 0.19.0, examples/llama-3/qlora-1b.yml."""

CUT, LIGER = "axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin", "axolotl.integrations.liger.LigerPlugin"
"""Plugins. Source: axolotl 0.19.0, integrations/cut_cross_entropy/__init__.py, integrations/liger/plugin.py."""

FILE = "vramplan-axolotl.yaml"


def draft_of(settings: Settings, known: Tool) -> Draft:
    """A run on its way into a file of Axolotl: what it does by itself."""
    pairs = settings.objective in ("dpo", "reward")
    by_itself = {"optimizer": optimizers()[tool("axolotl").combined["optimizer"].default].setting}
    if pairs:
        adapters = settings.trains_adapters
        by_itself |= {"base_precision": "bf16"} if adapters else {"trainable_precision": "pure-bf16"}
        by_itself["checkpoint_kind"] = "non-reentrant"
    return Draft(settings, known, stack=PAIRS_STACK if pairs else known.stack, by_itself=by_itself)


def keys(draft: Draft) -> tuple[dict[str, object], str]:
    """Keys of the file, and the command that starts the run."""
    run = draft.settings
    draft.say("objective", run.objective)
    found: dict[str, object] = {"base_model": draft.repository()} | _method(draft) | _objective(draft) | _precision(draft)
    found |= dict(draft.number(name) for name in ("sequence_length", "micro_batch", "gradient_accumulation_steps"))
    found |= _checkpointing(draft) | _kernels(draft)
    if name := draft.optimizer():
        found["optimizer"] = name
    for setting in ("kbit_preparation", "optimizer_step"):
        draft.settle(setting)
    draft.leave_uncompiled("file")
    gpus = processes(draft)
    found |= _spread(draft)
    found |= {"datasets": [{"path": YOUR_DATASET, "type": TYPES[run.objective]}], "output_dir": YOUR_OUTPUT, "learning_rate": LEARNING_RATE, "num_epochs": 1}
    return found, launched(gpus, f"-m axolotl.cli.train {FILE}") if gpus > 1 else f"axolotl train {FILE}"


def _objective(draft: Draft) -> dict[str, object]:
    found: dict[str, object] = {"sft": {}, "dpo": {"rl": "dpo"}, "reward": {"reward_model": True}}[draft.settings.objective]
    if draft.settings.objective == "dpo" and draft.settle("reference", ("precomputed",)):
        found["precompute_ref_log_probs"] = True
    return found


def _method(draft: Draft) -> dict[str, object]:
    run = draft.settings
    if not run.trains_adapters:
        draft.say("method", "full")
        draft.settle("trainable_precision")
        return {}
    found: dict[str, object] = {"adapter": "lora"}
    draft.say("method", run.method)
    if run.method == "qlora":
        found |= _quantized(draft)
    modules = draft.modules()
    found |= {"lora_target_linear": True} if modules is None else {"lora_target_modules": modules}
    found |= dict(draft.number(name) for name in ("rank", "lora_dropout")) | {"lora_alpha": 2 * run.rank}
    for setting in ("base_precision", "trainable_precision"):
        draft.settle(setting)
    return found


def _quantized(draft: Draft) -> dict[str, object]:
    kind = draft.settings.quantization
    said = {"nf4": "nf4-double", "gptq-ungrouped": "gptq"}.get(kind, kind)
    if kind == "awq":
        draft.quantized_elsewhere()
        return {}
    if said != kind:
        draft.lose("quantization", "QLoRA is loaded with double quantisation" if kind == "nf4" else "the groups are those of the checkpoint")
    draft.say("quantization", said)
    return {"int8": {"load_in_8bit": True}, "gptq": {"gptq": True}, "nf4-double": {"adapter": "qlora", "load_in_4bit": True}}[said]


def _precision(draft: Draft) -> dict[str, object]:
    half = draft.settings.half_precision
    draft.say("half_precision", half)
    if draft.settle("autocast", ("off",)):
        return {"bf16": False, "bfloat16" if half == "bf16" else "float16": True}
    return {"bf16": True} if half == "bf16" else {"bf16": False, "fp16": True}


def _checkpointing(draft: Draft) -> dict[str, object]:
    kind = draft.settings.checkpointing
    draft.say("checkpointing", kind)
    found: dict[str, object] = {"gradient_checkpointing": kind != "none"}
    said = draft.settle("checkpoint_kind", ("reentrant", "non-reentrant"))
    if kind == "offloaded":
        found["activation_offloading"] = "hidden_states"
        if not said:  # with layer inputs that leave, Axolotl takes another kind by itself
            said = draft.uses("checkpoint_kind")
            draft.say("checkpoint_kind", said)
    if said:
        found["gradient_checkpointing_kwargs"] = {"use_reentrant": said == "reentrant"}
    return found


def _kernels(draft: Draft) -> dict[str, object]:
    run = draft.settings
    eager = draft.attends_eagerly()
    found: dict[str, object] = {"attn_implementation": "eager" if eager else "sdpa"}
    plugins = []
    loss = draft.settle("loss", ("cut", "fused-linear") if run.objective == "sft" else ()) if run.objective != "reward" else None
    if loss == "cut":
        plugins.append(CUT)
        found["cut_cross_entropy"] = True
    if loss == "fused-linear":
        found["liger_fused_linear_cross_entropy"] = True
    layers = draft.settle("layer_kernels", ("liger",))
    if layers:
        found |= {"liger_rms_norm": True, "liger_glu_activation": True, "liger_rope": True}
    if loss == "fused-linear" or layers:
        plugins.append(LIGER)
    return found | ({"plugins": plugins} if plugins else {})


def _spread(draft: Draft) -> dict[str, object]:
    if content := zero(draft):
        return {"deepspeed": content}
    if version := fsdp_version(draft):
        offloads = draft.settings.offload == "optimizer-and-parameters"
        inner: dict[str, object] = {"offload_params": offloads, "auto_wrap_policy": "TRANSFORMER_BASED_WRAP", "state_dict_type": "FULL_STATE_DICT"}
        return {"fsdp_version": version, "fsdp_config": inner | ({"reshard_after_forward": True} if version == 2 else {})}
    return {}
