"""The data files, read. Nothing is computed here."""

import tomllib
from importlib.resources import files


def table(name: str) -> dict:
    """The content of `<name>.toml` in this folder."""
    return tomllib.loads(files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
