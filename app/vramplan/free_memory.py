"""Cards and numbers of cards as people type them, or as nvidia-smi prints them; or one sentence about what is wrong.

Source of the format: nvidia-smi 535 to 580, --query-gpu=index,memory.total,memory.free --format=csv; its memory is in MiB.
"""

import re
from decimal import Decimal
from fractions import Fraction
from math import floor

from vramplan.errors import CardsError
from vramplan.placement import Card
from vramplan.units import GIB, MIB, count_text

FREE, NUMBERS = "Free memory", "Cards to use"
"""What the two inputs are called."""

MOST_CARDS = 64
"""Most cards of one machine that are read."""

MOST_GIB = 2_048
"""Most free memory of one card, in GiB."""

MAX_LENGTH = 20_000
"""Characters of an input that are looked at."""

SHOWN = 24
"""Characters of a rejected part that are repeated."""

HOW = "Type GiB for each card, such as 22.5, 22.5, 10, or paste what nvidia-smi --query-gpu=index,memory.total,memory.free --format=csv prints."

_AMOUNT = re.compile(r"(\d{1,9})\s*MiB", re.IGNORECASE)
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,30})?|\.[0-9]{1,30}")
_END_OF_LINE = re.compile(r"(MiB\]?)\s*(?=\d+\s*,)", re.IGNORECASE)


def read_cards(text: str) -> tuple[Card, ...]:
    """The cards of a text: free GiB of each, or lines of nvidia-smi. Raises CardsError with one sentence."""
    text = text[:MAX_LENGTH].strip()
    if not text:
        raise CardsError("free", f"{FREE} must name at least one card; nothing was entered. {HOW}")
    printed = "mib" in text.lower() or "memory." in text.lower()
    cards = _printed(text) if printed else _typed(text)
    if not cards:
        raise CardsError("free", f"{FREE} must name at least one card; there is none in what was entered. {HOW}")
    if len(cards) > MOST_CARDS:
        raise CardsError("free", f"{FREE} must be of at most {MOST_CARDS} cards; got {count_text(len(cards))}. Leave some out.")
    seen: set[int] = set()
    for card in cards:
        if card.index in seen:
            raise CardsError("free", f"{FREE} must name every card once; card {card.index} came twice. Paste the output of one machine.")
        seen.add(card.index)
    return cards


def read_numbers(text: str, cards: tuple[Card, ...]) -> tuple[int, ...]:
    """The cards that are to be used, by number; none where nothing is named. Raises CardsError with one sentence."""
    parts = [part for part in re.split(r"[\s,;]+", text[:MAX_LENGTH].strip()) if part]
    known = [card.index for card in cards]
    listed = ", ".join(map(str, known))
    chosen: list[int] = []
    for part in parts:
        if not re.fullmatch(r"[0-9]{1,6}", part) or int(part) not in known:
            raise CardsError("cards", f"{NUMBERS} must be among {listed}; got “{_shown(part)}”. Name numbers of cards that are there, or none.")
        if int(part) in chosen:
            raise CardsError("cards", f"{NUMBERS} must be named once each; {part} came twice. Leave one of them out.")
        chosen.append(int(part))
    return tuple(chosen)


def _typed(text: str) -> tuple[Card, ...]:
    """Free GiB of each card, numbered from 0."""
    parts = [part for part in re.split(r"[\s,;]+", text) if part]
    for part in parts:
        if not _DECIMAL.fullmatch(part) or Decimal(part) > MOST_GIB:
            raise CardsError("free", f"{FREE} must be GiB from 0 to {count_text(MOST_GIB)} for each card; got “{_shown(part)}”. {HOW}")
    return tuple(Card(index, floor(Fraction(part) * GIB)) for index, part in enumerate(parts))


def _printed(text: str) -> tuple[Card, ...]:
    """The cards of comma-separated lines; a box for one line drops line breaks, so none are relied on."""
    lines = [[cell.strip() for cell in line.split(",")] for line in _END_OF_LINE.sub(r"\1\n", text).splitlines() if line.strip()]
    names = ["index", "memory.total", "memory.free"]
    if "memory." in ",".join(lines[0]).lower():
        names = [cell.partition("[")[0].strip().lower() for cell in lines.pop(0)]
    if "index" not in names or "memory.free" not in names:
        raise CardsError("free", f"{FREE} must have the columns index and memory.free; got “{_shown(', '.join(names))}”. {HOW}")
    for cells in lines:
        if len(cells) != len(names):
            raise CardsError("free", f"{FREE} must have the columns {', '.join(names)} for each card; got “{_shown(', '.join(cells))}”. {HOW}")
    return tuple(_card(dict(zip(names, cells, strict=True)), cells) for cells in lines)


def _card(found: dict[str, str], cells: list[str]) -> Card:
    amount = _AMOUNT.fullmatch(found.get("memory.free", ""))
    if not amount or not re.fullmatch(r"[0-9]{1,4}", found.get("index", "")):
        raise CardsError("free", f"{FREE} must be a number and MiB for each card; got “{_shown(', '.join(cells))}”. {HOW}")
    return Card(int(found["index"]), int(amount[1]) * MIB)


def _shown(text: str) -> str:
    """A part of an input as it is repeated."""
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text[: SHOWN + 1])
    return f"{shown[:SHOWN]}…" if len(shown) > SHOWN else shown
