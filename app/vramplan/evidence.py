"""How right the estimates are: errors against recorded runs, computed when the project is built and read from a data file."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from vramplan.units import count_text, gib_text
from vramplan.words import VERDICTS, value_text


@dataclass(frozen=True)
class Group:
    """Signed errors of one accounting over runs of one kind, as shares of what was recorded; far_under: share of the
    runs that are under by more than FAR."""

    accounting: str
    kind: str
    name: str
    runs: int
    median: float
    tenth: float
    worst_under: float
    worst_over: float
    median_absolute: float
    ninetieth_absolute: float
    far_under: float


@dataclass(frozen=True)
class Point:
    """One recorded run and what an accounting says of it, in bytes; source, link and reason where it is among the worst."""

    accounting: str
    kind: str
    id: str
    recorded: int
    estimated: int
    source: str = ""
    query: str = ""
    reason: str = ""

    @property
    def error(self) -> float:
        """Signed error as a share of what was recorded; negative is under."""
        return self.estimated / self.recorded - 1


@dataclass(frozen=True)
class Evidence:
    """Everything that is published: error quantiles, every point, the worst, process band and verdicts.

    band: runs with a recorded process size, how many the band covers, its median half-width as a share. verdicts: how
    often each verdict was given to runs that finished and to runs that went out of memory. versions: of the libraries traced.
    """

    groups: tuple[Group, ...]
    points: tuple[Point, ...]
    worst: tuple[Point, ...]
    band: dict[str, float]
    verdicts: dict[str, dict[str, int]]
    versions: tuple[str, ...]
    uncounted: dict[str, int]


FAR = 0.1
"""Share of what was recorded from which an estimate is far under: the direction that ends in an out-of-memory error."""

FILE = "evidence.json"
"""Name of the data file, written by the site builder."""


@cache
def evidence() -> Evidence:
    """The published evidence."""
    content = json.loads(files("vramplan.data").joinpath(FILE).read_text(encoding="utf-8"))
    return Evidence(
        groups=tuple(Group(**entry) for entry in content["groups"]),
        points=tuple(Point(**entry) for entry in content["points"]),
        worst=tuple(Point(**entry) for entry in content["worst"]),
        band=content["band"],
        verdicts=content["verdicts"],
        versions=tuple(content["versions"]),
        uncounted=content["uncounted"],
    )


@dataclass(frozen=True)
class GroupRow:
    """One group of runs as text: shares in per cent."""

    accounting: str
    kind: str
    name: str
    runs: str
    median: str
    tenth: str
    worst_under: str
    worst_over: str
    median_absolute: str
    ninetieth_absolute: str
    far_under: str


@dataclass(frozen=True)
class WorstRow:
    """One of the largest errors as text: GiB, per cent, and why."""

    accounting: str
    kind: str
    id: str
    recorded: str
    estimated: str
    error: str
    reason: str
    query: str


HUNDRED, MINUS = 100, "\N{MINUS SIGN}"

KINDS = {"traced": "Traced steps", "measured": "Measured runs"}
"""What each kind of recording is called."""

NARROW_UNDER = 0.01
"""Per cent below which an error has three decimals."""


def group_rows(found: Evidence) -> tuple[GroupRow, ...]:
    """Error quantiles of every group, all runs of a kind first."""
    return tuple(
        GroupRow(
            value_text("accounting", group.accounting),
            KINDS[group.kind],
            "all" if group.name == "all" else group.name,
            count_text(group.runs),
            *(signed_percent(share) for share in (group.median, group.tenth, group.worst_under, group.worst_over)),
            *(percent(share) for share in (group.median_absolute, group.ninetieth_absolute)),
            f"{HUNDRED * group.far_under:.0f} %",
        )
        for group in found.groups
    )


def worst_rows(found: Evidence, accounting: str, kind: str) -> tuple[WorstRow, ...]:
    """The largest errors of one accounting over one kind of recording, with their reasons."""
    return tuple(
        WorstRow(
            value_text("accounting", point.accounting),
            KINDS[point.kind],
            point.id,
            gib_text(point.recorded),
            gib_text(point.estimated),
            signed_percent(point.error),
            point.reason,
            point.query,
        )
        for point in found.worst
        if (point.accounting, point.kind) == (accounting, kind)
    )


def percent(share: float) -> str:
    """A share in per cent, with enough decimals to tell it from nothing: '0.006 %', '2.1 %'."""
    value = HUNDRED * share
    places = 3 if abs(value) < NARROW_UNDER else 2 if abs(value) < HUNDRED / HUNDRED else 1
    return f"{value:.{places}f} %".replace("-", MINUS)


def signed_percent(share: float) -> str:
    """The same with a sign."""
    text = percent(share)
    if not any(char in "123456789" for char in text):
        return text.removeprefix(MINUS)
    return text if text.startswith(MINUS) else f"+{text}"


def summary(found: Evidence) -> tuple[str, ...]:
    """What the evidence says, in sentences."""
    told = [_kind_sentence(found, kind) for kind in KINDS]
    band = found.band
    told.append(
        f"The process band covers {band['covered']} of the {band['runs']} runs whose nvidia-smi reading is recorded; "
        f"its median half-width is {percent(band['median_half_width'])}."
    )
    told.append("The planning formula and Unsloth Studio’s estimate are compared without what they add for the driver and libraries, which tensors do not allocate.")
    told.append(f"Verdicts: {_verdict_sentence(found)}.")
    return tuple(told)


def _kind_sentence(found: Evidence, kind: str) -> str:
    step = next(group for group in found.groups if (group.accounting, group.kind, group.name) == ("step", kind, "all"))
    what = "steps traced from the libraries themselves" if kind == "traced" else "runs that others measured on a GPU"
    return (
        f"Over {count_text(step.runs)} {what} the training step is off by {percent(step.median_absolute)} in the median and "
        f"{percent(step.ninetieth_absolute)} at the 90th percentile; the worst is {signed_percent(step.worst_under)} and "
        f"{signed_percent(step.worst_over)}."
    )


def _verdict_sentence(found: Evidence) -> str:
    parts = []
    for outcome, counts in found.verdicts.items():
        given = ", ".join(f"{count} “{VERDICTS[name].lower()}”" for name, count in counts.items())
        parts.append(f"of {sum(counts.values())} runs that {'finished' if outcome == 'finished' else 'went out of memory'}, {given}")
    return "; ".join(parts)
