"""Finding a model by typing a part of its name."""

from vramplan.catalogue import presets
from vramplan.fields import BY_NAME
from vramplan.kinds import Option

NONE, FIRST = -1, 0
"""Places in a list: nowhere, and the first."""


def next_place(place: int, length: int, *, back: bool) -> int:
    """The place after or before another in a list that goes round; from nowhere, the first or the last."""
    if back:
        return length - 1 if place <= FIRST else place - 1
    return (place + 1) % length


def matching_models(text: str) -> tuple[Option, ...]:
    """The models whose label, name or repository has every typed word in it; all for no words.

    What begins with the text comes first, then what has it as it stands, then what only has its words; else as in the list.
    """
    wanted = " ".join(text.lower().split())
    found = [option for option in BY_NAME["model"].kind.options if all(word in _known_as(option) for word in wanted.split())]
    return tuple(sorted(found, key=lambda option: (not option.label.lower().startswith(wanted), wanted not in _known_as(option))))


def _known_as(option: Option) -> str:
    preset = presets().get(option.value)
    return f"{option.label} {option.value} {preset.repository if preset else ''}".lower()
