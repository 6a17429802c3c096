"""Finding a model by typing."""

import pytest

from vramplan.fields import BY_NAME
from vramplan.finding import NONE, matching_models, next_place

LISTED = [option.value for option in BY_NAME["model"].kind.options]


@pytest.mark.parametrize("text, first", (
    ("llama 2", "llama-2-7b"), ("Qwen/Qwen3-8B", "qwen3-8b"), ("qwen3-8b", "qwen3-8b"), ("gemma 27b 3", "gemma-3-27b"), ("  PHI-4 ", "phi-4"), ("custom", "custom"),
))
def test_the_first_match_is_what_was_meant(text, first):
    assert matching_models(text)[0].value == first


def test_no_text_finds_all_in_their_order_and_nonsense_nothing():
    assert [option.value for option in matching_models(" ")] == LISTED
    assert matching_models("no such model") == ()


@pytest.mark.parametrize("name", LISTED)
def test_every_model_is_found_first_by_its_own_label(name):
    label = next(option.label for option in BY_NAME["model"].kind.options if option.value == name)
    found = matching_models(label)
    assert found[0].label.lower().startswith(label.lower()) and name in [option.value for option in found]


@pytest.mark.parametrize("place, back, then", ((NONE, False, 0), (NONE, True, 2), (0, False, 1), (0, True, 2), (2, False, 0), (2, True, 1)))
def test_places_go_round(place, back, then):
    assert next_place(place, 3, back=back) == then
