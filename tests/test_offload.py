"""Checkpoints that wait in host memory: what stays on the GPU, and what they take on the host.

Belongs here: the moments of runs with offloaded checkpoints, and their bytes on the host. Against traces: test_traced.py.
"""

import pytest

from configurations import CUSTOM_STEP
from vramplan.accountings import step
from vramplan.accountings.step.host import offloaded_checkpoint_bytes
from vramplan.settings import parse

HIDDEN, LAYERS, TOKENS = 1_024, 6, 2_048
ONE = 2 * HIDDEN * TOKENS  # a checkpoint in 16 bits; the embedding's output, which was made to require a gradient, is as large
BASE = {
    **CUSTOM_STEP, "hidden_size": str(HIDDEN), "num_layers": str(LAYERS), "method": "lora", "base_precision": "bf16",
    "sequence_length": str(TOKENS), "micro_batch": "1", "gradient_accumulation_steps": "1", "checkpointing": "offloaded",
}
LOSS, LAST, FIRST = "loss", "backward of the last layer", "backward of the first layer"


def held(stack, row, **changes):
    """Bytes of one row by moment."""
    found = step.estimate(parse({**BASE, "stack": stack, **changes}))
    return {moment.name: {term.name: term.bytes for term in moment.terms}.get(row, 0) for moment in found.moments}


def test_where_every_checkpoint_leaves_one_is_back_at_a_time():
    saved = held("llama-factory-0.9", "saved_activations")
    assert (saved["forward"], saved[LOSS], saved[LAST], saved[FIRST]) == (2 * ONE, ONE, 2 * ONE, 2 * ONE)
    assert set(held("llama-factory-0.9", "staging").values()) == {0}


@pytest.mark.parametrize(("stack", "buffers"), [("unsloth-2026.10", 2), ("unsloth-2025.11", 1)])
def test_unsloth_keeps_the_last_checkpoint_and_its_buffers(stack, buffers):
    saved, staging = held(stack, "saved_activations"), held(stack, "staging")
    assert (saved["forward"], saved[LOSS], saved[LAST], saved[FIRST]) == (2 * ONE, 2 * ONE, 2 * ONE, ONE)
    assert {name: size for name, size in staging.items() if "first step" not in name} == dict.fromkeys(
        (name for name in staging if "first step" not in name), buffers * ONE)


def test_in_the_first_step_of_unsloth_2025_nothing_leaves_and_there_are_no_states():
    saved, states = held("unsloth-2025.11", "saved_activations"), held("unsloth-2025.11", "optimizer_states")
    assert saved[f"{LOSS}, first step"] == LAYERS * ONE
    assert states[f"{LOSS}, first step"] == 0 < states[LOSS]
    assert not [name for name in held("unsloth-2026.10", "staging") if "first step" in name]


@pytest.mark.parametrize(
    ("stack", "length", "leaves"),
    # 2 MiB are 1,024 tokens of 1,024 values
    [("unsloth-2026.10", 1_024, False), ("unsloth-2026.10", 1_025, True), ("unsloth-2025.11", 1_024, False), ("unsloth-2025.11", 1_025, True),
     ("axolotl-0.19", 100, True)])
def test_small_checkpoints_stay_with_unsloth(stack, length, leaves):
    saved = held(stack, "saved_activations", sequence_length=str(length))
    assert (saved[LOSS] < LAYERS * 2 * HIDDEN * length) == leaves


@pytest.mark.parametrize(("stack", "leaves"), [("unsloth-2026.10", False), ("unsloth-2025.11", True)])
def test_short_rows_stay_with_unsloth_2026_however_many_there_are(stack, leaves):
    saved = held(stack, "saved_activations", sequence_length="511", micro_batch="8")
    assert (saved[LOSS] < LAYERS * 2 * HIDDEN * 511 * 8) == leaves


@pytest.mark.parametrize(
    ("kind", "size", "host"),
    # rounded up to powers of two where it is pinned; 2026 has a buffer for the last layer too
    [("each", 3_000, 18_000), ("staged", 3_000, 6 * 4_096), ("staged-later", 3_000, 5 * 4_096), ("staged", 4_096, 6 * 4_096), ("staged", 0, 0)])
def test_bytes_on_the_host(kind, size, host):
    assert offloaded_checkpoint_bytes(kind=kind, num_layers=6, checkpoint_bytes=size) == host


@pytest.mark.parametrize(("stack", "count"), [("llama-factory-0.9", LAYERS), ("unsloth-2026.10", LAYERS), ("unsloth-2025.11", LAYERS - 1)])
def test_the_estimate_tells_what_the_host_holds(stack, count):
    """4 MiB a checkpoint: a power of two already."""
    found = step.estimate(parse({**BASE, "stack": stack}))
    assert {term.name: term.bytes for term in found.host}["host_checkpoints"] == count * ONE
    kept = step.estimate(parse({**BASE, "stack": stack, "checkpointing": "full"}))
    assert "host_checkpoints" not in {term.name for term in kept.host}
