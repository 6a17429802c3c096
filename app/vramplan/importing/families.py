"""Which families of models there are, and what their layers hold: families.toml and blocks.toml, read."""

from dataclasses import dataclass
from functools import cache

from vramplan.data import table
from vramplan.importing.expressions import names


@dataclass(frozen=True)
class Source:
    """Where a named value comes from: keys of config.json, first one wins, and what the model's class takes without them.

    default: a number, a flag, or an expression over other values; None where the class has none. null: what a key that is
    there and null stands for, likewise; None where that is the same as a missing key. zero_is_null: 0 is taken as null is.
    """

    name: str
    keys: tuple[str, ...]
    default: str | int | float | bool | None
    kind: str
    null: str | int | bool | None
    zero_is_null: bool = False


@dataclass(frozen=True)
class Entry:
    """One part of a model: a module or parameters, as blocks.toml says them, and when it is there."""

    facts: dict[str, str | int | bool]
    when: str | bool


@dataclass(frozen=True)
class Uncounted:
    """What a family may have that no accounting has terms for: when, and in words."""

    when: str | bool
    what: str
    key: str


@dataclass(frozen=True)
class Family:
    """A model_type: how its config.json is read, and what its decoder holds.

    values: in the order they are worked out, so that a default comes after what it is an expression of. per_layer:
    expressions over the values and the layer's index `i`. layer, outside: the parts of every layer, and of the rest.
    names: what modules are called here, by what the blocks call them. traits: of vramplan.architecture, as expressions.
    """

    name: str
    label: str
    values: tuple[Source, ...]
    per_layer: dict[str, str]
    layer: tuple[Entry, ...]
    outside: tuple[Entry, ...]
    names: dict[str, str]
    traits: dict[str, str | int | bool]
    uncounted: tuple[Uncounted, ...]
    left_out: tuple[Uncounted, ...]


KINDS = {bool: "flag", int: "whole", float: "number"}
"""The kind of a value by the type of its default; an expression is a whole number unless its entry says otherwise."""


@cache
def _table() -> dict[str, dict]:
    return table("families")


@cache
def families() -> dict[str, Family]:
    """Every family by its model_type, and by each other model_type that is the same."""
    entries = _table()
    found = {name: _family(name, _merged(name, entries)) for name in entries}
    return found | {other: found[name] for name, entry in entries.items() for other in entry.get("types", ())}


@cache
def class_names() -> dict[str, str]:
    """model_type by the names of the classes that a config.json may give as its architectures."""
    return {name: model_type for model_type, entry in _table().items() for name in entry.get("classes", ())}


def _merged(name: str, entries: dict[str, dict]) -> dict:
    """An entry with what it takes over from the one it is like."""
    own = entries[name]
    if "like" not in own:
        return own
    base = _merged(own["like"], entries)
    merged = base | own
    for part in ("per_layer", "names", "traits"):
        merged[part] = base.get(part, {}) | own.get(part, {})
    for part in ("uncounted", "left_out"):
        merged[part] = [*base.get(part, ()), *own.get(part, ())]
    values = base.get("values", {})
    merged["values"] = values | {key: values.get(key, {}) | entry for key, entry in own.get("values", {}).items()}
    return merged


def _family(name: str, entry: dict) -> Family:
    return Family(
        name=name,
        label=entry["label"],
        values=_in_order({key: _source(key, facts) for key, facts in entry["values"].items()}),
        per_layer=entry.get("per_layer", {}),
        layer=_entries(entry["layer"]),
        outside=_entries(entry["outside"]),
        names=entry.get("names", {}),
        traits=entry.get("traits", {}),
        uncounted=_parts(entry, "uncounted"),
        left_out=_parts(entry, "left_out"),
    )


def _parts(entry: dict, name: str) -> tuple[Uncounted, ...]:
    return tuple(Uncounted(each["when"], each["what"], each.get("key", "model_type")) for each in entry.get(name, ()))


def _source(name: str, facts: dict) -> Source:
    keys = facts.get("keys", name)
    default = facts.get("default")
    kind = facts.get("kind") or KINDS.get(type(default), "whole")
    return Source(name, (keys,) if isinstance(keys, str) else tuple(keys), default, kind, facts.get("null"), facts.get("zero_is_null", False))


def _in_order(sources: dict[str, Source]) -> tuple[Source, ...]:
    """The values of a family as they are written, but what a default, or null, is an expression of before it."""
    placed: dict[str, Source] = {}

    def place(source: Source) -> None:
        needed = [names(taken) for taken in (source.default, source.null) if isinstance(taken, str)]
        for name in sorted(frozenset().union(*needed) - placed.keys()):
            place(sources[name])
        placed.setdefault(source.name, source)

    for source in sources.values():
        place(source)
    return tuple(placed.values())


def _entries(parts: list) -> tuple[Entry, ...]:
    """The modules of some blocks, each with the conditions of its block and its own."""
    found = []
    for part in parts:
        block, when = (part, True) if isinstance(part, str) else (part["block"], part["when"])
        for facts in _blocks()[block]["modules"]:
            own = facts.get("when", True)
            both = when if own is True else own if when is True else f"({when}) and ({own})"
            found.append(Entry(facts, both))
    return tuple(found)


@cache
def _blocks() -> dict[str, dict]:
    return table("blocks")
