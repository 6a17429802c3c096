"""From the last layer's output to the loss, on a tape: final norm, output head, and every kind of loss.

Source of the order: transformers 5.24.0, models/llama/modeling_llama.py, LlamaForCausalLM.forward.
"""

from collections.abc import Callable

from vramplan.accountings.step import litgpt, torchtune
from vramplan.accountings.step.layer import residual_size
from vramplan.accountings.step.operations import cast, linear, norm
from vramplan.accountings.step.scores import scores as scores_of
from vramplan.accountings.step.structure import HALF, SINGLE, Structure
from vramplan.accountings.step.tape import FIXED, POSITIONS, TOKENS, Operation, Tape, Tensor
from vramplan.accountings.step.whole import least, power_from

COPIES_PER_CHUNK = 4
"""float32 tensors of one chunk's scores that are alive at once: logits, log-probabilities, and for the entropy their
exponential and its product with them. Source: trl 1.14.2, trainer/sft_trainer.py, _chunk."""

TILE_COLUMNS = 32_768
"""Vocabulary entries of one tile. Source: trl 1.16.0, trainer/utils.py, _CHUNKED_LOGPROB_CHUNK_SIZE."""

CHUNK_ROWS = 256
"""Tokens of one chunk. Source: trl 1.14.2, trainer/sft_trainer.py, _CHUNKED_LM_HEAD_CHUNK_SIZE."""

TILE_ROWS = 4_096
"""Tokens of one tile. Source: trl 1.16.0, kernels/chunked_logprob.py, TOKEN_CHUNK_SIZE."""


COPIES_FOR_ENTROPY, ENTROPY_ROWS = 3, 128
"""float32 copies of a chunk's scores that are alive at once, log-probabilities, their exponentials and the product, and tokens
of a chunk. Source: trl 1.5.1, trainer/utils.py, entropy_from_logits."""

ENTROPY_IN_CHUNKS = ("logits-dpo-1.0", "logits-dpo-1.6")
"""Losses whose kernel does not find the entropy itself."""

FORWARD_ENDS = "end of the model's forward pass"
"""The operation before which the model's own forward pass, and its autocast, end in a step on pairs."""

REFERENCE_TURN = "turn of the reference"
"""The operation before which DPO's reference runs."""


def head_and_loss(run: Structure) -> Tape:
    """The tape from the last layer's output to the loss."""
    tape = Tape()
    x = Tensor("last layer's output", run.shape.hidden_size, residual_size(run))
    x = norm(tape, run, x, x.width, "final norm", weight_size=run.norm_size)
    x.held = not run.pairs
    LOSSES[run.loss](tape, run, x)
    if run.pairs:
        _compare(tape, run)
    return tape


def _compare(tape: Tape, run: Structure) -> None:
    """From log-probabilities or scores to the loss; DPO's reference runs between the two. A function that has logits keeps them,
    and their shifted copy, to its end: there it finds their entropy in chunks, of all tokens in one line, which copies what was
    shifted without a copy, and gathers those of the chosen rows, for the log.

    Source: trl 1.0.0 to 1.14.2, trainer/dpo_trainer.py, _compute_loss (outputs, shift_logits; chosen_logits[chosen_mask]);
    trainer/utils.py, entropy_from_logits.
    """
    values = tape.operations[-1].outputs
    if not run.loss.startswith("logits-dpo"):
        values = (tape.add(FORWARD_ENDS, values, Tensor("values of the rows", 1, SINGLE, FIXED)),)
    values = tape.add(REFERENCE_TURN, values, Tensor("values of the rows", 1, SINGLE, FIXED))
    if run.loss in ENTROPY_IN_CHUNKS:
        chunk = (FIXED, COPIES_FOR_ENTROPY * SINGLE * ENTROPY_ROWS * run.shape.vocab_size)
        in_line = () if run.loss == "logits-dpo-1.0" else ((TOKENS, SINGLE * run.shape.vocab_size),)
        values = tape.add("entropy", (values,), Tensor("entropy", 1, SINGLE, FIXED), forward_scratch=(chunk, *in_line))
    half = ((TOKENS, SINGLE * run.shape.vocab_size // 2),) if run.loss.startswith("logits-dpo") else ()
    tape.add("comparison", (values,), Tensor("loss", 1, SINGLE, FIXED), forward_scratch=half)


def loss_rows(*, loss: str, tokens: int, sequences: int, vocab_size: int, hidden_size: int) -> int:
    """Tokens that a chunk of the loss holds, 0 where the loss is not chunked; of arrays of tokens and sequences as well.

    Source: liger-kernel 0.8.5, ops/fused_linear_cross_entropy.py, fused_linear_cross_entropy_forward: as many rows as
    take about the memory of the hidden states, rounded up to a power of two.
    """
    if loss == "fused-linear":
        parts = -(-vocab_size // hidden_size)
        rows = -(-tokens // parts)
        return least(power_from(rows), tokens)
    if loss == "tiled":
        return least(TILE_ROWS, tokens)
    if loss == "split-litgpt":
        return least(litgpt.CHUNK_POSITIONS * sequences, tokens)
    if loss.startswith("split-torchtune"):
        return sequences * -(-(tokens // sequences) // torchtune.CHUNKS)
    if loss == "logits-litgpt":
        return least(litgpt.CHUNK_POSITIONS, tokens)
    return least(CHUNK_ROWS, tokens) if loss.startswith("chunked") else 0


def _cross_entropy(tape: Tape, scores: Tensor, in_use: tuple[Tensor, ...]) -> None:
    """Source: torch 2.13.0, nn.functional.cross_entropy: log_softmax, which saves its output, then nll_loss."""
    probabilities = Tensor("log-probabilities", scores.width, SINGLE)
    tape.add("log_softmax", (scores,), probabilities, saves=(probabilities,))
    tape.add("loss", (probabilities,), Tensor("loss", 1, SINGLE, FIXED), reads=in_use)


def _in_place_cross_entropy(tape: Tape, scores: Tensor, in_use: tuple[Tensor, ...]) -> None:
    """Source: fms-acceleration-foak, kernels/unsloth/cross_entropy_loss.py, Fast_CrossEntropyLoss: the gradient is
    written over the scores."""
    tape.add("loss", (scores,), Tensor("loss", 1, SINGLE), saves=(scores,), hands_over=True, reads=in_use)


def _with_logits(
    loss_of: Callable[[Tape, Tensor, tuple[Tensor, ...]], None], shifts: str
) -> Callable[[Tape, Structure, Tensor], None]:
    """A loss that has all logits at once, counted as one release shifts and keeps them."""

    def loss(tape: Tape, run: Structure, x: Tensor) -> None:
        in_half = scores_of(tape, run, x)
        scores = cast(tape, in_half, SINGLE, "logits in float32")
        in_half.held = shifts != LOGITS
        scores.held = scores.held or shifts == LOGITS
        shifted = _shifted(tape, run, scores, shifts)
        loss_of(tape, shifted, (scores, shifted))
        if in_half.held and in_half.itemsize == HALF and run.autocast and not run.outputs_kept:
            _convert_outputs(tape, run)

    return loss


def _convert_outputs(tape: Tape, run: Structure) -> None:
    """The 16-bit logits of the output become float32 when the model returns. Source: accelerate 1.15.0,
    utils/operations.py, convert_to_fp32, around the forward of a model prepared for mixed precision."""
    loss = tape.operations[-1].outputs
    tape.operations.append(Operation("convert outputs", (), (), reads=loss, forward_scratch=((TOKENS, SINGLE * run.shape.vocab_size),)))


LABELS, LOGITS_KEPT, LOGITS = "labels", "logits beside the 16-bit ones", "logits"
"""What a release shifts by one position. Labels: transformers 4.49 to 5.24, loss/loss_utils.py, ForCausalLMLoss. Logits,
with the 16-bit ones kept in the output: 4.46 to 4.48, the same place. Logits, float32 ones in the output: up to 4.45,
models/llama/modeling_llama.py."""


def _shifted(tape: Tape, run: Structure, scores: Tensor, shifts: str) -> Tensor:
    """Logits without the last position, in a copy unless the batch is one row, whose slice is contiguous already."""
    if shifts == LABELS:
        return scores
    part = tape.add("slice", (scores,), Tensor("shifted logits", scores.width, SINGLE, base=scores), view=True)
    if run.one_row:
        return part
    return tape.add("contiguous", (part,), Tensor("shifted logits, copied", scores.width, SINGLE), shares=True)


def _fused_linear(tape: Tape, run: Structure, x: Tensor) -> None:
    """Source: liger-kernel 0.8.5, ops/fused_linear_cross_entropy.py: the gradients of the hidden states, and of the
    head where it is trained, are made in the forward pass, one chunk of scores at a time."""
    vocab, hidden = run.shape.vocab_size, run.shape.hidden_size
    scratch = [(FIXED, HALF * run.loss_rows * vocab)]
    if run.head_size == SINGLE:
        copies = 2 if run.trains_base else 1  # of the head; the one that is cached, and one of its transpose
        scratch.append((FIXED, copies * HALF * vocab * hidden))
    saves = [Tensor("gradient of the hidden states, made early", hidden, x.itemsize)]
    if run.trains_base:
        saves.append(Tensor("gradient of the head, made early", vocab * hidden, run.head_size, FIXED))
    gradient = run.head_size * vocab * hidden if run.trains_base else 0
    tape.add(
        "loss", (x,), Tensor("loss", 1, SINGLE), saves=tuple(saves), forward_scratch=tuple(scratch), hands_over=True,
        gradient=gradient,
    )


def _chunked(copies: Callable[[Structure], int]) -> Callable[[Tape, Structure, Tensor], None]:
    """`copies`: bytes per value of the head that are copied for every chunk."""

    def loss(tape: Tape, run: Structure, x: Tensor) -> None:
        """Source: trl 1.14.2, trainer/sft_trainer.py, _chunked_cross_entropy_loss: labelled rows first, then chunks
        that are each recomputed in the backward pass."""
        vocab, hidden = run.shape.vocab_size, run.shape.hidden_size
        rows = tape.add("order rows", (x,), Tensor("hidden states, labelled rows first", hidden, x.itemsize))
        chunk = COPIES_PER_CHUNK * SINGLE * run.loss_rows * vocab + copies(run) * vocab * hidden
        gradient = run.head_size * vocab * hidden if run.trains_base else 0
        tape.add(
            "loss", (rows,), Tensor("loss", 1, SINGLE), saves=(rows,), forward_scratch=((FIXED, chunk),),
            scratch=((FIXED, chunk), (TOKENS, hidden * x.itemsize)), gradient=gradient, gradient_scratch=gradient,
        )

    return loss


def _head_in_float32(run: Structure) -> int:
    """Up to 1.12 the head becomes float32 first, and 16 bits again under autocast. Source: trl 1.12.0, _chunk."""
    return (SINGLE if run.head_size == HALF else 0) + (HALF if run.autocast else 0)


def _head_as_hidden_states(run: Structure) -> int:
    """From 1.13 the head takes the type of the hidden states; float32 ones are copied under autocast. Source: trl 1.14.2, _chunk."""
    return HALF if run.autocast and run.head_size == SINGLE else 0


def _tiled(tape: Tape, run: Structure, x: Tensor) -> None:
    """Source: trl 1.16.0, kernels/chunked_logprob.py, ChunkedLogProbFunction: tiles of scores from 16-bit copies of
    float32 operands, and gradients summed in float32, which are given back as they are where that is the operands' type."""
    vocab, hidden = run.shape.vocab_size, run.shape.hidden_size
    rows = tape.add("gather rows", (x,), Tensor("hidden states of labelled rows", hidden, x.itemsize))
    copies = HALF * hidden * (run.loss_rows * (x.itemsize == SINGLE) + TILE_COLUMNS * (run.head_size == SINGLE))
    tile = ((FIXED, HALF * run.loss_rows * TILE_COLUMNS + copies * run.autocast),)
    gradient = run.head_size * vocab * hidden if run.trains_base else 0
    gradient_scratch = SINGLE * vocab * hidden if run.trains_base and run.head_size == HALF else 0
    sums = ((TOKENS, hidden * SINGLE),) if x.itemsize == HALF else ()
    tape.add(
        "loss", (rows,), Tensor("loss", 1, SINGLE), saves=(rows,), forward_scratch=tile, reads=(x,),
        scratch=(*tile, *sums), gradient=gradient, gradient_scratch=gradient_scratch,
    )


UNSLOTH_CHUNK_COPIES = 2
"""16-bit arrays of a chunk's scores that a compiled chunk holds: logits and their gradient. Source: unsloth_zoo 2025.11.1,
fused_losses/cross_entropy_loss.py, compute_fused_ce_loss under torch.compile, read off what stands between two matrix products."""


def _unsloth_chunks(tape: Tape, run: Structure, x: Tensor) -> None:
    """Source: unsloth_zoo 2025.11.1, fused_losses/cross_entropy_loss.py, UnslothFusedLoss: the gradients are made in the forward
    pass, one chunk at a time, and handed over as they are."""
    vocab, hidden = run.shape.vocab_size, run.shape.hidden_size
    chunk = UNSLOTH_CHUNK_COPIES * HALF * run.loss_rows * vocab + HALF * run.loss_rows * hidden
    of_head = run.head_size * vocab * hidden if run.trains_base else 0
    saves = [Tensor("gradient of the hidden states, made early", hidden, x.itemsize)]
    if run.trains_base:
        saves.append(Tensor("gradient of the head, made early", vocab * hidden, run.head_size, FIXED))
    tape.add(
        "loss", (x,), Tensor("loss", 1, SINGLE), saves=tuple(saves), forward_scratch=((FIXED, chunk + of_head),), hands_over=True, gradient=of_head,
    )


def _unsloth_rows(tape: Tape, run: Structure, x: Tensor) -> None:
    """Source: unsloth_zoo 2026.10.9, fused_losses/fused_linear.py, _ce_impl and _tiled_forward: labelled rows alone, gradients made in
    the forward pass from one buffer of float32 scores; _ce_backward makes scaled copies of them."""
    vocab, hidden, rows = run.shape.vocab_size, run.shape.hidden_size, run.loss_rows
    in_half = x.itemsize == HALF
    third = (0 if in_half else SINGLE) if run.loss_columns else (HALF if in_half else 0)  # float32 rows as they are taken, or 16-bit gradients as they are put back
    beside = (HALF + SINGLE + third) * rows * hidden  # the rows, and the sum of their gradients
    copy = HALF * vocab * hidden if run.head_size == SINGLE else 0
    buffer = SINGLE * rows * (run.loss_columns or vocab)
    saves = [Tensor("gradient of the hidden states, made early", hidden, x.itemsize)]
    of_head = run.head_size * vocab * hidden if run.trains_base else 0
    if run.trains_base:
        saves.append(Tensor("gradient of the head, made early", vocab * hidden, run.head_size, FIXED))
    tape.add(
        "loss", (x,), Tensor("loss", 1, SINGLE), saves=tuple(saves), forward_scratch=((FIXED, buffer + beside + copy),), gradient=of_head,
    )


def _cut(tape: Tape, run: Structure, x: Tensor) -> None:
    """Source: cut-cross-entropy 25.1.1, cce.py, LinearCrossEntropyFunction; cce_backward.py, cce_backward_kernel: no scores outside the
    kernel, 16-bit gradients of hidden states and head."""
    vocab, hidden = run.shape.vocab_size, run.shape.hidden_size
    x = cast(tape, x, HALF, "hidden states in 16 bits")
    of_head = run.head_size * vocab * hidden if run.trains_base else 0
    in_half = HALF * vocab * hidden if of_head and run.head_size == SINGLE else 0
    tape.add(
        "loss", (x,), Tensor("loss", 1, SINGLE), saves=(x, Tensor("log-sum-exp", 1, SINGLE)), gradient=of_head, gradient_scratch=in_half,
    )


def _pair_logits(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    """Logits, and all but the last position of them, in float32 as accelerate hands out what a model gives under autocast.

    Source: accelerate 1.15.0, accelerator.py, prepare_model (convert_outputs_to_fp32).
    """
    scores = scores_of(tape, run, x)
    scores = tape.add(FORWARD_ENDS, (scores,), Tensor("logits in float32", scores.width, SINGLE, held=True))
    return tape.add("slice", (scores,), Tensor("shifted logits", scores.width, SINGLE, base=scores), view=True)


def _row_by_row(copies: bool) -> Callable[[Tape, Structure, Tensor], None]:
    """`copies`: whether the shifted logits are copied."""

    def loss(tape: Tape, run: Structure, x: Tensor) -> None:
        """Source: trl 1.0.0 and 1.6.0, trainer/utils.py, selective_log_softmax: a logsumexp for every row of float32 logits,
        whose gradients are there one by one before they are stacked."""
        part = _pair_logits(tape, run, x)
        if copies:
            part = tape.add("contiguous", (part,), Tensor("shifted logits, copied", part.width, SINGLE, held=True), shares=True)
        full, row = (TOKENS, part.bytes), (POSITIONS, part.bytes)
        chosen = tape.add("gather", (part,), Tensor("logits of the labels", 1, SINGLE), saves=(part,))
        sums = tape.add("logsumexp", (part,), Tensor("log-sum-exp", 1, SINGLE), saves=(part,), scratch=(full,), forward_scratch=(row,))
        tape.add("subtract", (chosen, sums), Tensor("log-probabilities", 1, SINGLE))

    return loss


def _in_one_kernel(tape: Tape, run: Structure, x: Tensor) -> None:
    """Source: trl 1.14.2, kernels/logprob_entropy.py, _LogProbEntropyFunction: it keeps the logits it was given."""
    part = _pair_logits(tape, run, x)
    tape.add("log-probabilities", (part,), Tensor("log-probabilities", 1, SINGLE), saves=(part,))


def _scores(tape: Tape, run: Structure, x: Tensor) -> None:
    """One score for every token, of which a row's last is taken.

    Source: transformers 5.24.0, modeling_layers.py, GenericForSequenceClassification.forward; peft 0.21.2, utils/other.py,
    ModulesToSaveWrapper: under adapters the head is trained in a copy.
    """
    sizes = (run.shape.hidden_size, run.head_width)
    size = run.adapter_size if run.adapter_size and not run.trains_base else run.head_size
    scores = linear(tape, run, x, sizes, "head", weight_size=size, trained=True)
    tape.add("last token of each row", (scores,), Tensor("score of each row", 1, scores.itemsize, FIXED))


LOSSES: dict[str, Callable[[Tape, Structure, Tensor], None]] = {
    "logits-4.49": _with_logits(_cross_entropy, LABELS),
    "logits-4.46": _with_logits(_cross_entropy, LOGITS_KEPT),
    "logits-4.45": _with_logits(_cross_entropy, LOGITS),
    "triton-4.49": _with_logits(_in_place_cross_entropy, LABELS),
    "triton-4.46": _with_logits(_in_place_cross_entropy, LOGITS_KEPT),
    "triton-4.45": _with_logits(_in_place_cross_entropy, LOGITS),
    "logits-litgpt": litgpt.all_logits,
    "split-litgpt": litgpt.head_in_chunks,
    "logits-torchtune": torchtune.all_logits,
    "split-torchtune": torchtune.head_in_chunks,
    "split-torchtune-compiled": torchtune.compiled_chunks,
    "split-torchtune-0.7": torchtune.linear_in_chunks,
    "fused-linear": _fused_linear,
    "chunked-1.6": _chunked(_head_in_float32),
    "chunked-1.13": _chunked(_head_as_hidden_states),
    "tiled": _tiled,
    "unsloth-2025.11": _unsloth_chunks,
    "unsloth-2026.10": _unsloth_rows,
    "cut": _cut,
    "logits-dpo-1.0": _row_by_row(copies=True),
    "logits-dpo-1.6": _row_by_row(copies=False),
    "logits-dpo-1.14": _in_one_kernel,
    "score": _scores,
}
"""Every kind of loss by name; the number is the first release, of transformers, TRL or Unsloth, that counts so."""

SHIFTING = ("logits-4.46", "logits-4.45", "triton-4.46", "triton-4.45", "logits-litgpt")
"""Losses that shift the scores by one position, which copies them unless the batch is one row."""
