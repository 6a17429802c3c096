"""Formulas as MathML, from the expressions of the calculation's data file.

The expressions are Python, so Python's own parser reads them and tests can evaluate the very text that is shown.
"""

import ast

from pyscript.tree import Element, h

GREEK = {"epsilon": "ε", "chi": "χ", "alpha": "α", "phi": "φ", "ell": "ℓ"}
"""Symbols that are written as one letter."""

WORDS = {"peak", "headroom", "batch"}
"""Symbols that are words, set upright."""

INVISIBLE_TIMES = "\u2062"
"""Reads as 'times', shows nothing."""

PRECEDENCE = {ast.Add: 1, ast.Sub: 1, ast.Mult: 2, ast.Div: 2, ast.Pow: 3}

SIGNS = {ast.Add: "+", ast.Sub: "\N{MINUS SIGN}"}


def symbol(name: str) -> Element:
    """A symbol: one letter, a letter with an index, or a word."""
    if name in WORDS:
        return h("mtext", name)
    letter, mark, index = name.partition("_")
    base = h("mi", GREEK.get(letter, letter))
    if not mark:
        return base
    return h("msub", base, h("mi", index) if len(index) == 1 else h("mtext", index))


def value(name: str, texts: dict[str, str]) -> Element:
    """The value of a symbol; the page renews every element that names one."""
    return h("mn", texts[name], data_value=name)


def formula(name: str, expression: str) -> Element:
    """`name = expression` in symbols."""
    right = _render(ast.parse(expression, mode="eval").body, None)
    return _math(symbol(name), h("mo", "="), right)


def filled(expression: str, texts: dict[str, str]) -> list[Element]:
    """The expression with the values of its symbols, one <math> for each part of a sum, so that long ones can wrap."""
    return [h("math", h("mrow", *part), displaystyle="true") for part in _parts(ast.parse(expression, mode="eval").body, texts)]


def text_of(node: Element | str) -> str:
    """The text of a tree, without its marks."""
    return node if isinstance(node, str) else "".join(text_of(child) for child in node.children)


def _parts(node: ast.expr, texts: dict[str, str]) -> list[list[Element]]:
    if isinstance(node, ast.BinOp) and type(node.op) in SIGNS:
        return [*_parts(node.left, texts), [h("mo", SIGNS[type(node.op)], form="infix"), _side(node.right, node.op, texts)]]
    return [[_render(node, texts)]]


def inline(name: str) -> Element:
    """A symbol inside a sentence."""
    return h("math", symbol(name))


def _math(*children: Element) -> Element:
    return h("math", h("mrow", *children), display="block")


def _render(node: ast.expr, texts: dict[str, str] | None) -> Element:
    if isinstance(node, ast.Constant):
        return h("mn", f"{node.value:,}")
    if isinstance(node, ast.Name):
        return symbol(node.id) if texts is None else value(node.id, texts)
    if isinstance(node, ast.Call):
        return _call(node, texts)
    return _operation(node, texts)


def _call(node: ast.Call, texts: dict[str, str] | None) -> Element:
    inside = []
    for argument in node.args:
        inside += [h("mo", ","), _render(argument, texts)] if inside else [_render(argument, texts)]
    return h("mrow", h("mi", node.func.id), h("mo", "("), h("mrow", *inside), h("mo", ")"))


def _operation(node: ast.BinOp, texts: dict[str, str] | None) -> Element:
    if isinstance(node.op, ast.Div):
        return h("mfrac", h("mrow", _render(node.left, texts)), h("mrow", _render(node.right, texts)))
    if isinstance(node.op, ast.Pow):
        return h("msup", _side(node.left, node.op, texts), _render(node.right, texts))
    left, right = (_side(side, node.op, texts) for side in (node.left, node.right))
    return h("mrow", left, _sign(node, texts), right)


def _sign(node: ast.BinOp, texts: dict[str, str] | None) -> Element:
    if not isinstance(node.op, ast.Mult):
        return h("mo", SIGNS[type(node.op)])
    between_numbers = isinstance(node.left, ast.Constant) and isinstance(node.right, ast.Constant)
    shown = texts is not None or between_numbers
    return h("mo", "×" if shown else INVISIBLE_TIMES)


def _side(node: ast.expr, outer: ast.operator, texts: dict[str, str] | None) -> Element:
    inner = _render(node, texts)
    looser = isinstance(node, ast.BinOp) and PRECEDENCE[type(node.op)] < PRECEDENCE[type(outer)]
    return h("mrow", h("mo", "("), inner, h("mo", ")")) if looser else inner
