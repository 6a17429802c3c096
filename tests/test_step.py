"""The step as a whole: moments in order, the tensors behind their rows, and small runs added up by hand.

Belongs here: what an estimate of the step says of its moments. Layers and losses: test_layer.py; states: test_states.py.
"""

import random

import pytest

from configurations import CUSTOM_STEP, OPENING, SMALL_DECODER, random_configuration
from vramplan import estimate
from vramplan.accountings.step import moments
from vramplan.accountings.step.bands import process_band, reserved_band
from vramplan.accountings.step.build import structure
from vramplan.accountings.step.moments import evaluate, step_of
from vramplan.settings import parse

MOMENTS = ["forward", "loss", "backward of the last layer", "backward of the first layer", "end of the backward pass"]
WORKSPACE = 2 * (4_096 * 1_024 * 2 + 16 * 1_024 * 8)  # two cuBLAS handles with torch's default workspace


def of(configuration, **changes):
    return estimate(parse({**configuration, **changes}))


def rows(one, moment):
    (found,) = [each for each in one.moments if each.name == moment]
    return {term.name: term.bytes for term in found.terms}


@pytest.mark.parametrize(("accumulation", "rounds"), [("1", 1), ("2", 2), ("8", 2)])
def test_moments_come_in_the_order_of_a_step(accumulation, rounds):
    """Later micro-batches are alike, so one of them stands for all."""
    names = [moment.name for moment in of(OPENING, gradient_accumulation_steps=accumulation).moments]
    later = [f"{name}, later micro-batch" for name in MOMENTS]
    assert names == [*MOMENTS, *(later if rounds > 1 else []), "optimizer step"]


def test_gradients_of_earlier_micro_batches_are_there_from_the_start_and_none_are_made_beside_them():
    one, trained = of(CUSTOM_STEP, method="lora"), of(CUSTOM_STEP, method="lora").parameters.trainable
    assert "gradients" not in rows(one, "forward")
    for moment in MOMENTS:
        assert rows(one, f"{moment}, later micro-batch")["gradients"] == 4 * trained
    assert rows(one, "optimizer step")["gradients"] == 4 * trained


def test_accumulation_beyond_two_micro_batches_changes_nothing():
    assert of(OPENING, gradient_accumulation_steps="2").moments == of(OPENING, gradient_accumulation_steps="64").moments


# The whole of CUSTOM: 3 layers, hidden 64, heads 6 and 2 of 12, MLP 200, vocabulary 1000, not tied.
LAYER = 72 * 64 + 2 * 24 * 64 + 64 * 72 + 3 * 200 * 64
PARAMETERS = 2 * 1000 * 64 + 3 * (LAYER + 2 * 64) + 64
INPUTS = 16 * 2048 + 2 * 12 * 4 * 2048  # ids and labels, int64; cosine and sine, float32


def test_the_optimizer_step_of_a_full_run_added_up():
    one = of(CUSTOM_STEP, method="full", trainable_precision="mixed-bf16")
    assert (one.parameters.total, one.parameters.trainable) == (PARAMETERS, PARAMETERS)
    assert rows(one, "optimizer step") == {
        "base_weights": 4 * PARAMETERS, "gradients": 4 * PARAMETERS, "optimizer_states": 8 * PARAMETERS,
        "inputs": INPUTS, "workspace": WORKSPACE,
    }


def test_checkpoints_are_the_inputs_of_the_layers():
    counted = rows(of(CUSTOM_STEP, method="full", trainable_precision="mixed-bf16"), "loss")
    assert counted["saved_activations"] == 3 * 2048 * 64 * 4


@pytest.mark.parametrize("change", [{"replicas": "128"}, {"activation_multiplier": "4"}, {"extra_allowance": "100"}])
def test_what_the_step_does_not_read_changes_nothing(change):
    assert of(OPENING, **change).moments == of(OPENING).moments


def test_the_cuda_context_is_beside_the_rows_and_depends_on_the_card():
    one = of({**OPENING, "gpu": "t4"})
    assert one.context_bytes == 141 * 2**20 and one.peak_bytes == of(OPENING).peak_bytes
    assert one.usable_bytes == one.budget_bytes - one.context_bytes
    assert one.process.high - one.reserved.high == one.process.low - one.reserved.low == one.context_bytes


def test_a_step_inside_the_backward_pass_keeps_no_gradient_of_the_layers():
    run = {"stack": "torchtune-0.6", "method": "full", "gradient_accumulation_steps": "1"}
    after, inside = (of(OPENING, **run, optimizer_step=each) for each in ("after", "in-backward"))
    first = "backward of the first layer"
    assert rows(inside, first).get("gradients", 0) < rows(after, first)["gradients"] / 10


# The tensors behind the rows


SEEDS = range(80)


def random_estimate(seed):
    return estimate(parse(random_configuration(random.Random(seed), "step")))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_tensors_behind_a_row_add_up_to_it(seed):
    """But for weights of a base or a reference, which lack the quantised ones: those are no tensors of a type."""
    one = random_estimate(seed)
    for moment in one.moments:
        amounts = {term.name: term.bytes for term in moment.terms}
        for row, holdings in moment.inspect().items():
            behind = sum(holding.bytes for holding in holdings)
            assert all(holding.bytes > 0 and holding.count > 0 and holding.why for holding in holdings)
            if row in ("base_weights", "reference_weights"):
                assert behind <= amounts[row]
            else:
                assert behind == amounts.get(row, 0)


def test_base_weights_are_all_listed_where_none_is_quantised():
    one = of(CUSTOM_STEP, method="lora")
    assert sum(holding.bytes for holding in one.moment.inspect()["base_weights"]) == rows(one, one.moment.name)["base_weights"]


def test_most_moments_of_random_runs_have_tensors_in_work():
    """Guards the test above: it would pass on rows that nothing lies behind."""
    behind = [moment.inspect() for seed in SEEDS for moment in random_estimate(seed).moments]
    assert sum("active_layer" in each or "logits" in each for each in behind) > len(behind) / 2


# Only instants that may be the largest are kept; that must lose no largest one, whatever the batch


def everything(step):
    """Every moment of every walk, as (name of the walk, amounts)."""
    kept, layers, at_once = not step.run.checkpointing, {row.walks.tape for row in step.rows}, step.shares.reduced_at_once
    yield "layer forward", [amount for tape in layers for amount in tape.forward(keeps=kept, caches=not kept)]
    yield "head forward", step.head.tape.forward(keeps=True)
    for part, tapes, waits in (("layer", layers, 0), ("head", {step.head.tape}, step.head.waits)):
        backward = [moment for tape in tapes for moment in tape.backward()]
        without = at_once and part == "layer"
        yield f"{part} backward", [(amount[0] - made * without, *amount[1:]) for amount, made in backward]
        yield f"{part} backward, later micro-batch", [(amount[0] - max(made - waits, 0), *amount[1:]) for amount, made in backward]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("tokens", "length"), [(1, 1), (64, 16), (4_096, 2_048), (100_000, 50_000)])
def test_the_instants_that_are_kept_hold_the_largest_of_every_walk(seed, tokens, length):
    step = step_of(structure(parse(random_configuration(random.Random(seed), "step"))))
    for walk, amounts in everything(step):
        kept = [i for i in step.instants if i.walk == walk]
        working = [i.bytes(tokens, length) - sum(evaluate(held, tokens, length) for _, held in i.held) for i in kept]
        if step.run.accumulates or "later" not in walk:
            assert max(working) == max(evaluate(amount, tokens, length) for amount in amounts)
    every = max(instant.bytes(tokens, length) for instant in step.instants)
    assert max(instant.bytes(tokens, length) for instant in step.peaks) == every


# Layers of several kinds


@pytest.mark.parametrize("changes", [{}, {"method": "full"}, {"method": "full", "checkpointing": "none"}, {"method": "lora", "checkpointing": "none"}])
@pytest.mark.parametrize("shape", [{"model": "gemma-3-1b"}, {"model": "gemma-2-2b"}, {**SMALL_DECODER, "num_layers": "11", "sliding_window": "64", "sliding_window_pattern": "4"}])
def test_no_layer_that_is_passed_over_holds_more_than_those_that_are_looked_at(shape, changes, monkeypatch, fresh_steps):
    run = structure(parse({**OPENING, **shape, **changes, "sequence_length": "8192"}))
    kept, batches = step_of(run), [(1, 1), (64, 16), (4_096, 2_048), (100_000, 50_000)]
    assert len(kept.rows) > 2 and kept.peaks  # worked out before every layer is looked at
    monkeypatch.setattr(moments, "_ends", lambda row: range(row.count))
    monkeypatch.setattr(moments.Step, "_corners", lambda self, line: line)
    every = moments.Step(run)
    assert len(every.looked_at) == run.shape.num_layers > len(kept.looked_at)
    for batch in batches:
        assert max(each.bytes(*batch) for each in every.instants) == max(each.bytes(*batch) for each in kept.peaks)


def test_only_layers_with_a_window_keep_a_mask():
    shape = {**CUSTOM_STEP, **SMALL_DECODER, "num_layers": "12", "method": "full", "checkpointing": "none", "sequence_length": "512"}
    kept = {n: rows(of(shape, sliding_window="64", sliding_window_pattern=str(n)), "loss")["saved_activations"] for n in (0, 2, 3, 12)}
    repeated = 512 * 2 * (72 - 24) * 2  # keys and values of two heads as six, 16 bits
    one = 2 * 512 * 512 + repeated  # with a mask for every pair of tokens
    assert [(kept[0] - kept[n]) // one for n in (2, 3, 12)] == [6, 4, 1] and (kept[0] - kept[2]) % one == 0


# What the allocator and the process hold


RUN = structure(parse(OPENING))


@pytest.mark.parametrize(
    ("changes", "low", "high"),
    [({}, 900, 1_200), ({"loss": "fused-linear"}, 980, 1_070), ({"loss": "chunked"}, 980, 1_070), ({"loss": "tiled"}, 980, 1_070),
     ({"attention_kernel": "eager"}, 800, 1_020), ({"stack": "loop", "attention_kernel": "efficient-repeated"}, 800, 1_020)])
def test_the_band_of_reserved_memory_is_a_share_of_peak_and_smaller_transient(changes, low, high):
    band = reserved_band(structure(parse({**OPENING, **changes})), peak=600, smaller_transient=400)
    assert (band.low, band.high) == (low, high)


def test_no_band_lies_below_the_peak():
    band = reserved_band(RUN, peak=1_000, smaller_transient=0)
    assert (band.low, band.high) == (1_000, 1_200)
    assert process_band(reserved=band, context=7).middle == 1_107
