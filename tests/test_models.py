"""Parameters of models, as published and by trait, the same by every accounting.

Belongs here: presets and custom decoders as shapes. What their parameters cost: test_planning.py, test_states.py.
"""

import pytest

from configurations import OPENINGS, SMALL_DECODER
from vramplan import estimate
from vramplan.catalogue import defaults
from vramplan.settings import carried_over, parse

by_each = pytest.mark.parametrize("accounting", OPENINGS)


def of(accounting, **changes):
    return estimate(parse({**OPENINGS[accounting], **changes}))


@pytest.mark.parametrize(
    ("model", "count"),
    [
        ("llama-3.2-1b", 1_235_814_400),
        ("llama-3.2-3b", 3_212_749_824),
        ("llama-3.1-8b", 8_030_261_248),
        ("qwen3-8b", 8_190_735_360),
        ("llama-2-7b", 6_738_415_616),
        ("mistral-7b-v0.1", 7_241_732_096),
        ("mistral-7b-v0.3", 7_248_023_552),
        ("qwen2.5-0.5b", 494_032_768),
        ("qwen2.5-1.5b", 1_543_714_304),
        ("qwen2.5-7b", 7_615_616_512),
        ("qwen3-0.6b", 596_049_920),
        ("qwen3-1.7b", 1_720_574_976),
        ("qwen3-4b", 4_022_468_096),
        ("gemma-2-2b", 2_614_341_888),
        ("gemma-3-1b", 999_885_952),
        ("phi-3.5-mini", 3_821_079_552),
        ("smollm2-135m", 134_515_008),
        ("smollm2-360m", 361_821_120),
        ("smollm2-1.7b", 1_711_376_384),
        ("granite-3.0-2b", 2_533_531_648),
        ("phi-4-mini", 3_836_021_760),
    ],
)
@by_each
@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_parameters_of_the_presets_as_published(model, count, accounting, method):
    assert of(accounting, model=model, method=method, sequence_length="128").parameters.total == count


# What each trait adds to the parameters of the small decoder: 3 layers, 6 and 2 heads of 12, hidden size 64.
TRAIT_PARAMETERS = {
    "query_key_norms": 3 * (12 + 12),
    "extra_norms": 3 * (64 + 64),
    "query_biases": 3 * (72 + 24 + 24),
    "fused_projections": 0, "scaled_embeddings": 0, "attention_softcap": 0, "logit_softcap": 0,
}


@pytest.mark.parametrize(("trait", "more"), TRAIT_PARAMETERS.items())
@by_each
def test_traits_of_a_custom_model_add_their_parameters(trait, more, accounting):
    with_it, without = (of(accounting, **SMALL_DECODER | {trait: each}).parameters.total for each in ("true", "false"))
    assert with_it - without == more


@pytest.mark.parametrize("model", ["qwen3-8b", "qwen2.5-7b", "gemma-2-2b", "gemma-3-1b", "phi-3.5-mini", "granite-3.0-2b"])
@by_each
def test_a_preset_can_be_typed_in(model, accounting):
    """The form fills a custom model with a preset's numbers; nothing of it may get lost on the way."""
    filled = carried_over(defaults() | {"model": "custom"}, chosen="model", before=model)
    typed = of(accounting, **filled, model="custom", sequence_length="1024")
    preset = of(accounting, model=model, sequence_length="1024")
    assert (typed.peak_bytes, typed.terms, typed.parameters) == (preset.peak_bytes, preset.terms, preset.parameters)
