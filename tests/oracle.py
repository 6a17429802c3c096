"""A second, independent count of the planning accounting, over many configurations at once.

Belongs here: arithmetic written from the published formulas and from the shapes of the tensors, never from the
package under test (nothing of `vramplan` is imported). A configuration is a dict of strings, as typed; a column is a
numpy array of exact Python integers or fractions, one entry per configuration. Not here: random data, assertions.
"""

from fractions import Fraction
import math
from pathlib import Path
import tomllib

import numpy as np

ROUND_UP = np.frompyfunc(math.ceil, 1, 1)
ROUND_DOWN = np.frompyfunc(math.floor, 1, 1)

# Dimensions and traits as a model states them: TRAITS it has or not, KINDS that are one of several (here with what a
# Llama has), TABLES that are a number of rows.
DIMENSIONS = ("hidden_size", "num_layers", "num_attention_heads", "num_kv_heads", "head_dim", "intermediate_size", "vocab_size")
TRAITS = ("query_key_norms", "extra_norms", "query_biases", "fused_projections", "scaled_embeddings", "attention_softcap",
          "logit_softcap", "plain_mlp", "parallel_blocks", "shared_norm", "norms_after", "wide_query_key_norms", "output_biases",
          "mlp_biases", "head_bias", "embedding_norm", "fused_gate_up", "scaled_residual", "residual_dropout", "embedding_dropout",
          "partial_rotary", "alibi", "broadcast_heads")
KINDS = {"norm": "rms", "activation": "fused"}
TABLES = ("learned_positions",)

# Vectors of parameters of a norm: a weight, and a bias.
NORM_VECTORS = {"rms": 1, "rms-cast": 1, "layer": 2, "layer-half": 2, "layer-no-bias": 1, "layer-plain": 0}


def preset(entry):
    """A model of the data file: its dimensions, the traits it does not mention absent."""
    traits = {name: entry.get(name, False) for name in TRAITS}
    traits |= {name: entry.get(name, usual) for name, usual in KINDS.items()} | {name: entry.get(name, 0) for name in TABLES}
    return {**{name: entry[name] for name in DIMENSIONS}, **traits, "tied": entry["tied_embeddings"], "cap": entry["max_sequence_length"]}


# The dimensions are data, not arithmetic: read, not typed again. What they come to is checked in test_models.py, against
# the parameters counted with each model's own class.
MODELS = Path(__file__).resolve().parent.parent / "app/vramplan/data/models.toml"
ENTRIES = tomllib.loads(MODELS.read_text(encoding="utf-8"))
# Mixtures of experts, latent attention and layers without attention, which the formula does not count.
HYBRIDS = tuple(name for name, entry in ENTRIES.items() if "mixer" in entry)
MIXTURES = tuple(name for name, entry in ENTRIES.items() if {"num_experts", "kv_lora_rank"} & entry.keys() and name not in HYBRIDS)
PRESETS = {name: preset(entry) for name, entry in ENTRIES.items() if name not in (*MIXTURES, *HYBRIDS)}

# Bytes saved for the backward pass per element of one (batch, sequence, hidden) tensor, tensor by tensor
# (Korthikanti and others 2022, section 4.1; one-byte entries are dropout masks).
ATTENTION_LINEAR = 2 + 4 + 2 + 2 + 1  # input of q/k/v; queries and keys; values; input of the output projection; mask
MLP_LINEAR = 2 + 8 + 8 + 1  # input of the first matrix; input of the non-linearity; input of the second matrix; mask
LAYER_NORMS = 2 + 2
# ... and per element of one (batch, heads, sequence, sequence) tensor: softmax output, dropout mask, dropout output.
ATTENTION_QUADRATIC = 2 + 1 + 2


def column(values):
    """An object array, so that integers never overflow and fractions stay exact."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def columns(configurations):
    """One column per setting and per dimension; presets are looked up, custom dimensions are read."""
    whole = ("rank", "sequence_length", "micro_batch")
    table = {name: column([int(c[name]) for c in configurations]) for name in whole}
    for name in ("method", "adapter_targets", "trainable_precision", "optimizer", "checkpointing", "attention_kernel"):
        table[name] = column([c[name] for c in configurations])
    for name in ("activation_multiplier", "extra_allowance"):
        table[name] = column([Fraction(c[name]) for c in configurations])
    table["budget_bytes"] = column([budget_bytes(c) for c in configurations])
    shapes = [PRESETS.get(c["model"]) or typed_shape(c) for c in configurations]
    for name in DIMENSIONS:
        table[name] = column([int(s[name]) for s in shapes])
    for name in ("tied", *TRAITS, *KINDS):
        table[name] = column([s[name] for s in shapes])
    for name in TABLES:
        table[name] = column([int(s[name]) for s in shapes])
    return table


def typed_shape(configuration):
    """A custom model: its dimensions and traits as typed, the traits it does not mention absent."""
    traits = {name: configuration.get(name) == "true" for name in TRAITS}
    traits |= {name: configuration.get(name, usual) for name, usual in KINDS.items()}
    traits |= {name: configuration.get(name, "0") for name in TABLES}
    return {**configuration, **traits, "tied": configuration["tied_embeddings"] == "true"}


def budget_bytes(configuration):
    """Whole bytes of the budget: a nominal class in GiB, or the typed amount, rounded down."""
    if configuration["gpu"] != "custom":
        return int(configuration["gpu"]) * 2**30
    unit = {"gib": 2**30, "gb": 10**9}[configuration["budget_unit"]]
    return math.floor(Fraction(configuration["budget"]) * unit)


def has(t, name):
    return t[name].astype(bool)


def layer_matrices(t):
    """Shapes (out, in) of the weight matrices of one decoder layer; a plain MLP has none for a gate."""
    hidden, inner = t["hidden_size"], t["intermediate_size"]
    queries = t["num_attention_heads"] * t["head_dim"]
    keys = t["num_kv_heads"] * t["head_dim"]
    attention = {"q_proj": (queries, hidden), "k_proj": (keys, hidden), "v_proj": (keys, hidden), "o_proj": (hidden, queries)}
    gate = (np.where(has(t, "plain_mlp"), 0, inner), np.where(has(t, "plain_mlp"), 0, hidden))
    return attention, {"gate_proj": gate, "up_proj": (inner, hidden), "down_proj": (hidden, inner)}


def small_parameters(t):
    """Parameters that are no matrix of a layer and no embedding: of all layers, then beside them; and their parts, by the
    letters of the planning formula."""
    hidden, width = t["hidden_size"], t["head_dim"]
    attention, mlp = layer_matrices(t)
    vectors = column([NORM_VECTORS[kind] for kind in t["norm"]])
    norms = np.where(has(t, "shared_norm"), 1, np.where(has(t, "extra_norms"), 2 + 2, 1 + 1))
    on_heads = np.where(has(t, "query_key_norms"), width + width, 0)
    on_all = np.where(has(t, "wide_query_key_norms"), attention["q_proj"][0] + attention["k_proj"][0], 0)
    biased = {"query_biases": ("q_proj", "k_proj", "v_proj"), "output_biases": ("o_proj",), "mlp_biases": tuple(mlp)}
    matrices = attention | mlp
    biases = sum(np.where(has(t, trait), sum(matrices[name][0] for name in names), 0) for trait, names in biased.items())
    ends = np.where(has(t, "embedding_norm"), vectors + vectors, vectors) * hidden
    others = ends + t["learned_positions"] * hidden + np.where(has(t, "head_bias"), t["vocab_size"], 0)
    return {"w": vectors * norms, "epsilon": vectors * (on_heads + on_all), "b": biases, "f": others,
            "h": np.where(has(t, "plain_mlp"), 2, 3)}


def size(shapes):
    return sum(rows * cols for rows, cols in shapes)


def parameters(t):
    """(in the layers' matrices, everywhere else, in the adapters), each a column of exact integers."""
    attention, mlp = layer_matrices(t)
    layers = t["num_layers"]
    dense = layers * size([*attention.values(), *mlp.values()])
    small = small_parameters(t)
    embedding = t["vocab_size"] * t["hidden_size"]
    output = np.where(t["tied"].astype(bool), 0, embedding)
    others = embedding + output + layers * (small["w"] * t["hidden_size"] + small["epsilon"] + small["b"]) + small["f"]

    def pairs(matrices):  # A is (rank, in), B is (out, rank); a matrix that is not there has neither
        return size([shape for out, in_ in matrices.values() for shape in ((t["rank"], in_), (out, t["rank"]))])

    adapters = layers * (pairs(attention) + np.where(t["adapter_targets"] == "all-linear", pairs(mlp), 0))
    return dense, others, adapters


def ledger(configurations):
    """Every term in bytes, the peak, the budget and the parameter counts: a dict of columns."""
    t = columns(configurations)
    dense, others, adapter_parameters = parameters(t)
    full, qlora = np.isin(t["method"].astype(str), ("full", "pretraining")), t["method"] == "qlora"
    total = dense + others
    trained = np.where(full, total, adapter_parameters)
    mixed = (t["trainable_precision"] == "mixed-bf16") | (t["method"] == "pretraining")
    checkpointed = t["checkpointing"] == "full"
    alpha, layers = t["activation_multiplier"], t["num_layers"]

    nf4_bytes = Fraction(4 * 64 * 256 + 8 * 256 + 32, 8 * 64 * 256)  # a group: 64·256 codes, 256 8-bit scales, one FP32
    tokens = t["micro_batch"] * t["sequence_length"]
    scores = t["micro_batch"] * t["num_attention_heads"] * t["sequence_length"] ** 2
    boundary = 2 * tokens * t["hidden_size"]
    one_layer = (ATTENTION_LINEAR + MLP_LINEAR + LAYER_NORMS) * tokens * t["hidden_size"]
    one_layer = one_layer + np.where(t["attention_kernel"] == "eager", ATTENTION_QUADRATIC * scores, 0)
    projections = np.where(t["adapter_targets"] == "all-linear", 4 + small_parameters(t)["h"], 4)
    inner_activations = 2 * tokens * t["rank"] * projections * np.where(checkpointed, 1, layers)
    attention, mlp = layer_matrices(t)
    largest_matrix = np.maximum.reduce([rows * cols for rows, cols in [*attention.values(), *mlp.values()]])

    terms = {
        "base_weights": ROUND_UP(np.where(qlora, nf4_bytes * dense + 4 * others, 2 * total)),
        "adapters": np.where(full, 0, 2 * adapter_parameters),
        "master_weights": trained * np.where(mixed, 4, 0),
        "gradients": trained * np.where(mixed, 4, 2),
        "optimizer_states": trained * np.where(t["optimizer"] == "adamw-8bit", 1 + 1, 4 + 4),
        "saved_activations": ROUND_UP(alpha * layers * np.where(checkpointed, boundary, one_layer)),
        "active_layer": ROUND_UP(alpha * np.where(checkpointed, one_layer, 0)),
        "adapter_activations": ROUND_UP(alpha * np.where(full, 0, inner_activations)),
        "logits": 4 * tokens * t["vocab_size"],
        "dequantization": np.where(qlora, 2 * largest_matrix, 0),
        "fixed_allowance": column([2 * 2**30] * len(configurations)),
        "extra_allowance": ROUND_UP(t["extra_allowance"] * 2**30),
    }
    return {"terms": terms, "peak": sum(terms.values()), "budget": t["budget_bytes"], "total": total, "trainable": trained}
