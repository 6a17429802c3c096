"""Puts dist/ together: the runtime, the static files under names that hold their hash, the pages, the licences."""

import hashlib
import json
import re
import shutil
from pathlib import Path

from vramplan.importing.hub import ORIGIN
from vramplan_site import errors, toolchain
from vramplan_site.licences import write_licences
from vramplan_site.pages import write_pages
from vramplan_site.runtime import EXTRAS, PYODIDE_FILES, Runtime, make_runtime
from vramplan_site.toolchain import CACHE, DIST, ROOT, say

STDLIB_PLACE = "/lib/python314.zip"
"""Where Pyodide 314 puts the zip it starts from, in its own file system."""

URL_IN_CSS = re.compile(r'url\("([^"]+)"\)')
"""A style sheet's reference to another file of static/."""

INPUTS = (
    "app", "pyscript", "static", "index.html", "LICENSE", "pyproject.toml", "requirements.lock",
    "tests/traced/traced.csv", "tests/measured/runs.csv",
)


def build_site(hub: str = ORIGIN) -> None:
    """Build dist/ unless it is there already for exactly these sources. hub: where models are fetched from; empty for nowhere."""
    wanted = _inputs(hub)
    stamp = CACHE / "dist.stamp"
    if toolchain.stamp_is(stamp, wanted) and DIST.is_dir():
        say("dist/ is up to date.")
        return
    errors.write()
    wanted = _inputs(hub)
    runtime = make_runtime()
    stamp.unlink(missing_ok=True)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    write_pages(DIST, write_assets(runtime), hub)
    write_licences(DIST, runtime)
    toolchain.write_stamp(stamp, wanted)
    size = sum(file.stat().st_size for file in DIST.rglob("*") if file.is_file())
    say(f"Built dist/ ({size / 1e6:.1f} MB).")


def _inputs(hub: str) -> str:
    """What decides everything in dist/."""
    return toolchain.digest(*(ROOT / name for name in INPUTS)) + hub


def write_assets(runtime: Runtime) -> dict:
    """Write every file but the pages; return what a page has to name, with URLs relative to dist/.

    files: {name in static/: URL}. links: attributes of each <link> that starts a download early.
    boot: attributes of the <script> that starts Python.
    """
    files = write_static()
    engine, manifest = write_runtime(runtime)
    name = hashed(json.dumps(manifest).encode(), "boot", ".json")
    fetched = {"rel": "preload", "as": "fetch", "crossorigin": "anonymous"}
    links = [
        {"rel": "modulepreload", "href": f"{engine}/pyodide.mjs"},
        {"rel": "modulepreload", "href": f"{engine}/pyodide.asm.mjs"},
        {**fetched, "href": name},
        *({**fetched, "href": file["url"]} for file in manifest["files"]),
    ]
    return {"files": files, "links": links, "boot": {"type": "module", "src": files["boot.mjs"], "data-manifest": name}}


def write_static() -> dict[str, str]:
    """Write the files of static/, style sheets last, since they name others; return {name: URL}."""
    files = {}
    for file in sorted((ROOT / "static").iterdir(), key=lambda file: (file.suffix == ".css", file.name)):
        content = file.read_bytes()
        if file.suffix == ".css":
            content = URL_IN_CSS.sub(lambda match: f'url("{files[match[1]]}")', content.decode()).encode()
        files[file.name] = hashed(content, file.stem, file.suffix)
    return files


def write_runtime(runtime: Runtime) -> tuple[str, dict]:
    """Write Pyodide, the start zip and the extras; return Pyodide's folder and the manifest that boot.mjs reads."""
    version = json.loads((runtime.pyodide / "package.json").read_text("utf-8"))["version"]
    engine = f"pyodide-{version}"
    (DIST / engine).mkdir()
    for name in PYODIDE_FILES:
        shutil.copyfile(runtime.pyodide / name, DIST / engine / name)

    lock = json.loads(json.dumps(runtime.lock))
    folder = "wheels-" + short_hash(json.dumps(lock, sort_keys=True).encode())
    shutil.copytree(runtime.wheels, DIST / folder)
    for package in lock["packages"].values():
        package["file_name"] = f"{folder}/{package['file_name']}"

    start = hashed(runtime.start.read_bytes(), "app", ".zip")
    wasm = f"{engine}/pyodide.asm.wasm"
    return engine, {
        "engine": f"{engine}/",
        "start": start,
        "files": [{"url": url, "bytes": (DIST / url).stat().st_size} for url in (wasm, start)],
        "module": "pyscript.page",
        "lock": lock,
        "extras": {
            "zip": STDLIB_PLACE, "rest": hashed(runtime.rest.read_bytes(), "stdlib", ".bin"), "at": runtime.rest_at, "packages": list(EXTRAS),
        },
    }


def hashed(content: bytes, stem: str, suffix: str) -> str:
    """Write a file of dist/ under a name that holds its content's hash; return the name."""
    name = f"{stem}-{short_hash(content)}{suffix}"
    (DIST / name).write_bytes(content)
    return name


def short_hash(content: bytes) -> str:
    """Enough of a hash to tell two contents apart."""
    return hashlib.sha256(content).hexdigest()[:12]
