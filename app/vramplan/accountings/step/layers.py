"""The layers of a model in order: which of them are of one kind, and how many in a row."""

from dataclasses import replace
from functools import lru_cache
from itertools import groupby

from vramplan.accountings.step.structure import Structure

KEPT_ORDERS = 64
"""Orders of layers that are remembered."""

Rows = tuple[tuple[Structure, int], ...]
"""Layers of one kind in a row, as the structure of a run that had only such layers, and how many there are."""


@lru_cache(maxsize=KEPT_ORDERS)
def rows_of_layers(run: Structure) -> Rows:
    """The layers of a run from the first to the last.

    Source: transformers 5.24.0, configuration_gemma3.py, __post_init__ (every so many layers see everything).
    """
    pattern = run.shape.sliding_window_pattern if run.masked else 0
    if not pattern:
        return ((run, run.shape.num_layers),)
    sees_everything = replace(run, masked=False)
    order = [sees_everything if (place + 1) % pattern == 0 else run for place in range(run.shape.num_layers)]
    return tuple((kind, len(list(same))) for kind, same in groupby(order))


def counts_of_layers(run: Structure) -> dict[Structure, int]:
    """How many layers there are of every kind, in the order in which a kind first comes."""
    counts: dict[Structure, int] = {}
    for kind, count in rows_of_layers(run):
        counts[kind] = counts.get(kind, 0) + count
    return counts
