"""Values of a file, each with the line it stands in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MAX_VALUES = 20_000
"""Values of one file that are read, those that an alias repeats counted each time; published training files have a few hundred."""

MAX_DEPTH = 32
"""Deepest nesting that is read; published training files have about six levels."""


@dataclass(frozen=True)
class Given:
    """One value: nothing, a flag, a number, a text, a list of plain values, or a mapping of more Given; and its line, counted from 1."""

    value: object
    line: int


Tree = Mapping[str, Given]


def found(tree: Tree, key: str) -> Given | None:
    """What stands under a key, or under the key of a mapping inside, as `fsdp_config.offload_params`; None if nothing does."""
    if key in tree:
        return tree[key]
    first, dot, rest = key.partition(".")
    inner = tree.get(first)
    return found(inner.value, rest) if dot and inner and isinstance(inner.value, Mapping) else None


def leaves(tree: Tree, before: str = "") -> Iterator[tuple[str, Given]]:
    """Every value that is no mapping, under its dotted key; an empty mapping is one too."""
    for key, given in tree.items():
        name = f"{before}{key}"
        if isinstance(given.value, Mapping) and given.value:
            yield from leaves(given.value, f"{name}.")
        else:
            yield name, given
