"""Parameters of models, as published and by trait, the same by every accounting that counts all of them.

Belongs here: presets and custom decoders as shapes. What their parameters cost: test_planning.py, test_states.py.
"""

from datetime import date
from pathlib import Path
import re
import tomllib

import pytest

from configurations import DIMENSION_KEYS, OPENINGS, SMALL_DECODER, TRAIT_KEYS, random_configurations
import oracle
from oracle import HYBRIDS, MIXTURES, PRESETS
from vramplan import estimate
from vramplan.catalogue import defaults
from vramplan.errors import NotExpressible
from vramplan.importing.chosen import inventory_of, trainable
from vramplan.settings import Settings, carried_over, parse

PUBLISHED = tomllib.loads((Path(__file__).parent / "published.toml").read_text(encoding="utf-8"))

by_each = pytest.mark.parametrize("accounting", ("step", "planning"))


def of(accounting, **changes):
    return estimate(parse({**OPENINGS[accounting], **changes}))


@pytest.mark.parametrize("model", PRESETS)
@by_each
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_parameters_of_the_presets_as_published(model, accounting, method):
    assert of(accounting, model=model, method=method, sequence_length="128").parameters.total == PUBLISHED[model]["count"]


@pytest.mark.parametrize("model", [*MIXTURES, *HYBRIDS])
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_parameters_of_mixtures_of_experts_latent_attention_and_hybrids_as_published(model, method):
    assert of("step", model=model, method=method, sequence_length="128").parameters.total == PUBLISHED[model]["count"]


@pytest.mark.parametrize("model", MIXTURES)
def test_the_planning_formula_says_that_it_counts_no_experts_and_no_latent_attention(model):
    with pytest.raises(NotExpressible, match="no experts|no latent attention"):
        of("planning", model=model, sequence_length="128")


@pytest.mark.parametrize("model", HYBRIDS)
def test_the_planning_formula_says_that_it_counts_attention_alone(model):
    with pytest.raises(NotExpressible, match="attention in every layer"):
        of("planning", model=model, sequence_length="128")


def test_every_count_is_of_a_preset_and_says_whose_it_is():
    assert set(PUBLISHED) == {*PRESETS, *MIXTURES, *HYBRIDS}
    for name, entry in PUBLISHED.items():
        assert set(entry) == {"count", "source", "date"}, name
        assert re.match(r"\w+; .", entry["source"]) and isinstance(entry["date"], date), name


# What each trait adds to the parameters of the small decoder: 3 layers, 6 and 2 heads of 12, hidden size 64, MLP 200,
# vocabulary 1,000, one norm at the end.
TRAIT_PARAMETERS = {
    "query_key_norms": 3 * (12 + 12),
    "wide_query_key_norms": 3 * (72 + 24),
    "extra_norms": 3 * (64 + 64),
    "norms_after": 0,
    "query_biases": 3 * (72 + 24 + 24),
    "output_biases": 3 * 64,
    "mlp_biases": 3 * (200 + 200 + 64),
    "head_bias": 1000,
    "plain_mlp": -3 * 200 * 64,
    "embedding_norm": 64,
    "parallel_blocks": 0, "fused_projections": 0, "fused_gate_up": 0, "scaled_embeddings": 0, "attention_softcap": 0,
    "logit_softcap": 0, "scaled_residual": 0, "residual_dropout": 0, "embedding_dropout": 0, "partial_rotary": 0, "alibi": 0,
}


@pytest.mark.parametrize(("trait", "more"), TRAIT_PARAMETERS.items())
@by_each
def test_traits_of_a_custom_model_add_their_parameters(trait, more, accounting):
    with_it, without = (of(accounting, **SMALL_DECODER | {trait: each}).parameters.total for each in ("true", "false"))
    assert with_it - without == more


# Traits that depend on one another, and what they add together.
TOGETHER = {
    "a shared norm": ({"parallel_blocks": "true", "shared_norm": "true"}, -3 * 64),
    "a shared LayerNorm": ({"parallel_blocks": "true", "shared_norm": "true", "norm": "layer"}, 64),
    "LayerNorms": ({"norm": "layer"}, 7 * 64),
    "LayerNorms without parameters": ({"norm": "layer-plain", "query_key_norms": "true"}, -7 * 64),
    "LayerNorms on heads": ({"norm": "layer", "wide_query_key_norms": "true"}, 7 * 64 + 2 * 3 * (72 + 24)),
    "biases of a plain MLP": ({"plain_mlp": "true", "mlp_biases": "true"}, -3 * 200 * 64 + 3 * (200 + 64)),
    "learned positions": ({"learned_positions": "50"}, 50 * 64),
    "a LayerNorm after the embedding": ({"norm": "layer", "embedding_norm": "true"}, 7 * 64 + 2 * 64),
}


@pytest.mark.parametrize(("traits", "more"), TOGETHER.values(), ids=TOGETHER)
@by_each
def test_traits_that_belong_together_add_their_parameters(traits, more, accounting):
    assert of(accounting, **SMALL_DECODER | traits).parameters.total - of(accounting, **SMALL_DECODER).parameters.total == more


DECODERS = [typed for typed in random_configurations(300, seed=31) if typed["model"] == "custom"]


def test_parameters_of_any_decoder_are_the_sum_of_its_shapes():
    assert len(DECODERS) > 100
    dense, others, _ = oracle.parameters(oracle.columns(DECODERS))
    for index, typed in enumerate(DECODERS):
        decoder = {name: typed[name] for name in (*DIMENSION_KEYS, *TRAIT_KEYS) if name in typed}
        for method in ("full", "lora", "qlora"):
            counted = of("step", model="custom", **decoder, method=method, sequence_length="64").parameters.total
            assert counted == dense[index] + others[index], decoder


@pytest.mark.parametrize("model", ["qwen3-8b", "qwen2.5-7b", "gemma-2-2b", "gemma-3-1b", "phi-3.5-mini", "granite-3.0-2b"])
@by_each
def test_a_preset_can_be_typed_in(model, accounting):
    """The form fills a custom model with a preset's numbers; nothing of it may get lost on the way."""
    filled = carried_over(defaults() | {"model": "custom"}, chosen="model", before=model)
    typed = of(accounting, **filled, model="custom", sequence_length="1024")
    preset = of(accounting, model=model, sequence_length="1024")
    assert (typed.peak_bytes, typed.terms, typed.parameters) == (preset.peak_bytes, preset.terms, preset.parameters)


@pytest.mark.parametrize("name", PRESETS)
def test_every_presets_modules_add_up_to_the_same_parameters(name):
    """The same model by two ways: the table of its family, module by module, and the dimensions and traits of its preset."""
    settings = Settings(model=name, sequence_length=512)
    counted = estimate(settings).parameters
    modules = inventory_of(settings)
    assert (modules.total, trainable(modules, settings)) == (counted.total, counted.trainable)
