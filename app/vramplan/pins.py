"""Runs that are pinned beside the current one: read from a link, and compared term by term, from their ledgers."""

from collections.abc import Sequence
from dataclasses import dataclass

from vramplan.accounts import component_bytes
from vramplan.checks import Value
from vramplan.compare import counted_or_why
from vramplan.errors import NotExpressible, SettingsError
from vramplan.fields import FIELDS, applying
from vramplan.kinds import Measured
from vramplan.ledger import Estimate
from vramplan.link import FROM_HERE, Link, read_pin, read_query, unused_notices
from vramplan.settings import Settings, parse
from vramplan.words import COMPONENTS


@dataclass(frozen=True)
class Pinned:
    """The pinned runs of a link that can be counted, and a sentence for every one that is not used as it came."""

    runs: tuple[Estimate, ...]
    notices: tuple[str, ...]

    @property
    def settings(self) -> tuple[Settings, ...]:
        """The settings of every run."""
        return tuple(run.settings for run in self.runs)


@dataclass(frozen=True)
class TermStep:
    """One row of both ledgers: its name, and its bytes in the first run and in the second."""

    name: str
    before: int
    after: int

    @property
    def difference(self) -> int:
        """How much more the second run has; negative is less."""
        return self.after - self.before


@dataclass(frozen=True)
class Step(TermStep):
    """One component from a first run to a second, and the rows of the ledgers that differ in it."""

    terms: tuple[TermStep, ...] = ()


def pinned(link: Link) -> Pinned:
    """The pinned runs of a link. Never raises: at most one sentence for each of them says what of it cannot be used."""
    runs, notices = [], []
    for number, text in enumerate(link.pins, 1):
        found = _read(read_pin(link, text), given=set(read_query(f"?{text.removeprefix(FROM_HERE)}").texts))
        if found.runs:
            runs += found.runs
        notices += [f"Pinned run {number}: {notice}" for notice in found.notices]
    return Pinned(tuple(runs), tuple(notices))


def _read(link: Link, *, given: set[str]) -> Pinned:
    """One pinned run. given: the settings that it says itself."""
    try:
        counted = counted_or_why(parse(link.texts, version=link.version))
    except SettingsError as problem:
        return Pinned((), (f"{problem} It was left out.",))
    if isinstance(counted, NotExpressible):
        return Pinned((), (f"{counted.message} It was left out.",))
    said = {name: text for name, text in link.texts.items() if name in given or getattr(counted.settings, name) is not None}
    unused = unused_notices(said, version=link.version)
    return Pinned((counted,), (*link.dropped, *unused)[:1])


def steps(first: Estimate, second: Estimate) -> tuple[Step, ...]:
    """Every component that either run has, in the order of the ledger; the differences add up to that of the peaks."""
    before, after = (dict(component_bytes(each.terms)) for each in (first, second))
    by_term = [{term.name: term.bytes for term in each.terms} for each in (first, second)]
    found = []
    for name, (_, parts) in COMPONENTS.items():
        if before[name] or after[name]:
            terms = (TermStep(part, *(rows.get(part, 0) for rows in by_term)) for part in parts)
            found.append(Step(name, before[name], after[name], tuple(term for term in terms if term.difference)))
    return tuple(found)


def differing(runs: Sequence[Settings]) -> tuple[str, ...]:
    """The settings that not all of these runs have in common, in field order; what somebody measured is no part of a run."""
    values = [used(run) for run in runs]
    names = (field.name for field in FIELDS if not isinstance(field.kind, Measured))
    return tuple(name for name in names if len({each.get(name) for each in values}) > 1)


def used(run: Settings) -> dict[str, Value]:
    """The settings that apply to a run, by name."""
    return {name: getattr(run, name) for name in applying(run.__dict__)}
