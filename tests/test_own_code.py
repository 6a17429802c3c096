"""Stacks with model code of their own, LitGPT and torchtune, against sums of tensors written by hand.

Belongs here: what their layers keep for the backward pass, their losses, an optimizer that steps during the backward pass, what
they refuse. Recorded runs: test_measured.py.
"""

import pytest

from vramplan import NotExpressible
from vramplan.accountings import step
from vramplan.accountings.step.moments import step_of
from vramplan.accountings.step.walks import head_walks, layer_walks
from vramplan.settings import parse

LLAMA = {"model": "llama-3.1-8b", "checkpointing": "none", "gradient_accumulation_steps": "1", "micro_batch": "2", "sequence_length": "1024"}
H, Q, U, M, A, V, L = 4096, 4096, 1024, 14336, 32, 128256, 32
T, ROWS_OF_A_NORM = 2 * 1024, 4  # tokens; bytes of a norm's inverse root, one a token


def run(**texts):
    return step.structure(parse({**LLAMA, **texts}))


def test_a_layer_of_torchtune_keeps_what_its_adapters_read_once():
    saved = layer_walks(run(stack="torchtune-0.6", method="lora", rank="8")).saved
    two_norms = 2 * (4 * H + 2 * H + ROWS_OF_A_NORM)
    attention = 8 * Q + 4 * A
    assert saved[1] == two_norms + attention + 8 * M + 7 * 2 * 8


def test_a_fully_trained_layer_of_torchtune_keeps_what_its_norms_weigh():
    by_release = {name: layer_walks(run(stack=name, method="full", optimizer_step="after")).saved[1] for name in ("torchtune-0.4", "torchtune-0.6")}
    rest = 8 * Q + 4 * A + 8 * M + 2 * ROWS_OF_A_NORM
    assert by_release == {"torchtune-0.4": 2 * (4 + 2 + 2) * H + rest, "torchtune-0.6": 2 * (4 + 4 + 2) * H + rest}


def test_a_compiled_layer_keeps_the_inputs_of_its_kernels_and_products():
    saved = layer_walks(run(stack="torchtune-0.4", method="full", torch_compile="on")).saved
    assert saved[1] == 8 * H + 8 * Q + 6 * M + 4 * A + 2 * ROWS_OF_A_NORM


@pytest.mark.parametrize(("stack", "input_kept"), [("litgpt-2024", 4), ("litgpt-2023", 2)])
def test_a_layer_of_litgpt_keeps_its_padded_update_and_the_dropped_input(stack, input_kept):
    precision = {"base_precision": "bf16", "trainable_precision": "pure-bf16"}
    saved = layer_walks(run(stack=stack, method="lora", rank="8", adapter_targets="q,v", lora_dropout="0.05", **precision)).saved
    rows = 2 * (4 if stack == "litgpt-2024" else 2)
    adapter = 3 * H + 2 * 2 * 8 + 2 * (Q + U)
    assert saved[1] == 2 * input_kept * H + rows + adapter + 8 * Q + 4 * A + 6 * M


SMALL = {
    "model": "custom", "hidden_size": "512", "num_layers": "3", "num_attention_heads": "8", "num_kv_heads": "2", "head_dim": "64",
    "intermediate_size": "1024", "vocab_size": "1024", "rank": "8", "checkpointing": "none", "base_precision": "bf16",
    "trainable_precision": "pure-bf16", "gradient_accumulation_steps": "1", "optimizer_step": "after",
}
# Bytes per token that one layer of the real classes saved: torch.autograd.graph.saved_tensors_hooks around
# TransformerSelfAttentionLayer and litgpt's Block, 2 x 256 tokens, bf16, FlashAttention, torch 2.13.0 on a CPU; weights and fixed
# tensors not counted, and dropout's mask as one byte a value, which it is on a GPU.
SAVED = [
    ("torchtune-0.6", "lora", "all-linear", "0", 18_584), ("torchtune-0.6", "full", "q", "0", 22_568),
    ("torchtune-0.4", "lora", "all-linear", "0", 18_584), ("torchtune-0.4", "full", "q", "0", 20_520),
    ("litgpt-0.5", "lora", "q,v", "0.05", 17_224), ("litgpt-0.5", "full", "q", "0", 23_592),
    ("litgpt-2024", "lora", "q,v", "0.05", 17_224), ("litgpt-2024", "full", "q", "0", 21_544),
]


@pytest.mark.parametrize(("stack", "method", "targets", "dropout", "recorded"), SAVED)
def test_a_layer_keeps_what_the_real_classes_were_seen_to_save(stack, method, targets, dropout, recorded):
    small = {**SMALL, "stack": stack, "method": method, "adapter_targets": targets, "lora_dropout": dropout}
    assert layer_walks(step.structure(parse(small))).saved[1] == recorded


def test_torchtunes_chunks_leave_half_precision_scores_and_log_probabilities():
    found = head_walks(run(stack="torchtune-0.6", method="lora"))
    most = max(fixed + T * per_token for _, (fixed, per_token, *_) in found.forward)
    final_norm = 4 * H + 2 * H + ROWS_OF_A_NORM
    assert most == 2 * T * V + 4 * T * V + 4 * T // 8 * V + T * final_norm + 4


def test_a_later_release_of_torchtune_never_has_all_scores():
    most = [step_of(run(stack=name, method="lora", checkpointing="full")) for name in ("torchtune-0.6", "torchtune-0.7")]
    peaks = [max(instant.bytes(T, 1024) for instant in each.peaks) for each in most]
    assert peaks[0] - peaks[1] > 1 * T * V


def test_gradients_are_freed_at_once_where_the_optimizer_steps_during_the_backward_pass():
    texts = {"stack": "torchtune-0.6", "method": "full", "checkpointing": "full", "optimizer": "adamw-8bit"}
    after, during = (step.estimate(parse({**LLAMA, **texts, "optimizer_step": name})) for name in ("after", "in-backward"))
    rows = {moment.name: {term.name: term.bytes for term in moment.terms} for moment in during.moments}
    assert "gradients" not in rows["optimizer step"] and "gradients" not in rows["backward of the first layer"]
    assert rows["end of the backward pass"]["gradients"] == 2 * V * H
    assert after.peak_bytes - during.peak_bytes > 12 * 10**9


def test_a_stack_that_steps_during_the_backward_pass_does_not_where_gradients_accumulate():
    full = {"stack": "torchtune-0.6", "method": "full"}
    assert run(**full).steps_in_backward and not run(**full, gradient_accumulation_steps="2").steps_in_backward


@pytest.mark.parametrize(
    ("texts", "field"),
    [({"stack": "litgpt-0.5", "method": "lora", "loss": "fused-linear"}, "loss"),
     ({"stack": "trainer-5", "loss": "split"}, "loss"),
     ({"stack": "litgpt-0.5", "method": "lora", "layer_kernels": "liger"}, "layer_kernels"),
     ({"stack": "litgpt-0.5", "method": "lora", "adapter_targets": "q,embed"}, "adapter_targets"),
     ({"stack": "torchtune-0.6", "method": "lora", "adapter_targets": "q,lm_head"}, "adapter_targets"),
     ({"stack": "torchtune-0.6", "method": "qlora", "quantization": "int8"}, "quantization"),
     ({"stack": "torchtune-0.6", "method": "full", "optimizer_step": "in-backward", "gradient_accumulation_steps": "4"}, "gradient_accumulation_steps"),
     ({"stack": "torchtune-0.6", "method": "full", "sharding": "zero3", "replicas": "4"}, "sharding"),
     ({"stack": "litgpt-0.5", "method": "lora", "torch_compile": "on"}, "torch_compile")])
def test_what_is_not_counted_is_said_in_a_sentence(texts, field):
    with pytest.raises(NotExpressible) as refused:
        run(**texts)
    assert refused.value.field == field and str(refused.value).endswith(".")
