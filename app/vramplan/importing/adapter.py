"""A PEFT adapter_config.json: which modules of a model it trains, how many parameters those are, and the same as settings.

Source of every rule: peft 0.21.2, tuners/tuners_utils.py (check_target_module_exists, _maybe_include_all_linear_layers),
utils/other.py (get_pattern_key, _set_trainable), tuners/lora/layer.py and dora.py.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from vramplan.checks import quoted
from vramplan.importing.inventory import LINEAR, OTHER, Inventory, Module, concrete
from vramplan.importing.patterns import Pattern, Work
from vramplan.importing.problems import ImportProblem
from vramplan.importing.values import absent, shown, typed
from vramplan.targets import EVERYTHING, MIXER, NAMED, attention_maps, named_parts

EVERY_LINEAR = "all-linear"
"""The word for every linear map but the head, in any case of letters."""

ANY_LAYER = re.compile(r".*?\.[^.]*\.(\d+)\.")
"""The number of a layer in the name of a module, where no pattern names the list of layers."""

PLAIN_NAME = re.compile(r"[\w.]+")
"""A key that names modules and is no pattern beyond that."""

MAX_RANKS = 1_000
"""Entries of rank_pattern that are read; models have a few hundred adapted modules."""

BIASES = ("none", "all", "lora_only")
"""What `bias` may be. Source: peft 0.21.2, tuners/lora/config.py."""

SEE_PEFT = "Compare it with the file PEFT wrote."

NOT_COUNTED = {
    "layer_replication": "layers are not replicated here",
    "megatron_config": "layers split over GPUs are counted whole",
    "use_qalora": "QA-LoRA’s smaller inputs are not counted",
    "use_bdlora": "its blocks are not counted",
    "target_parameters": "adapters on parameters that are no modules (experts) are not counted",
    "ensure_weight_tying": "adapters that are tied like their modules are counted one by one",
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

    matched, unmatched: names of modules with and without an adapter or a copy of their own; unmatched lists linear maps.
    unknown: targets that match nothing. texts: the same as settings, empty where they cannot say it. inexact: keys and
    what about them the settings cannot say.
    """

    trainable: int
    matched: tuple[str, ...]
    unmatched: tuple[str, ...]
    unknown: tuple[str, ...]
    texts: dict[str, str]
    inexact: tuple[tuple[str, str], ...]


def read_adapter(config: Mapping[str, object], inventory: Inventory) -> Adapter:
    """The modules of this model that the adapter trains. Raises ImportProblem for a file that cannot be followed."""
    rank = _rank(config)
    bias, per_output = _bias(config), _flag(config, "use_dora") + _flag(config, "lora_bias")
    if per_output > 1:
        raise ImportProblem("refused_by_peft", "use_dora and lora_bias are both true, which PEFT refuses.", "Leave one of them out.")
    work = Work()
    chooses, saves, rank_of = _chooser(config, work), _saver(config), _ranks(config, rank, work)
    adapted: list[tuple[str, Module]] = []
    saved: list[tuple[str, Module]] = []
    left: list[tuple[str, Module]] = []
    for name, module in concrete(module for module in inventory.modules if not module.fused):
        if saves(name):
            saved.append((name, module))
        elif module.kind != OTHER and chooses(name, module):
            adapted.append((name, module))
        else:
            left.append((name, module))
    if not adapted and not saved:
        layers = config.get("layers_to_transform")
        if not absent(layers) and layers != [] and not absent(config.get("target_modules")):
            raise ImportProblem(
                "no_match", f"None of the model’s modules is a target of this adapter in the layers it names: {_targets_shown(config)}.",
                "Check layers_to_transform and layers_pattern, and choose the model the adapter was made for.",
            )
        raise ImportProblem(
            "no_match", f"None of the model’s modules is a target of this adapter: {_targets_shown(config)}.",
            "Choose the model the adapter was made for, then bring the file again.",
        )
    ranks = {name: rank_of(name) for name, _ in adapted}
    pairs = sum(ranks[name] * (module.inputs + module.outputs) + per_output * module.outputs for name, module in adapted)
    copies = sum(module.inputs * module.outputs + module.bias for _, module in saved)
    biased = {"none": (), "all": (*adapted, *left), "lora_only": adapted}[bias]
    return Adapter(
        trainable=pairs + copies + sum(module.bias for _, module in biased),
        matched=tuple(name for name, _ in (*adapted, *saved)),
        unmatched=tuple(name for name, module in left if module.kind == LINEAR),
        unknown=_unknown(config, inventory),
        texts=_texts(config, inventory, set(ranks.values()), rank, adapted),
        inexact=tuple(_inexact(config, inventory, adapted, saved, set(ranks.values()))),
    )


def _rank(config: Mapping[str, object]) -> int:
    kind = config.get("peft_type", "LORA")
    if kind != "LORA":
        named = quoted(kind) if isinstance(kind, str) else shown(kind)
        raise ImportProblem("not_lora", f"This is an adapter of the type {named}, not LoRA.", "Bring the adapter_config.json of a LoRA adapter.")
    if absent(config.get("r")):
        raise ImportProblem("missing", "The file has no r, the adapter’s rank.", "Bring the whole adapter_config.json.")
    return _positive(config["r"], "r")


def _positive(value: object, key: str) -> int:
    negative = isinstance(value, int) and value < 0
    number = value if negative else typed(value, "whole", key, SEE_PEFT)
    if number < 1:
        raise ImportProblem("out_of_range", f"{key} must be at least 1; got {shown(number)}.", SEE_PEFT)
    return number


def _flag(config: Mapping[str, object], key: str) -> bool:
    return not absent(config.get(key)) and typed(config[key], "flag", key, SEE_PEFT)


def _bias(config: Mapping[str, object]) -> str:
    bias = config.get("bias", "none")
    if bias not in BIASES:
        raise ImportProblem("wrong_type", f"bias must be one of {', '.join(BIASES)}; got {shown(bias)}.", SEE_PEFT)
    return bias


def _chooser(config: Mapping[str, object], work: Work) -> Callable[[str, Module], bool]:
    """Whether a module gets an adapter."""
    targets = config.get("target_modules")
    if absent(targets):
        missing = "is null" if "target_modules" in config else "is not in the file"
        raise ImportProblem(
            "missing", f"target_modules {missing}, which leaves the choice to PEFT’s version.", "Save the adapter once with PEFT; it then writes the names it chose."
        )
    if targets == [] and absent(config.get("modules_to_save")):
        raise ImportProblem("no_match", "target_modules is empty: the adapter trains nothing.", SEE_PEFT)
    excluded = _matcher(config.get("exclude_modules"), "exclude_modules", work)
    if isinstance(targets, str) and targets.lower() == EVERY_LINEAR:
        return lambda name, module: module.adaptable and not excluded(name)
    wanted = _matcher(targets, "target_modules", work)
    if isinstance(targets, str):
        return lambda name, module: wanted(name) and not excluded(name)
    in_layer = _layer_filter(config)
    return lambda name, module: wanted(name) and (name in targets or in_layer(name)) and not excluded(name)


def _matcher(targets: object, key: str, work: Work) -> Callable[[str], bool]:
    """Whether a module's name is one of these: a pattern for all of it, or names of which one ends it."""
    if absent(targets):
        return lambda name: False
    if isinstance(targets, str):
        return Pattern(targets, key, work).fullmatch
    names = frozenset(_names(targets, key))
    return lambda name: not names.isdisjoint(_endings(name))


def _names(value: object, key: str) -> tuple[str, ...]:
    names = typed(value, "list", key, SEE_PEFT)
    if not all(isinstance(each, str) and each for each in names):
        raise ImportProblem("wrong_type", f"{key} must be a list of names{' or one pattern' if key.endswith('_modules') else ''}; got {shown(value)}.", SEE_PEFT)
    return names


def _endings(name: str) -> Iterable[str]:
    """A module's name, and what of it follows each dot."""
    while name:
        yield name
        name = name.partition(".")[2]


def _layer_filter(config: Mapping[str, object]) -> Callable[[str], bool]:
    layers = config.get("layers_to_transform")
    if absent(layers) or layers == []:
        return lambda name: True
    wanted = set(typed([layers] if isinstance(layers, int) and not isinstance(layers, bool) else layers, "wholes", "layers_to_transform", SEE_PEFT))
    lists = config.get("layers_pattern")
    named = () if absent(lists) else _names([lists] if isinstance(lists, str) and lists else lists, "layers_pattern")
    if any(not PLAIN_NAME.fullmatch(each) for each in named):
        raise ImportProblem("pattern", f"layers_pattern must be names of lists of layers; got {shown(lists)}.", "Give plain names, such as layers.")
    places = [re.compile(rf"(?:^|.*?\.){re.escape(each)}\.(\d+)\.") for each in named] or [ANY_LAYER]

    def chosen(name: str) -> bool:
        found = next(filter(None, (place.match(name) for place in places)), None)
        return found is not None and int(found[1]) in wanted

    return chosen


def _saver(config: Mapping[str, object]) -> Callable[[str], bool]:
    """Whether a module is trained as a whole copy: its name, or that of one it lies in, ends with one of the given texts.

    Not only whole names: `norm` saves every layer's norms too, as PEFT's own matching does.
    """
    saved = config.get("modules_to_save")
    names = () if absent(saved) else _names(saved, "modules_to_save")
    inside = tuple(f"{each}." for each in names)
    return lambda name: name.endswith(names) or any(part in name for part in inside)


def _ranks(config: Mapping[str, object], rank: int, work: Work) -> Callable[[str], int]:
    """The rank of a module: the first entry that fits its end decides."""
    given = config.get("rank_pattern")
    if absent(given) or given == {}:
        return lambda name: rank
    if not isinstance(given, Mapping) or len(given) > MAX_RANKS:
        raise ImportProblem("wrong_type", f"rank_pattern must be an object of at most {MAX_RANKS:,} names and ranks; got {shown(given)}.", SEE_PEFT)
    rules = [(_end_of(key, work), _positive(value, f"rank_pattern of {quoted(key)}")) for key, value in given.items()]
    return lambda name: next((value for fits, value in rules if fits(name)), rank)


def _end_of(key: str, work: Work) -> Callable[[str], bool]:
    if PLAIN_NAME.fullmatch(key):
        return lambda name: name == key or name.endswith(f".{key}")
    return Pattern(rf"(.*\.)?({key})", "rank_pattern", work).fullmatch


def _unknown(config: Mapping[str, object], inventory: Inventory) -> tuple[str, ...]:
    """Targets in a list that no module of the model has."""
    targets = config.get("target_modules")
    if not isinstance(targets, list):
        return ()
    known = {ending for name, _ in concrete(module for module in inventory.modules if not module.fused) for ending in _endings(name)}
    return tuple(each for each in targets if each not in known)


def _targets_shown(config: Mapping[str, object]) -> str:
    targets = config.get("target_modules")
    return quoted(targets) if isinstance(targets, str) else quoted(", ".join(map(str, targets or ())))


ATTENTIONS = tuple(attention_maps(q_lora_rank=rank, kv_lora_rank=latent) for rank, latent in ((0, 0), (0, 1), (1, 1)))
"""The maps of every kind of attention."""


def _texts(config: Mapping[str, object], inventory: Inventory, ranks: set[int], rank: int, adapted: Iterable[tuple[str, Module]]) -> dict[str, str]:
    """The adapter as settings, as far as they can say it; nothing where no target has a name there."""
    roles = {role for _, module in adapted for role in module.role.split()}
    parts = tuple(part for part in EVERYTHING if part in roles)
    if not parts:
        return {}
    mixer = _mixer(inventory)
    named = next((name for name in NAMED for attention in ATTENTIONS if named_parts(name, attention, mixer) == parts), ",".join(parts))
    return {"rank": str(ranks.pop() if len(ranks) == 1 else rank), "adapter_targets": named} | _dropout(config)


def _mixer(inventory: Inventory) -> tuple[str, ...]:
    """The maps in and out of what a model has in place of attention, where it has such."""
    return MIXER if any(module.role in MIXER for module in inventory.modules) else ()


def _dropout(config: Mapping[str, object]) -> dict[str, str]:
    value = config.get("lora_dropout")
    if absent(value):
        return {}
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < 1:
        raise ImportProblem("out_of_range", f"lora_dropout must be a number from 0 to below 1; got {shown(value)}.", SEE_PEFT)
    return {"lora_dropout": f"{Decimal(repr(value)).normalize():f}"}


def _inexact(
    config: Mapping[str, object], inventory: Inventory, adapted: list[tuple[str, Module]], saved: list[tuple[str, Module]], ranks: set[int]
) -> Iterable[tuple[str, str]]:
    """What the settings cannot say: the parameters are counted, the estimate leaves them out or takes them otherwise."""
    yield from ((key, why) for key, why in NOT_COUNTED.items() if not absent(config.get(key)) and config[key] not in (False, [], {}))
    if len(ranks) > 1:
        yield "rank_pattern", f"the estimate takes one rank for all; the parameters are counted with ranks {', '.join(map(str, sorted(ranks)))}"
    there, here = (_per_role(module for module in modules) for modules in (inventory.modules, (module for _, module in adapted)))
    if partly := [part for part in EVERYTHING if part in here and here[part] < there[part]]:
        yield "target_modules", f"the estimate adapts {', '.join(partly)} in every layer; the parameters are counted as the file says"
    if any(not module.role for _, module in adapted):
        yield "target_modules", "the estimate has no name for some of the adapted modules; their parameters are counted"
    targets = config.get("target_modules")
    named = set(EXPERT_MAPS) & set(map(str, targets)) if isinstance(targets, list) else str(targets).lower() == EVERY_LINEAR
    if named and any(module.fused for module in inventory.modules):
        yield "target_modules", "adapters on experts are not counted: transformers 5 keeps experts as parameters, not as modules"
    if saved:
        yield "modules_to_save", "the estimate leaves out modules that are trained whole; their parameters are counted"
    if _flag(config, "use_dora"):
        yield "use_dora", "the estimate leaves out DoRA’s magnitudes and its work; their parameters are counted"
    if _flag(config, "lora_bias"):
        yield "lora_bias", "the estimate leaves out the biases of the adapters; they are counted"
    if _bias(config) != "none":
        yield "bias", "the estimate leaves out trained biases; they are counted"


def _per_role(modules: Iterable[Module]) -> dict[str, int]:
    """How many modules there are of each role."""
    found: dict[str, int] = {}
    for module in modules:
        for role in module.role.split():
            found[role] = found.get(role, 0) + 1
    return found
