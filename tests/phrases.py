"""What the interface can say, read from its own source: every sentence and label in app/vramplan and pyscript.

A phrase is an English text, with {} where something is filled in. Both sides of a condition are phrases of their own, and so
is what a name stands for that is given once in its function.
"""

import ast
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path

HOLE = "{}"

MOST = 4
"""Forms of one sentence that are told apart; of more, each condition is a hole."""

NOT_SHOWN = {"re", "compile", "getElementById", "querySelector", "querySelectorAll", "closest", "startswith", "endswith", "removeprefix", "removesuffix",
             "split", "join_path", "TypeVar", "getattr", "hasattr", "partition", "rpartition", "find", "index", "encode", "decode", "strftime"}
"""Functions whose texts nobody reads."""

ATTRIBUTES_NOT_SHOWN = {"class_", "id", "for_", "type", "type_", "href", "src", "role", "name", "d", "points", "scope", "autocomplete", "inputmode"}


def phrases(path: Path) -> Iterator[tuple[int, str]]:
    """Every phrase of a module with its line, in order."""
    yield from Reader(ast.parse(path.read_text("utf-8"))).found()


class Reader:
    """One module, whose nodes know their parents."""

    def __init__(self, tree: ast.Module):
        self._tree = tree
        self._parent = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
        self._given: dict[ast.AST, dict[str, list[ast.expr | None]]] = {}
        self._read_within: set[ast.AST] = set()
        self._apart: list[tuple[int, str]] = []

    def found(self) -> list[tuple[int, str]]:
        """The phrases."""
        tops = [node for node in ast.walk(self._tree) if self._is_text(node) and self._is_top(node) and self._may_be_shown(node)]
        said = [(node, self._forms(node)) for node in tops]
        found = []
        for node, forms in said:
            target = self._target(node)
            if target is not None and self._only_within(target, node):
                continue
            found += [(node.lineno, re.sub(r"\s+", " ", form).strip()) for form in forms]
        found += [*self._apart, *((node.lineno, form) for node, form in self._counted())]
        told = [(line, re.sub(r"^[,;:.] ", "", form)) for line, form in found]
        return [(line, form) for line, form in told if is_words(form)]

    def _is_text(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Constant):
            return isinstance(node.value, str)
        if isinstance(node, ast.JoinedStr):
            return True
        if isinstance(node, ast.IfExp):
            return self._is_text(node.body) or self._is_text(node.orelse)
        return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and (self._is_text(node.left) or self._is_text(node.right))

    def _is_top(self, node: ast.AST) -> bool:
        parent = self._parent.get(node)
        if isinstance(parent, ast.FormattedValue):
            return False
        if isinstance(parent, ast.JoinedStr):
            return False
        if isinstance(parent, ast.IfExp) and node is parent.test:
            return False
        return not self._is_text(parent)

    def _may_be_shown(self, node: ast.AST) -> bool:
        parent = self._parent[node]
        if isinstance(parent, ast.Expr):  # a docstring
            return False
        if isinstance(parent, (ast.Compare, ast.Subscript, ast.Slice, ast.MatchValue)):
            return False
        if isinstance(parent, ast.Dict) and node in parent.keys:
            return False
        if isinstance(parent, (ast.Set, ast.Tuple, ast.List)) and isinstance(self._parent[parent], ast.Compare):
            return False
        if isinstance(parent, ast.keyword) and parent.arg and (parent.arg in ATTRIBUTES_NOT_SHOWN or parent.arg.startswith("data_")):
            return False
        if isinstance(parent, ast.Call):
            name = parent.func.attr if isinstance(parent.func, ast.Attribute) else getattr(parent.func, "id", "")
            if name in NOT_SHOWN:
                return False
            if name in ("get", "pop") and parent.args and node is parent.args[0]:
                return False
            if name == "counted" and node in parent.args:
                return False
            owner = parent.func.value if isinstance(parent.func, ast.Attribute) else None
            if isinstance(owner, ast.Name) and owner.id == "re":
                return False
        return True

    def _counted(self) -> Iterator[tuple[ast.AST, str]]:
        for node in ast.walk(self._tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "counted":
                nouns = [self._forms(each) for each in node.args[1:]]
                for noun in nouns[0]:
                    if len(nouns) == 1:
                        yield node, f"{HOLE} {noun}(s)"
                    else:
                        yield from ((node, f"{HOLE} {each}") for each in (noun, *nouns[1]))

    def _forms(self, node: ast.AST) -> list[str]:
        """What a text can be."""
        if isinstance(node, ast.Constant):
            return [node.value if isinstance(node.value, str) else str(node.value)]
        if isinstance(node, ast.JoinedStr):
            return self._product(node.values)
        if isinstance(node, ast.FormattedValue):
            return self._forms(node.value) if not node.format_spec else [HOLE]
        if isinstance(node, ast.IfExp):
            either = [*self._forms(node.body), *self._forms(node.orelse)]
            if sorted(either) in (["", "s"], ["", "es"]):
                return [f"({max(either)})"]
            return list(dict.fromkeys(either))
        if isinstance(node, ast.BinOp) and self._is_text(node):
            return self._product([node.left, node.right])
        if isinstance(node, ast.Name):
            given = self._given_to(node)
            if given is not None and self._is_text(given) and not isinstance(given, ast.Constant):
                self._read_within.add(node)
                return self._forms(given)
        return [HOLE]

    def _product(self, nodes: list[ast.expr]) -> list[str]:
        parts = [self._forms(node) for node in nodes]
        size = 1
        for part in parts:
            size *= len(part)
        if size > MOST:
            several = [len(part) > 1 for part in parts]
            self._apart += [(node.lineno, form.strip()) for node, part, many in zip(nodes, parts, several) if many for form in part]
            parts = [[HOLE] if many else part for part, many in zip(parts, several)]
        return ["".join(each) for each in product(*parts)]

    def _function(self, node: ast.AST) -> ast.AST:
        while node in self._parent and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            node = self._parent[node]
        return node

    def _given_in(self, function: ast.AST) -> dict[str, list[ast.expr | None]]:
        if function not in self._given:
            given: dict[str, list[ast.expr | None]] = {}
            for node in ast.walk(function):
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        if isinstance(target, ast.Name):
                            given.setdefault(target.id, []).append(node.value)
                        elif isinstance(target, ast.Tuple):
                            values = node.value.elts if isinstance(node.value, ast.Tuple) and len(node.value.elts) == len(target.elts) else [None] * len(target.elts)
                            for each, value in zip(target.elts, values):
                                if isinstance(each, ast.Name):
                                    given.setdefault(each.id, []).append(value)
                elif isinstance(node, (ast.AugAssign, ast.For, ast.comprehension, ast.NamedExpr)):
                    for each in ast.walk(node.target):
                        if isinstance(each, ast.Name):
                            given.setdefault(each.id, []).append(None)
            for argument in ast.walk(function):
                if isinstance(argument, ast.arg):
                    given.setdefault(argument.arg, []).append(None)
            self._given[function] = given
        return self._given[function]

    def _given_to(self, node: ast.Name) -> ast.expr | None:
        given = self._given_in(self._function(node)).get(node.id, [])
        return given[0] if len(given) == 1 else None

    def _target(self, node: ast.AST) -> ast.Name | None:
        parent = self._parent[node]
        if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
            return parent.targets[0]
        if isinstance(parent, ast.Tuple) and isinstance(self._parent[parent], ast.Assign):
            target = self._parent[parent].targets[0]
            if isinstance(target, ast.Tuple) and len(target.elts) == len(parent.elts):
                each = target.elts[parent.elts.index(node)]
                return each if isinstance(each, ast.Name) else None
        return None

    def _only_within(self, target: ast.Name, node: ast.AST) -> bool:
        function = self._function(node)
        uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == target.id and isinstance(each.ctx, ast.Load)]
        return bool(uses) and all(each in self._read_within for each in uses)


def is_words(text: str) -> bool:
    """Whether a reader could read it: words with a space between them, or one with a capital."""
    literal = re.sub(r"\((?:s|es)\)", "", text.replace(HOLE, " "))
    literal = re.sub(r"\b([A-Za-z]{2,})-([a-z]{4,})\b", r"\1 \2", literal)
    words = re.findall(r"(?<![\w./\-=_{<])[A-Za-z][a-z’]+(?![\w/=_({>]|[.\-]\w)", literal)
    if not words or re.fullmatch(r"\w+( \| \w+)+", text):  # a union of types in quotes
        return False
    return not text.startswith("<") and ": var(" not in text and (" " in text.strip() or text[0].isupper() or HOLE in text)
