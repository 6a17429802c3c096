"""What a restored memory snapshot needs in Python: modules and data at hand without files, and a check that it counts right.

The build makes the snapshot (app/vramplan_site/inside/snapshot.py); files are not in it, only memory is.
"""

from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
import json
import marshal
import random
import sys

from vramplan import estimate, report
from vramplan.catalogue import defaults
from vramplan.checks import check
from vramplan.link import read_query
from vramplan.settings import of_checked


class Kept(InspectLoader):
    """Finds modules among compiled ones that are held in memory: those that were not imported when the snapshot was made."""

    def __init__(self, compiled: dict[str, tuple[bytes, bool]]):
        self._compiled = compiled

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        """How to import a module that is held here."""
        return ModuleSpec(name, self, origin="snapshot", is_package=self.is_package(name)) if name in self._compiled else None

    def is_package(self, name: str) -> bool:
        """Whether the module has others in it."""
        return self._compiled[name][1]

    def get_code(self, name: str):
        """The module's code."""
        return marshal.loads(self._compiled[name][0])

    def get_source(self, name: str) -> None:
        """Sources are not held."""


def keep(compiled: dict[str, tuple[bytes, bool]]) -> None:
    """Import these modules from memory from now on. compiled: marshalled code, and whether it is a package, by full names."""
    sys.meta_path.insert(0, Kept(compiled))


def answer(query: str) -> str:
    """What the estimator says to a link, in full: the peak, every moment and every row, in bytes, and the sentence."""
    counted = estimate(of_checked(check(read_query(query).all_texts, defaults())))
    moments = " ".join(f"{moment.name}={moment.bytes}" for moment in counted.moments)
    rows = " ".join(f"{row.name}={row.bytes}" for row in report.components(counted))
    return f"{counted.peak_bytes} | {moments} | {rows} | {report.headline(counted).sentence}"


def agrees(told: str) -> bool:
    """Whether the restored estimator still gives these answers. told: JSON object, the answers by link.

    Chance, which would be the same in every copy, starts anew.
    """
    random.seed()
    return all(answer(query) == expected for query, expected in json.loads(told).items())
