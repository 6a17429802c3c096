"""The data files, read. Nothing is computed here."""

import json
from importlib.resources import files

_KEPT: dict[str, str] = {}
"""Texts of JSON files that were read ahead, by name."""


def table(name: str) -> dict:
    """The content of `<name>.toml` in this folder; where a build has written it as JSON, which reads faster, of that."""
    if name in _KEPT:
        return json.loads(_KEPT[name])
    written = files(__name__).joinpath(f"{name}.json")
    if written.is_file():
        return json.loads(written.read_text(encoding="utf-8"))
    import tomllib

    return tomllib.loads(files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def keep() -> None:
    """Read what a build has written as JSON now, for a time when these files are no longer there."""
    for file in files(__name__).iterdir():
        name, dot, suffix = file.name.rpartition(".")
        if suffix == "json":
            _KEPT[name] = file.read_text(encoding="utf-8")
