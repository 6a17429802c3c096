"""What Unsloth Studio calls our settings, and which of them its estimate knows.

Source: Unsloth Studio, VRAM estimation for training (March 2026), sections 2, 3 and 5; unslothai/unsloth, commit 007a781c,
studio/backend/utils/hardware/vram_estimation.py (OPTIMIZER_BYTES_PER_PARAM, GC_LAYER_MULTIPLIERS, LINEAR_ATTENTION_IMPLS).
"""

from dataclasses import dataclass

from vramplan.policy import policy
from vramplan.settings import Settings

MARCH, AUGUST = "2026-03", "2026-08"
"""Its document, and its code since."""

OPTIMIZERS = {
    "adamw-foreach": "adamw_torch",
    "adamw-fused": "adamw_torch",
    "adamw-8bit": "adamw_8bit",
    "paged-adamw-8bit": "paged_adamw_8bit",
    "paged-adamw-32bit": "paged_adamw_32bit",
    "sgd": "sgd",
}
"""Its name of every optimizer of ours that it knows."""

OPTIMIZER_BYTES = {
    MARCH: {"adamw_8bit": 4, "adamw_torch": 6, "paged_adamw_32bit": 8, "sgd": 4},
    AUGUST: {"adamw_8bit": 4, "paged_adamw_8bit": 4, "adamw_torch": 6, "paged_adamw_32bit": 8, "sgd": 4},
}
"""Bytes per trained parameter, by revision and its own name: what its authors fitted, not what the states hold."""

CHECKPOINTING = {"none": "none", "full": "true", "offloaded": "unsloth"}
"""Its mode of checkpointing; the one it calls unsloth leaves the layers' inputs in host memory."""

ATTENTION = {"efficient": "sdpa", "efficient-repeated": "sdpa", "eager": "eager"}
"""Its name of the kernel of attention."""

EMBEDDINGS = {"embed": "embed_tokens", "lm_head": "lm_head"}
"""Targets that it trains whole since revision 2026-08, as its own name has them."""


def optimizer_name(settings: Settings) -> str:
    """Its name of the optimizer; empty for one that this revision has no bytes for."""
    name = OPTIMIZERS.get(policy(settings).optimizer, "")
    return name if name in OPTIMIZER_BYTES[settings.unsloth_revision] else ""


def module_name(target: str) -> str:
    """Its name of a linear map."""
    return EMBEDDINGS.get(target) or f"{target}_proj"


@dataclass(frozen=True)
class OwnName:
    """One of its inputs: the setting of ours that it stands for, its name, and its value; no value where it has none for ours."""

    field: str
    name: str
    value: str


def own_names(settings: Settings) -> tuple[OwnName, ...]:
    """The run as its own inputs have it."""
    named = [
        OwnName("method", "training_method", settings.method),
        OwnName("sequence_length", "max_seq_length", str(settings.sequence_length)),
        OwnName("micro_batch", "per_device_train_batch_size", str(settings.micro_batch)),
        OwnName("optimizer", "optim", optimizer_name(settings)),
        OwnName("checkpointing", "gradient_checkpointing", CHECKPOINTING[settings.checkpointing]),
    ]
    if settings.trains_adapters:
        named[1:1] = [OwnName("rank", "lora_r", str(settings.rank)), OwnName("adapter_targets", "target_modules", _modules(settings))]
    if settings.unsloth_revision == AUGUST:
        named.append(OwnName("attention_kernel", "attention_implementation", ATTENTION[settings.attention_kernel]))
    return tuple(named)


def _modules(settings: Settings) -> str:
    """The modules that get an adapter: since revision 2026-08 its own word for all of them leaves routed experts out."""
    if settings.adapter_targets == "all-linear" and settings.unsloth_revision == AUGUST:
        return "all-linear"
    return ", ".join(module_name(target) for target in settings.targets)
