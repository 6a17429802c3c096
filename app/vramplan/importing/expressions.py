"""The small language in which families.toml and blocks.toml say sizes and conditions: arithmetic, comparison and choice over
named values. Only the calculator's own data is read this way; what a file brings is numbers, flags and lists under those names.
"""

import ast
import operator
from collections.abc import Mapping
from functools import lru_cache

from vramplan.architecture import NO_LAYERS

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda item, group: item in group,
    ast.NotIn: lambda item, group: item not in group,
}
"""What may stand between two values."""

FUNCTIONS = {
    "len": len,
    "count": lambda group, item, before: group[:before].count(item),
    "every": lambda group, item: _every(group, item),
    "places": lambda group, items: tuple(place for place, item in enumerate(group) if item in items),
    "multiples": lambda interval, length: tuple(place for place in range(length) if (place + 1) % interval == 0),
    "listed": lambda numbers: ",".join(map(str, numbers)) or NO_LAYERS,
    "among": lambda number, listed: str(number) in listed.split(","),
    "whole": int,
    "several": lambda value: isinstance(value, tuple),
}
"""What may be asked of a list: how long it is, how often something stands before a place, at every which place it stands (0 for
nowhere, -1 where there is no such rule), at which places some items stand, which places are every so many-th, the same as a text, and whether that names a number;
of a number, its whole part; and of a value, whether it is a list."""


def _every(group: tuple, item: str) -> int:
    """n if an item stands at every n-th place of a list and nowhere else, 0 if nowhere, -1 otherwise."""
    if item not in group:
        return 0
    step = group.index(item) + 1
    return step if all((each == item) == (place % step == 0) for place, each in enumerate(group, 1)) else -1


Value = int | float | bool | str | tuple | None


def evaluate(expression: str | int | float | bool, values: Mapping[str, Value]) -> Value:
    """What an expression comes to. A number or a flag stands for itself. Raises KeyError for a name that has no value."""
    return expression if isinstance(expression, bool | int | float) else _value(_parsed(expression), values)


def names(expression: str | int | float | bool) -> frozenset[str]:
    """The names an expression depends on."""
    if isinstance(expression, bool | int | float):
        return frozenset()
    return frozenset(node.id for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Name)) - FUNCTIONS.keys()


@lru_cache(maxsize=None)
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def _value(node: ast.expr, values: Mapping[str, Value]) -> Value:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return values[node.id]
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](_value(node.left, values), _value(node.right, values))
    if isinstance(node, ast.Compare):
        return OPERATORS[type(node.ops[0])](_value(node.left, values), _value(node.comparators[0], values))
    if isinstance(node, ast.BoolOp):
        wanted = isinstance(node.op, ast.Or)
        return next((wanted for each in node.values if bool(_value(each, values)) is wanted), not wanted)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _value(node.operand, values)
    if isinstance(node, ast.IfExp):
        return _value(node.body if _value(node.test, values) else node.orelse, values)
    if isinstance(node, ast.Tuple):
        return tuple(_value(each, values) for each in node.elts)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords:
        return FUNCTIONS[node.func.id](*(_value(each, values) for each in node.args))
    if isinstance(node, ast.Subscript):
        return _value(node.value, values)[_value(node.slice, values)]
    raise ValueError(f"{type(node).__name__} is not part of the language of families.toml")
