"""What several tools share of how a run is trained: adapters and their targets, quantisation, the optimizer, Liger, checkpointing."""

from collections.abc import Iterable

from vramplan.checks import quoted
from vramplan.targets import ALL_LINEAR, ATTENTION, EVERYTHING
from vramplan.training_files.reading import Reading
from vramplan.training_files.tools import optimizers

MODULES = {
    "q_proj": ("q",), "k_proj": ("k",), "v_proj": ("v",), "o_proj": ("o",), "out_proj": ("o",), "gate_proj": ("gate",), "up_proj": ("up",), "down_proj": ("down",),
    "qkv_proj": ("q", "k", "v"), "gate_up_proj": ("gate", "up"), "query_key_value": ("q", "k", "v"), "wqkv": ("q", "k", "v"), "c_attn": ("q", "k", "v"),
    "q_a_proj": ("q_a",), "q_b_proj": ("q_b",), "kv_a_proj_with_mqa": ("kv_a",), "kv_b_proj": ("kv_b",), "w1": ("gate",), "w2": ("down",), "w3": ("up",),
    "fc1": ("up",), "fc2": ("down",), "dense_h_to_4h": ("up",), "dense_4h_to_h": ("down",), "lm_head": ("lm_head",), "embed_tokens": ("embed",),
}
"""The maps of a layer by the names that transformers' models give their modules. Source: transformers 5.24.0, models/*/modeling_*.py."""

PEFT_DEFAULT = "q,v"
"""What PEFT adapts where nobody names modules: q_proj and v_proj of Llama, Mistral, Qwen and Gemma. Source: peft 0.21.2, utils/constants.py,
TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING."""

EVERY_LINEAR = ("all-linear", "all")
"""Words for every linear map of a layer. Source: peft 0.21.2, utils/constants.py; llamafactory 0.9.5, hparams/finetuning_args.py."""


def targets(names: Iterable[str]) -> tuple[str, tuple[str, ...]]:
    """The setting’s text for names of modules, and the names that it cannot say."""
    names = tuple(names)
    if any(name in EVERY_LINEAR for name in names):
        return "all-linear", tuple(name for name in names if name not in EVERY_LINEAR and name not in MODULES)
    parts = {part for name in names for part in MODULES.get(name.rpartition(".")[2].lower(), ())}
    unknown = tuple(name for name in names if name.rpartition(".")[2].lower() not in MODULES)
    named = next((text for text, maps in (("all-linear", ALL_LINEAR), ("attention", ATTENTION)) if parts == set(maps)), "")
    return named or ",".join(part for part in EVERYTHING if part in parts), unknown


def adapt(reading: Reading, key: str, *, everything: str = "") -> None:
    """Set the targets of adapters from the list under `key`, or from the flag `everything`, which adds every linear map."""
    names = reading.words(key) or ()
    if everything and reading.flag(everything):
        reading.take("adapter_targets", "all-linear", everything, *([key] if names else []))
        return
    if not names:
        reading.assume("adapter_targets", PEFT_DEFAULT, "PEFT takes these for Llama, Mistral, Qwen and Gemma where no modules are named", "peft 0.21.2, utils/constants.py")
        return
    text, unknown = targets(names)
    if unknown:
        reading.cannot(key, f"no setting names {', '.join(quoted(name) for name in unknown[:MOST_NAMED])}{' and more' if len(unknown) > MOST_NAMED else ''}", "lower" if text else "none")
    if text:
        reading.take("adapter_targets", text, key)


MOST_NAMED = 4
"""Unknown modules that are named in one row."""


def optimize(reading: Reading, key: str) -> None:
    """Set the optimizer from its name."""
    name = reading.text(key)
    if name is None:
        usual = reading.default(key)
        if usual is not None:
            reading.assume_default("optimizer", optimizers()[usual].setting, key)
        return
    known = optimizers().get(name.lower())
    if known is None:
        reading.cannot(key, f"the optimizer {quoted(name)} is not known to this calculator; AdamW is counted in its place", "none")
        reading.texts["optimizer"] = "adamw"
        return
    reading.take("optimizer", known.setting, key)
    if known.bound:
        reading.cannot(key, known.why, known.bound)


def checkpoint_kind(reading: Reading, key: str) -> None:
    """Set the kind of checkpointing from the keyword arguments under `key`."""
    if reading.mapping(key) is not None:
        within = f"{key}.use_reentrant"
        reentrant = reading.flag(within)
        if reentrant is not None:
            reading.take("checkpoint_kind", "reentrant" if reentrant else "non-reentrant", within)


def trains_whole_modules(reading: Reading, key: str) -> None:
    """Tell of modules that are trained whole beside adapters."""
    names = reading.words(key)
    if names:
        reading.cannot(key, f"the estimate leaves out that {', '.join(map(str, names[:MOST_NAMED]))} {'is' if len(names) == 1 else 'are'} trained whole", "lower")
