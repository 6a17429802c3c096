"""What a page in a frame and the page around it say to each other: what is in a message, and which are read.

How messages travel, and that others are left alone in a browser: browser/test_embedding.py.
"""

import json

from hypothesis import given, strategies as st
import pytest

from configurations import FIELD_ORDER
from vramplan import Settings, estimate
from vramplan.embedding import estimate_message, problems_message, read_settings
from vramplan.link import read_query, to_query
from vramplan.settings import format_settings, parse

LINK = "https://example.org/vram/?v=2"


def asking(settings, **changed):
    return json.dumps({"vramplan": 1, "type": "settings", "settings": settings} | changed)


@pytest.mark.parametrize("settings", [Settings(), Settings(method="full", gpu="12"), Settings(gpu="custom", budget="15.5", budget_unit="gb", lora_dropout="0.05")])
def test_an_estimate_is_told_in_numbers_and_in_what_a_link_says(settings):
    counted = estimate(settings)
    told = json.loads(estimate_message(counted, f"https://example.org/?{to_query(settings)}"))
    assert told == {
        "vramplan": 1, "type": "estimate", "settings": format_settings(settings), "peak_bytes": counted.peak_bytes, "budget_bytes": counted.budget_bytes,
        "fits": counted.fits, "link": f"https://example.org/?{to_query(settings)}",
    }
    assert parse(told["settings"]) == settings == parse(read_query(told["link"]).texts)
    assert parse(read_settings(asking(told["settings"]))) == settings


def test_problems_are_told_by_the_names_of_their_settings():
    assert json.loads(problems_message(("rank", "micro_batch"))) == {"vramplan": 1, "type": "problems", "fields": ["rank", "micro_batch"]}


def test_settings_may_be_texts_numbers_and_answers():
    asked = {"rank": 8, "sequence_length": "4096", "lora_dropout": 0.05, "tied_embeddings": True, "query_key_norms": False, "activation_multiplier": 1e-7}
    assert read_settings(asking(asked)) == {
        "rank": "8", "sequence_length": "4096", "lora_dropout": "0.05", "tied_embeddings": "true", "query_key_norms": "false", "activation_multiplier": "0.0000001",
    }


@pytest.mark.parametrize("message", [
    "", "null", "1", "[]", "{}", "{", '"settings"', "[" * 100_000, asking({}), asking([]), asking("rank=8"), asking(None), asking({"ranks": 8}),
    asking({"rank": 8, "v": 2}), asking({"rank": 8, "embed": 1}), asking({"rank": None}), asking({"rank": [8]}), asking({"rank": {"rank": 8}}), asking({"rank": float("nan")}),
    asking({"rank": float("inf")}), asking({"rank": "8" * 2_001}), asking({"rank": 10**200}), asking({"rank": 8}, vramplan=2), asking({"rank": 8}, vramplan="1"),
    asking({"rank": 8}, vramplan=True), asking({"rank": 8}, vramplan=1.0), asking({"rank": 8}, type="estimate"), asking({"rank": 8}, type=["settings"]),
    asking({"rank": 8}, origin="https://example.org"), '{"vramplan": 1, "type": "settings", "settings": {"rank": 8}', asking({"rank": 8}) + "x",
])
def test_a_message_of_another_shape_says_nothing(message):
    assert read_settings(message) is None


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(FIELD_ORDER), inner)))
def test_whatever_comes_is_texts_of_known_settings_or_nothing(content):
    for message in (json.dumps(content), asking(content)):
        read = read_settings(message)
        assert read is None or (read and set(read) <= set(FIELD_ORDER) and all(isinstance(text, str) for text in read.values()))
