"""Optimizer states and quantised weights, byte by byte: one kind after the other, on shapes that can be checked on paper.

Belongs here: what is kept for each parameter. Totals of whole runs: test_step.py.
"""

import pytest

from configurations import CUSTOM_STEP
from vramplan import estimate
from vramplan.accountings.step.state import QUANTIZED
from vramplan.settings import parse
from vramplan.units import whole_bytes_up

FULL = {**CUSTOM_STEP, "method": "full", "trainable_precision": "mixed-bf16"}
HALF = {**FULL, "trainable_precision": "pure-bf16"}

# Tensors of CUSTOM: 3 layers of q (72, 64), k and v (24, 64), o (64, 72), gate and up (200, 64), down (64, 200); 7 norms (64);
# embedding and head (1000, 64).
WIDE = 3 * (2 * 72 * 64 + 3 * 200 * 64)  # q, o and the MLP: 4,096 values or more each
NARROW = 3 * 2 * 24 * 64  # k and v: 1,536 values each
NORMS = 7 * 64
TABLE = 1000 * 64
ALL = WIDE + NARROW + NORMS + 2 * TABLE
ROWS_AND_COLUMNS = 3 * (2 * (72 + 64) + 2 * (24 + 64) + 3 * (200 + 64)) + 2 * (1000 + 64)


def at_the_step(typed, **changes):
    """The rows of the optimizer step, those that are empty left out."""
    one = estimate(parse({**typed, **changes}))
    (moment,) = [each for each in one.moments if each.name == "optimizer step"]
    return {term.name: term.bytes for term in moment.terms}


STATES = {
    # two moments of the parameter's type
    "adamw-fused": (8 * ALL, 4 * ALL),
    "adamw-foreach": (8 * ALL, 4 * ALL),
    # bitsandbytes: two float32 moments whatever the parameter's type
    "adamw-fp32-states": (8 * ALL, 8 * ALL),
    # 8-bit moments with a float32 scale for 256 values; float32 for small tensors and for the embedding
    "adamw-8bit": (2 * (WIDE + TABLE) + 2 * 4 * (WIDE + TABLE) // 256 + 8 * (NARROW + NORMS + TABLE),) * 2,
    # a column and a row of second moments, or all of them for a vector
    "adafactor": (4 * ROWS_AND_COLUMNS + 4 * NORMS,) * 2,
    "sgd": (0, 0),
    "sgd-momentum": (4 * ALL, 2 * ALL),
    "lion": (4 * ALL, 4 * ALL),
    # every tensor here has fewer than 100,000 values, so none of its states leaves the GPU
    "paged-adamw-32bit": (8 * ALL, 8 * ALL),
    "paged-adamw-8bit": (2 * (WIDE + TABLE) + 2 * 4 * (WIDE + TABLE) // 256 + 8 * (NARROW + NORMS + TABLE),) * 2,
}


@pytest.mark.parametrize(("optimizer", "states"), STATES.items(), ids=STATES)
def test_bytes_of_the_states(optimizer, states):
    for typed, expected in zip((FULL, HALF), states, strict=True):
        assert at_the_step(typed, optimizer=optimizer).get("optimizer_states", 0) == expected


LINEAR_OF_LLAMA_1B = 16 * (2 * 2048 * 2048 + 2 * 2048 * 512 + 3 * 2048 * 8192)


@pytest.mark.parametrize(("optimizer", "scales"), [("paged-adamw-32bit", 0), ("paged-adamw-8bit", 2 * 4 * LINEAR_OF_LLAMA_1B // 256)])
def test_paged_states_of_large_tensors_are_not_on_the_gpu_but_their_scales_are(optimizer, scales):
    """Of Llama 3.2 1B only the 33 norms (2,048) are small; the embedding has float32 states, without scales."""
    typed = {**FULL, "model": "llama-3.2-1b"}
    assert at_the_step(typed, optimizer=optimizer)["optimizer_states"] == 33 * 2048 * 8 + scales


@pytest.mark.parametrize(("values", "states"), [("100000", 0), ("99999", 99_999 * 8)])
def test_states_are_paged_from_100_000_values(values, states):
    """An adapter of rank 1 on the head has an A (64) and a B of as many values as the vocabulary has entries."""
    typed = {**CUSTOM_STEP, "method": "lora", "rank": "1", "adapter_targets": "lm_head", "loss": "logits", "optimizer": "paged-adamw-32bit"}
    assert at_the_step(typed, vocab_size=values)["optimizer_states"] == 64 * 8 + states


@pytest.mark.parametrize(("values", "states"), [("4096", 2 * 4096 + 2 * 4 * 16), ("4095", 8 * 4095)])
def test_states_are_in_8_bits_from_4_096_values(values, states):
    typed = {**CUSTOM_STEP, "method": "lora", "rank": "1", "adapter_targets": "lm_head", "loss": "logits", "optimizer": "adamw-8bit"}
    assert at_the_step(typed, vocab_size=values)["optimizer_states"] == 64 * 8 + states


@pytest.mark.parametrize(("typed", "size"), [(FULL, 4), (HALF, 2)])
def test_gradients_have_the_type_of_their_parameters(typed, size):
    assert at_the_step(typed)["gradients"] == size * ALL


def test_states_of_adapters_follow_the_adapters_and_not_the_base():
    typed = {**CUSTOM_STEP, "method": "lora", "rank": "8", "base_precision": "bf16", "optimizer": "adamw-fused"}
    adapters = 8 * ROWS_AND_COLUMNS - 8 * 2 * (1000 + 64)
    assert estimate(parse(typed)).parameters.trainable == adapters
    counted = at_the_step(typed)
    assert (counted["adapters"], counted["gradients"], counted["optimizer_states"]) == (4 * adapters, 4 * adapters, 8 * adapters)


# What the step itself needs on top: foreach takes the square roots of all second moments at once; Adafactor one tensor's
# squares and update in float32, float32 copies of a 16-bit parameter and gradient, and the update of the tensor before.
# The largest tensor is the head; the one before it is the last down projection, (64, 200).
SCRATCH = {
    "adamw-foreach": (4 * ALL, 2 * ALL),
    "adamw-fused": (0, 0),
    "adafactor": (2 * 4 * TABLE + 4 * 64 * 200, 4 * 4 * TABLE + 4 * 64 * 200),
    "lion": (0, 0),
}


@pytest.mark.parametrize(("optimizer", "scratch"), SCRATCH.items(), ids=SCRATCH)
def test_bytes_that_only_the_step_holds(optimizer, scratch):
    for typed, expected in zip((FULL, HALF), scratch, strict=True):
        assert at_the_step(typed, optimizer=optimizer).get("optimizer_scratch", 0) == expected


# One (14336, 4096) weight: 58,720,256 values.
STORED = {
    "nf4-double": 29_360_128 + 917_504 + 4 * 3_584,  # 4 bits; an 8-bit scale per 64 values; float32 per 256 scales
    "nf4": 29_360_128 + 4 * 917_504,
    "int8": 58_720_256 + 4 * 14_336,  # a float32 scale for each output
    "awq": 29_360_128 + 458_752 * 5 // 2,  # a 16-bit scale and a 4-bit zero point per 128 values
    "gptq": 29_360_128 + 458_752 * 5 // 2 + 4 * 4_096,  # ... and an int32 group for each input
    "gptq-ungrouped": 29_360_128 + 14_336 * 5 // 2 + 4 * 4_096,
}


@pytest.mark.parametrize(("kind", "stored"), STORED.items(), ids=STORED)
def test_bytes_of_a_quantised_weight(kind, stored):
    assert QUANTIZED[kind](values=4096 * 14_336, inputs=4096, outputs=14_336) == stored


def test_a_part_of_a_byte_of_a_quantised_weight_counts_as_a_whole_one():
    assert whole_bytes_up(QUANTIZED["nf4-double"](values=3, inputs=3, outputs=1)) == 2  # 1.547…


# What is not quantised, by preparation: the tables' bytes per value, and the norms'.
@pytest.mark.parametrize(("preparation", "table", "norm"), [("all", 4, 4), ("norms", 2, 4), ("none", 2, 2)])
def test_preparation_decides_the_type_of_what_is_not_quantised(preparation, table, norm):
    typed = {**CUSTOM_STEP, "quantization": "int8", "kbit_preparation": preparation, "base_precision": "bf16"}
    linear = WIDE + NARROW + 4 * 3 * (72 + 2 * 24 + 64 + 2 * 200 + 64)
    assert at_the_step(typed)["base_weights"] == linear + table * 2 * TABLE + norm * NORMS
