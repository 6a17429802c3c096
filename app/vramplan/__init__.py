"""VRAM Plan: will this fine-tuning run fit on that GPU, and if not, what makes it fit?

    >>> from vramplan import Settings, estimate
    >>> result = estimate(Settings(model="llama-3.1-8b", method="qlora", sequence_length=4096))
    >>> result.peak_bytes, result.fits
"""

from importlib import import_module
from typing import TYPE_CHECKING

from vramplan.accountings import estimate
from vramplan.compare import compare
from vramplan.curve import curve
from vramplan.errors import FieldError, NotExpressible, SettingsError
from vramplan.fit import fit
from vramplan.ledger import Estimate
from vramplan.make_fit import MadeToFit, make_fit
from vramplan.settings import Settings

if TYPE_CHECKING:
    from vramplan.importing.imported import Imported, import_text
    from vramplan.importing.problems import ImportProblem

_WHEN_ASKED_FOR = {
    "Imported": "vramplan.importing.imported", "ImportProblem": "vramplan.importing.problems", "import_text": "vramplan.importing.imported",
}
"""Names whose modules, with all that reads files of other tools, are imported when one of them is first asked for: a count needs none of it."""


def __getattr__(name: str) -> object:
    """One of the names above."""
    if name not in _WHEN_ASKED_FOR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_WHEN_ASKED_FOR[name]), name)


def __dir__() -> list[str]:
    """The names of this module, those that wait among them."""
    return sorted({*globals(), *_WHEN_ASKED_FOR})


def _in_a_notebook(self: Estimate) -> str:
    """The answer and a table, as HTML; what writes it is imported for the first one."""
    from vramplan.notebook import html

    return html(self)


Estimate._repr_html_ = _in_a_notebook  # the ledger itself knows nothing of how it is told

__version__ = "0.2.0"
__all__ = [
    "Estimate", "FieldError", "ImportProblem", "Imported", "MadeToFit", "NotExpressible", "Settings", "SettingsError", "compare", "curve", "estimate", "fit", "import_text",
    "make_fit",
]
