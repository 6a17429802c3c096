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
    (b"\x80\x04", "a Python pickle"),
    (b"\x89PNG", "a picture"),
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
    """The text of a file. Raises ImportProblem for what is no text, naming it."""
    check_size(len(data))
    for head, what in HEADS:
        if data.startswith(head):
            raise ImportProblem("not_text", f"This is {what}.", BRING)
    if SAFETENSORS.match(data) and data[4:8] == bytes(4):
        raise ImportProblem("not_text", "This is a safetensors file of weights.", BRING)
    decode = codecs.utf_16_decode if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else codecs.utf_8_decode
    try:
        return decode(data, "strict", True)[0]
    except UnicodeDecodeError:
        raise ImportProblem("not_text", "The file is not text in UTF-8.", BRING) from None


def read_object(text: str) -> Parsed:
    """The one JSON object of a text. Raises ImportProblem for any other text."""
    check_size(len(text))
    text = text.lstrip("\ufeff").strip()
    _refuse_other_formats(text)
    _refuse_deep(text)
    try:
        return Parsed(_object(_loads(text)), ())
    except json.JSONDecodeError as problem:
        first = problem
    repaired_text, repaired = _repaired(text)
    if repaired:
        try:
            return Parsed(_object(_loads(repaired_text)), repaired)
        except json.JSONDecodeError:
            pass
    raise _not_json(text, first)


def _refuse_other_formats(text: str) -> None:
    if not text:
        raise ImportProblem("empty", "There is nothing in it.", BRING)
    if text.startswith("<"):
        raise ImportProblem(
            "html", "This is a web page (HTML), not a file of a model.", "Download the file itself; pages of gated models need a login first."
        )
    if text.startswith("version https://git-lfs"):
        raise ImportProblem("lfs_pointer", "This is a Git LFS pointer, not the file itself.", "Fetch the file with git lfs pull, or download it.")
    if _PRINTED.match(text):
        raise ImportProblem(
            "printed", f"This is a configuration as Python prints it, starting with {quoted(text.split('{')[0].split('(')[0].strip())}, not JSON.",
            "Bring the config.json, or print config.to_json_string().",
        )


def _refuse_deep(text: str) -> None:
    depth = 0
    for token in _TOKEN.finditer(text):
        if token["bracket"]:
            depth += 1 if token["bracket"] in "[{" else -1
            if depth > MAX_DEPTH:
                raise ImportProblem("too_deep", f"The file is nested more than {MAX_DEPTH} levels deep, which no config.json is.", BRING)


def _loads(text: str) -> object:
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_int=_whole, object_pairs_hook=_unique)
    except RecursionError:
        raise ImportProblem("too_deep", "The file is nested too deeply.", BRING) from None


def _refuse_constant(name: str) -> None:
    raise ImportProblem("not_json", f"The file holds {name}, which is no JSON number.", "Put a number or null in its place.")


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


def _not_json(text: str, problem: json.JSONDecodeError) -> ImportProblem:
    if not text.startswith(("{", "[")):
        return ImportProblem("not_json", f"This is not JSON; it starts with {quoted(text)}.", BRING)
    if problem.pos >= len(text) - 1 or problem.msg.startswith("Unterminated"):
        return ImportProblem("truncated", "The file ends in the middle.", "Copy or download it again, whole.")
    return ImportProblem(
        "not_json", f"This is not valid JSON: {problem.msg.lower()} in line {count_text(problem.lineno)}, column {count_text(problem.colno)}.",
        "Mend it there, or download the file again.",
    )
