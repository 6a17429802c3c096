"""A short convolution in place of attention, on a tape. Source: transformers 5.24.0, models/lfm2/modeling_lfm2.py,
Lfm2ShortConv.forward and causal_conv1d_fn (what runs where the package causal_conv1d is not installed)."""

from vramplan.accountings.step.operations import cast, multiply, projection
from vramplan.accountings.step.structure import HALF, SINGLE, Structure
from vramplan.accountings.step.tape import FIXED, TOKENS, Tape, Tensor

PARTS = ("gate before the convolution", "gate after the convolution", "values")
"""What the first map gives, each as wide as the residual stream."""


def short_convolution(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    """A map to three parts, one of them times another, a convolution over the last few tokens, times the third, a map back.

    The parts are views of one tensor, which stays until the layer is done with it.
    """
    width = run.shape.hidden_size
    whole = projection(tape, run, x, ("in",))
    before, after, values = (Tensor(name, width, whole.itemsize, base=whole) for name in PARTS)
    tape.add_views("chunk", whole, (before, after, values))
    gated = multiply(tape, run, before, values, "gated values")
    convolved = depthwise_convolution(tape, run, gated, copied=True)
    output = projection(tape, run, multiply(tape, run, after, convolved, "gated convolution"), ("out",))
    tape.operations[-1].reads += (x, whole, convolved)
    return output


def depthwise_convolution(tape: Tape, run: Structure, x: Tensor, *, copied: bool, activated: bool = False) -> Tensor:
    """Every channel of x convolved over the last few tokens: it keeps its input, and under autocast a 16-bit copy of a float32 weight.

    The weight is (channels, 1, taps). `copied`: the channels of a token lie together, so forward and backward bring the input
    into the kernel's order first. `activated`: SiLU follows. The output is cut off at the length of the row; not counted: the taps less one beyond it.
    Source: torch 2.13.0, nn.functional.conv1d under torch.autocast; ATen/native/Convolution.cpp, _convolution, convolution_backward;
    ATen/native/cuda/DepthwiseConv2d.cu.
    """
    given, size, values = x, run.embedding_size, x.width * run.shape.mixer_kernel
    x = in_weights_type = cast(tape, x, size, f"{x.name} in the type of the weight")
    x = cast(tape, x, HALF, f"16-bit {given.name}") if run.autocast else x
    copies = run.autocast and size == SINGLE
    weight = (Tensor("16-bit weight of the convolution", values, HALF, FIXED),) if copies else ()
    order = ((TOKENS, x.bytes),) if copied else ()
    gradient = size * values if run.trains_base else 0
    whole = tape.add(
        "convolution", (x,), Tensor("convolution", x.width, x.itemsize), saves=(x, *weight), scratch=order, forward_scratch=order,
        gradient=gradient, gradient_scratch=HALF * values if gradient and copies else 0, reads=(given, in_weights_type),
    )
    within = tape.add("slice", (whole,), Tensor("convolution within the row", whole.width, whole.itemsize, base=whole), view=True)
    if activated:
        within = tape.add("activation", (within,), Tensor("activated convolution", whole.width, whole.itemsize), saves=(within,))
    return cast(tape, within, given.itemsize, "convolution, as the values")
