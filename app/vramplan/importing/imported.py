"""A file somebody brings, whole: what it is, the settings it gives, its counts, and what was assumed, ignored and unsupported."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from vramplan.accountings import estimate
from vramplan.catalogue import CUSTOM, defaults, presets
from vramplan.checks import quoted
from vramplan.errors import NotExpressible, SettingsError
from vramplan.fields import BY_NAME
from vramplan.importing.adapter import OF_NO_ACCOUNT, Adapter, read_adapter
from vramplan.importing.chosen import inventory_of, trainable
from vramplan.importing.foreign import ADAPTER, MODEL, SETTINGS, kind_of
from vramplan.importing.inventory import Inventory
from vramplan.importing.model import Assumed, Left, Model, Read, read_model
from vramplan.importing.problems import ImportProblem
from vramplan.importing.quantization import storage
from vramplan.importing.text import read_object
from vramplan.settings import Settings, as_text, parse

MAX_LISTED = 200
"""Keys that are listed as ignored; a hostile file may have thousands."""


@dataclass(frozen=True)
class Imported:
    """What a file comes to.

    kind: model or adapter. label: what to call it. texts: the settings it gives. total, active, trainable: parameters.
    stored_bytes: of the weights as the file says they are stored, None where that is not known. countable: whether an
    accounting can estimate it. adapter: the modules an adapter trains.
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
    """Read a config.json or an adapter_config.json.

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


def import_model(config: Mapping[str, object], *, as_dense: bool = False) -> Model:
    """The model of a config.json that has been read. Raises ImportProblem, also for an adapter's file."""
    if kind_of(config) != MODEL:
        raise ImportProblem("other_file", "This is an adapter’s configuration.", "Bring the config.json of its base model here.")
    return read_model(config, as_dense=as_dense)


def _model(config: Mapping[str, object], texts: Mapping[str, str], as_dense: bool, repaired: tuple[str, ...], version: int | None) -> Imported:
    model = read_model(config, as_dense=as_dense)
    stored = storage(model.decoder, model.inventory)
    unsupported = list(model.unsupported)
    given: dict[str, str] = {}
    if model.countable:
        given = {"model": CUSTOM} | {name: as_text(value) for name, value in model.dimensions.items()}
        given |= {"method": "qlora", "quantization": stored.quantization} if stored.quantization else {}
    if stored.unsupported:
        unsupported.append(Left("quantization_config", stored.unsupported))
    settings = _settings(dict(texts) | given, version) if given else None
    if settings:
        unsupported += _difference(settings, model.inventory)
    chosen = settings or _settings({name: text for name, text in texts.items() if name in ("method", "rank", "adapter_targets")}, version)
    return Imported(
        kind=MODEL,
        label=model.family.label,
        texts=given,
        settings=settings,
        total=model.inventory.total,
        active=model.inventory.active,
        trainable=trainable(model.inventory, chosen),
        stored_bytes=stored.bytes,
        read=model.read,
        assumed=model.assumed,
        ignored=model.ignored[:MAX_LISTED],
        unsupported=tuple(unsupported),
        repaired=repaired,
        inventory=model.inventory,
    )


def _adapter(
    config: Mapping[str, object], texts: Mapping[str, str], base: Imported | None, repaired: tuple[str, ...], version: int | None
) -> Imported:
    named = config.get("base_model_name_or_path")
    preset = "" if base and base.texts else _preset_named(named)
    base = None if preset else base
    chosen = dict(texts) | ({"model": preset} if preset else {})
    settings = _settings(chosen, version)
    modules = base.inventory if base else inventory_of(settings)
    found = read_adapter(config, modules)
    countable = not base or bool(base.texts)
    given = {}
    if countable:
        given = ({"model": preset} if preset else {}) | found.texts | ({"method": "lora"} if settings.method == "full" else {})
    return Imported(
        kind=ADAPTER,
        label=f"LoRA adapter for {f'the {base.label} model' if base else settings.model_label}",
        texts=given,
        settings=_settings(chosen | given, version) if countable else None,
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
    """Settings of a whole run, as this calculator saves or prints them. What they leave out is a current default."""
    known = {name: as_text(value) for name, value in given.items() if name in BY_NAME and isinstance(value, str | int | float)}
    if not known:
        raise ImportProblem("no_settings", "The file’s settings have no name that this calculator knows.", "Bring a file that this calculator saved.")
    settings = _settings(known, None)
    found = inventory_of(settings)
    return Imported(
        kind=SETTINGS,
        label="Settings",
        texts=defaults() | known,
        settings=settings,
        total=found.total,
        active=found.active,
        trainable=trainable(found, settings),
        stored_bytes=None,
        read=tuple(Read(name, name, text) for name, text in known.items()),
        assumed=(),
        ignored=tuple(Left(str(name), "is no setting of this calculator") for name in given if name not in known)[:MAX_LISTED],
        unsupported=(),
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


def _settings(texts: Mapping[str, str], version: int | None) -> Settings:
    try:
        return parse(texts, version=version)
    except SettingsError as problem:
        raise ImportProblem("out_of_range", problem.errors[0].message, "Check the file’s numbers.") from None


def _difference(settings: Settings, found: Inventory) -> list[Left]:
    """What a custom decoder cannot say of the model, by its number of parameters."""
    try:
        counted = estimate(settings.replace(accounting="step")).parameters.total
    except NotExpressible as problem:
        return [Left(problem.field, problem.message)]
    rest = found.total - counted
    return [Left("model_type", f"{rest:,} of {found.total:,} parameters have no place in a custom decoder; the estimate leaves them out")] if rest else []
