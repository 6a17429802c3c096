"""Keys and values as YAML. Texts are written as JSON writes them, which YAML reads as the same text."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
import json

from vramplan.units import plain_decimal


def yaml_text(content: Mapping[str, object]) -> str:
    """A mapping as block YAML; lists in one line."""
    return "\n".join(_lines(content, "")) + "\n"


def _lines(content: Mapping[str, object], indent: str) -> Iterator[str]:
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}:"
            yield from _lines(value, f"{indent}  ")
        else:
            yield f"{indent}{key}: {_value(value)}"


def _value(value: object) -> str:
    return plain_decimal(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)
