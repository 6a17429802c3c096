"""What a run really uses: what was set, else what its training stack does."""

from dataclasses import dataclass
from functools import lru_cache

from vramplan.settings import Settings
from vramplan.stacks import Stack, stacks

AS_THE_STACK = "stack"
"""The value of a setting that is left to the stack."""

LINGERING = "lingering"
"""What a loop keeps of its outputs where it keeps them, and their graph, until the next micro-batch has given new ones."""

WHERE_FLOAT32 = "where-float32"
"""A stack's autocast where it comes with float32 weights, and with these alone."""


REFERENCES = {"full": "copy", "lora": "shared", "qlora": "shared"}
"""What DPO compares with, by method, where nobody says: a second model, or the base model with its adapters switched off.
Source: trl 0.24.0 to 1.16.0, trainer/dpo_trainer.py, __init__ (ref_model)."""


@dataclass(frozen=True)
class Policy:
    """Every choice that shapes a training step, decided. `assumed`: names of the stack's facts that decided something.

    loss: under DPO the kind of loss on pairs, "none" where the stack has none; nothing for a reward model. reference: what
    DPO compares with, else nothing.
    """

    autocast: bool
    trainable_precision: str
    base_precision: str
    adapter_precision: str
    kbit_preparation: str
    loss: str
    logits_release: str
    chunked_release: str
    split_release: str
    unsloth_release: str
    optimizer: str
    optimizer_step: str
    reentrant: bool
    checkpoint_offload: str
    rest_precision: str
    outputs_kept: bool
    norm_kernel: str
    mlp_kernel: str
    adapter_kernel: str
    repeats_heads: bool
    model_code: str
    quantized_linear: str
    quantized_head: bool
    lingers: bool
    objective: str
    reference: str
    assumed: tuple[str, ...]


@lru_cache(maxsize=256)
def _decided(
    stack: str, method: str, trainable: str, base: str, preparation: str, loss: str, optimizer: str, autocast: str, kind: str, kernels: str, update: str,
    offloads: bool, objective: str, reference: str,
) -> Policy:
    chosen = stacks()[stack]
    assumed = ["model_code", "outputs_kept"]

    def by_method(fact: str) -> str:
        """The name of the stack's own fact for full training, or for a quantised base, where it has one."""
        own = {"full": f"full_{fact}", "qlora": f"quantized_{fact}"}.get(method, fact)
        return own if own in chosen.facts else fact

    def decide(setting: str, fact: str) -> str | bool:
        if setting != AS_THE_STACK:
            return setting
        assumed.append(fact)
        return chosen[fact]

    half = {"mixed-bf16": "fp32", "pure-bf16": "bf16"}.get(trainable, AS_THE_STACK)
    trained = decide(half, "weight_precision" if method == "full" else by_method("adapter_precision"))
    if method != "full":
        base = decide(base, by_method("base_precision"))
    preparation = decide(preparation, "kbit_preparation") if method == "qlora" else "none"
    if objective == "reward":
        loss = "score"
    else:
        loss = decide(loss, "pair_loss" if objective == "dpo" else by_method("loss"))
    if loss in ("logits", "triton"):
        assumed.append("logits_release")
    if loss in ("chunked", "split"):
        assumed.append(f"{loss}_release")
    if loss == "unsloth":
        assumed.append("unsloth_release")
    if offloads:
        assumed.append("checkpoint_offload")
    if method != "full":
        assumed.append("adapter_kernel")
    if method == "qlora":
        assumed += ["quantized_linear", "quantized_head"]
    in_float32 = "fp32" in (trained, base)
    kernels = {"plain": "transformers"}.get(kernels, kernels)
    return Policy(
        autocast=decide(autocast, "autocast") in (True, "on", WHERE_FLOAT32 if in_float32 else True),
        trainable_precision="mixed-bf16" if trained == "fp32" else "pure-bf16",
        base_precision=trained if method == "full" else base,
        adapter_precision=trained,
        kbit_preparation=preparation,
        loss=loss,
        logits_release=chosen["logits_release"],
        chunked_release=chosen["chunked_release"],
        split_release=chosen["split_release"],
        unsloth_release=chosen["unsloth_release"],
        checkpoint_offload=chosen["checkpoint_offload"],
        rest_precision=decide(AS_THE_STACK, "rest_precision") if method == "full" and half == AS_THE_STACK else "same",
        optimizer=decide(AS_THE_STACK if optimizer == "adamw" else optimizer, by_method("adamw")),
        optimizer_step=decide(update, by_method("optimizer_step")),
        reentrant=decide(kind, "checkpoint_kind") == "reentrant",
        outputs_kept=chosen["outputs_kept"] in (True, LINGERING),
        norm_kernel=decide(kernels, "norm_kernel"),
        mlp_kernel=decide(kernels, "mlp_kernel"),
        adapter_kernel=chosen["adapter_kernel"],
        repeats_heads=chosen["repeats_heads"],
        model_code=chosen["model_code"],
        quantized_linear=chosen["quantized_linear"],
        quantized_head=chosen["quantized_head"],
        lingers=chosen["outputs_kept"] == LINGERING,
        objective=objective,
        reference=(REFERENCES[method] if reference == AS_THE_STACK else reference) if objective == "dpo" else "",
        assumed=tuple(assumed),
    )


def policy(settings: Settings) -> Policy:
    """The choices of one run. A model that starts from nothing is made in float32, and trained like any other in full.

    Source: transformers 5.24.0, modeling_utils.py, _from_config (a configuration without a type gives torch's own).
    """
    from_scratch = settings.method == "pretraining"
    return _decided(
        settings.stack,
        "full" if from_scratch else settings.method,
        "mixed-bf16" if from_scratch else settings.trainable_precision,
        settings.base_precision,
        settings.kbit_preparation,
        settings.loss,
        settings.optimizer,
        settings.autocast,
        settings.checkpoint_kind,
        settings.layer_kernels,
        settings.optimizer_step,
        settings.checkpointing == "offloaded",
        settings.objective,
        settings.reference,
    )


def stack_of(settings: Settings) -> Stack:
    """The training stack of one run."""
    return stacks()[settings.stack]
