"""Questions people ask about memory, answered with the figures of the chosen run, beside the claims they meet."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from string import Formatter

from vramplan.accountings import estimate
from vramplan.checks import Value
from vramplan.data import table
from vramplan.errors import NotExpressible
from vramplan.ledger import Estimate
from vramplan.needs import gb_text
from vramplan.settings import Settings
from vramplan.units import count_text, short_count_text

GPUS = 8
"""GPUs of the answers about several: those of one node."""

THIRTEEN_BILLION, TWENTY_FOUR = "llama-2-13b", "24"
"""The model and the class of card that people ask about."""

HUNDRED_PERCENT = 100


@dataclass(frozen=True)
class Answered:
    """A question, the claim people meet, and the answer with the figures of a run."""

    question: str
    claim: str
    answer: str


@cache
def _asked() -> tuple[dict[str, str], ...]:
    return tuple(table("questions")["question"])


def answered(settings: Settings) -> tuple[Answered, ...]:
    """Every question whose figures can be counted for a run, by the training step, whatever accounting is chosen."""
    runs, found = Runs(settings), []
    for entry in _asked():
        names = [name for _, name, _, _ in Formatter().parse(entry["answer"]) if name]
        try:
            values = {name: FIGURES[name](runs) for name in names}
        except NotExpressible:
            continue
        found.append(Answered(entry["question"], entry["claim"], entry["answer"].format(**values)))
    return tuple(found)


class Runs:
    """The run, and others like it that answers are about, each counted when it is first asked for. Raises NotExpressible."""

    def __init__(self, settings: Settings):
        self.settings = settings.varied(accounting="step", sharding="none", sharded_over=1, offload="none", objective="sft")

    def like(self, **changes: Value) -> Estimate:
        """The same run with some settings changed."""
        return estimate(self.settings.varied(**changes))

    @cached_property
    def now(self) -> Estimate:
        """The run as it is, on one GPU."""
        return self.like()

    @cached_property
    def full(self) -> Estimate:
        """Trained in full, in mixed precision."""
        return self.like(**IN_FULL)

    def under(self, sharding: str, offload: str = "none") -> Estimate:
        """Trained in full by so many GPUs."""
        return self.like(**IN_FULL, sharding=sharding, sharded_over=GPUS, offload=offload)

    def keeping(self, kernel: str, *, doubled: bool = False) -> int:
        """Bytes that layers keep without checkpointing, at a length that can be doubled, or twice that."""
        length = self.length * (2 if doubled else 1)
        return kept(self.like(checkpointing="none", attention_kernel=kernel, sequence_length=length))

    @property
    def length(self) -> int:
        """The sequence length, or the longest that the model has twice."""
        return min(self.settings.sequence_length, self.settings.max_sequence_length // 2)

    def served(self, weights: str) -> Estimate:
        """The model answering, one sequence of the run's length at once."""
        return estimate(self.settings.varied(accounting="rules", task="inference", served_weights=weights, micro_batch=1))

    @cached_property
    def thirteen(self) -> Estimate:
        """The model of 13 billion parameters that people ask about."""
        return estimate(Settings(model=THIRTEEN_BILLION, method="qlora", gpu=TWENTY_FOUR, gradient_accumulation_steps=1))


IN_FULL = {"method": "full", "trainable_precision": "mixed-bf16"}
"""Full fine-tuning with FP32 weights under autocast."""

STATES = ("base_weights", "gradients", "optimizer_states", "master_weights")
"""Rows of what every trained parameter has."""


def rows(one: Estimate, *names: str) -> int:
    """Bytes of rows: each at the moment at which it is largest."""
    largest = {name: max((term.bytes for moment in one.moments for term in moment.terms if term.name == name), default=0) for name in names}
    return sum(largest.values())


def kept(one: Estimate) -> int:
    """Bytes that the layers keep for the backward pass."""
    return rows(one, "saved_activations")


def _times(part: int, whole: int) -> str:
    return f"{part / whole:.1f}"


def _percent(part: int, whole: int) -> str:
    return f"{HUNDRED_PERCENT * part / whole:z.1f}".replace("-", "\N{MINUS SIGN}")


def _more(runs: Runs, **changes: Value) -> str:
    return gb_text(runs.like(**changes).peak_bytes - runs.now.peak_bytes)


def _for_twice_the_steps(runs: Runs, steps: int) -> str:
    fewer, more = (runs.like(gradient_accumulation_steps=each).peak_bytes for each in (steps, 2 * steps))
    return gb_text(more - fewer)


FIGURES: dict[str, Callable[[Runs], str]] = {
    "model": lambda runs: runs.settings.model_label,
    "parameters": lambda runs: short_count_text(runs.now.parameters.total),
    "trained": lambda runs: short_count_text(runs.like(method="lora").parameters.trainable),
    **{f"weights{bits}": lambda runs, kind=kind: gb_text(rows(runs.served(kind), "base_weights")) for bits, kind in ((32, "fp32"), (16, "bf16"), (8, "int8"), (4, "int4"))},
    "qlora_weights": lambda runs: gb_text(rows(runs.like(method="qlora"), "base_weights")),
    "states": lambda runs: gb_text(rows(runs.full, *STATES)),
    "full": lambda runs: gb_text(runs.full.peak_bytes),
    "adam": lambda runs: gb_text(rows(runs.like(**IN_FULL, optimizer="adamw-fused"), "optimizer_states")),
    "adam8": lambda runs: gb_text(rows(runs.like(**IN_FULL, optimizer="adamw-8bit"), "optimizer_states")),
    "adapter_states": lambda runs: gb_text(rows(runs.like(method="lora"), "optimizer_states")),
    "qlora13": lambda runs: gb_text(runs.thirteen.peak_bytes),
    "qlora13_weights": lambda runs: gb_text(rows(runs.thirteen, "base_weights")),
    "qlora13_fits": lambda runs: "it fits" if runs.thirteen.fits else "it does not fit",
    "qlora": lambda runs: gb_text(runs.like(method="qlora").peak_bytes),
    "length": lambda runs: count_text(runs.length),
    "doubled": lambda runs: count_text(2 * runs.length),
    "eager_growth": lambda runs: _times(runs.keeping("eager", doubled=True), runs.keeping("eager")),
    "efficient_growth": lambda runs: _times(runs.keeping("efficient", doubled=True), runs.keeping("efficient")),
    "flash_saving": lambda runs: _percent(runs.keeping("eager") - runs.keeping("efficient"), runs.keeping("eager")),
    "kept_without": lambda runs: gb_text(kept(runs.like(checkpointing="none"))),
    "kept_with": lambda runs: gb_text(kept(runs.like(checkpointing="full"))),
    "peak_without": lambda runs: gb_text(runs.like(checkpointing="none").peak_bytes),
    "peak_with": lambda runs: gb_text(runs.like(checkpointing="full").peak_bytes),
    "batch_more": lambda runs: _more(runs, micro_batch=2 * runs.settings.micro_batch),
    "first_accumulation": lambda runs: _for_twice_the_steps(runs, 1),
    "later_accumulation": lambda runs: _for_twice_the_steps(runs, 2),
    "gpus": lambda runs: count_text(GPUS),
    "zero3": lambda runs: gb_text(runs.under("zero3").peak_bytes),
    "zero3_share": lambda runs: _percent(runs.under("zero3").peak_bytes, runs.full.peak_bytes),
    "fair_share": lambda runs: _percent(1, GPUS),
    "inference": lambda runs: gb_text(runs.served("bf16").peak_bytes),
    "full_ratio": lambda runs: _times(runs.full.peak_bytes, runs.served("bf16").peak_bytes),
    "lora_ratio": lambda runs: _times(runs.like(method="lora").peak_bytes, runs.served("bf16").peak_bytes),
    "qlora_ratio": lambda runs: _times(runs.like(method="qlora").peak_bytes, runs.served("bf16").peak_bytes),
    "resident": lambda runs: gb_text(runs.under("zero2").peak_bytes),
    "offloaded": lambda runs: gb_text(runs.under("zero2", "optimizer").peak_bytes),
    "now": lambda runs: gb_text(runs.now.peak_bytes),
    "reserved_low": lambda runs: gb_text(runs.now.reserved.low),
    "reserved_high": lambda runs: gb_text(runs.now.reserved.high),
}
"""What every name in an answer stands for; amounts in GB (10^9 bytes)."""
