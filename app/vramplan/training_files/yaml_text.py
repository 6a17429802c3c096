"""YAML 1.1 as values with lines: what PyYAML, which the tools use, makes of a text. No objects are made, whatever a tag says.

The events of ruamel.yaml are put together here, so that depth, size and repeated aliases are limited while they are read.
"""

from collections.abc import Iterator
import re

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent, DocumentStartEvent, MappingEndEvent, MappingStartEvent, ScalarEvent, SequenceEndEvent, SequenceStartEvent

from vramplan.checks import printable, quoted
from vramplan.importing.problems import ImportProblem
from vramplan.training_files.given import MAX_DEPTH, MAX_VALUES, Given
from vramplan.units import count_text

MEND = "Mend it there; the tool itself would refuse it too."

MAX_DIGITS = 300
"""Digits of a number that are read."""

MAX_PROBLEM = 120
"""Characters of the parser's own words that are repeated."""

NULL = re.compile(r"~|null|Null|NULL|")
YES = re.compile(r"yes|Yes|YES|true|True|TRUE|on|On|ON")
NO = re.compile(r"no|No|NO|false|False|FALSE|off|Off|OFF")
WHOLE = re.compile(r"(?P<sign>[-+]?)(?:0b(?P<two>[01_]+)|0x(?P<sixteen>[0-9a-fA-F_]+)|0(?P<eight>[0-7_]+)|(?P<ten>0|[1-9][0-9_]*)|(?P<sixty>[1-9][0-9_]*(?::[0-5]?[0-9])+))")
FRACTION = re.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?)")
SPECIAL = {".inf": "inf", "+.inf": "inf", "-.inf": "-inf", ".nan": "nan"}
"""Scalars without quotes that are no text. Source: PyYAML 6.0.3, resolver.py, Resolver (YAML 1.1): an exponent counts only after a
point and with a sign, so 2e-5 is a text; yes, no, on and off are flags; 010 is eight; 1:30 is ninety."""

BASES = {"two": 2, "eight": 8, "ten": 10, "sixteen": 16}

MERGE = "<<"

SURROGATES = ("\ud800", "\udfff")
"""First and last of what is half a character."""


def read_yaml(text: str) -> Given:
    """The one document of a text. Raises ImportProblem naming the line."""
    try:
        events = YAML(typ="safe", pure=True).parse(text)
        return _Composer(events).document()
    except ImportProblem:
        raise
    except MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        where = f" in line {count_text(mark.line + 1)}" if mark else ""
        raise ImportProblem("not_yaml", f"This is not valid YAML{where}: {printable(str(problem.problem or problem.context), MAX_PROBLEM)}.", MEND) from None
    except RecursionError:
        raise _too_deep(0) from None
    except (YAMLError, ValueError, OverflowError, IndexError, KeyError, AttributeError, AssertionError, TypeError) as problem:
        raise ImportProblem("not_yaml", f"This is not valid YAML: {printable(str(problem).splitlines()[0] if str(problem) else 'it cannot be read', MAX_PROBLEM)}.", MEND) from None


def _too_deep(line: int) -> ImportProblem:
    where = f", in line {count_text(line)}" if line else ""
    return ImportProblem("too_deep", f"The file is nested more than {MAX_DEPTH} levels deep{where}, which no training file is.", "Bring the training file itself.")


class _Composer:
    """Puts events together to values."""

    def __init__(self, events: Iterator):
        self._events = iter(events)
        self._anchors: dict[str, tuple[Given, int] | None] = {}
        self._count = 0

    def document(self) -> Given:
        result = None
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                if result:
                    line = event.start_mark.line + 1
                    raise ImportProblem("many_documents", f"A second document begins in line {count_text(line)}; a training file is one.", "Bring one of them.")
                result = self._node(next(self._events), 0)
        if result is None:
            raise ImportProblem("empty", "There is nothing in it.", "Bring the training file itself.")
        return result

    def _node(self, event, depth: int) -> Given:
        line = event.start_mark.line + 1
        self._grow(1, line)
        if depth > MAX_DEPTH:
            raise _too_deep(line)
        if isinstance(event, AliasEvent):
            return self._alias(event, line)
        before = self._count
        _known_tag(event, line)
        if event.anchor:
            self._anchors[event.anchor] = None
        if isinstance(event, ScalarEvent):
            given = Given(_scalar(event, line), line)
        elif isinstance(event, SequenceStartEvent):
            given = Given(self._list(depth), line)
        else:
            given = Given(self._mapping(depth), line)
        if event.anchor:
            self._anchors[event.anchor] = (given, self._count - before + 1)
        return given

    def _grow(self, by: int, line: int) -> None:
        self._count += by
        if self._count > MAX_VALUES:
            raise ImportProblem("too_large", f"The file holds more than {count_text(MAX_VALUES)} values up to line {count_text(line)}.", "Bring the training file itself.")

    def _alias(self, event: AliasEvent, line: int) -> Given:
        known = self._anchors.get(event.anchor)
        if known is None:
            what = "stands inside what it names" if event.anchor in self._anchors else "names nothing"
            raise ImportProblem("not_yaml", f"The alias {quoted('*' + event.anchor)} in line {count_text(line)} {what}.", MEND)
        given, size = known
        self._grow(size, line)
        return Given(given.value, line)

    def _list(self, depth: int) -> list[object]:
        items = []
        while not isinstance(event := next(self._events), SequenceEndEvent):
            items.append(plain(self._node(event, depth + 1)))
        return items

    def _mapping(self, depth: int) -> dict[str, Given]:
        content: dict[str, Given] = {}
        merged: dict[str, Given] = {}
        while not isinstance(event := next(self._events), MappingEndEvent):
            key, line = self._node(event, depth + 1), event.start_mark.line + 1
            value = self._node(next(self._events), depth + 1)
            merges = key.value == MERGE and isinstance(event, ScalarEvent) and event.style is None
            if merges and isinstance(value.value, dict):
                merged = value.value | merged
                continue
            if isinstance(key.value, dict | list):
                raise ImportProblem("not_yaml", f"A key in line {count_text(line)} is no text.", MEND)
            name = _key(key.value)
            if name in content and plain(content[name]) != plain(value):
                first = count_text(content[name].line)
                raise ImportProblem("ambiguous", f"The file gives {quoted(name)} twice, in lines {first} and {count_text(line)}, with different values.", "Keep the one that is right.")
            content[name] = Given(value.value, line)
        return merged | content


def _key(value: object) -> str:
    return value if isinstance(value, str) else {True: "true", False: "false", None: "null"}.get(value, str(value)) if value is None or isinstance(value, bool) else str(value)


def plain(given: Given) -> object:
    """A value without lines."""
    value = given.value
    return {key: plain(inner) for key, inner in value.items()} if isinstance(value, dict) else value


TAGS = {ScalarEvent: ("str", "int", "float", "bool", "null"), SequenceStartEvent: ("seq",), MappingStartEvent: ("map",)}
"""Tags that may be written out, by the kind of value."""


def _known_tag(event, line: int) -> str:
    """The tag that is written out, or nothing. Raises ImportProblem for one that would make an object."""
    tag = str(event.tag or "")
    explicit = tag.removeprefix("tag:yaml.org,2002:")
    if explicit not in ("", "!", *TAGS[type(event)]):
        raise ImportProblem("not_yaml", f"The tag {quoted(tag)} in line {count_text(line)} is none that a training file has.", "Write the value plainly.")
    return explicit


def _scalar(event: ScalarEvent, line: int) -> object:
    """What a scalar is: by its tag, else by how it is written."""
    text, explicit = event.value, _known_tag(event, line)
    if any(SURROGATES[0] <= char <= SURROGATES[1] for char in text):
        raise ImportProblem("not_text", f"Line {count_text(line)} holds half a character (a surrogate without its pair).", "Save the file as UTF-8.")
    if explicit in ("str", "!") or (not explicit and event.style is not None):
        return text
    if len(text) > MAX_DIGITS:
        return text
    if NULL.fullmatch(text):
        return None
    if YES.fullmatch(text):
        return True
    if NO.fullmatch(text):
        return False
    if number := WHOLE.fullmatch(text):
        return _whole(number)
    if FRACTION.fullmatch(text) and any(char.isdigit() for char in text):
        return float(text.replace("_", ""))
    if text.lower() in SPECIAL:
        return float(SPECIAL[text.lower()])
    return _number(text) if explicit in ("int", "float") else text


def _number(text: str) -> object:
    """What `!!float 2e-5` says."""
    try:
        return float(text)
    except ValueError:
        return text


def _whole(number: re.Match) -> object:
    sign = -1 if number["sign"] == "-" else 1
    for name, base in BASES.items():
        if number[name] is not None:
            digits = number[name].replace("_", "")
            return sign * int(digits, base) if digits else number[0]
    value = 0
    for part in number["sixty"].replace("_", "").split(":"):
        value = value * SIXTY + int(part)
    return sign * value


SIXTY = 60
"""Base of numbers such as 1:30."""
