"""DeepSpeed’s JSON: the part of a run that it sets. Source: deepspeed 0.19.8, runtime/config.py, runtime/zero/config.py, runtime/engine.py."""

from vramplan.checks import quoted
from vramplan.training_files.parallel import COPIES, zero_of
from vramplan.training_files.reading import Reading

AUTO = "auto"
"""What stands for a value that the tool that trains fills in. Source: transformers 5.24.0, integrations/deepspeed.py, fill_match."""

ZERO = "zero_optimization"

SIZES = {"train_micro_batch_size_per_gpu": "micro_batch", "gradient_accumulation_steps": "gradient_accumulation_steps"}
"""Keys of the batch that are settings of ours."""

OPTIMIZERS = {"adam": "adamw-fused", "adamw": "adamw-fused", "lion": "lion"}
"""Optimizers of DeepSpeed’s own that are settings of ours: FusedAdam and FusedLion on the GPU. Source: runtime/engine.py, _configure_basic_optimizer."""

OLD_OFFLOADS = {f"{ZERO}.cpu_offload": "optimizer", f"{ZERO}.cpu_offload_params": "parameters", f"{ZERO}.cpu_offload_param": "parameters"}
"""Flags of older files. Source: runtime/zero/config.py: cpu_offload, cpu_offload_param, deprecated."""


def combine(reading: Reading) -> None:
    """Everything that more than one key decides."""
    divides(reading)
    _precision(reading)
    _batch(reading)
    _optimizer(reading)


def divides(reading: Reading) -> None:
    """Set stage and offload. Stage 0 copies, as a file without ZeRO does."""
    if reading.mapping(ZERO) is None:
        reading.assume("sharding", "ddp", f"without {ZERO} nothing is divided", "deepspeed 0.19.8, runtime/zero/config.py: stage = 0")
        reading.texts["offload"] = "none"
        return
    sharding, offload = zero_of(reading)
    old = {kind for key, kind in OLD_OFFLOADS.items() if reading.flag(key)}
    if old and offload == "none":
        offload = "optimizer-and-parameters" if "parameters" in old and sharding == "zero3" else "optimizer"
    if sharding in COPIES:
        offload = "none"
    reading.take("sharding", sharding, f"{ZERO}.stage")
    reading.take("offload", offload, f"{ZERO}.offload_optimizer.device", *([f"{ZERO}.offload_param.device"] if offload == "optimizer-and-parameters" else []), *(key for key in OLD_OFFLOADS if reading.has(key)))


def _precision(reading: Reading) -> None:
    """Source: deepspeed 0.19.8, runtime/precision_config.py: bf16.enabled, fp16.enabled."""
    on = [name for name in ("bf16", "fp16") if _says(reading, f"{name}.enabled")]
    if on:
        reading.take("half_precision", on[0], f"{on[0]}.enabled")


def _says(reading: Reading, key: str) -> bool:
    """Whether a flag is on that may be left to the tool that trains."""
    if reading.text(key) == AUTO:
        reading.ignore(key, "the tool that trains fills it in")
        return False
    return bool(reading.flag(key))


def _number(reading: Reading, key: str) -> int | None:
    """A number that may be left to the tool that trains."""
    if reading.text_or_list(key) and reading.text(key) == AUTO:
        reading.ignore(key, "the tool that trains fills it in")
        return None
    return reading.whole(key)


def _batch(reading: Reading) -> None:
    """The micro-batch, accumulation, and the number of GPUs where all three numbers say it. Source: runtime/config.py, _set_batch_related_parameters."""
    sizes = {key: _number(reading, key) for key in SIZES}
    for key, size in sizes.items():
        if size:
            reading.take(SIZES[key], str(size), key)
    total = _number(reading, "train_batch_size")
    if not total:
        return
    each = (sizes["train_micro_batch_size_per_gpu"] or 0) * (sizes["gradient_accumulation_steps"] or 0)
    if not each:
        reading.cannot("train_batch_size", "how it is divided follows from the number of GPUs, which the file does not say; the run keeps its own batch", "none")
    elif total % each:
        raise reading.wrong("train_batch_size", "a multiple of the micro-batch times the accumulation steps")
    else:
        set_gpus(reading, total // each, "train_batch_size")


def set_gpus(reading: Reading, number: int, key: str) -> None:
    """Set the number of GPUs from a key, as those of one copy where the states are divided, else as copies."""
    divided = reading.texts["sharding"] not in COPIES
    reading.take("sharded_over" if divided else "replicas", str(number), key)
    reading.texts["replicas" if divided else "sharded_over"] = "1"


def _optimizer(reading: Reading) -> None:
    """An optimizer that DeepSpeed makes itself. Source: runtime/engine.py, _configure_basic_optimizer."""
    name = reading.text("optimizer.type")
    if name is None:
        return
    setting = OPTIMIZERS.get(name.lower())
    if setting:
        reading.take("optimizer", setting, "optimizer.type")
    else:
        reading.cannot("optimizer.type", f"the optimizer {quoted(name)} of DeepSpeed is not counted; the run keeps its own", "none")
