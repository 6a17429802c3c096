"""What is made of a structure, kept for every other structure that the same would be made of."""

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TypeVar

from vramplan.accountings.step.structure import Structure

Made = TypeVar("Made")

_EVERY: list[dict] = []
"""All that is remembered."""


def remembered(by: Callable[[Structure], Hashable], *, most: int) -> Callable[[Callable[[Structure], Made]], Callable[[Structure], Made]]:
    """Remember so many of what a function makes. by: everything of a structure that the function reads."""

    def decorate(make: Callable[[Structure], Made]) -> Callable[[Structure], Made]:
        kept: dict[Hashable, Made] = {}
        _EVERY.append(kept)

        @wraps(make)
        def made(run: Structure) -> Made:
            key = by(run)
            if key not in kept:
                if len(kept) >= most:
                    del kept[next(iter(kept))]
                kept[key] = make(run)
            return kept[key]

        return made

    return decorate


def forget() -> None:
    """Drop everything: for tests that change what it is made of."""
    for kept in _EVERY:
        kept.clear()
