"""The JSON that the command prints: the documented keys, the documents of the library, exact values.

Belongs here: `--json` of all five commands. Tables, statuses and sentences: test_cli.py.
"""

import json

import pytest

from command import flags, printed_json, run
from configurations import CUSTOM, CUSTOM_STEP, FIELD_ORDER, OPENINGS
from vramplan import compare, curve, estimate, fit
from vramplan.documents import CompareDocument, CurveDocument, EstimateDocument, FitDocument, GpusDocument, LinkDocument
from vramplan.gpus import gpu_curves
from vramplan.settings import parse

ESTIMATE_KEYS = {"accounting", "settings", "parameters", "terms", "peak_bytes", "budget_bytes", "context_bytes", "headroom_bytes",
                 "verdict", "fits", "reserved_bytes", "process_bytes", "moments", "tensors", "host"}
TERM_NAMES = {
    "planning": ["base_weights", "adapters", "master_weights", "gradients", "optimizer_states", "saved_activations",
                 "active_layer", "adapter_activations", "logits", "dequantization", "fixed_allowance", "extra_allowance"],
    "step": ["base_weights", "adapters", "gradients", "optimizer_states", "saved_activations", "logits", "inputs", "workspace"],
    "rules": ["base_weights", "adapters", "master_weights", "gradients", "optimizer_states", "saved_activations"],
    "unsloth": ["base_weights", "adapters", "optimizer_states", "gradients", "gradient_floor", "saved_activations", "activation_floor", "fixed_allowance"],
}
MOMENTS = ["forward", "loss", "backward of the last layer", "backward of the first layer", "end of the backward pass"]
MOMENT_NAMES = {
    "planning": ["everything at once"],
    "unsloth": ["everything at once"],
    "rules": ["everything at once"],
    "step": [*MOMENTS, *(f"{name}, later micro-batch" for name in MOMENTS), "optimizer step"],
}
BY_LINK = {"planning": ("--link", "?v=1"), "step": (), "unsloth": ("--accounting", "unsloth"), "rules": ("--accounting", "rules")}


@pytest.mark.parametrize("accounting", OPENINGS)
def test_estimate_json_has_the_documented_keys_and_values(accounting):
    printed = printed_json("estimate", *BY_LINK[accounting])
    assert set(printed) == ESTIMATE_KEYS
    assert set(printed["parameters"]) == {"total", "trainable"}
    assert [term["name"] for term in printed["terms"]] == TERM_NAMES[accounting]
    assert printed["accounting"] == accounting and printed["fits"] is True and printed["verdict"] == "yes"
    assert {name: str(value) for name, value in printed["settings"].items()} == OPENINGS[accounting]
    assert printed["headroom_bytes"] == printed["budget_bytes"] - printed["context_bytes"] - printed["peak_bytes"]


@pytest.mark.parametrize("accounting", OPENINGS)
def test_estimate_json_lists_every_moment_with_its_terms(accounting):
    printed = printed_json("estimate", *BY_LINK[accounting])
    moments = printed["moments"]
    assert [moment["name"] for moment in moments] == MOMENT_NAMES[accounting]
    for moment in moments:
        assert set(moment) == {"name", "bytes", "terms"}
        assert [set(term) for term in moment["terms"]] == [{"name", "bytes"}] * len(moment["terms"])
        assert moment["bytes"] == sum(term["bytes"] for term in moment["terms"])
    largest = max(moments, key=lambda moment: moment["bytes"])
    assert (largest["bytes"], largest["terms"]) == (printed["peak_bytes"], printed["terms"])


def test_estimate_json_lists_the_tensors_behind_the_terms():
    printed = printed_json("estimate")
    assert {frozenset(tensor) for tensor in printed["tensors"]} == {frozenset({"term", "name", "shape", "dtype", "count", "bytes", "why"})}
    amounts = {term["name"]: term["bytes"] for term in printed["terms"]}
    for term in ("adapters", "logits"):
        assert sum(tensor["bytes"] for tensor in printed["tensors"] if tensor["term"] == term) == amounts[term]
    assert {tensor["term"] for tensor in printed["tensors"]} <= set(amounts)
    assert printed_json("estimate", *BY_LINK["planning"])["tensors"] == []


def test_bands_in_json_and_null_where_terms_count_what_they_stand_for():
    printed = printed_json("estimate")
    reserved, process = printed["reserved_bytes"], printed["process_bytes"]
    assert set(reserved) == set(process) == {"low", "high"}
    assert printed["peak_bytes"] <= reserved["low"] <= reserved["high"]
    assert {name: process[name] - reserved[name] for name in reserved} == dict.fromkeys(reserved, printed["context_bytes"])
    planning = printed_json("estimate", *BY_LINK["planning"])
    assert planning["reserved_bytes"] is planning["process_bytes"] is None and planning["context_bytes"] == 0


def test_fit_json_has_the_documented_keys():
    printed = printed_json("fit")
    assert set(printed) == {"largest_micro_batch", "longest_sequence", "alternatives", "smallest_gpu", "fewest_gpus"}
    assert set(printed["largest_micro_batch"]) == set(printed["longest_sequence"]) == {"value", "at_cap"}
    for one in printed["alternatives"]:
        assert set(one) == {"change", "peak_bytes", "difference_bytes", "fits", "cost"}
        assert tuple(one["change"]) == ("sharding", "sharded_over") or (len(one["change"]) == 1 and set(one["change"]) <= set(FIELD_ORDER))
        assert one["difference_bytes"] < 0 or not one["cost"]
    changes = [change for one in printed["alternatives"] for change in one["change"].items()]
    assert {("method", "full"), ("method", "lora"), ("loss", "fused-linear"), ("layer_kernels", "liger"), ("optimizer", "adamw-8bit"),
            ("trainable_precision", "pure-bf16"), ("checkpointing", "full"), ("attention_kernel", "efficient"), ("rank", 8),
            ("adapter_targets", "attention"), ("micro_batch", 1), ("sequence_length", 1024), ("checkpointing", "offloaded"), ("sharding", "fsdp2"),
            ("sharded_over", 2)} == set(changes)
    planning = printed_json("fit", *BY_LINK["planning"])
    assert {name for one in planning["alternatives"] for name in one["change"]} == {name for name, _ in changes} - {"loss", "layer_kernels", "sharding", "sharded_over"}
    assert planning["smallest_gpu"]["headroom_bytes"] == 12 * 2**30 - printed_json("estimate", *BY_LINK["planning"])["peak_bytes"]


def test_nothing_that_fits_is_null():
    printed = json.loads(run("fit", "--method", "full", "--sequence-length", "131072", "--micro-batch", "64", "--json").out)
    assert printed["smallest_gpu"] is None
    assert printed["largest_micro_batch"] == printed["longest_sequence"] == {"value": None, "at_cap": False}


@pytest.mark.parametrize(
    ("command", "document", "answer"),
    [("estimate", EstimateDocument, estimate), ("fit", FitDocument, fit), ("curve", CurveDocument, curve),
     ("gpus", GpusDocument, lambda settings: (settings, gpu_curves(settings))), ("compare", CompareDocument, compare), ("link", LinkDocument, lambda settings: settings)])
@pytest.mark.parametrize("typed", [CUSTOM, CUSTOM_STEP], ids=["planning", "step"])
def test_json_is_the_document_of_the_library(typed, command, document, answer):
    text = run(command, *flags(typed), "--json").out
    of_the_library = document.of(answer(parse(typed)))
    assert document.model_validate_json(text) == of_the_library
    assert json.loads(text) == json.loads(of_the_library.model_dump_json())
    assert set(json.loads(text)) == set(document.model_json_schema()["properties"])


def required(schema, definitions):
    """Every key an object of this schema must have, at any depth, as dotted names."""
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    for name in schema.get("required", ()):
        part = schema["properties"][name]
        yield name
        for inner in (part, part.get("items", {}), *part.get("anyOf", ())):
            yield from (f"{name}.{deeper}" for deeper in required(inner, definitions))


def keys(document):
    """Every key of a document at any depth, as dotted names."""
    for part in document if isinstance(document, list) else [document]:
        for name, value in part.items() if isinstance(part, dict) else ():
            yield name
            yield from (f"{name}.{deeper}" for deeper in keys(value))


def test_the_published_schema_describes_what_is_printed():
    schema = EstimateDocument.model_json_schema()
    named = set(required(schema, schema["$defs"]))
    assert {"verdict", "moments.terms.bytes", "process_bytes.low", "reserved_bytes.high"} <= named
    of_two_gpus = printed_json("estimate", "--method", "lora", "--sharding", "ddp", "--replicas", "2")  # host memory is empty with one
    printed = {key for key in keys(of_two_gpus) if not key.startswith("settings.")}
    assert printed == named


def test_exact_decimals_stay_exact_in_json():
    exact = {**CUSTOM, "budget": "24.100000000000000000000001", "activation_multiplier": "1.10"}
    settings = printed_json("estimate", *flags(exact))["settings"]
    assert (settings["budget"], settings["activation_multiplier"]) == ("24.100000000000000000000001", "1.1")
    assert settings["tied_embeddings"] is False and settings["hidden_size"] == 64
