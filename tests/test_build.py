"""What build.py and the finished dist/ promise: readable failures, nothing fetched too early, every licence shipped."""

import gzip
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import tomllib
import zipfile
from pathlib import Path

import pytest

from pyscript.tree import h, markup
from vramplan_site import headers, pages, runtime, sums, toolchain
from vramplan_site.server import open_server
from vramplan_site.site import first_files
from vramplan_site.toolchain import DIST, ROOT


def build_py(*arguments, **environment):
    """Run build.py with the Python of these tests."""
    return subprocess.run(
        [sys.executable, ROOT / "build.py", *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )


@pytest.fixture(scope="module")
def manifest() -> dict:
    (file,) = DIST.glob("boot-*.json")
    return json.loads(file.read_text("utf-8"))


@pytest.fixture(scope="module")
def ways(manifest) -> dict:
    return {way["name"]: way for way in manifest["ways"]}


@pytest.fixture(scope="module")
def server():
    with open_server(8700) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running.server_address
        running.shutdown()
        thread.join()


@pytest.fixture
def head(server):
    """Ask for a path's headers: status and headers by name."""
    def ask(path):
        connection = http.client.HTTPConnection(*server)
        connection.request("HEAD", path)
        response = connection.getresponse()
        connection.close()
        return response.status, {name.lower(): value for name, value in response.getheaders()}
    return ask


@pytest.mark.parametrize("arguments", [[], ["frobnicate"], ["--port", "1"]])
def test_unknown_command_prints_the_usage(arguments):
    done = build_py(*arguments)
    assert done.returncode == 2
    assert "build.py serve" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1"])
def test_wrong_port_is_named(port):
    done = build_py("serve", f"--port={port}")
    assert done.returncode == 2
    assert repr(port) in done.stderr and "1 to 65535" in done.stderr and len(done.stderr) < 300


def test_second_build_has_nothing_to_do():
    done = build_py("build")
    assert (done.returncode, done.stdout) == (0, "dist/ is up to date.\n")


def test_failed_command_shows_its_last_words_and_the_fix():
    command = [sys.executable, "-c", "print('no such thing'); raise SystemExit(3)"]
    with pytest.raises(toolchain.Failure, match="(?s)no such thing.*Install the thing."):
        toolchain.run(command, fix="Install the thing.")
    with pytest.raises(toolchain.Failure, match="Install the thing."):
        toolchain.run([ROOT / "no-such-program"], fix="Install the thing.")


def test_changed_npm_package_is_refused(tmp_path, monkeypatch):
    """A tarball whose checksum is not the locked one is not unpacked."""
    def npm_pack(command, **options):
        (Path(command[command.index("--pack-destination") + 1]) / "pyodide.tgz").write_bytes(b"something else")
    monkeypatch.setattr(toolchain, "CACHE", tmp_path)
    monkeypatch.setattr(toolchain, "node_tools", lambda: ("node", "npm"))
    monkeypatch.setattr(toolchain, "run", npm_pack)
    with pytest.raises(toolchain.Failure, match="not the file in locks/npm.toml"):
        toolchain.npm_package("pyodide")
    assert not (tmp_path / "npm" / "pyodide").exists()


@pytest.fixture
def offered(tmp_path, monkeypatch):
    """A wheel and a lock for it, and pip that finds packages in their folder alone and installs into another. Gives the lock and that one."""
    shelf, target = tmp_path / "shelf", tmp_path / "installed"
    shelf.mkdir()
    wheel = shelf / "told-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("told.py", "VALUE = 1\n")
        archive.writestr("told-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: told\nVersion: 1.0\n")
        archive.writestr("told-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr("told-1.0.dist-info/RECORD", "told.py,,\n")
    lock = tmp_path / "told.lock"
    lock.write_text(f"told==1.0 --hash=sha256:{sums.checksum(wheel)}\n", "utf-8")
    for name, value in {"NO_INDEX": "1", "FIND_LINKS": str(shelf), "TARGET": str(target), "DISABLE_PIP_VERSION_CHECK": "1", "NO_CACHE_DIR": "1"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    return lock, wheel, target


def test_a_wheel_that_is_not_the_locked_one_is_refused(offered):
    """pip itself is asked, once with the wheel as it was locked and once with another of the same name."""
    lock, wheel, target = offered
    toolchain.pip_install(Path(sys.executable), lock)
    assert (target / "told.py").is_file()
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("more.py", "")
    with pytest.raises(toolchain.Failure, match="(?s)HASHES.*do not use it"):
        toolchain.pip_install(Path(sys.executable), lock)
    assert not (target / "more.py").exists()


def test_a_wheel_for_the_page_that_is_not_the_locked_one_is_refused(offered, tmp_path, monkeypatch):
    lock, wheel, _ = offered
    monkeypatch.delenv("PIP_TARGET")
    monkeypatch.setattr(toolchain, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(toolchain, "LOCKS", tmp_path)
    monkeypatch.setattr(toolchain, "ROOT", tmp_path)
    lock.rename(tmp_path / "wasm.lock")
    assert [file.name for file in toolchain.wasm_wheels().iterdir()] == [wheel.name]
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("more.py", "")
    (tmp_path / "cache" / "wheels.stamp").unlink()
    with pytest.raises(toolchain.Failure, match="(?s)HASHES.*could not download"):
        toolchain.wasm_wheels()
    assert not [*(tmp_path / "cache").glob("wheels/*.whl")] and not (tmp_path / "cache" / "wheels.stamp").exists()


@pytest.mark.parametrize("lock", (ROOT / "requirements.lock", *toolchain.LOCKS.glob("*.lock")), ids=lambda lock: lock.name)
def test_every_locked_package_has_one_version_and_a_checksum(lock):
    text = re.sub(r"\\\n", " ", lock.read_text("utf-8"))
    entries = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    assert entries
    for entry in entries:
        assert re.match(r"[\w.-]+(\[[\w,]+\])?==[\w.]+\s", entry) and re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry[:80]


def test_every_locked_npm_package_has_its_integrity():
    locked = tomllib.loads((toolchain.LOCKS / "npm.toml").read_text("utf-8"))
    assert {"pyodide", "axe-core"} <= set(locked)
    for entry in locked.values():
        assert re.fullmatch(r"[\d.]+", entry["version"]) and re.fullmatch(r"sha512-[A-Za-z0-9+/]{86}==", entry["integrity"])


def test_an_environment_behind_a_link_is_not_emptied(tmp_path, monkeypatch):
    kept = tmp_path / "somebody else’s"
    (kept / "bin").mkdir(parents=True)
    link = tmp_path / ".venv"
    link.symlink_to(kept)
    monkeypatch.setattr(toolchain, "VENV", link)
    monkeypatch.setattr(toolchain, "BIN", link / "bin")
    with pytest.raises(toolchain.Failure, match=r"\.venv is a link to .*; remove the link"):
        toolchain.make_venv()
    assert (kept / "bin").is_dir()


def test_digest_depends_on_names_and_contents_only():
    folder = ROOT / "static"
    assert toolchain.digest(folder) == toolchain.digest(folder)
    assert toolchain.digest(folder) != toolchain.digest(folder, also="more")
    assert toolchain.digest(folder / "boot.mjs") != toolchain.digest(folder / "style.css")


def test_server_sends_types_and_caching(head, manifest, ways):
    status, headers = head("/")
    assert status == 200
    assert headers["cache-control"] == "no-cache"
    for path, kind in [
        (manifest["engine"] + "pyodide.mjs", "text/javascript"),
        (ways["snapshot"]["files"][1]["url"], "application/octet-stream"),
        (ways["zip"]["files"][1]["url"], "application/zip"),
    ]:
        status, headers = head("/" + path)
        assert (status, headers["content-type"]) == (200, kind)
        assert "immutable" in headers["cache-control"]
        assert headers["access-control-allow-origin"] == "*"
    assert head("/nothing-0123456789ab.zip")[0] == 404


def test_taken_port_gives_the_next_one(server):
    host, port = server
    with open_server(port) as second:
        assert second.server_address[1] > port


def test_page_names_no_other_host_and_no_absolute_path():
    tags = re.findall(r"<(?:link|script|img)\b[^>]*>", (DIST / "index.html").read_text("utf-8"))
    urls = [url for tag in tags for url in re.findall(r'\s(?:href|src|data-manifest)="([^"]*)"', tag)]
    assert len(urls) > 5
    for url in urls:
        assert not url.startswith(("/", "http:", "https:")), url
        assert (DIST / url).is_file(), url


def test_start_holds_no_extras(ways):
    """The page starts without pydantic; what it starts from is compiled, and holds what the packages read."""
    with zipfile.ZipFile(DIST / ways["zip"]["files"][1]["url"]) as archive:
        names = set(archive.namelist())
    assert {"vramplan/__init__.pyc", "vramplan/data/models.json", "pyscript/page.pyc", "typing.pyc"} <= names
    assert not [name for name in names if name.endswith(".py") or name.startswith(("pydantic", "numpy", "micropip"))]


def test_what_is_not_in_the_snapshot_comes_behind_it(ways):
    """Between them, memory and the zip that follows hold every module and all data; what reads other tools' files waits."""
    (code,) = ways["snapshot"]["after"]
    with zipfile.ZipFile(DIST / ways["zip"]["files"][1]["url"]) as whole, zipfile.ZipFile(DIST / code["url"]) as rest:
        names, left = set(whole.namelist()), set(rest.namelist())
        assert rest.testzip() is None
    in_memory = {name.replace(".", "/") for name in runtime.first_modules()}
    assert {"vramplan/settings", "pyscript/first", "pyscript/dom"} <= in_memory
    assert left < names
    ours = {name.removesuffix(".pyc").removesuffix("/__init__") for name in names - left if name.startswith(("vramplan/", "pyscript/"))}
    assert ours == in_memory
    assert {"pyscript/page.pyc", "vramplan/importing/imported.pyc", "vramplan/data/families.json", "vramplan/data/models.json"} <= left
    assert code["url"] not in first_files(DIST)


def test_the_page_stays_small(ways):
    """What comes before the first number, from a host that compresses nothing and from one that does."""
    urls = first_files(DIST)
    assert {file["url"] for file in ways["snapshot"]["files"]} < urls
    contents = [(DIST / url).read_bytes() for url in urls]
    plain = sum(map(len, contents))
    compressed = sum(min(len(content), len(gzip.compress(content, 6))) for content in contents)
    assert len(urls) > 10 and compressed <= 8_000_000 and plain <= 9_500_000


def test_what_is_downloaded_first_is_what_the_manifest_says(ways):
    for way in ways.values():
        for file in (*way["files"], *way["after"]):
            assert (DIST / file["url"]).stat().st_size == file["bytes"]


def test_sources_of_another_time_and_place_make_the_same_archive(tmp_path, monkeypatch):
    runtime.write_sources(tmp_path / "here.zip")
    copies = {name: shutil.copytree(folder, tmp_path / name) for name, folder in runtime.PACKAGES.items()}
    for file in tmp_path.rglob("*.*"):
        os.utime(file, (1_000_000_000, 1_000_000_000))
    monkeypatch.setattr(runtime, "PACKAGES", copies)
    monkeypatch.setattr(runtime, "PHRASES", copies["vramplan"] / "data" / "languages")
    monkeypatch.setattr(time, "time", lambda: 1_100_000_000.0)
    runtime.write_sources(tmp_path / "there.zip")
    assert (tmp_path / "here.zip").read_bytes() == (tmp_path / "there.zip").read_bytes()


def test_rest_completes_the_standard_library(ways, tmp_path):
    """Written over the end of the start zip, the rest makes one sound zip with every module once."""
    start, rest = ways["snapshot"]["rest"]
    first = ways["zip"]["files"][1]
    assert (start, [rest]) == ({"url": first["url"], "integrity": first["integrity"], "at": 0}, ways["zip"]["rest"])
    whole = tmp_path / "whole.zip"
    whole.write_bytes((DIST / start["url"]).read_bytes()[:rest["at"]] + (DIST / rest["url"]).read_bytes())
    with zipfile.ZipFile(whole) as archive:
        assert archive.testzip() is None
        names = [name for name in archive.namelist() if not name.startswith(("vramplan/", "pyscript/"))]
    assert len(names) == len(set(names))
    with zipfile.ZipFile(toolchain.CACHE / "npm" / "pyodide" / "python_stdlib.zip") as stock:
        modules = {name + "c" for name in stock.namelist() if name.endswith(".py")}
    assert modules <= set(names)


def test_lock_names_compiled_wheels_that_are_there(manifest):
    packages = manifest["lock"]["packages"]
    assert set(manifest["extras"]["packages"]) <= set(packages)
    for package in packages.values():
        assert set(package["depends"]) <= set(packages)
        with zipfile.ZipFile(DIST / package["file_name"]) as wheel:
            assert not [name for name in wheel.namelist() if name.endswith((".py", ".pyi"))]


def test_everything_served_has_its_licence(manifest):
    folder = DIST / "licences"
    parts = ["vramplan", "pyodide", "cpython", "native-libraries", *manifest["lock"]["packages"]]
    index = (folder / "README.txt").read_text("utf-8")
    for part in parts:
        assert f"{part}.txt" in index
        assert len((folder / f"{part}.txt").read_text("utf-8")) > 1000


def test_lock_files_name_no_registry():
    locks = [ROOT / "requirements.lock", *toolchain.LOCKS.iterdir()]
    assert len(locks) == 4
    for lock in locks:
        assert not re.search(r"https?:|file:|index-url|find-links", lock.read_text("utf-8")), lock.name


def test_versions_for_the_page_are_those_of_the_tests():
    locked = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE))
    page = dict(re.findall(r"^([\w-]+)==(\S+)", (toolchain.LOCKS / "wasm.lock").read_text("utf-8"), re.MULTILINE))
    assert page.pop("micropip")
    assert page == {name: locked[name] for name in page}


@pytest.mark.parametrize("hub, connect", (("https://huggingface.co", "'self' https://huggingface.co"), ("http://mirror.example:8080", "'self' http://mirror.example:8080"), ("", "'self'")))
def test_the_page_may_ask_the_hub_it_was_built_with_and_no_other(hub, connect):
    assets = {"files": dict.fromkeys(("icon.svg", "preview.png"), "x"), "links": [], "phrases": {}, "early": {}, "view": {}, "style": {}, "boot": {}}
    meta, *_ = pages.head(assets, hub, "en")
    told = dict(meta.attributes)["content"]
    directives = dict(part.split(" ", 1) for part in told.split("; "))
    assert told == headers.policy(hub)
    assert (directives["connect-src"], directives["default-src"]) == (connect, "'none'")
    assert directives["script-src"] == "'self' 'wasm-unsafe-eval'" and "'unsafe-inline'" not in told and "*" not in told
    form = markup(h("form", pages.slots(assets, hub)["form"]))
    assert ("Hugging Face" in form) is bool(hub)


@pytest.mark.parametrize("text", ("huggingface.co", "ftp://x", "https://a/b", "https://a b", "https://a;script-src *", "", "javascript:alert(1)"))
def test_a_hub_that_is_no_origin_is_refused(text):
    done = build_py("build", "--hub", text)
    assert done.returncode != 0 and "must be a scheme and a host" in done.stderr
