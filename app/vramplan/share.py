"""The same run in other places: as a command for a terminal and as lines of Python."""

from vramplan.fields import FIELDS
from vramplan.link import changed_texts
from vramplan.settings import Settings, format_settings


def command(settings: Settings) -> str:
    """The command that prints this estimate in a terminal."""
    flags = [f" --{name.replace('_', '-')} {text}" for name, text in changed_texts(format_settings(settings)).items()]
    return "vramplan estimate" + "".join(flags)


def python(settings: Settings) -> str:
    """The lines of Python that make this estimate."""
    texts = changed_texts(format_settings(settings))
    values = {field.name: getattr(settings, field.name) for field in FIELDS if field.name in texts}
    arguments = ", ".join(
        f"{field.name}={values[field.name] if isinstance(values[field.name], (int, bool)) else repr(texts[field.name])}"
        for field in FIELDS
        if field.name in values
    )
    return f"from vramplan import Settings, estimate\n\nresult = estimate(Settings({arguments}))\nprint(result.peak_bytes, result.fits)"
