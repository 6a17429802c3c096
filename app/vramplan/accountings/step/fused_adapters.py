"""Adapters of several linear maps in one function, with a backward pass of its own.

Source: unsloth 2026.10.9 and 2025.11.1, kernels/fast_lora.py, LoRA_QKV, LoRA_W, LoRA_MLP; kernels/utils.py, matmul_lora;
axolotl 0.19.0, kernels/lora.py, LoRA_QKV, LoRA_O, LoRA_MLP.
"""

from vramplan.accountings.step.operations import MASK_SIZE, dropout
from vramplan.accountings.step.structure import HALF, SINGLE, Structure
from vramplan.accountings.step.tape import FIXED, TOKENS, Operation, Tape, Tensor

HEADS, OUTPUT, MLP = ("q", "k", "v"), ("o",), ("gate", "up", "down")
"""The maps that are fused with one another."""

IN_PLACE = ("unsloth-2026", "unsloth-2025")
"""Kernels that write the gradient of their input over the input, and unpack quantised weights into one buffer that stays."""


def fuses(run: Structure, x: Tensor, names: tuple[str, ...]) -> bool:
    """Whether these maps run in one function: each has an adapter, the input is in 16 bits, and the kernels are made for the rest.

    Source: unsloth 2026.10.9, models/llama.py, patch_peft_model: no bias, no float32 base, before 2026 no dropout;
    axolotl 0.19.0, monkeypatch/lora_kernels.py, apply_lora_kernel_patches: an adapter on each.
    """
    kernel, shape = run.adapter_kernel, run.shape
    if kernel not in (*IN_PLACE, "axolotl") or not run.targets.issuperset(names) or run.quantization == "int8":
        return False
    in_half = x.itemsize == HALF and (run.quantization or run.weight_size == HALF)
    apart = all((name,) in run.projection_groups for name in names)
    biased = {HEADS: shape.query_biases, OUTPUT: shape.output_biases, MLP: shape.mlp_biases}[names]
    refused = kernel in IN_PLACE and biased or kernel == "unsloth-2025" and run.dropout
    return bool(in_half and apart and not refused and (names != MLP or shape.activation == "fused"))


def fused_heads(tape: Tape, run: Structure, x: Tensor) -> tuple[Tensor, ...]:
    """Query, key and value of x, which is kept once."""
    outputs = tuple(Tensor(f"{name}: result", run.projection_sizes[name][1], HALF) for name in HEADS)
    x, kept, scratch = _before(tape, run, x, HEADS, masks=len(HEADS))
    _add(tape, run, "q, k, v", x, outputs, HEADS, kept, scratch)
    return outputs


def fused_output(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    """The output map of attention; its input is the attention's output, which is never written over."""
    output = Tensor("o: result", run.projection_sizes["o"][1], HALF)
    x, kept, scratch = _before(tape, run, x, OUTPUT, masks=1)
    _add(tape, run, "o", x, (output,), OUTPUT, kept, scratch, over=False)
    return output


def fused_mlp(tape: Tape, run: Structure, x: Tensor) -> Tensor:
    """Gate, up, their product, and down: the input, gate and up are kept. Backward makes one new tensor (M) and writes the
    product and the gradients of gate and up over it and over them."""
    inner = run.shape.intermediate_size
    gate, up = (Tensor(f"{name}: result", inner, HALF) for name in ("gate", "up"))
    output = Tensor("down: result", run.projection_sizes["down"][1], HALF)
    inputs, kept, scratch = _before(tape, run, x, MLP, masks=len(MLP) - 1)
    product = (TOKENS, HALF * inner)
    shape = run.shape
    own_gradient = shape.extra_norms or shape.norms_after or shape.scaled_residual or shape.residual_dropout  # else it is the residual's
    came = ((TOKENS, output.bytes),) if own_gradient else ()
    _add(tape, run, "gate, up", inputs, (gate, up), MLP, kept, (*scratch, product, *came))
    mask = (Tensor("down adapter: dropout mask", inner, MASK_SIZE),) if run.dropout and run.adapter_kernel == "unsloth-2026" else ()
    work = (product, *_unpacked(run, ("down",), stays=True))
    return tape.add("down", (gate, up), output, saves=(gate, up, *mask), scratch=work, forward_scratch=work, hands_over=True)


def _before(tape: Tape, run: Structure, x: Tensor, names: tuple[str, ...], *, masks: int):
    """(inputs, what is kept of them, what backward holds beside): Axolotl drops values once for all maps, and keeps the mask and
    what is left of the input; Unsloth drops them for each map, keeps the masks and makes the rest of the input again."""
    if not run.dropout:
        return (x,), (x,), ()
    if run.adapter_kernel == "axolotl":
        dropped = dropout(tape, x, f"{names[0]} adapter")
        return (x, dropped), (x, dropped), ()
    kept = tuple(Tensor(f"{name} adapter: dropout mask", x.width, MASK_SIZE) for name in names[:masks])
    return (x,), (x, *kept), ((TOKENS, x.bytes),)


def _unpacked(run: Structure, names: tuple[str, ...], *, stays: bool = False) -> tuple[tuple[int, int], ...]:
    """The largest of these weights unpacked to 16 bits, where the base is quantised. `stays`: Unsloth has a buffer for it, counted elsewhere."""
    if stays and run.adapter_kernel in IN_PLACE:
        return ()
    sizes = [run.projection_sizes[name] for name in names]
    return ((FIXED, HALF * max(into * out for into, out in sizes)),) if run.quantization else ()


def _add(tape, run, name, inputs, outputs, maps, kept, scratch, *, over=True) -> None:
    """One function. Its backward holds 16-bit copies of the adapters and 16-bit gradients of them, and one unpacked weight.

    Source: the same, backward; torch 2.13.0, csrc/autograd/engine.cpp, validate_outputs: gradients become float32 as a whole.
    `over`: gradients are written over what was kept; Axolotl keeps its input even so.
    """
    sizes = [run.projection_sizes[each] for each in maps]
    values = run.rank * sum(into + out for into, out in sizes)
    copied = HALF * values if run.adapter_size == SINGLE else 0
    copies = (Tensor(f"{name} adapters in 16 bits", values, HALF, FIXED),) if copied and run.adapter_kernel == "axolotl" else ()
    unpacked = _unpacked(run, maps)
    scratch = (*scratch, *unpacked, (TOKENS, HALF * run.rank * len(maps)))
    if over and run.adapter_kernel == "axolotl":
        if maps == MLP:
            scratch = (*scratch, *((TOKENS, each.bytes) for each in inputs))
        else:
            over = False
    beside = 1 if copies and not over else 2
    tape.operations.append(
        Operation(
            name, inputs, outputs, saves=(*kept, *copies), scratch=scratch, forward_scratch=_unpacked(run, maps, stays=True), hands_over=over,
            gradient=run.adapter_size * values, gradient_scratch=beside * copied,
        )
    )
