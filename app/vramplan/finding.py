"""Finding a model by typing a part of its name."""

from vramplan.catalogue import presets
from vramplan.fields import BY_NAME
from vramplan.kinds import Option


def matching_models(text: str) -> tuple[Option, ...]:
    """The models whose label, name or repository has every typed word in it, in the order of the list; all for no words.

    What begins with the first word comes before what only contains it.
    """
    words = text.lower().split()
    found = [option for option in BY_NAME["model"].kind.options if all(word in _known_as(option) for word in words)]
    return tuple(sorted(found, key=lambda option: not words or not option.label.lower().startswith(words[0])))


def _known_as(option: Option) -> str:
    preset = presets().get(option.value)
    return f"{option.label} {option.value} {preset.repository if preset else ''}".lower()
