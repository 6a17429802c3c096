"""A model's config.json becomes named values, an inventory of its modules, and the dimensions of a custom decoder.

What the file leaves out is taken from the model's class and listed as assumed; what nothing reads is listed as ignored;
what no accounting has terms for is listed as unsupported. Nothing is taken silently.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
import re

from vramplan.architecture import Architecture
from vramplan.catalogue import DIMENSIONS, TRAITS
from vramplan.checks import quoted
from vramplan.fields import BY_NAME
from vramplan.importing.expressions import Value, evaluate
from vramplan.importing.families import Family, Source, class_names, families
from vramplan.importing.foreign import refuse_other_models
from vramplan.importing.inventory import Inventory, Module, inventory
from vramplan.importing.problems import ImportProblem
from vramplan.importing.values import absent, at, typed
from vramplan.units import count_text

DENSE = "llama"
"""The family that an unknown dense decoder is read as, when somebody asks for that."""

CAN_BE_DENSE = "unknown_model_type"
"""The code of a file that can be read as a dense decoder if somebody asks for that."""

OTHER_SIGNS = {
    "num_local_experts": "it has experts",
    "num_experts": "it has experts",
    "n_routed_experts": "it has experts",
    "kv_lora_rank": "its attention goes through narrow maps (MLA)",
    "block_configs": "its layers differ from each other",
    "draft_vocab_size": "it is a draft model for speculative decoding",
    "quantization": "its weights are stored as MLX stores them",
}
"""Keys that say so, and what they say."""

DENSE_OFFERED = "If it is a dense decoder like Llama, it can be read as one, as an assumption: with --as-dense in a terminal, with the button on the page."
"""What can be done about a type that is not known."""

NESTED = ("text_config", "llm_config", "language_config", "language_model_config", "text_model_config", "thinker_config")
"""Keys under which files of models that also see or hear keep their decoder."""

SENSES = ("vision_config", "audio_config", "speech_config", "img_processor", "audio_processor")
"""Keys that say that a model also sees or hears, where its decoder is described beside them."""

SHARED = ("tie_word_embeddings", "quantization_config", "torch_dtype", "dtype")
"""Keys of a larger model that hold for its decoder too, unless that has its own."""

DECIDED_OUTSIDE = ("tie_word_embeddings",)
"""Of these, the ones that the larger model decides. Source: transformers 5.24.0, modeling_utils.py, tie_weights."""

MAX_NESTED = 2
"""How deep a decoder is looked for; the deepest known is thinker_config.text_config."""

BY_LAYER = "by_layer"
"""The kind of a value that single layers have of their own."""

LAYERS = "per_layer_config"
"""The key under which transformers saves what single layers have of their own, by their number. Source: 5.24.0, configuration_utils.py."""

MAX_MODULES = 100_000
"""Modules of a model that are looked at one by one; the largest published ones have about a thousand, experts not counted."""

NEEDED = ("hidden_size", "num_layers")
"""Values that a file has to have itself, unless it names the decoder inside a larger model."""

NOT_DENSE = (
    "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "kv_lora_rank", "ssm_cfg", "mamba_d_state", "state_size",
    "layers_block_type", "linear_num_value_heads", "is_encoder_decoder",
)
"""Keys that tell of a model which is no dense decoder, whatever its type is called."""

USUAL_TRAITS = {field.name: field.default for field in fields(Architecture) if field.name in TRAITS}
"""What a decoder has of each trait if its family does not say otherwise."""


@dataclass(frozen=True)
class Read:
    """One value the file gives: under which key, our name of it, and the line, where that is known."""

    key: str
    setting: str
    value: Value
    line: int = 0


@dataclass(frozen=True)
class Assumed:
    """One value the file leaves out, and why this one is taken. by_class: the model's class has it so. source: where a tool has it so."""

    setting: str
    value: Value
    why: str
    by_class: bool = False
    source: str = ""


@dataclass(frozen=True)
class Left:
    """Something in the file that is not used, and why. line: 0 where it is not known. bound: what the estimate then is of the run:
    the most it takes ("upper"), the least ("lower"), neither ("none"), or nothing where the estimate is as good as without it."""

    key: str
    why: str
    line: int = 0
    bound: str = ""


@dataclass(frozen=True)
class Model:
    """A model as its file describes it."""

    family: Family
    decoder: Mapping[str, object]
    values: dict[str, Value]
    inventory: Inventory
    read: tuple[Read, ...]
    assumed: tuple[Assumed, ...]
    ignored: tuple[Left, ...]
    unsupported: tuple[Left, ...]
    countable: bool

    @cached_property
    def dimensions(self) -> dict[str, Value]:
        """The settings of a custom decoder that stand for this model, or none where no accounting has terms for it."""
        if not self.countable:
            return {}
        traits = self.family.traits
        return {name: self.values[name] for name in DIMENSIONS} | {
            name: evaluate(traits[name], self.values) if name in traits else usual for name, usual in USUAL_TRAITS.items()
        }


def read_model(config: Mapping[str, object], *, as_dense: bool = False) -> Model:
    """The model of a config.json that has been read as JSON.

    as_dense: read a model_type that is not known as a dense decoder like Llama, and say so.
    Raises ImportProblem for what is no decoder, lacks what no class supplies, or holds values that cannot be.
    """
    refuse_other_models(config)
    decoder, where, outer = _decoder(config)
    family, assumed = _family(decoder, outer, as_dense=as_dense)
    values, read, more = _values(family, decoder, where, needed=NEEDED if not where else ())
    _must_hold_together(values)
    _layers_are_followed(family, decoder, where, values["num_layers"])
    try:
        found = inventory(family, values)
        _must_hold_together(values, found.modules)
        unsupported = [Left(each.key, each.what) for each in family.uncounted if evaluate(each.when, values)]
    except (IndexError, TypeError, KeyError, ZeroDivisionError):
        raise ImportProblem(
            "contradiction",
            f"The file’s values do not fit together for a {family.label} model: a list is shorter than its layers, a layer is of no kind they have, or a number is missing.",
            "Compare it with the config.json on the model’s page.",
        ) from None
    if sum(module.count for module in found.modules if not module.fused) > MAX_MODULES:
        raise ImportProblem("out_of_range", f"The model would have more than {count_text(MAX_MODULES)} modules.", "Check the file’s numbers of layers and experts.")
    unsupported += _other_signs(decoder, {each.key for each in read}) if not unsupported else []
    countable = not unsupported
    if countable:
        _heads_must_be_shared_out(values, {each.setting for each in more})
    unsupported += [Left(each.key, each.what) for each in family.left_out if evaluate(each.when, values)]
    unsupported += [Left(key, f"only the text decoder is counted, not what {key} describes") for key in _other_parts(config, nested=bool(where))]
    unread = {each.key.split(".")[0] for each in read} | {"model_type", "architectures"}
    ignored = tuple(Left(str(key), "does not change a count of parameters") for key in decoder if key not in unread and key not in (*NESTED, *SENSES))
    return Model(family, decoder, values, found, tuple(read), (*assumed, *more), ignored, tuple(unsupported), countable)


def _other_signs(decoder: Mapping[str, object], read: set[str]) -> list[Left]:
    """Keys that no entry of the family reads, and that tell of another structure than the family's."""
    return [
        Left(key, f"it tells of a model that is built otherwise than its type says: {what}")
        for key, what in OTHER_SIGNS.items()
        if key not in read and _tells(decoder, key)
    ]


def _tells(decoder: Mapping[str, object], key: str) -> bool:
    """Whether a key says that there is something: no null, none and one say that there is not."""
    return not absent(decoder.get(key)) and decoder[key] not in (0, 1, False)


def _decoder(config: Mapping[str, object]) -> tuple[Mapping[str, object], str, str]:
    """The part of a file that describes the decoder, the key it stands under, and the type of the whole."""
    outer = config.get("model_type")
    inner, where = config, ""
    while where.count(".") < MAX_NESTED and (key := next((key for key in NESTED if isinstance(inner.get(key), Mapping)), "")):
        inner, where = inner[key], f"{where}{key}."
    if where:
        whole = {key: config[key] for key in SHARED if key in config and (key not in inner or key in DECIDED_OUTSIDE)}
        inner = {**inner, **whole}
    return inner, where, outer if isinstance(outer, str) else ""


def _other_parts(config: Mapping[str, object], *, nested: bool) -> list[str]:
    """Keys of what else a model consists of: what sees or hears, and beside a nested decoder every other configuration."""
    others = [str(key) for key in config if str(key).endswith("_config") and key not in (*NESTED, "quantization_config", "generation_config")]
    return [key for key in config if key in SENSES or (nested and key in others)]


def _family(decoder: Mapping[str, object], outer: str, *, as_dense: bool) -> tuple[Family, list[Assumed]]:
    """The family a file belongs to, and what had to be assumed to say so."""
    known = families()
    named = decoder.get("model_type")
    classes = decoder.get("architectures")
    first = classes[0] if isinstance(classes, list) and classes and isinstance(classes[0], str) else ""
    headless = [Assumed("architectures", first, "the class has no head for words; it is counted with one, as for training on text")] if _has_no_head(first) else []
    for name in (named, f"{outer}_text", outer):
        plain = name.strip().lower() if isinstance(name, str) else ""
        if found := next((known[each] for each in known if plain == each.lower()), None):
            return found, headless
    if not (isinstance(named, str) and named) and (model_type := class_names().get(first)):
        return known[model_type], [Assumed("model_type", model_type, f"the file does not give it; its class is {first}"), *headless]
    told = named if isinstance(named, str) and named else first or outer
    dense = known[DENSE]
    if other := next((key for key in NOT_DENSE if _tells(decoder, key)), ""):
        raise ImportProblem(
            "not_dense",
            f"The model type {quoted(told)} is not one this calculator knows, and {other} says that it is no dense decoder."
            if told else f"The file does not say what model it is, and {other} says that it is no dense decoder.",
            "Bring the config.json of a model of a known family.",
        )
    missing = [source.keys[0] for source in dense.values if source.name in NEEDED and all(absent(decoder.get(key)) for key in source.keys)]
    if missing:
        what = f"The model type {quoted(told)} is not one this calculator knows" if told else "This is no config.json of a model: it names no model_type"
        raise ImportProblem("not_a_model", f"{what}, and the file has no {' or '.join(missing)}.", "Bring the config.json of a decoder language model.")
    if not as_dense:
        raise ImportProblem(
            CAN_BE_DENSE,
            f"The model type {quoted(told)} is not one this calculator knows." if told else "The file does not say what model it is: it names no model_type.",
            DENSE_OFFERED,
        )
    return dense, [Assumed("model_type", DENSE, f"{quoted(told)} is not known; read as a dense decoder like Llama, which you asked for")]


def _has_no_head(name: str) -> bool:
    """Whether a class, by its name, is a model without an output head for words."""
    return bool(re.search(r"(?<!LMHead)Model$|ForSequenceClassification$|ForTokenClassification$|ForQuestionAnswering$", name))


def _values(
    family: Family, decoder: Mapping[str, object], where: str, *, needed: tuple[str, ...]
) -> tuple[dict[str, Value], list[Read], list[Assumed]]:
    """Every named value of a family, and where each comes from."""
    values: dict[str, Value] = {}
    read: list[Read] = []
    assumed: list[Assumed] = []
    for source in family.values:
        if source.kind == BY_LAYER:
            if own := _by_layer(decoder, source.keys[0], where, values["num_layers"]):
                read.append(Read(source.keys[0], source.name, own))
            values[source.name] = own
            continue
        key = next((key for key in source.keys if not absent(at(decoder, key))), "")
        given = typed(at(decoder, key), source.kind, f"{where}{key}") if key else None
        if key and not (source.zero_is_null and given == 0):
            values[source.name] = given
            read.append(Read(key, source.name, given))
            continue
        null = next((key for key in source.keys if key in decoder), "") if source.null is not None else ""
        taken = source.null if null else source.default
        if taken is None or (source.keys and source.name in needed):
            raise _missing(source, where)
        try:
            values[source.name] = evaluate(taken, values)
        except ZeroDivisionError:
            raise ImportProblem("contradiction", f"{(source.keys or (source.name,))[0]} cannot be worked out: it would divide by 0.", "Check the file’s numbers.") from None
        if null:
            read.append(Read(null, source.name, values[source.name]))
        elif source.keys:
            assumed.append(Assumed(source.name, values[source.name], _why(source, family), by_class=True))
    return values, read, assumed


def _by_layer(decoder: Mapping[str, object], key: str, where: str, layers: int) -> tuple[int, ...]:
    """What the layers have of their own under a key like `per_layer_config.*.head_dim`, 0 where one has nothing; none without it."""
    group, _, name = key.partition(".*.")
    own = _own_of_layers(decoder, group, where, layers)
    if not own:
        return ()
    values = [own.get(layer, {}).get(name) for layer in range(layers)]
    return tuple(0 if absent(value) else typed(value, "whole", f"{where}{group}.{layer}.{name}") for layer, value in enumerate(values))


def _own_of_layers(decoder: Mapping[str, object], group: str, where: str, layers: int) -> dict[int, Mapping[str, object]]:
    """What single layers have of their own, by their number, which may be written with zeros in front."""
    given = decoder.get(group)
    if absent(given):
        return {}
    fits = isinstance(given, Mapping) and all(
        layer.isascii() and layer.isdecimal() and len(layer) < 9 and int(layer) < layers and isinstance(own, Mapping) for layer, own in given.items()
    )
    if not fits:
        raise ImportProblem(
            "wrong_type",
            f"{where}{group} must be an object with one object for each layer that it names by its number, below {count_text(layers)}.",
            "Bring the whole config.json, as it is on the model’s page.",
        )
    return {int(layer): own for layer, own in given.items()}


def _layers_are_followed(family: Family, decoder: Mapping[str, object], where: str, layers: int) -> None:
    """Refuse a file whose layers differ in what the family does not read layer by layer."""
    read = {key for source in family.values for key in source.keys if source.kind == BY_LAYER}
    named = {name for own in _own_of_layers(decoder, LAYERS, where, layers).values() for name in own}
    if other := sorted(name for name in named if f"{LAYERS}.*.{name}" not in read):
        raise ImportProblem(
            "contradiction",
            f"{where}{LAYERS} gives single layers a {quoted(other[0])} of their own, which is not followed for a {family.label} model.",
            "Bring the config.json as it is on the model’s page, not one that was saved again.",
        )


def _missing(source: Source, where: str) -> ImportProblem:
    named = " (or ".join(f"{where}{key}" for key in source.keys[:2]) + (")" if len(source.keys) > 1 else "")
    return ImportProblem("missing", f"The file has no {named}.", "Bring the whole config.json, as it is on the model’s page.")


def _why(source: Source, family: Family) -> str:
    """Why a value that the file leaves out is this one."""
    named = source.keys[0]
    if source.kind == "list":
        return f"{named} is not in the file; {family.label} models then go by their other values"
    if isinstance(source.default, str):
        return f"{named} is not in the file; {family.label} models then take {source.default.replace('//', '/')}"
    return f"{named} is not in the file; {family.label} models then take this"


def _heads_must_be_shared_out(values: Mapping[str, Value], assumed: set[str]) -> None:
    """Say that the key/value heads do not divide the others, and whether the file gave them at all."""
    heads, shared = values["num_attention_heads"], values["num_kv_heads"]
    if shared and heads % shared == 0:
        return
    told = "num_key_value_heads is not in the file, and the model’s class then takes" if "num_kv_heads" in assumed else "The number of key/value heads is"
    raise ImportProblem(
        "contradiction", f"{told} {count_text(shared)}, which does not divide the {count_text(heads)} attention heads.", "Check both numbers in the file."
    )


def _must_hold_together(values: Mapping[str, Value], modules: tuple[Module, ...] = ()) -> None:
    """Say which dimensions, and then which numbers of modules, cannot be together."""
    if many := next((module for module in modules if module.used > module.count), None):
        raise ImportProblem(
            "contradiction", f"Each token would go through {count_text(many.used)} experts, and there are {count_text(many.count)}.", "Check the file’s numbers of experts."
        )
    limits = BY_NAME["num_layers"].kind
    if "num_layers" in values and not limits.minimum <= values["num_layers"] <= limits.maximum:
        raise ImportProblem(
            "out_of_range",
            f"The number of layers must be {limits.minimum} to {count_text(limits.maximum)}; got {count_text(values['num_layers'])}.",
            "Check the file’s numbers.",
        )
