"""Latent attention (MLA) in the training step, added up by hand on a small decoder, and what is refused about it.

Belongs here: the narrow maps, their targets, and what attention keeps. Against traced steps: test_traced.py.
"""

import pytest

from configurations import CUSTOM_STEP, LATENT_ATTENTION, RULES
from vramplan import estimate
from vramplan.accountings.step.batch import batch_of
from vramplan.accountings.step.build import structure
from vramplan.accountings.step.layers import rows_of_layers
from vramplan.accountings.step.walks import layer_walks
from vramplan.errors import NotExpressible
from vramplan.importing.chosen import inventory_of, trainable
from vramplan.importing.imported import import_text
from vramplan.settings import parse

# CUSTOM has 3 layers, hidden size 64, 6 heads, MLP 200, vocabulary 1,000. Here: queries and keys of 8 + 4, values of 10, rank 16.
H, L, N, NOPE, ROPE, V, C, MLP = 64, 3, 6, 8, 4, 10, 16, 200
LATENT = {**CUSTOM_STEP, **LATENT_ATTENTION, "checkpointing": "none", "trainable_precision": "pure-bf16"}
QUERY, KEY_VALUE = N * (NOPE + ROPE), N * (NOPE + V)
KEYS_AND_VALUES = H * (C + ROPE) + C * KEY_VALUE + C  # in, out, and the norm between them


def of(**changes):
    return estimate(parse({**LATENT, **changes}))


def run_of(**changes):
    return structure(parse({**LATENT, **changes}))


def saved(**changes):
    """Bytes that a layer keeps for every token."""
    return layer_walks(rows_of_layers(run_of(**changes))[-1][0]).saved[1]


def refused(**changes):
    with pytest.raises(NotExpressible) as problem:
        of(**changes)
    return problem.value.field


def test_narrow_maps_take_the_place_of_key_and_value():
    usual = of(kv_lora_rank="0", qk_nope_head_dim="0", qk_rope_head_dim="0", v_head_dim="0", method="full").parameters.total
    attention = H * QUERY + KEYS_AND_VALUES + N * V * H
    assert of(method="full").parameters.total - usual == L * (attention - 4 * H * QUERY)


def test_queries_may_go_through_a_narrow_map_too():
    more = of(method="full", q_lora_rank="24").parameters.total - of(method="full").parameters.total
    assert more == L * (H * 24 + 24 + 24 * QUERY - H * QUERY)


def test_adapters_on_attention_are_on_every_map_of_it():
    pairs = (H + QUERY) + (H + C + ROPE) + (C + KEY_VALUE) + (N * V + H)
    assert of(method="lora", adapter_targets="attention", rank="8").parameters.trainable == 8 * L * pairs
    with_mlp = of(method="lora", adapter_targets="all-linear", rank="8").parameters.trainable
    assert with_mlp == 8 * L * (pairs + 3 * (H + MLP))
    own = (H + 24) + (24 + QUERY) - (H + QUERY)
    narrow = of(method="lora", adapter_targets="attention", rank="8", q_lora_rank="24").parameters.trainable
    assert narrow == 8 * L * (pairs + own)


def test_single_maps_can_be_named_where_the_model_has_them():
    assert of(method="lora", adapter_targets="kv_a,kv_b", rank="4").parameters.trainable == 4 * L * (H + C + ROPE + C + KEY_VALUE)
    assert refused(method="lora", adapter_targets="q,k") == "adapter_targets"
    assert refused(method="lora", adapter_targets="q_a,o") == "adapter_targets"
    assert refused(method="lora", adapter_targets="q,o", q_lora_rank="24") == "adapter_targets"
    with pytest.raises(NotExpressible, match="maps q, k, v, o, no kv_b"):
        estimate(parse({**CUSTOM_STEP, "method": "lora", "adapter_targets": "kv_b"}))


def test_every_map_is_quantised():
    whole, nf4 = (next(term.bytes for term in each.moments[0].terms if term.name == "base_weights") for each in (of(method="lora"), of(method="qlora", kbit_preparation="none")))
    linear = L * (H * QUERY + H * (C + ROPE) + C * KEY_VALUE + N * V * H + 3 * H * MLP)
    assert 0.5 * linear < 2 * linear - (whole - nf4) < 0.55 * linear  # half a byte each, and scales


def test_attention_keeps_queries_keys_the_tensor_of_the_values_and_its_output():
    """One value wider, a value head is wider in what both come out of, in the output, and in what the last map keeps of it."""
    wider = saved(v_head_dim="11") - saved()
    assert wider == 2 * N + 2 * N  # in 16 bits: keys and values in one tensor; the output, which the last map keeps too


def test_kernels_follow_the_widths_of_the_heads():
    assert run_of().attention == "efficient-repeated"
    assert run_of(v_head_dim="12").attention == "efficient"
    assert run_of(attention_kernel="eager").attention == "eager"


def test_blocks_of_keys_are_counted_for_wide_heads_only():
    wide = {"head_dim": "192", "qk_nope_head_dim": "128", "qk_rope_head_dim": "64", "v_head_dim": "128"}

    def blocks(rows, length, **shape):
        _, _, found, *_ = batch_of(run_of(**shape), rows, length)
        return found

    assert blocks(1, 4096) == 0
    assert blocks(1, 4096, **wide) == 6 * (200 // 6)
    assert blocks(50, 4096, **wide) == 300
    assert blocks(1, 128, **wide) == 6 * 2


@pytest.mark.parametrize(("field", "changes"), [
    ("stack", {"stack": "trainer-4.46"}),
    ("stack", {"stack": "unsloth-2026.10", "method": "lora"}),
    ("sharding", {"sharding": "zero3", "sharded_over": "2"}),
    ("layer_kernels", {"layer_kernels": "liger"}),
    ("objective", {"objective": "reward", "stack": "trl-1.15"}),
    ("model", {"accounting": "planning", "trainable_precision": "mixed-bf16"}),
])
def test_what_is_not_counted_with_latent_attention_is_refused_by_name(field, changes):
    assert refused(**changes) == field


def test_pairs_are_counted_with_latent_attention():
    assert of(objective="dpo", stack="trl-1.15", method="lora").peak_bytes > of(method="lora").peak_bytes


def test_the_router_of_deepseek_is_in_float32_and_its_bias_is_not_trained():
    experts = {"num_experts": "8", "experts_per_token": "2", "expert_intermediate_size": "40", "method": "full"}
    softmax, sigmoid = (of(**experts, router=router) for router in ("softmax", "sigmoid-grouped"))
    weights = [next(term.bytes for term in each.moments[0].terms if term.name == "base_weights") for each in (softmax, sigmoid)]
    assert sigmoid.parameters.total - softmax.parameters.total == L * 8
    assert sigmoid.parameters.trainable == softmax.parameters.trainable
    assert weights[1] - weights[0] == L * (2 * 8 * H + 4 * 8)


@pytest.mark.parametrize("preset", ["deepseek-v3", "moonlight-16b-a3b", "minicpm3-4b", "youtu-llm-2b"])
def test_a_preset_has_the_modules_and_the_adapters_that_are_estimated(preset):
    settings = parse({"model": preset, "adapter_targets": "attention"})
    assert inventory_of(settings).total == estimate(settings).parameters.total
    assert trainable(inventory_of(settings), settings) == estimate(settings).parameters.trainable


FILE = """{"model_type": "deepseek_v3", "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 500,
"intermediate_size": 96, "q_lora_rank": null, "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 4,
"num_experts_per_tok": 2, "moe_intermediate_size": 24, "n_shared_experts": 1, "first_k_dense_replace": 1, "num_nextn_predict_layers": 1%s}"""


def test_a_file_with_latent_attention_is_estimated_and_says_what_it_leaves_out():
    read = import_text(FILE % "", {})
    assert read.settings and read.total == estimate(read.settings).parameters.total
    assert [each.key for each in read.unsupported] == ["num_nextn_predict_layers"]


@pytest.mark.parametrize("change", ['"attention_bias": true', '"num_key_value_heads": 2', '"moe_layer_freq": 2'])
def test_a_file_that_says_more_than_can_be_counted_is_not_estimated(change):
    read = import_text(FILE % f", {change}", {})
    assert read.settings is None and change.split('"')[1] in [each.key for each in read.unsupported]


@pytest.mark.parametrize(("changes", "advice"), [
    ({"accounting": "unsloth"}, "The training step counts this model, against one card."),
    ({"accounting": "rules", "task": "inference", "served_weights": "bf16"}, "Count the model’s training, or choose another model."),
])
def test_who_cannot_count_latent_attention_says_what_can_be_done(changes, advice):
    with pytest.raises(NotExpressible) as problem:
        estimate(parse({**RULES, "model": "deepseek-v2-lite", **changes}))
    assert problem.value.message.endswith(advice)
    counted = estimate(parse({"model": "deepseek-v2-lite", "accounting": "step"}))
    assert counted.peak_bytes > 0
