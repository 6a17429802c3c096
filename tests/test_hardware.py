"""Which hardware a run needs, and rules of thumb beside what is computed."""

import json

import pytest

from command import run
from configurations import OPENING, PLANNING, PRESETS
from vramplan import needs
from vramplan.accountings import estimate, fits
from vramplan.catalogue import gpu_classes
from vramplan.claims import claims, held
from vramplan.hardware import CONSUMER, DATACENTER, NODES, NONE, SEVERAL, bounds, contexts, grid, interconnects, needed
from vramplan.settings import parse

GB = 10**9


def of(**changes):
    return needed(parse({**OPENING, **changes}))


def test_the_smallest_class_that_holds_a_run_decides_what_it_needs():
    found = of(model="llama-3.1-8b", method="qlora")
    smaller = [gpu for gpu in gpu_classes().values() if gpu.capacity_gib < found.gib]
    assert found.kind == CONSUMER and found.gpus == 1 and found.sharding == "none"
    assert fits(found.settings.varied(gpu=str(found.gib))) and not any(fits(found.settings.varied(gpu=gpu.name)) for gpu in smaller)
    assert found.peak_bytes == estimate(found.settings).peak_bytes


def test_what_needs_more_than_the_largest_card_for_consumers_needs_a_datacenter_gpu():
    found = of(model="llama-3.1-8b", method="lora", sequence_length="8192")
    assert found.kind == DATACENTER and found.gib > bounds()[0]


@pytest.mark.parametrize(("model", "kind"), [("gemma-2-27b", SEVERAL), ("llama-3.1-70b", NODES)])
def test_what_no_gpu_holds_is_divided_over_the_fewest_that_do(model, kind):
    found = of(model=model, method="full", trainable_precision="mixed-bf16")
    divided = found.settings.varied(gpu=bounds()[2], sharding=found.sharding, sharded_over=found.gpus)
    assert found.kind == kind and (found.gpus <= bounds()[1]) == (kind == SEVERAL)
    assert fits(divided) and not fits(divided.varied(sharded_over=found.gpus - 1))


def test_gradients_that_stay_whole_between_micro_batches_are_not_held_against_a_run():
    """FSDP2 keeps them so, ZeRO-3 does not: the kind that needs fewer GPUs is taken."""
    many, once = (of(model="llama-3.1-70b", method="full", gradient_accumulation_steps=each) for each in ("8", "1"))
    assert many.sharding == "zero3" and many.gpus and once.gpus <= many.gpus


def test_no_number_of_gpus_divides_the_activations_of_one_sequence():
    found = of(model="llama-3.1-70b", method="full", sequence_length="131072")
    assert (found.kind, found.gib, found.gpus) == (NONE, None, None)


def test_the_gpu_that_is_chosen_does_not_matter_and_neither_does_the_sharding():
    assert of(gpu="8").gib == of(gpu="80").gib == of(gpu="80", sharding="fsdp2", sharded_over="4").gib


def test_the_grid_has_every_method_and_the_lengths_that_the_model_has():
    settings = parse({**OPENING, "model": "llama-2-7b"})
    assert contexts(settings) == tuple(length for length in (2_048, 8_192, 32_768) if length <= PRESETS["llama-2-7b"]["cap"])
    assert [[cell.settings.method for cell in row] for row in grid(settings)] == [[name] for name in ("full", "lora", "qlora", "pretraining")]


def test_a_method_that_cannot_be_counted_leaves_its_row_out():
    settings = parse({**PLANNING, "quantization": "awq", "method": "full"})
    lengths, rows = needs.need_rows(settings)
    assert [row.label for row in rows] == ["Full", "LoRA", "Pre-training"] and len(lengths) == len(rows[0].cells) == 3
    assert all("one node" not in cell.text for row in rows for cell in row.cells)  # the formula divides nothing


def test_every_cell_opens_a_run_that_fits():
    from vramplan.link import read_query

    for row in needs.need_rows(parse({**OPENING, "model": "llama-3.1-70b"}))[1]:
        for cell in row.cells:
            assert cell.kind == "no number of GPUs" or fits(parse(read_query(cell.query).texts)), cell


# The figures below are those of the sources named in app/vramplan/data/claims.toml.
RANGES = {"7b-qlora": (10, 16), "7b-full": (100, 160), "7b-full-states": (112, 112), "7b-full-half": (70, 80), "13b-qlora": (0, 24),
          "70b-qlora": (48, 60), "70b-full": (1_000, 1_400)}


def test_the_rules_of_thumb_are_those_that_were_read():
    assert {claim.id: (claim.low, claim.high) for claim in claims()} == RANGES


@pytest.mark.parametrize("accounting", ["step", "planning"])
def test_a_rule_is_held_against_the_run_it_is_about_and_outside_its_range_says_why(accounting):
    rows = needs.claim_rows(accounting)
    for each, row in zip(held(accounting), rows, strict=True):
        low, high = RANGES[each.claim.id]
        peak = estimate(each.claim.settings.varied(accounting=accounting)).peak_bytes
        assert each.estimate.peak_bytes == peak
        assert row.place == ("within" if low * GB <= peak <= high * GB else "below" if peak < low * GB else "above")
        assert (row.why == "") == (row.place == "within")
        assert row.why == "" or f"{each.claim.settings.model_label} has " in row.why


def test_a_range_is_closed_at_both_ends():
    one = held("step")[0]
    from dataclasses import replace

    def at(low, high):
        return replace(one, claim=replace(one.claim, low=low, high=high), estimate=replace(one.estimate, moments=(amount(7 * GB),))).place

    def amount(count):
        moment = one.estimate.moments[0]
        return replace(moment, terms=(replace(moment.terms[0], bytes=count),))

    assert [at(7, 9), at(5, 7), at(8, 9), at(5, 6)] == ["within", "within", "below", "above"]


def test_links_between_gpus_are_listed_slowest_first():
    speeds = [each.gb_per_second for each in interconnects()]
    assert speeds == sorted(speeds) == [32, 64, 600, 900, 1800]


def test_host_memory_is_one_and_a_half_to_two_times_the_weights_before_quantisation():
    settings = parse({**OPENING, "model": "llama-3.1-70b"})
    told = needs.host_guidance(estimate(settings))
    weights = 2 * estimate(settings).parameters.total / GB
    assert f"{1.5 * weights:.1f} to {2 * weights:.1f} GB" in told


def test_the_terminal_prints_classes_rules_and_links():
    out = run("hardware", "--model", "llama-3.1-70b").out
    for text in ("2,048 tokens", "nodes (ZeRO-3)", "7B, QLoRA", "NVLink 4", "of its own memory", "1.5 to 2 times"):
        assert text in out
    assert "None" not in out


def test_hardware_json():
    printed = json.loads(run("hardware", "--json").out)
    assert set(printed) == {"settings", "needs", "rules_of_thumb"}
    assert {each["under"] for each in printed["needs"]} == {"full", "lora", "qlora", "pretraining"}
    assert [each["about"] for each in printed["rules_of_thumb"]] == [claim.what for claim in claims()]
