"""What dist/ is published with: a list of checksums, hashes beside names, and headers for hosts, each of one account."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from test_build import build_py
from vramplan.importing.hub import ORIGIN
from vramplan_site import deploy, headers, site, sums
from vramplan_site.toolchain import DIST, ROOT

NAMED = re.compile(r"<(script|link)\b([^>]*)>")
ATTRIBUTE = re.compile(r'\s([\w-]+)="([^"]*)"')
UNCHECKED = {"icon", "preload"}
"""Links whose files no browser holds against a hash; what is fetched early is checked when it is used."""


@pytest.fixture
def copy(tmp_path):
    """A copy of dist/ that may be damaged."""
    return shutil.copytree(DIST, tmp_path / "copy")


@pytest.fixture(scope="module")
def rules():
    """The rules of _headers: {path: {name: value}}, each path once."""
    found = {}
    for line in (DIST / deploy.NETLIFY).read_text("utf-8").splitlines():
        if line.startswith("  "):
            name, value = line.strip().split(": ", 1)
            assert name not in found[path]
            found[path][name] = value
        else:
            path = line
            assert path not in found
            found[path] = {}
    return found


def pages():
    return [*DIST.glob("*.html")]


def test_every_file_of_the_build_is_listed_and_sound():
    assert sums.differences(DIST) == []
    listed = re.findall(r"^[0-9a-f]{64}  (.+)$", (DIST / sums.LIST).read_text("utf-8"), re.MULTILINE)
    assert {*listed, sums.LIST} == {file.relative_to(DIST).as_posix() for file in DIST.rglob("*") if file.is_file()}


def test_one_wrong_bit_in_any_file_is_named(copy):
    files = sorted(file for file in copy.rglob("*") if file.is_file())
    assert len(files) > 40
    for file in files:
        whole = file.read_bytes()
        damaged = bytearray(whole)
        damaged[len(whole) // 2] ^= 1
        file.write_bytes(damaged)
        told = sums.differences(copy)
        assert told and all(file.name in sentence or file.name == sums.LIST for sentence in told)
        file.write_bytes(whole)
    assert sums.differences(copy) == []


def test_missing_and_added_files_are_named(copy):
    (copy / "index.html").rename(copy / "home.html")
    (copy / "licences" / "more.txt").write_text("more", "utf-8")
    assert sums.differences(copy) == [
        "home.html is not in SHA256SUMS.", "index.html is missing.", "licences/more.txt is not in SHA256SUMS.",
    ]
    (copy / sums.LIST).unlink()
    assert sums.differences(copy) == ["SHA256SUMS is missing."]


@pytest.mark.parametrize("line", ("x", f"{'0' * 64}  ../outside", f"{'0' * 64}  /etc/passwd", f"{'0' * 63}  index.html", f"{'0' * 64}  a\\..\\b", "\x00\xff"))
def test_a_list_that_leads_elsewhere_is_refused(copy, line):
    with (copy / sums.LIST).open("a", encoding="latin-1") as file:
        file.write(line + "\n")
    (told,) = sums.differences(copy)
    assert told.startswith("SHA256SUMS, line ") and told.endswith("is not a checksum and the name of a file in this folder.")


def test_verify_tells_in_words_and_by_its_exit_code(copy):
    sound = build_py("verify", str(copy))
    assert sound.returncode == 0 and sums.checksum(DIST / sums.LIST) in sound.stdout
    (copy / "index.html").write_text("<!doctype html>", "utf-8")
    damaged = build_py("verify", str(copy))
    assert (damaged.returncode, damaged.stdout) == (1, "index.html is not the file that was built.\n")
    nowhere = build_py("verify", str(copy / "nowhere"))
    assert nowhere.returncode == 1 and "There is no folder" in nowhere.stderr and "Traceback" not in nowhere.stderr


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="no sha256sum on this machine")
def test_the_usual_program_reads_the_list(copy):
    check = ["sha256sum", "--check", "--quiet", "--strict", sums.LIST]
    assert subprocess.run(check, cwd=copy, capture_output=True, check=False).returncode == 0
    (copy / "index.html").write_text("<!doctype html>", "utf-8")
    assert subprocess.run(check, cwd=copy, capture_output=True, check=False).returncode == 1


def test_a_build_that_was_changed_is_built_anew(monkeypatch, tmp_path):
    """Being of the right sources is not enough."""
    built = []
    monkeypatch.setattr(site.sums, "differences", lambda folder: built.append(folder) or ["changed"])
    monkeypatch.setattr(site, "CACHE", tmp_path)
    monkeypatch.setattr(site, "_inputs", lambda hub: "same")
    site.toolchain.write_stamp(tmp_path / "dist.stamp", "same")
    monkeypatch.setattr(site.errors, "write", lambda: None)

    class Begun(Exception):
        pass

    def make_runtime():
        raise Begun
    monkeypatch.setattr(site, "make_runtime", make_runtime)
    with pytest.raises(Begun):
        site.build_site()
    assert built == [DIST]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_scripts_and_styles_are_named_with_their_hash(page):
    pinned = 0
    for tag, text in NAMED.findall(page.read_text("utf-8")):
        attributes = dict(ATTRIBUTE.findall(text))
        if attributes.get("rel") in UNCHECKED:
            continue
        url = attributes.get("src") or attributes["href"]
        assert attributes["integrity"] == sums.integrity((DIST / url).read_bytes()), url
        if manifest := attributes.get("data-manifest"):
            assert attributes["data-manifest-integrity"] == sums.integrity((DIST / manifest).read_bytes())
        pinned += 1
    assert pinned >= (2 if page.name.startswith("runs-") else 7)


def test_what_python_is_started_from_is_named_with_its_hash():
    (file,) = DIST.glob("boot-*.json")
    manifest = json.loads(file.read_text("utf-8"))
    named = [part for way in manifest["ways"] for part in (*way["files"], *way["after"], *way["rest"])]
    assert len(named) > 9
    for part in named:
        assert part["integrity"] == sums.integrity((DIST / part["url"]).read_bytes())
    for package in manifest["lock"]["packages"].values():
        assert package["sha256"] == sums.checksum(DIST / package["file_name"])


def test_the_page_and_every_host_have_one_policy(rules):
    policy = headers.policy(ORIGIN)
    for page in pages():
        (told,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page.read_text("utf-8"))
        assert told.replace("&#x27;", "'") == policy
    assert rules["/*"]["Content-Security-Policy"] == policy
    assert f'add_header Content-Security-Policy "{policy}" always;' in (DIST / deploy.NGINX).read_text("utf-8").splitlines()


def test_a_policy_without_a_hub_reaches_the_hosts_too():
    own = "connect-src 'self';"
    assert own in deploy.netlify(["/index.html"], "") and own in deploy.nginx("")
    assert "http://mirror.example:8080" in deploy.netlify([], "http://mirror.example:8080")


def test_pages_and_the_worker_are_asked_for_anew_and_hashed_names_are_kept(rules):
    caching = {path: rule["Cache-Control"] for path, rule in rules.items() if "Cache-Control" in rule}
    anew = {f"/{page.name}" for page in pages() if not page.name.startswith("runs-")}  # those pages have a hash in their names
    assert {path for path, told in caching.items() if told == "no-cache"} == {"/", "/service-worker.mjs", "/embed.js", *anew}
    kept = {path for path, told in caching.items() if "immutable" in told}
    assert len(kept) > 20 and kept | {path for path, told in caching.items() if told == "no-cache"} == set(caching)
    for path in kept:
        assert (DIST / path[1:]).is_file() and path not in {"/index.html", "/zh.html"}
    assert "Cache-Control" not in rules["/*"]
    assert len(rules) <= 100  # what Cloudflare Pages reads


@pytest.mark.skipif(not shutil.which("nginx"), reason="no nginx on this machine")
def test_nginx_reads_its_file(tmp_path):
    (tmp_path / "logs").mkdir()
    whole = f"""pid {tmp_path}/pid; events {{}}
    http {{ access_log off; server {{ listen 127.0.0.1:8099; location /docs/vram/ {{ alias {DIST}/; include {DIST / deploy.NGINX}; }} }} }}"""
    (tmp_path / "whole.conf").write_text(whole, "utf-8")
    done = subprocess.run(
        ["nginx", "-t", "-e", tmp_path / "errors", "-p", tmp_path, "-c", tmp_path / "whole.conf"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "warn" not in done.stderr, done.stderr


def test_verify_needs_nothing_installed():
    """With no site packages at all."""
    done = subprocess.run([sys.executable, "-S", "-I", ROOT / "build.py", "verify", DIST], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
