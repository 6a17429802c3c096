"""What a file is if it is not what was asked for: named for what it is, from data/foreign.toml."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from vramplan.data import table
from vramplan.importing.problems import ImportProblem

MODEL, ADAPTER, SETTINGS, TRAINING = "model", "adapter", "settings", "training"
"""Kinds of files that are read."""


@dataclass(frozen=True)
class Foreign:
    """A kind of file or model that is not counted: how to tell, what it is, and what to do."""

    what: str
    hint: str
    keys: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@cache
def _entries(kind: str) -> tuple[Foreign, ...]:
    return tuple(
        Foreign(each["what"], each["hint"], tuple(each.get("keys", ())), tuple(each.get("types", ())))
        for each in table("foreign")[kind]
    )


def kind_of(content: Mapping[str, object]) -> str:
    """Whether a JSON object is a model's configuration, an adapter's, or settings of ours. Raises ImportProblem that names any other file."""
    if not content:
        raise ImportProblem("empty", "The JSON object is empty.", "Bring the model’s config.json.")
    if "peft_type" in content or {"r", "target_modules"} <= content.keys():
        return ADAPTER
    if isinstance(content.get("settings"), Mapping):
        return SETTINGS
    if "model_type" in content or "architectures" in content:
        return MODEL
    for each in _entries("file"):
        if all(key in content for key in each.keys):
            raise ImportProblem("other_file", f"This is {each.what}.", each.hint)
    return MODEL


def refuse_other_models(config: Mapping[str, object]) -> None:
    """Raise ImportProblem for a model that is no decoder with attention, saying what it is."""
    named = config.get("model_type")
    for each in _entries("model"):
        if (isinstance(named, str) and named in each.types) or any(config.get(key) is True for key in each.keys):
            shown = f"“{named}”" if isinstance(named, str) and named in each.types else "this model"
            raise ImportProblem("not_a_decoder", f"The file describes {shown}, {each.what}.", each.hint)
