"""The limits of the numbers a setting takes, which other settings may narrow."""

from collections.abc import Mapping
from decimal import Decimal

from vramplan.catalogue import presets
from vramplan.fields import MAX_CUSTOM_SEQUENCE_LENGTH
from vramplan.architecture import NO_LAYERS
from vramplan.kinds import Field, Layers, Measured, WholeNumber
from vramplan.units import UNIT_LABELS, convert_amount, count_text


def max_sequence_length(values: Mapping[str, object]) -> int:
    """Longest sequence length for the chosen model, in tokens."""
    preset = presets().get(str(values.get("model")))
    return preset.max_sequence_length if preset else MAX_CUSTOM_SEQUENCE_LENGTH


def limits(field: Field, values: Mapping[str, object]) -> tuple[int, int]:
    """Smallest and largest whole number a WholeNumber field takes, given the other values."""
    maximum = max_sequence_length(values) if field.kind.model_caps else field.kind.maximum
    return field.kind.minimum, maximum


def decimal_limits(field: Field, values: Mapping[str, object]) -> tuple[Decimal, Decimal, str]:
    """Smallest and largest decimal an ExactDecimal field takes, and their unit, given the other values."""
    low, high, unit = Decimal(field.kind.minimum), Decimal(field.kind.maximum), field.kind.unit
    if not field.kind.unit_field:
        return low, high, unit
    typed_in = values.get(field.kind.unit_field)
    typed_in = typed_in if typed_in in UNIT_LABELS else "gib"
    low, high = (convert_amount(amount=limit, from_unit="gib", to_unit=typed_in) for limit in (low, high))
    return low, high, UNIT_LABELS[typed_in]


def range_text(field: Field, values: Mapping[str, object]) -> str:
    """What a number field takes, in short: '1 to 131,072 tokens'."""
    if isinstance(field.kind, WholeNumber):
        minimum, maximum = limits(field, values)
        return f"{count_text(minimum)} to {count_text(maximum)} {field.kind.unit}".strip()
    if isinstance(field.kind, Layers):
        return f"numbers of layers from 0, or {NO_LAYERS}"
    if isinstance(field.kind, Measured):
        return "amounts in bytes, such as allocated.13207024640, or nothing"
    low, high, unit = decimal_limits(field, values)
    return f"{low:,f} to {high:,f} {unit}".strip()
