"""A file somebody brought, told to people: counts, and what was read, assumed, left out. The page paints it, the terminal prints it."""

import re
from dataclasses import dataclass

from vramplan.fields import BY_NAME
from vramplan.importing.foreign import ADAPTER, MODEL, SETTINGS
from vramplan.importing.imported import Imported
from vramplan.settings import as_text
from vramplan.units import count_text, counted, gib_text, short_count_text

NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")
"""The number of a layer or an expert inside the name of a module."""

MAX_SHOWN = 12
"""Names of a long list that are shown."""


@dataclass(frozen=True)
class Count:
    """One number of the model: label, short text, exact text."""

    label: str
    text: str
    exact: str


@dataclass(frozen=True)
class Group:
    """A list with a title, and a sentence where the list needs one."""

    title: str
    rows: tuple[tuple[str, str], ...]


def title(imported: Imported) -> str:
    """What was read, in a few words."""
    return f"{imported.label} model" if imported.kind == MODEL else imported.label


def sentence(imported: Imported) -> str:
    """What became of the file, in one sentence."""
    if imported.kind == ADAPTER:
        found = imported.adapter
        told = f"The adapter trains {counted(len(found.matched), 'module')}; {counted(len(found.unmatched), 'linear map')} without one."
        return told if imported.settings else f"{told} The model’s memory is not counted yet, so the settings stay as they were."
    if imported.kind == SETTINGS:
        return "The run that was saved is opened as it was."
    if imported.settings is None:
        return "Its parameters are counted exactly; its memory in a training step is not counted yet, so the settings stay as they were."
    return "Its dimensions are the settings of a custom model."


def why_not(imported: Imported) -> str:
    """Why a model that was read cannot be estimated."""
    return f"{title(imported)} cannot be estimated: " + "; ".join(f"{each.key}: {each.why}" for each in imported.unsupported) + "."


def notes(imported: Imported) -> tuple[str, ...]:
    """What somebody who only wants the estimate has to know: what was repaired, assumed and left out."""
    assumed = ", ".join(f"{each.setting}={as_text(each.value)}" for each in imported.assumed)
    return (
        *imported.repaired,
        *((f"the file leaves out, so the model’s class decides: {assumed}.",) if assumed else ()),
        *(f"{each.key}: {each.why}." for each in imported.unsupported),
    )


def counts(imported: Imported) -> tuple[Count, ...]:
    """Parameters in all, for one token, and trained; and bytes as stored."""
    rows = [("Parameters", imported.total), ("Active per token", imported.active), ("Trained", imported.trainable)]
    found = [Count(label, short_count_text(number), count_text(number)) for label, number in rows]
    if imported.stored_bytes is not None:
        found.append(Count("Weights as stored", f"{gib_text(imported.stored_bytes)} GiB", f"{count_text(imported.stored_bytes)} bytes"))
    return tuple(found)


def groups(imported: Imported) -> tuple[Group, ...]:
    """Everything that was read, assumed, not supported or ignored, the most important first; empty lists are left out."""
    found = imported.adapter
    lists = (
        Group("Not supported", tuple((each.key, each.why) for each in imported.unsupported)),
        Group("Targets that match nothing", tuple((each, "no module of the model has this name") for each in (found.unknown if found else ()))),
        Group("Repaired", tuple(("", each) for each in imported.repaired)),
        Group("Assumed", tuple((_label(each.setting), f"{_shown(each.value)}: {each.why}") for each in imported.assumed)),
        Group("Read", tuple((each.key, _shown(each.value)) for each in imported.read)),
        Group("Modules with an adapter", _modules(found.matched) if found else ()),
        Group("Linear maps without one", _modules(found.unmatched) if found else ()),
        Group("Ignored", _ignored(imported)),
    )
    return tuple(group for group in lists if group.rows)


def _ignored(imported: Imported) -> tuple[tuple[str, str], ...]:
    if not imported.ignored:
        return ()
    names = [each.key[:MAX_KEY] for each in imported.ignored]
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return (("", f"{', '.join(names[:MAX_NAMES])}{more}: no effect on these counts"),)


MAX_NAMES, MAX_KEY = 40, 40
"""Ignored keys that are named, and characters of each."""


def _label(setting: str) -> str:
    return BY_NAME[setting].label if setting in BY_NAME else setting


def _shown(value: object) -> str:
    text = "yes" if value is True else "no" if value is False else count_text(value) if isinstance(value, int) else as_text(value)
    return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"


MAX_VALUE = 80
"""Characters of a value that are shown."""


def _modules(names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Names of modules, those that differ in numbers alone as one row with their count."""
    found: dict[str, int] = {}
    for name in names:
        pattern = NUMBER.sub("*", name)
        found[pattern] = found.get(pattern, 0) + 1
    return tuple((name, f"× {count_text(number)}" if number > 1 else "") for name, number in found.items())
