"""Several values of a setting in one text, as a sweep takes them: 1:64, 512:131072:*2, 8,16,32 or full,lora,qlora."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from vramplan.checks import came, complaint
from vramplan.errors import FieldError, SettingsError
from vramplan.fields import BY_NAME
from vramplan.kinds import Choice, ExactDecimal, Field, Targets, WholeNumber
from vramplan.units import count_text, plain_decimal

MOST_VALUES = 10_000_000
"""Values of one setting at the most."""

EXAMPLES = {WholeNumber: "1:64, 512:131072:*2 or 8,16,32", ExactDecimal: "0:1:0.25, 1:64:*2 or 0,0.1"}
"""What ranges look like."""


def several(field: Field, text: str, texts: Mapping[str, str]) -> tuple[str, ...]:
    """The values that a text names, in its order, each once; the text itself where it names one. Other texts may decide the limits.

    Raises SettingsError with a sentence about a range that cannot be read, or a value that the setting does not take.
    """
    parts = _parts(field, text.strip())
    if len(parts) == 1 and not _is_range(field, parts[0]):
        return (text.strip(),)
    values: dict[str, None] = {}
    for part in parts:
        span = _is_range(field, part)
        named = _span(field, part) if span else [part]
        for value in (named[0], named[-1]):
            if wrong := complaint(field, value, texts):
                raise SettingsError((FieldError(field.name, wrong),))
        values |= dict.fromkeys(named if span else [_plainly(field, part)])
    return tuple(values)


def _plainly(field: Field, value: str) -> str:
    """A value as it is written shortest, so that it is the same however it was typed."""
    if isinstance(field.kind, WholeNumber):
        return str(int(value))
    return plain_decimal(Decimal(value)) if isinstance(field.kind, ExactDecimal) else value


def named_once(texts: Mapping[str, str]) -> dict[str, str]:
    """The texts that name one value each."""
    found = {}
    for name, text in texts.items():
        try:
            if len(several(BY_NAME[name], text, texts)) == 1:
                found[name] = text
        except SettingsError:
            continue
    return found


def _parts(field: Field, text: str) -> list[str]:
    """What stands between commas, where a comma does not belong to the value."""
    parts = [part.strip() for part in text.split(",")]
    if isinstance(field.kind, Targets):
        return parts if set(parts) <= set(field.kind.values) else [text]
    return parts if isinstance(field.kind, Choice | WholeNumber | ExactDecimal) else [text]


def _is_range(field: Field, part: str) -> bool:
    return isinstance(field.kind, WholeNumber | ExactDecimal) and ":" in part


def _span(field: Field, part: str) -> list[str]:
    """The values of first:last, first:last:step or first:last:*factor."""
    first, last, *rest = part.split(":")
    whole = isinstance(field.kind, WholeNumber)
    step = rest[0] if rest else "1"
    times = step.startswith("*")
    try:
        low, high, by = (_number(text, whole) for text in (first, last, step.removeprefix("*")))
    except (ValueError, InvalidOperation):
        raise _no_range(field, part) from None
    if len(rest) > 1 or not (rest or whole) or by <= (1 if times else 0) or low > high or (times and low <= 0):
        raise _no_range(field, part)
    if not times and (high - low) // by >= MOST_VALUES:
        raise SettingsError((FieldError(field.name, f"{field.label} takes at most {count_text(MOST_VALUES)} values in a sweep; {came(part)}. Take larger steps."),))
    values = []
    while low <= high:
        values.append(low)
        low = low * by if times else low + by
    return [plain_decimal(value) if isinstance(value, Decimal) else str(value) for value in values]


def _number(text: str, whole: bool) -> int | Decimal:
    """A number without sign or exponent."""
    text = text.strip()
    if not text.replace(".", "", 0 if whole else 1).isdecimal() or not text.isascii():
        raise ValueError(text)
    return int(text) if whole else Decimal(text)


def _no_range(field: Field, part: str) -> SettingsError:
    example = EXAMPLES[type(field.kind)]
    kinds = "first:last, first:last:step or first:last:*factor" if isinstance(field.kind, WholeNumber) else "first:last:step or first:last:*factor"
    return SettingsError((FieldError(field.name, f"A range of {field.label} must be {kinds}, upwards, such as {example}; {came(part)}. Correct it."),))
