"""What terms, values and differences are called."""

from collections.abc import Mapping

from vramplan.catalogue import cards, gpu_classes, presets
from vramplan.checks import Value
from vramplan.fields import BY_NAME
from vramplan.kinds import Choice, Layers, Measured, Option, Targets
from vramplan.settings import as_text
from vramplan.stacks import stacks
from vramplan.units import count_text, counted, gib_text, plain_decimal

TERM_LABELS = {
    "base_weights": "Base weights",
    "reference_weights": "Reference model",
    "adapters": "Adapters",
    "gathered_weights": "Gathered weights",
    "master_weights": "Master weights",
    "gradients": "Gradients",
    "gradient_floor": "Up to the floor of gradients",
    "gradient_buckets": "Buckets of gradients",
    "reduction_buffers": "Gradients being reduced",
    "flat_gradients": "Gradients in one piece",
    "optimizer_states": "Optimizer states",
    "optimizer_scratch": "Inside the optimizer step",
    "kv_cache": "Keys and values",
    "saved_activations": "Saved for backward",
    "activation_floor": "Up to the floor of activations",
    "active_layer": "Layer in work",
    "layer_output": "Output of the layer in work",
    "waiting_gradient": "Gradient waiting for the layer",
    "hook_gradients": "Gradients of inputs that FSDP’s hooks keep",
    "adapter_activations": "Inside the adapters",
    "autocast_copies": "Autocast’s 16-bit copies",
    "logits": "Logits and loss",
    "outputs_kept": "Logits kept by the loop",
    "left_behind": "Left by the micro-batch before",
    "embedding_gradient": "Gradient of the embedding",
    "dequantization": "Dequantization workspace",
    "staging": "Buffers for offloaded checkpoints",
    "inputs": "Batch, embeddings, positions and mask",
    "workspace": "cuBLAS workspace",
    "fixed_allowance": "Fixed allowance",
    "extra_allowance": "Extra allowance",
}
"""What each term of a ledger is called."""

HOST_LABELS = {
    "host_checkpoints": "Inputs of the layers",
    "host_master_weights": "Master weights",
    "host_parameters": "Parameters",
    "host_gradients": "Gradients",
    "host_optimizer_states": "Optimizer states",
    "host_loading": "Checkpoint, while it is loaded",
}
"""What each row of host memory is called."""

COMPONENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "base_weights": ("Base weights", ("base_weights", "gathered_weights")),
    "reference": ("Reference model", ("reference_weights",)),
    "adapters": ("Adapters", ("adapters",)),
    "master_weights": ("Master weights", ("master_weights",)),
    "gradients": ("Gradients", ("gradients", "gradient_floor", "embedding_gradient", "gradient_buckets", "reduction_buffers", "flat_gradients")),
    "optimizer_states": ("Optimizer", ("optimizer_states", "optimizer_scratch")),
    "activations": (
        "Activations",
        (
            "saved_activations",
            "activation_floor",
            "staging",
            "active_layer",
            "layer_output",
            "waiting_gradient",
            "hook_gradients",
            "left_behind",
            "adapter_activations",
            "autocast_copies",
        ),
    ),
    "kv_cache": ("Keys and values", ("kv_cache",)),
    "logits": ("Logits and loss", ("logits", "outputs_kept")),
    "dequantization": ("Dequantization workspace", ("dequantization",)),
    "allowance": ("Inputs and workspaces", ("inputs", "workspace", "fixed_allowance", "extra_allowance")),
}
"""The rows of the component table: label, and the terms that belong to each."""

OWN_LABELS = {
    "planning": {"allowance": "Fixed and extra allowance", "optimizer_states": "Optimizer states", "logits": "Logits"},
    "unsloth": {"allowance": "CUDA overhead", "optimizer_states": "Optimizer states"},
    "rules": {"optimizer_states": "Optimizer states"},
}
"""Labels of component rows in an accounting that counts only part of what the row can hold."""

OWN_TERM_LABELS = {
    "planning": {"active_layer": "Recomputed layer", "logits": "Logits"},
    "unsloth": {"gradients": "By its formula", "saved_activations": "By its formula", "fixed_allowance": "CUDA overhead"},
}
"""The same for terms."""

WRITTEN_OUT = (
    "Without autocast no fused kernel takes FP32 queries with grouped heads, so attention stores the scores of every pair of tokens."
)
"""Why a run with a memory-efficient kernel has scores in its memory."""

HEADS_BROADCAST = "No fused kernel takes a key/value head that is broadcast, so attention stores the scores of every pair of tokens."
"""The same for a model that does not call its heads grouped."""

DISTANCES_ADDED = "The model adds distances to attention’s scores, so those of every pair of tokens are stored whatever the kernel."
"""The same for a model whose library has no other attention."""

WITHOUT_KERNELS = {
    "short-convolution": "Convolutions run as PyTorch has them, without the package causal_conv1d, which another kernel would come from.",
    "gated-delta-net": "Delta nets run as PyTorch has them, chunk by chunk, without the packages fla and causal_conv1d, whose kernels keep much less.",
}
"""What is taken as not installed, by what stands in place of attention."""

VERDICTS = {"yes": "Fits", "likely": "Likely fits", "unlikely": "Unlikely to fit", "no": "Does not fit"}
"""What each verdict is called."""

DIFFERENCES = {
    "planning": {
        "base_weights": "Planning counts 16-bit or 4-bit weights; the step counts every tensor in the type the trainer gives it.",
        "reference": "Planning counts next-token training, which compares with no other model.",
        "adapters": "Planning counts 16-bit adapters; the step those the trainer makes, often FP32.",
        "master_weights": "Planning keeps an FP32 copy beside 16-bit weights; under autocast the FP32 parameters are the weights.",
        "gradients": "Planning counts every gradient; the step those that are there at its largest moment, in their own type.",
        "optimizer_states": "Planning counts two moments per trained weight; the step what this optimizer keeps, and needs while it updates.",
        "activations": "Planning takes a fixed number of bytes per token and layer; the step adds up the tensors of this model.",
        "kv_cache": "Training keeps no cache of keys and values.",
        "logits": "Planning counts one FP32 copy of the logits; the step what the loss holds at the largest moment, which may be another.",
        "dequantization": "Planning reserves room for one unpacked weight; in the step it exists only while a layer is in work.",
        "allowance": "Planning adds a round allowance for everything else; the step counts inputs and workspaces, and leaves the rest beside the peak.",
    },
    "unsloth": {
        "base_weights": "Unsloth Studio’s estimate divides 16-bit weights by 3.2 or 3.6 where they are quantised, and leaves small tensors out.",
        "reference": "Unsloth Studio’s estimate has no other model to compare with.",
        "adapters": "Unsloth Studio’s estimate counts adapters in 16 bits.",
        "master_weights": "Unsloth Studio’s estimate has no master weights; its bytes for the optimizer stand for them.",
        "gradients": "Unsloth Studio’s estimate counts every gradient in 16 bits, and never less than a share of the weights.",
        "optimizer_states": "Unsloth Studio’s estimate takes 4, 6 or 8 bytes per trained weight, fitted to runs, by the optimizer’s name.",
        "activations": "Unsloth Studio’s estimate counts queries, keys, values and two widths of the MLP a layer, of one or two layers with checkpointing.",
        "kv_cache": "Training keeps no cache of keys and values.",
        "logits": "Unsloth Studio’s estimate has no term for logits and loss.",
        "dequantization": "Unsloth Studio’s estimate has no term for unpacked weights.",
        "allowance": "Unsloth Studio’s estimate adds 1.4 GiB for the driver and PyTorch.",
    },
    "rules": {
        "base_weights": "The byte rules take every weight as equally large, scales and what stays unquantised left out.",
        "reference": "The byte rules have no other model to compare with.",
        "adapters": "The byte rules count adapters in 16 bits.",
        "master_weights": "The byte rules keep an FP32 copy beside 16-bit weights; under autocast the FP32 parameters are the weights.",
        "gradients": "The byte rules count every gradient, in 16 bits; the step those that are there at its largest moment, in their own type.",
        "optimizer_states": "The byte rules count two moments per trained weight; the step what this optimizer keeps, and needs while it updates.",
        "activations": "The byte rules count the inputs of the layers, or 34 bytes per token and hidden unit; the step adds up the tensors of this model.",
        "kv_cache": "Training keeps no cache of keys and values.",
        "logits": "The byte rules have no term for logits and loss.",
        "dequantization": "The byte rules have no term for unpacked weights.",
        "allowance": "The byte rules add nothing for workspaces, and leave the CUDA context out.",
    },
}
"""Why another accounting and the training step differ, by the accounting and by component."""

DECISIONS = {
    "autocast": "autocast",
    "weight_precision": "type of the weights",
    "base_precision": "type of the base weights",
    "quantized_base_precision": "type of what is not quantised",
    "adapter_precision": "type of the adapters",
    "quantized_adapter_precision": "type of the adapters",
    "kbit_preparation": "preparation of the quantised model",
    "loss": "loss",
    "pair_loss": "loss on pairs",
    "logits_release": "copies of the logits",
    "chunked_release": "type of the head in the chunked loss",
    "adamw": "implementation of AdamW",
    "checkpoint_kind": "kind of checkpointing",
    "outputs_kept": "what the loop keeps",
    "norm_kernel": "norm kernel",
    "mlp_kernel": "MLP kernel",
    "adapter_kernel": "adapter kernel",
    "repeats_heads": "repeated heads",
    "model_code": "model code",
    "quantized_linear": "quantised linear maps",
    "quantized_head": "quantised output head",
    "split_release": "chunks of the logits",
    "full_loss": "loss",
    "quantized_adamw": "implementation of AdamW",
    "full_adamw": "implementation of AdamW",
    "optimizer_step": "when the optimizer steps",
    "full_optimizer_step": "when the optimizer steps",
    "unsloth_release": "rows of the loss",
    "checkpoint_offload": "how checkpoints leave the GPU",
    "rest_precision": "type of norms, embedding and head",
}
"""What each fact of a stack is called."""


PAIR_LOSSES = {
    "logits-dpo-1.14": "log-probabilities from logits, in one kernel",
    "logits-dpo-1.6": "log-probabilities from logits, row by row",
    "logits-dpo-1.0": "log-probabilities from a copy of the logits, row by row",
    "score": "one score a row",
}
"""What the losses are called that no setting names."""

REFERENCES = {
    "copy": "a second model in memory",
    "shared": "the base model, adapters switched off",
    "precomputed": "precomputed log-probabilities",
}
"""What DPO compares with, in a sentence."""


DIVIDES = {
    "zero1": "optimizer states",
    "zero2": "optimizer states and gradients",
    "zero3": "optimizer states, gradients and weights",
    "fsdp1": "optimizer states, gradients and weights",
    "fsdp2": "optimizer states, gradients and weights",
}
"""What each kind of sharding divides. Source: Rajbhandari et al. 2020 (ZeRO), section 5."""

TRAVELS = {
    "zero1": "as much as under DDP: gradients are summed, and each GPU passes on the weights it has updated",
    "zero2": "as much as under DDP: each GPU gets the sum of its part of the gradients, and passes on the weights it has updated",
    "zero3": "half as much again as under DDP: weights are gathered in the forward pass and once more in the backward pass, and gradients are summed in parts",
    "fsdp1": "half as much again as under DDP: weights are gathered in the forward pass and once more in the backward pass, and gradients are summed in parts",
    "fsdp2": "half as much again as under DDP: weights are gathered in the forward pass and once more in the backward pass, and gradients are summed in parts",
}
"""What travels between the GPUs in a step. Source: Rajbhandari et al. 2020 (ZeRO), section 7."""

COSTS = {
    "method": {
        "qlora": "quality: the frozen weights are rounded to a few bits; and time to unpack them",
        "lora": "fewer weights learn",
        "full": "",
        "pretraining": "",
    },
    "quantization": {"": "quality: the frozen weights are rounded to 4 bits", "nf4-double": "a little time: scales are unpacked too"},
    "kbit_preparation": {"norms": "nothing: head and embedding stay as they were saved", "none": "a little quality: norms stay 16 bits"},
    "base_precision": {"bf16": "nothing: frozen weights stay as they were saved"},
    "loss": {"fused-linear": "nothing in quality; needs Liger’s kernels", "stack": "nothing: what the trainer does by itself"},
    "layer_kernels": {"liger": "nothing in quality; needs Liger’s kernels"},
    "reference": {"precomputed": "a pass over the data before training"},
    "optimizer": {
        "adamw-8bit": "a little quality: moments rounded to 8 bits",
        "paged-adamw-8bit": "a little quality: moments rounded to 8 bits; and time where they cross PCIe",
    },
    "trainable_precision": {"pure-bf16": "quality: updates too small for BF16 are lost"},
    "checkpointing": {
        "full": "20 to 30 % more time: every layer runs forward twice",
        "offloaded": "time: 20 to 30 % for running layers twice, and every layer’s input crosses PCIe twice",
    },
    "attention_kernel": {"efficient": "nothing: the same result, sooner"},
    "rank": {"": "fewer weights learn"},
    "adapter_targets": {"": "fewer weights learn"},
    "micro_batch": {"": "time: more accumulation steps for the same effective batch"},
    "gradient_accumulation_steps": {"": "a smaller effective batch"},
    "sequence_length": {"": "longer samples are cut"},
    "served_weights": {"fp32": "", "bf16": "", "fp8": "a little quality", "int8": "a little quality", "int4": "quality: weights rounded to 4 bits"},
    "kv_cache": {"8-bit": "a little quality"},
    "sharding": {"": "more GPUs, and weights and gradients travel between them"},
    "replicas": {"": "time: what is divided travels between the GPUs that there are"},
    "sharded_over": {"": "more GPUs, and more travels between them"},
    "offload": {"": "3 to 5 times the time: states cross PCIe in every step"},
}
"""What a change costs, by setting and value, or by setting alone. Source of the times: Model training VRAM estimator, questions and
answers (recomputation 20 to 30 %, offload 3 to 5 times slower); Chen et al. 2016, section 4 (one more forward pass)."""


def cost_text(change: Mapping[str, Value]) -> str:
    """What a change costs in quality, time or hardware; nothing where it costs none, or is no saving."""
    name, value = next(iter(change.items()))
    name = "replicas" if "replicas" in change else name
    costs = COSTS.get(name, {})
    return costs.get(as_text(value), costs.get("", ""))


def inside(label: str) -> str:
    """A label within a sentence: its first letter small, unless it begins with an abbreviation."""
    return label if label[:2].isupper() else f"{label[:1].lower()}{label[1:]}"


def loss_text(name: str) -> str:
    """What a loss is called."""
    return PAIR_LOSSES.get(name) or value_text("loss", name)


def component_label(accounting: str, name: str) -> str:
    """What a component row is called in an accounting."""
    return OWN_LABELS.get(accounting, {}).get(name, COMPONENTS[name][0])


def term_label(accounting: str, name: str) -> str:
    """What a term is called in an accounting."""
    return OWN_TERM_LABELS.get(accounting, {}).get(name, TERM_LABELS[name])


def value_text(name: str, value: Value) -> str:
    """A setting's value as people read it: 'pure-bf16' -> 'Pure BF16', 2048 -> '2,048'."""
    kind = BY_NAME[name].kind
    if isinstance(kind, Choice | Targets):
        return next((option.label for option in kind.options if option.value == as_text(value)), as_text(value))
    if isinstance(kind, Layers):
        return value.replace(",", ", ")
    if isinstance(kind, Measured):
        return value or "nothing"
    return count_text(value) if isinstance(value, int) else plain_decimal(value)


def option_groups(name: str) -> tuple[tuple[str, tuple[Option, ...]], ...]:
    """The options of a long list, in groups with a name each; a group without a name stands alone."""
    group_of = {"gpu": _gpu_group, "model": _model_group, "stack": _stack_group}.get(name, lambda option: "")
    groups: dict[str, tuple[Option, ...]] = {}
    for option in BY_NAME[name].kind.options:
        group = group_of(option)
        groups[group] = (*groups.get(group, ()), option)
    return tuple(groups.items())


def _gpu_group(option: Option) -> str:
    if option.value in gpu_classes():
        return "Memory class, as printed on the box"
    if option.value not in cards():
        return ""
    return "Unified memory, the share lent to its GPU" if cards()[option.value].unified else "Card, with the memory its driver reports"


def _model_group(option: Option) -> str:
    """The family: the letters the name starts with."""
    return presets()[option.value].group if option.value in presets() else ""


def _stack_group(option: Option) -> str:
    return "Trainers" if stacks()[option.value].plausible else "Other setups"


def change_text(change: Mapping[str, Value]) -> str:
    """A change of settings as people read it: 'Optimizer: 8-bit AdamW'."""
    return ", ".join(f"{BY_NAME[name].label}: {value_text(name, value)}" for name, value in change.items())


def difference_text(difference: int) -> str:
    """How a peak differs from the current one: 'saves 0.23 GiB', 'adds 7.58 GiB' or 'no change'."""
    if difference == 0:
        return "no change"
    verb = "saves" if difference < 0 else "adds"
    return f"{verb} {amount_text(abs(difference))}"


def amount_text(count: int) -> str:
    """A positive amount of memory to two decimals of GiB, or in bytes where that would read as nothing."""
    text = gib_text(count)
    return f"{text} GiB" if any(char in "123456789" for char in text) else counted(count, "byte")


def verdict_text(verdict: str) -> str:
    """The verdict in a few words."""
    return VERDICTS[verdict]


def moment_text(name: str) -> str:
    """A moment as the start of a sentence or a row."""
    return f"{name[0].upper()}{name[1:]}"
