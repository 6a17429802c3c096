"""Runs inside Pyodide: turn the .py files of zip archives into .pyc files of Pyodide's own Python.

ARGUMENTS: list of [source archive, target archive, whether tracebacks name lines, whether functions keep their annotations]. A name `a/b.py` becomes `a/b.pyc`; other files stay as they are.
The header says "hash-based, unchecked", so the import system never looks for the source.
Docstrings and asserts are left out (optimize=2). Equal input gives equal output, byte for byte.
"""

import ast
import base64
import hashlib
import importlib.util
import marshal
import zipfile
from types import CodeType

UNCHECKED_HASH = (1).to_bytes(4, "little")
FIXED_DATE = (1980, 1, 1, 0, 0, 0)

BYTES_A_UNIT, UNITS_AN_ENTRY = 2, 8
"""Bytes of a unit of code, and the most units that one entry of the table of line numbers is for."""

ENTRY, NO_COLUMNS = 0x80, 13
"""What every entry of that table begins with, and the kind that gives a line without columns."""


def compiled(name: str, source: bytes, lines: bool, annotations: bool) -> bytes:
    """The content of the .pyc file for one module."""
    tree = ast.parse(source, name)
    code = compile(tree if annotations else WithoutAnnotations().visit(tree), name, "exec", optimize=2, dont_inherit=True)
    if not lines:
        code = without_lines(code)
    head = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(source)
    return head + marshal.dumps(code)


class WithoutAnnotations(ast.NodeTransformer):
    """Takes the annotations of functions away: since Python 3.14 each function that has some brings another that makes them. Those of classes stay."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """An argument."""
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """A function, and what is in it."""
        node.returns = None
        return self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef


def without_lines(code: CodeType) -> CodeType:
    """The same code with a table of line numbers that names the function's first line throughout; a full one is a good part of its size."""
    constants = tuple(without_lines(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    whole, rest = divmod(len(code.co_code) // BYTES_A_UNIT, UNITS_AN_ENTRY)
    table = same_line(UNITS_AN_ENTRY) * whole + (same_line(rest) if rest else b"")
    return code.replace(co_linetable=table, co_consts=constants)


def same_line(units: int) -> bytes:
    """An entry of the table for so many code units: no columns, and the line before.

    Source: CPython 3.14, InternalDocs/code_objects.md, "Format of the locations table".
    """
    return bytes((ENTRY | NO_COLUMNS << 3 | units - 1, 0))


def record(files: dict[str, bytes], name: str) -> bytes:
    """The wheel's list of files (RECORD) for the new content."""
    rows = []
    for path, content in files.items():
        checksum = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={checksum},{len(content)}\n")
    return "".join([*rows, f"{name},,\n"]).encode()


def convert(source: str, target: str, lines: bool, annotations: bool) -> None:
    """Write `target`: `source` with every module compiled, its dates fixed and its RECORD (if any) renewed."""
    with zipfile.ZipFile(source) as archive:
        content = {name: archive.read(name) for name in sorted(archive.namelist()) if not name.endswith("/")}
    lists = [name for name in content if name.endswith(".dist-info/RECORD")]
    files = {}
    for name, data in content.items():
        if name.endswith(".py"):
            files[name + "c"] = compiled(name, data, lines, annotations)
        elif name not in lists and not name.endswith(".pyi"):
            files[name] = data
    for name in lists:
        files[name] = record(files, name)
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, FIXED_DATE)
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)


for job in ARGUMENTS:  # noqa: F821 (given by run.mjs)
    convert(*job)
