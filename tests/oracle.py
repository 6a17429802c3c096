"""A second, independent count of the planning accounting, over many configurations at once.

Belongs here: arithmetic written from the published formulas and from the shapes of the tensors, never from the
package under test (nothing of `vramplan` is imported). A configuration is a dict of strings, as typed; a column is a
numpy array of exact Python integers or fractions, one entry per configuration. Not here: random data, assertions.
"""

from fractions import Fraction
import math

import numpy as np

ROUND_UP = np.frompyfunc(math.ceil, 1, 1)
ROUND_DOWN = np.frompyfunc(math.floor, 1, 1)

# Dimensions as published in each model's config.json, with the traits that add parameters: an RMSNorm on each query and
# key head, two more norms in each layer, biases on query, key and value.
DIMENSIONS = ("hidden_size", "num_layers", "num_attention_heads", "num_kv_heads", "head_dim", "intermediate_size", "vocab_size")
TRAITS = ("query_key_norms", "extra_norms", "query_biases", "fused_projections", "scaled_embeddings", "attention_softcap",
          "logit_softcap")


def preset(*shape, cap, tied=True, **traits):
    return {**dict(zip(DIMENSIONS, shape, strict=True)), **dict.fromkeys(TRAITS, False), **traits, "tied": tied, "cap": cap}


PRESETS = {
    "llama-3.2-1b": preset(2048, 16, 32, 8, 64, 8192, 128256, cap=131072),
    "llama-3.2-3b": preset(3072, 28, 24, 8, 128, 8192, 128256, cap=131072),
    "llama-3.1-8b": preset(4096, 32, 32, 8, 128, 14336, 128256, tied=False, cap=131072),
    "qwen3-8b": preset(4096, 36, 32, 8, 128, 12288, 151936, tied=False, cap=32768, query_key_norms=True),
    "llama-2-7b": preset(4096, 32, 32, 32, 128, 11008, 32000, tied=False, cap=4096),
    "mistral-7b-v0.1": preset(4096, 32, 32, 8, 128, 14336, 32000, tied=False, cap=32768),
    "mistral-7b-v0.3": preset(4096, 32, 32, 8, 128, 14336, 32768, tied=False, cap=32768),
    "qwen2.5-0.5b": preset(896, 24, 14, 2, 64, 4864, 151936, cap=32768, query_biases=True),
    "qwen2.5-1.5b": preset(1536, 28, 12, 2, 128, 8960, 151936, cap=32768, query_biases=True),
    "qwen2.5-7b": preset(3584, 28, 28, 4, 128, 18944, 152064, tied=False, cap=131072, query_biases=True),
    "qwen3-0.6b": preset(1024, 28, 16, 8, 128, 3072, 151936, cap=32768, query_key_norms=True),
    "qwen3-1.7b": preset(2048, 28, 16, 8, 128, 6144, 151936, cap=32768, query_key_norms=True),
    "qwen3-4b": preset(2560, 36, 32, 8, 128, 9728, 151936, cap=32768, query_key_norms=True),
    "gemma-2-2b": preset(2304, 26, 8, 4, 256, 9216, 256000, cap=8192, extra_norms=True),
    "gemma-3-1b": preset(1152, 26, 4, 1, 256, 6912, 262144, cap=32768, query_key_norms=True, extra_norms=True),
    "phi-3.5-mini": preset(3072, 32, 32, 32, 96, 8192, 32064, tied=False, cap=131072),
    "smollm2-135m": preset(576, 30, 9, 3, 64, 1536, 49152, cap=8192),
    "smollm2-360m": preset(960, 32, 15, 5, 64, 2560, 49152, cap=8192),
    "smollm2-1.7b": preset(2048, 24, 32, 32, 64, 8192, 49152, cap=8192),
    "granite-3.0-2b": preset(2048, 40, 32, 8, 64, 8192, 49155, cap=4096),
    "phi-4-mini": preset(3072, 32, 24, 8, 128, 8192, 200064, cap=131072),
}

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
    for name in ("tied", "query_key_norms", "extra_norms", "query_biases"):
        table[name] = column([s[name] for s in shapes])
    return table


def typed_shape(configuration):
    """A custom model: its dimensions and traits as typed, the traits it does not mention absent."""
    traits = {name: configuration.get(name) == "true" for name in TRAITS}
    return {**configuration, **traits, "tied": configuration["tied_embeddings"] == "true"}


def budget_bytes(configuration):
    """Whole bytes of the budget: a nominal class in GiB, or the typed amount, rounded down."""
    if configuration["gpu"] != "custom":
        return int(configuration["gpu"]) * 2**30
    unit = {"gib": 2**30, "gb": 10**9}[configuration["budget_unit"]]
    return math.floor(Fraction(configuration["budget"]) * unit)


def layer_matrices(t):
    """Shapes (out, in) of the seven weight matrices of one decoder layer."""
    hidden, inner = t["hidden_size"], t["intermediate_size"]
    queries = t["num_attention_heads"] * t["head_dim"]
    keys = t["num_kv_heads"] * t["head_dim"]
    attention = {"q_proj": (queries, hidden), "k_proj": (keys, hidden), "v_proj": (keys, hidden), "o_proj": (hidden, queries)}
    return attention, {"gate_proj": (inner, hidden), "up_proj": (inner, hidden), "down_proj": (hidden, inner)}


def size(shapes):
    return sum(rows * cols for rows, cols in shapes)


def parameters(t):
    """(in the layers' matrices, everywhere else, in the adapters), each a column of exact integers."""
    attention, mlp = layer_matrices(t)
    layers = t["num_layers"]
    dense = layers * size([*attention.values(), *mlp.values()])
    trait = {name: t[name].astype(bool) for name in ("query_key_norms", "extra_norms", "query_biases")}
    before = after = t["hidden_size"] + t["hidden_size"]  # of attention and of the MLP
    norms_of_a_layer = before + np.where(trait["extra_norms"], after, 0)
    norms_of_a_layer = norms_of_a_layer + np.where(trait["query_key_norms"], t["head_dim"] + t["head_dim"], 0)
    biases_of_a_layer = np.where(trait["query_biases"], sum(attention[name][0] for name in ("q_proj", "k_proj", "v_proj")), 0)
    embedding = t["vocab_size"] * t["hidden_size"]
    output = np.where(t["tied"].astype(bool), 0, embedding)
    others = embedding + output + layers * (norms_of_a_layer + biases_of_a_layer) + t["hidden_size"]

    def pairs(matrices):  # A is (rank, in), B is (out, rank)
        return size([shape for out, in_ in matrices.values() for shape in ((t["rank"], in_), (out, t["rank"]))])

    adapters = layers * (pairs(attention) + np.where(t["adapter_targets"] == "all-linear", pairs(mlp), 0))
    return dense, others, adapters


def ledger(configurations):
    """Every term in bytes, the peak, the budget and the parameter counts: a dict of columns."""
    t = columns(configurations)
    dense, others, adapter_parameters = parameters(t)
    full, qlora = t["method"] == "full", t["method"] == "qlora"
    total = dense + others
    trained = np.where(full, total, adapter_parameters)
    mixed = t["trainable_precision"] == "mixed-bf16"
    checkpointed = t["checkpointing"] == "full"
    alpha, layers = t["activation_multiplier"], t["num_layers"]

    nf4_bytes = Fraction(4 * 64 * 256 + 8 * 256 + 32, 8 * 64 * 256)  # a group: 64·256 codes, 256 8-bit scales, one FP32
    tokens = t["micro_batch"] * t["sequence_length"]
    scores = t["micro_batch"] * t["num_attention_heads"] * t["sequence_length"] ** 2
    boundary = 2 * tokens * t["hidden_size"]
    one_layer = (ATTENTION_LINEAR + MLP_LINEAR + LAYER_NORMS) * tokens * t["hidden_size"]
    one_layer = one_layer + np.where(t["attention_kernel"] == "eager", ATTENTION_QUADRATIC * scores, 0)
    projections = np.where(t["adapter_targets"] == "all-linear", 7, 4)
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
