"""What was measured of one run, as the short text that stands in a link: 'allocated.13207024640-reserved.14004781056'.

Amounts are whole bytes. Of a run that went through: the peaks. Of one that ran out of memory: what its message says.
"""

import re
from dataclasses import dataclass, fields

MAX_DIGITS = 14
"""Digits of an amount in bytes: up to 100 TB."""

PEAKS = ("allocated", "reserved", "process")
"""Peaks of a run that went through, the one that says most first."""

FAILED = ("held", "tried", "free", "total", "pool", "taken")
"""What a message of a run that ran out of memory says."""

_PART = re.compile(rf"([a-z]{{1,12}})\.([0-9]{{1,{MAX_DIGITS}}})")
_SETTINGS = re.compile(r"with\.([0-9a-f]{8})")


@dataclass(frozen=True, kw_only=True)
class Record:
    """What was measured. None: not known. All in bytes.

    allocated, reserved, process: peaks. held: allocated when an allocation failed; tried: what that asked for; free: what
    the driver had left; total: what the card has; pool: what the allocator held; taken: what the process held.
    over: measured less estimated when it was measured, for runs with other settings; negative where the estimate was more.
    settings: which settings were measured (settings.fingerprint); empty where nobody said.
    """

    allocated: int | None = None
    reserved: int | None = None
    process: int | None = None
    held: int | None = None
    tried: int | None = None
    free: int | None = None
    total: int | None = None
    pool: int | None = None
    taken: int | None = None
    over: int | None = None
    settings: str = ""

    @property
    def failed(self) -> bool:
        """Whether the run ran out of memory."""
        return self.tried is not None

    @property
    def kind(self) -> str:
        """The peak that says most; empty where there is none."""
        return next((name for name in PEAKS if getattr(self, name) is not None), "")


AMOUNTS = tuple(field.name for field in fields(Record) if field.name not in ("over", "settings"))
"""Names of the amounts, in the order of the text."""

LONGEST = 256
"""Characters of the text of a record that are read: more than all of its parts have."""


def format_record(record: Record) -> str:
    """The text of a record; parse_record gives the same record back."""
    parts = [f"{name}.{getattr(record, name)}" for name in AMOUNTS if getattr(record, name) is not None]
    if record.over is not None:
        parts.append(f"{'under' if record.over < 0 else 'over'}.{abs(record.over)}")
    if record.settings:
        parts.append(f"with.{record.settings}")
    return "-".join(parts)


def parse_record(text: str) -> Record | None:
    """The record of a text, or None where it is none."""
    if len(text) > LONGEST:
        return None
    found: dict[str, int | str] = {}
    for part in text.split("-"):
        match, settings = _PART.fullmatch(part), _SETTINGS.fullmatch(part)
        name, value = ("settings", settings[1]) if settings else (match[1], int(match[2])) if match else ("", 0)
        name, value = ("over", -value) if name == "under" else (name, value)
        if name in found or name not in (*AMOUNTS, "over", "settings"):
            return None
        found[name] = value
    record = Record(**found)
    return record if record.kind or record.failed else None
