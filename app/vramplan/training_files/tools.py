"""The tools whose files are read, from their data files: what each key decides, leaves alone, or does that no setting says."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from vramplan.data import table

TOOLS = ("axolotl", "llama-factory", "swift", "trl", "torchtune", "deepspeed", "accelerate")
"""Tools whose files are read, the likelier first where a file could be of several."""

BOUNDS = ("upper", "lower", "none")
"""What an estimate is where something of the file cannot be said: the most, the least, or neither."""


@dataclass(frozen=True)
class Decides:
    """A key that gives one setting. values: texts of the setting by the words of the file; empty where the file has the setting's own,
    a number. default: what the tool takes, as a word of the file; None where the tool has none."""

    key: str
    setting: str
    values: Mapping[str, str]
    default: str | None
    source: str

    def text(self, word: str) -> str | None:
        """The setting’s text for a word of the file; None for a word that the table does not have."""
        return self.values.get(word.lower()) if self.values else word

    def word(self, text: str) -> str | None:
        """The word of the file for a setting’s text; None where no word says it."""
        return next((word for word, known in self.values.items() if known == text), None) if self.values else text


@dataclass(frozen=True)
class Combined:
    """A key that counts together with others. default: what the tool takes where it is missing."""

    key: str
    default: str | None
    source: str


@dataclass(frozen=True)
class NoEffect:
    """Keys that change nothing in memory, and why."""

    keys: tuple[str, ...]
    why: str
    source: str


@dataclass(frozen=True)
class Inexact:
    """Keys that change memory in a way that no setting says, but for some of their values."""

    keys: tuple[str, ...]
    unless: tuple[str, ...]
    why: str
    bound: str
    source: str


@dataclass(frozen=True)
class Optimizer:
    """Names of an optimizer, the setting it is counted as, and what that makes of the estimate where it is another."""

    names: tuple[str, ...]
    setting: str
    why: str
    bound: str


@dataclass(frozen=True)
class ReleaseSign:
    """Keys that only some releases have, and the stack that stands for those."""

    keys: tuple[str, ...]
    stack: str
    why: str


@dataclass(frozen=True)
class Tool:
    """A tool, as its tables say. part: its files give some settings of a run, and leave the others as they are."""

    name: str
    label: str
    version: str
    stack: str
    model_key: str
    signs: tuple[tuple[str, ...], ...]
    commands: tuple[tuple[str, ...], ...]
    scripts: tuple[str, ...]
    decides: tuple[Decides, ...]
    combined: Mapping[str, Combined]
    no_effect: tuple[NoEffect, ...]
    inexact: tuple[Inexact, ...]
    releases: tuple[ReleaseSign, ...]
    part: bool

    @cached_property
    def keys(self) -> frozenset[str]:
        """Every key that is known."""
        lists = (*(each.keys for each in self.no_effect), *(each.keys for each in self.inexact), *(each.keys for each in self.releases))
        return frozenset((self.model_key, *self.combined, *(each.key for each in self.decides), *(key for keys in lists for key in keys)))


@cache
def tool(name: str) -> Tool:
    """A tool by its name, the tables it extends before its own; a key that both have is its own."""
    content = table(f"tool_{name.replace('-', '_')}")
    about = content["tool"]
    base = tool(about["extends"]) if "extends" in about else None
    own = frozenset(key for kind in ("decides", "combined", "no_effect", "inexact") for entry in content.get(kind, ()) for key in _keys(entry))
    inherited = _without(base, own) if base else ((), {}, (), (), ())
    decides = tuple(
        Decides(each["key"], each["setting"], {word.lower(): text for word, text in each.get("values", {}).items()}, each.get("default"), each["source"])
        for each in content.get("decides", ())
    )
    combined = {key: Combined(key, each.get("default"), each["source"]) for each in content.get("combined", ()) for key in _keys(each)}
    return Tool(
        name,
        about["label"],
        about["version"],
        about.get("stack", ""),
        about.get("model_key", ""),
        tuple(map(tuple, about.get("signs", ()))),
        tuple(tuple(each.split()) for each in about.get("commands", ())),
        tuple(about.get("scripts", ())),
        (*decides, *inherited[0]),
        inherited[1] | combined,
        (*(NoEffect(tuple(each["keys"]), each["why"], each["source"]) for each in content.get("no_effect", ())), *inherited[2]),
        (*(_inexact(each) for each in content.get("inexact", ())), *inherited[3]),
        (*(ReleaseSign(tuple(each["keys"]), each["stack"], each["why"]) for each in content.get("signs_of_release", ())), *inherited[4]),
        about.get("part", False),
    )


def _keys(entry: Mapping) -> tuple[str, ...]:
    return tuple(entry.get("keys", ())) or (entry["key"],)


def _inexact(entry: Mapping) -> Inexact:
    return Inexact(_keys(entry), tuple(entry.get("unless", ())), entry["why"], entry["bound"], entry["source"])


def _without(base: Tool, own: frozenset[str]) -> tuple:
    """What a tool has of the one it extends: everything but the keys it has itself."""

    def left(keys: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(key for key in keys if key not in own)

    return (
        tuple(each for each in base.decides if each.key not in own),
        {key: each for key, each in base.combined.items() if key not in own},
        tuple(NoEffect(left(each.keys), each.why, each.source) for each in base.no_effect),
        tuple(Inexact(left(each.keys), each.unless, each.why, each.bound, each.source) for each in base.inexact),
        base.releases,
    )


@cache
def optimizers() -> dict[str, Optimizer]:
    """Every optimizer that files name, by its name in small letters."""
    found = {}
    for each in table("optimizers")["optimizer"]:
        entry = Optimizer(tuple(each["names"]), each["setting"], each.get("why", ""), each.get("bound", ""))
        found |= {name.lower(): entry for name in entry.names}
    return found


def optimizer_name(setting: str) -> str | None:
    """The name under which transformers knows an optimizer; None where it has none."""
    return next((each.names[0] for each in optimizers().values() if each.setting == setting and not each.bound), None)


@dataclass(frozen=True)
class NamedFile:
    """A configuration that files name and that is published: of a tool, by the end of its path. texts: the settings it gives."""

    of: str
    names: tuple[str, ...]
    texts: Mapping[str, str]
    gpus: int
    source: str


@cache
def named_files() -> tuple[NamedFile, ...]:
    """Every published configuration that is known by name."""
    return tuple(
        NamedFile(each["of"], tuple(each["names"]), {name: each[name] for name in ("sharding", "offload") if name in each}, each.get("gpus", 0), each["source"])
        for each in table("named_files")["file"]
    )


@cache
def mirrors() -> dict[str, tuple[str, str]]:
    """Presets by other names of models of the same architecture, of repositories and of builders, in small letters; and who says so."""
    return {name.lower(): (each["preset"], each["source"]) for each in table("mirrors")["mirror"] for name in each["names"]}
