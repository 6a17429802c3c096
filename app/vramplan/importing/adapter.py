"""A PEFT adapter_config.json: which modules of a model it trains, how many parameters those are, and the same as settings.

Source of every rule: peft 0.21.2, tuners/tuners_utils.py (check_target_module_exists, _maybe_include_all_linear_layers),
utils/other.py (get_pattern_key, _set_trainable), tuners/lora/layer.py and dora.py.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from vramplan.checks import quoted
from vramplan.importing.inventory import LINEAR, OTHER, Inventory, Module, concrete
from vramplan.importing.patterns import Pattern
from vramplan.importing.problems import ImportProblem
from vramplan.importing.values import absent, shown, typed
from vramplan.targets import ALL_LINEAR, ATTENTION, EVERYTHING

EVERY_LINEAR = "all-linear"
"""The word for every linear map but the head, in any case of letters."""

FIRST_INDEX = re.compile(r"[^.]*(?:\.[^.]+)*?\.(\d+)\.")
"""The number of a layer in the name of a module: the first part that is a number."""

NOT_COUNTED = {
    "layer_replication": "layers are not replicated here",
    "megatron_config": "layers split over GPUs are counted whole",
    "use_qalora": "QA-LoRA’s smaller inputs are not counted",
    "use_bdlora": "its blocks are not counted",
    "target_parameters": "adapters on parameters that are no modules (experts) are not counted",
    "trainable_token_indices": "the rows of the trained tokens are not counted",
}
"""Options of an adapter that change its parameters and are not counted."""

EXPERT_MAPS = ("gate_proj", "up_proj", "down_proj", "w1", "w2", "w3", "experts")
"""Names that files give to the maps of experts, which transformers 5 keeps as parameters without modules."""

OF_NO_ACCOUNT = (
    "lora_alpha", "alpha_pattern", "use_rslora", "init_lora_weights", "fan_in_fan_out", "inference_mode", "task_type", "auto_mapping", "revision",
    "base_model_name_or_path", "peft_version", "peft_type",
)
"""Keys that change no size. rsLoRA only scales otherwise: peft 0.21.2, tuners/lora/layer.py, update_layer."""


@dataclass(frozen=True)
class Adapter:
    """What an adapter trains in one model.

    matched, unmatched: names of modules with and without an adapter or a copy of their own; unmatched lists those that
    could have one. unknown: targets that match nothing. texts: the same as settings, as far as settings can say it.
    inexact: sentences about what the settings cannot say.
    """

    trainable: int
    matched: tuple[str, ...]
    unmatched: tuple[str, ...]
    unknown: tuple[str, ...]
    texts: dict[str, str]
    inexact: tuple[tuple[str, str], ...]


def read_adapter(config: Mapping[str, object], inventory: Inventory) -> Adapter:
    """The modules of this model that the adapter trains. Raises ImportProblem for a file that cannot be followed."""
    kind = config.get("peft_type", "LORA")
    if kind != "LORA":
        raise ImportProblem("not_lora", f"This is an adapter of the type {shown(kind)}, not LoRA.", "Bring the adapter_config.json of a LoRA adapter.")
    if absent(config.get("r")):
        raise ImportProblem("missing", "The file has no r, the adapter’s rank.", "Bring the whole adapter_config.json.")
    rank = typed(config["r"], "whole", "r")
    if rank < 1:
        raise ImportProblem("out_of_range", f"r must be at least 1; got {rank}.", "Check the file’s numbers.")
    chooses, saves, rank_of = _chooser(config, inventory), _saver(config), _ranks(config, rank)
    matched: list[str] = []
    unmatched: list[str] = []
    trainable = 0
    roles: dict[str, int] = {}
    per_role: dict[str, int] = {}
    ranks: set[int] = set()
    for name, module in concrete(module for module in inventory.modules if not module.fused):
        for role in module.role.split():
            per_role[role] = per_role.get(role, 0) + 1
        if saves(name):
            trainable += module.inputs * module.outputs + module.bias
            matched.append(name)
        elif module.kind != OTHER and chooses(name, module):
            here = rank_of(name)
            trainable += here * (module.inputs + module.outputs) + _extra(config, module)
            matched.append(name)
            ranks.add(here)
            for role in module.role.split():
                roles[role] = roles.get(role, 0) + 1
        elif module.kind == LINEAR:
            unmatched.append(name)
        if config.get("bias") == "all" or (config.get("bias") == "lora_only" and matched and matched[-1] == name and not saves(name)):
            trainable += 0 if saves(name) else module.bias
    if not matched:
        raise ImportProblem(
            "no_match", f"None of the model’s modules is a target of this adapter: {_targets_shown(config)}.",
            "Choose the model the adapter was made for, then bring the file again.",
        )
    whole = {role for role, count in roles.items() if count == per_role[role]}
    inexact = _inexact(config, ranks, roles, whole, matched, saves)
    targets = config.get("target_modules")
    named = set(EXPERT_MAPS) & set(map(str, targets)) if isinstance(targets, list) else str(targets).lower() == EVERY_LINEAR
    if named and any(module.fused for module in inventory.modules):
        inexact.append(("target_modules", "adapters on experts are not counted: transformers 5 keeps experts as parameters, not as modules"))
    texts = _texts(config, rank, [part for part in EVERYTHING if part in roles])
    return Adapter(trainable, tuple(matched), tuple(unmatched), _unknown(config, inventory), texts, tuple(inexact))


def _chooser(config: Mapping[str, object], inventory: Inventory) -> Callable[[str, Module], bool]:
    """Whether a module gets an adapter."""
    targets = config.get("target_modules")
    if absent(targets):
        raise ImportProblem(
            "missing", "target_modules is null, which leaves the choice to PEFT’s version.", "Save the adapter once with PEFT; it then writes the names it chose."
        )
    excluded = _matcher(config.get("exclude_modules"), "exclude_modules")
    in_layer = _layer_filter(config)
    if isinstance(targets, str) and targets.lower() == EVERY_LINEAR:
        return lambda name, module: module.kind == LINEAR and "lm_head" not in module.role.split() and not excluded(name)
    wanted = _matcher(targets, "target_modules")
    filters = in_layer if not isinstance(targets, str) else (lambda name: True)
    return lambda name, module: wanted(name) and filters(name) and not excluded(name)


def _matcher(targets: object, key: str) -> Callable[[str], bool]:
    """Whether a module's name is one of these: a pattern for all of it, or names of which one ends it."""
    if absent(targets):
        return lambda name: False
    if isinstance(targets, str):
        pattern = Pattern(targets, key)
        return pattern.fullmatch
    names = typed(targets, "list", key)
    if not all(isinstance(each, str) for each in names):
        raise ImportProblem("wrong_type", f"{key} must be a list of names, or one pattern; got {shown(targets)}.", "Compare it with the file PEFT wrote.")
    exact, endings = set(names), tuple(f".{each}" for each in names)
    return lambda name: name in exact or name.endswith(endings)


def _layer_filter(config: Mapping[str, object]) -> Callable[[str], bool]:
    layers = config.get("layers_to_transform")
    if absent(layers) or layers == []:
        return lambda name: True
    wanted = set(typed([layers] if isinstance(layers, int) and not isinstance(layers, bool) else layers, "wholes", "layers_to_transform"))

    def chosen(name: str) -> bool:
        found = FIRST_INDEX.match(name)
        return bool(found) and int(found[1]) in wanted

    return chosen


def _saver(config: Mapping[str, object]) -> Callable[[str], bool]:
    """Whether a module is trained as a whole copy: its name, or that of one it lies in, ends with one of the given texts.

    Not only whole names: `norm` saves every layer's norms too, as PEFT's own matching does.
    """
    saved = config.get("modules_to_save")
    if absent(saved):
        return lambda name: False
    names = typed(saved, "list", "modules_to_save")
    if not all(isinstance(each, str) and each for each in names):
        raise ImportProblem("wrong_type", f"modules_to_save must be a list of names; got {shown(saved)}.", "Compare it with the file PEFT wrote.")
    inside = tuple(f"{each}." for each in names)
    return lambda name: name.endswith(names) or any(part in name for part in inside)


def _ranks(config: Mapping[str, object], rank: int) -> Callable[[str], int]:
    given = config.get("rank_pattern")
    if absent(given) or given == {}:
        return lambda name: rank
    if not isinstance(given, Mapping):
        raise ImportProblem("wrong_type", f"rank_pattern must be an object of names and ranks; got {shown(given)}.", "Compare it with the file PEFT wrote.")
    rules = [(Pattern(rf"(.*\.)?({key})", "rank_pattern"), typed(value, "whole", f"rank_pattern.{key[:40]}")) for key, value in given.items()]
    return lambda name: next((value for pattern, value in rules if pattern.fullmatch(name)), rank)


def _extra(config: Mapping[str, object], module: Module) -> int:
    """What an adapter has beside its pair: DoRA's magnitudes, and a bias of B."""
    width = module.outputs
    return width * ((config.get("use_dora") is True) + (config.get("lora_bias") is True))


def _unknown(config: Mapping[str, object], inventory: Inventory) -> tuple[str, ...]:
    """Targets in a list that no module of the model has."""
    targets = config.get("target_modules")
    if not isinstance(targets, list):
        return ()
    names = [name for name, _ in concrete(inventory.modules)]
    return tuple(each for each in targets if not any(name == each or name.endswith(f".{each}") for name in names))


def _targets_shown(config: Mapping[str, object]) -> str:
    targets = config.get("target_modules")
    return quoted(targets) if isinstance(targets, str) else quoted(", ".join(map(str, targets or ())))


def _texts(config: Mapping[str, object], rank: int, roles: Iterable[str]) -> dict[str, str]:
    """The adapter as settings, as far as they can say it."""
    parts = list(roles)
    named = {ATTENTION: "attention", ALL_LINEAR: "all-linear"}.get(tuple(parts), ",".join(parts))
    texts = {"rank": str(rank)} | ({"adapter_targets": named} if parts else {})
    dropout = config.get("lora_dropout")
    if isinstance(dropout, int | float) and not isinstance(dropout, bool) and 0 <= dropout < 1:
        texts["lora_dropout"] = f"{dropout:f}".rstrip("0").rstrip(".") or "0"
    return texts


def _inexact(
    config: Mapping[str, object], ranks: set[int], roles: Mapping[str, int], whole: set[str], matched: list[str], saves: Callable[[str], bool]
) -> list[tuple[str, str]]:
    """What the settings cannot say: the parameters are counted, the estimate leaves them out."""
    found = [(key, why) for key, why in NOT_COUNTED.items() if not absent(config.get(key)) and config[key] not in (False, [], {})]
    if len(ranks) > 1:
        found.append(("rank_pattern", f"the estimate takes one rank for all; the parameters are counted with ranks {', '.join(map(str, sorted(ranks)))}"))
    if set(roles) - whole:
        parts = ", ".join(part for part in EVERYTHING if part in roles and part not in whole)
        found.append(("target_modules", f"the estimate adapts {parts} in every layer; the parameters are counted as the file says"))
    if any(saves(name) for name in matched):
        found.append(("modules_to_save", "the estimate leaves out modules that are trained whole; their parameters are counted"))
    if config.get("use_dora") is True:
        found.append(("use_dora", "the estimate leaves out DoRA’s magnitudes and its work; their parameters are counted"))
    if config.get("bias") in ("all", "lora_only"):
        found.append(("bias", "the estimate leaves out trained biases; they are counted"))
    return found
