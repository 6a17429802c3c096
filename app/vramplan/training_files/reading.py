"""One file being read by the tables of one tool: every key is told, and becomes a setting, or is said to change nothing or to be beyond them."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from vramplan.checks import quoted
from vramplan.fields import BY_NAME
from vramplan.importing.model import Assumed, Left, Read
from vramplan.importing.problems import ImportProblem
from vramplan.importing.values import shown
from vramplan.kinds import ExactDecimal, WholeNumber
from vramplan.training_files.commands import is_open
from vramplan.training_files.given import Given, Tree, found, leaves
from vramplan.training_files.tools import Combined, Decides, Inexact, Tool
from vramplan.units import count_text, plain_decimal

MAX_WHOLE = 10**12
"""Largest whole number that is read; a setting’s own limits are far below."""

MAX_NUMBER_TEXT = 40
"""Characters of a number that are read."""

OF_ADAPTERS, WITH_ADAPTERS = ("rank", "lora_dropout", "adapter_targets"), ("lora", "qlora")
"""Settings of adapters, and the methods that have them."""

YES, NO = ("true", "yes", "on", "1", "t", "y"), ("false", "no", "off", "0", "f", "n")
"""Words of a flag. Source: transformers 5.24.0, hf_argparser.py, string_to_bool; pydantic 2.13, bool in lax mode."""


@dataclass(frozen=True)
class TrainingFile:
    """What a training file comes to. texts: every setting that a run has but for its model and its card; empty if the run cannot be counted.

    model: the base model as the file names it. keeps: settings that the file leaves open, which stay as they are chosen. packed: the rows and their tokens that make one long row, where they do. uncounted: why the
    run cannot be counted, nothing if it can.
    """

    tool: Tool
    texts: Mapping[str, str]
    model: str
    model_line: int
    packed: bool
    read: tuple[Read, ...]
    assumed: tuple[Assumed, ...]
    ignored: tuple[Left, ...]
    unsupported: tuple[Left, ...]
    uncounted: str
    notes: tuple[str, ...] = ()
    keeps: tuple[str, ...] = ()


class Reading:
    """The values of a file, and what has become of them so far."""

    def __init__(self, tool: Tool, tree: Tree, *, gpus: Given | None = None, command: str = "", launcher: Tree | None = None, processes: bool = True):
        self.tool = tool
        self.command = command
        self.processes = processes
        self.texts: dict[str, str] = {}
        self.packed = False
        self._closed = False
        self.keeps: tuple[str, ...] = ()
        self.model = ("", 0)
        self.uncounted = ""
        self._tree = tree
        self._gpus = gpus
        self._launcher = launcher or {}
        self._seen: set[str] = set()
        self._read: list[Read] = []
        self._assumed: list[Assumed] = []
        self._ignored: list[Left] = []
        self._left: list[Left] = []

    # What the file says

    def given(self, key: str) -> Given | None:
        """What stands under a key; None where nothing does. Marks it as read."""
        self._seen.add(key)
        given = found(self._tree, key)
        if given is None or given.value is None or given.value == "" and isinstance(given.value, str):
            return None
        if is_open(given.value):
            self.cannot(key, f"{quoted(str(given.value))} is a variable of the shell that nothing in the file sets, so the tool’s default is taken", "none")
            return None
        return given

    def has(self, key: str) -> bool:
        """Whether a key has a value; does not mark it."""
        given = found(self._tree, key)
        return given is not None and given.value is not None

    def flag(self, key: str) -> bool | None:
        """A flag, in any of the words the tools take."""
        given = self.given(key)
        if given is None:
            return None
        word = str(given.value).strip().lower() if isinstance(given.value, bool | int | str) else ""
        if word not in (*YES, *NO):
            raise self.wrong(key, "true or false")
        return word in YES

    def whole(self, key: str) -> int | None:
        """A whole number, also one that is written as a text, as tools that convert their values take it."""
        number = self.number(key)
        if number is None:
            return None
        if number != number.to_integral_value() or not 0 <= number <= MAX_WHOLE:
            raise self.wrong(key, f"a whole number of at most {count_text(MAX_WHOLE)}")
        return int(number)

    def number(self, key: str) -> Decimal | None:
        """A number, exactly as written; 2e-5 is a text in YAML 1.1, and a number for the tools."""
        given = self.given(key)
        if given is None:
            return None
        value = given.value
        try:
            if isinstance(value, bool) or not isinstance(value, int | float | str) or len(str(value)) > MAX_NUMBER_TEXT:
                raise ValueError
            number = Decimal(repr(value) if isinstance(value, float) else str(value).strip().replace("_", ""))
            if not number.is_finite() or abs(number) > MAX_WHOLE:
                raise ValueError
        except (ValueError, InvalidOperation):
            raise self.wrong(key, "a number") from None
        return number

    def text(self, key: str) -> str | None:
        """A text; flags and numbers as they are written in small letters."""
        given = self.given(key)
        if given is None:
            return None
        if isinstance(given.value, bool):
            return "true" if given.value else "false"
        if not isinstance(given.value, str | int | float):
            raise self.wrong(key, "a text")
        return str(given.value).strip()

    def words(self, key: str) -> tuple[str, ...] | None:
        """A list of texts, or one text with commas or spaces."""
        given = self.given(key)
        if given is None:
            return None
        value = given.value
        if isinstance(value, str):
            parts = value.strip("[]").replace(",", " ").split()
            return tuple(part.strip("'\"") for part in parts)
        if not isinstance(value, list) or not all(isinstance(each, str | int) for each in value):
            raise self.wrong(key, "a list of names")
        return tuple(map(str, value))

    def text_or_list(self, key: str) -> bool:
        """Whether a key has a text or a list, and no flag or mapping; does not mark it."""
        given = found(self._tree, key)
        return given is not None and isinstance(given.value, str | list)

    def mapping(self, key: str) -> Tree | None:
        """A mapping; None where the key has none."""
        given = self.given(key)
        return given.value if given and isinstance(given.value, Mapping) else None

    def wrong(self, key: str, must: str) -> ImportProblem:
        """A value that the tool itself would refuse."""
        given = found(self._tree, key)
        where = f" in line {count_text(given.line)}" if given and given.line else ""
        value = "nothing" if given is None or given.value is None else shown(_shown_value(given.value))
        return ImportProblem("wrong_type", f"{key}{where} must be {must}; got {value}.", "Correct it in the file.")

    def line(self, key: str) -> int:
        """The line of a key, 0 where there is none."""
        given = found(self._tree, key)
        return given.line if given else 0

    def default(self, key: str) -> str | None:
        """What the tool takes for a key that counts together with others."""
        known = self.tool.combined.get(key)
        return known.default if known else None

    # What becomes of it

    def take(self, setting: str, text: str, *keys: str) -> None:
        """Set a setting from keys of the file."""
        self.texts[setting] = text
        for key in keys:
            self._seen.add(key)
            given = found(self._tree, key)
            if given is not None and given.value is not None:
                self._read.append(Read(key, setting, _plain(given.value), given.line))

    def note_read(self, key: str, setting: str, value: object, line: int) -> None:
        """Tell of something that was read outside the keys, as from a launcher."""
        self._read.append(Read(key, setting, value, line))

    def note_used(self, key: str) -> None:
        """Mark a key as read that no row tells of."""
        self._seen.add(key)

    def told(self, key: str) -> bool:
        """Whether a row tells of a key by now."""
        return any(each.key == key for rows in (self._read, self._ignored, self._left) for each in rows)

    def without_adapters(self, keys: tuple[str, ...]) -> None:
        """Tell that keys of adapters change nothing, because there are none."""
        for key in keys:
            if found(self._tree, key) is not None:
                self.ignore(key, "no adapters are trained" if self.has(key) else "it is empty")

    def assume(self, setting: str, text: str, why: str, source: str = "") -> None:
        """Set a setting to what the tool does by itself."""
        self.texts[setting] = text
        self._assumed.append(Assumed(setting, text, why, source=source))

    def assume_default(self, setting: str, text: str, key: str) -> None:
        """Set a setting to what the tool takes where the file has no such key."""
        known: Combined | Decides | None = self.tool.combined.get(key) or next((each for each in self.tool.decides if each.key == key), None)
        self.assume(setting, text, f"{self.tool.label} {self.tool.version} takes {key}={known.default if known else text} where the file does not say", known.source if known else "")

    def leave_open(self, setting: str, key: str, why: str) -> None:
        """Tell that a file decides nothing of a setting that shapes the run, which stays as it is chosen."""
        self.keeps = (*self.keeps, setting)
        self.cannot(key, why, "none")

    def cannot(self, key: str, why: str, bound: str) -> None:
        """Tell of something in the file that no setting says, and what the estimate is then."""
        self._seen.add(key)
        self._left.append(Left(key, why, line=self.line(key), bound=bound))

    def worked_out(self, key: str, line: int) -> None:
        """Tell of a key whose value a script works out."""
        self._seen.add(key)
        self._left.append(Left(key, "the script works out its value, so the tool’s default is taken", line=line, bound="none"))

    def ignore(self, key: str, why: str) -> None:
        """Tell of a key that changes nothing."""
        self._seen.add(key)
        self._ignored.append(Left(key, why, line=self.line(key)))

    def ignore_the_rest(self, why: str) -> None:
        """Tell of every key that no row tells of yet that it changes nothing, so that the tables are not asked."""
        for key in self._tree:
            if not self.told(key) and key != self.tool.model_key:
                self.ignore(key, why)
        self._closed = True

    def refuse(self, key: str, why: str) -> None:
        """Tell that the run as a whole cannot be counted."""
        self.uncounted = self.uncounted or why
        self.cannot(key, why, "none")

    def launcher(self, key: str) -> Given | None:
        """What a flag of the launcher says, as of accelerate launch."""
        given = self._launcher.get(key) or found(self._tree, key)
        return given if given and isinstance(given.value, str) and given.value else None

    @property
    def gpus(self) -> Given | None:
        """How many GPUs a launcher or a variable says there are."""
        return self._gpus

    # The tables

    def by_the_tables(self) -> None:
        """Everything that the tool’s module has left, decided by its tables."""
        if self._closed:
            return
        if self.tool.model_key:
            self._seen.add(self.tool.model_key)
        for each in self.tool.decides:
            self._decide(each)
        for each in self.tool.no_effect:
            for key in each.keys:
                if found(self._tree, key) is not None and key not in self._seen:
                    self.ignore(key, each.why)
        for each in self.tool.inexact:
            for key in each.keys:
                self._leave(key, each)
        self._rest()

    def _decide(self, each: Decides) -> None:
        if each.setting in self.texts:
            if found(self._tree, each.key) is not None and each.key not in self._seen:
                self.ignore(each.key, "another key decides")
            return
        text = None
        if self.has(each.key):
            text = self._text_of(each)
            if text is not None:
                self.take(each.setting, text, each.key)
                return
        if each.setting in OF_ADAPTERS and self.texts.get("method") not in WITH_ADAPTERS:
            return
        if each.default is not None and (usual := each.text(each.default)) is not None:
            self.assume_default(each.setting, usual, each.key)

    def _text_of(self, each: Decides) -> str | None:
        """A setting’s text from its key; None, and a row that tells why, for a word the table does not have."""
        kind = BY_NAME[each.setting].kind
        if isinstance(kind, WholeNumber):
            number = self.whole(each.key)
            return None if number is None else str(number)
        if isinstance(kind, ExactDecimal):
            number = self.number(each.key)
            return None if number is None else plain_decimal(number)
        word = self.text(each.key)
        if word is None:
            return None
        text = each.text(word)
        if text is None:
            self.cannot(each.key, f"{quoted(word)} is not known to this calculator, so it is not counted", "none")
        return text

    def _leave(self, key: str, each: Inexact) -> None:
        given = found(self._tree, key)
        if given is None or key in self._seen:
            return
        if given.value is None or given.value in ([], {}, "") or (isinstance(given.value, bool | int | float | str) and _word(given.value) in each.unless):
            self.ignore(key, "it is off" if given.value is not None else "it is empty")
        else:
            self.cannot(key, each.why, each.bound)

    def _rest(self) -> None:
        """Keys that no row has told of yet; a mapping that was looked into is known by its parts."""
        told = {each.key for rows in (self._read, self._ignored, self._left) for each in rows}
        for key, given in leaves(self._tree):
            parts = [key[:at] for at in range(len(key) + 1) if at == len(key) or key[at] == "."]
            if told.intersection(parts) or self.tool.model_key and self.tool.model_key in parts:
                continue
            looked_into = any(known.startswith(f"{parts[0]}.") for known in self._seen)
            name = key if looked_into else parts[0]
            told.add(name)
            if given.value is None:
                self.ignore(name, "it is empty")
            elif self._seen.intersection(parts):
                self.ignore(name, "it is off" if given.value is False else "it changes nothing here")
            elif looked_into and parts[0] in self.tool.keys:
                self.ignore(name, "it changes nothing in memory that is counted")
            else:
                self.cannot(name, "it is not known to this calculator, so it is not counted", "none")

    def finish(self, notes: tuple[str, ...] = ()) -> TrainingFile:
        """What the file has come to."""
        model, line = self.model
        if self.tool.model_key and not model:
            named = self.text(self.tool.model_key)
            model, line = named or "", self.line(self.tool.model_key)
        return TrainingFile(
            self.tool, {} if self.uncounted else self.texts, model, line, self.packed,
            tuple(self._read), tuple(self._assumed), tuple(self._ignored), tuple(self._left), self.uncounted, notes, self.keeps,
        )


def _word(value: object) -> str:
    return "true" if value is True else "false" if value is False else str(value).lower()


def _plain(value: object) -> object:
    """A value as a row shows it."""
    if isinstance(value, list):
        return tuple(str(each) for each in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_word(inner.value) if isinstance(inner, Given) else inner}" for key, inner in value.items())
    return str(value) if isinstance(value, float) else value


def _shown_value(value: object) -> object:
    return {} if isinstance(value, Mapping) else value
