"""The layers of a model in order: which of them are of one kind, and how many in a row."""

from dataclasses import replace
from functools import cache, lru_cache
from itertools import groupby

from vramplan.accountings.step.structure import Structure
from vramplan.architecture import NO_LAYERS, NO_MIXER

KEPT_ORDERS = 64
"""Orders of layers that are remembered."""

NO_EXPERTS = {"num_experts": 0, "shared_expert_intermediate_size": 0, "shared_expert_gate": False, "adapters_skip_experts": False, "expert_biases": False}
"""Traits of a layer with one MLP in a model that has experts elsewhere."""

ATTENTION_ALONE = {
    "mixer": NO_MIXER, "attention_layers": NO_LAYERS, "mixer_kernel": 0, "mixer_key_heads": 0, "mixer_value_heads": 0, "mixer_key_dim": 0, "mixer_value_dim": 0,
}
"""Traits of a layer with attention in a model that has something else elsewhere."""

Rows = tuple[tuple[Structure, int], ...]
"""Layers of one kind in a row, as the structure of a run that had only such layers, and how many there are."""


@lru_cache(maxsize=KEPT_ORDERS)
def rows_of_layers(run: Structure) -> Rows:
    """The layers of a run from the first to the last.

    Source: transformers 5.24.0, models/gemma3/configuration_gemma3.py (every so many layers see everything);
    models/deepseek_v3/modeling_deepseek_v3.py, DeepseekV3DecoderLayer (first_k_dense_replace);
    models/lfm2/configuration_lfm2.py (layer_types).
    """
    shape = run.shape
    pattern = shape.sliding_window_pattern if run.masked else 0
    attending = shape.attending_layers
    if not pattern and not shape.dense_layers and not attending:
        return ((run, shape.num_layers),)
    of_a_kind = cache(lambda sees_everything, dense, attends: _kind(run, sees_everything=sees_everything, dense=dense, attends=attends))
    order = [
        of_a_kind(pattern > 0 and (place + 1) % pattern == 0, place < shape.dense_layers, place in attending) for place in range(shape.num_layers)
    ]
    return tuple((kind, len(list(same))) for kind, same in groupby(order))


def _kind(run: Structure, *, sees_everything: bool, dense: bool, attends: bool) -> Structure:
    """The structure of a run that had only layers of one kind."""
    kind = replace(run, masked=False) if sees_everything else run
    other = (NO_EXPERTS if dense else {}) | (ATTENTION_ALONE if attends else {"attention_layers": NO_LAYERS})
    return replace(kind, shape=replace(run.shape, **other))


def counts_of_layers(run: Structure) -> dict[Structure, int]:
    """How many layers there are of every kind, in the order in which a kind first comes."""
    counts: dict[Structure, int] = {}
    for kind, count in rows_of_layers(run):
        counts[kind] = counts.get(kind, 0) + count
    return counts
