"""A file somebody brings, whole: what it is, the settings it gives, its counts, and what was assumed, ignored and unsupported."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vramplan.accountings import estimate
from vramplan.catalogue import CUSTOM, defaults, presets
from vramplan.checks import check, quoted
from vramplan.errors import NotExpressible, SettingsError
from vramplan.fields import BY_NAME
from vramplan.importing.adapter import OF_NO_ACCOUNT, Adapter, read_adapter
from vramplan.importing.chosen import inventory_of, trainable
from vramplan.importing.foreign import ADAPTER, MODEL, SETTINGS, kind_of
from vramplan.importing.inventory import Inventory
from vramplan.importing.model import Assumed, Left, Read, read_model
from vramplan.importing.problems import ImportProblem
from vramplan.importing.quantization import storage
from vramplan.importing.text import read_object
from vramplan.settings import Settings, as_text, of_checked, parse


@dataclass(frozen=True)
class Imported:
    """What a file comes to.

    kind: model, adapter or settings. label: what to call it. texts: the settings it gives; empty where no accounting has
    terms for it. settings: the run with them, None where there is none. total, active, trainable: parameters.
    stored_bytes: of the weights as the file says they are stored, None where that is not known. inventory: the modules of
    the model. adapter: those that an adapter trains.
    """

    kind: str
    label: str
    texts: dict[str, str]
    settings: Settings | None
    total: int
    active: int
    trainable: int
    stored_bytes: int | None
    read: tuple[Read, ...]
    assumed: tuple[Assumed, ...]
    ignored: tuple[Left, ...]
    unsupported: tuple[Left, ...]
    repaired: tuple[str, ...]
    inventory: Inventory = field(repr=False)
    adapter: Adapter | None = None


def import_text(
    text: str, texts: Mapping[str, str], *, as_dense: bool = False, base: "Imported | None" = None, version: int | None = None
) -> Imported:
    """Read a config.json, an adapter_config.json, or settings that this calculator saved.

    texts: the settings chosen so far, which the file's are laid over. as_dense: read an unknown model_type as a dense
    decoder. base: the model brought before, for an adapter that names no other; without it the chosen one is taken.
    Raises ImportProblem.
    """
    parsed = read_object(text)
    kind = kind_of(parsed.content)
    if kind == ADAPTER:
        return _adapter(parsed.content, texts, base, parsed.repaired, version)
    if kind == SETTINGS:
        return _run(parsed.content["settings"], parsed.repaired)
    return _model(parsed.content, texts, as_dense, parsed.repaired, version)


def _model(config: Mapping[str, object], texts: Mapping[str, str], as_dense: bool, repaired: tuple[str, ...], version: int | None) -> Imported:
    model = read_model(config, as_dense=as_dense)
    stored = storage(model.decoder, model.inventory)
    unsupported = [*model.unsupported, *([Left("quantization_config", stored.unsupported)] if stored.unsupported else [])]
    given: dict[str, str] = {}
    assumed = model.assumed
    if model.countable:
        given = {"model": CUSTOM} | {name: as_text(value) for name, value in model.dimensions.items()}
        if stored.quantization:
            given |= {"method": "qlora", "quantization": stored.quantization}
        elif texts.get("quantization") in OF_CHECKPOINTS:
            given["quantization"] = defaults(version)["quantization"]
            assumed += (Assumed("quantization", given["quantization"], "the chosen one was that of another file, and this one’s weights are not quantised"),)
    settings = _settings(texts, given, version)
    if given:
        unsupported += _difference(settings, model.inventory)
    return Imported(
        kind=MODEL,
        label=model.family.label,
        texts=given,
        settings=settings if given else None,
        total=model.inventory.total,
        active=model.inventory.active,
        trainable=trainable(model.inventory, settings),
        stored_bytes=stored.bytes,
        read=model.read,
        assumed=assumed,
        ignored=model.ignored,
        unsupported=tuple(unsupported),
        repaired=repaired,
        inventory=model.inventory,
    )


OF_CHECKPOINTS = ("gptq", "gptq-ungrouped", "awq")
"""Quantisations that are a checkpoint's own, and not made when it is loaded."""


def _adapter(
    config: Mapping[str, object], texts: Mapping[str, str], base: Imported | None, repaired: tuple[str, ...], version: int | None
) -> Imported:
    named = config.get("base_model_name_or_path")
    preset = "" if base and base.texts else _preset_named(named)
    base = None if preset else base
    chosen = {"model": preset} if preset else {}
    settings = _settings(texts, chosen, version)
    modules = base.inventory if base else inventory_of(settings)
    found = read_adapter(config, modules)
    given: dict[str, str] = {}
    if found.texts and (not base or base.texts):
        given = chosen | found.texts | ({"method": "lora"} if settings.trains_base else {})
    return Imported(
        kind=ADAPTER,
        label=f"LoRA adapter for {f'the {base.label} model' if base else settings.model_label}",
        texts=given,
        settings=_settings(texts, given, version) if given else None,
        total=modules.total,
        active=modules.active,
        trainable=found.trainable,
        stored_bytes=None,
        read=tuple(Read(key, ADAPTER_SETTINGS.get(key, ""), _plain(config[key])) for key in config if key in ADAPTER_KEYS),
        assumed=_assumed_base(named, preset, base, settings),
        ignored=tuple(Left(key, "does not change a size") for key in config if key in OF_NO_ACCOUNT),
        unsupported=tuple(Left(key, why) for key, why in found.inexact),
        repaired=repaired,
        inventory=modules,
        adapter=found,
    )


def _run(given: Mapping[str, object], repaired: tuple[str, ...]) -> Imported:
    """Settings of a whole run, as this calculator saves or prints them. What they leave out is a current default.

    Texts that no run can have are given all the same: the form shows what is wrong with them.
    """
    known = {name: as_text(value) for name, value in given.items() if name in BY_NAME and isinstance(value, str | int | float)}
    if not known:
        raise ImportProblem("no_settings", "The file’s settings have no name that this calculator knows.", "Bring a file that this calculator saved.")
    try:
        settings = parse(known)
    except SettingsError as problem:
        settings, wrong = None, tuple(Left(error.field, error.message.rstrip(".")) for error in problem.errors)
    else:
        wrong = ()
    found = inventory_of(settings) if settings else Inventory(())
    return Imported(
        kind=SETTINGS,
        label="Settings",
        texts=known,
        settings=settings,
        total=found.total,
        active=found.active,
        trainable=trainable(found, settings) if settings else 0,
        stored_bytes=None,
        read=tuple(Read(name, name, text) for name, text in known.items()),
        assumed=(),
        ignored=tuple(Left(str(name), "has no value that a setting takes" if name in BY_NAME else "is no setting of this calculator") for name in given if name not in known),
        unsupported=wrong,
        repaired=repaired,
        inventory=found,
    )


def _assumed_base(named: object, preset: str, base: Imported | None, settings: Settings) -> tuple[Assumed, ...]:
    """Which model the adapter was matched with, and why."""
    if preset:
        return (Assumed("model", preset, f"base_model_name_or_path is {quoted(str(named))}"),)
    why = "it was brought before" if base else "it is the chosen one"
    return (Assumed("model", base.label if base else settings.model_label, f"{why}; the adapter names {quoted(str(named))}" if named else why),)


ADAPTER_KEYS = (
    "r", "target_modules", "exclude_modules", "rank_pattern", "modules_to_save", "use_dora", "lora_bias", "bias", "layers_to_transform", "layers_pattern",
    "lora_dropout",
)
"""Keys of an adapter's file that change what is trained."""

ADAPTER_SETTINGS = {"r": "rank", "target_modules": "adapter_targets", "lora_dropout": "lora_dropout"}
"""Our names of what an adapter's file gives."""


def _plain(value: object) -> object:
    return tuple(value) if isinstance(value, list) else str(value) if isinstance(value, dict | float) else value


def _preset_named(named: object) -> str:
    """The preset whose repository a base model's name is, in any case of letters."""
    if not isinstance(named, str):
        return ""
    return next((name for name, preset in presets().items() if preset.repository.lower() == named.lower()), "")


def _settings(texts: Mapping[str, str], given: Mapping[str, str], version: int | None) -> Settings:
    """The run with what a file gives. What is wrong elsewhere in it is not the file's fault, and takes its default here."""
    every = {**texts, **given}
    checked = check(every, defaults(version))
    for error in checked.errors:
        if error.field in given:
            raise ImportProblem("out_of_range", f"{error.message.partition('. ')[0].rstrip('.')}.", "Check the file’s numbers.")
    wrong = {error.field for error in checked.errors}
    return parse({name: text for name, text in every.items() if name not in wrong}, version=version) if wrong else of_checked(checked)


def _difference(settings: Settings, found: Inventory) -> list[Left]:
    """What a custom decoder cannot say of the model, by its number of parameters."""
    try:
        counted = estimate(settings.replace(accounting="step")).parameters.total
    except NotExpressible as problem:
        return [Left(problem.field, problem.message)]
    rest = found.total - counted
    return [Left("model_type", f"{rest:,} of {found.total:,} parameters have no place in a custom decoder; the estimate leaves them out")] if rest else []
