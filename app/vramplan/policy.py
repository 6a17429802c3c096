"""What a run really uses: what was set, else what its training stack does."""

from dataclasses import dataclass
from functools import lru_cache

from vramplan.settings import Settings
from vramplan.stacks import Stack, stacks

AS_THE_STACK = "stack"
"""The value of a setting that is left to the stack."""


@dataclass(frozen=True)
class Policy:
    """Every choice that shapes a training step, decided. `assumed`: names of the stack's facts that decided something."""

    autocast: bool
    trainable_precision: str
    base_precision: str
    adapter_precision: str
    kbit_preparation: str
    loss: str
    logits_release: str
    chunked_release: str
    optimizer: str
    reentrant: bool
    outputs_kept: bool
    norm_kernel: str
    mlp_kernel: str
    adapter_kernel: str
    repeats_heads: bool
    assumed: tuple[str, ...]


@lru_cache(maxsize=256)
def _decided(
    stack: str, method: str, trainable: str, base: str, preparation: str, loss: str, optimizer: str, autocast: str, kind: str, kernels: str
) -> Policy:
    chosen = stacks()[stack]
    assumed = ["outputs_kept"]

    def decide(setting: str, fact: str) -> str | bool:
        if setting != AS_THE_STACK:
            return setting
        assumed.append(fact)
        return chosen[fact]

    half = {"mixed-bf16": "fp32", "pure-bf16": "bf16"}.get(trainable, AS_THE_STACK)
    adapters = "quantized_adapter_precision" if method == "qlora" else "adapter_precision"
    trained = decide(half, "weight_precision" if method == "full" else adapters)
    if method != "full":
        base = decide(base, "quantized_base_precision" if method == "qlora" else "base_precision")
    preparation = decide(preparation, "kbit_preparation") if method == "qlora" else "none"
    loss = decide(loss, "loss")
    if loss in ("logits", "triton"):
        assumed.append("logits_release")
    if loss == "chunked":
        assumed.append("chunked_release")
    if method != "full":
        assumed.append("adapter_kernel")
    kernels = {"plain": "transformers"}.get(kernels, kernels)
    return Policy(
        autocast=decide(autocast, "autocast") in (True, "on"),
        trainable_precision="mixed-bf16" if trained == "fp32" else "pure-bf16",
        base_precision=trained if method == "full" else base,
        adapter_precision=trained,
        kbit_preparation=preparation,
        loss=loss,
        logits_release=chosen["logits_release"],
        chunked_release=chosen["chunked_release"],
        optimizer=decide(AS_THE_STACK if optimizer == "adamw" else optimizer, "adamw"),
        reentrant=decide(kind, "checkpoint_kind") == "reentrant",
        outputs_kept=chosen["outputs_kept"],
        norm_kernel=decide(kernels, "norm_kernel"),
        mlp_kernel=decide(kernels, "mlp_kernel"),
        adapter_kernel=chosen["adapter_kernel"],
        repeats_heads=chosen["repeats_heads"],
        assumed=tuple(assumed),
    )


def policy(settings: Settings) -> Policy:
    """The choices of one run."""
    return _decided(
        settings.stack,
        settings.method,
        settings.trainable_precision,
        settings.base_precision,
        settings.kbit_preparation,
        settings.loss,
        settings.optimizer,
        settings.autocast,
        settings.checkpoint_kind,
        settings.layer_kernels,
    )


def stack_of(settings: Settings) -> Stack:
    """The training stack of one run."""
    return stacks()[settings.stack]
