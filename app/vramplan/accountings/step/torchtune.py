"""torchtune's losses on a tape: cross-entropy on chunks of the scores, and on all of them.

Source: torchtune 0.4.0 and 0.6.1, modules/transformer.py, TransformerDecoder.chunked_output and forward;
modules/loss/ce_chunked_output_loss.py; recipes/lora_finetune_single_device.py, _loss_step (the logits are deleted before the
backward pass); torchtune main, modules/loss/cross_entropy_loss.py, LinearCrossEntropyLoss.
"""

from vramplan.accountings.step.operations import cast
from vramplan.accountings.step.scores import scores
from vramplan.accountings.step.structure import HALF, SINGLE, Structure
from vramplan.accountings.step.tape import FIXED, TOKENS, Tape, Tensor

CHUNKS = 8
"""Parts of a sequence. Source: torchtune 0.6.1, modules/loss/ce_chunked_output_loss.py, num_output_chunks."""

GRADIENTS_AT_ONCE = 2
"""float32 gradients of one chunk while its cross-entropy goes backward: of the log-probabilities and of the scores.
Source: torch 2.13.0, NllLossBackward0, LogSoftmaxBackward0."""


def all_logits(tape: Tape, run: Structure, x: Tensor) -> None:
    """All scores in float32, and cross-entropy on them."""
    logits = cast(tape, scores(tape, run, x), SINGLE, "logits in float32")
    probabilities = Tensor("log-probabilities", logits.width, SINGLE)
    tape.add("log_softmax", (logits,), probabilities, saves=(probabilities,))
    tape.add("loss", (probabilities,), Tensor("loss", 1, SINGLE, FIXED))


def head_in_chunks(tape: Tape, run: Structure, x: Tensor) -> None:
    """The head runs on every chunk, whose 16-bit scores are kept; cross-entropy makes float32 of one chunk at a time, and keeps
    its log-probabilities. All chunks of cross-entropy go backward before any chunk of the head does, whose weight gradients are
    summed."""
    vocab, chunk = run.shape.vocab_size, SINGLE * run.loss_rows * run.shape.vocab_size
    gradient = _head_gradient(run)
    logits = Tensor("logits, in chunks", vocab, x.itemsize)
    tape.add("head", (x,), logits, saves=(x,) if gradient else (), gradient=gradient, gradient_scratch=gradient)
    probabilities = Tensor("log-probabilities", vocab, SINGLE)
    not_yet_backward = (TOKENS, (SINGLE - x.itemsize) * vocab)
    tape.add(
        "loss", (logits,), Tensor("loss", 1, SINGLE, FIXED), saves=(probabilities,), forward_scratch=((FIXED, chunk),),
        scratch=(not_yet_backward, (FIXED, GRADIENTS_AT_ONCE * chunk)), hands_over=True,
    )


def compiled_chunks(tape: Tape, run: Structure, x: Tensor) -> None:
    """The same with cross-entropy compiled: it keeps the 16-bit scores and makes no float32 of them but the gradient of the
    log-probabilities, which is scattered into zeros, one chunk at a time.

    Source: torchtune 0.6.1, training/_compile.py, compile_loss; torch 2.13.0, _decomp/decompositions.py, nll_loss_backward.
    """
    vocab, gradient = run.shape.vocab_size, _head_gradient(run)
    logits = Tensor("logits, in chunks", vocab, x.itemsize)
    tape.add("head", (x,), logits, saves=(x,) if gradient else (), gradient=gradient, gradient_scratch=gradient)
    chunk = (x.itemsize + SINGLE) * run.loss_rows * vocab
    tape.add("loss", (logits,), Tensor("loss", 1, SINGLE, FIXED), saves=(logits,), scratch=((FIXED, chunk),), hands_over=True)


def linear_in_chunks(tape: Tape, run: Structure, x: Tensor) -> None:
    """Head and cross-entropy run on one chunk of labelled rows after the other, and back; the log-probabilities are kept."""
    vocab, chunk = run.shape.vocab_size, run.loss_rows * run.shape.vocab_size
    gradient = _head_gradient(run)
    rows = tape.add("index", (x,), Tensor("labelled rows", x.width, x.itemsize))
    probabilities = Tensor("log-probabilities", vocab, SINGLE)
    tape.add(
        "loss", (rows,), Tensor("loss", 1, SINGLE, FIXED), saves=(probabilities, *((rows,) if gradient else ())),
        forward_scratch=((FIXED, (HALF + SINGLE) * chunk),), scratch=((FIXED, GRADIENTS_AT_ONCE * SINGLE * chunk),),
        gradient=gradient, gradient_scratch=gradient,
    )


def _head_gradient(run: Structure) -> int:
    return run.head_size * run.shape.vocab_size * run.shape.hidden_size if run.trains_base else 0
