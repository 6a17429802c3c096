"""What can be chosen by name: model presets, GPU memory classes, and the default of every setting."""

import re
from dataclasses import MISSING, dataclass, fields
from decimal import Decimal
from functools import cache

from vramplan.architecture import Architecture
from vramplan.data import table
from vramplan.units import GIB, MIB, budget_bytes

CUSTOM = "custom"
"""Name of the model and of the GPU whose numbers are typed in."""

DIMENSIONS = tuple(field.name for field in fields(Architecture) if field.default is MISSING)
"""Settings that describe a custom decoder, in the order they are asked for."""

TRAITS = tuple(field.name for field in fields(Architecture) if field.default is not MISSING)
"""Settings that say what else a custom decoder has; most have none of it."""

DEFAULT_CONTEXT_BYTES = 504 * MIB
"""CUDA context where the card is not known: that of an RTX 4090 and, within a MiB, of an A100. Source: data/cards.toml."""


@dataclass(frozen=True)
class Preset:
    """A published model: its dimensions, the longest sequence it is estimated for, and where that is written.

    family: its model_type in transformers. repository: its name on the Hugging Face Hub.
    """

    name: str
    label: str
    family: str
    repository: str
    architecture: Architecture
    max_sequence_length: int
    source: str

    @property
    def group(self) -> str:
        """What it is found under: the letters that its label begins with."""
        return re.match("[A-Za-z]*", self.label)[0]


@dataclass(frozen=True)
class GpuClass:
    """A nominal memory capacity, with cards sold in that class."""

    name: str
    capacity_gib: int
    cards: tuple[str, ...]

    @property
    def budget_bytes(self) -> int:
        """Nominal capacity in bytes."""
        return self.capacity_gib * GIB


@cache
def presets() -> dict[str, Preset]:
    """Every model preset by name, in the order of the data file."""
    names = [field.name for field in fields(Architecture)]
    return {
        name: Preset(
            name=name,
            label=entry["label"],
            family=entry["family"],
            repository=entry["repository"],
            architecture=Architecture(**{key: entry[key] for key in names if key in entry}),
            max_sequence_length=entry["max_sequence_length"],
            source=entry["source"],
        )
        for name, entry in table("models").items()
    }


def relatives(name: str) -> tuple[Preset, ...]:
    """The other presets of a model's family: those of its model_type whose names begin with the same letters. None of a custom model."""
    known = presets().get(name)
    return tuple(each for each in presets().values() if known and each != known and each.family == known.family and each.group == known.group)


@cache
def gpu_classes() -> dict[str, GpuClass]:
    """Every GPU class by name, smallest first."""
    entries = sorted(table("gpus").items(), key=lambda item: item[1]["capacity_gib"])
    return {
        name: GpuClass(name=name, capacity_gib=entry["capacity_gib"], cards=tuple(entry["cards"]))
        for name, entry in entries
    }


@dataclass(frozen=True)
class Card:
    """A card with the memory its driver reports, and what a CUDA context takes of it. unified: it shares the machine's memory."""

    name: str
    label: str
    total_bytes: int
    context_bytes: int
    unified: bool
    source: str


@cache
def cards() -> dict[str, Card]:
    """Every card by name, in the order of the data file."""
    return {
        name: Card(
            name=name,
            label=entry["label"],
            total_bytes=_total_bytes(entry),
            context_bytes=entry["context_mib"] * MIB if "context_mib" in entry else DEFAULT_CONTEXT_BYTES,
            unified="unified_gib" in entry,
            source=entry["source"],
        )
        for name, entry in table("cards").items()
    }


def _total_bytes(entry: dict) -> int:
    """A total in MiB, or in GiB as a message printed it."""
    if "total_mib" in entry:
        return entry["total_mib"] * MIB
    return budget_bytes(amount=Decimal(entry["total_gib"]), unit="gib")


@cache
def defaults_by_version() -> dict[int, dict[str, str]]:
    """Default text of every setting, for each published version of the defaults, oldest first.

    A setting that a version did not know yet has the default it was introduced with.
    """
    tables = [(int(version), entry["values"]) for version, entry in table("defaults").items()]
    filled: dict[int, dict[str, str]] = {}
    for version, values in sorted(tables, reverse=True):
        filled[version] = filled.get(version + 1, {}) | values
    return dict(sorted(filled.items()))


def current_version() -> int:
    """The version of the defaults that new links are made with."""
    return max(defaults_by_version())


def defaults(version: int | None = None) -> dict[str, str]:
    """Default text of every setting in one version, the current one unless named."""
    return dict(defaults_by_version()[version or current_version()])
