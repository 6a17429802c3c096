"""The step accounting against training steps that were traced from the libraries themselves.

Belongs here: bars on the recorded traces, moment by moment, and that every traced constant matters. Not here: tracing,
which is tests/traced and needs PyTorch.
"""

import csv
from dataclasses import asdict, fields
from math import inf
from pathlib import Path
from statistics import median, quantiles
import tomllib

import pytest

from configurations import PAIR_STACKS
from doubled import before_and_doubled
from vramplan.accountings import step
from vramplan.accountings.step import confidence
from vramplan.catalogue import DIMENSIONS, TRAITS, presets
from vramplan.accountings import estimate
from vramplan.compare import counted_or_why
from vramplan.constants import CUBLAS_HANDLES, CUBLAS_WORKSPACE_BYTES
from vramplan.errors import NotExpressible
from vramplan.fields import BY_NAME
from vramplan.kinds import Choice
from vramplan.policy import _decided, policy
from vramplan.stacks import Fact, stacks
from vramplan_site.errors import comparable_bytes
from vramplan_site.recorded import TRACED, traced

RUNS = traced()


def recorded_rows():
    with TRACED.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


SHAPES = tomllib.loads((Path(__file__).parent / "traced/shapes.toml").read_text(encoding="utf-8"))
OTHER_KINDS = [name for name, shape in SHAPES.items() if "traits" in shape]
MEDIAN_BAR, NINETIETH_BAR, UNDER_BAR = 0.005, 0.02, -0.03  # shares of the traced peak
SINKS_MEDIAN_BAR, SINKS_WORST_BAR = 0.0001, 0.001
LATENT_MEDIAN_BAR, LATENT_WORST_BAR = 0.0005, 0.004
NOTICED = 1e-5  # change of a peak, as a share, that counts as noticed
NOTICED_MOMENT = 0.001  # share of a single moment


def errors(runs):
    """Signed errors; infinite where a run can no longer be counted."""
    estimates = [counted_or_why(run.settings) for run in runs]
    return [
        inf if isinstance(each, NotExpressible) else comparable_bytes(each, run.kind) / run.allocated - 1
        for run, each in zip(runs, estimates, strict=True)
    ]


ERRORS = errors(RUNS)


def test_there_are_enough_traces_of_enough_models():
    assert len(RUNS) >= 450
    assert len({run.settings.architecture for run in RUNS}) >= 30
    assert {run.settings.method for run in RUNS} == {"full", "lora", "qlora"}


@pytest.mark.parametrize("trait", TRAITS)
def test_every_trait_of_a_decoder_is_in_some_trace(trait):
    kind = BY_NAME[trait].kind
    found = {getattr(run.settings.architecture, trait) for run in RUNS}
    options = {option.value for option in kind.options} if isinstance(kind, Choice) else set()
    assert len(found) >= 2 and (options <= {"true", "false"} or found == options)


NAMED = [name for name in OTHER_KINDS if name in presets()]


@pytest.mark.parametrize("name", NAMED)
def test_a_preset_has_the_traits_its_model_was_traced_with(name):
    shape, known = SHAPES[name], presets()[name].architecture
    usual = {field.name: field.default for field in fields(known)}
    traced = usual | {dimension: shape[dimension] for dimension in DIMENSIONS} | shape["traits"]
    assert shape["num_layers"] == known.num_layers or "of its" in shape["source"]
    layers = {"num_layers": known.num_layers, "dense_layers": known.dense_layers}  # a large model is traced with a few of its layers
    assert asdict(known) == traced | (layers if "of its" in shape["source"] else {})


@pytest.mark.parametrize("name", OTHER_KINDS)
def test_every_other_kind_of_decoder_is_within_the_bars_by_itself(name):
    mine = [abs(error) for run, error in zip(RUNS, ERRORS, strict=True) if run.id.startswith(f"{name}_")]
    assert len(mine) >= 8 and median(mine) <= MEDIAN_BAR and quantiles(mine, n=10)[-1] <= NINETIETH_BAR


@pytest.mark.parametrize("name", [name for name in OTHER_KINDS if "kv_lora_rank" in SHAPES[name]["traits"]])
def test_latent_attention_is_within_narrower_bars(name):
    mine = [abs(error) for run, error in zip(RUNS, ERRORS, strict=True) if run.id.startswith(f"{name}_")]
    assert len(mine) >= 10 and median(mine) <= LATENT_MEDIAN_BAR and max(mine) <= LATENT_WORST_BAR


def test_attention_with_sinks_is_within_narrower_bars():
    mine = [abs(error) for run, error in zip(RUNS, ERRORS, strict=True) if run.settings.architecture.attention_sinks]
    assert len(mine) >= 20 and median(mine) <= SINKS_MEDIAN_BAR and max(mine) <= SINKS_WORST_BAR


FORWARD_BAR = 0.0005  # share of what is there while the layers run forward


@pytest.mark.parametrize("model", ["llama-3.2-1b", "mixtral-8x7b", "qwen3-30b-a3b", "gpt-oss-20b", "granite-3.0-1b-a400m"])
def test_the_forward_pass_holds_what_was_traced_embeddings_that_a_variable_keeps_included(model):
    workspace, seen = CUBLAS_HANDLES * CUBLAS_WORKSPACE_BYTES, 0
    runs = {run.id: run for run in RUNS}
    for row in recorded_rows():
        if row["model"] == model and row["method"] == "lora" and row["checkpointing"] == "none" and row["load_dtype"] == "bf16":
            (moment,) = [each for each in estimate(runs[row["id"]].settings).moments if each.name == "forward"]
            assert abs((moment.bytes - workspace) / int(row["forward"]) - 1) <= FORWARD_BAR, row["id"]
            seen += 1
    assert seen >= 2


def test_every_trace_can_be_counted():
    assert [run.id for run in RUNS if isinstance(counted_or_why(run.settings), NotExpressible)] == []


def test_the_median_error_is_within_its_bar():
    assert median(abs(error) for error in ERRORS) <= MEDIAN_BAR


def test_the_ninetieth_percentile_is_within_its_bar():
    assert quantiles((abs(error) for error in ERRORS), n=10)[-1] <= NINETIETH_BAR


def test_no_trace_is_under_by_more_than_its_bar():
    assert [(run.id, error) for run, error in zip(RUNS, ERRORS, strict=True) if error < UNDER_BAR] == []


@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_every_method_is_within_the_bars_by_itself(method):
    mine = [abs(error) for run, error in zip(RUNS, ERRORS, strict=True) if run.settings.method == method]
    assert median(mine) <= MEDIAN_BAR and quantiles(mine, n=10)[-1] <= NINETIETH_BAR


@pytest.mark.parametrize(("objective", "fewest"), [("dpo", 25), ("reward", 9)])
def test_every_objective_is_within_the_bars_by_itself(objective, fewest):
    mine = [abs(error) for run, error in zip(RUNS, ERRORS, strict=True) if run.settings.objective == objective]
    assert len(mine) >= fewest and median(mine) <= MEDIAN_BAR and quantiles(mine, n=10)[-1] <= NINETIETH_BAR


def test_every_kind_of_reference_and_every_release_of_dpo_is_in_some_trace():
    pairs = [policy(run.settings) for run in RUNS if run.settings.objective == "dpo"]
    assert {run.reference for run in pairs} == {"copy", "shared", "precomputed"}
    assert {run.loss for run in pairs} == {stack["pair_loss"] for stack in stacks().values()} - {"none"}


REFERENCE_RUNS = {run.id: run for run in RUNS if run.settings.objective == "dpo" and policy(run.settings).loss == "tiled"}


def test_the_forward_pass_of_the_reference_holds_what_was_traced():
    """Where the loss ends with it: later releases of TRL, whose reference has no logits."""
    workspace, seen = CUBLAS_HANDLES * CUBLAS_WORKSPACE_BYTES, 0
    for row in recorded_rows():
        if row["reference_forward"] and row["id"] in REFERENCE_RUNS:
            (moment,) = [m for m in estimate(REFERENCE_RUNS[row["id"]].settings).moments if m.name == "forward of the reference"]
            assert abs((moment.bytes - workspace) / int(row["reference_forward"]) - 1) <= NOTICED_MOMENT, row["id"]
            seen += 1
    assert seen >= 12


@pytest.mark.parametrize("stack", PAIR_STACKS)
def test_a_trace_notices_when_the_loss_on_pairs_changes(stack, monkeypatch, fresh_steps):
    mine = [run for run in RUNS if run.settings.objective == "dpo" and run.settings.stack == stack]
    before = [abs(error) for error in errors(mine)]
    other = next(found["pair_loss"] for found in stacks().values() if found["pair_loss"] not in ("none", stacks()[stack]["pair_loss"]))
    _decided.cache_clear()
    monkeypatch.setitem(stacks()[stack].facts, "pair_loss", Fact(other, "", "traced"))
    after = [abs(error) for error in errors(mine)]
    _decided.cache_clear()
    assert len(mine) >= 4 and max(b - a for a, b in zip(before, after, strict=True)) > NOTICED


TRACED_CONSTANTS = [each for each in confidence.CONSTANTS if each.confidence == confidence.TRACED]


@pytest.mark.parametrize("constant", TRACED_CONSTANTS, ids=lambda each: each.name)
def test_a_trace_notices_when_a_traced_constant_changes(constant, monkeypatch, fresh_steps):
    resting = [run for run in RUNS if constant.applies(step.structure(run.settings))]
    assert resting
    before, after = before_and_doubled(constant, lambda: errors(resting), monkeypatch)
    assert max(abs(b) - abs(a) for a, b in zip(before, after, strict=True)) > NOTICED


OTHER_VALUES = {
    "adamw": ("adamw-foreach",),
    "kbit_preparation": ("norms", "none"),
    "loss": ("fused-linear",),
    "chunked_release": ("1.6",),
    "logits_release": ("4.45", "4.46"),
    "norm_kernel": ("transformers", "triton", "liger"),
    "mlp_kernel": ("liger",),
    "adapter_precision": ("bf16",),
    "quantized_adapter_precision": ("bf16",),
    "quantized_base_precision": ("fp32",),
    "checkpoint_kind": ("reentrant",),
    "model_code": ("litgpt",),
    "optimizer_step": ("in-backward",),
    "quantized_linear": ("lightning-0.42",),
    "adapter_kernel": ("fused", "peft"),
    "unsloth_release": ("2025.11",),
    "checkpoint_offload": ("staged", "each"),
    "rest_precision": ("fp32",),
    "experts": ("loop",),
}
TRACED_STACKS = ("trainer-5", "unsloth-2026.10", "unsloth-2025.11", "axolotl-0.19")


def traced_facts():
    """Every traced fact of the current Trainer, and those that other traced stacks change."""
    usual = stacks()["trainer-5"].facts
    for stack in TRACED_STACKS:
        for name, fact in stacks()[stack].facts.items():
            if fact.confidence == "traced" and (stack == "trainer-5" or fact != usual[name]):
                yield stack, name


@pytest.mark.parametrize(("stack", "name"), list(traced_facts()))
def test_a_trace_notices_when_a_traced_fact_changes(stack, name, monkeypatch, fresh_steps):
    known = stacks()[stack].facts
    mine = [run for run in RUNS if run.settings.stack == stack]
    before = [abs(error) for run, error in zip(RUNS, ERRORS, strict=True) if run.settings.stack == stack]
    value = known[name].value
    worse = 0.0
    for other in [not value] if isinstance(value, bool) else OTHER_VALUES.get(name, ()):
        _decided.cache_clear()
        monkeypatch.setitem(known, name, Fact(other, "", "traced"))
        after = [abs(error) for error in errors(mine)]
        worse = max(worse, *(b - a for a, b in zip(before, after, strict=True)))
    _decided.cache_clear()
    assert worse > NOTICED
