"""Runs inside Pyodide: turn the .py files of zip archives into .pyc files of Pyodide's own Python.

ARGUMENTS: list of [source archive, target archive, whether tracebacks name lines]. A name `a/b.py` becomes `a/b.pyc`; other files stay as they are.
The header says "hash-based, unchecked", so the import system never looks for the source.
Docstrings and asserts are left out (optimize=2). Equal input gives equal output, byte for byte.
"""

import base64
import hashlib
import importlib.util
import marshal
import zipfile
from types import CodeType

UNCHECKED_HASH = (1).to_bytes(4, "little")
FIXED_DATE = (1980, 1, 1, 0, 0, 0)


def compiled(name: str, source: bytes, lines: bool) -> bytes:
    """The content of the .pyc file for one module."""
    code = compile(source, name, "exec", optimize=2, dont_inherit=True)
    if not lines:
        code = without_lines(code)
    head = importlib.util.MAGIC_NUMBER + UNCHECKED_HASH + importlib.util.source_hash(source)
    return head + marshal.dumps(code)


def without_lines(code: CodeType) -> CodeType:
    """The same code without the table of its line numbers, a good part of its size."""
    constants = tuple(without_lines(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    return code.replace(co_linetable=b"", co_consts=constants)


def record(files: dict[str, bytes], name: str) -> bytes:
    """The wheel's list of files (RECORD) for the new content."""
    rows = []
    for path, content in files.items():
        checksum = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={checksum},{len(content)}\n")
    return "".join([*rows, f"{name},,\n"]).encode()


def convert(source: str, target: str, lines: bool) -> None:
    """Write `target`: `source` with every module compiled, its dates fixed and its RECORD (if any) renewed."""
    with zipfile.ZipFile(source) as archive:
        content = {name: archive.read(name) for name in sorted(archive.namelist()) if not name.endswith("/")}
    lists = [name for name in content if name.endswith(".dist-info/RECORD")]
    files = {}
    for name, data in content.items():
        if name.endswith(".py"):
            files[name + "c"] = compiled(name, data, lines)
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
