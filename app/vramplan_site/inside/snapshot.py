"""Runs inside Pyodide: bring the memory into the state that the page starts from. snapshot.mjs takes the snapshot afterwards.

ARGUMENTS: [modules that are kept for later as code, links that are counted ahead]. Gives a function, called with the
address where the used memory ends, that overwrites freed memory with zeros.
"""

import gc
import importlib
import linecache
import sys
import zipfile
import zipimport

ZIP = "/lib/python314.zip"
PACKAGES = ("vramplan", "pyscript")
MODULE = ".pyc"
HEADER = 16
"""Bytes of a .pyc file before its code."""
SMALL = 512
"""Bytes: the largest piece that Python's own allocator gives; it has one pool for every multiple of STEP."""
STEP = 16
LARGE = 1 << 16
"""Bytes to begin with when larger free pieces are looked for."""
BYTES_OBJECT = sys.getsizeof(b"")


def import_packages(later: list[str]) -> None:
    """Import every module of our packages but those for later."""
    for name in zipped():
        if name.split(".")[0] in PACKAGES and name not in later:
            importlib.import_module(name)


def zipped() -> dict[str, str]:
    """The modules of the zip: their files by their full names."""
    with zipfile.ZipFile(ZIP) as archive:
        files = [file for file in archive.namelist() if file.endswith(MODULE)]
    return {file.removesuffix(MODULE).removesuffix("/__init__").replace("/", "."): file for file in files}


def not_imported() -> dict[str, tuple[bytes, bool]]:
    """The code of all modules of the zip that have not been imported, and whether each is a package."""
    with zipfile.ZipFile(ZIP) as archive:
        return {
            name: (archive.read(file)[HEADER:], file.endswith("/__init__" + MODULE))
            for name, file in zipped().items() if name not in sys.modules
        }


def warm(links: list[str]) -> None:
    """Paint what the page paints, so that tables are read and the interpreter has seen the code; the runs are forgotten again."""
    from pyscript import panels
    from pyscript.snapshot import answer
    from vramplan import Settings, estimate
    from vramplan.accountings.step.moments import forget

    for link in links:
        answer(link)
    opening = estimate(Settings())
    panels.headline(opening), panels.accountings(opening.settings, opening), panels.about(opening)
    panels.results(opening)
    forget()


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


def main(later: list[str], links: list[str]) -> None:
    """Everything but the zeros."""
    import vramplan.data
    import pyscript.snapshot

    import_packages(later)
    warm(links)
    vramplan.data.keep()
    pyscript.snapshot.keep(not_imported())
    linecache.clearcache()
    zipimport._zip_directory_cache.clear()
    sys.path_importer_cache.clear()
    gc.collect()


main(*ARGUMENTS)  # noqa: F821 (given by snapshot.mjs)
zero_freed
