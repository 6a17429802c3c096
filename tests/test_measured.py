"""The step accounting against runs that others measured on GPUs and published.

Belongs here: bars on the recorded runs, the process band, verdicts, that every measured constant and fact matters. The
signed errors by stack and method are printed at every run of these tests (pytest -s, or the report of a failure).
"""

from math import inf
from statistics import median, quantiles

import pytest

from doubled import before_and_doubled
from vramplan.accountings import step
from vramplan.accountings.step import bands, confidence
from vramplan.compare import counted_or_why
from vramplan.errors import NotExpressible
from vramplan.ledger import NO, YES
from vramplan.policy import _decided, policy
from vramplan.stacks import Fact, stacks
from vramplan_site.errors import comparable_bytes
from vramplan_site.recorded import measured

RUNS = measured()
EXACT = [run for run in RUNS if run.allocated and run.exact]
FINISHED = [run for run in RUNS if run.exact and not run.out_of_memory]
FAILED = [run for run in RUNS if run.out_of_memory]
FAMILIES = {
    code: [run for run in EXACT if policy(run.settings).model_code == code] for code in dict.fromkeys(policy(run.settings).model_code for run in EXACT)
}
MEDIAN_BAR, NINETIETH_BAR, UNDER_BAR = 0.005, 0.02, -0.03  # shares of the measured peak
COVERAGE_BAR, HALF_WIDTH_BAR = 0.80, 0.15
NOTICED = 1e-5  # change of a peak, as a share, that counts as noticed


def error(run):
    """As a share; infinite where a run cannot be counted at all."""
    found = counted_or_why(run.settings)
    return inf if isinstance(found, NotExpressible) else comparable_bytes(found, run.kind) / run.allocated - 1


def test_there_are_runs_of_more_than_one_familys_model_code():
    assert {"transformers", "litgpt"} <= set(FAMILIES) and all(len(runs) > 20 for runs in FAMILIES.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_median_error_of_each_family_is_within_its_bar(family):
    assert median(abs(error(run)) for run in FAMILIES[family]) <= MEDIAN_BAR


@pytest.mark.parametrize("family", FAMILIES)
def test_the_ninetieth_percentile_of_each_family_is_within_its_bar(family):
    assert quantiles((abs(error(run)) for run in FAMILIES[family]), n=10)[-1] <= NINETIETH_BAR


def test_no_run_is_under_by_more_than_its_bar():
    assert [(run.id, error(run)) for run in EXACT if error(run) < UNDER_BAR] == []


def test_signed_errors_by_source_stack_and_method(capsys):
    groups = {}
    for run in EXACT:
        groups.setdefault((run.source.split()[0], run.settings.stack, run.settings.method), []).append(error(run))
    with capsys.disabled():
        print("\nallocated, estimate less measured:")
        for (source, stack, method), errors in sorted(groups.items()):
            print(f"  {source:45} {stack:14} {method:6} {len(errors):3} runs  {min(errors):+.2%} to {max(errors):+.2%}")
    assert len(groups) >= 10


def test_the_process_band_covers_most_runs_and_is_narrow():
    seen = [run for run in FINISHED if run.process]
    bands_of = [step.estimate(run.settings).process for run in seen]
    covered = sum(band.low <= run.process <= band.high for run, band in zip(seen, bands_of, strict=True))
    assert covered / len(seen) >= COVERAGE_BAR
    assert median((band.high - band.low) / (band.high + band.low) for band in bands_of) <= HALF_WIDTH_BAR


def test_what_the_allocator_held_is_within_its_band_where_batches_may_be_shorter():
    for run in RUNS:
        if not run.exact:
            assert run.reserved <= step.estimate(run.settings).reserved.high, run.id


def test_no_run_that_went_out_of_memory_is_told_to_fit():
    assert FAILED
    assert [run.id for run in FAILED if step.estimate(run.settings).verdict == YES] == []


def test_no_run_that_finished_is_told_not_to_fit():
    assert [run.id for run in FINISHED if step.estimate(run.settings).verdict == NO] == []


MEASURED_CONSTANTS = [each for each in confidence.CONSTANTS if each.confidence == confidence.MEASURED]


@pytest.mark.parametrize("constant", MEASURED_CONSTANTS, ids=lambda each: each.name)
def test_a_run_notices_when_a_measured_constant_changes(constant, monkeypatch, fresh_steps):
    resting = [run for run in EXACT if constant.applies(step.structure(run.settings))]
    assert resting
    before, after = before_and_doubled(constant, lambda: [abs(error(run)) for run in resting], monkeypatch)
    assert max(b - a for a, b in zip(before, after, strict=True)) > NOTICED


@pytest.mark.parametrize("name", ["CHUNKED", "IN_A_LOOP", "WITH_LOGITS", "DIVIDED"])
def test_a_run_notices_when_a_band_moves(name, monkeypatch):
    low, high = getattr(bands, name)
    monkeypatch.setattr(bands, name, (2 * low, 2 * high))
    seen = [run for run in FINISHED if run.process]
    outside = [run for run in seen if step.estimate(run.settings).process.low > run.process]
    assert outside


OTHER_VALUES = {
    "adamw": ("adamw-fused", "adamw-foreach"),
    "kbit_preparation": ("all", "norms", "none"),
    "loss": ("logits", "triton"),
    "logits_release": ("4.45", "4.46", "4.49"),
    "norm_kernel": ("transformers", "triton"),
    "adapter_kernel": ("peft", "fused"),
    "weight_precision": ("bf16", "fp32"),
    "base_precision": ("bf16", "fp32"),
    "full_loss": ("split",),
    "model_code": ("transformers",),
    "outputs_kept": (True, False),
    "quantized_adamw": ("adamw-fused",),
    "split_release": ("torchtune",),
    "quantized_linear": ("lightning", "bitsandbytes"),
}


def measured_facts():
    """Every measured fact once, with the stacks it holds in that have recorded runs."""
    found = {}
    for stack in stacks().values():
        if any(run.settings.stack == stack.name for run in EXACT):
            for name, fact in stack.facts.items():
                if fact.confidence == "measured":
                    found.setdefault((name, fact.value, fact.source), []).append(stack.name)
    return [pytest.param(name, names, id=f"{name} in {names[0]}") for (name, _, _), names in found.items()]


@pytest.mark.parametrize(("name", "names"), measured_facts())
def test_a_run_notices_when_a_measured_fact_changes(name, names, monkeypatch, fresh_steps):
    runs = [run for run in EXACT if run.settings.stack in names]
    before = [abs(error(run)) for run in runs]
    value = stacks()[names[0]][name]
    others = [not value] if isinstance(value, bool) else [other for other in OTHER_VALUES[name] if other != value]
    worse = 0.0
    for other in others:
        _decided.cache_clear()
        for stack in names:
            monkeypatch.setitem(stacks()[stack].facts, name, Fact(other, "", "measured"))
        changed = [abs(error(run)) for run in runs]
        worse = max(worse, *(b - a for a, b in zip(before, changed, strict=True)))
    assert worse > NOTICED
