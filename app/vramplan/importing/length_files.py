"""The token lengths in a text: one a line, a column of a CSV file, or a key of JSON Lines. Nothing is tokenised."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from vramplan.checks import came, quoted
from vramplan.importing.problems import ImportProblem
from vramplan.importing.text import text_of
from vramplan.lengths import Lengths
from vramplan.units import count_text

MAX_BYTES = 16 * 2**20
"""Largest file that is read."""

MAX_SAMPLES = 2_000_000
"""Most lengths that are read."""

NAMES = (
    "length", "lengths", "num_tokens", "n_tokens", "token_count", "tokens_count", "token_length", "token_lengths",
    "tokens", "seq_len", "seq_length", "sequence_length", "total_tokens", "input_length", "input_ids", "token_ids",
)
"""Names of columns and keys that are taken to hold token lengths, the first one before the others. `length` is what the Trainer itself
looks for: transformers 5.24, training_args.py, length_column_name. Lists of token ids are counted by their length."""

FORMATS = "Bring one length a line, a CSV file with a column of them, or JSON Lines with a key of them."

COUNT_THEM = "Write them down with your tokenizer first, one a line: len(tokenizer(text).input_ids)."

_WHOLE = re.compile(r"([0-9]{1,9})(?:\.0*)?", re.ASCII)
"""A length as text: whole, of nine digits at the most; spreadsheets may add a decimal point and zeros."""

_DIGITS = 9
"""Digits of a length at the most."""

_STARTS_A_NUMBER = re.compile(r"[-+.0-9]")
_BETWEEN = re.compile(r"[\s,;]+")
_DELIMITERS = (",", ";", "\t")
_IN_CSV = re.compile(r'[",;\t]')
"""What a plain list has nowhere, which then needs no reader of CSV."""

_NAMED = 8
"""Columns that are named in a sentence."""


class WhichColumn(ImportProblem):
    """Several columns or keys could be meant: their names."""

    def __init__(self, choices: tuple[str, ...]):
        super().__init__("which_column", f"Several columns hold whole numbers: {_named(choices)}.", "Name the one with the token lengths.")
        self.choices = choices


@dataclass(frozen=True)
class LengthFile:
    """What a text holds: the lengths, the column or key they are from (nothing for a plain list), why that one, and which could be chosen."""

    lengths: Lengths
    column: str
    why: str
    choices: tuple[str, ...]


@dataclass(frozen=True)
class _Table:
    """The rows of a text. what: how a row is called, 'Line'. columns, first: their names, and the first row by column; a plain list has one
    column without a name. values: the number of every row, and its value in a column, None where it has none."""

    what: str
    columns: tuple[str, ...]
    first: Sequence[object]
    values: Callable[[str], Iterable[tuple[int, object]]]


def read_length_bytes(data: bytes, column: str = "") -> LengthFile:
    """The token lengths in a file. Raises ImportProblem."""
    check_length_size(len(data))
    return read_lengths(text_of(data, FORMATS), column)


def check_length_size(size: int) -> None:
    """Refuse a file by its size, before it is read. Raises ImportProblem."""
    if size > MAX_BYTES:
        raise ImportProblem("too_large", f"The file has {count_text(size)} bytes; at most {count_text(MAX_BYTES)} are read.", "Bring a part of it, drawn at random.")


def read_lengths(text: str, column: str = "") -> LengthFile:
    """The token lengths in a text; `column` names the column or key where there are several. Raises ImportProblem."""
    check_length_size(len(text))
    text = text.removeprefix("\ufeff")
    start = text.lstrip()[:1]
    if not start:
        raise ImportProblem("empty", "There is nothing in it.", FORMATS)
    table = _json(text) if start in "[{" else _words(text) or _csv(text)
    name, why, choices = _chosen(table, column)
    return LengthFile(_counted(table, name), name, why, choices)


def _chosen(table: _Table, column: str) -> tuple[str, str, tuple[str, ...]]:
    """The column to read, why, and all that could be."""
    able = tuple(name for name, cell in zip(table.columns, table.first, strict=True) if _length(cell) is not None)
    if table.columns == ("",):
        if column:
            raise ImportProblem("no_column", f"There is no column {quoted(column)}: this is a plain list.", "Leave the name out.")
        return "", "", ()
    if column:
        if column not in table.columns:
            raise ImportProblem("no_column", f"There is no column {quoted(column)}; there are {_named(table.columns)}.", "Name one of them.")
        return column, "as asked for", able
    by_plain_name = {_plain(name): name for name in reversed(able)}
    known = next((by_plain_name[name] for name in NAMES if name in by_plain_name), None)
    if known is not None:
        return known, "by its name", able
    if len(able) > 1:
        raise WhichColumn(able)
    if not able:
        raise ImportProblem("no_lengths", f"No column holds whole numbers of tokens; the columns: {_named(table.columns)}. Nothing is tokenised here.", COUNT_THEM)
    return able[0], "the only one with whole numbers", able


def _counted(table: _Table, column: str) -> Lengths:
    """How many rows have each length."""
    by_text: dict[str, int] = {}
    samples: dict[int, int] = {}
    total = 0
    for number, value in table.values(column):
        total += 1
        if total > MAX_SAMPLES:
            raise ImportProblem("too_many", f"There are more than {count_text(MAX_SAMPLES)} lengths.", "Bring a part of them, drawn at random.")
        if type(value) is str and value in by_text:
            by_text[value] += 1
            continue
        length = _length(value)
        if length is None:
            raise _no_length(f"{table.what} {count_text(number)}", column, value)
        if type(value) is str:
            by_text[value] = 1
        else:
            samples[length] = samples.get(length, 0) + 1
    for text, count in by_text.items():
        samples[_length(text)] = samples.get(_length(text), 0) + count
    if not samples:
        raise ImportProblem("empty", "There are no lengths in it.", FORMATS)
    if not any(samples):
        raise ImportProblem("all_empty", "Every length is 0.", "Check the column.")
    return Lengths.of(samples)


def _no_length(place: str, column: str, value: object) -> ImportProblem:
    """Why a row cannot be used."""
    named = f" as {quoted(column)}" if column else ""
    if value is None:
        return ImportProblem("no_value", f"{place} must have a whole number of tokens{named}; there is nothing.", "Add it, or leave the line out.")
    return ImportProblem("not_a_length", f"{place} must have a whole number of tokens{named}; {_came(value)}.", _mend(value))


def _length(value: object) -> int | None:
    """A cell as a length: a whole number of at most nine digits, or the length of a list of token ids; None where it is neither."""
    if isinstance(value, str):
        whole = _WHOLE.fullmatch(value.strip())
        return int(whole[1]) if whole else None
    if isinstance(value, list):
        return len(value) if all(type(each) is int for each in value) else None
    if type(value) is float and value.is_integer():
        value = int(value)
    return value if type(value) is int and value >= 0 else None


def _came(value: object) -> str:
    """What came instead of a length."""
    if isinstance(value, str):
        return came(value.strip())
    if isinstance(value, list):
        return "a list came that is not of token ids"
    return "an object came" if isinstance(value, dict) else f"got {quoted(json.dumps(value))}"


def _mend(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    return COUNT_THEM if text and not _STARTS_A_NUMBER.match(text) else "Correct it, or leave the line out."


def _words(text: str) -> _Table | None:
    """Numbers on a single line, with spaces, commas or semicolons between them; None for any other text."""
    words = text.strip()
    if "\n" in words or "\r" in words or not _STARTS_A_NUMBER.match(words):
        return None
    return _plain_list("Number", enumerate(filter(None, _BETWEEN.split(words)), 1))


def _plain_list(what: str, values: Iterable[tuple[int, object]]) -> _Table:
    return _Table(what, ("",), (None,), lambda column: values)


def _csv(text: str) -> _Table:
    """Rows of cells; the first one names the columns unless one of its cells starts like a number."""
    lines = _csv_lines(text)
    first = next(lines, None)
    if first is None:
        raise ImportProblem("empty", "There are no lengths in it.", FORMATS)
    head = first[1]
    if any(_STARTS_A_NUMBER.match(cell.strip()) for cell in head):
        if len(head) == 1:
            return _plain_list("Line", ((number, cells[0] if len(cells) == 1 else ", ".join(cells)) for number, cells in chain([first], lines)))
        columns = tuple(str(place) for place in range(1, len(head) + 1))
    else:
        columns, first = tuple(cell.strip() for cell in head), next(lines, None)
        if first is None:
            raise ImportProblem("no_lengths", f"There are no lengths in it: its only line is {quoted(', '.join(head))}. Nothing is tokenised here.", COUNT_THEM)

    def values(column: str) -> Iterator[tuple[int, object]]:
        place = columns.index(column)
        return ((number, cells[place] if place < len(cells) else None) for number, cells in chain([first], lines))

    return _Table("Line", columns, [*first[1], *[None] * len(columns)][: len(columns)], values)


def _csv_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """The rows that hold anything, each with the number of the line it ends in. Raises ImportProblem for quotes that do not end."""
    if not _IN_CSV.search(text):
        yield from ((number, [line]) for number, line in enumerate(text.splitlines(), 1) if line.strip())
        return
    head = text.lstrip().partition("\n")[0]
    delimiter = max(_DELIMITERS, key=head.count)
    before = csv.field_size_limit(MAX_BYTES)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        while True:
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as problem:
                raise ImportProblem("not_csv", f"Line {count_text(reader.line_num)} is no line of a CSV file: {problem}.", "Mend its quotes.") from None
            if any(map(str.strip, cells)):
                yield reader.line_num, cells
    finally:
        csv.field_size_limit(before)


def _json(text: str) -> _Table:
    """A JSON list of lengths or objects, or JSON Lines of them."""
    if text.lstrip().startswith("["):
        try:
            return _of_records("Entry", list(enumerate(_loads(text), 1)))
        except json.JSONDecodeError:
            pass  # one list a line
    records = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                records.append((number, _loads(line)))
            except json.JSONDecodeError as problem:
                message = f"Line {count_text(number)} is not JSON by itself: {problem.msg[0].lower()}{problem.msg[1:]}."
                raise ImportProblem("not_json_lines", message, "Write one object a line (JSON Lines).") from None
    return _of_records("Line", records)


def _loads(text: str) -> object:
    try:
        return json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ImportProblem("too_deep", "The file is nested too deeply.", FORMATS) from None


def _whole(digits: str) -> int | str:
    """A whole number; one of more digits than a length has stays text, and is none."""
    return int(digits) if len(digits) <= _DIGITS else digits


def _of_records(what: str, records: list[tuple[int, object]]) -> _Table:
    """Objects by their keys; anything else as a plain list."""
    if not records or not isinstance(records[0][1], dict):
        return _plain_list(what, records)
    other = next((number for number, each in records if not isinstance(each, dict)), None)
    if other:
        raise ImportProblem("not_an_object", f"{what} {count_text(other)} is not a JSON object, as the ones before it are.", "Write one object a line (JSON Lines).")
    first = records[0][1]
    return _Table(what, tuple(first), tuple(first.values()), lambda column: ((number, each.get(column)) for number, each in records))


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _named(names: Sequence[str]) -> str:
    """Names from outside in a sentence."""
    rest = len(names) - _NAMED
    shown = [quoted(name) if name.strip() else "one without a name" for name in names[:_NAMED]]
    return ", ".join(shown) + (f" and {count_text(rest)} more" if rest > 0 else "") if names else "none"
