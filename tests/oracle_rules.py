"""A second, independent count by the byte rules, over many configurations at once, in numpy.

Belongs here: arithmetic written from the published rules, never from the package under test. Columns of dimensions and the
count of a dense model's parameters come from the planning formula's oracle, which is independent too. Amounts are numpy
arrays of exact fractions. Not here: random data, assertions.
"""

from fractions import Fraction

import numpy as np

from oracle import ROUND_UP, column, columns, layer_matrices, parameters

# Per trained parameter: weight, gradient, master, both moments (ZeRO paper, section 3.1).
STATES = {"mixed": (2, 2, 4, 8), "single": (4, 4, 0, 8), "half": (2, 2, 0, 4)}
MOMENTS = {"adamw-8bit": 2, "adamw-fp32-states": 8}
STORED = {"nf4-double": Fraction(1, 2), "nf4": Fraction(1, 2), "gptq": Fraction(1, 2), "gptq-ungrouped": Fraction(1, 2), "awq": Fraction(1, 2), "int8": 1}
SERVED = {"fp32": 4, "bf16": 2, "fp8": 1, "int8": 1, "int4": Fraction(1, 2)}
CACHED = {"16-bit": 2, "8-bit": 1}
# What stays whole on every GPU: (weights, gradients, masters and moments).
WHOLE = {"none": (1, 1, 1), "ddp": (1, 1, 1), "zero1": (1, 1, 0), "zero2": (1, 0, 0), "zero3": (0, 0, 0), "fsdp1": (0, 0, 0), "fsdp2": (0, 0, 0)}


def scheme(c):
    if c["autocast"] == "off" and c["trainable_precision"] != "pure-bf16":
        return "single"
    return "half" if c["trainable_precision"] == "pure-bf16" and c["method"] != "pretraining" else "mixed"


def ledger(configurations):
    """Every term in bytes: a dict of columns. Only dense models."""
    t = columns(configurations)
    dense, others, _ = parameters(t)
    total = dense + others
    attention, mlp = layer_matrices(t)
    rows = attention | mlp
    adapters = column([
        int(c["rank"]) * sum(
            int(t["num_layers"][i]) * (int(size[0][i]) + int(size[1][i])) for name, size in rows.items() if name.removesuffix("_proj") in wanted(c)
        ) + int(c["rank"]) * sum(int(t["vocab_size"][i]) + int(t["hidden_size"][i]) for name in ("lm_head", "embed") if name in wanted(c))
        for i, c in enumerate(configurations)
    ])
    full = column([c["method"] in ("full", "pretraining") for c in configurations])
    trained = np.where(full, total, adapters)
    kinds = [STATES[scheme(c)] for c in configurations]
    weight, gradient, master, moments = (column([kind[i] for kind in kinds]) for i in range(4))
    moments = column([MOMENTS.get(c["optimizer"], moments[i]) for i, c in enumerate(configurations)])
    gpus = column([Fraction(int(c["sharded_over"])) for c in configurations])
    whole = [WHOLE[c["sharding"]] for c in configurations]
    share = [np.where(column([bool(w[i]) for w in whole]), Fraction(1), 1 / gpus) for i in range(3)]
    frozen = column([STORED[c["quantization"]] if c["method"] == "qlora" else 2 for c in configurations])
    tokens = t["micro_batch"] * t["sequence_length"]
    eager = column([c["attention_kernel"] == "eager" for c in configurations])
    scores = np.where(eager, 5 * t["num_attention_heads"] * tokens * t["sequence_length"], 0)
    kept = np.where(column([c["checkpointing"] == "full" for c in configurations]), 2 * tokens * t["hidden_size"], 34 * tokens * t["hidden_size"] + scores)
    return {
        "base_weights": ROUND_UP(total * np.where(full, weight, frozen) * share[0]),
        "adapters": ROUND_UP(np.where(full, 0, trained * weight) * share[0]),
        "master_weights": ROUND_UP(trained * master * share[2]),
        "gradients": ROUND_UP(trained * gradient * share[1]),
        "optimizer_states": ROUND_UP(trained * moments * share[2]),
        "saved_activations": t["num_layers"] * kept,
    }


def wanted(c):
    named = {"attention": "q,k,v,o", "all-linear": "q,k,v,o,gate,up,down"}
    return named.get(c["adapter_targets"], c["adapter_targets"]).split(",")


def serving(configurations):
    """Weights and key/value cache in bytes. Only dense models."""
    t = columns(configurations)
    dense, others, _ = parameters(t)
    stored = column([SERVED[c["served_weights"]] for c in configurations])
    cached = column([CACHED[c["kv_cache"]] for c in configurations])
    tokens = t["micro_batch"] * t["sequence_length"]
    return {
        "base_weights": ROUND_UP((dense + others) * stored),
        "kv_cache": 2 * t["num_layers"] * t["num_kv_heads"] * t["head_dim"] * tokens * cached,
    }
