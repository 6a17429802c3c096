"""Work in small steps, after each of which something else may happen, done without a pause."""

from collections.abc import Generator
from typing import TypeVar

Result = TypeVar("Result")


def at_once(steps: Generator[object, None, Result]) -> Result:
    """What a generator of steps returns, once all of them are done."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value
