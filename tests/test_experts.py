"""Mixtures of experts in the training step, added up by hand on small decoders, and what is refused about them.

Belongs here: routed tokens, experts' weights and adapters on them. Against traced steps: test_traced.py.
"""

import pytest

from configurations import CUSTOM_STEP
from vramplan import estimate
from vramplan.accountings.step.build import structure
from vramplan.accountings.step.layers import rows_of_layers
from vramplan.accountings.step.walks import layer_walks
from vramplan.errors import NotExpressible, SettingsError
from vramplan.settings import parse

# CUSTOM has 3 layers, hidden size 64, heads 6 and 2 of 12, MLP 200, vocabulary 1,000. Here: 8 experts of 40, two for each token.
H, M, E, K, L = 64, 40, 8, 2, 3
MIXTURE = {
    **CUSTOM_STEP, "num_experts": str(E), "experts_per_token": str(K), "expert_intermediate_size": str(M), "checkpointing": "none",
    "trainable_precision": "pure-bf16",
}
EXPERTS = E * 3 * H * M  # gate, up and down of all of them
ROUTER = E * H
MLP = 3 * H * 200


def of(**changes):
    return estimate(parse({**MIXTURE, **changes}))


def saved(**changes):
    """Bytes that the last layer keeps, and bytes it keeps for every token."""
    kept = layer_walks(rows_of_layers(structure(parse({**MIXTURE, **changes})))[-1][0]).saved
    return kept[0], kept[1]


def dense(**changes):
    return of(num_experts="0", experts_per_token="0", expert_intermediate_size="0", **changes)


def test_experts_take_the_place_of_the_mlp_and_a_router_comes_beside_them():
    assert of(method="full").parameters.total - dense(method="full").parameters.total == L * (EXPERTS + ROUTER - MLP)


def test_first_layers_may_be_dense_and_others_may_share_an_expert():
    whole = of(method="full").parameters.total
    assert of(method="full", dense_layers="2").parameters.total - whole == 2 * (MLP - EXPERTS - ROUTER)
    shared = 3 * H * 24 + H  # a shared expert of 24, and its gate
    assert of(method="full", shared_expert_intermediate_size="24", shared_expert_gate="true").parameters.total - whole == L * shared


def test_every_token_is_kept_once_for_each_of_its_experts():
    """In 16 bits: what came in, gate and up, the activated gate, the product, what came out; and numbers that say where."""
    one_more = saved(method="full", experts_per_token="3")[1] - saved(method="full")[1]
    indices = 4 * 8  # chosen expert, place, order, place of the output: int64
    weights = 4 + 2  # as chosen, in float32, and in order
    assert one_more == 2 * (H + 2 * M + M + M + H) + indices + weights


def test_what_is_kept_does_not_depend_on_how_many_experts_there_are_but_for_the_router():
    assert saved(method="full", num_experts="16")[1] - saved(method="full")[1] == 4 * (16 - E)  # float32 probabilities


def test_a_quantised_base_leaves_experts_and_router_as_they_were():
    """They are parameters, no linear modules. 16 bits without preparation; with PEFT's, everything becomes float32."""
    def weights(preparation):
        return next(term.bytes for term in of(method="qlora", kbit_preparation=preparation, adapter_targets="attention").terms if term.name == "base_weights")

    beside = 2 * 1_000 * H + 7 * H  # embedding, head and norms
    assert weights("all") - weights("none") == 2 * (L * (EXPERTS + ROUTER) + beside)


def test_adapters_on_experts_are_pairs_for_each_of_them_with_twice_the_rank_for_gate_and_up():
    with_them, without = (of(method="lora", rank="4", adapter_targets=each).parameters.trainable for each in ("all-linear", "attention"))
    assert with_them - without == L * E * (2 * 4 * (H + 2 * M) + 4 * (M + H))


def test_adapters_on_experts_keep_all_their_weights_a_second_time():
    with_them, without = (saved(method="lora", rank="4", trainable_precision="mixed-bf16", adapter_targets=each) for each in ("q,k,v,o,down", "q,k,v,o"))
    pairs = E * 4 * (M + H)  # in the weights' type, beside the float32 ones
    assert (with_them[0] - without[0], with_them[1] - without[1]) == (2 * (E * M * H + pairs), 2 * K * M)


def test_adapters_may_be_on_shared_experts_and_dense_layers_instead():
    shape = {"shared_expert_intermediate_size": "24", "dense_layers": "1", "adapters_skip_experts": "true"}
    with_them, without = (of(method="lora", rank="4", adapter_targets=each, **shape).parameters.trainable for each in ("all-linear", "attention"))
    assert with_them - without == 3 * 4 * (2 * (H + 24) + (H + 200))


SINKS = {"attention_sinks": "true", "expert_biases": "true", "router": "softmax-of-chosen", "adapters_skip_experts": "true"}


def test_experts_and_their_router_may_have_biases_and_attention_a_sink_for_each_head():
    added = of(method="full", **SINKS).parameters.total - of(method="full").parameters.total
    assert added == L * (E * (2 * M + H) + E + 6)


def test_a_clamped_gate_is_kept_step_by_step():
    """In 16 bits: what came in, gate and up, clamped gate, its sigmoid, the activated gate, up and one, the product, what came out."""
    one_more = saved(method="full", experts_per_token="3", **SINKS)[1] - saved(method="full", **SINKS)[1]
    indices = 5 * 8  # chosen expert, place, order, expert, place of the output: int64
    weights = 2 + 2  # as chosen, and in order
    assert one_more == 2 * (H + 2 * M + 5 * M + H) + indices + weights


def test_attention_with_sinks_keeps_its_weights_alone_for_every_pair_of_tokens_whatever_kernel_is_named():
    for kernel in ("efficient", "eager"):
        run = structure(parse({**MIXTURE, "method": "full", "attention_kernel": kernel, **SINKS}))
        assert layer_walks(rows_of_layers(run)[-1][0]).saved[2] == 6 * 2  # six heads, 16 bits


def test_a_router_may_choose_in_float32_and_give_its_weights_the_type_of_what_came_in():
    """For one token more each: chosen expert and three numbers for places as before; the softmax of the chosen in float32, and in 16 bits in order."""
    scores = {router: saved(method="full", experts_per_token="3", router=router)[1] - saved(method="full", router=router)[1]
              for router in ("softmax-of-chosen", "softmax-of-chosen-float32")}
    assert scores["softmax-of-chosen-float32"] - scores["softmax-of-chosen"] == 4 - 2


def test_a_layer_runs_again_while_the_gradient_of_every_routed_token_waits():
    """Nothing is saved after the experts' output is in order: adding it up has gone backward by then."""
    for k in ("1", "4"):
        run = structure(parse({**MIXTURE, "method": "full", "checkpointing": "full", "experts_per_token": k, **SINKS}))
        assert layer_walks(rows_of_layers(run)[-1][0]).waiting[1] == int(k) * H * 2


def test_all_linear_leaves_out_experts_that_peft_finds_no_maps_in():
    every, attention = (of(method="lora", adapter_targets=each, **SINKS) for each in ("all-linear", "attention"))
    assert (every.parameters.trainable, every.peak_bytes) == (attention.parameters.trainable, attention.peak_bytes)


@pytest.mark.parametrize(
    ("field", "changes"),
    [("adapter_targets", {"method": "lora", "adapter_targets": "gate,up,down"}), ("half_precision", {"half_precision": "fp16"}),
     ("layer_kernels", {"layer_kernels": "liger"}), ("stack", {"stack": "trainer-4.54"})])
def test_what_is_not_counted_with_sinks_is_said_in_a_sentence(field, changes):
    with pytest.raises(NotExpressible) as caught:
        of(**{**SINKS, **changes})
    assert caught.value.field == field and str(caught.value).count(".") >= 1


@pytest.mark.parametrize("name", ["attention_sinks", "expert_biases"])
def test_sinks_and_biases_of_experts_go_with_experts(name):
    with pytest.raises(SettingsError) as caught:
        dense(**{name: "true"})
    assert [error.field for error in caught.value.errors] == [name]


@pytest.mark.parametrize(
    ("field", "changes"),
    [("stack", {"stack": "trainer-4.54"}), ("layer_kernels", {"layer_kernels": "liger"}), ("quantization", {"method": "qlora", "quantization": "gptq"}),
     ("adapter_targets", {"method": "lora", "adapter_targets": "q,gate"}), ("lora_dropout", {"method": "lora", "lora_dropout": "0.1"}),
     ("sharding", {"sharding": "zero3", "replicas": "2"}), ("model", {"accounting": "planning", "trainable_precision": "mixed-bf16"})])
def test_what_is_not_counted_with_experts_is_said_in_a_sentence(field, changes):
    with pytest.raises(NotExpressible) as caught:
        of(**changes)
    assert caught.value.field == field and str(caught.value).count(".") >= 1
