"""The same run in other places: as a command for a terminal and as lines of Python."""

from vramplan.catalogue import defaults
from vramplan.fields import FIELDS
from vramplan.settings import Settings, format_settings


def changed(settings: Settings) -> dict[str, str]:
    """The text of every setting that differs from its default."""
    usual = defaults()
    return {name: text for name, text in format_settings(settings).items() if text != usual[name]}


def command(settings: Settings) -> str:
    """The command that prints this estimate in a terminal."""
    flags = [f" --{name.replace('_', '-')} {text}" for name, text in changed(settings).items()]
    return "vramplan estimate" + "".join(flags)


def python(settings: Settings) -> str:
    """The lines of Python that make this estimate."""
    texts = changed(settings)
    values = {field.name: getattr(settings, field.name) for field in FIELDS if field.name in texts}
    arguments = ", ".join(
        f"{field.name}={values[field.name] if isinstance(values[field.name], (int, bool)) else repr(texts[field.name])}"
        for field in FIELDS
        if field.name in values
    )
    return f"from vramplan import Settings, estimate\n\nresult = estimate(Settings({arguments}))\nprint(result.peak_bytes, result.fits)"
