"""The configuration of accelerate: the part of a run that it sets.

Source: accelerate 1.15.0, commands/config/config_args.py, commands/launch.py, utils/launch.py, utils/dataclasses.py.
"""

from vramplan.checks import quoted
from vramplan.training_files.deepspeed_config import AUTO, set_gpus
from vramplan.training_files.parallel import ON_THE_HOST, STAGES, deepspeed, fsdp
from vramplan.training_files.reading import Reading

COPIES = ("NO", "MULTI_GPU")
"""Kinds of runs that divide nothing, in capitals. Source: utils/dataclasses.py, DistributedType."""

HALF = ("bf16", "fp16")

USUAL_STAGE = 2
"""ZeRO’s stage where the file says none. Source: utils/dataclasses.py, DeepSpeedPlugin: ACCELERATE_DEEPSPEED_ZERO_STAGE, 2."""

WRAPS_LAYERS = "TRANSFORMER_BASED_WRAP"
"""The policy that is counted: every layer is a unit of its own."""

FSDP, DEEPSPEED = "fsdp_config", "deepspeed_config"


def combine(reading: Reading) -> None:
    """Everything that more than one key decides."""
    kind = (reading.text("distributed_type") or "NO").upper()
    kind = "NO" if kind == "FALSE" else kind  # NO without quotes is a flag in YAML
    if kind == "FSDP":
        _fsdp(reading)
    elif kind == "DEEPSPEED":
        _deepspeed(reading)
    elif kind not in COPIES:
        reading.refuse("distributed_type", f"{quoted(kind.lower())} is no way of training on GPUs that is counted")
        return
    for config, owner in ((FSDP, "FSDP"), (DEEPSPEED, "DEEPSPEED")):
        if kind != owner and reading.has(config):
            reading.ignore(config, "distributed_type names another way")
    _gpus(reading, kind)
    _precision(reading)


def _gpus(reading: Reading, kind: str) -> None:
    number = reading.whole("num_processes")
    if kind in COPIES:
        reading.texts["offload"] = "none"
        reading.take("sharding", "ddp" if kind != "NO" and number != 1 else "none", "distributed_type")
    if kind == "NO":
        number = 1
    if number:
        set_gpus(reading, number, "num_processes")


def _precision(reading: Reading) -> None:
    name = (reading.text("mixed_precision") or "no").lower()
    if name in HALF:
        reading.take("half_precision", name, "mixed_precision")
    elif name in ("no", "false"):
        if reading.has("mixed_precision"):
            reading.ignore("mixed_precision", "the tool that trains says its own")
    else:
        reading.cannot("mixed_precision", f"{quoted(name)} is not counted; the run keeps its own", "none")


def _fsdp(reading: Reading) -> None:
    policy = next((key for key in (f"{FSDP}.fsdp_auto_wrap_policy", f"{FSDP}.auto_wrap_policy") if reading.has(key)), "")
    named = (reading.text(policy) or "").upper() if policy else ""
    if named == "SIZE_BASED_WRAP":
        reading.cannot(policy, "units by size are not counted; every layer is taken as one", "none")
    elif named != WRAPS_LAYERS:
        reading.cannot(policy or FSDP, "the whole model is then one unit, which is gathered at once; every layer is taken as one", "lower")
    kind, offload = fsdp(reading, "fsdp", FSDP, version=1) or ("fsdp1", "none")
    reading.texts |= {"sharding": kind, "offload": offload}
    if not reading.told("distributed_type"):
        reading.take("sharding", kind, "distributed_type")
    checkpoints = next((key for key in (f"{FSDP}.fsdp_activation_checkpointing", f"{FSDP}.activation_checkpointing") if reading.has(key)), "")
    offloads = next((key for key in (f"{FSDP}.fsdp_activation_checkpointing_offload", f"{FSDP}.activation_checkpointing_offload") if reading.has(key)), "")
    if checkpoints and reading.flag(checkpoints):
        away = bool(offloads and reading.flag(offloads))
        reading.take("checkpointing", "offloaded" if away else "full", checkpoints, *([offloads] if away else []))


def _deepspeed(reading: Reading) -> None:
    """ZeRO from a DeepSpeed file that the configuration names, else from its own keys."""
    reading.take("sharding", "zero2", "distributed_type")
    if reading.has(f"{DEEPSPEED}.deepspeed_config_file"):
        sharding, offload = deepspeed(reading, f"{DEEPSPEED}.deepspeed_config_file", "deepspeed") or ("none", "none")
        reading.texts |= {"sharding": "ddp" if sharding == "none" else sharding, "offload": offload}
        return
    stage = reading.whole(f"{DEEPSPEED}.zero_stage")
    if stage is None:
        reading.assume("sharding", STAGES[USUAL_STAGE], "accelerate takes stage 2 where the file does not say", "accelerate 1.15.0, utils/dataclasses.py, DeepSpeedPlugin")
        stage = USUAL_STAGE
    elif stage not in STAGES:
        raise reading.wrong(f"{DEEPSPEED}.zero_stage", "0, 1, 2 or 3")
    else:
        reading.take("sharding", STAGES[stage], f"{DEEPSPEED}.zero_stage")
    optimizer, parameters = ((reading.text(f"{DEEPSPEED}.offload_{part}_device") or "none").lower() in ON_THE_HOST for part in ("optimizer", "param"))
    both = parameters and optimizer
    if parameters and not optimizer:
        reading.cannot(f"{DEEPSPEED}.offload_param_device", "parameters alone in host memory are not counted; everything is taken to stay on the GPU", "upper")
    elif stage:
        reading.take("offload", "optimizer-and-parameters" if both else "optimizer" if optimizer else "none", f"{DEEPSPEED}.offload_optimizer_device", f"{DEEPSPEED}.offload_param_device")
    reading.texts.setdefault("offload", "none")
    steps = f"{DEEPSPEED}.gradient_accumulation_steps"
    if reading.has(steps) and reading.text(steps) == AUTO:
        reading.ignore(steps, "the tool that trains fills it in")
    elif number := reading.whole(steps):
        reading.take("gradient_accumulation_steps", str(number), steps)
