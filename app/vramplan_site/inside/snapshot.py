"""Runs inside Pyodide: bring the memory into the state that the page starts from. snapshot.mjs takes the snapshot afterwards.

ARGUMENTS: [modules to import, links to count, file to write]. The file is a zip of what Python's own zip has beyond the modules in
memory: the page puts it in that one's place. Gives a function, called with the address where the used memory ends, that overwrites
freed memory with zeros.
"""

import gc
import importlib
import io
import linecache
import sys
import zipfile
import zipimport

ZIP = "/lib/python314.zip"
MODULE = ".pyc"
"""What the names of modules end with in the zip."""
STREAMS = ("stdin", "stdout", "stderr")
SMALL = 512
"""Bytes: the largest piece that Python's own allocator gives; it has one pool for every multiple of STEP."""
STEP = 16
LARGE = 1 << 16
"""Bytes to begin with when larger free pieces are looked for."""
BYTES_OBJECT = sys.getsizeof(b"")


def write_rest(target: str) -> None:
    """Write the zip of all that is in Python's zip but not in memory."""
    with zipfile.ZipFile(ZIP) as whole, zipfile.ZipFile(target, "w") as rest:
        for entry in whole.infolist():
            if module_name(entry.filename) not in sys.modules:
                rest.writestr(entry, whole.read(entry), zipfile.ZIP_DEFLATED, 9)


def module_name(file: str) -> str:
    """The full name of the module in a file of the zip; other files have names that no module has."""
    return file.removesuffix(MODULE).removesuffix("/__init__").replace("/", ".") if file.endswith(MODULE) else file


def warm(links: list[str]) -> None:
    """Count, so that the interpreter has seen the code; the runs are forgotten again."""
    from pyscript.answer import headline
    from pyscript.snapshot import answer
    from vramplan import Settings, estimate
    from vramplan.accountings.step.moments import forget

    for link in links:
        answer(link)
    headline(estimate(Settings()))
    forget()


def without_buffers() -> list[tuple]:
    """Take the streams apart: their buffers hold whatever was in that memory before. Gives what they are made of."""
    parts = []
    for name in STREAMS:
        stream = getattr(sys, name)
        parts.append((name, stream.encoding, stream.errors, stream.line_buffering, type(stream.buffer), stream.detach().detach()))
        setattr(sys, name, None)
        setattr(sys, f"__{name}__", None)
    return parts


def put_together(parts: list[tuple]) -> None:
    """Make the streams anew."""
    while parts:
        name, encoding, errors, line_buffering, buffered, raw = parts.pop()
        stream = io.TextIOWrapper(buffered(raw), encoding, errors, line_buffering=line_buffering)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def zero_freed(end: int) -> None:
    """Take all free memory below `end`, as zeros, and give it back."""
    taken, size = [], LARGE
    while size > SMALL:
        piece = bytes(size - BYTES_OBJECT)
        if id(piece) + size < end:
            taken.append(piece)
        else:
            size //= 2
    for small in range(SMALL, BYTES_OBJECT, -STEP):
        while id(piece := bytes(small - BYTES_OBJECT)) < end:
            taken.append(piece)


def main(modules: list[str], links: list[str], rest: str):
    """Everything; the streams stay apart until the memory that is freed has been zeroed."""
    for name in modules:
        importlib.import_module(name)
    warm(links)
    write_rest(rest)
    linecache.clearcache()
    zipimport._zip_directory_cache.clear()
    sys.path_importer_cache.clear()
    streams = without_buffers()
    gc.collect()
    sys._clear_internal_caches()

    def finish(end: int) -> None:
        zero_freed(end)
        put_together(streams)

    return finish


main(*ARGUMENTS)  # noqa: F821 (given by snapshot.mjs)
