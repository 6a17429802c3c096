"""What makes a run fit, told to people: sets of changes with what they cost, and where to turn when none is enough."""

from collections.abc import Iterable
from dataclasses import dataclass

from vramplan import words
from vramplan.fields import BY_NAME
from vramplan.front import Point
from vramplan.growth import Grown
from vramplan.levers import BATCH, Step, changeable
from vramplan.link import to_query
from vramplan.make_fit import MOST_CHANGES, MadeToFit, Offer
from vramplan.units import count_text, counted, gib_text


@dataclass(frozen=True)
class OfferRow:
    """One set of changes: what is changed, what that costs, what it comes to, and the link that opens it."""

    changes: tuple[str, ...]
    costs: tuple[str, ...]
    peak: str
    headroom: str
    verdict: str
    verdict_name: str
    query: str


@dataclass(frozen=True)
class TurnRow:
    """Something else that would do: what it is, what it comes to, and the link that opens it."""

    label: str
    text: str
    query: str


def offer_rows(made: MadeToFit) -> tuple[OfferRow, ...]:
    """Every set that is offered, cheapest first."""
    return tuple(map(offer_row, made.offers))


def offer_row(offer: Offer) -> OfferRow:
    """One set."""
    return OfferRow(
        changes=tuple(step_text(step) for step in offer.steps),
        costs=tuple(dict.fromkeys(filter(None, (words.cost_text(step.change) for step in offer.steps)))),
        peak=gib_text(offer.peak_bytes),
        headroom=gib_text(offer.headroom_bytes, signed=True),
        verdict=words.verdict_text(offer.verdict),
        verdict_name=offer.verdict,
        query=to_query(offer.settings),
    )


def step_text(step: Step) -> str:
    """One change as people read it; of what goes with it only what differs in kind."""
    name, value = next(iter(step.change.items()))
    text = words.change_text({name: value})
    if name == BATCH and len(step.change) > 1:
        return f"{text}, with {counted(step.change['gradient_accumulation_steps'], 'accumulation step')}"
    if "sharded_over" in step.change:
        return f"{text} over {counted(step.change['sharded_over'], 'GPU')}"
    return text


@dataclass(frozen=True)
class GrownRow:
    """A larger run: how large, and the set of changes that it takes."""

    label: str
    value: str
    offer: OfferRow


@dataclass(frozen=True)
class Told:
    """Everything that is told of the search: all but the offers and the larger runs is empty while it goes on."""

    sentence: str
    offers: tuple[OfferRow, ...]
    turns: tuple[TurnRow, ...]
    grown: tuple[GrownRow, ...]
    proof: str
    refused: str


def told(made: MadeToFit | None, offers: Iterable[Offer], grown: Iterable[Grown]) -> Told:
    """What has been found so far; `made` is None while the search goes on."""
    found, larger = tuple(map(offer_row, offers)), grown_rows(grown)
    if made is None:
        return Told(SEARCHING, found, (), larger, "", "")
    return Told(sentence(made), found, turn_rows(made), larger, proof(made), refused_text(made))


SEARCHING = "Looking for changes that make the run fit …"
"""What is said while the search goes on."""


def sentence(made: MadeToFit) -> str:
    """The answer in a sentence or two."""
    if made.run.fits:
        return "The run fits as it is."
    if not made.offers:
        return f"No set of up to {MOST_CHANGES} changes makes the run fit{_kept(made)}."
    count = counted(len(made.offers), "set")
    return f"{count} of changes {'makes' if len(made.offers) == 1 else 'make'} the run fit{_kept(made)}. In none can a change be left out or be milder."


def _kept(made: MadeToFit) -> str:
    names = [words.inside(BY_NAME[name].label) for name in sorted(made.wanted.keep & changeable(made.run.settings))]
    return f" with {', '.join(names)} kept" if names else ""


def proof(made: MadeToFit) -> str:
    """How many sets there are, and how many were counted."""
    if not made.sets:
        return ""
    return f"Of {count_text(made.sets)} sets of up to {MOST_CHANGES} changes {count_text(made.counted)} were counted; the others have one of these within them, or cannot fit whatever they save."


def refused_text(made: MadeToFit) -> str:
    """What is not among the changes, and why; nothing where all are."""
    parts = [f"{BY_NAME[name].label}: {why}" for name, why in made.refused.items()]
    return f"Not among the changes, because it cannot be counted here: {' '.join(parts)}" if parts else ""


def turn_rows(made: MadeToFit) -> tuple[TurnRow, ...]:
    """Where to turn when no set of changes is enough: a larger card, more GPUs, or a smaller model; those that there are."""
    if made.fits:
        return ()
    found, settings = [], made.run.settings
    if made.smallest_gpu:
        gpu = made.smallest_gpu.gpu
        found.append(TurnRow("Smallest GPU class", f"{gpu.capacity_gib} GiB, e.g. {', '.join(gpu.cards)}", to_query(settings.varied(gpu=gpu.name))))
    if made.divided:
        count, kind = made.divided.sharded_over, words.value_text("sharding", made.divided.sharding)
        found.append(TurnRow("Fewest GPUs like this one", f"{counted(count, 'GPU')} with {kind}", to_query(made.divided)))
    if made.smaller_model:
        other = made.smaller_model
        text = f"{other.settings.model_label}, {gib_text(other.peak_bytes)} GiB"
        found.append(TurnRow("Largest model of the family", text, to_query(other.settings)))
    return tuple(found)


def grown_rows(found: Iterable[Grown]) -> tuple[GrownRow, ...]:
    """Every larger run."""
    return tuple(GrownRow(BY_NAME[each.name].label, count_text(each.value), offer_row(each.offer)) for each in found)


@dataclass(frozen=True)
class FrontCell:
    """One run of the front: its peak, the changes that it takes, and the link that opens it; nothing where none fits, or another is better."""

    peak: str
    changes: str
    query: str


@dataclass(frozen=True)
class Front:
    """Peaks by effective batch, a row each, and sequence length, a column each."""

    lengths: tuple[str, ...]
    rows: tuple[tuple[str, tuple[FrontCell | None, ...]], ...]


def front_table(points: Iterable[Point]) -> Front:
    """The front, laid out."""
    by_place = {point.wants[:-1]: point for point in points}
    batches, lengths = (sorted({place[axis] for place in by_place}) for axis in (0, 1))
    rows = tuple((count_text(batch), tuple(front_cell(by_place.get((batch, length))) for length in lengths)) for batch in batches)
    return Front(tuple(map(count_text, lengths)), rows)


def front_cell(point: Point | None) -> FrontCell | None:
    """One run of the front."""
    return point and FrontCell(gib_text(point.peak_bytes), "; ".join(map(step_text, point.steps)) or UNCHANGED, to_query(point.settings))


FRONT_SENTENCE = (
    "Least peak in GiB that fits, by effective batch and sequence length, as the run is and with the cheapest sets of changes; runs that another beats in all"
    " three are left out. Gradient accumulation is held."
)
"""What the front shows."""

UNCHANGED = "as it is"
"""A run that needs no change."""


def changes_text(row: OfferRow) -> str:
    """The changes in a line."""
    return "; ".join(row.changes) or UNCHANGED
