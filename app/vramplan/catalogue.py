"""What can be chosen by name: model presets, GPU memory classes, and the default of every setting."""

from dataclasses import dataclass, fields
from functools import cache

from vramplan.architecture import Architecture
from vramplan.data import table
from vramplan.units import GIB

CUSTOM = "custom"
"""Name of the model and of the GPU whose numbers are typed in."""

DIMENSIONS = tuple(field.name for field in fields(Architecture) if field.name != "query_key_norms")
"""Settings that describe a custom decoder, in the order they are asked for."""


@dataclass(frozen=True)
class Preset:
    """A published model: its dimensions, the longest sequence it is estimated for, and where that is written."""

    name: str
    label: str
    architecture: Architecture
    max_sequence_length: int
    source: str


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
            architecture=Architecture(**{key: entry[key] for key in names}),
            max_sequence_length=entry["max_sequence_length"],
            source=entry["source"],
        )
        for name, entry in table("models").items()
    }


@cache
def gpu_classes() -> dict[str, GpuClass]:
    """Every GPU class by name, smallest first."""
    entries = sorted(table("gpus").items(), key=lambda item: item[1]["capacity_gib"])
    return {
        name: GpuClass(name=name, capacity_gib=entry["capacity_gib"], cards=tuple(entry["cards"]))
        for name, entry in entries
    }


@cache
def defaults_by_version() -> dict[int, dict[str, str]]:
    """Default text of every setting, for each published version of the defaults."""
    return {int(version): entry["values"] for version, entry in table("defaults").items()}


def current_version() -> int:
    """The version of the defaults that new links are made with."""
    return max(defaults_by_version())


def defaults(version: int | None = None) -> dict[str, str]:
    """Default text of every setting in one version, the current one unless named."""
    return dict(defaults_by_version()[version or current_version()])
