"""Configurations that tests share: the opening ones, the limits of every setting, and seeded random ones.

Belongs here: data and its generation, as strings the way a person types them, from the product's description (never
from the package under test). Not here: assertions, formulas.
"""

import random

from oracle import HYBRIDS, KINDS, MIXTURES, NORM_VECTORS, PRESETS, TRAITS

GPU_CLASSES = (8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 141, 180, 192, 288)
CARDS = ("rtx-4090", "rtx-3090", "rtx-5090", "rtx-4080", "rtx-4070", "rtx-3080-10gb", "rtx-3060-12gb", "rtx-4060-8gb", "rtx-a4000",
         "rtx-a5000", "rtx-a6000", "rtx-6000-ada", "t4", "v100-16gb", "v100-32gb", "a10", "a10g", "l4", "l40s", "a100-40gb",
         "a100-80gb", "h100-80gb", "h200", "b200", "rtx-pro-6000-blackwell",
         "apple-16gb", "apple-32gb", "apple-64gb", "apple-96gb", "apple-128gb")
STACKS = ("trainer-5", "trainer-4.54", "trainer-4.49", "trainer-4.46", "trainer-4.45", "trl-1.15", "trl-1.13", "trl-1.6", "trl-1.5", "trl-0.25",
          "loop", "fms-4.48", "fms-4.45", "fms-4.48-fast", "fms-4.45-fast", "litgpt-0.5", "litgpt-2024", "litgpt-2023",
          "torchtune-0.7", "torchtune-0.6", "torchtune-0.4",
          "unsloth-2026.10", "unsloth-2025.11", "axolotl-0.19", "llama-factory-0.9", "swift-4.6")
PAIR_STACKS = ("trl-1.15", "trl-1.13", "trl-1.6", "trl-1.5")  # those whose steps on pairs are counted
PLAUSIBLE_STACKS = tuple(name for name in STACKS if name.startswith(("tr", "unsloth", "axolotl", "llama", "swift")))
WHOLE_MODEL = ("full", "pretraining")  # methods that train every weight
OWN_CODE = tuple(name for name in STACKS if name.startswith(("litgpt", "torchtune")))  # stacks with model code and losses of their own
OF_RULES = ("task", "served_weights", "kv_cache")  # settings that only the byte rules read
YES_NO = ("true", "false")
GATED = tuple(name for name, shape in PRESETS.items() if not shape["plain_mlp"])
ACCOUNTINGS = ("step", "planning", "unsloth", "rules")

# Every option of every setting that is a choice.
CHOICES = {
    "accounting": ACCOUNTINGS,
    "stack": STACKS,
    "unsloth_revision": ("2026-03", "2026-08"),
    "task": ("training", "inference"),
    "served_weights": ("bf16", "fp32", "fp8", "int8", "int4"),
    "kv_cache": ("16-bit", "8-bit"),
    "model": (*PRESETS, *MIXTURES, *HYBRIDS, "custom"),
    "tied_embeddings": YES_NO,
    **dict.fromkeys(TRAITS, YES_NO),
    "shared_expert_gate": YES_NO,
    "adapters_skip_experts": YES_NO,
    "router": ("softmax", "softmax-float32", "softmax-of-chosen", "softmax-of-chosen-float32", "softmax-scaled", "softmax-grouped", "sigmoid-grouped"),
    "rotary": ("halves", "pairs", "complex"),
    "mixer": ("none", "short-convolution", "gated-delta-net"),
    "attention_gate": YES_NO,
    "expert_biases": YES_NO,
    "attention_sinks": YES_NO,
    "norm": tuple(NORM_VECTORS),
    "activation": ("fused", "gelu-new", "relu", "relu-squared"),
    "objective": ("sft", "dpo", "reward", "grpo", "ppo"),
    "reference": ("stack", "copy", "shared", "precomputed"),
    "method": ("full", "lora", "qlora", "pretraining"),
    "quantization": ("nf4-double", "nf4", "int8", "gptq", "gptq-ungrouped", "awq"),
    "kbit_preparation": ("stack", "all", "norms", "none"),
    "base_precision": ("stack", "bf16", "fp32"),
    "gpu": (*map(str, GPU_CLASSES), *CARDS, "custom"),
    "budget_unit": ("gib", "gb"),
    "trainable_precision": ("stack", "mixed-bf16", "pure-bf16"),
    "optimizer": ("adamw", "adamw-foreach", "adamw-fused", "adamw-fp32-states", "adamw-8bit", "paged-adamw-32bit",
                  "paged-adamw-8bit", "adafactor", "sgd", "sgd-momentum", "lion"),
    "loss": ("stack", "logits", "triton", "fused-linear", "chunked", "tiled", "split", "unsloth", "cut"),
    "layer_kernels": ("stack", "plain", "liger"),
    "optimizer_step": ("stack", "after", "in-backward"),
    "torch_compile": ("off", "on"),
    "checkpointing": ("none", "full", "offloaded"),
    "attention_kernel": ("efficient", "efficient-repeated", "eager"),
    "checkpoint_kind": ("stack", "non-reentrant", "reentrant"),
    "autocast": ("stack", "on", "off"),
    "half_precision": ("bf16", "fp16"),
    "sharding": ("none", "ddp", "zero1", "zero2", "zero3", "fsdp1", "fsdp2"),
    "offload": ("none", "optimizer", "optimizer-and-parameters"),
}
PARTS = ("q", "q_a", "q_b", "kv_a", "kv_b", "k", "v", "o", "in", "out", "gate", "up", "down", "lm_head", "embed")
TARGETS = ("attention", "all-linear", "q,v", "q,k,v,o,gate", "down", "gate,up", "q,lm_head", "o,embed")

# What a decoder without experts has of what only a mixture of them has, and one without latent attention, or with
# attention in every layer, of that.
NO_EXPERTS = {"shared_expert_gate": ("false",), "router": ("softmax",), "adapters_skip_experts": ("false",), "rotary": ("halves",), "mixer": ("none",), "attention_gate": ("false",), "expert_biases": ("false",), "attention_sinks": ("false",)}
EXPERTS = {"num_experts": (0, 4_096), "experts_per_token": (0, 4_096), "expert_intermediate_size": (0, 1_048_576),
           "shared_expert_intermediate_size": (0, 1_048_576), "dense_layers": (0, 1_023)}
LATENT = {"q_lora_rank": (0, 1_048_576), "kv_lora_rank": (0, 1_048_576), "qk_nope_head_dim": (0, 2_048), "qk_rope_head_dim": (0, 2_048),
          "v_head_dim": (0, 4_096)}
MIXER = {"mixer_kernel": (0, 64), "mixer_key_heads": (0, 4_096), "mixer_value_heads": (0, 4_096), "mixer_key_dim": (0, 4_096), "mixer_value_dim": (0, 4_096)}
DELTA_NET = {"mixer": "gated-delta-net", "attention_layers": "1", "mixer_kernel": "4", "mixer_key_heads": "1", "mixer_value_heads": "4096", "mixer_key_dim": "8", "mixer_value_dim": "8"}
LAYERS = ("attention_layers",)  # lists of layers
SMALL_DELTA_NET = DELTA_NET | {"mixer_key_heads": "2", "mixer_value_heads": "4", "mixer_value_dim": "16"}
LATENT_ATTENTION = {"num_kv_heads": "6", "head_dim": "12", "kv_lora_rank": "16", "qk_nope_head_dim": "8", "qk_rope_head_dim": "4", "v_head_dim": "10"}

# What each accounting can count of the settings that it reads.
COUNTED = {
    "step": {
        **{name: options for name, options in CHOICES.items() if name not in ("unsloth_revision", *OF_RULES)}, "accounting": ("step",), "model": (*PRESETS, "custom"), "adapter_targets": TARGETS, "objective": ("sft", "sft", "dpo", "reward"), **NO_EXPERTS,
        "sharding": ("none",) * 7 + CHOICES["sharding"], "offload": ("none",) * 3 + CHOICES["offload"],
    },
    "planning": {
        "accounting": ("planning",),
        "model": (*PRESETS, "custom"),
        **{name: CHOICES[name] for name in ("tied_embeddings", *TRAITS, *KINDS, "method", "budget_unit", "attention_kernel")},
        "checkpointing": ("none", "full"),
        "adapter_targets": ("attention", "all-linear"),
        "gpu": (*map(str, GPU_CLASSES), "custom"),
        "trainable_precision": ("mixed-bf16", "pure-bf16"),
        "optimizer": ("adamw", "adamw-foreach", "adamw-fused", "adamw-fp32-states", "adamw-8bit"),
    },
    "unsloth": {
        "accounting": ("unsloth",),
        "unsloth_revision": CHOICES["unsloth_revision"],
        "model": (*GATED, "custom"),
        **{name: CHOICES[name] for name in ("tied_embeddings", *TRAITS, *KINDS, "budget_unit", "attention_kernel", "checkpointing")},
        "method": ("full", "lora", "qlora"),
        "plain_mlp": ("false",),
        "adapter_targets": ("attention", "all-linear", "q,v", "q,k,v,o,gate", "down", "gate,up"),
        "gpu": (*map(str, GPU_CLASSES), "custom"),
        "quantization": ("nf4", "nf4-double"),
        "optimizer": ("adamw-foreach", "adamw-fused", "adamw-8bit", "paged-adamw-32bit", "sgd"),
    },
    "rules": {
        "accounting": ("rules",),
        **{name: CHOICES[name] for name in OF_RULES},
        "model": (*PRESETS, "custom"),
        **{name: CHOICES[name] for name in ("tied_embeddings", *TRAITS, *KINDS, "budget_unit", "attention_kernel", "method", "quantization", "sharding", "autocast",
                                            "trainable_precision")},
        "checkpointing": ("none", "full"),
        "adapter_targets": ("attention", "all-linear", "q,v", "q,k,v,o,up,down", "down", "up,lm_head"),
        "gpu": (*map(str, GPU_CLASSES), "custom"),
        "optimizer": ("adamw", "adamw-foreach", "adamw-fused", "adamw-fp32-states", "adamw-8bit"),
    },
}

WHOLE = {
    "hidden_size": (1, 1_048_576),
    "num_layers": (1, 1_024),
    "num_attention_heads": (1, 4_096),
    "num_kv_heads": (1, 4_096),
    "head_dim": (1, 4_096),
    "intermediate_size": (1, 1_048_576),
    "vocab_size": (1, 4_194_304),
    "sliding_window": (0, 131_072),
    "learned_positions": (0, 1_048_576),
    "sliding_window_pattern": (0, 1_024),
    **EXPERTS,
    **LATENT,
    **MIXER,
    "rank": (1, 256),
    "replicas": (1, 128),
    "sharded_over": (1, 1_024),
    "sequence_length": (1, 131_072),
    "micro_batch": (1, 1_024),
    "gradient_accumulation_steps": (1, 1_024),
}
COUNTS = ("sliding_window", "learned_positions", "sliding_window_pattern")  # traits that are numbers
DECIMAL = {
    "lora_dropout": ("0", "0.99"), "budget": ("1", "2048"), "other_processes": ("0", "2048"),
    "activation_multiplier": ("0.25", "4"), "extra_allowance": ("0", "128"), "floor_fraction": ("0", "1"),
}
DIMENSION_KEYS = ("hidden_size", "num_layers", "num_attention_heads", "num_kv_heads", "head_dim", "intermediate_size",
                  "vocab_size", "tied_embeddings")
TRAIT_KEYS = ("query_key_norms", "extra_norms", "query_biases", "fused_projections", "scaled_embeddings", "attention_softcap",
              "logit_softcap", "sliding_window", "plain_mlp", "norm", "parallel_blocks", "shared_norm", "norms_after",
              "wide_query_key_norms", "output_biases", "mlp_biases", "head_bias", "learned_positions", "embedding_norm",
              "fused_gate_up", "activation", "scaled_residual", "residual_dropout", "embedding_dropout", "partial_rotary", "alibi",
              "broadcast_heads", "sliding_window_pattern", "num_experts", "experts_per_token", "expert_intermediate_size",
              "shared_expert_intermediate_size", "shared_expert_gate", "dense_layers", "router", "adapters_skip_experts", *LATENT, "rotary",
              "mixer", "attention_layers", *MIXER, "attention_gate", "expert_biases", "attention_sinks")
FIELD_ORDER = ("accounting", "stack", "unsloth_revision", *OF_RULES, "model", *DIMENSION_KEYS, *TRAIT_KEYS, "objective", "reference", "method", "rank", "adapter_targets", "quantization",
               "kbit_preparation", "base_precision", "lora_dropout", "gpu", "budget", "budget_unit", "replicas",
               "sharding", "sharded_over", "offload", "other_processes",
               "sequence_length", "micro_batch", "gradient_accumulation_steps", "trainable_precision", "optimizer", "optimizer_step", "loss",
               "layer_kernels", "checkpointing", "attention_kernel", "checkpoint_kind", "autocast", "torch_compile", "half_precision", "activation_multiplier", "extra_allowance",
               "floor_fraction", "measured")

# What opens without a link, and what a link of the first release opens. `OPENING` is what is counted by default.
OPENING = {
    "accounting": "step", "stack": "trainer-5", "unsloth_revision": "2026-03", "task": "training", "served_weights": "bf16", "kv_cache": "16-bit", "model": "llama-3.1-8b", "objective": "sft", "reference": "stack", "method": "qlora", "rank": "16",
    "adapter_targets": "all-linear", "quantization": "nf4-double", "kbit_preparation": "stack", "base_precision": "stack",
    "lora_dropout": "0", "gpu": "24", "replicas": "1", "sharding": "none", "sharded_over": "1", "offload": "none", "sequence_length": "2048", "micro_batch": "1",
    "gradient_accumulation_steps": "8", "trainable_precision": "stack", "optimizer": "adamw", "optimizer_step": "stack", "loss": "stack",
    "layer_kernels": "stack", "checkpointing": "full", "attention_kernel": "efficient", "checkpoint_kind": "stack", "autocast": "stack", "torch_compile": "off", "half_precision": "bf16",
    "activation_multiplier": "1", "extra_allowance": "0", "floor_fraction": "0.15", "measured": "",
}
PLANNING = {**OPENING, "accounting": "planning", "trainable_precision": "mixed-bf16"}
UNSLOTH = {**OPENING, "accounting": "unsloth"}
RULES = {**OPENING, "accounting": "rules"}
OPENINGS = {"step": OPENING, "planning": PLANNING, "unsloth": UNSLOTH, "rules": RULES}

SMALL_DECODER = {
    "model": "custom", "hidden_size": "64", "num_layers": "3", "num_attention_heads": "6", "num_kv_heads": "2",
    "head_dim": "12", "intermediate_size": "200", "vocab_size": "1000", "tied_embeddings": "false",
    **dict.fromkeys(TRAITS, "false"), **KINDS, **dict.fromkeys((*COUNTS, *EXPERTS, *LATENT, *MIXER), "0"), "shared_expert_gate": "false", "router": "softmax", "adapters_skip_experts": "false",
    "rotary": "halves", "mixer": "none", "attention_layers": "none", "attention_gate": "false", "expert_biases": "false", "attention_sinks": "false",
}
CUSTOM = {**PLANNING, **SMALL_DECODER, "gpu": "custom", "budget": "20", "budget_unit": "gib"}
CUSTOM_STEP = {**CUSTOM, "accounting": "step", "trainable_precision": "stack"}


def reading(name):
    """A valid configuration in which this setting is read."""
    if name in ("activation_multiplier", "extra_allowance"):
        return CUSTOM
    if name in ("unsloth_revision", "floor_fraction"):
        return {**CUSTOM, "accounting": "unsloth"}
    if name == "task":
        return {**CUSTOM, "accounting": "rules"}
    if name in OF_RULES:
        return {**CUSTOM, "accounting": "rules", "task": "inference"}
    if name in ("sharded_over", "offload"):
        return {**CUSTOM_STEP, "sharding": "zero3"}
    if name == "shared_norm":
        return {**CUSTOM_STEP, "parallel_blocks": "true"}
    if name in (*LATENT, "rotary"):
        return {**CUSTOM_STEP, **LATENT_ATTENTION}
    if name in ("mixer", "attention_gate", *MIXER, *LAYERS):
        return {**CUSTOM_STEP, **DELTA_NET}
    if name in (*NO_EXPERTS, *EXPERTS):
        return {**CUSTOM_STEP, "num_experts": "8", "experts_per_token": "2", "expert_intermediate_size": "64", "shared_expert_intermediate_size": "32"}
    if name == "broadcast_heads":
        return {**CUSTOM_STEP, "num_kv_heads": "1"}
    if name == "reference":
        return {**CUSTOM_STEP, "objective": "dpo", "stack": "trl-1.15"}
    return {**CUSTOM_STEP, "gpu": "t4"} if name == "other_processes" else CUSTOM_STEP


def decimal_text(generator, low, high, places):
    """A decimal from low to high as typed, with up to `places` digits after the point."""
    digits = generator.randint(0, places)
    units = generator.randint(low * 10**digits, high * 10**digits)
    return f"{units // 10**digits}.{units % 10**digits:0{digits}d}" if digits else str(units)


def whole_text(generator, limits, upto=None):
    """A whole number within limits, small ones as likely as large ones."""
    low, high = limits[0], min(limits[1], upto or limits[1])
    return str(max(low, min(high, round(2 ** generator.uniform(0, high.bit_length())))))


def random_configuration(generator, accounting="planning"):
    """One valid configuration that the accounting can count: any model or dimensions, any choice, any number within its limits."""
    chosen = {name: generator.choice(options) for name, options in COUNTED[accounting].items()}
    chosen["model"] = generator.choice([chosen["model"], "custom"])  # as often as all presets together
    if chosen["model"] == "custom":
        chosen |= {name: whole_text(generator, WHOLE[name]) for name in DIMENSION_KEYS if name in WHOLE}
        heads = int(chosen["num_attention_heads"])
        chosen["num_kv_heads"] = str(generator.choice([k for k in range(1, heads + 1) if heads % k == 0]))
        for name in COUNTS:
            chosen[name] = generator.choice(["0", whole_text(generator, WHOLE[name])])
        chosen = possible(chosen)
    else:
        for name in ("tied_embeddings", *TRAITS, *KINDS):
            del chosen[name]
        chosen = {name: value for name, value in chosen.items() if name not in NO_EXPERTS}
    for name in ("rank", "replicas", "sharded_over", "micro_batch", "gradient_accumulation_steps"):
        chosen[name] = whole_text(generator, WHOLE[name])
    cap = PRESETS[chosen["model"]]["cap"] if chosen["model"] in PRESETS else 131_072
    chosen["sequence_length"] = whole_text(generator, WHOLE["sequence_length"], upto=cap)
    if chosen["gpu"] == "custom":
        chosen["budget"] = decimal_text(generator, 2, 2048, 9)
    else:
        del chosen["budget_unit"]
    if accounting == "step":
        chosen["lora_dropout"] = generator.choice(["0", "0.05"])
        if chosen["gpu"] in CARDS:
            chosen["other_processes"] = generator.choice(["0", "0.4", decimal_text(generator, 0, 20, 4)])
        return countable(chosen)
    if accounting == "unsloth":
        chosen["floor_fraction"] = generator.choice(["0", "0.15", "0.2", "1", decimal_text(generator, 0, 1, 4)])
        return chosen
    if accounting == "rules":
        return chosen
    multiplier = decimal_text(generator, 1, 3, 4)
    chosen["activation_multiplier"] = generator.choice(["0.25", "0.3", "0.7", "1", "1.1", "3.3", "4", multiplier])
    chosen["extra_allowance"] = generator.choice(["0", "0.1", "0.3", "128", decimal_text(generator, 0, 127, 4)])
    return chosen


# What takes another trait's place, by that trait: a decoder has one of the two.
INSTEAD = {
    "extra_norms": ("shared_norm", "norms_after"), "shared_norm": ("norms_after",), "query_key_norms": ("wide_query_key_norms",),
    "plain_mlp": ("fused_gate_up",), "fused_projections": ("fused_gate_up",), "alibi": ("partial_rotary",),
}


def possible(chosen):
    """The same decoder without the traits that go with none of its others; one norm per layer only with
    parallel blocks, a broadcast head only where there is one, and one kind of position."""
    chosen = dict(chosen)
    if chosen["parallel_blocks"] == "false":
        chosen["shared_norm"] = "false"
    if chosen["num_kv_heads"] != "1":
        chosen["broadcast_heads"] = "false"
    if chosen["learned_positions"] != "0":
        chosen |= {"alibi": "false", "partial_rotary": "false"}
    for name, others in INSTEAD.items():
        chosen |= dict.fromkeys(others, "false") if chosen[name] == "true" else {}
    return chosen


def in_16_bits(chosen):
    """Whether the base model surely is in 16 bits, whatever the stack does."""
    if chosen["method"] in WHOLE_MODEL:
        return chosen["method"] == "full" and chosen["trainable_precision"] == "pure-bf16"
    return chosen["base_precision"] == "bf16" and (chosen["method"] == "lora" or chosen["kbit_preparation"] == "none")


def countable(chosen):
    """The same with what can be counted: without autocast no grouped heads in float32 for the efficient kernel; logits for an
    adapter on the head; another loss where a stack refuses Liger's; the stack's own where it has no other; and pairs as TRL's
    releases train on them."""
    if chosen["method"] == "pretraining":
        own = chosen["stack"] in OWN_CODE or chosen["stack"].startswith("unsloth")
        chosen = {**chosen, "objective": "sft", "stack": "trainer-5" if own else chosen["stack"]}
    if chosen["objective"] in ("dpo", "reward"):
        chosen = with_pairs(chosen)
    if chosen.get("optimizer_step") == "in-backward":
        chosen = {**chosen, "gradient_accumulation_steps": "1", "sharding": "none", "offload": "none"}
    if not chosen["stack"].startswith("torchtune"):
        chosen = {**chosen, "torch_compile": "off"}
    no_autocast = chosen["autocast"] == "off" or (chosen["autocast"] == "stack" and chosen["stack"] == "loop")
    if chosen["attention_kernel"] == "efficient" and no_autocast and not in_16_bits(chosen):
        chosen = {**chosen, "attention_kernel": "efficient-repeated"}
    if chosen["stack"] in OWN_CODE:
        targets = ",".join(name for name in chosen["adapter_targets"].split(",") if name not in ("embed", "lm_head")) or "q"
        own = {"loss": "stack", "layer_kernels": "stack", "quantization": "nf4", "sharding": "none", "offload": "none"}
        return {**chosen, **own, "adapter_targets": targets}
    if chosen["loss"] == "split":
        chosen = {**chosen, "loss": "logits"}
    if chosen["method"] not in WHOLE_MODEL and "lm_head" in chosen["adapter_targets"] and chosen["loss"] not in ("logits", "triton"):
        return divisible({**chosen, "loss": "logits"})
    if chosen["stack"] == "trl-1.15" and chosen["loss"] == "fused-linear":
        chosen = {**chosen, "loss": "tiled"}
    return divisible(chosen)


def divisible(chosen):
    """The same with what the chosen sharding runs with: no Adafactor on pieces, torch's own AdamW where states leave the GPU or
    under FSDP2, NF4 where the weights are divided, and an offload that there is."""
    kind = chosen.get("sharding", "none")
    if not kind.startswith(("zero", "fsdp")):
        return chosen
    chosen = {**chosen, "attention_kernel": "efficient-repeated"} if chosen["attention_kernel"] == "efficient" else dict(chosen)
    if kind.startswith("fsdp") and chosen["offload"] == "optimizer":
        chosen["offload"] = "optimizer-and-parameters"
    if kind in ("zero1", "zero2") and chosen["offload"] == "optimizer-and-parameters":
        chosen["offload"] = "optimizer"
    if chosen["optimizer"] == "adafactor" or chosen["offload"] != "none" or (kind == "fsdp2" and not chosen["optimizer"].startswith("sgd")):
        chosen["optimizer"] = "adamw-fused"
    if kind in ("zero3", "fsdp1", "fsdp2") and chosen["method"] == "qlora" and not chosen["quantization"].startswith("nf4"):
        chosen["quantization"] = "nf4"
    if kind == "fsdp1" and chosen["method"] == "qlora":
        chosen["kbit_preparation"] = "none"
    return chosen


def with_pairs(chosen):
    """The same as a step on pairs that is counted: by TRL, with its own loss, no adapter on the head, nothing shared but adapters."""
    parts = [part for part in chosen["adapter_targets"].split(",") if part != "lm_head"]
    chosen = {**chosen, "loss": "stack", "adapter_targets": ",".join(parts) or "q"}
    if chosen["stack"] not in PAIR_STACKS:
        chosen |= {"stack": "trl-1.15"}
    if chosen["stack"] != "trl-1.15" and chosen["autocast"] == "off":
        chosen |= {"autocast": "on"}
    if chosen["sharding"] not in ("none", "ddp"):
        chosen |= {"sharding": "ddp"}
    return chosen | ({"reference": "copy"} if chosen["method"] == "full" and chosen["reference"] == "shared" else {})


def random_configurations(count, seed, accounting="planning"):
    generator = random.Random(seed)
    return [random_configuration(generator, accounting) for _ in range(count)]
