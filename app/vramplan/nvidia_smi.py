"""What a card's memory is used for already, read out of a pasted piece of nvidia-smi output.

Knows the table nvidia-smi prints ("1234MiB / 24564MiB"), the comma-separated lines of --query-gpu with
--format=csv, and a single amount ("1234 MiB"). Boxes for one line drop line breaks, so none are relied on.
Source: the output of nvidia-smi 535 to 580; memory is in MiB there.
"""

import re
from dataclasses import dataclass
from decimal import Context, Decimal

from vramplan.units import plain_decimal

GIB_PER_MIB = Decimal("0.0009765625")
"""One mebibyte in gibibytes, exactly: 1 / 1,024 (IEC 80000-13)."""

_WIDE = Context(prec=60)
"""Wide enough for every product of these numbers, whatever the caller's own context is."""

MAX_PASTED_LENGTH = 20_000
"""Characters of a paste that are looked at: the table of a machine with many cards has a few thousand."""

USED_OF_TOTAL = re.compile(r"(\d{1,9})\s*MiB\s*/\s*\d{1,9}\s*MiB", re.IGNORECASE)
"""Used and total memory of one card in the table."""

ONE_AMOUNT = re.compile(r"\s*(?:memory\.used\s*\[MiB\]\s*)?(\d{1,9})\s*MiB\s*", re.IGNORECASE)
"""Nothing but one amount, under its own heading or not."""

END_OF_LINE = re.compile(r"(MiB\]?)\s*(?=\d+\s*,)", re.IGNORECASE)
"""Where a comma-separated line ends and the next card's begins with its index, line break or not."""

PROCESS_ROW = re.compile(r"\b(\d{1,9})\s{1,9}(C|G|C\+G|M\+C)\s{1,9}(\S[^|\n]{0,120}?)\s{1,60}(\d{1,9})\s{0,3}MiB")
"""One process of the table: its number, its type (C computes, G draws), its name and what it uses."""

QUERIED_PROCESS = re.compile(r"\b\d{1,9},\s{0,3}([^,\n]{1,160}),\s{0,3}(\d{1,9})\s{0,3}MiB")
"""One line of --query-compute-apps=pid,process_name,used_memory."""

COLUMNS = ("memory.total", "memory.used", "memory.free")
"""Columns of amounts, in the order they are read in where no line names them."""


@dataclass(frozen=True)
class Used:
    """Memory in use: of the card that uses most where the paste tells of several."""

    mib: int
    cards: int

    @property
    def gib(self) -> str:
        """The same in GiB, as the exact decimal a field takes."""
        return plain_decimal(_WIDE.multiply(Decimal(self.mib), GIB_PER_MIB))


def read_used(pasted: str) -> Used | None:
    """Memory in use on the pasted card, or None where the text is not of nvidia-smi."""
    text = pasted[:MAX_PASTED_LENGTH]
    amounts = USED_OF_TOTAL.findall(text) or _of_lines(text) or ONE_AMOUNT.findall(text if ONE_AMOUNT.fullmatch(text) else "")
    return Used(max(int(amount) for amount in amounts), len(amounts)) if amounts else None


def read_processes(pasted: str) -> list[int]:
    """MiB of every process that computes on a card, largest first, by the rows that nvidia-smi prints of them."""
    text = pasted[:MAX_PASTED_LENGTH]
    found = [int(row[3]) for row in PROCESS_ROW.findall(text) if "C" in row[1]]
    if not found and "memory.total" not in text:
        found = [int(mib) for _, mib in QUERIED_PROCESS.findall(text)]
    return sorted(found, reverse=True)


def _of_lines(text: str) -> list[str]:
    """The used amount of every comma-separated line."""
    lines = [[cell.strip() for cell in line.split(",")] for line in END_OF_LINE.sub(r"\1\n", text).splitlines()]
    names = next((_column_names(line) for line in lines if "memory.used" in _column_names(line)), None)
    found = (_used_of(line, names) for line in lines)
    return [amount for amount in found if amount]


def _column_names(cells: list[str]) -> list[str]:
    """Names of the columns, without their units."""
    return [cell.partition("[")[0].strip().lower() for cell in cells]


def _used_of(cells: list[str], names: list[str] | None) -> str:
    """The used amount of one line; empty where it has none."""
    if names:
        amounts = dict(zip(names, cells, strict=False))
    else:
        with_unit = [cell for cell in cells if ONE_AMOUNT.fullmatch(cell)]
        amounts = dict(zip(COLUMNS, with_unit, strict=True)) if len(with_unit) == len(COLUMNS) else {}
    match = ONE_AMOUNT.fullmatch(amounts.get("memory.used", ""))
    return match[1] if match else ""
