"""The same run in other places: as a command for a terminal and as lines of Python."""

from collections.abc import Mapping, Sequence
import json

from vramplan.link import PINS_IN_FILE, changed_texts, to_query
from vramplan.settings import Settings, format_settings


def command(settings: Settings) -> str:
    """The command that prints this estimate in a terminal."""
    flags = [f" --{name.replace('_', '-')} {text}" for name, text in changed_texts(format_settings(settings)).items()]
    return "vramplan estimate" + "".join(flags)


def python(settings: Settings) -> str:
    """The lines of Python that make this estimate."""
    changed = changed_texts(format_settings(settings))
    typed = {name: getattr(settings, name) for name in changed}
    arguments = ", ".join(
        f"{name}={typed[name] if isinstance(typed[name], int) else repr(text)}" for name, text in changed.items()
    )
    return f"from vramplan import Settings, estimate\n\nresult = estimate(Settings({arguments}))\nprint(result.peak_bytes, result.fits)"


def settings_file(texts: Mapping[str, str], pins: Sequence[Settings] = ()) -> str:
    """Every setting as typed, and every pinned run, as a file that can be brought back."""
    runs = {PINS_IN_FILE: [to_query(pin) for pin in pins]} if pins else {}
    return json.dumps({"settings": dict(texts), **runs}, indent=2, ensure_ascii=False) + "\n"
