"""The data files, read. Nothing is computed here."""

import json
from pkgutil import get_data


def table(name: str) -> dict:
    """The content of `<name>.toml` in this folder; where a build has written it as JSON, which reads faster, of that."""
    try:
        return json.loads(get_data(__name__, f"{name}.json"))
    except OSError:  # there is no such file
        import tomllib

        return tomllib.loads(get_data(__name__, f"{name}.toml").decode())
