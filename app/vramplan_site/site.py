"""Puts dist/ together: the runtime, the static files under names that hold their hash, the pages, the licences."""

import hashlib
import json
import re
import shutil
from pathlib import Path

from vramplan.importing.hub import ORIGIN
from vramplan.language import ENGLISH, LANGUAGES, book
from vramplan_site import deploy, errors, sums, toolchain
from vramplan_site.licences import write_licences
from vramplan_site.pages import page_name, runs_page, write_pages
from vramplan_site.runtime import EXTRAS, PYODIDE_SCRIPTS, Runtime, make_runtime
from vramplan_site.toolchain import CACHE, DIST, ROOT, say
from pyscript.snapshot import answer

STDLIB_PLACE = "/lib/python314.zip"
"""Where Pyodide 314 puts the zip it starts from, in its own file system."""

STOCK = "python_stdlib.zip"
"""A file of the npm package: the standard library it comes with."""

DECODER = re.compile(r"const wasm = [\"']([A-Za-z0-9+/=]+)[\"']")
"""The WebAssembly within the script of zstddec that takes a file piece by piece, in base64."""

PAGE, RUNS = "index.html", "runs"
"""The page that opens by itself, and how the names begin of those with every recorded run."""

BOOT, UNPACKER = "boot.mjs", "unpacker.mjs"
"""The script of static/ that a page names, which imports the others, and the one of a worker."""

VIEW, EARLY = FIRST = ("view.js", "early.js")
"""The scripts of static/ that run before a page is shown."""

SERVICE_WORKER, EMBED = "service-worker.mjs", "embed.js"
"""The scripts of static/ that are served under their own names: the page's service worker, and what other pages name to size a frame."""

NAMED = re.compile(rb'<(?:link|script|img)\b[^>]*?\s(?:href|src)="([^"?#:]+)"|data-manifest="([^"]+)"')
"""What a page names of its build."""

PATIENCE = 15_000
"""Milliseconds without progress after which a start from the snapshot is given up."""

TOLD = ("v=1&method=lora", "v=2&method=full&gpu=80&sequence_length=3000", "v=2&model=qwen3-8b&method=qlora&rank=24&micro_batch=3&sequence_length=777")
"""Links whose answers a restored Python has to give."""

REFERENCES = {".css": re.compile(r'url\("([^"]+)"\)'), ".mjs": re.compile(r'from "\./([^"]+)"')}
"""How files of static/ name others of them."""

INPUTS = (
    "app", "pyscript", "static", "index.html", "LICENSE", "pyproject.toml", "requirements.lock",
    "tests/traced/traced.csv", "tests/measured/runs.csv",
)


def build_site(hub: str = ORIGIN) -> None:
    """Build dist/ unless it is there already for exactly these sources, as it was built. hub: where models are fetched from; empty for nowhere."""
    wanted = _inputs(hub)
    stamp = CACHE / "dist.stamp"
    if toolchain.stamp_is(stamp, wanted) and DIST.is_dir() and not sums.differences(DIST):
        say("dist/ is up to date.")
        return
    errors.write()
    wanted = _inputs(hub)
    runtime = make_runtime()
    stamp.unlink(missing_ok=True)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    assets = write_assets(runtime)
    runs = {code: hashed(runs_page(assets, hub, code).encode(), f"{RUNS}-{code}", ".html") for code in LANGUAGES}
    write_pages(DIST, {**assets, "runs": runs}, hub)
    write_service_worker(DIST)
    write_licences(DIST, runtime)
    deploy.write(DIST, hub)
    whole = sums.write(DIST)
    toolchain.write_stamp(stamp, wanted)
    size = sum(file.stat().st_size for file in DIST.rglob("*") if file.is_file())
    say(f"Built dist/ ({size / 1e6:.1f} MB); {sums.LIST} has the SHA-256 {whole}.")


def _inputs(hub: str) -> str:
    """What decides everything in dist/."""
    return toolchain.digest(*(ROOT / name for name in INPUTS)) + hub


def write_assets(runtime: Runtime) -> dict:
    """Write every file but the pages; return what a page has to name, with URLs relative to dist/.

    files: {name in static/: URL}. phrases: the <script> attributes of every language's phrase book but English, by its code.
    links: attributes of each <link> that starts a download early. early, view: of the <script>s that run first. style: of the <link> to the style.
    boot: of the <script> that starts Python. What a browser can check before it is used has its hash beside its name.
    """
    files = write_static(decoder(runtime.zstddec))
    shutil.copyfile(ROOT / "static" / EMBED, DIST / EMBED)
    manifest = write_runtime(runtime)
    name = hashed(json.dumps(manifest).encode(), "boot", ".json")
    fetched = {"rel": "preload", "as": "fetch", "crossorigin": "anonymous"}
    links = [
        {"rel": "preload", "as": "style", **pinned("href", files["style.css"])},
        *({"rel": "preload", "as": "script", **pinned("href", files[name])} for name in FIRST),
        *({**fetched, "href": file["url"]} for file in manifest["ways"][0]["files"]),
        {**fetched, "href": name},
        *({"rel": "modulepreload", **pinned("href", url)} for name, url in files.items() if name.endswith(".mjs") and name != UNPACKER),
        *({"rel": "modulepreload", **pinned("href", manifest["engine"] + script)} for script in PYODIDE_SCRIPTS),
    ]
    boot = {"type": "module", "async": True, **pinned("src", files[BOOT]), "data-manifest": name, "data-manifest-integrity": pinned("href", name)["integrity"]}
    return {
        "files": files, "links": links, "phrases": {code: phrases(code) for code in LANGUAGES if code != ENGLISH},
        "early": {**pinned("src", files[EARLY]), "data-unpacker": files[UNPACKER]},
        "view": pinned("src", files[VIEW]), "style": pinned("href", files["style.css"]), "boot": boot,
    }


def phrases(code: str) -> dict[str, str]:
    """Write the phrase book of a language; return what the boot script of its page has to know."""
    url = hashed(json.dumps(book(code), ensure_ascii=False).encode(), code, ".json")
    return {"data-phrases": url, "data-phrases-integrity": pinned("href", url)["integrity"]}


def pinned(attribute: str, url: str) -> dict[str, str]:
    """The attributes that name a file of dist/ and its hash."""
    return {attribute: url, "integrity": sums.integrity((DIST / url).read_bytes())}


def decoder(zstddec: Path) -> str:
    """What unpacks Zstandard: the WebAssembly in a script of the npm package, as that holds it."""
    (found,) = DECODER.findall((zstddec / "dist" / "zstddec-stream.mjs").read_text("utf-8"))
    return found


def write_static(unpacking: str) -> dict[str, str]:
    """Write the files of static/, each after those it names; return {name: URL}. unpacking: WebAssembly for the script that unpacks, in base64."""
    folder, files = ROOT / "static", {}

    def write(name: str) -> str:
        if name not in files:
            file = folder / name
            content = file.read_bytes()
            if name == UNPACKER:
                content = f'const DECODER = "{unpacking}";\n'.encode() + content
            if pattern := REFERENCES.get(file.suffix):
                content = pattern.sub(lambda match: match[0].replace(match[1], write(match[1])), content.decode()).encode()
            files[name] = hashed(content, file.stem, file.suffix)
        return files[name]

    for file in sorted(folder.iterdir()):
        if file.name not in (SERVICE_WORKER, EMBED):
            write(file.name)
    return files


def write_runtime(runtime: Runtime) -> dict:
    """Write Pyodide, all that Python can start from, and the extras; return the manifest that boot.mjs reads."""
    version = json.loads((runtime.pyodide / "package.json").read_text("utf-8"))["version"]
    engine = f"pyodide-{version}"
    (DIST / engine).mkdir()
    for name in PYODIDE_SCRIPTS:
        shutil.copyfile(runtime.pyodide / name, DIST / engine / name)

    lock = json.loads(json.dumps(runtime.lock))
    folder = "wheels-" + short_hash(json.dumps(lock, sort_keys=True).encode())
    shutil.copytree(runtime.wheels, DIST / folder)
    for package in lock["packages"].values():
        package["file_name"] = f"{folder}/{package['file_name']}"

    start = {**pinned("url", hashed(runtime.start.read_bytes(), "app", ".zip")), "at": 0}
    rest = {**pinned("url", hashed(runtime.rest.read_bytes(), "stdlib", ".bin")), "at": runtime.rest_at}
    return {
        "engine": f"{engine}/",
        "first": "pyscript.first",
        "module": "pyscript.page",
        "snapshot": "pyscript.snapshot",
        "lock": lock,
        "extras": {"place": STDLIB_PLACE, "packages": list(EXTRAS)},
        "ways": ways(runtime, start, rest),
    }


def ways(runtime: Runtime, start: dict, rest: dict) -> list[dict]:
    """How Python can be started, the fastest way first; static/python.mjs says what an entry holds."""
    wasm = part(hashed(runtime.engine.read_bytes(), "engine", ".bin"))
    snapshot = part(hashed(runtime.snapshot.read_bytes(), "snapshot", ".bin"))
    code = part(hashed(runtime.snapshot_rest.read_bytes(), "code", ".zip"))
    stock = part(hashed((runtime.pyodide / STOCK).read_bytes(), "stock", ".zip"))
    sources = part(hashed(runtime.sources.read_bytes(), "sources", ".zip"))
    return [
        {
            "name": "snapshot", "files": [wasm, snapshot], "after": [code], "restoring": runtime.restoring, "patience": PATIENCE,
            "told": {link: answer(link) for link in TOLD}, "rest": [start, rest],
        },
        {"name": "zip", "files": [wasm, part(start["url"])], "after": [], "rest": [rest]},
        {"name": "stock", "files": [wasm, stock, sources], "after": [], "sources": True, "rest": []},
    ]


def write_service_worker(dist: Path) -> None:
    """Write the script that keeps this build for use without a network; its name never changes, its content does with the build."""
    pages = {page_name(code): (dist / page_name(code)).read_bytes() for code in LANGUAGES}
    manifest = json.loads((dist / named_manifest(pages[PAGE])).read_text("utf-8"))
    files = {
        *first_files(dist), *(file.name for file in dist.glob(f"{RUNS}-*.html")), *(name for page in pages.values() for name in named_files(page)),
        *(file["url"] for way in manifest["ways"][:2] for file in (*way["files"], *way["after"], *way["rest"])),
        *(package["file_name"] for package in manifest["lock"]["packages"].values()),
    }
    hashes = {name: sums.integrity((dist / name).read_bytes()) for name in sorted(files - {PAGE})}
    named = {name: sorted(named_files(page)) for name, page in pages.items()}
    told = {"BUILD": short_hash(b"".join(pages.values())), "PAGES": named, "FILES": hashes}
    head = "".join(f"const {key} = {json.dumps(value)};\n" for key, value in told.items())
    (dist / SERVICE_WORKER).write_text(head + (ROOT / "static" / SERVICE_WORKER).read_text("utf-8"), "utf-8")


def first_files(dist: Path) -> set[str]:
    """Everything that comes before the first number, by name."""
    page = (dist / PAGE).read_bytes()
    found = (file.name for pattern in ("*.woff2", f"{Path(UNPACKER).stem}-*.mjs") for file in dist.glob(pattern))
    return {PAGE, *named_files(page), *found}


def named_files(page: bytes) -> set[str]:
    """The files of its build that a page names, all of which it loads at once."""
    return {url.decode() for urls in NAMED.findall(page) for url in urls if url}


def named_manifest(page: bytes) -> str:
    """The name of the manifest that a page gives its boot script."""
    return next(url.decode() for *_, url in NAMED.findall(page) if url)


def part(url: str) -> dict:
    """A file of dist/ that is downloaded as it is."""
    return {**pinned("url", url), "bytes": (DIST / url).stat().st_size}


def hashed(content: bytes, stem: str, suffix: str) -> str:
    """Write a file of dist/ under a name that holds its content's hash; return the name."""
    name = f"{stem}-{short_hash(content)}{suffix}"
    (DIST / name).write_bytes(content)
    return name


def short_hash(content: bytes) -> str:
    """Enough of a hash to tell two contents apart."""
    return hashlib.sha256(content).hexdigest()[:12]
