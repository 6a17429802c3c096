"""Where Unsloth Studio would put a run, told to people: the choice in a sentence, and a row for everything that was tried."""

from dataclasses import dataclass

from vramplan.accountings import estimate
from vramplan.free_memory import read_cards, read_numbers
from vramplan.placement import BALANCED, SHARE_OF_FURTHER_CARDS, Card, Placement, Tried, place
from vramplan.settings import Settings
from vramplan.units import gib_text

ACCOUNTING = "unsloth"
"""The accounting whose rule this is: what a run needs is by its own estimate."""

HUNDRED = 100


@dataclass(frozen=True)
class TriedRow:
    """Cards that were considered together: their numbers, what is free on them, what of it counts, what that leaves, and whether it is enough."""

    cards: str
    free: str
    usable: str
    headroom: str
    enough: bool


@dataclass(frozen=True)
class Told:
    """Where a run goes: the answer, why, and what was tried."""

    fits: bool
    answer: str
    why: str
    rows: tuple[TriedRow, ...]


def placed(settings: Settings, *, free: str, cards: str = "") -> Placement:
    """The run on the cards of a text. Raises CardsError for what is wrong with the texts, NotExpressible where the estimate has no number."""
    seen = read_cards(free)
    named = read_numbers(cards, seen)
    return place(needed_bytes=estimate(settings.varied(accounting=ACCOUNTING)).peak_bytes, cards=seen, named=named)


def told(placement: Placement) -> Told:
    """The same in words and rows."""
    return Told(placement.fits, answer_text(placement), why_text(placement), tuple(_row(placement, each) for each in placement.tried))


def answer_text(placement: Placement) -> str:
    """Which cards, and how the layers lie on them."""
    chosen, needed = placement.chosen, gib_text(placement.needed_bytes)
    cards = _cards_text(chosen.cards)
    if not placement.fits:
        several = len(chosen.cards) > 1
        only = ("these cards" if several else "this card") if placement.named else "all cards together" if several else "the only card"
        short = gib_text(placement.needed_bytes - int(chosen.usable_bytes))
        return f"Does not fit: the run needs {needed} GiB, and {only} can hold {gib_text(int(chosen.usable_bytes))} GiB, {short} GiB too little."
    lies = "layers spread evenly over them" if placement.device_map == BALANCED else "everything on it"
    return f"On {cards}: the run needs {needed} GiB, and {gib_text(int(chosen.usable_bytes))} GiB can be used; device_map “{placement.device_map}”, {lies}."


def why_text(placement: Placement) -> str:
    """Why these cards."""
    share = int(HUNDRED * SHARE_OF_FURTHER_CARDS)
    rule = f"The first card counts with all that is free, every other with {share} % of it."
    if placement.named:
        return f"Cards that are named are all used. {rule}"
    return f"The card with the most free memory goes first, then the next, until the run fits. {rule}"


def _cards_text(cards: tuple[Card, ...]) -> str:
    numbers = [str(card.index) for card in cards]
    return f"card {numbers[0]}" if len(numbers) == 1 else f"cards {', '.join(numbers[:-1])} and {numbers[-1]}"


def _row(placement: Placement, each: Tried) -> TriedRow:
    usable = int(each.usable_bytes)
    return TriedRow(
        cards=", ".join(str(card.index) for card in each.cards),
        free=" + ".join(gib_text(card.free_bytes) for card in each.cards),
        usable=gib_text(usable),
        headroom=gib_text(usable - placement.needed_bytes, signed=True),
        enough=each.enough,
    )


