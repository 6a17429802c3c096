"""Several GPUs: what one of them keeps, gathers and sends under each kind of sharding, added up by hand on one small decoder.

Belongs here: the shares of states, in GPU and in host memory. Recorded runs on several GPUs: test_measured.py.
"""

import random
from statistics import median, quantiles

import pytest

from command import run
from configurations import CUSTOM_STEP, OPENING, random_configuration
from vramplan import NotExpressible, estimate, fit
from vramplan.accountings import step
from vramplan import report
from vramplan.gpus import gpu_curve, gpu_curves
from vramplan.ledger import YES
from vramplan.settings import parse
from vramplan_site.errors import comparable_bytes
from vramplan_site.recorded import measured

# The tensors of CUSTOM: 3 layers of q (72, 64), k and v (24, 64), o (64, 72), gate and up (200, 64), down (64, 200) and two norms
# (64); a final norm (64); embedding and head (1000, 64). All divide by 4.
LAYER = 2 * 72 * 64 + 2 * 24 * 64 + 3 * 200 * 64 + 2 * 64
TABLE, NORM, TOKENS = 1000 * 64, 64, 2048
ALL = 3 * LAYER + NORM + 2 * TABLE
FULL = {**CUSTOM_STEP, "method": "full", "trainable_precision": "mixed-bf16", "autocast": "on", "gradient_accumulation_steps": "1",
        "optimizer": "adamw-fused", "sharded_over": "4"}
LAST, FIRST, END, UPDATE = "backward of the last layer", "backward of the first layer", "end of the backward pass", "optimizer step"
LATER = ", later micro-batch"


def rows(moment, **changes):
    one = estimate(parse({**FULL, **changes}))
    (found,) = [each for each in one.moments if each.name == moment]
    return {term.name: term.bytes for term in found.terms}


# Kinds


def test_ddp_keeps_every_gradient_a_second_time_once_there_are_two_copies():
    assert rows("forward", sharding="ddp", replicas="2")["gradient_buckets"] == 4 * ALL
    assert "gradient_buckets" not in rows("forward", sharding="ddp", replicas="1")
    assert rows(UPDATE, sharding="ddp", replicas="2")["gradients"] == 4 * ALL


def test_replicas_alone_change_nothing():
    assert rows(FIRST, sharding="none", replicas="64") == rows(FIRST, sharding="none")


@pytest.mark.parametrize("kind", ["zero1", "zero2"])
def test_zero_divides_masters_and_states_of_16_bit_weights(kind):
    counted = rows("forward", sharding=kind)
    assert counted["base_weights"] == 2 * ALL
    assert counted["master_weights"] == 4 * ALL // 4
    assert counted["optimizer_states"] == 8 * ALL // 4


def test_zero_1_keeps_every_gradient_until_the_step():
    assert rows(FIRST, sharding="zero1")["gradients"] == pytest.approx(2 * (2 * LAYER + TABLE), rel=2e-3)  # but for norms
    assert rows(END, sharding="zero1")["gradients"] == 2 * ALL


def test_zero_2_keeps_its_part_of_the_gradients_and_reduces_the_rest_in_buckets():
    counted = rows(FIRST, sharding="zero2")
    bucket, gate = 2 * 64 * 64, 2 * 200 * 64
    assert counted["gradients"] == 2 * ALL // 4 + 2 * TABLE + 2 * NORM  # that of the head waits, larger than a bucket; a norm’s is just made
    assert counted["reduction_buffers"] == 2 * bucket + 2 * gate
    assert rows(END, sharding="zero2")["gradients"] == 2 * ALL // 4


def test_before_the_update_a_part_of_the_gradients_is_there_three_times():
    counted = rows(UPDATE, sharding="zero1")
    assert (counted["gradients"], counted["flat_gradients"]) == (2 * ALL // 4, (2 + 4) * ALL // 4)


def test_zero_3_divides_all_but_small_weights_and_gathers_ahead():
    counted = rows("loss", sharding="zero3")
    norms = 7 * NORM
    assert counted["base_weights"] == 2 * ALL // 4 + 2 * norms
    assert counted["gathered_weights"] == 2 * (ALL - norms)  # far from the billion it may hold
    assert counted["gradients"] == 2 * ALL // 4


def test_fsdp_keeps_float32_parts_and_gathers_16_bits():
    counted = rows("loss", sharding="fsdp1")
    assert counted["base_weights"] == 4 * ALL // 4
    assert counted["optimizer_states"] == 8 * ALL // 4
    assert counted["gathered_weights"] == 2 * (2 * TABLE + NORM)
    assert rows("forward", sharding="fsdp1")["gathered_weights"] == 2 * (2 * TABLE + NORM) + 2 * LAYER


@pytest.mark.parametrize(("kind", "ahead"), [("non-reentrant", 1), ("reentrant", 0)])
def test_fsdp_fetches_a_layer_ahead_unless_checkpointing_is_reentrant(kind, ahead):
    assert rows(LAST, sharding="fsdp1", checkpoint_kind=kind)["gathered_weights"] == 2 * (2 * TABLE + NORM) + (1 + ahead) * 2 * LAYER
    assert rows(FIRST, sharding="fsdp1", checkpoint_kind=kind)["gathered_weights"] == 2 * (2 * TABLE + NORM) + 2 * LAYER


def test_fsdp_divides_the_gradients_of_a_layer_that_is_done_and_holds_those_of_the_root_to_the_end():
    at_end = rows(END, sharding="fsdp1")
    assert at_end["gradients"] == 3 * 4 * LAYER // 4 + 2 * (2 * TABLE + NORM)
    assert at_end["reduction_buffers"] == 2 * (2 * TABLE + NORM)
    assert rows(UPDATE, sharding="fsdp1")["gradients"] == 4 * ALL // 4


def test_without_mixed_precision_fsdp_keeps_what_was_loaded():
    counted = rows(UPDATE, sharding="fsdp1", autocast="off", trainable_precision="pure-bf16", optimizer="adamw-foreach")
    assert counted["base_weights"] == counted["gradients"] == counted["optimizer_scratch"] == 2 * ALL // 4
    assert counted["optimizer_states"] == 4 * ALL // 4


@pytest.mark.parametrize("kind", ["fsdp1", "fsdp2"])
def test_between_micro_batches_fsdp_leaves_gradients_undivided(kind):
    later = rows(f"forward{LATER}", sharding=kind, gradient_accumulation_steps="2")
    assert later["gradients"] == 2 * ALL
    assert rows(f"forward{LATER}", sharding=kind, gradient_accumulation_steps="2", sharded_over="1")["gradients"] == 4 * ALL


def test_hooks_of_fsdp_keep_the_input_of_every_frozen_layer_and_its_gradient():
    counted = rows(FIRST, sharding="fsdp1", method="lora", base_precision="bf16", checkpoint_kind="reentrant", attention_kernel="efficient-repeated")
    assert counted["hook_gradients"] == 2 * 64 * TOKENS * (3 - 2)
    assert counted["saved_activations"] == 3 * 2 * 64 * TOKENS
    assert "hook_gradients" not in rows(FIRST, sharding="fsdp1", checkpoint_kind="reentrant")


def test_fsdp_2_holds_what_arrived_beside_what_it_was_copied_to():
    layer, tail = 2 * LAYER, 2 * (TABLE + NORM)
    assert rows("forward", sharding="fsdp2")["gathered_weights"] == 2 * layer
    assert rows("loss", sharding="fsdp2")["gathered_weights"] in (tail, 2 * tail)
    last = rows(LAST, sharding="fsdp2")
    assert (last["gathered_weights"], last["reduction_buffers"]) == (2 * layer, tail)
    first = rows(FIRST, sharding="fsdp2")
    assert (first["gathered_weights"], first["reduction_buffers"]) == (layer + 2 * TABLE, layer)
    assert first["gradients"] == 4 * (TABLE + NORM) // 4 + 2 * 4 * LAYER // 4


def test_fsdp_2_divides_whole_rows():
    """Over 5 GPUs k and v, 24 rows, leave 5 to the first GPU, and a norm 13 of 64."""
    part = 3 * (15 * 64 + 2 * 5 * 64 + 13 * 72 + 2 * 40 * 64 + 13 * 200 + 2 * 13) + 13 + 2 * 200 * 64
    assert rows("forward", sharding="fsdp2", sharded_over="5")["base_weights"] == 4 * part


NF4_VALUES = 3 * (LAYER - 2 * NORM)
QLORA = {"method": "qlora", "quantization": "nf4", "kbit_preparation": "none", "base_precision": "bf16", "adapter_targets": "attention",
         "checkpoint_kind": "reentrant", "attention_kernel": "efficient-repeated"}


@pytest.mark.parametrize(("kind", "ways"), [("fsdp1", 4), ("zero3", 4), ("fsdp2", 1), ("zero2", 1)])
def test_packed_weights_are_divided_but_their_scales_are_not(kind, ways):
    others = 2 * (7 * NORM + 2 * TABLE) if kind == "zero2" else 2 * (7 * NORM + 2 * TABLE) // 4
    whole = 2 * 7 * NORM if kind == "zero3" else 0
    assert rows("forward", sharding=kind, **QLORA)["base_weights"] == NF4_VALUES // 2 // ways + 4 * NF4_VALUES // 64 + others + whole


def test_offload_leaves_what_is_gathered_on_the_gpu():
    for kind in ("zero2", "zero3"):
        kept = rows(UPDATE, sharding=kind, offload="optimizer")
        assert not {"master_weights", "optimizer_states", "flat_gradients"} & set(kept)
    for kind in ("zero3", "fsdp1", "fsdp2"):
        counted = rows("forward", sharding=kind, offload="optimizer-and-parameters")
        assert counted["gathered_weights"] > 0 and "optimizer_states" not in counted
        assert counted.get("base_weights", 0) == (2 * 7 * NORM if kind == "zero3" else 0)


# Rules for all kinds

KINDS = ("zero1", "zero2", "zero3", "fsdp1", "fsdp2")
SEEDS = range(120)


def on(gpus, seed, kind):
    """A random run divided over so many GPUs, or None where this kind does not run with it."""
    typed = random_configuration(random.Random(seed), "step")
    typed |= {"sharding": kind, "sharded_over": str(gpus), "offload": "none"}
    try:
        return step.peak_bytes(parse(typed))
    except NotExpressible:
        return None


@pytest.mark.parametrize("kind", KINDS)
def test_more_gpus_never_take_more_of_each(kind):
    """From two on: with one GPU FSDP gathers nothing. Not with states in 8 bits, of which a part too small for
    them has 32, nor with paged ones, of which such a part stays on the GPU."""
    counted = 0
    for seed in SEEDS:
        if any(kind_of in random_configuration(random.Random(seed), "step")["optimizer"] for kind_of in ("8bit", "paged")):
            continue
        peaks = [on(gpus, seed, kind) for gpus in (2, 3, 4, 7, 8, 64, 1000, 1024)]
        if None not in peaks:
            counted += 1
            assert peaks == sorted(peaks, reverse=True), seed
    assert counted > len(SEEDS) / 12


@pytest.mark.parametrize("kind", KINDS)
def test_copies_beside_a_divided_one_change_nothing(kind):
    assert rows(FIRST, sharding=kind, replicas="8") == rows(FIRST, sharding=kind)


@pytest.mark.parametrize("kind", KINDS)
def test_all_gpus_work_on_micro_batches_of_their_own(kind):
    one = parse({**FULL, "sharding": kind, "replicas": "3", "micro_batch": "2", "gradient_accumulation_steps": "5"})
    assert (one.gpus, one.effective_batch) == (12, 120)
    assert parse({**FULL, "sharding": "ddp", "replicas": "3"}).gpus == 3


def test_one_gpu_under_fsdp_without_mixed_precision_keeps_what_one_gpu_keeps():
    alone = {"autocast": "off", "sharded_over": "1"}
    divided, plain = rows(UPDATE, sharding="fsdp1", **alone), rows(UPDATE, sharding="none", **alone)
    assert divided == plain
    assert "gathered_weights" not in rows(LAST, sharding="fsdp1", **alone)


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"sharding": "fsdp1", "offload": "optimizer"}, "offload"), ({"sharding": "fsdp2", "offload": "optimizer"}, "offload"),
     ({"sharding": "zero1", "offload": "optimizer-and-parameters"}, "offload"),
     ({"sharding": "zero3", "optimizer": "adafactor"}, "optimizer"), ({"sharding": "fsdp2", "optimizer": "adamw-8bit"}, "optimizer"),
     ({"sharding": "zero2", "offload": "optimizer", "optimizer": "lion"}, "optimizer"),
     ({"sharding": "fsdp1", **QLORA, "quantization": "int8"}, "quantization"), ({"sharding": "zero3", **QLORA, "quantization": "gptq"}, "quantization"),
     ({"sharding": "fsdp1", **QLORA, "kbit_preparation": "all"}, "kbit_preparation")])
def test_what_does_not_go_together_is_refused_with_the_field_in_the_way(changes, field):
    with pytest.raises(NotExpressible) as refused:
        estimate(parse({**FULL, **changes}))
    assert refused.value.field == field and refused.value.message.endswith(".")


def test_the_planning_formula_has_no_number_for_divided_states():
    with pytest.raises(NotExpressible) as refused:
        estimate(parse({**OPENING, "accounting": "planning", "sharding": "fsdp1"}))
    assert refused.value.field == "sharding"


# Recorded runs on several GPUs

RUNS = [run for run in measured() if run.settings.divides_states]
FINISHED = [run for run in RUNS if run.allocated]
NINETIETH_BAR = 0.12  # share of the measured peak of one GPU


def errors():
    return [abs(comparable_bytes(step.estimate(run.settings), run.kind) / run.allocated - 1) for run in FINISHED]


def test_recorded_runs_on_several_gpus_are_within_their_bar():
    assert len(FINISHED) >= 29
    assert quantiles(errors(), n=10)[-1] <= NINETIETH_BAR and median(errors()) <= NINETIETH_BAR / 10


def test_runs_on_several_gpus_that_went_out_of_memory_are_never_told_to_fit():
    failed = [run for run in RUNS if run.out_of_memory]
    assert len(failed) >= 6
    assert [run.id for run in failed if step.estimate(run.settings).verdict == YES] == []


# Host memory


def host(**changes):
    return {term.name: term.bytes for term in estimate(parse({**FULL, **changes})).host}


def power(size):
    """Page-locked blocks are powers of two."""
    block = 1
    while block < size:
        block *= 2
    return block


def test_one_gpu_alone_counts_no_host_memory():
    assert host(sharding="none") == {} and host(sharding="ddp", replicas="1") == {}


def test_every_process_loads_the_checkpoint_but_under_zero_3():
    for kind in ("zero1", "zero2", "fsdp1", "fsdp2"):
        assert host(sharding=kind) == {"host_loading": 4 * ALL}
    assert host(sharding="ddp", replicas="2", trainable_precision="pure-bf16") == {"host_loading": 2 * ALL}
    assert host(sharding="zero3") == {}


def test_zero_offloads_masters_gradients_and_states():
    kept = host(sharding="zero3", offload="optimizer")
    part = ALL // 4
    assert kept == {"host_master_weights": power(4 * part), "host_gradients": power(4 * part) + power(2 * part), "host_optimizer_states": 8 * part}
    assert host(sharding="zero3", offload="optimizer-and-parameters")["host_parameters"] == power(2 * part)


@pytest.mark.parametrize("kind", ["fsdp1", "fsdp2"])
def test_fsdp_offloads_parameters_and_states_together(kind):
    kept = host(sharding=kind, offload="optimizer-and-parameters")
    flat = 3 * power(LAYER) + power(2 * TABLE + NORM)  # a part of every layer and one of the root, 4 bytes for each fourth value
    single = 3 * (2 * power(72 * 64) + 2 * power(24 * 64) + 3 * power(200 * 64) + 2 * power(64)) + power(64) + 2 * power(TABLE)
    parts = flat if kind == "fsdp1" else single
    assert kept == {"host_parameters": parts, "host_gradients": parts, "host_optimizer_states": 8 * ALL // 4, "host_loading": 4 * ALL}


def test_fsdp_keeps_room_for_gradients_of_frozen_parts_too():
    changes = {"method": "lora", "base_precision": "bf16", "adapter_targets": "attention", "offload": "optimizer-and-parameters"}
    kept = host(sharding="fsdp1", **changes)
    assert kept["host_gradients"] == kept["host_parameters"] > 3 * power(LAYER // 2)
    assert host(sharding="fsdp2", **changes)["host_gradients"] < kept["host_gradients"] / 4


# How many GPUs


def divided_by(kind, count):
    return estimate(parse({**LARGE, "sharding": kind, "sharded_over": str(count)}))


LARGE = {**OPENING, "method": "full", "gradient_accumulation_steps": "1"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_fewest_gpus_fit_and_one_less_does_not(kind):
    fewest = fit(parse(LARGE)).fewest_gpus[kind]
    if fewest is None:
        assert not divided_by(kind, 1024).fits
    else:
        assert fewest > 1 and divided_by(kind, fewest).fits and not divided_by(kind, fewest - 1).fits


def test_some_kinds_fit_where_others_never_do():
    found = fit(parse(LARGE)).fewest_gpus
    assert found["zero1"] is None and found["fsdp2"] is not None
    assert fit(parse({**LARGE, "accounting": "planning", "trainable_precision": "mixed-bf16"})).fewest_gpus == {}


@pytest.mark.parametrize("kind", KINDS)
def test_points_are_estimates_and_what_is_left_adds_up_to_the_last_of_them(kind):
    drawn = gpu_curve(parse(LARGE), kind)
    assert [each.gpus for each in drawn.points][:5] == [1, 2, 3, 4, 6] or drawn.fewest in (5, 7)
    for each in drawn.points[::5]:
        there = divided_by(kind, each.gpus)
        assert (each.peak_bytes, each.headroom_bytes, each.fits) == (there.peak_bytes, there.headroom_bytes, there.fits)
    assert sum(term.bytes for term in drawn.left) == drawn.points[-1].peak_bytes
    assert next(p for p in drawn.points if p.gpus == drawn.enough).peak_bytes <= 1.05 * drawn.points[-1].peak_bytes


def test_the_table_names_what_is_never_divided():
    out = run("gpus", "--method", "full", "--gpu", "80", "--gradient-accumulation-steps", "1", "--sharding", "fsdp2", "--sharded-over", "4").out
    assert "FSDP2: GPUs per copy" in out and "fewest that fit" in out and "more help little" in out and "← now" in out
    assert "With 1,024 GPUs each still holds" in out and "per GPU" in out


def test_the_estimate_prints_host_memory_per_gpu():
    out = run("estimate", "--sharding", "fsdp2", "--sharded-over", "8", "--offload", "optimizer-and-parameters", "--method", "lora", "--gpu", "80").out
    assert "Host memory per GPU" in out and "Checkpoint, while it is loaded" in out and "for 8 GPUs" in out
    assert "per GPU. Fits 80.00 GiB" in out


def test_what_is_divided_and_what_travels_is_told_for_every_kind():
    drawn = gpu_curves(parse({**LARGE, "gpu": "80"}))
    assert [each.sharding for each in drawn] == ["zero1", "zero2", "zero3", "fsdp1", "fsdp2"]
    told = {each.sharding: report.gpu_traffic(each) for each in drawn}
    assert "gradients and weights" in told["zero3"] and "weights" not in told["zero1"].partition(".")[0]
    assert all(("half as much again" in text) == (kind in ("zero3", "fsdp1", "fsdp2")) for kind, text in told.items())


def test_the_byte_rules_find_the_fewest_gpus_too():
    found = fit(parse({**LARGE, "accounting": "rules", "gpu": "80"})).fewest_gpus
    assert found["zero3"] == found["fsdp2"] >= 2 and found["zero1"] is None or found["zero1"] >= found["zero3"]
