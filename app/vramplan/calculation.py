"""How an accounting of formulas is calculated, step by step: the formulas from its data file, and the values that fill them.

A value comes from the estimate itself; the expression beside it is for reading, and tests hold the two together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from vramplan.accountings import ACCOUNTINGS
from vramplan.data import table
from vramplan.ledger import Estimate
from vramplan.settings import Settings
from vramplan.units import GIB, count_text, exact_text, gib_text

EXPLAINED = tuple(name for name, module in ACCOUNTINGS.items() if hasattr(module, "choices"))
"""Accountings that are formulas from beginning to end; each has a data file with them."""

BYTES = "bytes"
"""Unit of the quantities that are also shown in GiB."""

SHOWN_PLACES = 12
"""Decimals of a value that is not whole: as many as the bytes per 4-bit weight have."""


@dataclass(frozen=True)
class Case:
    """One form of a formula, and the settings under which it holds."""

    id: str
    label: str
    when: dict[str, list[str]]
    expression: str

    def applies(self, chosen: Mapping[str, str]) -> bool:
        """Whether this form is the one in use."""
        return all(chosen[name] in values for name, values in self.when.items())


@dataclass(frozen=True)
class Step:
    """One quantity of the calculation, with what it is and where the formula comes from."""

    symbol: str
    unit: str
    title: str
    text: str
    source: str
    reference: str
    cases: tuple[Case, ...]


@cache
def steps(accounting: str) -> tuple[Step, ...]:
    """Every step of an accounting, in reading order."""
    return tuple(
        Step(
            symbol=entry["symbol"],
            unit=entry["unit"],
            title=entry["title"],
            text=entry["text"],
            source=entry["source"],
            reference=entry.get("reference", ""),
            cases=tuple(
                Case(f"case-{accounting}-{entry['symbol']}-{number}", case.get("label", ""), case.get("when", {}), case["expression"])
                for number, case in enumerate(entry["case"], start=1)
            ),
        )
        for entry in table(f"formulas_{accounting}")["step"]
    )


@cache
def symbol_meanings(accounting: str) -> dict[str, str]:
    """What every symbol stands for."""
    entries = table(f"formulas_{accounting}")["symbols"]
    return {symbol: meaning for symbol, meaning in entries.items() if symbol not in ("source", "date")}


def applying_cases(settings: Settings, accounting: str) -> set[str]:
    """Ids of the cases in use."""
    chosen = ACCOUNTINGS[accounting].choices(settings)
    return {case.id for step in steps(accounting) for case in step.cases if case.applies(chosen)}


def value_texts(estimate: Estimate) -> dict[str, str]:
    """The value of every symbol of an estimate as text; for byte quantities `<symbol>-gib` has the same in GiB."""
    exact = estimate.quantities
    texts = {symbol: exact_text(value, places=SHOWN_PLACES) for symbol, value in exact.items()}
    texts |= {
        "peak": gib_text(estimate.peak_bytes, places=3),
        "C": exact_text(Fraction(estimate.budget_bytes, GIB), places=3),
        "headroom": gib_text(estimate.headroom_bytes, places=3),
        "batch": count_text(estimate.settings.effective_batch),
        "dimensions-source": estimate.settings.dimensions_source,
    }
    for step in steps(estimate.accounting):
        if step.unit == BYTES:
            texts[f"{step.symbol}-gib"] = gib_text(round(exact[step.symbol]), places=3)
    return texts
