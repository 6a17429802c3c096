"""The configurations that are traced: groups that each vary a few settings and leave the rest at their defaults.

Their order is by a hash of the id, so that a run that is stopped early has covered every group.
"""

import hashlib
from collections.abc import Iterator
from itertools import product

from .configurations import Configuration, identify
from .models import SHAPES

ATTENTION = "q,k,v,o"
MLP = "gate,up,down"
ALL_LINEAR = f"{ATTENTION},{MLP}"
LORA = {"method": "lora", "adapter_dtype": "fp32", "rank": 16, "lora_dropout": 0.0}
QLORA = LORA | {"method": "qlora", "quantization": "nf4-double", "kbit_preparation": "peft"}
TRL_QLORA = QLORA | {"kbit_preparation": "none", "adapter_dtype": "bf16"}
"""As TRL 1.0 and later make it: no preparation, trained parameters in 16 bits."""
FULL = {"method": "full"}
MIXED = FULL | {"load_dtype": "fp32"}
FUSED_LOSS = {"loss": "fused-linear"}
CHECKPOINTING = ({"checkpointing": "full"}, {"checkpointing": "none"})
SMALL = ("llama-3.2-1b", "qwen2.5-0.5b", "qwen3-0.6b", "smollm2-360m")
OTHER_KINDS = tuple(model for model, shape in SHAPES.items() if "traits" in shape)
WRITES_SCORES_OUT = ("bloom-560m", "gpt-oss-20b")
"""Their only attention, or the one a run has unless it asks for another (transformers 5.24.0, models/bloom/modeling_bloom.py;
models/gpt_oss/modeling_gpt_oss.py, _supports_sdpa)."""
MIXES = tuple(model for model in OTHER_KINDS if "mixer" in SHAPES[model]["traits"])
"""Models some of whose layers have something else in place of attention."""
KEEPS_ITS_LINEAR_LAYERS = ("falcon-7b",)
"""A subclass of nn.Linear is not quantised (transformers 5.24.0, integrations/bitsandbytes.py, replace_with_bnb_linear)."""
LARGE = ("llama-3.1-8b", "mistral-7b-v0.3", "qwen2.5-7b", "qwen3-8b")


def core() -> Iterator[Configuration]:
    """Every method with and without checkpointing, flash and eager attention, on small models."""
    for model, checkpointing in product(SMALL, CHECKPOINTING):
        place = {"model": model} | checkpointing
        yield identify(**MIXED | place)
        yield identify(**FULL | place, optimizer="adamw-foreach")
        yield identify(**LORA | place, targets=ATTENTION)
        yield identify(**LORA | place, targets=ALL_LINEAR)
        yield identify(**LORA | place, targets=ALL_LINEAR, attention="eager", sequence_length=1024)


def models() -> Iterator[Configuration]:
    """Every model once per method."""
    for model, shape in SHAPES.items():
        if model in OTHER_KINDS:
            continue
        place = {"model": model, "attention": "eager" if "attention_softcap" in shape else "flash"}
        yield identify(**MIXED | place, sequence_length=1024)
        yield identify(**LORA | place, targets=ALL_LINEAR, checkpointing="none", sequence_length=2048)
        yield identify(**QLORA | place, targets=ALL_LINEAR, sequence_length=2048, micro_batch=2)
        yield identify(**LORA | place, targets="q,v", sequence_length=4096)


def sizes() -> Iterator[Configuration]:
    """Sequence lengths from 256 to 65,536 and micro-batches from 1 to 16."""
    lengths = [(1, length) for length in (256, 512, 1024, 4096, 8192, 16384, 32768, 65536)]
    batches = [(batch, 512) for batch in (2, 4, 8, 16)] + [(4, 4096), (2, 8192)]
    for micro_batch, sequence_length in lengths + batches:
        size = {"micro_batch": micro_batch, "sequence_length": sequence_length, "model": "llama-3.2-1b"}
        yield identify(**LORA | size, targets=ATTENTION)
        yield identify(**LORA | FUSED_LOSS | size, targets=ALL_LINEAR)
        yield identify(**FULL | FUSED_LOSS | size)


def ranks() -> Iterator[Configuration]:
    """Ranks from 4 to 256, fp32 and bf16 adapters; the loss is small so that a layer is the peak."""
    for rank, adapter_dtype in product((4, 8, 32, 64, 128, 256), ("fp32", "bf16")):
        place = {"model": "qwen2.5-1.5b", "rank": rank, "adapter_dtype": adapter_dtype}
        yield identify(**LORA | FUSED_LOSS | place, targets=ALL_LINEAR)
    for rank, checkpointing in product((4, 256), CHECKPOINTING):
        yield identify(**LORA | FUSED_LOSS | {"rank": rank} | checkpointing, model="smollm2-135m", targets=ALL_LINEAR)


def targets() -> Iterator[Configuration]:
    """Subsets of the linear layers; head and embedding with plain logits."""
    subsets = ("q", "q,v", "k,v", "o", "down", "gate,up", MLP, ATTENTION, ALL_LINEAR)
    for subset, checkpointing in product(subsets, CHECKPOINTING):
        yield identify(**LORA | FUSED_LOSS | checkpointing, model="smollm2-360m", targets=subset)
        yield identify(**LORA | FUSED_LOSS | checkpointing, model="qwen2.5-0.5b", targets=subset, sequence_length=4096)
    for subset, model in product(("q,v", "gate,up", ATTENTION, ALL_LINEAR), ("phi-3.5-mini", "qwen3-0.6b")):
        yield identify(**LORA | FUSED_LOSS, model=model, targets=subset, sequence_length=4096)
    for extra, model in product(("lm_head", "embed", "lm_head,embed"), ("llama-3.2-1b", "qwen2.5-0.5b")):
        yield identify(**LORA, model=model, targets=f"{ALL_LINEAR},{extra}")
    for extra in ("lm_head", "embed"):
        yield identify(**LORA, model="llama-2-7b", targets=f"{ATTENTION},{extra}")


def dropouts() -> Iterator[Configuration]:
    """Adapter dropout, which keeps masks and dropped copies."""
    for dropout, subset, checkpointing in product((0.05, 0.1), (ATTENTION, ALL_LINEAR), CHECKPOINTING):
        place = {"model": "smollm2-360m", "lora_dropout": dropout, "targets": subset} | FUSED_LOSS | checkpointing
        yield identify(**LORA | place)
        yield identify(**QLORA | place)
    for adapter_dtype in ("fp32", "bf16"):
        place = {"model": "llama-3.2-1b", "lora_dropout": 0.05, "targets": ALL_LINEAR, "adapter_dtype": adapter_dtype}
        yield identify(**LORA | FUSED_LOSS | place, micro_batch=4)


def optimizers() -> Iterator[Configuration]:
    """Every optimizer with every kind of trainable weight."""
    from .optimizers import FACTORIES

    for optimizer in FACTORIES:
        place = {"model": "qwen2.5-0.5b", "optimizer": optimizer, "sequence_length": 1024} | FUSED_LOSS
        yield identify(**FULL | place)
        yield identify(**MIXED | place)
        yield identify(**LORA | place, targets=ALL_LINEAR)
    for optimizer in ("adamw-foreach", "adamw-8bit", "adafactor", "sgd-momentum"):
        yield identify(**FULL, model="llama-2-7b", optimizer=optimizer, sequence_length=1024)


def losses() -> Iterator[Configuration]:
    """Every loss with frozen and trained heads of both dtypes, one row and two."""
    from .losses import LOSSES

    for loss, micro_batch in product(("logits", *LOSSES), (1, 4)):
        place = {"model": "llama-3.2-1b", "loss": loss, "micro_batch": micro_batch, "sequence_length": 2048}
        yield identify(**FULL | place)
        yield identify(**MIXED | place)
        yield identify(**LORA | place, targets=ATTENTION)
        yield identify(**QLORA | place, targets=ATTENTION)
    for loss in ("logits", *LOSSES):
        yield identify(**LORA, model="mistral-7b-v0.3", loss=loss, targets=ATTENTION, micro_batch=2)


def attentions() -> Iterator[Configuration]:
    """The three attention kinds on models that group heads and models that do not."""
    kinds = ("flash", "eager", "expanded")
    for attention, model, checkpointing in product(kinds, ("smollm2-135m", "qwen3-0.6b", "gemma-3-1b"), CHECKPOINTING):
        place = {"model": model, "attention": attention} | checkpointing
        yield identify(**LORA | FUSED_LOSS | place, targets=ATTENTION)
        yield identify(**FULL | FUSED_LOSS | place, sequence_length=1024, micro_batch=2)
    for attention, sequence_length in product(kinds, (1024, 4096)):
        place = {"attention": attention, "sequence_length": sequence_length}
        yield identify(**LORA | FUSED_LOSS | place, model="llama-2-7b", targets=ATTENTION)
        yield identify(**QLORA | FUSED_LOSS | place, model="qwen2.5-1.5b", targets=ATTENTION)
        yield identify(**MIXED | FUSED_LOSS | place, model="qwen2.5-0.5b")


def precisions() -> Iterator[Configuration]:
    """Load dtype, autocast, adapter dtype, quantisation and k-bit preparation."""
    for load_dtype, autocast, checkpointing in product(("fp32", "bf16"), ("bf16", "none"), CHECKPOINTING):
        place = {"model": "smollm2-360m", "load_dtype": load_dtype, "autocast": autocast} | checkpointing
        yield identify(**FULL | place)
        for adapter_dtype in ("fp32", "bf16"):
            yield identify(**LORA | place | {"adapter_dtype": adapter_dtype}, targets=ALL_LINEAR)
    kinds = product(("nf4-double", "nf4", "int8"), ("peft", "norms", "none"), CHECKPOINTING)
    for quantization, preparation, checkpointing in kinds:
        place = {"quantization": quantization, "kbit_preparation": preparation, "model": "llama-3.2-1b"}
        yield identify(**QLORA | place | checkpointing, targets=ALL_LINEAR)
    for preparation, adapter_dtype in product(("peft", "norms", "none"), ("fp32", "bf16")):
        place = {"kbit_preparation": preparation, "adapter_dtype": adapter_dtype, "model": "smollm2-1.7b"}
        yield identify(**QLORA | FUSED_LOSS | place, targets=ATTENTION, sequence_length=4096)
    yield identify(**QLORA, model="llama-2-7b", autocast="none", targets=ATTENTION)
    yield identify(**QLORA, model="llama-3.2-1b", autocast="none", targets=ATTENTION, sequence_length=1024)


def accumulations() -> Iterator[Configuration]:
    """Four micro-batches per step, tied and untied heads."""
    for model, checkpointing in product(("qwen2.5-0.5b", "llama-3.2-1b"), CHECKPOINTING):
        place = {"model": model, "gradient_accumulation_steps": 4} | checkpointing
        yield identify(**FULL | place)
        yield identify(**MIXED | FUSED_LOSS | place, sequence_length=512)
        yield identify(**LORA | place, targets=ATTENTION)
    for method in (FULL, MIXED):
        yield identify(**method, model="llama-2-7b", gradient_accumulation_steps=4, sequence_length=512)
    yield identify(**QLORA, model="mistral-7b-v0.3", gradient_accumulation_steps=4, targets=ALL_LINEAR)


def large() -> Iterator[Configuration]:
    """7 and 8 billion parameters at full depth."""
    for model in LARGE:
        place = {"model": model}
        yield identify(**LORA | FUSED_LOSS | place, targets=ALL_LINEAR, sequence_length=8192)
        yield identify(**LORA | FUSED_LOSS | place, targets=ATTENTION, checkpointing="none", sequence_length=1024)
        yield identify(**QLORA | {"kbit_preparation": "none"} | place, targets=ATTENTION, sequence_length=8192)
        yield identify(**FULL | place, optimizer="adamw-8bit", sequence_length=4096)
        yield identify(**FULL | FUSED_LOSS | place, optimizer="paged-adamw-8bit", micro_batch=4)


def attention_maps(model: str) -> str:
    """The linear maps of a model's attention."""
    options = SHAPES[model].get("options", {})
    if "kv_lora_rank" not in options:
        return ATTENTION
    return "q,kv_a,kv_b,o" if options["q_lora_rank"] == "none" else "q_a,q_b,kv_a,kv_b,o"


def families() -> Iterator[Configuration]:
    """Decoders of other kinds than Llama's: every method with and without checkpointing, and one row whose peak is a layer."""
    for model, checkpointing in product((*OTHER_KINDS, "granite-3-2b"), CHECKPOINTING):
        kernel = {"attention": "eager", "sequence_length": 512} if model in WRITES_SCORES_OUT else {"sequence_length": 1024}
        place = {"model": model, "micro_batch": 2} | kernel | checkpointing
        attention = attention_maps(model)
        every = f"{attention},{MLP},in,out" if model in MIXES else f"{attention},{MLP}"
        yield identify(**FULL | place)
        yield identify(**MIXED | place)
        yield identify(**LORA | place, targets=every)
        if model not in KEEPS_ITS_LINEAR_LAYERS:
            yield identify(**QLORA | place, targets=every)
        yield identify(**LORA | FUSED_LOSS | place, targets=attention)
    for model, checkpointing in product(MIXES, CHECKPOINTING):
        place = {"model": model, "sequence_length": 2048} | FUSED_LOSS | checkpointing
        yield identify(**FULL | place)
        yield identify(**MIXED | place, attention="eager")
        yield identify(**LORA | place, targets="in,out,up")
        yield identify(**QLORA | {"kbit_preparation": "none", "lora_dropout": 0.05} | place, targets=f"{ATTENTION},in,out")
    for model in MIXES:
        place = {"model": model, "sequence_length": 512, "micro_batch": 4}
        yield identify(**FULL | place | FUSED_LOSS, autocast="none", checkpointing="none")
        yield identify(**QLORA | place, targets=f"{ALL_LINEAR},in,out", gradient_accumulation_steps=4)
        yield identify(**FULL | place, optimizer="adamw-8bit", gradient_accumulation_steps=4)
    for model in ("pythia-410m", "phi-1.5", "stablelm-2-1.6b", "olmo2-1b"):
        place = {"model": model, "sequence_length": 512}
        yield identify(**LORA | FUSED_LOSS | place, targets=ALL_LINEAR, attention="eager", checkpointing="none")
        yield identify(**FULL | FUSED_LOSS | place, autocast="none", checkpointing="none", micro_batch=2)
        yield identify(**QLORA | {"kbit_preparation": "none"} | place, targets="up,down", micro_batch=4)
        yield identify(**FULL | place, gradient_accumulation_steps=4, optimizer="adamw-8bit", micro_batch=2)


def latent_attentions() -> Iterator[Configuration]:
    """Attention through narrow maps under other kernels, types, lengths, targets and objectives than each kind of decoder has."""
    for model in ("deepseek-v2-lite", "minicpm3-4b"):
        place = {"model": model, "sequence_length": 512, "targets": attention_maps(model)} | FUSED_LOSS
        for checkpointing in CHECKPOINTING:
            yield identify(**LORA | place | checkpointing, attention="eager")
            yield identify(**QLORA | place | checkpointing | {"quantization": "int8", "sequence_length": 2048})
        yield identify(**LORA | place | {"lora_dropout": 0.05, "sequence_length": 4096}, checkpointing="none")
        yield identify(**TRL_QLORA | place, checkpointing="none", micro_batch=4)
    for model in ("deepseek-v2-lite", "minicpm3-4b", "glm-4.7-flash"):
        place = {"model": model, "sequence_length": 512, "micro_batch": 2} | FUSED_LOSS
        yield identify(**FULL | place, autocast="none", checkpointing="none")
        yield identify(**FULL | place, attention="eager", checkpointing="none")
        yield identify(**MIXED | place | {"sequence_length": 2048}, attention="expanded", checkpointing="none")
    for checkpointing in CHECKPOINTING:
        place = {"model": "minicpm3-4b", "sequence_length": 1024, "objective": "dpo", "loss": "tiled"} | checkpointing
        yield identify(**LORA | place, targets=attention_maps("minicpm3-4b"), reference="shared")
        yield identify(**FULL | place, reference="copy")


def attention_sinks() -> Iterator[Configuration]:
    """Attention with sinks under other lengths, types, targets and optimizers than each kind of decoder has."""
    base = {"model": "gpt-oss-20b", "attention": "eager"}
    for checkpointing in CHECKPOINTING:
        place = base | FUSED_LOSS | checkpointing
        yield identify(**LORA | place, targets=ATTENTION, sequence_length=2048)
        yield identify(**QLORA | {"kbit_preparation": "none", "lora_dropout": 0.05} | place, targets=ATTENTION, sequence_length=1024)
        yield identify(**FULL | place, sequence_length=2048, optimizer="adamw-8bit")
        yield identify(**FULL | place, sequence_length=128, micro_batch=4, autocast="none")
    place = base | {"sequence_length": 512, "micro_batch": 2}
    yield identify(**TRL_QLORA | place | FUSED_LOSS, targets="q,v", checkpointing="none")
    yield identify(**QLORA | place | {"quantization": "int8"}, targets=ATTENTION, gradient_accumulation_steps=4)
    yield identify(**FULL | place, gradient_accumulation_steps=4)


def preferences() -> Iterator[Configuration]:
    """DPO as TRL's releases run it, with every kind of reference; a micro-batch of 1 is two rows."""
    kept, recomputed = {"checkpointing": "none"}, {"checkpointing": "full"}
    place = {"model": "llama-3.2-1b", "sequence_length": 1024, "objective": "dpo", "loss": "tiled"}
    yield identify(**MIXED | place, reference="copy")
    yield identify(**LORA | place, targets=ALL_LINEAR, reference="shared")
    yield identify(**TRL_QLORA | place, targets=ALL_LINEAR, reference="shared")
    yield identify(**FULL | place | kept, reference="copy")
    yield identify(**LORA | place | kept, targets=ALL_LINEAR, reference="shared")
    yield identify(**FULL | place, reference="copy", micro_batch=2)
    yield identify(**TRL_QLORA | place, targets=ALL_LINEAR, reference="shared", micro_batch=2)
    place |= {"model": "qwen2.5-0.5b"}
    for checkpointing in (kept, recomputed):
        yield identify(**MIXED | place | checkpointing, reference="precomputed")
        yield identify(**LORA | place | checkpointing, targets=ATTENTION, reference="copy", load_dtype="fp32")
        yield identify(**TRL_QLORA | place | checkpointing, targets=ATTENTION, reference="shared", load_dtype="fp32")
    yield identify(**LORA | place, targets=ATTENTION, reference="precomputed", load_dtype="fp32", micro_batch=2)
    yield identify(**TRL_QLORA | place, targets=ATTENTION, reference="copy")
    yield identify(**MIXED | place, reference="copy", gradient_accumulation_steps=4)
    place |= {"sequence_length": 512}
    yield identify(**LORA | place | {"model": "llama-3.1-8b"}, targets=ALL_LINEAR, reference="shared", load_dtype="fp32")
    yield identify(**FULL | place | {"model": "qwen2.5-7b"}, optimizer="adamw-8bit", reference="copy")
    for loss in ("logits-dpo-1.0", "logits-dpo-1.6", "logits-dpo-1.14"):
        place |= {"loss": loss}
        yield identify(**MIXED | place, reference="copy")
        yield identify(**LORA | place | kept, targets=ALL_LINEAR, reference="precomputed")
        yield identify(**LORA | place | {"model": "llama-3.2-1b"}, targets=ALL_LINEAR, reference="shared", micro_batch=2)
        yield identify(**TRL_QLORA | place | {"model": "smollm2-360m"}, targets=ATTENTION, reference="shared", load_dtype="fp32")
    place |= {"loss": "tiled", "model": "smollm2-360m"}
    yield identify(**FULL | place | kept, reference="copy", autocast="none")


def rewards() -> Iterator[Configuration]:
    """Reward models: one score a row."""
    place = {"model": "qwen2.5-0.5b", "objective": "reward", "loss": "score", "sequence_length": 1024}
    for checkpointing in CHECKPOINTING:
        yield identify(**MIXED | place | checkpointing)
        yield identify(**LORA | place | checkpointing, targets=ALL_LINEAR)
    yield identify(**TRL_QLORA | place, targets=ATTENTION, load_dtype="fp32", micro_batch=2, checkpointing="none")
    place |= {"model": "llama-3.2-1b"}
    yield identify(**FULL | place, micro_batch=2, checkpointing="none")
    yield identify(**TRL_QLORA | place, targets=ALL_LINEAR)
    yield identify(**LORA | place | {"model": "llama-3.1-8b"}, targets=ALL_LINEAR, load_dtype="fp32")
    yield identify(**MIXED | place | {"model": "gemma-2-2b", "sequence_length": 512}, attention="eager", gradient_accumulation_steps=4)


def liger() -> Iterator[Configuration]:
    """Liger's kernels in the layers: every method with and without checkpointing, and each kind of decoder they are made for."""
    kernels = {"kernels": "liger"}
    for method, checkpointing in product((LORA, QLORA, MIXED, FULL), CHECKPOINTING):
        adapters = {} if method in (MIXED, FULL) else {"targets": ALL_LINEAR}
        yield identify(**method | adapters | kernels | FUSED_LOSS | checkpointing, model="llama-3.2-1b")
    yield identify(**LORA | kernels, model="qwen2.5-1.5b", targets=ATTENTION, sequence_length=1024)
    yield identify(**QLORA | kernels | {"kbit_preparation": "none"}, model="qwen3-0.6b", targets=ALL_LINEAR, checkpointing="none")
    for model, method in product(("gemma-3-1b", "phi-3.5-mini", "olmo2-1b"), (LORA | {"targets": ALL_LINEAR}, FULL)):
        yield identify(**method | kernels | FUSED_LOSS, model=model, checkpointing="none", sequence_length=1024)
    for dropout in (0.05,):
        yield identify(**LORA | kernels | FUSED_LOSS | {"lora_dropout": dropout}, model="llama-3.2-1b", targets=ALL_LINEAR)


def unsloth() -> Iterator[Configuration]:
    """Unsloth's functions and checkpoints, each release's, with and without a quantised base."""
    base, unprepared = {"model": "llama-3.2-1b", "targets": ALL_LINEAR}, QLORA | {"kbit_preparation": "none"}
    for kernels, staged in (("unsloth-2026", "staged"), ("unsloth-2025", "staged-later")):
        for method, checkpointing in product((LORA, unprepared), ("none", "reentrant", staged)):
            yield identify(**method | FUSED_LOSS | base, kernels=kernels, checkpointing=checkpointing)
    place = FUSED_LOSS | {"kernels": "unsloth-2026"}
    yield identify(**LORA | place, model="llama-3.2-1b", targets=ATTENTION, checkpointing="none", sequence_length=4096)
    yield identify(**LORA | place, model="qwen2.5-1.5b", targets=ALL_LINEAR, checkpointing="none")
    yield identify(**unprepared | place, model="qwen3-0.6b", targets=ALL_LINEAR, checkpointing="staged", micro_batch=2)
    yield identify(**unprepared | place, model="smollm2-1.7b", targets=ALL_LINEAR, checkpointing="staged", sequence_length=4096)
    place |= {"loss": "unsloth", "checkpointing": "staged", "model": "llama-3.2-1b"}
    yield identify(**unprepared | place | {"rank": 64}, targets=ALL_LINEAR, micro_batch=2)
    yield identify(**unprepared | place, targets=ALL_LINEAR, optimizer="adamw-8bit", gradient_accumulation_steps=4)


def axolotl() -> Iterator[Configuration]:
    """Axolotl's functions with the model's own norms, and what LLaMA-Factory and Axolotl offload."""
    base = {"model": "llama-3.2-1b", "targets": ALL_LINEAR, "kernels": "axolotl"} | FUSED_LOSS
    for method, checkpointing in product((LORA, QLORA | {"kbit_preparation": "none"}), ("none", "reentrant", "offloaded")):
        yield identify(**method | base, checkpointing=checkpointing)
    yield identify(**LORA | base | {"model": "qwen2.5-1.5b", "rank": 64}, checkpointing="none", sequence_length=1024)


def forms_of_checkpointing() -> Iterator[Configuration]:
    """The reentrant form, and checkpoints in host memory, with the model's own kernels."""
    for method, checkpointing in product((LORA, QLORA, MIXED, FULL), ("reentrant", "offloaded")):
        adapters = {} if method in (MIXED, FULL) else {"targets": ALL_LINEAR}
        yield identify(**method | adapters | FUSED_LOSS, model="qwen2.5-0.5b", checkpointing=checkpointing, sequence_length=4096)


def row_losses() -> Iterator[Configuration]:
    """Unsloth's loss on small and large cards, and one without scores."""
    for loss, method in product(("unsloth", "unsloth-80", "cut"), (FULL, LORA | {"targets": ATTENTION})):
        yield identify(**method, model="llama-3.2-1b", loss=loss, micro_batch=4)
        yield identify(**method, model="qwen2.5-0.5b", loss=loss, sequence_length=4096, load_dtype="fp32")


GROUPS = (
    core, models, sizes, ranks, targets, dropouts, optimizers, losses, attentions, precisions, accumulations, large,
    families, latent_attentions, attention_sinks, preferences, rewards, liger, unsloth, axolotl,
    forms_of_checkpointing, row_losses,
)  # fmt: skip


def all_configurations() -> list[Configuration]:
    """Every group's configurations, each once, in the order of a hash of the id."""
    found = {configuration.id: configuration for group in GROUPS for configuration in group()}
    return sorted(found.values(), key=lambda configuration: hashlib.sha256(configuration.id.encode()).digest())


CONFIGURATIONS = all_configurations()
