"""The planning accounting against numbers worked out by hand or published, and "fits" at exact equality.

Belongs here: single configurations whose bytes a reader can check on paper. Random ones: test_oracle.py.
"""

from fractions import Fraction
import math

import pytest

from configurations import CUSTOM, PLANNING, SMALL_DECODER
from vramplan import estimate
from vramplan.settings import parse

GIB = 2**30

# One layer, every width small: D = 2·3·1 + 2·3·1 + 3·3·1 = 21 and P = 3 + 21 + (2·3) + 3 = 33.
TINY_DECODER = {
    **CUSTOM, "hidden_size": "3", "num_layers": "1", "num_attention_heads": "1", "num_kv_heads": "1", "head_dim": "1",
    "intermediate_size": "1", "vocab_size": "1", "tied_embeddings": "true", "sequence_length": "1", "rank": "1",
}


def of(configuration, **changes):
    return estimate(parse({**configuration, **changes}))


def terms(configuration, **changes):
    return {term.name: term.bytes for term in of(configuration, **changes).terms}


@pytest.mark.parametrize(("targets", "count"), [("attention", 13_631_488), ("all-linear", 41_943_040)])
@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_adapter_parameters_of_llama_8b_at_rank_16(targets, count, method):
    assert of(PLANNING, method=method, adapter_targets=targets).parameters.trainable == count


def test_full_fine_tuning_trains_every_parameter():
    assert of(PLANNING, method="full").parameters.trainable == 8_030_261_248


@pytest.mark.parametrize(
    ("model", "method", "gib"),
    [
        ("llama-3.1-8b", "qlora", "11.83"),
        ("llama-3.1-8b", "lora", "19.41"),
        ("llama-3.1-8b", "full", "138.36"),
        ("llama-3.2-1b", "full", "23.95"),
    ],
)
def test_peaks_at_two_decimals(model, method, gib):
    assert f"{of(PLANNING, model=model, method=method).peak_bytes / GIB:.2f}" == gib


def test_nf4_storage_costs_0_515869140625_bytes_per_linear_parameter():
    others = 8_030_261_248 - 6_979_321_856
    assert terms(PLANNING)["base_weights"] - 4 * others == Fraction("0.515869140625") * 6_979_321_856


def test_a_part_of_a_byte_counts_as_a_whole_one():
    assert terms(TINY_DECODER)["base_weights"] == 59  # 0.515869140625·21 + 4·12 = 58.83…
    assert terms(PLANNING, sequence_length="1", activation_multiplier="0.333")["active_layer"] == 46_375  # 46,374.912
    assert terms(PLANNING, extra_allowance="0.1")["extra_allowance"] == 107_374_183  # 107,374,182.4


def test_a_tiny_full_run_by_hand():
    expected = {
        "base_weights": 66, "master_weights": 132, "gradients": 132, "optimizer_states": 264,
        "saved_activations": 6, "active_layer": 102 + 5, "logits": 4, "fixed_allowance": 2 * GIB,
    }
    counted = terms(TINY_DECODER, method="full", attention_kernel="eager")
    assert {name: count for name, count in counted.items() if count} == expected


def test_a_tiny_lora_run_by_hand():
    # A and B of q, k, v, o and gate, up, down, each 3 wide on one side and 1 on the other: 7·(3 + 1) = 28 parameters.
    expected = {
        "base_weights": 66, "adapters": 56, "gradients": 56, "optimizer_states": 56,
        "saved_activations": 102, "adapter_activations": 14, "logits": 4, "fixed_allowance": 2 * GIB,
    }
    counted = terms(TINY_DECODER, method="lora", trainable_precision="pure-bf16", optimizer="adamw-8bit", checkpointing="none")
    assert {name: count for name, count in counted.items() if count} == expected


@pytest.mark.parametrize("change", [{"replicas": "128"}, {"gradient_accumulation_steps": "1024"}])
def test_replicas_and_accumulation_add_no_memory(change):
    assert of(PLANNING, **change).terms == of(PLANNING).terms


def test_dequantization_is_one_largest_matrix_and_only_for_qlora():
    assert terms(PLANNING)["dequantization"] == 2 * 4096 * 14_336
    assert terms(CUSTOM)["dequantization"] == 2 * 64 * 200
    assert terms(CUSTOM, head_dim="100")["dequantization"] == 2 * 64 * 600
    assert terms(PLANNING, method="lora").get("dequantization", 0) == 0


def test_the_multiplier_scales_activations_and_nothing_else():
    once, four_times = terms(PLANNING), terms(PLANNING, activation_multiplier="4")
    scaled = {"saved_activations", "active_layer", "adapter_activations"}
    assert {name for name in once if once[name] != four_times[name]} == scaled
    assert all(four_times[name] == 4 * once[name] for name in scaled)


# Multipliers whose product with the bytes is whole; binary floats get the first two wrong by one.
TRAPS = [("1.1", "30"), ("2.2", "30"), ("3.3", "10"), ("0.3", "10")]


@pytest.mark.parametrize(("multiplier", "sequence_length"), TRAPS)
def test_typed_multipliers_are_exact_decimals(multiplier, sequence_length):
    counted = terms(CUSTOM, activation_multiplier=multiplier, sequence_length=sequence_length, checkpointing="none")
    whole = 3 * 34 * int(sequence_length) * 64
    assert counted["saved_activations"] == Fraction(multiplier) * whole


def test_the_traps_above_are_traps():
    for multiplier, sequence_length in TRAPS[:2]:
        whole = 3 * 34 * int(sequence_length) * 64
        assert math.ceil(float(multiplier) * whole) == Fraction(multiplier) * whole + 1


def in_unit(count, unit):
    """A byte count as an exact decimal in the unit."""
    if unit == "gb":
        return f"{count // 10**9}.{count % 10**9:09d}"
    return f"{count // GIB}.{count % GIB * 5**30:030d}"


EQUALITIES = [
    PLANNING,
    CUSTOM,
    TINY_DECODER,
    {**PLANNING, "activation_multiplier": "1.1", "sequence_length": "10"},
    {**PLANNING, "activation_multiplier": "3.3", "extra_allowance": "0.1"},
    {**PLANNING, "activation_multiplier": "0.25", "extra_allowance": "0.7", "sequence_length": "333"},
    {**PLANNING, "model": "qwen3-8b", "method": "full", "activation_multiplier": "0.3333"},
    {**PLANNING, "method": "lora", "activation_multiplier": "2.7", "extra_allowance": "1.3"},
]


@pytest.mark.parametrize("unit", ["gb", "gib"])
@pytest.mark.parametrize("configuration", EQUALITIES)
def test_a_budget_equal_to_the_peak_fits_and_one_byte_less_does_not(configuration, unit):
    peak = of(configuration).peak_bytes
    equal = of(configuration, gpu="custom", budget=in_unit(peak, unit), budget_unit=unit)
    assert (equal.budget_bytes, equal.peak_bytes, equal.headroom_bytes, equal.fits) == (peak, peak, 0, True)
    short = of(configuration, gpu="custom", budget=in_unit(peak - 1, unit), budget_unit=unit)
    assert (short.budget_bytes, short.headroom_bytes, short.fits) == (peak - 1, -1, False)


@pytest.mark.parametrize(
    ("budget", "unit", "whole_bytes"),
    [
        ("24.1", "gb", 24_100_000_000),
        ("24.1", "gib", 25_877_177_958),  # 25,877,177,958.4
        ("12.7", "gib", 13_636_521_164),  # 13,636,521,164.8
        ("2.3", "gb", 2_300_000_000),
        ("8.0000000019", "gb", 8_000_000_001),
        ("1", "gib", GIB),
        ("2048", "gib", 2048 * GIB),
    ],
)
def test_budgets_are_exact_decimals_rounded_down(budget, unit, whole_bytes):
    assert of(CUSTOM, budget=budget, budget_unit=unit).budget_bytes == whole_bytes


@pytest.mark.parametrize("gpu", ["8", "24", "141", "288"])
def test_gpu_classes_are_nominal_gib(gpu):
    assert of(PLANNING, gpu=gpu).budget_bytes == int(gpu) * GIB


def test_head_width_is_not_forced():
    wide = of(CUSTOM, head_dim="13").parameters.total - of(CUSTOM).parameters.total
    assert wide == 3 * (2 * 64 * 6 + 2 * 64 * 2)  # q, o and k, v each gain one column per head
    assert int(SMALL_DECODER["hidden_size"]) % int(SMALL_DECODER["num_attention_heads"]) != 0
