"""What decides which tensors a training step has, apart from how many tokens go through it."""

from dataclasses import dataclass

from vramplan.architecture import Architecture

HALF, SINGLE = 2, 4
"""Bytes per value of the 16-bit types, and of float32 (IEEE 754)."""


@dataclass(frozen=True)
class Sharding:
    """How the states of a run are divided over GPUs.

    ways: GPUs that one copy's states are divided over. offload: what is kept in host memory. Sizes: bytes per value of the
    parameters where they are kept; those of the structure are what its layers compute with. loaded_size: those of the checkpoint
    when it is loaded.
    """

    kind: str
    ways: int
    offload: str
    weight_size: int
    norm_size: int
    embedding_size: int
    head_size: int
    adapter_size: int
    loaded_size: int

    @property
    def is_zero(self) -> bool:
        """Whether DeepSpeed's ZeRO divides the states."""
        return self.kind.startswith("zero")

    @property
    def is_fsdp(self) -> bool:
        """Whether either form of FSDP divides the states."""
        return self.kind.startswith("fsdp")

    @property
    def divides(self) -> bool:
        """Whether anything is divided."""
        return self.is_zero or self.is_fsdp

    @property
    def divides_weights(self) -> bool:
        """Whether a GPU keeps a part of the weights only."""
        return self.is_fsdp or self.kind == "zero3"


UNDIVIDED = Sharding("none", 1, "none", 0, 0, 0, 0, 0, 0)
"""One GPU, or several that know nothing of each other's states."""


@dataclass(frozen=True)
class Structure:
    """Every choice of one run that shapes its step. Sizes are bytes per value.

    weight_size: linear weights (of the base model under adapters). norm_size, embedding_size, head_size: those weights.
    quantization: empty, or how the layers' linear weights are stored. compute_is_fp16: the 16-bit type is float16.
    masked: attention gets a mask. one_row: the micro-batch is one sequence. sorts_embedding: enough tokens
    for the embedding's backward to sort them first. loss_rows: tokens of one chunk of the loss, where it has chunks.
    """

    shape: Architecture
    trains_base: bool
    weight_size: int
    norm_size: int
    embedding_size: int
    head_size: int
    autocast: bool
    adapter_size: int
    targets: frozenset[str]
    rank: int
    dropout: bool
    quantization: str
    compute_is_fp16: bool
    attention: str
    masked: bool
    one_row: bool
    sorts_embedding: bool
    checkpointing: bool
    reentrant: bool
    norm_kernel: str
    mlp_kernel: str
    adapter_kernel: str
    loss: str
    loss_rows: int
    outputs_kept: bool
    optimizer: str
    accumulates: bool
    sharding: Sharding

    @property
    def projection_sizes(self) -> dict[str, tuple[int, int]]:
        """(in, out) widths of every linear map of a layer."""
        shape = self.shape
        hidden, query, kv, inner = shape.hidden_size, shape.query_width, shape.kv_width, shape.intermediate_size
        sizes = {"q": (hidden, query), "k": (hidden, kv), "v": (hidden, kv), "o": (query, hidden)}
        gate = {} if shape.plain_mlp else {"gate": (hidden, inner)}
        return sizes | gate | {"up": (hidden, inner), "down": (inner, hidden)}

    @property
    def fuses_gate_up(self) -> bool:
        """Whether gate and up are one map."""
        return not self.shape.plain_mlp and (self.shape.fused_projections or self.shape.fused_gate_up)

    @property
    def projection_groups(self) -> tuple[tuple[str, ...], ...]:
        """The linear maps of a layer in the order of its forward pass; those that are one map together."""
        heads = (("q", "k", "v"),) if self.shape.fused_projections else (("q",), ("k",), ("v",))
        inner = (("gate", "up"),) if self.fuses_gate_up else (("up",),) if self.shape.plain_mlp else (("gate",), ("up",))
        return (*heads, ("o",), *inner, ("down",))
