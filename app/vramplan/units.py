"""Byte units, and exact conversion between bytes and decimal text.

GiB is 2**30 bytes and GB is 10**9 bytes. Nothing here goes through binary floating point: a budget that equals a peak
to the byte must stay equal.
"""

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

GIB = 2**30
"""Bytes in one gibibyte (IEC 80000-13)."""

MIB = 2**20
"""Bytes in one mebibyte (IEC 80000-13)."""

GB = 10**9
"""Bytes in one gigabyte (SI)."""

BYTES_PER_UNIT = {"gib": GIB, "gb": GB}
"""Bytes in one of each unit a budget may be typed in."""

UNIT_LABELS = {"gib": "GiB", "gb": "GB"}

_WIDE = Context(prec=200, rounding=ROUND_HALF_EVEN)
"""Wide enough for every amount and every decimal of a typed number; callers' own contexts do not matter."""

_MAGNITUDES = (("", 0), ("K", 3), ("M", 6), ("B", 9), ("T", 12))
"""Letters of large counts as they are spoken, with their powers of ten."""

_SPOKEN_DIGITS = 3
"""Significant digits of a spoken count."""


@lru_cache(maxsize=64)
def exact(amount: Decimal) -> Fraction | int:
    """A decimal as an exact number that can be multiplied: an integer where it is one, which is the fast case."""
    value = Fraction(amount)
    return value.numerator if value.denominator == 1 else value


def whole_bytes_up(amount: Fraction | int) -> int:
    """The smallest whole number of bytes that holds `amount` bytes."""
    return ceil(amount)


def budget_bytes(*, amount: Decimal, unit: str) -> int:
    """Whole bytes in a budget of `amount` GiB or GB, rounded down: a byte that is only partly there cannot be used."""
    return floor(Fraction(amount) * BYTES_PER_UNIT[unit])


def convert_amount(*, amount: Decimal, from_unit: str, to_unit: str) -> Decimal:
    """The same bytes in another unit, exactly (both unit sizes divide a power of ten, so the decimal always ends)."""
    exact = Fraction(amount) * BYTES_PER_UNIT[from_unit] / BYTES_PER_UNIT[to_unit]
    return _WIDE.divide(Decimal(exact.numerator), Decimal(exact.denominator))


def plain_decimal(value: Decimal) -> str:
    """A decimal as a person types it: no exponent and no zeros that add nothing. 24.500 -> '24.5', 1E+2 -> '100'."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def gib_text(count: int, *, places: int = 2, signed: bool = False) -> str:
    """Bytes as GiB with a fixed number of decimals and thousands separators, without the unit: 12701234567 -> '11.83'."""
    gib = _WIDE.divide(Decimal(count), Decimal(GIB)).quantize(Decimal(1).scaleb(-places), context=_WIDE)
    digits = f"{abs(gib):,.{places}f}"
    if count < 0:
        return f"\N{MINUS SIGN}{digits}"
    return f"+{digits}" if signed and count > 0 else digits


def count_text(count: int) -> str:
    """A whole number with thousands separators."""
    return f"{count:,}"


def exact_text(value: Fraction | int, *, places: int) -> str:
    """A number with thousands separators, and with decimals, at most `places`, only where it is not whole."""
    decimal = _WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))
    text = f"{decimal.quantize(Decimal(1).scaleb(-places), context=_WIDE):,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number of things in words: '1 token', '12,345 bytes', '2 matches'."""
    return f"{count_text(count)} {noun if count == 1 else plural or f'{noun}s'}"


def short_count_text(count: int) -> str:
    """A parameter count as it is spoken: 8030261248 -> '8.03 B', 13631488 -> '13.6 M', 999 -> '999'."""
    rounded = Context(prec=_SPOKEN_DIGITS).create_decimal(count)
    letter, power = next((each for each in reversed(_MAGNITUDES) if rounded >= 10 ** each[1]), _MAGNITUDES[0])
    return f"{rounded.scaleb(-power):,f} {letter}".strip()
