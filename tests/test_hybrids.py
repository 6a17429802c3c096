"""Layers with something else in place of attention, added up by hand on small decoders, and what is refused about them.

Belongs here: what such a layer holds and keeps, adapters on it, the order of layers. Against traced steps: test_traced.py.
"""

from dataclasses import replace

import pytest

from configurations import CUSTOM_STEP
from vramplan import estimate
from vramplan.accountings.step import state
from vramplan.accountings.step.batch import batch_of
from vramplan.accountings.step.batches import Batches
from vramplan.accountings.step.build import structure
from vramplan.accountings.step.describe import alive_holdings
from vramplan.accountings.step.layers import rows_of_layers
from vramplan.accountings.step.moments import evaluate
from vramplan.accountings.step.walks import layer_walks
from vramplan.accounts import assumed_text
from vramplan.errors import NotExpressible, SettingsError
from vramplan.settings import parse

# CUSTOM has 3 layers, hidden size 64, heads 6 and 2 of 12, MLP 200, vocabulary 1,000. Here the second has attention.
H, M, TAPS = 64, 200, 3
CONVOLUTIONS = {
    **CUSTOM_STEP, "mixer": "short-convolution", "attention_layers": "1", "mixer_kernel": str(TAPS), "checkpointing": "none", "trainable_precision": "pure-bf16",
}
ATTENTION = 2 * H * 72 + 2 * H * 24  # query and output, key and value
CONVOLUTION = H * 3 * H + H * H + H * TAPS  # a map to three parts, one back, and the taps


def of(**changes):
    return estimate(parse({**CONVOLUTIONS, **changes}))


def rows(**changes):
    return rows_of_layers(structure(parse({**CONVOLUTIONS, **changes})))


def kept_per_token(row):
    return layer_walks(row[0]).saved[1]


def everywhere(**changes):
    """The same decoder with attention in every layer."""
    return of(mixer="none", attention_layers="none", mixer_kernel="0", **changes)


def test_a_convolution_takes_the_place_of_the_maps_of_attention():
    assert of(method="full").parameters.total - everywhere(method="full").parameters.total == 2 * (CONVOLUTION - ATTENTION)


def test_norms_of_heads_are_in_layers_with_attention_alone():
    assert of(method="full", query_key_norms="true").parameters.total - of(method="full").parameters.total == 2 * 12


@pytest.mark.parametrize(("listed", "counts"), [("1", [1, 1, 1]), ("0,1", [2, 1]), ("2", [2, 1]), ("0,2", [1, 1, 1]), ("none", [3]), ("0,1,2", [3])])
def test_layers_come_in_the_order_in_which_they_are_listed(listed, counts):
    found = rows(attention_layers=listed)
    assert [count for _, count in found] == counts
    first_attends = "0" in listed.split(",")
    assert [kind.mixes for kind, _ in found] == [first_attends == bool(number % 2) for number in range(len(counts))]


def test_a_convolution_keeps_its_parts_what_goes_in_and_comes_out_and_what_its_maps_read():
    """In 16 bits beside norms and MLP, which attention's layers have too: three parts, the gated values, the convolution, its gated output, and the
    layer's normed input."""
    convolution, attention, _ = rows(method="full")
    in_attention = 2 * (72 + 24 + 24) + 2 * 72 + 4 * 6  # queries, keys and values as the kernel reads them, its output, a sum for every head
    rotated = kept_per_token(attention) - kept_per_token(convolution) + 2 * (3 * H + H + H + H)
    assert rotated == in_attention


def test_a_quantised_base_leaves_the_taps_as_they_were():
    """They are no linear map. 16 bits without preparation; with PEFT's, everything becomes float32."""
    def taps(preparation):
        run = structure(parse({**CONVOLUTIONS, "method": "qlora", "kbit_preparation": preparation}))
        (found,) = (weight for weight in state.base_weights(run) if weight.name == "convolution")
        return found.bytes

    assert (taps("none"), taps("all")) == (2 * 2 * H * TAPS, 4 * 2 * H * TAPS)


def test_adapters_on_every_linear_map_are_on_those_of_the_convolution_too():
    sizes = {"in,out": 2 * ((H + 3 * H) + (H + H)), "in": 2 * (H + 3 * H), "q": H + 72}
    found = {targets: of(method="lora", rank="4", adapter_targets=targets).parameters.trainable for targets in (*sizes, "all-linear", "q,k,v,o,gate,up,down")}
    assert {targets: found[targets] for targets in sizes} == {targets: 4 * size for targets, size in sizes.items()}
    assert found["all-linear"] - found["q,k,v,o,gate,up,down"] == found["in,out"]


def test_layers_before_the_first_adapter_keep_nothing():
    """Without checkpointing no gradient reaches them: what is kept begins where the first adapter reads."""
    def kept(listed):
        found = of(method="lora", adapter_targets="attention", attention_layers=listed, sequence_length="4096", loss="fused-linear")
        return next(moment for moment in found.moments if moment.name == "backward of the last layer")

    def saved(listed):
        return next((term.bytes for term in kept(listed).terms if term.name == "saved_activations"), 0)

    assert 0 <= saved("2") < saved("1,2") < saved("0,1,2")


def test_all_linear_means_the_same_as_before_where_every_layer_has_attention():
    plain, named = (everywhere(method="lora", adapter_targets=each) for each in ("all-linear", "q,k,v,o,gate,up,down"))
    assert (plain.peak_bytes, plain.parameters) == (named.peak_bytes, named.parameters)


def test_the_sentence_says_that_no_package_of_kernels_is_taken_as_installed():
    assert "without the package causal_conv1d" in assumed_text(of())
    assert "causal_conv1d" not in assumed_text(everywhere())


@pytest.mark.parametrize(
    ("field", "changes"),
    [("stack", {"stack": "trainer-4.54"}), ("stack", {"stack": "unsloth-2026.10"}), ("stack", {"stack": "litgpt-0.5"}), ("layer_kernels", {"layer_kernels": "liger"}),
     ("quantization", {"method": "qlora", "quantization": "gptq"}), ("half_precision", {"half_precision": "fp16"}),
     ("objective", {"stack": "trl-1.15", "objective": "dpo"}), ("sharding", {"sharding": "zero3", "replicas": "2"}),
     ("model", {"accounting": "planning", "trainable_precision": "mixed-bf16"})])
def test_what_is_not_counted_with_them_is_said_in_a_sentence(field, changes):
    with pytest.raises(NotExpressible) as caught:
        of(**changes)
    assert caught.value.field == field and str(caught.value).count(".") >= 1


def test_an_adapter_on_maps_that_no_layer_has_is_refused():
    with pytest.raises(NotExpressible, match="Every layer of this model has attention"):
        everywhere(method="lora", adapter_targets="in,out")


@pytest.mark.parametrize(
    ("field", "changes"),
    [("attention_layers", {"attention_layers": "3"}), ("attention_layers", {"attention_layers": "1,1"}), ("attention_layers", {"attention_layers": "1,"}),
     ("attention_layers", {"attention_layers": "1024"}), ("attention_layers", {"attention_layers": "-1"}), ("mixer_kernel", {"mixer_kernel": "0"}),
     ("mixer", {"sliding_window": "64"}), ("mixer", {"parallel_blocks": "true"}), ("mixer", {"alibi": "true"}),
     ("attention_layers", {"mixer": "none", "mixer_kernel": "0"}), ("mixer_kernel", {"mixer": "none", "attention_layers": "none"})])
def test_what_no_such_decoder_has_is_one_error(field, changes):
    with pytest.raises(SettingsError) as caught:
        parse({**CONVOLUTIONS, **changes})
    assert [error.field for error in caught.value.errors] == [field]


def test_a_list_of_layers_has_one_normal_form():
    assert parse({**CONVOLUTIONS, "attention_layers": " 2 ,0, 01"}).attention_layers == "0,1,2"


# A gated delta net of 2 key and 4 value heads of 8 and 16.
KEYS, VALUES, HEADS = 2 * 8, 4 * 16, 4
DELTA = {
    **CONVOLUTIONS, "mixer": "gated-delta-net", "mixer_kernel": "4", "mixer_key_heads": "2", "mixer_value_heads": "4", "mixer_key_dim": "8",
    "mixer_value_dim": "16", "attention_gate": "true", "query_key_norms": "true", "partial_rotary": "true",
}
MAPS_IN = (2 * KEYS + VALUES, VALUES, HEADS, HEADS)


def delta(**changes):
    return estimate(parse({**DELTA, **changes}))


def delta_kept(length):
    """Bytes that a delta net's layer keeps of a row."""
    run = structure(parse({**DELTA, "method": "full", "sequence_length": str(length)}))
    return evaluate(layer_walks(rows_of_layers(run)[0][0]).saved, *batch_of(run, 1, length))


def test_a_delta_net_has_maps_a_convolution_two_numbers_of_each_head_and_a_norm():
    net = H * sum(MAPS_IN) + VALUES * H + 4 * (2 * KEYS + VALUES) + 2 * HEADS + 16
    attention = ATTENTION + 72 * H + 2 * 12  # a gate beside the queries, norms of heads
    whole = 2 * 1_000 * H + 7 * H + 3 * 3 * H * M
    assert delta(method="full").parameters.total == whole + 2 * net + attention


def test_adapters_on_maps_in_are_on_each_of_the_four():
    found = {each: delta(method="lora", rank="4", adapter_targets=each).parameters.trainable for each in ("in", "out", "q")}
    assert found == {"in": 2 * 4 * sum(H + width for width in MAPS_IN), "out": 2 * 4 * (VALUES + H), "q": 4 * (H + 2 * 72)}


def test_a_row_is_filled_up_to_whole_chunks():
    """With one token more than fills a row, almost twice as much is kept."""
    assert 2 * delta_kept(64) < delta_kept(128) < 2.4 * delta_kept(64)  # the first chunk reads no state that needs a gradient
    assert delta_kept(65) > 1.5 * delta_kept(64)
    kept = [delta_kept(each) for each in (640, 700, 704, 1_000)]
    assert kept == sorted(kept)


def test_the_peak_of_a_delta_net_does_not_fall_with_longer_rows():
    peaks = [delta(method="lora", sequence_length=str(length), loss="fused-linear").peak_bytes for length in (64, 65, 127, 128, 192, 256, 257, 512)]
    assert peaks == sorted(peaks)


def test_a_sweep_over_lengths_of_rows_counts_each_as_it_is_counted_alone():
    settings = parse({**DELTA, "method": "lora"})
    found = Batches(settings)
    for length in (64, 100, 128, 1_000):
        assert found.at(2, length)[0] == estimate(settings.replace(micro_batch=2, sequence_length=length)).peak_bytes


def test_no_tensor_that_is_alive_in_the_rule_has_less_than_nothing():
    """While later chunks go backward, what the last has kept is gone: that is less in its workspace."""
    for length in (64, 200):
        run = structure(parse({**DELTA, "method": "full", "sequence_length": str(length)}))
        tape, batch = layer_walks(rows_of_layers(run)[0][0]).tape, batch_of(run, 3, length)
        for index, (amount, _) in enumerate(tape.backward()):
            listed = alive_holdings(tape.alive_backward(index), batch)
            assert min(each.bytes for each in listed) > 0 and sum(each.bytes for each in listed) == evaluate(amount, *batch)


def test_a_gate_on_attention_keeps_itself_and_what_it_opens():
    """The latter is a copy of what the kernel gives, token by token."""
    _, attention, _ = rows_of_layers(structure(parse({**DELTA, "method": "full"})))
    plain, gated = (layer_walks(replace(attention[0], shape=replace(attention[0].shape, attention_gate=each))).saved[1] for each in (False, True))
    in_norms = 2 * 2 * H + 2 * (72 + 24)  # applied in float32, where it was 16 bits before
    assert gated - plain == 2 * 72 + 2 * 72 + in_norms


@pytest.mark.parametrize(
    ("field", "changes"),
    [("mixer_key_heads", {"mixer_key_heads": "3"}), ("mixer_key_heads", {"mixer_key_heads": "0"}), ("mixer_value_dim", {"mixer_value_dim": "0"}),
     ("attention_gate", {"fused_projections": "true"})])
def test_what_no_delta_net_has_is_one_error(field, changes):
    with pytest.raises(SettingsError) as caught:
        parse({**DELTA, **changes})
    assert [error.field for error in caught.value.errors] == [field]


def test_a_gate_on_attention_needs_other_layers_beside_it():
    with pytest.raises(SettingsError) as caught:
        everywhere(attention_gate="true")
    assert [error.field for error in caught.value.errors] == ["attention_gate"]
