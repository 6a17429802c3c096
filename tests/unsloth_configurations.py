"""Seeded random configurations for Unsloth Studio's estimate, mixtures of experts among them.

Belongs here: data and its generation, as strings the way a person types them. Not here: assertions, formulas.
"""

from configurations import random_configuration
from oracle import ENTRIES, MIXTURES

# Mixtures of experts with four maps of attention in every layer, and those whose layers are all alike, without shared experts.
MIXTURES_COUNTED = [name for name in MIXTURES if "kv_lora_rank" not in ENTRIES[name]]
MIXTURES_ALIKE = [name for name in MIXTURES_COUNTED if not {"shared_expert_intermediate_size", "dense_layers"} & ENTRIES[name].keys()]


def with_experts(generator, chosen):
    """The same run of a mixture of experts: one of the presets, or experts for a custom decoder."""
    revision = chosen["unsloth_revision"]
    if chosen["model"] != "custom":
        model = generator.choice(MIXTURES_COUNTED if revision == "2026-08" else MIXTURES_ALIKE)
        return {**chosen, "model": model, "sequence_length": str(generator.randint(1, 2048))}
    experts = generator.choice([1, 2, 8, generator.randint(1, 4096)])
    layers = int(chosen["num_layers"])
    added = {
        "num_experts": experts, "experts_per_token": generator.randint(1, min(experts, 16)), "expert_intermediate_size": generator.randint(1, 40_000),
        "shared_expert_intermediate_size": 0, "dense_layers": 0,
    }
    if revision == "2026-08":
        added["shared_expert_intermediate_size"] = generator.choice([0, generator.randint(1, 40_000)])
        added["dense_layers"] = generator.choice([0, generator.randint(0, layers - 1)])
        gated = generator.choice(["true", "false"]) if added["shared_expert_intermediate_size"] else "false"
        chosen = {**chosen, "shared_expert_gate": gated}
    off = dict.fromkeys(("plain_mlp", "fused_projections", "fused_gate_up", "mlp_biases", "parallel_blocks", "shared_norm"), "false")
    return chosen | off | {name: str(value) for name, value in added.items()}


def unsloth_configuration(generator):
    """One valid configuration that either revision counts, every second one a mixture of experts."""
    chosen = random_configuration(generator, "unsloth")
    if chosen["unsloth_revision"] == "2026-08":
        chosen["adapter_targets"] = generator.choice([chosen["adapter_targets"], "q,lm_head", "embed", "embed,lm_head", "q,k,v,o,gate,up,down"])
        chosen["optimizer"] = generator.choice([chosen["optimizer"], "paged-adamw-8bit"])
    return with_experts(generator, chosen) if generator.random() < 0.5 else chosen
