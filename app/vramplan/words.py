"""What terms, values and differences are called."""

from collections.abc import Mapping

from vramplan.checks import Value
from vramplan.fields import BY_NAME, Choice
from vramplan.settings import as_text
from vramplan.units import count_text, counted, gib_text, plain_decimal

TERM_LABELS = {
    "base_weights": "Base weights",
    "adapters": "Adapters",
    "master_weights": "Master weights",
    "gradients": "Gradients",
    "optimizer_states": "Optimizer states",
    "saved_activations": "Saved for backward",
    "active_layer": "Recomputed layer",
    "adapter_activations": "Inside the adapters",
    "logits": "Logits",
    "dequantization": "Dequantization workspace",
    "fixed_allowance": "Fixed allowance",
    "extra_allowance": "Extra allowance",
}
"""What each term of a ledger is called."""

COMPONENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "base_weights": ("Base weights", ("base_weights",)),
    "adapters": ("Adapters", ("adapters",)),
    "master_weights": ("Master weights", ("master_weights",)),
    "gradients": ("Gradients", ("gradients",)),
    "optimizer_states": ("Optimizer states", ("optimizer_states",)),
    "activations": ("Activations", ("saved_activations", "active_layer", "adapter_activations")),
    "logits": ("Logits", ("logits",)),
    "dequantization": ("Dequantization workspace", ("dequantization",)),
    "allowance": ("Fixed and extra allowance", ("fixed_allowance", "extra_allowance")),
}
"""The rows of the component table: label, and the terms that belong to each."""


def value_text(name: str, value: Value) -> str:
    """A setting's value as people read it: 'pure-bf16' -> 'Pure BF16', 2048 -> '2,048'."""
    kind = BY_NAME[name].kind
    if isinstance(kind, Choice):
        return next(option.label for option in kind.options if option.value == as_text(value))
    return count_text(value) if isinstance(value, int) else plain_decimal(value)


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


def fits_text(fits: bool) -> str:
    """The verdict in two words."""
    return "Fits" if fits else "Does not fit"
