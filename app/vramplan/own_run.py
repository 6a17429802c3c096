"""A measured run told to people: what was measured against the estimate, what may explain the difference, and headroom with it.

The page paints it and the terminal prints it, as with report.py.
"""

from dataclasses import dataclass, replace

from vramplan import words
from vramplan.accountings import estimate as estimate_of
from vramplan.checks import Value
from vramplan.errors import NotExpressible
from vramplan.ledger import LIKELY, YES, Estimate, verdict
from vramplan.link import to_query
from vramplan.measured_run import against
from vramplan.measured_run.doubts import Doubts, Explanation, doubts, is_off
from vramplan.measured_run.failure import Candidate, Failure, failure, same
from vramplan.measured_run.reading import Reading
from vramplan.measured_run.record import Record
from vramplan.measured_run.rows import matching_rows
from vramplan.measured_run.snapshot import Block
from vramplan.settings import Settings
from vramplan.units import count_text, counted, gib_text

KINDS = {"allocated": "Allocated", "reserved": "Reserved", "process": "Process"}
"""What each measured peak is called."""

MEANINGS = {
    "allocated": "by tensors: max_memory_allocated",
    "reserved": "by the allocator: max_memory_reserved",
    "process": "as nvidia-smi shows",
}
"""Where each of them comes from."""

HUNDRED, TWO_PLACES = 100, 2

SMALLEST_SHARE = 0.01
"""Per cent below which a share is only said to be smaller."""

NOT_COUNTED = "Only the training step knows which tensors are alive, so a measured run is held against that accounting alone. Choose it."

TOO_COARSE = "Reserved and process memory depend on the order of sizes, so none of these is called likely; max_memory_allocated() tells more."


@dataclass(frozen=True)
class Measure:
    """One measured amount beside its estimate, in GiB; share: the difference in per cent of what was measured."""

    name: str
    label: str
    meaning: str
    measured: str
    estimated: str
    difference: str
    share: str
    bytes: int
    low: int
    high: int


@dataclass(frozen=True)
class OwnRun:
    """What was measured. sentences: what it says. settings: whose settings it was measured with; other: whether these are others,
    with the link that says they are the ones. adjusted: headroom with the difference; forgotten: the link without the measurement."""

    measures: tuple[Measure, ...]
    sentences: tuple[str, ...]
    settings: str
    other: bool
    query_here: str
    adjusted: str
    forgotten: str


@dataclass(frozen=True)
class TensorRow:
    """A tensor that may be the one that was asked for."""

    label: str
    shape: str
    dtype: str
    gib: str
    moment: str
    beside: str
    same: bool


@dataclass(frozen=True)
class Choice:
    """Changed settings, the peak with them, what the measurement is off then, and the link that takes them over."""

    label: str
    also: str
    peak: str
    difference: str
    share: str
    likely: bool
    query: str


@dataclass(frozen=True)
class Explained:
    """What may explain a measurement: sentences, tensors of a failed run, and other settings, likeliest first."""

    sentences: tuple[str, ...]
    tensors: tuple[TensorRow, ...]
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class BlockRow:
    """Blocks of a snapshot that were made in one place."""

    gib: str
    count: str
    place: str


def with_reading(estimate: Estimate, reading: Reading | None) -> Estimate:
    """The estimate of the same run with what was read as its measurement; as it is where nothing was. Raises NotExpressible."""
    if estimate.reserved is None:
        raise NotExpressible("accounting", NOT_COUNTED)
    if reading is None:
        return estimate
    return replace(estimate, settings=against.with_record(estimate.settings, against.attached(reading.record, estimate)))


def own_run(estimate: Estimate) -> OwnRun | None:
    """What was measured, beside the estimate; None where nothing was."""
    settings, record = estimate.settings, against.record_of(estimate.settings)
    if record is None:
        return None
    other = not against.is_of(record, settings)
    measures = tuple(map(_measure, against.compared(estimate, record)))
    return OwnRun(
        measures=measures,
        sentences=tuple(_sentences(estimate, record, measures)),
        settings=_whose(estimate, record, other),
        other=other,
        query_here=_taken_over(settings, record) if other else "",
        adjusted=adjusted_text(estimate),
        forgotten=to_query(settings.varied(measured="")),
    )


def adjusted_text(estimate: Estimate) -> str:
    """Headroom with the difference of the measured run, in a sentence; empty where there is none."""
    record = against.record_of(estimate.settings)
    headroom = against.adjusted_headroom(estimate)
    if record is None or headroom is None:
        return ""
    difference = against.measured_difference(estimate, record)
    kind = f"of {KINDS[record.kind].lower()} memory" if record.kind else "or more"
    where = "" if against.is_of(record, estimate.settings) else ", measured with other settings"
    amount = words.amount_text(abs(headroom)) if headroom else "none"
    left = f"headroom {'at most ' if record.failed else ''}{amount}" if headroom >= 0 else f"shortfall {'at least ' if record.failed else ''}{amount}"
    return f"With your run’s difference ({_signed(difference)} {kind}{where}): {left}."


def explained(estimate: Estimate) -> Explained | None:
    """What may explain the measurement, by trying; None where nothing was measured with these settings."""
    settings, record = estimate.settings, against.record_of(estimate.settings)
    if record is None or estimate.reserved is None or not against.is_of(record, settings):
        return None
    failed = failure(estimate, record)
    tried = doubts(settings, record)
    sentences, tensors, choices = [], (), ()
    if failed:
        sentences += _failure_sentences(failed)
        tensors = tuple(_tensor(each, record) for each in failed.candidates)
        choices = tuple(_suggested(settings, record, each.change, each.candidate) for each in failed.suggestions)
    if tried:
        sentences += [*_row_sentences(estimate, record), *_doubt_sentences(tried, record)]
        choices = tuple(_choice(settings, record, each, tried) for each in tried.explanations)
    return Explained(tuple(sentences), tensors, choices)


def block_rows(blocks: tuple[Block, ...]) -> tuple[BlockRow, ...]:
    """The largest blocks of a snapshot at its peak."""
    return tuple(BlockRow(gib_text(each.bytes, places=3), count_text(each.count), each.place or "place not recorded") for each in blocks)


def _measure(each: against.Compared) -> Measure:
    low, high = gib_text(each.low), gib_text(each.high)
    difference = each.difference
    return Measure(
        name=each.kind,
        label=KINDS[each.kind],
        meaning=MEANINGS[each.kind],
        measured=gib_text(each.measured),
        estimated=low if each.low == each.high else f"{low} to {high}",
        difference=_signed(difference) if difference or each.low == each.high else "within",
        share=_share(difference, each.measured),
        bytes=each.measured,
        low=each.low,
        high=each.high,
    )


def _sentences(estimate: Estimate, record: Record, measures: tuple[Measure, ...]) -> list[str]:
    if estimate.reserved is None:
        return [NOT_COUNTED]
    found = []
    if measures:
        first = against.compared(estimate, record)[0]
        found.append(_first_sentence(first, measures[0]))
    if record.failed:
        found += _failed_sentences(estimate, record)
    return found


def _first_sentence(first: against.Compared, row: Measure) -> str:
    what = f"{row.label} memory peaked at {row.measured} GiB; the estimate is {row.estimated} GiB"
    if not first.difference:
        return f"{what}: the same{' to the byte' if first.low == first.high else ', within its band'}."
    more = "more than" if first.difference > 0 else "less than"
    return f"{what}: {words.amount_text(abs(first.difference))} ({_share(first.difference, first.measured, plain=True)}) {more} estimated."


def _failed_sentences(estimate: Estimate, record: Record) -> list[str]:
    """What a failed run had and asked for, against the estimate's peak and verdict."""
    held = "" if record.held is None else f" with {gib_text(record.held)} GiB allocated"
    found = [f"The run failed as it asked for {words.amount_text(record.tried)}{held}."]
    needed = against.least_needed(record)
    if needed is not None:
        side = "above" if needed > estimate.peak_bytes else "below"
        reached = "so the estimate is too low" if side == "above" else "so it failed on its way there"
        found.append(f"That would have been {gib_text(needed)} GiB at least, {side} the estimated peak of {gib_text(estimate.peak_bytes)} GiB, {reached}.")
    return [*found, _verdict_sentence(estimate, record)]


def _verdict_sentence(estimate: Estimate, record: Record) -> str:
    """What the estimate says of the card the run failed on."""
    total = record.total or estimate.budget_bytes
    usable = total - estimate.context_bytes
    said = verdict(usable=usable, budget=total, peak=estimate.peak_bytes, process=estimate.process, divided=estimate.settings.divides_states)
    card = f"{gib_text(total)} GiB, what the card has," if record.total else f"{gib_text(total)} GiB"
    outcome = "but it did not: the estimate is too low, or other processes used the card" if said in (YES, LIKELY) else "as it turned out"
    return f"For {card} the estimate says: {words.verdict_text(said).lower()}; {outcome}."


def _whose(estimate: Estimate, record: Record, other: bool) -> str:
    if not other:
        return "Measured with these settings." if record.settings else "Taken as measured with these settings."
    if record.over is None:
        return "Measured with other settings than these, so it is no check of this estimate."
    return f"Measured with other settings. The difference it showed then, {_signed(record.over)}, is only assumed to hold here."


def _row_sentences(estimate: Estimate, record: Record) -> list[str]:
    """Rows that the difference of an allocated peak is as large as."""
    if record.kind != "allocated":
        return []
    difference = record.allocated - estimate.peak_bytes
    found = []
    for each in matching_rows(estimate, difference):
        what = f"“{each.holding}” in “{words.term_label(estimate.accounting, each.term)}”" if each.holding else f"“{words.term_label(estimate.accounting, each.term)}”"
        times = "twice" if each.times > 1 else "as much as"
        kind = "missing from the estimate" if difference > 0 else "not there in your run"
        found.append(f"The difference is {times} {what} at the moment “{each.moment}” ({gib_text(each.bytes)} GiB), to {words.amount_text(each.apart)}: it may be {kind}.")
    return found


def _doubt_sentences(tried: Doubts, record: Record) -> list[str]:
    measured = getattr(record, record.kind)
    if tried.likely:
        others = [each for each in tried.explanations if each is not tried.likely]
        following = f", the next explanation by {_share(others[0].difference, measured, plain=True)}" if others else ""
        return [
            f"Likely: {words.change_text(tried.likely.change)}. That comes to what was measured within {_share(tried.likely.difference, measured, plain=True)}; "
            f"the settings as they are miss it by {_share(tried.present, measured, plain=True)}{following}. {count_text(tried.tried)} changes were tried."
        ]
    if not tried.present:
        return []
    if record.kind == "allocated" and not is_off(tried.present, measured=measured):
        return ["That is within what recorded runs differ by; no assumption stands out as wrong."]
    if not tried.explanations:
        return [f"None of the {count_text(tried.tried)} changes that were tried comes nearer."]
    clear = TOO_COARSE if record.kind != "allocated" else "None of them explains it clearly better than the others."
    return [f"{counted(tried.tried, 'change')} of settings were tried; those that come nearer follow. {clear}"]


def _failure_sentences(failed: Failure) -> list[str]:
    found = []
    if failed.missing is not None:
        found.append(f"The driver lacked {words.amount_text(failed.missing)}; the rest of the step may have wanted more.")
    if failed.in_pieces:
        found.append("The allocator held that much unused, but not in one piece: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True may be enough.")
    if failed.shared:
        found.append("So small a request is a buffer that small tensors share: the card was full already, and which tensor it was cannot be told.")
    elif not failed.candidates:
        found.append("No tensor of this size is in the estimate of these settings.")
    if failed.suggestions:
        found.append("With another setting there is one, while as much is allocated as your run had:")
    return found


def _tensor(each: Candidate, record: Record) -> TensorRow:
    return TensorRow(
        label=words.moment_text(each.tensor.name),
        shape=each.tensor.shape,
        dtype=each.tensor.dtype,
        gib=gib_text(each.tensor.bytes, places=3),
        moment=words.moment_text(each.moment) + (", before the first update" if each.before_update else ""),
        beside="–" if each.beside_bytes is None else gib_text(each.beside_bytes),
        same=same(each, record),
    )


def _choice(settings: Settings, record: Record, each: Explanation, tried: Doubts) -> Choice:
    measured = getattr(record, record.kind)
    also = "; ".join(words.change_text(change) for change in each.changes[1:])
    return Choice(
        label=words.change_text(each.change),
        also=also,
        peak=gib_text(each.peak_bytes),
        difference=_signed(each.difference),
        share=_share(each.difference, measured),
        likely=each is tried.likely,
        query=_taken_over(settings.varied(**each.change), record),
    )


def _suggested(settings: Settings, record: Record, change: dict[str, Value], candidate: Candidate) -> Choice:
    changed = settings.varied(**change)
    return Choice(
        label=words.change_text(change),
        also=f"{candidate.tensor.name}, {candidate.moment}",
        peak=gib_text(estimate_of(changed).peak_bytes),
        difference=_signed(record.held - candidate.beside_bytes),
        share=_share(record.held - candidate.beside_bytes, record.held),
        likely=True,
        query=_taken_over(changed, record),
    )


def _taken_over(settings: Settings, record: Record) -> str:
    """The link of settings that are said to be the ones that were measured."""
    plain = replace(record, over=None, settings="")
    return to_query(against.with_record(settings, against.attached(plain, estimate_of(settings))))


def _signed(count: int) -> str:
    """A difference with its unit: '+0.31 GiB', '−100 bytes', '0 bytes'."""
    sign = "+" if count > 0 else "\N{MINUS SIGN}" if count < 0 else ""
    return f"{sign}{words.amount_text(abs(count))}"


def _share(part: int, whole: int, *, plain: bool = False) -> str:
    """A difference in per cent: '+1.5 %'; without its sign where `plain`."""
    percent = HUNDRED * abs(part) / whole if whole else 0
    places = TWO_PLACES if percent < 1 else 1
    text = "0 %" if not part else f"less than {SMALLEST_SHARE} %" if percent < SMALLEST_SHARE else f"{percent:.{places}f} %"
    if plain or percent < SMALLEST_SHARE:
        return text
    return f"+{text}" if part > 0 else f"\N{MINUS SIGN}{text}"
