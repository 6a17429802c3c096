"""Arithmetic of whole numbers in operators alone, so that arrays of whole numbers work as well, place by place."""

SHIFTS = (1, 2, 4, 8, 16, 32)
"""How far the bits of a number are spread to fill all below its highest, for numbers under 2**63."""


def least(a: int, b: int) -> int:
    """The smaller of two numbers."""
    return a + (b - a) * (b < a)


def most(a: int, b: int) -> int:
    """The larger of two numbers."""
    return a + (b - a) * (b > a)


def either(first: bool, a: int, b: int) -> int:
    """The first of two numbers, or the other one."""
    return b + (a - b) * first


def power_from(value: int) -> int:
    """The smallest power of two that is not below a number from 1 on."""
    value = value - 1
    for shift in SHIFTS:
        value = value | value >> shift
    return value + 1
