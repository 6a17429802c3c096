"""The list of what dist/ is made of, in the form that `sha256sum -c` reads, and the check of a folder against it.

Standard library only, so that a copy can be checked where nothing is installed.
"""

import base64
import hashlib
import re
from pathlib import Path, PurePosixPath

from vramplan_site.toolchain import DIST, Failure, say

LIST = "SHA256SUMS"
"""The file's name."""

_LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


def integrity(content: bytes) -> str:
    """The hash of a file as `integrity` attributes and fetch take it."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content).digest()).decode()


def write(folder: Path) -> str:
    """List every file of a folder; return the checksum of the list, which stands for all of them."""
    (folder / LIST).write_bytes(_listed(_files(folder)))
    return checksum(folder / LIST)


def differences(folder: Path) -> list[str]:
    """A sentence for every file that is not as the list says, or not in it; none for a sound copy."""
    if not (folder / LIST).is_file():
        return [f"{LIST} is missing."]
    listed, found, told = {}, _files(folder), []
    content = (folder / LIST).read_bytes()
    if content == _listed(found):
        return []
    for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match and _is_inside(match[2]) and match[2] not in listed:
            listed[match[2]] = match[1]
        elif not line.startswith("#"):
            told.append(f"{LIST}, line {number}, is not a checksum and the name of a file in this folder.")
    for name, expected in listed.items():
        if name not in found:
            told.append(f"{name} is missing.")
        elif checksum(found[name]) != expected:
            told.append(f"{name} is not the file that was built.")
    told += (f"{name} is not in {LIST}." for name in found.keys() - listed.keys())
    return sorted(told) or [f"{LIST} is not as it was written."]


def checksum(file: Path) -> str:
    """The SHA-256 of a file, in hexadecimal digits."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _listed(files: dict[str, Path]) -> bytes:
    """The list of these files."""
    lines = [f"# {len(files)} files, {sum(file.stat().st_size for file in files.values())} bytes"]
    lines += (f"{checksum(file)}  {name}" for name, file in files.items())
    return ("\n".join(lines) + "\n").encode()


def verify(arguments: list[str]) -> int:
    """Check dist/ or another folder, tell what is wrong, and return the exit code."""
    if len(arguments) > 1:
        raise Failure("verify takes one folder at most.")
    folder = Path(arguments[0]) if arguments else DIST
    if not folder.is_dir():
        raise Failure(f"There is no folder {folder}; run `python3 build.py build` to make dist/.")
    told = differences(folder)
    for sentence in told:
        say(sentence)
    if not told:
        say(f"Every file is the one that was built; {LIST} has the SHA-256 {checksum(folder / LIST)}.")
    return 1 if told else 0


def _files(folder: Path) -> dict[str, Path]:
    """Every file of a folder but the list, by its path in it."""
    files = (file for file in folder.rglob("*") if file.is_file())
    named = {file.relative_to(folder).as_posix(): file for file in files}
    return {name: named[name] for name in sorted(named) if name != LIST}


def _is_inside(name: str) -> bool:
    """Whether a listed name can only lead into the folder."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name
