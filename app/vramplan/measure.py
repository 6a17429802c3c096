"""A script that measures the run of the settings on somebody's own GPU, and prints one line to paste back.

The script is data; only the dictionary in it is made here, of whole numbers, truth values and names this package knows.
"""

from vramplan.catalogue import CUSTOM, TRAITS, presets
from vramplan.data import table
from vramplan.errors import NotExpressible
from vramplan.measured_run.against import fingerprint
from vramplan.policy import Policy, policy, stack_of
from vramplan.settings import Settings
from vramplan.words import value_text

RUNS = ("trainer-", "trl-", "loop")
"""Beginnings of the names of stacks whose step is one of Transformers, PEFT and TRL themselves."""

LOSSES = ("logits", "fused-linear", "chunked")
"""Losses the script can run; others are parts of trainers."""

OPTIMIZERS = (
    "adamw-foreach", "adamw-fused", "sgd", "sgd-momentum", "adafactor", "adamw-fp32-states", "adamw-8bit", "paged-adamw-32bit", "paged-adamw-8bit", "lion",
)
"""Optimizers the script can make."""

QUANTIZATIONS = ("nf4-double", "nf4", "int8")
"""Kinds of quantisation that are made from weights when they are loaded."""

FAMILIES: tuple[tuple[dict[str, bool], str, dict[str, bool]], ...] = (
    ({}, "llama", {}),
    ({"query_biases": True}, "qwen2", {}),
    ({"query_biases": True, "output_biases": True}, "llama", {"attention_bias": True}),
    ({"mlp_biases": True}, "llama", {"mlp_bias": True}),
    ({"query_key_norms": True}, "qwen3", {}),
)
"""Traits of a custom decoder, the model type of Transformers that has these and no others, and what its configuration is told."""

KEYS = {
    "hidden_size": "hidden_size", "num_layers": "num_hidden_layers", "num_attention_heads": "num_attention_heads", "num_kv_heads": "num_key_value_heads",
    "head_dim": "head_dim", "intermediate_size": "intermediate_size", "vocab_size": "vocab_size", "tied_embeddings": "tie_word_embeddings",
}
"""Names of the dimensions in these configurations. Source: transformers 5.24.0, models/llama/configuration_llama.py."""


def script(settings: Settings) -> str:
    """The script for a run. Raises NotExpressible with the setting in the way and one sentence."""
    decided = policy(settings)
    _must_run(settings, decided)
    return table("measure")["script"]["text"].lstrip().replace("{run}", _literal(_run(settings, decided)), 1)


def needs(settings: Settings) -> tuple[str, ...]:
    """Packages the script imports."""
    decided = policy(settings)
    wanted = {
        "torch": True,
        "transformers": True,
        "peft": settings.trains_adapters,
        "bitsandbytes": settings.method == "qlora" or decided.optimizer in ("adamw-fp32-states", "adamw-8bit", "paged-adamw-32bit", "paged-adamw-8bit", "lion"),
        "trl": decided.loss == "chunked",
        "liger-kernel": decided.loss == "fused-linear" or _liger_layers(decided),
    }
    return tuple(name for name, is_wanted in wanted.items() if is_wanted)


def _must_run(settings: Settings, decided: Policy) -> None:
    """Say what the script cannot run."""
    if settings.accounting != "step":
        raise NotExpressible("accounting", "The script measures a training step; choose that accounting.")
    if settings.objective != "sft":
        raise NotExpressible("objective", "The script measures next-token training; it makes no pairs and runs no reference.")
    if not settings.stack.startswith(RUNS):
        raise NotExpressible("stack", f"The script cannot run {stack_of(settings).label}; it runs Transformers, PEFT and TRL as they are.")
    if decided.loss not in LOSSES:
        loss = value_text("loss", decided.loss)
        raise NotExpressible("loss", f"The script cannot run the loss “{loss}”, which is a part of its trainer; measure with the trainer itself.")
    if decided.optimizer not in OPTIMIZERS:
        raise NotExpressible("optimizer", f"The script cannot make the optimizer “{value_text('optimizer', decided.optimizer)}”.")
    if decided.optimizer_step != "after":
        raise NotExpressible("optimizer_step", "The script steps after the backward pass; it cannot step during it.")
    if settings.torch_compile != "off":
        raise NotExpressible("torch_compile", "The script does not compile the model; choose “Off”.")
    if settings.sharding != "none" or settings.offload != "none":
        raise NotExpressible("sharding", "The script runs on one GPU; it cannot share a run out over several or keep parts of it elsewhere.")
    if settings.method == "qlora" and settings.quantization not in QUANTIZATIONS:
        raise NotExpressible("quantization", "The script cannot make GPTQ or AWQ weights, which are not made when a model is loaded.")


def _run(settings: Settings, decided: Policy) -> dict[str, object]:
    """What the script does: nothing in it but numbers, truth values, and names from tables of this package."""
    adapters = settings.trains_adapters
    return {
        **_model(settings),
        "settings": fingerprint(settings),
        "weights": decided.base_precision,
        "half": settings.half_precision,
        "attention": "eager" if settings.attention_kernel == "eager" else "sdpa",
        "quantization": settings.quantization if settings.method == "qlora" else "",
        "preparation": decided.kbit_preparation,
        "rank": settings.rank if adapters else 0,
        "targets": list(settings.targets) if adapters else [],
        "dropout": float(settings.lora_dropout) if adapters else 0.0,
        "adapters": decided.adapter_precision,
        "autocast": decided.autocast,
        "loss": decided.loss,
        "liger_layers": _liger_layers(decided),
        "checkpointing": settings.checkpointing == "full",
        "reentrant": decided.reentrant,
        "keeps_outputs": decided.outputs_kept,
        "optimizer": decided.optimizer,
        "micro_batch": settings.micro_batch,
        "sequence_length": settings.sequence_length,
        "micro_batches": min(settings.gradient_accumulation_steps, 2),
    }


def _literal(values: dict[str, object]) -> str:
    """A dictionary as Python reads it, a line for each entry."""
    return "{\n" + "".join(f"    {name!r}: {value!r},\n" for name, value in values.items()) + "}"


def _liger_layers(decided: Policy) -> bool:
    return "liger" in (decided.norm_kernel, decided.mlp_kernel)


def _model(settings: Settings) -> dict[str, object]:
    """Where the configuration comes from: the preset's repository, or dimensions a model type can have."""
    if settings.model != CUSTOM:
        preset = presets()[settings.model]
        return {"repository": preset.repository, "family": preset.family, "dimensions": {}}
    shape = settings.architecture
    usual = {name: getattr(type(shape), name) for name in TRAITS}
    traits = {name: getattr(shape, name) for name in TRAITS if getattr(shape, name) != usual[name]}
    for wanted, family, told in FAMILIES:
        if traits == wanted:
            return {"repository": "", "family": family, "dimensions": {key: getattr(shape, name) for name, key in KEYS.items()} | told | {"max_position_embeddings": settings.sequence_length}}
    return {"repository": "", "family": "", "dimensions": {}}
