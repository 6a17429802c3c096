"""A file somebody brings, whole: what it is, the settings it gives, its counts, and what was assumed, ignored and unsupported."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from vramplan.accountings import estimate
from vramplan.catalogue import CUSTOM, defaults, presets
from vramplan.checks import check, quoted
from vramplan.errors import NotExpressible, SettingsError
from vramplan.fields import BY_NAME
from vramplan.importing.adapter import OF_NO_ACCOUNT, Adapter, read_adapter
from vramplan.importing.chosen import inventory_of, trainable
from vramplan.importing.foreign import ADAPTER, MODEL, SETTINGS, TRAINING, kind_of
from vramplan.importing.inventory import Inventory
from vramplan.importing.model import Assumed, Left, Read, read_model
from vramplan.importing.problems import ImportProblem
from vramplan.importing.quantization import storage
from vramplan.importing.text import check_size, read_object, refuse_other_formats, unfenced
from vramplan.link import MAX_PINS, PINS_IN_FILE
from vramplan.settings import Settings, as_text, of_checked, parse
from vramplan.training_files.parallel import COPIES
from vramplan.training_files.reading import TrainingFile
from vramplan.training_files.recognise import has_signs
from vramplan.training_files.tools import mirrors
from vramplan.training_files.training import is_training_text, read_training
from vramplan.units import count_text


@dataclass(frozen=True)
class Imported:
    """What a file comes to.

    kind: model, adapter, settings or training. label: what to call it. texts: the settings it gives; empty where no accounting has
    terms for it. settings: the run with them, None where there is none. total, active, trainable: parameters.
    stored_bytes: of the weights as the file says they are stored, None where that is not known. inventory: the modules of
    the model. adapter: those that an adapter trains. uncounted: why no accounting has terms for a training run.
    part: whether a training file gives some settings alone, and leaves the others as they are.
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
    uncounted: str = ""
    part: bool = False
    pins: tuple[str, ...] = ()


def import_text(
    text: str, texts: Mapping[str, str], *, as_dense: bool = False, base: "Imported | None" = None, version: int | None = None, tool: str = ""
) -> Imported:
    """Read a config.json, an adapter_config.json, settings that this calculator saved, or a training file.

    texts: the settings chosen so far, which the file's are laid over. as_dense: read an unknown model_type as a dense
    decoder. base: the model brought before, for a file that names no other; without it the chosen one is taken. tool: the
    tool that a training file is of, if somebody says which. Raises ImportProblem.
    """
    check_size(len(text))
    bare, repaired = unfenced(text.lstrip("\ufeff").strip())
    if tool or is_training_text(bare):
        refuse_other_formats(bare)
        return _training(read_training(bare, tool), texts, base, repaired, version)
    parsed = read_object(text)
    if has_signs(parsed.content):
        return _training(read_training(bare), texts, base, parsed.repaired, version)
    kind = kind_of(parsed.content)
    if kind == ADAPTER:
        return _adapter(parsed.content, texts, base, parsed.repaired, version)
    if kind == SETTINGS:
        return _run(parsed.content["settings"], parsed.content.get(PINS_IN_FILE, []), parsed.repaired)
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


def _training(
    found: TrainingFile, texts: Mapping[str, str], base: Imported | None, repaired: tuple[str, ...], version: int | None
) -> Imported:
    """A training file over what is chosen: all of a run, or the part that it gives."""
    if found.tool.part:
        return _part(found, texts, base, repaired, version)
    return _whole_run(found, texts, base, repaired, version)


def _part(
    found: TrainingFile, texts: Mapping[str, str], base: Imported | None, repaired: tuple[str, ...], version: int | None
) -> Imported:
    """A file that gives some settings of a run over what is chosen. Where it does not say how many GPUs there are, the run keeps its own."""
    chosen = _settings(texts, {}, version)
    given, assumed = dict(found.texts), list(found.assumed)
    if "sharding" in given and "replicas" not in given:
        divides = given["sharding"] not in COPIES
        given |= {"sharded_over": str(chosen.gpus if divides else 1), "replicas": str(1 if divides else chosen.gpus)}
        assumed.append(Assumed("sharded_over" if divides else "replicas", str(chosen.gpus), "the file does not say how many GPUs there are, so the run keeps its own"))
    if given:
        given["measured"] = defaults()["measured"]
    settings = _settings(texts, given, version)
    modules = base.inventory if base and base.texts else inventory_of(settings)
    return _of_training(found, f"{found.tool.label} configuration", given, settings, modules, found.read, assumed, found.unsupported, repaired)


def _whole_run(
    found: TrainingFile, texts: Mapping[str, str], base: Imported | None, repaired: tuple[str, ...], version: int | None
) -> Imported:
    """A training file over what is chosen: every setting that shapes a run, but for the model, where it names none that is known, and the card."""
    preset, why = _preset_or_mirror(found.model)
    base = None if preset or not (base and base.texts) else base
    usual, model = defaults(), {"model": preset} if preset else {}
    chosen = _settings(texts, model | {"sequence_length": "1"}, version)  # the chosen length may be more than this model takes
    assumed, unsupported = list(found.assumed), list(found.unsupported)
    read = found.read
    if preset:
        read = (Read(found.tool.model_key, "model", found.model, found.model_line), *read)
        assumed += [Assumed("model", preset, why)] if why else []
    else:
        unsupported.append(_other_model(found, base, chosen.model_label))
    given: dict[str, str] = {}
    if found.texts:
        given = {name: usual[name] for name in OF_A_RUN} | {name: texts[name] for name in found.keeps if name in texts} | _of_the_model(base) | dict(found.texts) | model
        _fit_length(given, found, chosen.max_sequence_length, assumed, unsupported)
    settings = _settings(texts, given, version) if given else chosen
    modules = base.inventory if base else inventory_of(settings)
    return _of_training(found, f"{found.tool.label} run", given, settings, modules, read, assumed, unsupported, repaired)


def _of_training(
    found: TrainingFile, label: str, given: dict[str, str], settings: Settings, modules: Inventory, read: Sequence[Read], assumed: Sequence[Assumed], unsupported: Sequence[Left],
    repaired: tuple[str, ...],
) -> Imported:
    """What a training file comes to."""
    return Imported(
        kind=TRAINING,
        label=label,
        texts=given,
        settings=settings if given else None,
        total=modules.total,
        active=modules.active,
        trainable=trainable(modules, settings),
        stored_bytes=None,
        read=tuple(read),
        assumed=tuple(assumed),
        ignored=found.ignored,
        unsupported=tuple(unsupported),
        repaired=(*repaired, *(note for note in found.notes if note not in repaired)),
        inventory=modules,
        uncounted=found.uncounted,
        part=found.tool.part,
    )


OF_A_RUN = (
    "task", "objective", "reference", "method", "rank", "adapter_targets", "quantization", "kbit_preparation", "base_precision", "lora_dropout", "replicas", "sharding",
    "sharded_over", "offload", "sequence_length", "micro_batch", "gradient_accumulation_steps", "trainable_precision", "optimizer", "optimizer_step", "loss", "layer_kernels",
    "checkpointing", "attention_kernel", "checkpoint_kind", "autocast", "torch_compile", "half_precision", "measured",
)
"""Settings that a training file decides, those that it does not name by leaving them to the stack; what was measured was another run."""


def _of_the_model(base: Imported | None) -> dict[str, str]:
    """What a model that is stored quantised says of the run."""
    return {name: base.texts[name] for name in ("method", "quantization") if base and "quantization" in base.texts}


def _preset_or_mirror(named: str) -> tuple[str, str]:
    """The preset of a base model’s name; and who says so, where it is another repository."""
    preset = _preset_named(named)
    other, source = mirrors().get(named.lower(), ("", ""))
    return (preset, "") if preset or not other else (other, f"{quoted(named)} has the same architecture: {source}")


def _other_model(found: TrainingFile, base: Imported | None, chosen: str) -> Left:
    """That the model the file names is not known, and which one is taken."""
    taken = f"the one brought before, {base.label}" if base else f"the chosen one, {chosen}"
    if not found.model:
        return Left(found.tool.model_key or "model", f"the file names no model, so {taken} is taken", found.model_line, "none")
    remedy = "" if base else "; bring its config.json first, or fetch it by name"
    return Left(found.tool.model_key, f"{quoted(found.model)} is none of the presets, so {taken} is taken{remedy}", found.model_line, "" if base else "none")


def _fit_length(given: dict[str, str], found: TrainingFile, longest: int, assumed: list[Assumed], unsupported: list[Left]) -> None:
    """Lay packed rows end to end, and cut what is longer than the model is estimated for."""
    rows, length = int(given["micro_batch"]), int(given["sequence_length"])
    if found.packed and rows > 1:
        if rows * length <= longest:
            given |= {"micro_batch": "1", "sequence_length": str(rows * length)}
            assumed.append(Assumed("sequence_length", str(rows * length), f"packing lays {count_text(rows)} rows of {count_text(length)} tokens end to end, as one row"))
        else:
            assumed.append(Assumed("micro_batch", str(rows), "packing lays the rows end to end; as one they are longer than the model, so as many rows of the same tokens are counted"))
    if length > longest:
        given["sequence_length"] = str(longest)
        unsupported.append(Left("sequence_length", f"a row has {count_text(length)} tokens; the model is estimated for {count_text(longest)} at most, which are counted", bound="lower"))


def _run(given: Mapping[str, object], pins: object, repaired: tuple[str, ...]) -> Imported:
    """Settings of a whole run, as this calculator saves or prints them, and runs pinned beside it. What they leave out is a current default.

    Texts that no run can have are given all the same: the form shows what is wrong with them.
    """
    runs = tuple(pin for pin in pins if isinstance(pin, str))[:MAX_PINS] if isinstance(pins, list) else ()
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
        read=(*(Read(name, name, text) for name, text in known.items()), *(Read(PINS_IN_FILE, "", pin) for pin in runs)),
        assumed=(),
        ignored=tuple(Left(str(name), "has no value that a setting takes" if name in BY_NAME else "is no setting of this calculator") for name in given if name not in known),
        unsupported=wrong if list(runs) == pins else (*wrong, Left(PINS_IN_FILE, f"{PINS_IN_FILE} must be a list of at most {MAX_PINS} query strings; the rest is left out")),
        repaired=repaired,
        inventory=found,
        pins=runs,
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
