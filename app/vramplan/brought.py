"""A file somebody brought, told to people: counts, and what was read, assumed, left out. The page paints it, the terminal prints it.

Names and values of a file are shortened and freed of control characters here, as everywhere a text from outside is repeated.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from vramplan.checks import printable
from vramplan.fields import BY_NAME
from vramplan.importing.foreign import ADAPTER, MODEL, SETTINGS, TRAINING
from vramplan.importing.imported import Imported
from vramplan.importing.model import Left, Read
from vramplan.settings import as_text
from vramplan.units import count_text, counted, gib_text, short_count_text

NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
"""The number of a layer or an expert inside the name of a module."""

MAX_ROWS = 60
"""Rows of a list that are shown; the document has all of them."""

MAX_NAMES = 40
"""Ignored keys that are named in one row."""

MAX_SHOWN = 80
"""Characters of a name or a value that are shown."""

MAX_SAID = 320
"""Characters of what is said of one."""


@dataclass(frozen=True)
class Count:
    """One number of the model: label, short text, exact text."""

    label: str
    text: str
    exact: str


@dataclass(frozen=True)
class Group:
    """A list with a title. rows: a key as the file has it, or nothing, and what is said of it. shown: without being asked for."""

    title: str
    rows: tuple[tuple[str, str], ...]
    shown: bool = False


def title(imported: Imported) -> str:
    """What was read, in a few words."""
    return f"{imported.label} model" if imported.kind == MODEL else imported.label


def sentence(imported: Imported) -> str:
    """What became of the file, in one sentence or two."""
    if imported.kind == ADAPTER:
        found = imported.adapter
        told = f"The adapter trains {counted(len(found.matched), 'module')}; {counted(len(found.unmatched), 'linear map')} without one."
        return told if imported.texts else f"{told} No accounting has terms for this run yet, so the settings stay as they were."
    if imported.kind == SETTINGS:
        return "The settings that were saved." if imported.settings else "The settings that were saved; some of them cannot be used."
    if imported.kind == TRAINING:
        if imported.part and imported.texts:
            return f"Its keys are some of the settings of a run; the others stay as they are.{_bounded(imported)}"
        return f"Its keys are the settings of a run.{_bounded(imported)}" if imported.texts else f"{why_not(imported)} The settings stay as they were."
    if imported.settings is None:
        return "Its parameters are counted exactly; its memory in a training step is not counted yet, so the settings stay as they were."
    return "Its dimensions are the settings of a custom model."


BOUNDS = {
    frozenset({"upper"}): " What they do not say makes the estimate an upper bound: the run takes that or less.",
    frozenset({"lower"}): " What they do not say makes the estimate a lower bound: the run takes that or more.",
}
"""What is said of an estimate by what the settings leave out of a file."""

MIXED = " They do not say everything: the run may take more or less than the estimate."

OF_ONE = {"upper": "; the run takes at most the estimate", "lower": "; the run takes at least the estimate"}
"""What is said of it by one key."""


def _bounded(imported: Imported) -> str:
    found = frozenset(each.bound for each in imported.unsupported if each.bound)
    return BOUNDS.get(found, MIXED) if found else ""


def spoken(imported: Imported) -> str:
    """The result for somebody who listens."""
    parameters = next((each.exact for each in counts(imported)), "")
    return f"{title(imported)}. {sentence(imported)}" + (f" {parameters} parameters." if parameters else "")


def why_not(imported: Imported) -> str:
    """Why a model that was read cannot be estimated."""
    rows = [each for each in imported.unsupported if imported.kind != TRAINING or each.why in imported.uncounted] or imported.unsupported
    return f"{title(imported)} cannot be estimated: " + "; ".join(_said(each.key, each.why) for each in rows) + "."


def notes(imported: Imported) -> tuple[str, ...]:
    """What somebody who only wants the estimate has to know: what was repaired, assumed and left out."""
    by_class = [each for each in imported.assumed if each.by_class]
    names = ", ".join(f"{each.setting}={_shown(each.value)}" for each in by_class)
    return (
        *imported.repaired,
        *((f"the file leaves out, so the model’s class decides: {names}.",) if by_class else ()),
        *(f"{_said(f'{each.setting}={_shown(each.value)}', each.why)}." for each in imported.assumed if not each.by_class),
        *(f"{_said(each.key, each.why)}." for each in imported.unsupported),
    )


def counts(imported: Imported) -> tuple[Count, ...]:
    """Parameters in all, for one token, and trained; and bytes as stored."""
    if not imported.total:
        return ()
    rows = [("Parameters", imported.total), ("Active per token", imported.active), ("Trained", imported.trainable)]
    found = [Count(label, short_count_text(number), count_text(number)) for label, number in rows]
    if imported.stored_bytes is not None:
        found.append(Count("Weights as stored", f"{gib_text(imported.stored_bytes)} GiB", f"{count_text(imported.stored_bytes)} bytes"))
    return tuple(found)


def groups(imported: Imported) -> tuple[Group, ...]:
    """Everything that was read, assumed, not supported or ignored, the most important first; empty lists are left out."""
    found = imported.adapter
    lists = (
        Group("Not counted as the file says" if imported.kind == TRAINING else "Not supported", _rows(map(_beyond, imported.unsupported)), shown=True),
        Group("Targets that match nothing", _rows((each, "no module of the model has this name") for each in (found.unknown if found else ())), shown=True),
        Group("Repaired", _rows(("", each) for each in imported.repaired), shown=True),
        Group("Assumed", _rows((_label(each.setting), f"{_shown(each.value)}: {each.why}{f' ({each.source})' if each.source else ''}") for each in imported.assumed)),
        Group("Read", _rows((each.key, _read(each, imported)) for each in imported.read)),
        Group("Modules with an adapter", _rows(_modules(found.matched)) if found else ()),
        Group("Linear maps without one", _rows(_modules(found.unmatched)) if found else ()),
        Group("Ignored", _ignored(imported.ignored)),
    )
    return tuple(group for group in lists if group.rows)


def _said(key: str, why: str) -> str:
    """A key and what is said of it, which may repeat the key."""
    return f"{printable(key, MAX_SHOWN)}: {printable(why, MAX_SAID)}"


def _rows(rows: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The first rows, and how many more there are."""
    every = [(printable(key, MAX_SHOWN), printable(text, MAX_SAID)) for key, text in rows]
    more = len(every) - MAX_ROWS
    return (*every[:MAX_ROWS], *([("", f"and {count_text(more)} more")] if more > 0 else []))


def _beyond(left: Left) -> tuple[str, str]:
    """A key that no setting says: where it stands, why, and what the estimate is then."""
    return left.key, f"{_at(left.line)}{left.why}{OF_ONE.get(left.bound, '')}"


def _read(each: Read, imported: Imported) -> str:
    """A value as the file has it; of a training file also its line and the setting it has become."""
    if imported.kind != TRAINING:
        return _shown(each.value)
    became = imported.texts.get(each.setting, "")
    return f"{_at(each.line)}{_shown(each.value)}" + (f" → {_label(each.setting)} {became}" if became else "")


def _at(line: int) -> str:
    return f"line {count_text(line)}: " if line else ""


NO_EFFECT = "no effect on these counts"


def _ignored(rows: tuple[Left, ...]) -> tuple[tuple[str, str], ...]:
    """Ignored keys, those with one reason in one row."""
    by_reason: dict[str, list[str]] = {}
    for each in rows:
        by_reason.setdefault(each.why if each.line else NO_EFFECT, []).append(each.key)
    return tuple(("", f"{_names(names)}: {reason}") for reason, names in by_reason.items())


def _names(names: list[str]) -> str:
    rest = len(names) - MAX_NAMES
    more = f" and {count_text(rest)} more" if rest > 0 else ""
    return f"{', '.join(printable(name, MAX_SHOWN) for name in names[:MAX_NAMES])}{more}"


def _label(setting: str) -> str:
    return BY_NAME[setting].label if setting in BY_NAME else setting


def _shown(value: object) -> str:
    text = "yes" if value is True else "no" if value is False else count_text(value) if isinstance(value, int) else as_text(value)
    return printable(text, MAX_SHOWN)


def _modules(names: tuple[str, ...]) -> list[tuple[str, str]]:
    """Names of modules, those that differ in numbers alone as one row with their count."""
    found: dict[str, int] = {}
    for name in names:
        pattern = NUMBER.sub("*", name)
        found[pattern] = found.get(pattern, 0) + 1
    return [(name, f"× {count_text(number)}" if number > 1 else "") for name, number in found.items()]
