"""The data files, read. Nothing is computed here."""

import json
from importlib.resources import files


def table(name: str) -> dict:
    """The content of `<name>.toml` in this folder; where a build has written it as JSON, which reads faster, of that."""
    written = files(__name__).joinpath(f"{name}.json")
    if written.is_file():
        return json.loads(written.read_text(encoding="utf-8"))
    import tomllib

    return tomllib.loads(files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8"))
