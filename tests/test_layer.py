"""What one layer, and the loss, keep for their backward pass, against tables derived on paper from the tensors.

Belongs here: bytes per token of a layer, bytes per token and vocabulary entry of a loss. Letters: H hidden size, Q and K
width of all query and all key/value heads, M MLP width, A query heads, N key/value heads, r rank; numbers are bytes.
"""

import pytest

from configurations import CUSTOM_STEP
from vramplan.accountings.step.build import structure
from vramplan.accountings.step.head import head_and_loss
from vramplan.accountings.step.layer import decoder_layer, residual_size
from vramplan.accountings.step.tape import FIXED, PAIRS, TOKENS
from vramplan.settings import parse

# Primes, so that no letter can be taken for another: a wrong coefficient cannot come out right.
SHAPE = {"hidden_size": "1009", "num_attention_heads": "14", "num_kv_heads": "2", "head_dim": "101", "intermediate_size": "4001", "rank": "31"}
LETTERS = {"H": 1009, "Q": 14 * 101, "K": 2 * 101, "M": 4001, "A": 14, "N": 2, "r": 31, "1": 1}
BASE = {**CUSTOM_STEP, **SHAPE, "checkpointing": "none", "micro_batch": "2"}

FULL = {"method": "full", "trainable_precision": "pure-bf16"}
LORA = {"method": "lora", "base_precision": "bf16"}
QLORA = {"method": "qlora", "kbit_preparation": "all", "quantization": "nf4-double"}


def run(**changes):
    return structure(parse({**BASE, **changes}))


def counted(**table):
    return sum(bytes_each * LETTERS[letter.replace("one", "1")] for letter, bytes_each in table.items())


# Every row: the run, and the bytes per token that its layer keeps. Norms keep their float32 input 4H (twice a layer) and a
# root 4 (twice: one=8); fused attention keeps query 2Q, key and value 2K each, output 2Q and a number per head 4A.
SAVED = {
    # normalised input of both norms for their weights 2·2H, norm outputs as inputs of q, k, v and of gate, up 2·2H;
    # gate, its activation, up, and their product 2M each
    "full 16-bit": (FULL, dict(H=16, Q=4, K=4, M=8, A=4, one=8)),
    # norms have float32 normalised values 2·4H; q, k, v, gate, up cast their input, once each 5·2H
    "full float32 under autocast": ({"method": "full", "trainable_precision": "mixed-bf16"}, dict(H=26, Q=4, K=4, M=8, A=4, one=8)),
    # a frozen norm keeps no normalised values, a frozen map no input; each A a 16-bit copy of its input: q, k, v 3·2H, o 2Q
    "float32 adapters on attention": ({**LORA, "adapter_targets": "attention"}, dict(H=14, Q=6, K=4, M=6, r=8, A=4, one=8)),
    # ... and gate, up 2·2H, down 2M
    "float32 adapters on everything": (LORA, dict(H=18, Q=6, K=4, M=8, r=14, A=4, one=8)),
    # no copies: norm outputs are the inputs of A 2·2H, the attention's output that of o's, the product that of down's
    "16-bit adapters on everything": ({**LORA, "trainable_precision": "pure-bf16"}, dict(H=12, Q=4, K=4, M=8, r=14, A=4, one=8)),
    "one 16-bit adapter": ({**LORA, "trainable_precision": "pure-bf16", "adapter_targets": "down"}, dict(H=8, Q=4, K=4, M=8, r=2, A=4, one=8)),
    # dropout keeps a mask and its output for each adapter, and not the input: q, k, v 3·3H, gate, up 2·3H, o 3Q, down 3M
    "16-bit adapters with dropout": (
        {**LORA, "trainable_precision": "pure-bf16", "lora_dropout": "0.1"}, dict(H=23, Q=7, K=4, M=9, r=14, A=4, one=8)),
    # float32 norms give float32: gate, its activation and up 4M each; 16-bit copies for A: 5·2H, down 2M; o's is the attention's
    "NF4, everything prepared to float32": (QLORA, dict(H=18, Q=4, K=4, M=14, r=14, A=4, one=8)),
    # fused maps keep their outputs whole: q, k, v 2Q + 4K with value among them, gate and up 4M
    "full 16-bit, fused maps": ({**FULL, "fused_projections": "true"}, dict(H=16, Q=6, K=6, M=8, A=4, one=8)),
    # the norms on heads: float32 input 4, normalised values 2 of each query and key, and a root 4 for each head
    "full 16-bit, query and key norms": ({**FULL, "query_key_norms": "true"}, dict(H=16, Q=10, K=10, M=8, A=8, N=4, one=8)),
    # key and value are repeated for every query head before they are kept
    "full 16-bit, heads repeated": ({**FULL, "attention_kernel": "efficient-repeated"}, dict(H=16, Q=8, M=8, A=4, one=8)),
    "full 16-bit, eager": ({**FULL, "attention_kernel": "eager"}, dict(H=16, Q=8, M=8, one=8)),
}


# The same in 16 bits and trained, by what makes a decoder another kind than Llama, which keeps H=16, Q=4, K=4, M=8, A=4, one=8.
PLAIN = {"plain_mlp": "true"}
KINDS = {
    # float32 input 4H, mean and deviation 8, twice; a float32 output is cast for each of q, k, v, gate, up 5·2H
    "LayerNorm": ({"norm": "layer"}, dict(H=18, Q=4, K=4, M=8, A=4, one=16)),
    # the 16-bit input and output, 2H each, twice
    "LayerNorm in 16 bits": ({"norm": "layer-half"}, dict(H=8, Q=4, K=4, M=8, A=4, one=16)),
    # float32 input 4H and a 16-bit output 2H, twice
    "LayerNorm without parameters": ({"norm": "layer-plain"}, dict(H=12, Q=4, K=4, M=8, A=4, one=16)),
    # float32 differences from the mean 2·4H, their normalised form 4H, output 2H, a root 4, twice
    "LayerNorm written out": ({"norm": "layer-no-bias"}, dict(H=28, Q=4, K=4, M=8, A=4, one=8)),
    # four norms with float32 input 4H and float32 normalised values 4H; the outputs of two are inputs 2·2H
    "four norms": ({"extra_norms": "true"}, dict(H=36, Q=4, K=4, M=8, A=4, one=16)),
    # ... with 16-bit normalised values 2H
    "four norms, cast first": ({"extra_norms": "true", "norm": "rms-cast"}, dict(H=28, Q=4, K=4, M=8, A=4, one=16)),
    # the inputs of the maps are the residual stream 2·2H; two norms with float32 input 4H and normalised values 4H
    "norms after the blocks": ({"norms_after": "true"}, dict(H=20, Q=4, K=4, M=8, A=4, one=8)),
    # float32 input 4, normalised values 2 of all queries and of all keys, a root 4 each
    "norms over all heads": ({"wide_query_key_norms": "true"}, dict(H=16, Q=10, K=10, M=8, A=4, one=16)),
    "parallel blocks": ({"parallel_blocks": "true"}, dict(H=16, Q=4, K=4, M=8, A=4, one=8)),
    # one norm: input 4H, normalised values 2H, output 2H, a root 4
    "parallel blocks with one norm": ({"parallel_blocks": "true", "shared_norm": "true"}, dict(H=8, Q=4, K=4, M=8, A=4, one=4)),
    # the input of the activation, and of down
    "plain MLP": (PLAIN, dict(H=16, Q=4, K=4, M=4, A=4, one=8)),
    # the output of ReLU is the input of down
    "plain MLP with ReLU": ({**PLAIN, "activation": "relu"}, dict(H=16, Q=4, K=4, M=2, A=4, one=8)),
    # the output of ReLU 2M, in float32 4M, and a 16-bit copy of its square 2M
    "plain MLP with squared ReLU": ({**PLAIN, "activation": "relu-squared"}, dict(H=16, Q=4, K=4, M=8, A=4, one=8)),
    # half of the input 2M, the input, its tanh and 1 + tanh in float32 3·4M, the product in 16 bits 2M
    "plain MLP with GELU written out": ({**PLAIN, "activation": "gelu-new"}, dict(H=16, Q=4, K=4, M=16, A=4, one=8)),
    # gate and up whole 4M, the activated gate 2M, the product 2M
    "fused gate and up": ({"fused_gate_up": "true"}, dict(H=16, Q=4, K=4, M=8, A=4, one=8)),
    # one map for q, k, v, of which nothing is turned: 2Q + 4K
    "learned positions, fused heads": ({"learned_positions": "9000", "fused_projections": "true", **PLAIN}, dict(H=16, Q=4, K=4, M=4, A=4, one=8)),
    # attention's output once as the kernel gives it, once as o takes it
    "rotary positions on a part": ({"partial_rotary": "true"}, dict(H=16, Q=6, K=4, M=8, A=4, one=8)),
    # a mask of H for each block
    "residual dropout": ({"residual_dropout": "true"}, dict(H=18, Q=4, K=4, M=8, A=4, one=8)),
    "scaled residual": ({"scaled_residual": "true"}, dict(H=16, Q=4, K=4, M=8, A=4, one=8)),
    "biases": ({"output_biases": "true", "mlp_biases": "true", "head_bias": "true"}, dict(H=16, Q=4, K=4, M=8, A=4, one=8)),
}
# Liger's norms keep their 16-bit input, the layer's own 2H and the sum after attention 2H, whatever is trained; its gate keeps gate and
# up, not the activated gate
LIGER = {"layer_kernels": "liger"}
SAVED |= {
    "Liger, full 16-bit": ({**FULL, **LIGER}, dict(H=8, Q=4, K=4, M=6, A=4, one=8)),
    "Liger, full float32 under autocast": (
        {"method": "full", "trainable_precision": "mixed-bf16", **LIGER}, dict(H=18, Q=4, K=4, M=6, A=4, one=8)),
    "Liger, float32 adapters on everything": ({**LORA, **LIGER}, dict(H=14, Q=6, K=4, M=6, r=14, A=4, one=8)),
    "Liger, NF4 prepared to float32": ({**QLORA, **LIGER}, dict(H=18, Q=4, K=4, M=10, r=14, A=4, one=8)),
    # halves of one map are copied: gate and up 4M, the product 2M
    "Liger, fused maps": ({**FULL, **LIGER, "fused_projections": "true"}, dict(H=8, Q=6, K=6, M=6, A=4, one=8)),
    "Liger, squared ReLU between gate and up": ({**FULL, **LIGER, "activation": "relu-squared"}, dict(H=8, Q=4, K=4, M=14, A=4, one=8)),
    # none of its kernels is for decoders with LayerNorm
    "Liger, LayerNorm": ({**FULL, **LIGER, "norm": "layer"}, dict(H=18, Q=4, K=4, M=8, A=4, one=16)),
}
# Unsloth keeps the layer's input and the sum after attention for its norms 2·2H, both norms' outputs 2·2H, gate and up, and no inner width of the
# adapters; Axolotl has transformers' norms 2·4H, and keeps 16-bit copies of the adapters, which do not grow with tokens.
UNSLOTH, AXOLOTL = {**LORA, "stack": "unsloth-2026.10"}, {**LORA, "stack": "axolotl-0.19"}
SAVED |= {
    "Unsloth": (UNSLOTH, dict(H=8, Q=4, K=4, M=4, A=4, one=8)),
    "Unsloth, NF4": ({**UNSLOTH, "method": "qlora"}, dict(H=8, Q=4, K=4, M=4, A=4, one=8)),
    # a mask for each of q, k, v, gate, up, for o and for down
    "Unsloth, dropout": ({**UNSLOTH, "lora_dropout": "0.1"}, dict(H=13, Q=5, K=4, M=5, A=4, one=8)),
    # its functions are not for dropout: PEFT's mask and 16-bit input for each A
    "Unsloth 2025, dropout": (
        {**UNSLOTH, "stack": "unsloth-2025.11", "lora_dropout": "0.1"}, dict(H=19, Q=7, K=4, M=9, A=4, r=14, one=8)),
    # the activated gate is kept by the model's own MLP
    "Unsloth, adapters on attention": ({**UNSLOTH, "adapter_targets": "attention"}, dict(H=6, Q=4, K=4, M=6, A=4, one=8)),
    # q, k, v with biases are PEFT's: three 16-bit copies of the norm's output, and not that itself, and an inner width for each
    "Unsloth, query biases": ({**UNSLOTH, "query_biases": "true"}, dict(H=12, Q=4, K=4, M=4, A=4, r=6, one=8)),
    "Axolotl": (AXOLOTL, dict(H=12, Q=4, K=4, M=4, A=4, one=8)),
    # one mask and one dropped input for q, k, v, one for gate and up, one for o
    "Axolotl, dropout": ({**AXOLOTL, "lora_dropout": "0.1"}, dict(H=18, Q=7, K=4, M=4, A=4, one=8)),
}
SAVED |= {f"full 16-bit, {kind}": ({**FULL, **traits}, table) for kind, (traits, table) in KINDS.items()}


@pytest.mark.parametrize(("changes", "table"), SAVED.values(), ids=SAVED)
def test_bytes_a_layer_keeps_per_token(changes, table):
    assert decoder_layer(run(**changes), external_input=False).saved()[TOKENS] == counted(**table)


@pytest.mark.parametrize("name", ["LayerNorm", "norms after the blocks", "parallel blocks with one norm", "plain MLP with GELU written out"])
@pytest.mark.parametrize("checkpointing", ["none", "full"])
def test_everything_a_layer_saves_is_gone_when_its_backward_pass_has_ended(name, checkpointing):
    tape = decoder_layer(run(**FULL, **KINDS[name][0], checkpointing=checkpointing), external_input=False)
    last, _ = tape.backward()[-1]
    assert last[TOKENS] < tape.saved()[TOKENS] / 2 < max(amount[TOKENS] for amount, _ in tape.backward())


def test_residual_streams_that_are_float32():
    """LayerNorm runs in float32 under autocast; a quantised map gives its input's type back, a norm after a block its own."""
    layer, after = {"norm": "layer"}, {"norm": "layer", "norms_after": "true"}
    assert [residual_size(run(**FULL, **traits)) for traits in (layer, after, {**layer, "embedding_norm": "true"})] == [2, 4, 4]
    sizes = [residual_size(run(**{**QLORA, "kbit_preparation": "none", "base_precision": "bf16"}, norm=norm)) for norm in ("rms", "layer", "layer-half", "layer-plain")]
    assert sizes == [2, 4, 2, 2]


def test_added_distances_and_a_broadcast_head_write_the_scores_out():
    one = {"broadcast_heads": "true", "num_kv_heads": "1"}
    assert [run(**traits).attention for traits in ({}, {"alibi": "true"}, one)] == ["efficient", "eager", "math"]
    assert run(**one, attention_kernel="eager").attention == "eager"
    # scores in 16 bits, and queries, keys and values of every head
    tape = decoder_layer(run(**FULL, **one), external_input=False)
    assert (tape.saved()[PAIRS], tape.saved()[TOKENS]) == (2 * LETTERS["A"], counted(H=16, Q=8, M=8, one=8))


# Weights in float32 under autocast leave a 16-bit copy for each use; H·Q and so on are products of the letters above.
COPIES = {
    "full 16-bit": (FULL, {}),
    "full float32 under autocast": ({"method": "full", "trainable_precision": "mixed-bf16"}, {"HQ": 4, "HK": 4, "HM": 6}),
    "float32 adapters on attention": (
        {**LORA, "adapter_targets": "attention"}, {"rH": 8, "rQ": 4, "rK": 4}),
    "16-bit adapters": ({**LORA, "trainable_precision": "pure-bf16"}, {}),
}


@pytest.mark.parametrize(("changes", "products"), COPIES.values(), ids=COPIES)
def test_16_bit_copies_of_weights_a_layer_keeps(changes, products):
    expected = sum(size * LETTERS[one] * LETTERS[other] for (one, other), size in products.items())
    assert decoder_layer(run(**changes), external_input=False).saved()[FIXED] == expected


# Bytes per head and pair of tokens: the float32 weights 4, and their 16-bit copy that multiplies the values 2.
@pytest.mark.parametrize(
    ("changes", "size"),
    [({"attention_kernel": "efficient"}, 0), ({"attention_kernel": "eager"}, 6), ({"attention_kernel": "eager", "attention_softcap": "true"}, 8)],
)
def test_bytes_a_layer_keeps_per_pair_of_tokens(changes, size):
    """With a soft-cap also the 16-bit tanh of the scores."""
    assert decoder_layer(run(**FULL, **changes), external_input=False).saved()[PAIRS] == size * LETTERS["A"]


# Losses, per token and entry of the vocabulary: the most that is there at once, forward and backward.
LOSSES = {
    # 16-bit scores, held in the output, float32 scores, log-probabilities | log-probabilities, their gradient, the scores'
    "trainer-5": (2 + 4 + 4, 4 + 4 + 4),
    # ... and the shifted copy between the last two | the same
    "trainer-4.46": (2 + 4 + 4 + 4, 4 + 4 + 4),
    # float32 scores replaced the 16-bit ones | the same
    "trainer-4.45": (4 + 4 + 4, 4 + 4 + 4),
}


def per_entry(stack, loss, **changes):
    """By how much the bytes per token grow with one more entry: the largest of the forward pass, the largest of backward."""
    def largest(vocabulary):
        head = head_and_loss(run(**FULL, stack=stack, loss=loss, vocab_size=str(vocabulary), **changes))
        return max(amount[TOKENS] for amount in head.forward(keeps=True)), max(amount[TOKENS] for amount, _ in head.backward())

    small, large = largest(100_000), largest(100_001)
    return tuple(more - less for less, more in zip(small, large, strict=True))


@pytest.mark.parametrize("stack", LOSSES)
def test_bytes_of_a_loss_that_keeps_the_logits(stack):
    assert per_entry(stack, "logits") == LOSSES[stack]


@pytest.mark.parametrize(("stack", "copied"), [("trainer-5", 0), ("trainer-4.46", 4), ("trainer-4.45", 4)])
def test_the_shifted_logits_of_a_single_row_are_no_copy(stack, copied):
    """Without its last position a row is still contiguous."""
    (several, _), (single, _) = (per_entry(stack, "logits", micro_batch=rows) for rows in ("2", "1"))
    assert several - single == copied


def test_a_loss_written_over_the_logits_needs_nothing_beside_them():
    # 16-bit scores, float32 ones in which the gradient comes back, and the former in float32 as the output; the gradient of both
    assert per_entry("trainer-5", "triton") == (2 + 4 + 4, 4 + 2)


def test_a_soft_cap_keeps_its_tanh_and_what_comes_of_it():
    plain = per_entry("trainer-5", "logits")

    def capped(vocabulary):
        head = head_and_loss(run(**FULL, logit_softcap="true", vocab_size=str(vocabulary)))
        return head.saved()[TOKENS], max(amount[TOKENS] for amount in head.forward(keeps=True))

    (kept, top), (kept_more, top_more) = capped(100_000), capped(100_001)
    assert kept_more - kept == 4 + 2  # log-probabilities and tanh
    assert top_more - top == plain[0] + 2


CHUNKED = ("fused-linear", "chunked", "tiled", "unsloth")


@pytest.mark.parametrize("loss", CHUNKED)
def test_no_chunked_loss_has_all_the_logits(loss):
    assert per_entry("trainer-5", loss) == (0, 0)


@pytest.mark.parametrize(
    ("loss", "tokens", "rows"),
    [("chunked", 1_000, 256), ("chunked", 100, 100), ("tiled", 5_000, 4_096), ("tiled", 100, 100), ("logits", 100, 0),
     # Liger: 128,256 entries are 62.6 times the hidden size; 8,192 tokens in 63 parts are 131 rows, as a power of two 256
     ("fused-linear", 8_192, 256), ("fused-linear", 100, 2), ("fused-linear", 1, 1)])
def test_rows_of_a_chunk(loss, tokens, rows):
    changes = {"model": "llama-3.2-1b", "loss": loss, "sequence_length": str(tokens), "micro_batch": "1"}
    assert run(**FULL, **changes).loss_rows == rows


@pytest.mark.parametrize(
    ("loss", "stack", "per_row", "head_copies"),
    [("tiled", "trl-1.15", 32_768 * 2, 0), ("fused-linear", "trainer-5", 128_256 * 2, 0),
     ("chunked", "trl-1.13", 128_256 * 4 * 4, 0), ("chunked", "trl-1.6", 128_256 * 4 * 4, 4 + 2)])
def test_bytes_of_a_chunk(loss, stack, per_row, head_copies):
    """16-bit scores; or logits, log-probabilities, and for the entropy two more, all in float32. An older release makes the
    head float32 for every chunk, and autocast 16 bits of that again."""
    changes = {"model": "llama-3.2-1b", "loss": loss, "stack": stack, "sequence_length": "8192"}
    one = run(**FULL, **changes)
    largest = max(amount[FIXED] for amount in head_and_loss(one).forward(keeps=False))
    assert largest == one.loss_rows * per_row + head_copies * 128_256 * 2048


@pytest.mark.parametrize(
    ("extra_norms", "preparation", "size"),
    [("false", "norms", 4), ("true", "norms", 2), ("false", "none", 2), ("true", "all", 4)],
)
def test_float32_norms_make_the_residual_float32_unless_they_give_back_the_type_that_came_in(extra_norms, preparation, size):
    assert residual_size(run(**{**QLORA, "kbit_preparation": preparation, "extra_norms": extra_norms})) == size


# Unsloth's rows, for 128,256 entries and 2,048 values a row unless said.
UNSLOTH_ROWS = [
    # a large card takes the power of two below 4,095 · 2,048 / 128,256, but at least 512 · 151,936 / 128,256 -> 512
    ({**LORA, "gpu": "80", "sequence_length": "4096"}, (512, 0)),
    # from 4,096 labelled tokens on tiles of 256 MiB, a multiple of 16,384 entries wide
    ({**LORA, "gpu": "80", "sequence_length": "8192"}, (4_096, 16_384)),
    ({**LORA, "gpu": "24", "sequence_length": "1025"}, (1_024, 16_384)),
    ({**LORA, "gpu": "24", "sequence_length": "1025", "half_precision": "fp16"}, (512, 0)),
    ({**FULL, "gpu": "24", "sequence_length": "8192"}, (512, 0)),
    ({**FULL, "gpu": "24", "sequence_length": "100"}, (99, 0)),
]


@pytest.mark.parametrize(("changes", "rows_and_columns"), UNSLOTH_ROWS)
def test_rows_and_columns_of_unsloths_loss(changes, rows_and_columns):
    found = structure(parse({"model": "llama-3.2-1b", "loss": "unsloth", "micro_batch": "1", **changes}))
    assert (found.loss_rows, found.loss_columns) == rows_and_columns


def test_unsloth_2025_takes_all_rows_while_their_scores_fit_the_free_memory():
    """1,235,814,400 weights take 2.3 GiB and 16 checkpoints of 2,048 tokens 0.125 GiB; 2,048 tokens have 0.98 GiB of scores."""

    def rows(budget):
        texts = {"model": "llama-3.2-1b", "stack": "unsloth-2025.11", "method": "lora", "rank": "1", "sequence_length": "2048", "micro_batch": "1"}
        return structure(parse({**texts, "gpu": "custom", "budget": budget})).loss_rows

    assert rows("24") == 2_048
    assert rows("3.5") == 512  # 0.57 GiB are free: half of that holds 0.29 of 0.98 GiB, which is 3.4 chunks, rounded to four
    assert rows("3.1") == 171  # 0.18 GiB are free: 10.8 chunks, rounded to twelve
