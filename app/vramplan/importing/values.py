"""One value of somebody's file as the type it has to have, or one sentence."""

from collections.abc import Mapping
import json

from vramplan.checks import quoted
from vramplan.importing.expressions import Value
from vramplan.importing.problems import ImportProblem
from vramplan.units import count_text

MAX_WHOLE = 10**9
"""Largest whole number a dimension may be; no model is near it, and sizes stay quick to compute."""

MAX_ITEMS = 4_096
"""Longest list of per-layer values: four times as many as layers are accepted."""

SEE_PAGE = "Compare it with the config.json on the model’s page."
"""What to do about a value that cannot be."""


def absent(value: object) -> bool:
    """Whether a key is missing, or null, which the libraries take as missing."""
    return value is None


def at(content: Mapping[str, object], key: str) -> object:
    """What stands under a key, or under the key of an object inside: `attn_config.kv_n_heads`. None if nothing does."""
    found: object = content
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def typed(value: object, kind: str, key: str, compare: str = SEE_PAGE) -> Value:
    """A value as a number, a whole one, a flag, a text or a list; 4096.0 is a whole number. compare: what to do where
    nothing better is known. Raises ImportProblem naming the key and what came."""
    if kind in ("whole", "wholes") and isinstance(value, float) and value.is_integer():
        value = int(value)
    if kind == "flag" and isinstance(value, bool):
        return value
    if kind == "text" and isinstance(value, str):
        return value
    if kind == "list" and isinstance(value, list) and len(value) <= MAX_ITEMS and all(isinstance(each, int | str) for each in value):
        return tuple(value)
    if kind == "number" and isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_WHOLE:
        return value
    if kind in ("whole", "wholes") and isinstance(value, int) and not isinstance(value, bool):
        if not 0 <= value <= MAX_WHOLE:
            raise ImportProblem("out_of_range", f"{key} must be 0 to {count_text(MAX_WHOLE)}; got {shown(value)}.", "Check the file’s numbers.")
        return value
    if kind == "wholes" and isinstance(value, list) and 0 < len(value) <= MAX_ITEMS:
        return tuple(typed(each, "whole", key, compare) for each in value)
    raise ImportProblem("wrong_type", f"{key} must be {WORDS[kind]}; got {shown(value)}.", _remedy(value, kind, compare))


WORDS = {
    "number": f"a number of at most {MAX_WHOLE:,}",
    "whole": "a whole number",
    "flag": "true or false",
    "text": "a text in quotes",
    "list": f"a list of at most {MAX_ITEMS:,} texts or numbers",
    "wholes": "a whole number, or a list of one for every layer",
}
"""What must hold, by kind."""


def shown(value: object) -> str:
    """A value as it is repeated in a sentence: shortened, and never as markup or code."""
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**20:
        return "a number of more than 20 digits"
    return json.dumps(value)


def _remedy(value: object, kind: str, compare: str) -> str:
    if kind == "whole" and isinstance(value, str) and value.strip().isdecimal():
        return "Write the number without quotes."
    if kind == "flag" and value in (0, 1, "true", "false"):
        return "Write true or false, without quotes."
    return compare
