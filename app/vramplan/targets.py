"""Which linear maps get an adapter: the two common sets by name, or any list."""

from vramplan.architecture import NO_MIXER

ATTENTION = ("q", "k", "v", "o")
"""Projections of attention, in the order in which a layer runs them."""

LATENT = ("q_a", "q_b", "kv_a", "kv_b")
"""Maps of latent attention (MLA): into the narrow tensor of the queries and out of it, and the same for keys and values."""

MLP = ("gate", "up", "down")
"""Maps of a gated MLP."""

ALL_LINEAR = (*ATTENTION, *MLP)
"""Every linear map of a layer: what PEFT's "all-linear" selects. Source: peft 0.21.2, tuners/tuners_utils.py."""

MIXER = ("in", "out")
"""Maps of what stands in place of attention: all that lead into it, and the one out of it."""

EVERYTHING = ("q", *LATENT, "k", "v", "o", *MIXER, *MLP, "lm_head", "embed")
"""Everything that can be named: also the output head and the embedding."""

NAMED = {"attention": ATTENTION, "all-linear": ALL_LINEAR}
"""Sets that have a name of their own."""


def attention_maps(*, q_lora_rank: int, kv_lora_rank: int) -> tuple[str, ...]:
    """The linear maps of a model's attention, in order: with a rank, those of latent attention.

    Source: transformers 5.24.0, models/deepseek_v3/modeling_deepseek_v3.py, DeepseekV3Attention.
    """
    if not kv_lora_rank:
        return ATTENTION
    return (*LATENT, "o") if q_lora_rank else ("q", *LATENT[2:], "o")


def mixer_maps(mixer: str) -> tuple[str, ...]:
    """The linear maps of what a model's layers have in place of attention, where they have such."""
    return () if mixer == NO_MIXER else MIXER


def named_parts(text: str, attention: tuple[str, ...] = ATTENTION, mixer: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The projections a text names, in the order of EVERYTHING; empty if it names anything else, or one twice. `attention`: the maps
    of the model's attention, which the names of sets stand for; `mixer`: those of what other layers have in its place."""
    if text in NAMED:
        others = tuple(part for part in NAMED[text] if part not in ATTENTION)
        return (*attention, *mixer, *others) if others else attention
    parts = [part.strip() for part in text.split(",")]
    if len(set(parts)) < len(parts) or not set(parts) <= set(EVERYTHING):
        return ()
    return tuple(part for part in EVERYTHING if part in parts)


def normal_text(text: str) -> str:
    """The same targets as they stand in a link: a name, or a comma list in the order of EVERYTHING."""
    return text if text in NAMED else ",".join(named_parts(text))
