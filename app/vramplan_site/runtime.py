"""The Python that runs in the page: Pyodide itself, one zip to start from, and the extras that wait.

Five slow steps run inside Pyodide, in Node, and are kept in .cache/ under a hash of what went in:

    engine    Pyodide's WebAssembly, packed
    stdlib    Pyodide's standard library, compiled
    extras    the wheels of pydantic and ruamel.yaml, compiled, with the lock that micropip froze for them
    start     our packages, compiled, with the standard-library modules they use; then the rest of that zip
    snapshot  the memory of a Python that has started from that zip, imported what counts a run and used it, packed; and the zip of
              what is not in that memory

The rest is what follows in the same zip file: the page writes it over the start zip's directory (its last part)
and has the whole standard library, at the same place, with nothing fetched twice.
"""

import ast
import hashlib
import json
import shutil
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from vramplan_site import toolchain
from vramplan_site.toolchain import CACHE, ROOT

INSIDE = Path(__file__).with_name("inside")
PYODIDE_SCRIPTS = ("pyodide.mjs", "pyodide.asm.mjs")
PACKAGES = {"vramplan": ROOT / "app" / "vramplan", "pyscript": ROOT / "pyscript"}
PHRASES = PACKAGES["vramplan"] / "data" / "languages"
"""Phrase books, each of which only the page in its language loads, as a file of its own."""
WASM = "pyodide.asm.wasm"
"""The engine, in the npm package."""
EXTRAS = {"pydantic": "pydantic", "ruamel-yaml": "ruamel.yaml"}
"""Packages that the page loads when they are first needed, and the modules they are imported as."""
FIXED_DATE = (1980, 1, 1, 0, 0, 0)

INSIDE_REST = "/rest.zip"
"""Where, inside Pyodide, the zip of what is not in the snapshot is written."""

WARMED = ("v=1", "v=2", "v=2&method=full&gpu=80", "v=2&method=lora&sequence_length=4096")
"""Links that are counted before the snapshot is taken."""

FIRST = ("pyscript.first", "pyscript.snapshot")
"""Modules that the page asks for while it has nothing of Python but the snapshot; they and what they import at once are in its memory."""

PAGE = "pyscript.page"
"""The module that the page asks for then."""

NEED_EXTRAS = ("documents.py", "export_document.py", "yaml_text.py")
"""Modules that are imported once the extras are there, and with them all of the standard library."""


@dataclass(frozen=True)
class Runtime:
    """Where the finished parts lie, on this machine."""

    pyodide: Path
    """Folder of the npm package."""
    zstddec: Path
    """Folder of the npm package that unpacks."""
    engine: Path
    """Its WebAssembly, packed by Zstandard."""
    start: Path
    """The zip the page starts from."""
    rest: Path
    """The bytes that follow the start zip's last file."""
    rest_at: int
    """Where in the zip they go."""
    sources: Path
    """A zip of our packages that any Python can import."""
    snapshot: Path
    """Python's memory, packed as well."""
    snapshot_rest: Path
    """A zip of what is not in that memory."""
    restoring: dict
    """What restoring it takes, as inside/snapshot.mjs tells."""
    wheels: Path
    """Folder of the compiled wheels."""
    lock: dict
    """Pyodide's lock for the page, file names without a folder."""


def make_runtime() -> Runtime:
    """Make, or find in .cache/, everything of Python that the page is served."""
    pyodide = toolchain.npm_package("pyodide")
    stdlib = cached("stdlib", [INSIDE / "compile.py", INSIDE / "run.mjs", toolchain.LOCKS / "npm.toml"], lambda folder: make_stdlib(folder, pyodide))
    packing = [INSIDE / "pack.py", INSIDE / "run.mjs", toolchain.LOCKS / "npm.toml"]
    engine = cached("engine", packing, lambda folder: make_engine(folder, pyodide, stdlib))
    inputs = [INSIDE, Path(__file__), toolchain.LOCKS]
    wheels = [INSIDE / "compile.py", INSIDE / "freeze.py", INSIDE / "run.mjs", toolchain.LOCKS]
    extras = cached("extras", wheels, lambda folder: make_extras(folder, pyodide, stdlib))
    start = cached(
        "start", [*inputs, *PACKAGES.values()], lambda folder: make_start(folder, pyodide, stdlib)
    )
    zipped = start / "start.zip"
    snapshot = cached(
        "snapshot", [*inputs, *PACKAGES.values()], lambda folder: make_snapshot(folder, pyodide, stdlib, zipped)
    )
    return Runtime(
        pyodide=pyodide,
        zstddec=toolchain.npm_package("zstddec"),
        engine=engine / "engine.bin",
        start=zipped,
        rest=start / "rest.bin",
        rest_at=int((start / "rest_at").read_text("utf-8")),
        sources=start / "sources.zip",
        snapshot=snapshot / "snapshot.bin",
        snapshot_rest=snapshot / "rest.zip",
        restoring=json.loads((snapshot / "snapshot.json").read_text("utf-8")),
        wheels=extras / "wheels",
        lock=json.loads((extras / "lock.json").read_text("utf-8")),
    )


def cached(step: str, inputs: list[Path], make: Callable[[Path], None]) -> Path:
    """The folder of a step's results for exactly these inputs; made when it is missing, older ones deleted."""
    folder = CACHE / "runtime" / f"{step}-{toolchain.digest(*inputs)[:16]}"
    if not folder.is_dir():
        for older in folder.parent.glob(f"{step}-*"):
            shutil.rmtree(older)
        unfinished = folder.parent / f"unfinished-{step}"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        make(unfinished)
        unfinished.rename(folder)
    return folder


def run_inside(script: str, arguments: list, *, pyodide: Path, folders: dict[str, Path], stdlib: Path | None) -> None:
    """Run one script of inside/ in Pyodide under Node, with folders of this machine mounted."""
    job = {
        "pyodide": str(pyodide), "script": str(INSIDE / script), "arguments": arguments,
        "folders": {place: str(folder) for place, folder in folders.items()},
    }
    if stdlib:
        job["stdlib"] = str(stdlib / "stdlib.zip")
    run_node("run.mjs", job)


def run_node(program: str, job: dict) -> None:
    """Run one program of inside/ in Node."""
    node, _ = toolchain.node_tools()
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "job.json"
        file.write_text(json.dumps(job), "utf-8")
        toolchain.run(
            [node, INSIDE / program, file],
            fix=f"{Path(job['script']).name} failed inside Pyodide; if the lines above name one of this project's files, mend that file, "
                "else run `python3 build.py clean` and try again.",
        )


def make_stdlib(folder: Path, pyodide: Path) -> None:
    """Compile the whole standard library."""
    toolchain.say("Compiling Pyodide's standard library (once, about 20 s) …")
    run_inside(
        "compile.py", [["/pyodide/python_stdlib.zip", "/out/stdlib.zip", False, True]],
        pyodide=pyodide, folders={"/pyodide": pyodide, "/out": folder}, stdlib=None,
    )


def make_engine(folder: Path, pyodide: Path, stdlib: Path) -> None:
    """Pack the engine."""
    toolchain.say("Packing Pyodide's engine (once, about 20 s) …")
    pack(pyodide / WASM, folder / "engine.bin", pyodide, stdlib)


def pack(source: Path, target: Path, pyodide: Path, stdlib: Path) -> None:
    """Write the packed content of a file."""
    folders = {"/from": source.parent, "/to": target.parent}
    run_inside("pack.py", [f"/from/{source.name}", f"/to/{target.name}"], pyodide=pyodide, folders=folders, stdlib=stdlib)


def make_extras(folder: Path, pyodide: Path, stdlib: Path) -> None:
    """Resolve and freeze the extra packages with micropip, compile their wheels, and put their new checksums in the lock."""
    toolchain.say(f"Resolving and compiling {' and '.join(EXTRAS)} for the page …")
    wheels = toolchain.wasm_wheels()
    inside = {"pyodide": pyodide, "stdlib": stdlib, "folders": {"/wheels": wheels, "/out": folder}}
    run_inside("freeze.py", ["/wheels", EXTRAS, "/out/lock.json"], **inside)
    lock = json.loads((folder / "lock.json").read_text("utf-8"))
    (folder / "wheels").mkdir()
    names = [package["file_name"].rpartition("/")[2] for package in lock["packages"].values()]
    run_inside("compile.py", [[f"/wheels/{name}", f"/out/wheels/{name}", True, True] for name in names], **inside)
    for (key, package), name in zip(lock["packages"].items(), names, strict=True):
        package["name"] = key  # what Pyodide lists as loaded
        package["file_name"] = name
        package["sha256"] = hashlib.sha256((folder / "wheels" / name).read_bytes()).hexdigest()
    (folder / "lock.json").write_text(json.dumps(lock), "utf-8")


def make_start(folder: Path, pyodide: Path, stdlib: Path) -> None:
    """Compile our packages, find what they use of the standard library, and write the zip and its rest."""
    toolchain.say("Compiling the app for the page …")
    write_sources(folder / "sources.zip")
    inside = {"pyodide": pyodide, "stdlib": stdlib, "folders": {"/out": folder}}
    run_inside("compile.py", [["/out/sources.zip", "/out/packages.zip", True, False]], **inside)
    run_inside("used.py", ["/out/packages.zip", imported_names(), "/out/used"], **inside)
    used = set((folder / "used").read_text("utf-8").splitlines())

    start = folder / "start.zip"
    copy(folder / "packages.zip", start, lambda name: True)
    copy(stdlib / "stdlib.zip", start, lambda name: name in used)
    with zipfile.ZipFile(start) as archive:
        rest_at = archive.start_dir
    whole = folder / "whole.zip"
    shutil.copy(start, whole)
    copy(stdlib / "stdlib.zip", whole, lambda name: name not in used)
    (folder / "rest.bin").write_bytes(whole.read_bytes()[rest_at:])
    (folder / "rest_at").write_text(str(rest_at), "utf-8")
    for scratch in (whole, folder / "packages.zip"):
        scratch.unlink()


def write_sources(target: Path) -> None:
    """One archive of our packages as the page will import them: modules, and data files as JSON, which reads faster.

    The same sources give the same bytes, whenever their files were written.
    """
    modules = set(page_modules().values())
    with zipfile.ZipFile(target, "w") as archive:
        for package, folder in PACKAGES.items():
            for file in sorted(folder.rglob("*")):
                place = f"{package}/{file.relative_to(folder).as_posix()}"
                if file in modules:
                    archive.writestr(zipfile.ZipInfo(place, FIXED_DATE), file.read_bytes())
                elif file.suffix == ".toml" and file.parent != PHRASES:
                    content = json.dumps(tomllib.loads(file.read_text("utf-8")), default=str, ensure_ascii=False, separators=(",", ":"))
                    archive.writestr(zipfile.ZipInfo(place.replace(".toml", ".json"), FIXED_DATE), content)


def make_snapshot(folder: Path, pyodide: Path, stdlib: Path, start: Path) -> None:
    """Start Python from the zip, import and use what counts a run, and keep its memory; and what there is beyond it."""
    toolchain.say("Taking a snapshot of Python's memory for the page …")
    run_node("snapshot.mjs", {
        "pyodide": str(pyodide), "start": str(start), "out": str(folder),
        "script": str(INSIDE / "snapshot.py"), "arguments": [first_modules(), list(WARMED), INSIDE_REST], "rest": INSIDE_REST,
    })
    plain = folder / "snapshot.plain"
    pack(plain, folder / "snapshot.bin", pyodide, stdlib)
    plain.unlink()


def page_modules() -> dict[str, Path]:
    """Our modules that the page may ever import, with their files, by full name: all but those of the terminal."""
    files = {module_name(folder, file): file for folder in PACKAGES.values() for file in folder.rglob("*.py")}
    reached = needed({*FIRST, PAGE}, {name: imports_of(file) for name, file in files.items()})
    return {name: files[name] for name in sorted(reached)}


def first_modules() -> list[str]:
    """Our modules that are in the snapshot's memory. All others are smaller as code, and come after the first answer."""
    return sorted(needed(FIRST, {name: imports_of(file, at_once=True) for name, file in page_modules().items()}))


def needed(first: Iterable[str], imports: dict[str, set[str]]) -> set[str]:
    """The modules that are imported with the first ones, those among them."""
    found = set(first)
    while more := {each for name in found for each in imports[name] if each in imports} - found:
        found |= more
    return found


def module_name(folder: Path, file: Path) -> str:
    """The full name of a module of the package in `folder`."""
    parts = file.relative_to(folder.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(file: Path, *, at_once: bool = False) -> set[str]:
    """What a module imports, or imports at once when it is imported itself: dotted names; of `from a import b` also a.b. Its package too."""
    tree = ast.parse(file.read_bytes())
    names = {name for node in (tree.body if at_once else ast.walk(tree)) for name in names_in(node)}
    package = next(folder for folder in PACKAGES.values() if file.is_relative_to(folder))
    return names | {module_name(package, file).rpartition(".")[0]}


def imported_names() -> list[str]:
    """What the modules of the page import, but for those that need the extras."""
    return sorted({name for file in page_modules().values() if file.name not in NEED_EXTRAS for name in imports_of(file)} - {""})


def names_in(node: ast.AST) -> set[str]:
    """What one import statement names; nothing for any other node."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level:
        return {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return set()


def copy(source: str | Path, target: Path, wanted: Callable[[str], bool]) -> None:
    """Append the wanted files of one archive to another, dates fixed, so that equal input gives equal bytes."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "a") as new:
        for name in sorted(filter(wanted, old.namelist())):
            new.writestr(zipfile.ZipInfo(name, FIXED_DATE), old.read(name), zipfile.ZIP_DEFLATED, 9)
