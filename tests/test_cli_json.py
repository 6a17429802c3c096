"""The JSON that the command prints: the documented keys, the documents of the library, exact values.

Belongs here: `--json` of all five commands. Tables, statuses and sentences: test_cli.py.
"""

import json

import pytest

from command import flags, printed_json, run
from configurations import CUSTOM, FIELD_ORDER, OPENING
from vramplan import compare, curve, estimate, fit
from vramplan.documents import CompareDocument, CurveDocument, EstimateDocument, FitDocument, LinkDocument
from vramplan.settings import parse

ESTIMATE_KEYS = {"accounting", "settings", "parameters", "terms", "peak_bytes", "budget_bytes", "headroom_bytes", "fits"}
TERM_NAMES = ["base_weights", "adapters", "master_weights", "gradients", "optimizer_states", "saved_activations", "active_layer",
              "adapter_activations", "logits", "dequantization", "fixed_allowance", "extra_allowance"]


def test_estimate_json_has_the_documented_keys_and_values():
    printed = printed_json("estimate")
    assert set(printed) == ESTIMATE_KEYS
    assert set(printed["parameters"]) == {"total", "trainable"}
    assert [set(term) for term in printed["terms"]] == [{"name", "bytes"}] * len(printed["terms"])
    assert [term["name"] for term in printed["terms"]] == TERM_NAMES
    assert printed["peak_bytes"] == sum(term["bytes"] for term in printed["terms"])
    assert printed["accounting"] == "planning" and printed["fits"] is True
    assert set(printed["settings"]) == set(OPENING)
    assert {name: str(value) for name, value in printed["settings"].items()} == OPENING


def test_fit_json_has_the_documented_keys():
    printed = printed_json("fit")
    assert set(printed) == {"largest_micro_batch", "longest_sequence", "alternatives", "smallest_gpu"}
    assert set(printed["largest_micro_batch"]) == set(printed["longest_sequence"]) == {"value", "at_cap"}
    for one in printed["alternatives"]:
        assert set(one) == {"change", "peak_bytes", "difference_bytes", "fits"}
        assert len(one["change"]) == 1 and set(one["change"]) <= set(FIELD_ORDER)
    changes = [change for one in printed["alternatives"] for change in one["change"].items()]
    assert {("method", "full"), ("method", "lora"), ("optimizer", "adamw-8bit"), ("trainable_precision", "pure-bf16"),
            ("checkpointing", "full"), ("attention_kernel", "efficient"), ("rank", 8), ("adapter_targets", "attention"),
            ("micro_batch", 1), ("sequence_length", 1024)} == set(changes)
    assert printed["smallest_gpu"]["headroom_bytes"] == 12 * 2**30 - printed_json("estimate")["peak_bytes"]


def test_nothing_that_fits_is_null():
    printed = json.loads(run("fit", "--method", "full", "--extra-allowance", "128", "--sequence-length", "131072", "--json").out)
    assert printed["smallest_gpu"] is None
    assert printed["largest_micro_batch"] == printed["longest_sequence"] == {"value": None, "at_cap": False}


@pytest.mark.parametrize(
    ("command", "document", "answer"),
    [("estimate", EstimateDocument, estimate), ("fit", FitDocument, fit), ("curve", CurveDocument, curve),
     ("compare", CompareDocument, compare), ("link", LinkDocument, lambda settings: settings)])
def test_json_is_the_document_of_the_library(command, document, answer):
    text = run(command, *flags(CUSTOM), "--json").out
    of_the_library = document.of(answer(parse(CUSTOM)))
    assert document.model_validate_json(text) == of_the_library
    assert json.loads(text) == json.loads(of_the_library.model_dump_json())
    assert set(json.loads(text)) == set(document.model_json_schema()["properties"])


def test_exact_decimals_stay_exact_in_json():
    exact = {**CUSTOM, "budget": "24.100000000000000000000001", "activation_multiplier": "1.10"}
    settings = printed_json("estimate", *flags(exact))["settings"]
    assert (settings["budget"], settings["activation_multiplier"]) == ("24.100000000000000000000001", "1.1")
    assert settings["tied_embeddings"] is False and settings["hidden_size"] == 64
