"""How each constant of this accounting was checked: a recorded trace or run notices when it changes, or it was only read in code."""

from collections.abc import Callable
from dataclasses import dataclass

from vramplan.accountings.step.operations import FLASH_HEAD_STEP
from vramplan.accountings.step.structure import LITGPT, Structure
from vramplan.architecture import DELTA_NET

TRACED, MEASURED, READ = "traced", "measured", "read"
"""A recorded trace notices; a recorded run on a GPU notices; only read in code."""


@dataclass(frozen=True)
class Constant:
    """One constant: the module that has it and its name there, what it is, how it was checked, and which runs rest on it."""

    module: str
    name: str
    label: str
    confidence: str
    applies: Callable[[Structure], bool]


def _always(run: Structure) -> bool:
    return True


def _only_some_heads(run: Structure) -> bool:
    adapted = run.targets & {"q", "k", "v"}
    return run.adapter_kernel == LITGPT and 0 < len(adapted) < len("qkv")


def _takes_efficient_kernel(run: Structure) -> bool:
    return run.attention == "efficient-repeated" or (run.attention == "efficient" and run.masked)


def _loss(*names: str) -> Callable[[Structure], bool]:
    return lambda run: run.loss.startswith(names)


def _optimizer(*parts: str) -> Callable[[Structure], bool]:
    return lambda run: any(part in run.optimizer for part in parts)


def _sharding(*kinds: str) -> Callable[[Structure], bool]:
    return lambda run: run.sharding.kind in kinds


def _quantization(*names: str) -> Callable[[Structure], bool]:
    return lambda run: run.quantization in names


CONSTANTS = (
    Constant("vramplan.accountings.step.moments", "TOKEN_INPUT_BYTES", "bytes of a token’s ids and labels", TRACED, _always),
    Constant("vramplan.accountings.step.moments", "CUBLAS_WORKSPACE_BYTES", "cuBLAS workspace", MEASURED, _always),
    Constant("vramplan.accountings.step.moments", "CUBLAS_HANDLES", "cuBLAS handles", MEASURED, _always),
    Constant("vramplan.accountings.step.operations", "MASK_SIZE", "bytes of a dropout mask", MEASURED, lambda run: run.dropout),
    Constant("vramplan.accountings.step.operations", "SOFTMAX_PRODUCTS", "product inside softmax’s backward", MEASURED, lambda run: run.attention == "eager"),
    Constant("vramplan.accountings.step.operations", "INDEX_SIZE", "index of an adapter’s places", MEASURED, _only_some_heads),
    Constant("vramplan.accountings.step.operations", "WIDEST_FLASH_HEAD", "widest head of FlashAttention’s backward", MEASURED, lambda run: run.model_code == LITGPT),
    Constant("vramplan.accountings.step.delta_net", "CHUNK", "tokens of a chunk of the delta rule", TRACED, lambda run: run.shape.mixer == DELTA_NET),
    Constant("vramplan.accountings.step.litgpt", "CHUNK_POSITIONS", "positions of a chunk of the head", MEASURED, lambda run: run.loss.endswith(LITGPT)),
    Constant("vramplan.accountings.step.litgpt", "GRADIENTS_AT_ONCE", "gradients of a chunk of the loss", MEASURED, lambda run: run.loss.endswith(LITGPT)),
    Constant("vramplan.accountings.step.torchtune", "CHUNKS", "chunks of a sequence’s logits", READ, _loss("split-torchtune")),
    Constant("vramplan.accountings.step.torchtune", "GRADIENTS_AT_ONCE", "gradients of a chunk of the loss", READ, _loss("split-torchtune")),
    Constant("vramplan.accountings.step.structure", "TORCHAO_EXPANDING_BYTES", "bytes of a weight that torchao expands", READ, lambda run: run.quantized_linear == "torchao"),
    Constant(
        "vramplan.accountings.step.operations", "FLASH_HEAD_STEP", "width of a head in FlashAttention’s backward", READ,
        lambda run: run.attention == "efficient" and run.shape.head_dim % FLASH_HEAD_STEP > 0,
    ),
    Constant("vramplan.accountings.step.operations", "HALF_BLOCK", "blocks of the memory-efficient kernel’s backward", TRACED, _takes_efficient_kernel),
    Constant("vramplan.accountings.step.operations", "WIDE_BLOCK", "blocks of the memory-efficient kernel’s backward", TRACED, _takes_efficient_kernel),
    Constant("vramplan.accountings.step.batch", "KEY_PARTS", "parts of the keys in the memory-efficient kernel’s backward", READ, lambda run: run.keys_in_blocks),
    Constant("vramplan.accountings.step.head", "COPIES_PER_CHUNK", "copies of the scores in a recomputed chunk", TRACED, _loss("chunked")),
    Constant("vramplan.accountings.step.head", "CHUNK_ROWS", "rows of a chunk of the loss", TRACED, _loss("chunked")),
    Constant("vramplan.accountings.step.head", "TILE_ROWS", "rows of a tile of the loss", READ, _loss("tiled")),
    Constant("vramplan.accountings.step.head", "TILE_COLUMNS", "columns of a tile of the loss", TRACED, _loss("tiled")),
    Constant("vramplan.accountings.step.unsloth_rows", "FEWEST_LOGITS", "rows of Unsloth’s loss", TRACED, _loss("unsloth-2026")),
    Constant("vramplan.accountings.step.unsloth_rows", "TILE_STEP", "rows of Unsloth’s loss", TRACED, _loss("unsloth-2026")),
    *(
        Constant("vramplan.accountings.step.unsloth_rows", name, "rows of Unsloth’s loss", READ, _loss("unsloth-2026"))
        for name in ("FEWEST_ROWS", "MOST_ROWS", "CHUNK_BUDGET_BYTES", "SCORE_TILE_BYTES", "SMALL_CARD_BYTES")
    ),
    Constant("vramplan.accountings.step.unsloth_rows", "CHUNK_MULTIPLE", "rows of Unsloth’s loss", READ, _loss("unsloth-2025")),
    Constant("vramplan.accountings.step.head", "UNSLOTH_CHUNK_COPIES", "what a compiled chunk of the loss holds", READ, _loss("unsloth-2025")),
    Constant("vramplan.accountings.step.build", "SMALLEST_OFFLOADED_BYTES", "checkpoints too small to be offloaded", READ, lambda run: bool(run.offload)),
    Constant("vramplan.accountings.step.build", "SHORTEST_OFFLOADED_ROW", "rows too short to be offloaded", READ, lambda run: bool(run.offload)),
    Constant("vramplan.accountings.step.moments", "SORTED_EMBEDDING_TENTHS", "sums inside the embedding’s backward", READ, lambda run: run.sorts_embedding),
    Constant("vramplan.accountings.step.build", "FEWEST_SORTED_TOKENS", "tokens from which the embedding’s backward sorts", READ, lambda run: run.sorts_embedding),
    Constant("vramplan.accountings.step.moments", "COMPLETION_BYTES", "bytes of a token’s completion mask", READ, lambda run: bool(run.reference)),
    Constant("vramplan.accountings.step.head", "COPIES_FOR_ENTROPY", "copies of the scores in a chunk of the entropy", TRACED, _loss("logits-dpo-1.0", "logits-dpo-1.6")),
    Constant("vramplan.accountings.step.head", "ENTROPY_ROWS", "rows of a chunk of the entropy", TRACED, _loss("logits-dpo-1.0", "logits-dpo-1.6")),
    Constant("vramplan.quantized", "NF4_DOUBLE_QUANTIZED_BYTES", "bytes of an NF4 weight with doubly quantised scales", MEASURED, _quantization("nf4-double")),
    Constant("vramplan.quantized", "NF4_BLOCK_SIZE", "weights of an NF4 block", MEASURED, _quantization("nf4")),
    Constant("vramplan.quantized", "GPTQ_GROUP_SIZE", "weights of a GPTQ or AWQ group", MEASURED, _quantization("gptq")),
    Constant("vramplan.quantized", "GPTQ_GROUP_SIZE", "weights of an AWQ group", READ, _quantization("awq")),
    Constant("vramplan.accountings.step.state", "EIGHT_BIT_BLOCK_SIZE", "values of an 8-bit optimizer block", TRACED, _optimizer("8bit")),
    Constant("vramplan.accountings.step.state", "EIGHT_BIT_SMALLEST_TENSOR", "smallest tensor with 8-bit states", TRACED, _optimizer("8bit")),
    Constant("vramplan.accountings.step.state", "PAGED_SMALLEST_TENSOR", "smallest tensor with paged states", TRACED, _optimizer("paged")),
    Constant("vramplan.accountings.step.sharding", "PERSISTENT_ROWS", "size up to which ZeRO-3 keeps a weight gathered", READ, _sharding("zero3")),
    Constant("vramplan.accountings.step.sharding", "LIVE_PARAMETERS", "gathered weights that ZeRO-3 holds", READ, _sharding("zero3")),
    Constant("vramplan.accountings.step.sharding", "SUB_GROUP_PARAMETERS", "weights that ZeRO-3 updates at once", READ, _sharding("zero3")),
)
"""Every constant of the accounting that a run may rest on. Sizes of types and shapes are definitions, not constants."""


READ_KINDS = {
    "ddp": "DDP’s buckets",
    "zero1": "what ZeRO-1 divides and reduces",
    "zero2": "what ZeRO-2 divides and reduces",
    "zero3": "what ZeRO-3 divides, gathers and reduces",
    "fsdp2": "what FSDP2 gathers and reduces",
}
"""Kinds of sharding that no recorded run checks yet."""


def unchecked(run: Structure) -> tuple[str, ...]:
    """What a run rests on that was only read in code, beside the facts of its stack."""
    of_sharding = [READ_KINDS[run.sharding.kind]] if run.sharding.kind in READ_KINDS else []
    offloaded = ["what is offloaded"] if run.sharding.offload != "none" else []
    return (*(each.label for each in CONSTANTS if each.confidence == READ and each.applies(run)), *of_sharding, *offloaded)
