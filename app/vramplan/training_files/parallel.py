"""What several tools share of how a run is spread over GPUs: their number, DeepSpeed, FSDP."""

from collections.abc import Mapping

from vramplan.checks import quoted
from vramplan.training_files.given import Tree
from vramplan.training_files.reading import Reading
from vramplan.training_files.tools import NamedFile, named_files

COPIES = ("none", "ddp")
"""Kinds of sharding that divide nothing."""

STAGES = {0: "ddp", 1: "zero1", 2: "zero2", 3: "zero3"}
"""ZeRO by its stage. Source: deepspeed 0.19.8, runtime/zero/config.py, ZeroStageEnum."""

ON_THE_HOST = ("cpu", "nvme")
"""Devices that are no GPU. Source: deepspeed 0.19.8, runtime/zero/offload_config.py, OffloadDeviceEnum."""


def spread(reading: Reading, sharding: str, offload: str, *, gpus_of_file: int = 0, file: str = "") -> None:
    """Set the kind of sharding and the number of GPUs: the launcher’s, else that of a named configuration, else one."""
    given = reading.gpus
    number = given.value if given else gpus_of_file
    divides = sharding not in COPIES
    setting = "sharded_over" if divides else "replicas"
    if given:
        reading.note_read("GPUs", setting, number, given.line)
        reading.texts[setting] = str(number)
    elif gpus_of_file:
        reading.assume(setting, str(number), f"{file} says so")
    else:
        reading.assume(setting, "1", "the file does not say how many GPUs there are")
    reading.texts["replicas" if divides else "sharded_over"] = "1"
    reading.texts["sharding"] = sharding if divides else "ddp" if number > 1 else "none"
    reading.texts["offload"] = offload


def deepspeed(reading: Reading, key: str, of: str) -> tuple[str, str] | None:
    """ZeRO as the key says it: an object, or the name of a file of the tool `of` that is known. None where the key says nothing."""
    given = reading.given(key)
    if given is None:
        return None
    if isinstance(given.value, Mapping):
        sharding, offload = zero_of(reading, key)
        reading.take("sharding", sharding, key)
        return sharding, offload
    name = reading.text(key) or ""
    known = known_file(of, name) or known_file("deepspeed", name)
    if known:
        reading.take("sharding", known.texts.get("sharding", "none"), key)
        offload = known.texts.get("offload", "none")
        what = {"none": "nothing waits in host memory", "optimizer": "it offloads the optimizer"}.get(offload, "it offloads optimizer and parameters")
        reading.assume("offload", offload, f"so says the file of this name that is published: {what}", known.source)
        return known.texts.get("sharding", "none"), offload
    stage = next((number for number in STAGES if any(word in name.lower() for word in (f"zero{number}", f"z{number}", f"stage{number}", f"zero_{number}"))), None)
    if stage is None:
        reading.cannot(key, f"{quoted(name)} is a file of its own, which is not here; copies are counted, with nothing divided", "upper")
        return "none", "none"
    offload = ("none" if "offload" not in name.lower() else "optimizer-and-parameters" if STAGES[stage] == "zero3" else "optimizer") if stage else "none"
    reading.take("sharding", STAGES[stage], key)
    reading.cannot(key, f"{quoted(name)} is a file of its own, which is not here; its stage and its offload are guessed from its name", "none")
    return STAGES[stage], offload


def zero_of(reading: Reading, key: str = "") -> tuple[str, str]:
    """Stage and offload of a DeepSpeed configuration, under a key or the file itself."""
    at = f"{key}.zero_optimization" if key else "zero_optimization"
    stage = reading.whole(f"{at}.stage") or 0
    if stage not in STAGES:
        raise reading.wrong(f"{at}.stage", "0, 1, 2 or 3")
    devices = []
    for part in ("offload_optimizer", "offload_param"):
        devices.append((reading.text(f"{at}.{part}.device") or "").lower() in ON_THE_HOST)
    optimizer, parameters = devices
    if parameters and not optimizer:
        reading.cannot(f"{at}.offload_param", "parameters alone in host memory are not counted; everything is taken to stay on the GPU", "upper")
        return STAGES[stage], "none"
    return STAGES[stage], "optimizer-and-parameters" if parameters else "optimizer" if optimizer else "none"


def known_file(of: str, name: str) -> NamedFile | None:
    """A published configuration by the end of its path."""
    path = name.replace("\\", "/").strip().lower()
    return next((each for each in named_files() if each.of == of and any(path == known or path.endswith(f"/{known}") for known in each.names)), None)


def fsdp(reading: Reading, key: str, config: str, *, version: int) -> tuple[str, str] | None:
    """FSDP as transformers takes it: words under `key`, keys with or without `fsdp_` under `config`. version: where the file says none.

    Source: transformers 5.24.0, training_args.py, _process_fsdp_args; accelerate 1.15.0, utils/dataclasses.py, FullyShardedDataParallelPlugin.
    """
    words = reading.words(key) if reading.has(key) and reading.text_or_list(key) else ()
    inner = reading.mapping(config)
    words = tuple(word.lower() for word in words or ())
    switched = reading.has(key) and not reading.text_or_list(key) and reading.flag(key)
    if not words and not inner and not switched:
        return None
    number, version_key = _of_config(reading, config, inner, "version", reading.whole)
    strategy, strategy_key = _of_config(reading, config, inner, "sharding_strategy", reading.text)
    reshards, reshards_key = _of_config(reading, config, inner, "reshard_after_forward", reading.text)
    offloads, offloads_key = _of_config(reading, config, inner, "offload_params", reading.flag)
    if not offloads_key:
        offloads, offloads_key = _of_config(reading, config, inner, "cpu_offload", reading.flag)
    strategy = str(strategy or (reshards if str(reshards).lower() in STRATEGIES else "") or next((word for word in words if word in STRATEGIES), "full_shard")).lower()
    strategy = NUMBERED.get(strategy, strategy)
    kind = "ddp" if strategy == "no_shard" else f"fsdp{TWO if (number or version) == TWO else 1}"
    offload = "optimizer-and-parameters" if (offloads or "offload" in words) and kind != "ddp" else "none"
    reading.take("sharding", kind, *([key] if words or switched else []), *filter(None, (version_key, strategy_key)))
    reading.take("offload", offload, *filter(None, (offloads_key,)))
    if strategy in BETWEEN:
        reading.cannot(strategy_key or key, f"{strategy} is counted as full_shard: {BETWEEN[strategy]}", "lower")
    if kind == "fsdp2" and str(reshards).lower() in ("false", "no"):
        reading.cannot(reshards_key, "weights that stay whole after the forward pass are not counted", "lower")
    if inner:
        for name in inner:
            if f"{config}.{name}" not in (version_key, strategy_key, offloads_key) and name.removeprefix("fsdp_") in OF_FSDP and not reading.told(f"{config}.{name}"):
                reading.ignore(f"{config}.{name}", "it says how FSDP wraps, loads and saves; layers are wrapped one by one")
    return kind, offload


TWO = 2
"""The version of FSDP that fully_shard is."""

OF_FSDP = (
    "limit_all_gathers", "sync_module_states", "use_orig_params", "cpu_ram_efficient_loading", "auto_wrap_policy", "transformer_layer_cls_to_wrap", "state_dict_type",
    "backward_prefetch", "forward_prefetch", "min_num_params", "final_state_dict_type", "cpu_offload_pin_memory", "mixed_precision_policy", "reshard_after_forward", "xla",
    "xla_fsdp_v2", "xla_fsdp_grad_ckpt",
)
"""Keys of FSDP’s configuration that are taken as usual. Source: accelerate 1.15.0, utils/dataclasses.py, FullyShardedDataParallelPlugin."""

STRATEGIES = ("full_shard", "shard_grad_op", "no_shard", "hybrid_shard", "hybrid_shard_zero2")
NUMBERED = {"1": "full_shard", "2": "shard_grad_op", "3": "no_shard", "4": "hybrid_shard", "5": "hybrid_shard_zero2"}
"""Names of sharding strategies, and their numbers. Source: torch 2.13, distributed/fsdp/api.py, ShardingStrategy."""

BETWEEN = {
    "shard_grad_op": "weights that stay whole after the forward pass are not counted",
    "hybrid_shard": "fewer GPUs than all of them hold one copy",
    "hybrid_shard_zero2": "fewer GPUs than all of them hold one copy, and weights stay whole after the forward pass",
}
"""Strategies that keep more on a GPU than full_shard."""


def _of_config(reading: Reading, config: str, inner: Tree | None, name: str, read) -> tuple[object, str]:
    """A value of the FSDP configuration under its name, with or without the old prefix, and the key it was found under."""
    for key in (f"{config}.{name}", f"{config}.fsdp_{name}") if inner else ():
        if reading.has(key):
            return read(key), key
    return None, ""
