"""Puts the licence of everything that is served into dist/licences/."""

import json
import shutil
import zipfile
from pathlib import Path

from vramplan_site.runtime import Runtime
from vramplan_site.toolchain import ROOT

TEXTS = Path(__file__).with_name("licences")
"""Texts that no downloaded package carries; each says at its top where it comes from."""

INDEX = """\
What this site is made of, and under which licence. Each text is a file beside this one.

vramplan.txt            VRAM Plan: MIT
pyodide.txt             Pyodide {pyodide}: MPL-2.0
cpython.txt             CPython 3.14: PSF-2.0
native-libraries.txt    libraries inside Pyodide's WebAssembly: MIT, BSD, zlib, bzip2, Apache-2.0 and public domain
zstddec.txt             zstddec {zstddec}, with Zstandard: MIT and BSD-3-Clause
noto-sans-math.txt      Noto Sans Math, a subset, for the formulas: OFL-1.1
{wheels}
The wheels are served compiled (.pyc for .py) and are otherwise unchanged.
"""


def write_licences(dist: Path, runtime: Runtime) -> None:
    """Write one text for each part, and README.txt, which lists them."""
    target = dist / "licences"
    shutil.copytree(TEXTS, target)
    shutil.copyfile(ROOT / "LICENSE", target / "vramplan.txt")
    shutil.copyfile(runtime.zstddec / "LICENSE", target / "zstddec.txt")
    lines = []
    for name, package in runtime.lock["packages"].items():
        licence, text = wheel_licence(runtime.wheels / package["file_name"])
        (target / f"{name}.txt").write_text(text, "utf-8")
        lines.append(f"{name + '.txt':<23} {name} {package['version']}: {licence}\n")
    versions = {folder.name: json.loads((folder / "package.json").read_text("utf-8"))["version"] for folder in (runtime.pyodide, runtime.zstddec)}
    (target / "README.txt").write_text(INDEX.format(**versions, wheels="".join(lines)), "utf-8")


def wheel_licence(wheel: Path) -> tuple[str, str]:
    """A wheel's licence: its short name, and the texts it carries."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        head = archive.read(metadata).decode().splitlines()
        texts = [archive.read(name).decode() for name in names if ".dist-info/licenses/" in name]
    named = [line.split(": ", 1)[1] for line in head if line.startswith(("License-Expression: ", "License: "))]
    if not named or not texts:
        raise ValueError(f"{wheel.name} carries no licence or no text of it; put one into {TEXTS.name}/")
    return named[0], "\n".join(texts)
