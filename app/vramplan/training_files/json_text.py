"""A JSON object as values with lines."""

import re

from vramplan.importing.problems import ImportProblem
from vramplan.importing.text import read_object
from vramplan.training_files.given import MAX_DEPTH, MAX_VALUES, Given
from vramplan.units import count_text

_KEY = r'"{}"\s*:'


def read_json(text: str) -> tuple[dict[str, Given], tuple[str, ...]]:
    """The object of a text, and what was repaired. A value’s line is that of its key after the key it lies under; 0 where that is not found."""
    parsed = read_object(text)
    counter = [0]
    return _marked(parsed.content, text, 0, 0, counter), parsed.repaired


def _marked(content: dict, text: str, start: int, depth: int, counter: list[int]) -> dict[str, Given]:
    if depth > MAX_DEPTH:
        raise ImportProblem("too_deep", f"The file is nested more than {MAX_DEPTH} levels deep, which no training file is.", "Bring the training file itself.")
    marked = {}
    for key, value in content.items():
        counter[0] += 1
        if counter[0] > MAX_VALUES:
            raise ImportProblem("too_large", f"The file holds more than {count_text(MAX_VALUES)} values.", "Bring the training file itself.")
        place = re.compile(_KEY.format(re.escape(key))).search(text, start)
        at = place.end() if place else start
        line = text.count("\n", 0, at) + 1 if place else 0
        inner = _marked(value, text, at, depth + 1, counter) if isinstance(value, dict) else value
        marked[key] = Given(inner, line)
    return marked
