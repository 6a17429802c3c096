"""Text as typed becomes typed values, or one sentence per field: which field, what must hold, what came."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from vramplan.errors import FieldError
from vramplan.fields import (
    FIELDS,
    MAX_BUDGET_GIB,
    MIN_BUDGET_GIB,
    Choice,
    ExactDecimal,
    Field,
    WholeNumber,
    limits,
)
from vramplan.units import GIB, UNIT_LABELS, BYTES_PER_UNIT, convert_amount, count_text, plain_decimal

MAX_TYPED_LENGTH = 64
"""Characters of one typed value that are read: the longest exact budget has 26, everything else fewer."""

SHOWN_LENGTH = 32
"""Characters of a rejected value that are repeated to the person who sent it."""

_WHOLE = re.compile(r"[0-9]+")
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?")

Value = str | int | bool | Decimal


@dataclass(frozen=True)
class Checked:
    """What typed text amounts to: values that can be used, errors in field order, and names that do not apply."""

    values: dict[str, Value]
    errors: tuple[FieldError, ...]
    unused: tuple[str, ...]


def check(texts: Mapping[str, str], defaults: Mapping[str, str]) -> Checked:
    """Read every field that applies; a field without text takes its default."""
    values: dict[str, Value] = {}
    errors: list[FieldError] = []
    unused: list[str] = []
    for field in FIELDS:
        given = field.name in texts
        text = texts.get(field.name, defaults[field.name]).strip()
        value, complaint = _read(field, text, values)
        if field.applies(values):
            if complaint:
                errors.append(FieldError(field.name, complaint))
            else:
                values[field.name] = value
        elif field.kept:
            values[field.name] = _read(field, defaults[field.name], values)[0] if complaint else value
            unused += [field.name] if complaint else []
        elif given:
            unused.append(field.name)
    errors += _across(values)
    order = [field.name for field in FIELDS]
    return Checked(values, tuple(sorted(errors, key=lambda error: order.index(error.field))), tuple(unused))


def came(text: str) -> str:
    """How a rejected value is repeated in a sentence: shortened, and without control characters."""
    if not text:
        return "nothing was entered"
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[: SHOWN_LENGTH + 1])
    if len(shown) > SHOWN_LENGTH:
        shown = shown[:SHOWN_LENGTH] + "…"
    return f"got “{shown}”"


def _read(field: Field, text: str, values: Mapping[str, Value]) -> tuple[Value, str]:
    """The value of one text and no complaint, or the text and a complaint."""
    if isinstance(field.kind, Choice):
        return _choice(field, text)
    if isinstance(field.kind, WholeNumber):
        return _whole_number(field, text, *limits(field, values))
    return _exact_decimal(field, text)


def _choice(field: Field, text: str) -> tuple[Value, str]:
    names = [option.value for option in field.kind.options]
    if text not in names:
        return text, f"{field.label} must be one of {', '.join(names)}; {came(text)}. Choose one of these."
    return {"true": True, "false": False}.get(text, text), ""


def _whole_number(field: Field, text: str, minimum: int, maximum: int) -> tuple[Value, str]:
    if len(text) <= MAX_TYPED_LENGTH and _WHOLE.fullmatch(text) and minimum <= int(text) <= maximum:
        return int(text), ""
    span = f"from {count_text(minimum)} to {count_text(maximum)}"
    return text, f"{field.label} must be a whole number {span}; {came(text)}. Enter digits only, such as {minimum}."


def _exact_decimal(field: Field, text: str) -> tuple[Value, str]:
    kind: ExactDecimal = field.kind
    readable = len(text) <= MAX_TYPED_LENGTH and _DECIMAL.fullmatch(text)
    if field.name == "budget":
        if readable:
            return Decimal(text), ""
        return text, f"{field.label} must be a plain decimal number; {came(text)}. Enter digits only, such as 24 or 23.5."
    if readable and Decimal(kind.minimum) <= Decimal(text) <= Decimal(kind.maximum):
        return Decimal(text), ""
    unit = f" {kind.unit}" if kind.unit.isalpha() else ""
    span = f"from {kind.minimum} to {kind.maximum}{unit}"
    return text, f"{field.label} must be a plain decimal number {span}; {came(text)}. Enter a number such as 1 or 1.5."


def _across(values: Mapping[str, Value]) -> list[FieldError]:
    """Complaints about values that are fine alone but not together."""
    errors = []
    heads, kv_heads = values.get("num_attention_heads"), values.get("num_kv_heads")
    if heads and kv_heads and heads % kv_heads:
        message = (
            f"Key/value heads must divide the {count_text(heads)} attention heads evenly; got “{kv_heads}”. "
            f"Enter a divisor of {count_text(heads)}."
        )
        errors.append(FieldError("num_kv_heads", message))
    amount, unit = values.get("budget"), values.get("budget_unit")
    if amount is not None and unit is not None:
        exact = amount * BYTES_PER_UNIT[unit]
        if not MIN_BUDGET_GIB * GIB <= exact <= MAX_BUDGET_GIB * GIB:
            errors.append(FieldError("budget", _budget_complaint(amount, unit)))
    return errors


def _budget_complaint(amount: Decimal, unit: str) -> str:
    low, high = (
        f"{convert_amount(amount=Decimal(limit), from_unit='gib', to_unit=unit):,f}"
        for limit in (MIN_BUDGET_GIB, MAX_BUDGET_GIB)
    )
    label = UNIT_LABELS[unit]
    typed = came(plain_decimal(amount))
    return f"Budget per GPU must be a plain decimal number from {low} to {high} {label}; {typed}. Enter a budget in that range."
