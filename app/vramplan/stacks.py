"""Training stacks: the choices that a release of a trainer makes for people, read from the data file."""

from dataclasses import dataclass
from functools import cache

from vramplan.data import table

ABOUT = ("label", "extends", "source", "date", "plausible")
"""Keys of a stack's table that are not facts."""


@dataclass(frozen=True)
class Fact:
    """One choice a stack makes, with where it was found and how it was checked: traced, measured or read."""

    value: str | bool
    source: str
    confidence: str


@dataclass(frozen=True)
class Stack:
    """A bracket of releases of one trainer. plausible: what a run may well use when nobody said which it does."""

    name: str
    label: str
    source: str
    plausible: bool
    facts: dict[str, Fact]

    def __getitem__(self, name: str) -> str | bool:
        """The value of one fact."""
        return self.facts[name].value

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Names of the facts that were only read in code."""
        return tuple(name for name, fact in self.facts.items() if fact.confidence == "read")


@cache
def stacks() -> dict[str, Stack]:
    """Every stack by name, in the order of the data file."""
    entries = table("stacks")
    return {name: Stack(name, entry["label"], entry["source"], entry["plausible"], _facts(entries, name)) for name, entry in entries.items()}


def _facts(entries: dict, name: str) -> dict[str, Fact]:
    """The facts of a stack, over those of the stack it extends."""
    entry = entries[name]
    inherited = _facts(entries, entry["extends"]) if "extends" in entry else {}
    own = {key: Fact(fact["value"], fact["source"], fact["confidence"]) for key, fact in entry.items() if key not in ABOUT}
    return inherited | own
