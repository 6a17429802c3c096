"""Configurations that tests share: the opening one, the limits of every setting, and seeded random ones.

Belongs here: data and its generation, as strings the way a person types them, from the product's description (never
from the package under test). Not here: assertions, formulas.
"""

import random

from oracle import PRESETS

GPU_CLASSES = (8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 141, 180, 192, 288)

CHOICES = {
    "model": (*PRESETS, "custom"),
    "tied_embeddings": ("true", "false"),
    "method": ("full", "lora", "qlora"),
    "adapter_targets": ("attention", "all-linear"),
    "gpu": (*map(str, GPU_CLASSES), "custom"),
    "budget_unit": ("gib", "gb"),
    "trainable_precision": ("mixed-bf16", "pure-bf16"),
    "optimizer": ("adamw", "adamw-8bit"),
    "checkpointing": ("none", "full"),
    "attention_kernel": ("efficient", "eager"),
}
WHOLE = {
    "hidden_size": (1, 1_048_576),
    "num_layers": (1, 1_024),
    "num_attention_heads": (1, 4_096),
    "num_kv_heads": (1, 4_096),
    "head_dim": (1, 4_096),
    "intermediate_size": (1, 1_048_576),
    "vocab_size": (1, 4_194_304),
    "rank": (1, 256),
    "replicas": (1, 128),
    "sequence_length": (1, 131_072),
    "micro_batch": (1, 1_024),
    "gradient_accumulation_steps": (1, 1_024),
}
DECIMAL = {"budget": ("1", "2048"), "activation_multiplier": ("0.25", "4"), "extra_allowance": ("0", "128")}
DIMENSION_KEYS = ("hidden_size", "num_layers", "num_attention_heads", "num_kv_heads", "head_dim", "intermediate_size",
                  "vocab_size", "tied_embeddings")
FIELD_ORDER = ("accounting", "model", *DIMENSION_KEYS, "method", "rank", "adapter_targets", "gpu", "budget", "budget_unit",
               "replicas", "sequence_length", "micro_batch", "gradient_accumulation_steps", "trainable_precision",
               "optimizer", "checkpointing", "attention_kernel", "activation_multiplier", "extra_allowance")

OPENING = {
    "accounting": "planning", "model": "llama-3.1-8b", "method": "qlora", "rank": "16", "adapter_targets": "all-linear",
    "gpu": "24", "replicas": "1", "sequence_length": "2048", "micro_batch": "1", "gradient_accumulation_steps": "8",
    "trainable_precision": "mixed-bf16", "optimizer": "adamw", "checkpointing": "full", "attention_kernel": "efficient",
    "activation_multiplier": "1", "extra_allowance": "0",
}
SMALL_DECODER = {
    "model": "custom", "hidden_size": "64", "num_layers": "3", "num_attention_heads": "6", "num_kv_heads": "2",
    "head_dim": "12", "intermediate_size": "200", "vocab_size": "1000", "tied_embeddings": "false",
}
CUSTOM = {**OPENING, **SMALL_DECODER, "gpu": "custom", "budget": "20", "budget_unit": "gib"}


def decimal_text(generator, low, high, places):
    """A decimal from low to high as typed, with up to `places` digits after the point."""
    digits = generator.randint(0, places)
    units = generator.randint(low * 10**digits, high * 10**digits)
    return f"{units // 10**digits}.{units % 10**digits:0{digits}d}" if digits else str(units)


def whole_text(generator, limits, upto=None):
    """A whole number within limits, small ones as likely as large ones."""
    low, high = limits[0], min(limits[1], upto or limits[1])
    return str(max(low, min(high, round(2 ** generator.uniform(0, high.bit_length())))))


def random_configuration(generator):
    """One valid configuration: any model or dimensions, any choice, any number within its limits."""
    chosen = {name: generator.choice(options) for name, options in CHOICES.items()}
    if chosen["model"] == "custom":
        chosen |= {name: whole_text(generator, WHOLE[name]) for name in DIMENSION_KEYS if name in WHOLE}
        heads = int(chosen["num_attention_heads"])
        chosen["num_kv_heads"] = str(generator.choice([k for k in range(1, heads + 1) if heads % k == 0]))
    else:
        del chosen["tied_embeddings"]
    for name in ("rank", "replicas", "micro_batch", "gradient_accumulation_steps"):
        chosen[name] = whole_text(generator, WHOLE[name])
    cap = PRESETS[chosen["model"]]["cap"] if chosen["model"] in PRESETS else 131_072
    chosen["sequence_length"] = whole_text(generator, WHOLE["sequence_length"], upto=cap)
    if chosen["gpu"] == "custom":
        chosen["budget"] = decimal_text(generator, 2, 2048, 9)
    else:
        del chosen["budget_unit"]
    multiplier = decimal_text(generator, 1, 3, 4)
    chosen["activation_multiplier"] = generator.choice(["0.25", "0.3", "0.7", "1", "1.1", "3.3", "4", multiplier])
    chosen["extra_allowance"] = generator.choice(["0", "0.1", "0.3", "128", decimal_text(generator, 0, 127, 4)])
    return {"accounting": "planning", **chosen}


def random_configurations(count, seed):
    generator = random.Random(seed)
    return [random_configuration(generator) for _ in range(count)]
