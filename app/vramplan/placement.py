"""Which cards a run is put on: the fewest that hold it, or those that were named. Pure: bytes in, cards out.

Source: Unsloth Studio, VRAM estimation for training (March 2026), section 8 and parameter flow.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

SHARE_OF_FURTHER_CARDS = Fraction(85, 100)
"""Part of the free memory of every card after the first that counts: the rest is for communication and uneven shards, as its authors
fitted it to 2 to 8 cards. Source: section 8."""

BALANCED, SEQUENTIAL = "balanced", "sequential"
"""How layers are laid over several cards, and over one: the device_map. Source: parameter flow, get_device_map."""


@dataclass(frozen=True)
class Card:
    """A card that can be seen: its number, and bytes of it that are free."""

    index: int
    free_bytes: int


@dataclass(frozen=True)
class Tried:
    """Cards that were considered together, the last of them new: what of their memory can be used, and whether that is enough."""

    cards: tuple[Card, ...]
    usable_bytes: Fraction
    enough: bool


@dataclass(frozen=True)
class Placement:
    """Where a run goes: what it needs, whether the cards were named, and what was tried, the last of which it is."""

    needed_bytes: int
    named: bool
    tried: tuple[Tried, ...]

    @property
    def chosen(self) -> Tried:
        """The cards the run is put on; all there are where not even those are enough."""
        return self.tried[-1]

    @property
    def fits(self) -> bool:
        """Whether these hold the run."""
        return self.chosen.enough

    @property
    def device_map(self) -> str:
        """How layers are laid over the cards."""
        return BALANCED if len(self.chosen.cards) > 1 else SEQUENTIAL


def usable_bytes(*, free: Iterable[int]) -> Fraction:
    """Bytes that cards can hold of one run together: all that is free on the first, a part of what is free on every other.

    Source: section 8, usable_gb.
    """
    first, *others = free
    return first + SHARE_OF_FURTHER_CARDS * sum(others)


def place(*, needed_bytes: int, cards: Iterable[Card], named: tuple[int, ...] = ()) -> Placement:
    """Put a run on cards: on all that are named, or else on the fewest, the freest first, until they hold it.

    named: numbers of cards that there are, each once. Of two cards with as much free the first goes first.
    Source: parameter flow, resolve_requested_gpu_ids and auto_select_gpu_ids.
    """
    by_index = {card.index: card for card in cards}
    if named:
        return Placement(needed_bytes, True, (_tried(needed_bytes, tuple(by_index[index] for index in named)),))
    ranked = sorted(by_index.values(), key=lambda card: -card.free_bytes)
    tried = []
    for count in range(1, len(ranked) + 1):
        tried.append(_tried(needed_bytes, tuple(ranked[:count])))
        if tried[-1].enough:
            break
    return Placement(needed_bytes, False, tuple(tried))


def _tried(needed: int, cards: tuple[Card, ...]) -> Tried:
    usable = usable_bytes(free=[card.free_bytes for card in cards])
    return Tried(cards, usable, needed <= usable)
