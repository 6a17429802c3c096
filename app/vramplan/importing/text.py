"""The text of a file as a JSON object: repaired where it is plain what was meant, else named for what it is."""

import codecs
import json
import re
from dataclasses import dataclass

from vramplan.checks import quoted
from vramplan.importing.problems import ImportProblem
from vramplan.units import count_text

MAX_BYTES = 4 * 2**20
"""Largest file that is read. A config.json has a few thousand bytes; weights and tokenizers are larger than this."""

MAX_DIGITS = 400
"""Digits of a whole number that are read; Python itself refuses more than some thousand."""

MAX_DEPTH = 64
"""Deepest nesting that is read; a config.json has four levels."""

HEADS = (
    (b"GGUF", "a GGUF file of weights"),
    (b"PK\x03\x04", "a zip archive, as PyTorch saves weights"),
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
    (b"RIFF", "a picture or a sound"),
    (b"\x1f\x8b", "a compressed file (gzip)"),
    (b"7z\xbc\xaf", "a compressed file (7z)"),
    (b"Rar!", "a compressed file (RAR)"),
    (b"\x89HDF", "an HDF5 file, as Keras saves weights"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"PAR1", "a Parquet file of data"),
    (b"\x7fELF", "a program"),
    (b"%PDF", "a PDF document"),
)
"""First bytes of files that are no text. Source: the formats' own descriptions."""

SAFETENSORS = re.compile(rb"^.{8}\{\"", re.DOTALL)
"""A length in 8 bytes, then a JSON header. Source: safetensors' format description."""

BRING = "Bring the model’s config.json."

_STRING = r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)'
_COMMENT = r"//[^\n]*+|/\*.*?(?:\*/|\Z)|\#[^\n]*+"
_TOKEN = re.compile(rf"(?P<string>{_STRING})|(?P<comment>{_COMMENT})|(?P<bracket>[\[\]{{}}])", re.DOTALL)
"""What has to be told apart to look at brackets and comments. Strings and comments without an end reach to that of the text,
so that every character is looked at once."""
_TRAILING = re.compile(rf"(?P<string>{_STRING})|(?P<comma>,)(?=\s*+[\]}}])", re.DOTALL)
_FENCE = re.compile(r"```\w*\n(?P<inside>.*)\n```", re.DOTALL)
_NAME = re.compile(r"[\w.-]+/[\w.-]+|https?://\S+", re.ASCII)
_PYTHON_DICT = re.compile(r"\{\s*'")
_PRINTED = re.compile(r"^[A-Za-z_][\w.]*\s*[({]")


@dataclass(frozen=True)
class Parsed:
    """A JSON object, and what had to be repaired to read it."""

    content: dict[str, object]
    repaired: tuple[str, ...]


def check_size(size: int) -> None:
    """Refuse a file by its size, before it is read."""
    if size > MAX_BYTES:
        raise ImportProblem(
            "too_large",
            f"The file has {count_text(size)} bytes; a config.json has a few thousand, and at most {count_text(MAX_BYTES)} are read.",
            BRING,
        )


def check_announced(length: str) -> None:
    """Refuse an answer by the size that its header announces, if it is a number at all."""
    if length.isdecimal():
        check_size(int(length[:MAX_DIGITS]))


def decoded(data: bytes) -> str:
    """The text of a file that may describe a model. Raises ImportProblem for what is no text, naming it."""
    check_size(len(data))
    return text_of(data, BRING)


def text_of(data: bytes, hint: str) -> str:
    """The text of a file of any size. Raises ImportProblem for what is no text, naming it; `hint`: what to bring instead."""
    for head, what in HEADS:
        if data.startswith(head):
            raise ImportProblem("not_text", f"This is {what}.", hint)
    if SAFETENSORS.match(data) and data[4:8] == bytes(4):
        raise ImportProblem("not_text", "This is a safetensors file of weights.", hint)
    if b"\x00" in data and not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ImportProblem("not_text", "The file is not text: it holds zero bytes.", hint)
    decode = codecs.utf_16_decode if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else codecs.utf_8_decode
    try:
        return decode(data, "strict", True)[0]
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise ImportProblem(
            "not_text", f"The file is not text in UTF-8: byte 0x{data[problem.start]:02X} in line {count_text(line)} is none of it.", "Save it as UTF-8."
        ) from None


def read_object(text: str) -> Parsed:
    """The one JSON object of a text. Raises ImportProblem for any other text."""
    check_size(len(text))
    text, told = unfenced(text.lstrip("\ufeff").strip())
    refuse_other_formats(text)
    depth = _depth(text)
    constants: set[str] = set()
    try:
        content = _object(_loads(text, constants))
    except json.JSONDecodeError as problem:
        repaired_text, repaired = _repaired(text)
        try:
            content = _object(_loads(repaired_text, constants))
        except json.JSONDecodeError:
            raise _not_json(text, problem, depth) from None
        told += repaired
    if constants:
        told += (f"{' and '.join(sorted(constants))}, which JSON does not have, stand for numbers",)
    return Parsed(content, told)


def unfenced(text: str) -> tuple[str, tuple[str, ...]]:
    """The text inside a Markdown fence, and that there was one."""
    fence = _FENCE.fullmatch(text)
    return (fence["inside"].strip(), ("the Markdown fence around it was left out",)) if fence else (text, ())


def refuse_other_formats(text: str) -> None:
    """Raise ImportProblem for a text that is plainly something else than what is read here, naming it."""
    if not text:
        raise ImportProblem("empty", "There is nothing in it.", BRING)
    if text.startswith(("<?xml", "<svg")):
        raise ImportProblem("html", "This is XML, not a file of a model.", BRING)
    if text.startswith("<"):
        raise ImportProblem(
            "html", "This is a web page (HTML), not a file of a model.", "Download the file itself; pages of gated models need a login first."
        )
    if text.startswith("version https://git-lfs"):
        raise ImportProblem("lfs_pointer", "This is a Git LFS pointer, not the file itself.", "Fetch the file with git lfs pull, or download it.")
    if text.startswith(REFUSALS):
        raise ImportProblem("refusal", f"This is the Hub’s answer in place of the file: {quoted(text)}.", "Log in, accept the model’s licence, and download the file again.")
    if _NAME.fullmatch(text):
        raise ImportProblem("name", f"This is the name of a model, {quoted(text)}, not its file.", "Fetch it by name: with --hub in a terminal, with the box for it on the page.")
    if _PYTHON_DICT.match(text):
        raise ImportProblem("printed", "This is a dictionary as Python prints it, not JSON.", "Bring the config.json, or print json.dumps of it.")
    if _PRINTED.match(text):
        raise ImportProblem(
            "printed", f"This is a configuration as Python prints it, starting with {quoted(text.split('{')[0].split('(')[0].strip())}, not JSON.",
            "Bring the config.json, or print config.to_json_string().",
        )


REFUSALS = ("Access to model", "Invalid username", "Entry not found", "Repository Not Found", "Unauthorized", "Invalid credentials")
"""How the Hub's plain answers begin. Source: huggingface_hub, utils/_http.py, hf_raise_for_status."""


def _depth(text: str) -> int:
    """How many brackets are open at the end. Raises ImportProblem for too many at once."""
    depth = 0
    for token in _TOKEN.finditer(text):
        if token["bracket"]:
            depth += 1 if token["bracket"] in "[{" else -1
            if depth > MAX_DEPTH:
                raise ImportProblem("too_deep", f"The file is nested more than {MAX_DEPTH} levels deep, which no config.json is.", BRING)
    return depth


def _loads(text: str, constants: set[str]) -> object:
    """The content of a text. Names of numbers that JSON does not have are added to `constants`."""

    def constant(name: str) -> float:
        constants.add(name)
        return float(name)

    try:
        return json.loads(text, parse_constant=constant, parse_int=_whole, object_pairs_hook=_unique)
    except RecursionError:
        raise ImportProblem("too_deep", "The file is nested too deeply.", BRING) from None


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ImportProblem("out_of_range", f"The file holds a whole number of {count_text(len(digits))} digits.", "Check the file’s numbers.")
    return int(digits)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found and found[key] != value:
            raise ImportProblem("ambiguous", f"The file gives {quoted(key)} twice, with different values.", "Keep the one that is right.")
        found[key] = value
    return found


def _object(content: object) -> dict[str, object]:
    if isinstance(content, dict):
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ImportProblem(
                "not_text", "The file holds half a character (a surrogate without its pair).", "Save it as UTF-8, or download it again."
            ) from None
        return content
    what = {list: "a JSON list", str: "a JSON text", bool: "the word true or false", type(None): "null"}.get(type(content), "a number")
    raise ImportProblem("not_an_object", f"This is {what}, not a JSON object in braces.", BRING)


def _repaired(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without comments and trailing commas, and which of them were there."""
    repaired = []
    for pattern, name, what in ((_TOKEN, "comment", "comments were left out"), (_TRAILING, "comma", "commas before a closing bracket were left out")):
        without = pattern.sub(lambda match, name=name: "" if match[name] else match[0], text)
        if without != text:
            repaired.append(what)
            text = without
    return text, tuple(repaired)


def _not_json(text: str, problem: json.JSONDecodeError, depth: int) -> ImportProblem:
    place = f"line {count_text(problem.lineno)}, column {count_text(problem.colno)}"
    if not text.startswith(("{", "[")):
        return ImportProblem("not_json", f"This is not JSON; it starts with {quoted(text)}.", BRING)
    if problem.msg.startswith("Extra data"):
        return ImportProblem("not_json", f"After the JSON object there is more text, in {place}.", "Bring a file with one object and nothing after it.")
    if depth > 0 or problem.msg.startswith("Unterminated"):
        return ImportProblem("truncated", "The file ends in the middle.", "Copy or download it again, whole.")
    if "“" in text or "”" in text:
        return ImportProblem("not_json", f"There are typographic quotes (“) in place of straight ones, in {place}.", "Copy it from the file itself.")
    return ImportProblem("not_json", f"This is not valid JSON: {problem.msg.lower()} in {place}.", "Mend it there, or download the file again.")
