"""The recorded runs that estimates are held against: traced steps and public measurements, read from the tests' folders.

Belongs here: what a column of those files means as a setting. Not here: errors, quantiles, anything shown.
"""

import csv
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from vramplan import words
from vramplan.catalogue import CUSTOM, DIMENSIONS
from vramplan.link import read_query
from vramplan.policy import REFERENCES
from vramplan.settings import Settings, as_text, parse
from vramplan.stacks import stacks
from vramplan.units import GIB

TESTS = Path(__file__).resolve().parents[2] / "tests"
TRACED, KERNELS_TRACED, MEASURED = TESTS / "traced" / "traced.csv", TESTS / "traced" / "kernels.csv", TESTS / "measured" / "runs.csv"
SHAPES = TESTS / "traced" / "shapes.toml"

LOSSES = {
    "logits": ("trainer-5", "logits"),
    "logits-4.45": ("trainer-4.45", "logits"),
    "logits-4.48": ("trainer-4.46", "logits"),
    "triton": ("trainer-4.46", "triton"),
}
"""Stack and loss by the trace's word for the loss; other words are the setting's own, under the current Trainer."""

PAIR_STACKS = {
    "tiled": ("trl-1.15", "tiled"),
    "logits-dpo-1.14": ("trl-1.13", "logits-dpo-1.14"),
    "logits-dpo-1.6": ("trl-1.6", "logits-dpo-1.6"),
    "logits-dpo-1.0": ("trl-1.5", "logits-dpo-1.0"),
    "score": ("trl-1.15", "score"),
}
"""The same for a step on pairs, whose loss is its stack's own."""

KERNELS = {"flash": "efficient", "expanded": "efficient-repeated", "eager": "eager"}
MODELS = {"granite-3-2b": "granite-3.0-2b"}
LAYER_KERNELS = {"liger": "liger"}
OF_STACK = {"unsloth-2026": "unsloth-2026.10", "unsloth-2025": "unsloth-2025.11", "axolotl": "axolotl-0.19"}
"""The stack by the trace's word for its kernels."""

CHECKPOINTS = {
    "full": ("full", "non-reentrant"), "none": ("none", "non-reentrant"), "reentrant": ("full", "reentrant"),
    **dict.fromkeys(("offloaded", "staged", "staged-later"), ("offloaded", "reentrant")),
}
"""Checkpointing and its kind by the trace's word."""

LARGE_CARD = {"unsloth-80": "80"}
"""The card by the trace's word for the loss, where it matters."""

PRECISIONS = {"bf16": "pure-bf16", "fp32": "mixed-bf16"}
PREPARATIONS = {"peft": "all", "norms": "norms", "none": "none"}
OPTIMIZERS = {"adamw-32bit": "adamw-fp32-states"}


@dataclass(frozen=True)
class Run:
    """One recorded run. allocated: bytes at the peak, 0 where the run went out of memory. reserved and process: what the
    allocator held and what nvidia-smi showed, where that is recorded. exact: whether every batch had the full length."""

    id: str
    kind: str
    source: str
    settings: Settings
    allocated: int
    reserved: int = 0
    process: int = 0
    out_of_memory: bool = False
    exact: bool = True

    @property
    def group(self) -> str:
        """Which runs it is judged with: those of the same stack family and method."""
        family = self.settings.stack.split("-")[0]
        if self.settings.divides_states:
            return f"{self.settings.method}, {family}, {words.value_text('sharding', self.settings.sharding)} over several GPUs"
        return f"{self.settings.method}, {family}" if self.kind == "measured" else self.settings.method


def traced(*paths: Path) -> list[Run]:
    """Every traced step. The traces run under the newest libraries, with older losses put in their place."""
    return [
        Run(row["id"], "traced", row["versions"], traced_settings(row), int(row["peak"]))
        for path in paths or (TRACED, KERNELS_TRACED)
        for row in _rows(path)
    ]


def traced_settings(row: dict[str, str]) -> Settings:
    """The settings of a traced configuration; what its stack decides the same way is left to the stack."""
    pairs = row["objective"] != "sft"
    stack, loss = PAIR_STACKS[row["loss"]] if pairs else LOSSES.get(row["loss"], ("trainer-5", row["loss"].removesuffix("-80")))
    stack = OF_STACK.get(row.get("kernels"), stack)
    checkpointing, kind = CHECKPOINTS[row["checkpointing"]]
    facts = stacks()[stack]
    optimizer = OPTIMIZERS.get(row["optimizer"], row["optimizer"])
    texts = {
        "stack": stack,
        "loss": "stack" if row["objective"] != "sft" or loss == facts["loss"] else loss,
        "objective": row["objective"],
        "reference": "stack" if row["reference"] == REFERENCES[row["method"]] else row["reference"] or "stack",
        **_model(row["model"]),
        "method": row["method"],
        "optimizer": "adamw" if optimizer == facts["adamw"] else optimizer,
        "attention_kernel": KERNELS[row["attention"]],
        "layer_kernels": LAYER_KERNELS.get(row.get("kernels"), "stack"),
        "checkpointing": checkpointing,
        "checkpoint_kind": "stack" if facts["checkpoint_kind"] == kind else kind,
        "autocast": "stack" if (row["autocast"] != "none") == facts["autocast"] else "off",
        "gpu": LARGE_CARD.get(row["loss"], "24"),
        **{name: row[name] for name in ("micro_batch", "sequence_length", "gradient_accumulation_steps")},
    }
    if row["method"] == "full":
        return parse(texts | _precision(row["load_dtype"], facts["weight_precision"]))
    quantized = "quantized_" if row["method"] == "qlora" else ""
    texts |= _precision(row["adapter_dtype"], facts[f"{quantized}adapter_precision"])
    texts |= {
        "base_precision": "stack" if row["load_dtype"] == facts[f"{quantized}base_precision"] else row["load_dtype"],
        "adapter_targets": row["targets"],
        **{name: row[name] for name in ("rank", "lora_dropout")},
    }
    if quantized:
        preparation = PREPARATIONS[row["kbit_preparation"]]
        texts |= {
            "quantization": row["quantization"],
            "kbit_preparation": "stack" if preparation == facts["kbit_preparation"] else preparation,
        }
    return parse(texts)


def _model(name: str) -> dict[str, str]:
    """A preset, or for a traced model whose traits are written beside its shape a custom one."""
    shape = _shapes()[name]
    if "traits" not in shape:
        return {"model": MODELS.get(name, name)}
    traits = {trait: as_text(value) for trait, value in shape["traits"].items()}
    return {"model": CUSTOM, **{dimension: as_text(shape[dimension]) for dimension in DIMENSIONS}, **traits}


@cache
def _shapes() -> dict[str, dict]:
    return tomllib.loads(SHAPES.read_text(encoding="utf-8"))


def _precision(recorded: str, by_stack: str) -> dict[str, str]:
    return {"trainable_precision": "stack" if recorded == by_stack else PRECISIONS[recorded]}


def measured(path: Path = MEASURED) -> list[Run]:
    """Every public measurement that can be expressed, out-of-memory runs among them."""
    return [
        Run(
            row["id"],
            "measured",
            row["source"],
            _linked(row["settings"]),
            _bytes(row["alloc_gib"]),
            _bytes(row["reserved_gib"]),
            _bytes(row["smi_gib"]),
            row["outcome"] == "oom",
            row["sequences"] == "exact",
        )
        for row in _rows(path)
    ]


def _linked(query: str) -> Settings:
    link = read_query(query)
    return parse(link.texts, version=link.version)


def _bytes(gib: str) -> int:
    return round(float(gib) * GIB) if gib else 0


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)
