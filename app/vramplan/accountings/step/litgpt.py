"""LitGPT's two losses on a tape. Fabric gives the logits out as float32, and the training loop keeps them until it has the next
ones.

Source: litgpt 0.4.0 and 0.5.13, finetune/lora.py and finetune/full.py, fit; utils.py, chunked_cross_entropy; lightning 2.6.6,
fabric/wrappers.py, _FabricModule.forward; fabric/plugins/precision/half.py, bitsandbytes.py, amp.py, convert_output.
"""

from vramplan.accountings.step.operations import adapter_input
from vramplan.accountings.step.scores import scores
from vramplan.accountings.step.structure import HALF, SINGLE, Structure
from vramplan.accountings.step.tape import FIXED, POSITIONS, Operation, Tape, Tensor

CHUNK_POSITIONS = 128
"""Positions of one chunk of the head, and rows of one chunk of cross-entropy. Source: litgpt 0.4.0, finetune/lora.py, fit
(lm_head_chunk_size); utils.py, chunked_cross_entropy (chunk_size)."""

GRADIENTS_AT_ONCE = 2
"""float32 gradients of one chunk while its cross-entropy goes backward: of the log-probabilities and of the scores.
Source: torch 2.13.0, NllLossBackward0, LogSoftmaxBackward0."""


def before(tape: Tape, run: Structure) -> tuple[Tensor, ...]:
    """The logits of the micro-batch before, which a variable keeps until it is given the new ones."""
    if not run.lingers:
        return ()
    logits = Tensor("logits of the micro-batch before", run.shape.vocab_size, SINGLE)
    tape.operations.append(Operation("logits of the micro-batch before", (), (logits,)))
    return (logits,)


def head_in_chunks(tape: Tape, run: Structure, x: Tensor) -> None:
    """The head runs on chunks of positions, all of whose scores are kept; a head whose weight is cast is cast for every chunk.

    All chunks of cross-entropy go backward before any chunk of the head does.
    """
    vocab, hidden = run.shape.vocab_size, run.shape.hidden_size
    kept = before(tape, run)
    inner: tuple[Tensor, ...] = ()
    saves: tuple[Tensor, ...] = ()
    if "lm_head" in run.targets:
        saves = inner = (adapter_input(tape, run, x, (hidden, run.rank), "head"),)
    size = HALF if run.autocast else x.itemsize
    if size < run.head_size:
        copies = -(-vocab * hidden // CHUNK_POSITIONS)
        saves = (*saves, Tensor("16-bit head weight, once a chunk", copies, HALF, POSITIONS))
    weight = run.expanded_bytes(vocab * hidden) if run.quantized_head else 0
    read = (x, *inner)
    if size == HALF:
        in_half = Tensor("logits, in chunks", vocab, HALF)
        tape.operations.append(Operation("head", (), (in_half,), reads=read, forward_scratch=((FIXED, weight),)))
        read = (in_half,)
    logits = Tensor("logits in float32", vocab, SINGLE, held=True)
    tape.add(
        "head", (x, *inner), logits, saves=saves, reads=(*read, *kept), scratch=((FIXED, weight + size * run.loss_rows * vocab),),
        gradient=run.adapter_size * run.rank * vocab if inner else 0,
    )
    _chunks_of_cross_entropy(tape, run, logits)


def all_logits(tape: Tape, run: Structure, x: Tensor) -> None:
    """All scores at once, then cross-entropy on chunks of rows, whose gradients are put together again."""
    kept = before(tape, run)
    in_half = scores(tape, run, x)
    logits = in_half
    if in_half.itemsize == HALF:
        logits = tape.add("cast", (in_half,), Tensor("logits in float32", in_half.width, SINGLE), reads=kept)
    logits.held = True
    part = tape.add("slice", (logits,), Tensor("shifted logits", logits.width, SINGLE, base=logits), view=True)
    if not run.one_row:
        part = tape.add("contiguous", (part,), Tensor("shifted logits, copied", logits.width, SINGLE), shares=True)
    rows = tape.add("split", (part,), Tensor("rows of logits", part.width, SINGLE, base=part), view=True)
    _chunks_of_cross_entropy(tape, run, rows)


def _chunks_of_cross_entropy(tape: Tape, run: Structure, logits: Tensor) -> None:
    """log_softmax of every chunk is kept until that chunk has gone backward, and leaves its gradient there."""
    probabilities = Tensor("log-probabilities", logits.width, SINGLE)
    chunk = GRADIENTS_AT_ONCE * SINGLE * run.loss_rows * run.shape.vocab_size
    tape.add(
        "loss", (logits,), Tensor("loss", 1, SINGLE, FIXED), saves=(probabilities,), scratch=((FIXED, chunk),), hands_over=True
    )
