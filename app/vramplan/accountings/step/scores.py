"""The output head on a tape: scores for every token of the vocabulary, all at once."""

from vramplan.accountings.step.operations import adapter, linear, scale, softcap
from vramplan.accountings.step.structure import Structure
from vramplan.accountings.step.tape import Tape, Tensor


def scores(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    """Scores for every token of the vocabulary, (B, S, V). MiniCPM3 divides what the head reads first, and a variable keeps it.

    Source: transformers 5.24.0, models/llama/modeling_llama.py; models/minicpm3/modeling_minicpm3.py, MiniCPM3ForCausalLM.forward.
    """
    if run.shape.kv_lora_rank and run.shape.scaled_residual:
        x = scale(tape, x, "last layer’s output for the head, divided")
        x.held = not run.pairs
    sizes = (run.shape.hidden_size, run.shape.vocab_size)
    result = linear(tape, run, x, sizes, "head", weight_size=run.head_size, trained=run.trains_base)
    if "lm_head" in run.targets:
        result = adapter(tape, run, x, result, sizes, "head", quantized=False)
    return softcap(tape, result, "logits") if run.shape.logit_softcap else result
