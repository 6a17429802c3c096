"""Amounts of memory as PyTorch and people write them."""

import re
from decimal import Decimal
from fractions import Fraction

KIB = 2**10
"""Bytes in one kibibyte (IEC 80000-13)."""

BINARY = {"b": 1, "bytes": 1, "byte": 1, "kib": KIB, "mib": KIB**2, "gib": KIB**3, "tib": KIB**4}
"""Bytes in one of each unit whose name says that it is a power of two."""

DECIMAL = {"kb": 1_000, "mb": 1_000_000, "gb": 1_000_000_000, "tb": 1_000_000_000_000}
"""Bytes in one of each decimal unit (SI)."""

NUMBER = r"\d{1,15}(?:\.\d{1,9})?"
"""A plain number, of bounded length."""

UNIT = r"bytes?|[KMGT]i?B|B"

_PRINTED = ((KIB, 1, "bytes"), (KIB**2, KIB, "KiB"), (KIB**3, KIB**2, "MiB"))
"""(largest amount, unit, its name) of what PyTorch prints. Source: torch 2.13.0, c10/cuda/CUDACachingAllocator.cpp, format_size."""

ROUNDING, SMALL, SMALL_BUFFER, LARGE_BUFFER, LARGE_FROM, ROUND_LARGE = 512, KIB**2, 2 * KIB**2, 20 * KIB**2, 10 * KIB**2, 2 * KIB**2
"""Bytes: blocks are multiples of the first; requests up to the second share buffers of the third, those below LARGE_FROM of the
fourth; larger ones ask for multiples of the last. Source: torch 2.13.0, c10/core/AllocatorConfig.h, kMinBlockSize, kSmallSize,
kSmallBuffer, kLargeBuffer, kMinLargeAlloc, kRoundLarge."""


def in_bytes(number: str, unit: str) -> int:
    """Whole bytes of a number with its unit: GiB is a power of two, GB a power of ten."""
    return round(Fraction(Decimal(number)) * (BINARY | DECIMAL)[unit.lower()])


def rounded_up(size: int, multiple: int) -> int:
    """The smallest multiple that holds the size."""
    return -(-size // multiple) * multiple


def asked_of_driver(size: int) -> int:
    """Bytes PyTorch asks the driver for when no block of its own takes a tensor of `size` bytes: what its message names.

    Source: torch 2.13.0, c10/cuda/CUDACachingAllocator.cpp, round_size, get_allocation_size.
    """
    size = rounded_up(max(size, 1), ROUNDING)
    if size <= SMALL:
        return SMALL_BUFFER
    return LARGE_BUFFER if size < LARGE_FROM else rounded_up(size, ROUND_LARGE)


def as_printed(size: int) -> str:
    """An amount as PyTorch's messages print it: two decimals of the unit that suits it."""
    for most, unit, name in _PRINTED:
        if size <= most:
            return f"{size} {name}" if unit == 1 else f"{size / unit:.2f} {name}"
    return f"{size / KIB**3:.2f} GiB"


def least_asked(tried: int) -> int:
    """The fewest bytes of a tensor for which PyTorch asks the driver for so much."""
    if tried <= SMALL_BUFFER:
        return 1
    return SMALL + 1 if tried < LARGE_FROM or tried == LARGE_BUFFER else max(LARGE_FROM, tried - ROUND_LARGE + 1)
