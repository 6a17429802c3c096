"""Kernels that take the place of several operations of a layer: norms, gates, rotary positions.

They keep their inputs, and write the gradient over the one that came in or over what they kept.
"""

from vramplan.accountings.step.structure import SINGLE, Structure
from vramplan.accountings.step.tape import Tape, Tensor


def fused_norm(tape: Tape, run: Structure, x: Tensor, name: str, *, rows: int) -> Tensor:
    """An RMSNorm in one kernel: it keeps its input and one number per row, and gives back the type that came in. Liger's writes
    the gradient over the one that came in, unless norms follow the blocks; Unsloth's those before the blocks.

    Source: liger-kernel 0.8.5, ops/rms_norm.py, LigerRMSNormFunction; transformers/rms_norm.py (in_place=False for Gemma 2
    and 3, OLMo 2, GLM 4); unsloth 2026.10.9, kernels/rms_layernorm.py, Fast_RMS_Layernorm (reuse_grad); fms-acceleration-foak, Fast_RMS_Layernorm. Not counted: partial sums of the weight's gradient, one row
    for each multiprocessor.
    """
    own = run.norm_kernel == "liger" or (run.norm_kernel == "unsloth" and rows == 1)
    in_place = own and not (run.shape.extra_norms or run.shape.norms_after)
    inverse = Tensor(f"{name}: inverse root mean square", rows, SINGLE)
    return tape.add("norm", (x,), Tensor(f"{name}: output", x.width, x.itemsize), saves=(x, inverse), shares=in_place)


def fused_gate(tape: Tape, gate: Tensor, up: Tensor, name: str) -> Tensor:
    """activation(gate) * up in one kernel, which keeps both and writes their gradients over them. Halves of one map are copied first.

    Source: liger-kernel 0.8.5, ops/swiglu.py, LigerSiLUMulFunction; ops/geglu.py, LigerGELUMulFunction; ops/utils.py, ensure_contiguous.
    """
    kept = tuple(Tensor(f"{each.name}, copied", each.width, each.itemsize) if each.base else each for each in (gate, up))
    return tape.add("gate", (gate, up), Tensor(name, gate.width, gate.itemsize), saves=kept, hands_over=True)


def rotate_in_place(tape: Tape, run: Structure, x: Tensor, name: str) -> Tensor:
    """Rotary positions written over the values themselves, and by Liger over their gradient; a part of a fused map is copied first.
    Not where only a part of each head is turned.

    Source: liger-kernel 0.8.5, ops/rope.py, LigerRopeFunction; transformers/monkey_patch.py, apply_liger_kernel_to_glm4;
    unsloth 2026.10.9, kernels/rope_embedding.py, Fast_RoPE_Embedding_QK_Positions.
    """
    output = Tensor(name, x.width, x.itemsize, base=None if x.base else x)
    return tape.add("rotate", (x,), output, shares=run.norm_kernel != "unsloth", view=x.base is None)
