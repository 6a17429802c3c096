"""A second, independent count of Unsloth Studio's estimate, over many configurations at once.

Belongs here: arithmetic written from its document, and from what its code had become by August 2026, matrix by matrix, never from
the package under test (nothing of `vramplan` is imported). A column is a numpy array of exact Python integers or fractions, one
entry per configuration. Not here: random data, assertions.
"""

from fractions import Fraction
import math

import numpy as np

from oracle import DIMENSIONS, ENTRIES, ROUND_UP, budget_bytes, column

EXPERT_COUNTS = ("num_experts", "experts_per_token", "expert_intermediate_size", "shared_expert_intermediate_size", "dense_layers")
SEVEN = ("q", "k", "v", "o", "gate", "up", "down")
NAMED = {"all-linear": SEVEN, "attention": SEVEN[:4]}

# Bytes per trained parameter by the optimizer's name there, and that name for what is typed here.
PER_PARAMETER = {"adamw_8bit": 4, "paged_adamw_8bit": 4, "adamw_torch": 6, "paged_adamw_32bit": 8, "sgd": 4}
NAMES = {"adamw-foreach": "adamw_torch", "adamw-fused": "adamw_torch", "adamw-8bit": "adamw_8bit", "paged-adamw-8bit": "paged_adamw_8bit",
         "paged-adamw-32bit": "paged_adamw_32bit", "sgd": "sgd"}


def shape(configuration):
    """Dimensions and experts of a model, from the data file or as typed."""
    entry = ENTRIES.get(configuration["model"], configuration)
    numbers = {name: int(entry.get(name, 0)) for name in (*DIMENSIONS, *EXPERT_COUNTS)}
    told = {name: entry.get(name, False) in (True, "true") for name in ("tied_embeddings", "shared_expert_gate")}
    return numbers | told


def columns(configurations):
    """One column for each dimension and setting."""
    shapes = [shape(c) for c in configurations]
    table = {name: column([each[name] for each in shapes]) for name in shapes[0]}
    for name in ("rank", "sequence_length", "micro_batch"):
        table[name] = column([int(c[name]) for c in configurations])
    for name in ("method", "checkpointing", "attention_kernel", "quantization", "unsloth_revision", "adapter_targets", "optimizer"):
        table[name] = column([c[name] for c in configurations])
    table["floor"] = column([Fraction(c["floor_fraction"]) for c in configurations])
    table["budget"] = column([budget_bytes(c) for c in configurations])
    for part in (*SEVEN, "embed", "lm_head"):
        table[f"on {part}"] = column([part in NAMED.get(c["adapter_targets"], c["adapter_targets"].split(",")) for c in configurations])
    return table


def one_or_other(condition, yes, no):
    """Like numpy's where, but plain numbers stay Python's own, which never overflow."""
    sides = [side if isinstance(side, np.ndarray) else column([side] * len(condition)) for side in (yes, no)]
    return np.where(condition, *sides)


def flag(values):
    return values.astype(bool)


def matrices(t):
    """For every kind of linear map: rows, columns, and how many of them the model has."""
    august = flag(t["unsloth_revision"] == "2026-08")
    hidden, layers, heads = t["hidden_size"], t["num_layers"], t["num_attention_heads"]
    head = one_or_other(august, t["head_dim"], hidden // heads)
    queries = one_or_other(august, heads * head, hidden)
    keys = t["num_kv_heads"] * head
    mixture = flag(t["num_experts"] > 1)
    single_expert = flag(t["num_experts"] == 1) & ~august
    width = one_or_other(mixture | single_expert, t["expert_intermediate_size"], t["intermediate_size"])
    sparse = one_or_other(mixture, layers - t["dense_layers"], layers)
    shared = one_or_other(mixture, t["shared_expert_intermediate_size"], 0)
    shapes = {"q": (hidden, queries, layers), "k": (hidden, keys, layers), "v": (hidden, keys, layers), "o": (queries, hidden, layers)}
    experts = one_or_other(mixture, t["num_experts"], 1)
    for name in ("gate", "up", "down"):
        shapes[name] = (hidden, width, sparse * experts)
        shapes[f"first {name}"] = (hidden, t["intermediate_size"], layers - sparse)
        shapes[f"shared {name}"] = (hidden, shared, one_or_other(shared > 0, sparse, 0))
    shapes["router"] = (one_or_other(mixture, experts, 0), hidden, sparse)
    shapes["shared router"] = (one_or_other(flag(t["shared_expert_gate"]) & mixture, 1, 0), hidden, sparse)
    return shapes, {"queries": queries, "keys": keys, "width": width, "shared": shared, "sparse": sparse, "mixture": mixture, "august": august}


def adapters(t, shapes, seen):
    """Parameters of the adapters, and of embedding and head where these are trained whole."""
    ends = [flag(t["on embed"]), flag(t["on lm_head"])]
    named = {part: flag(t[f"on {part}"]) for part in SEVEN}
    nothing_else = ~np.logical_or.reduce(list(named.values()))
    total = 0
    for name, (rows, cols, count) in shapes.items():
        part = name.split()[-1]
        if part not in SEVEN:
            continue
        chosen = named[part] | nothing_else
        if name in ("gate", "up", "down"):
            chosen = chosen & ~(seen["mixture"] & seen["august"] & flag(t["adapter_targets"] == "all-linear"))
        total = total + one_or_other(chosen, count * t["rank"] * (rows + cols), 0)
    whole = one_or_other(ends[0], 1, 0) + one_or_other(ends[1], 1, 0)
    whole = one_or_other(flag(t["tied_embeddings"]) & flag(whole > 1), 1, whole)
    return total + whole * t["vocab_size"] * t["hidden_size"]


def ledger(configurations):
    """Every term in bytes, the peak, the budget and the parameter counts: a dict of columns."""
    t = columns(configurations)
    shapes, seen = matrices(t)
    august, full, qlora = seen["august"], flag(t["method"] == "full"), flag(t["method"] == "qlora")
    hidden, layers = t["hidden_size"], t["num_layers"]
    quantizable = sum(rows * cols * count for rows, cols, count in shapes.values())
    rest = 2 * hidden * layers + t["vocab_size"] * hidden * one_or_other(flag(t["tied_embeddings"]), 1, 2)
    smaller = one_or_other(august & flag(t["quantization"] == "nf4-double"), Fraction(36, 10), Fraction(32, 10))
    weights = one_or_other(qlora, 2 * quantizable / smaller, 2 * quantizable * Fraction(1)) + 2 * rest
    extra = one_or_other(full, 0, adapters(t, shapes, seen))
    trained = one_or_other(full, quantizable + rest, extra)
    states = trained * column([PER_PARAMETER[NAMES[name]] for name in t["optimizer"]])

    tokens = t["sequence_length"] * t["micro_batch"]
    each_token = seen["queries"] + 2 * seen["keys"] + 2
    routed = one_or_other(seen["mixture"] & august, seen["width"] * t["experts_per_token"] + seen["shared"], seen["width"])
    layer = tokens * (each_token + 2 * routed) * 2 * Fraction(125, 100)
    dense = tokens * (each_token + 2 * t["intermediate_size"]) * 2 * Fraction(125, 100)
    first = layers - seen["sparse"]
    everything = seen["sparse"] * layer + first * dense
    largest = one_or_other(flag(first > 0), np.maximum(layer, dense), layer)
    kept = flag(t["checkpointing"] == "none")
    times = one_or_other(full, one_or_other(t["checkpointing"] == "offloaded", Fraction(3, 2), Fraction(2)), Fraction(1))
    alive = one_or_other(kept, layers, times)
    computed = one_or_other(kept, everything, largest * alive)
    scores = t["micro_batch"] * t["num_attention_heads"] * t["sequence_length"] ** 2 * 2 * 12 * alive
    computed = one_or_other(august & flag(t["attention_kernel"] == "eager"), np.maximum(computed, scores), computed)

    raw = 2 * trained
    floor = weights * t["floor"]
    capped = one_or_other(august & ~full, np.minimum(floor, np.maximum(computed, states)), floor)
    gradients = np.maximum(raw, capped)
    activations = one_or_other(august, computed, np.maximum(computed, floor * t["micro_batch"] / 2))
    terms = {
        "base_weights": ROUND_UP(weights),
        "adapters": 2 * extra,
        "optimizer_states": states,
        "gradients": raw,
        "gradient_floor": ROUND_UP(gradients) - raw,
        "saved_activations": ROUND_UP(computed),
        "activation_floor": ROUND_UP(activations) - ROUND_UP(computed),
        "fixed_allowance": column([math.ceil(Fraction(14, 10) * 2**30)] * len(configurations)),
    }
    return {"terms": terms, "peak": sum(terms.values()), "budget": t["budget"], "total": quantizable + rest, "trainable": trained}
