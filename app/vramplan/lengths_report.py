"""A data set’s token lengths against a run, told to people: rows and sentences."""

from dataclasses import dataclass
from fractions import Fraction

from vramplan import words
from vramplan.checks import quoted
from vramplan.importing.length_files import LengthFile
from vramplan.length_fit import CUT, LONGEST, PACKED, UNCUT, LengthFit
from vramplan.lengthchart import LIMIT, NOW, P99, Bar, LengthChart
from vramplan.units import count_text, counted, exact_text, gib_text

LABELS = {"p50": "50th percentile", "p95": "95th percentile", "p99": "99th percentile", LONGEST: "Longest"}
"""What percentiles are called."""

SHORT = {**{name: name for name in LABELS}, LONGEST: "max"}
"""The same on a button."""

SMALLEST_PERCENT, PERCENT_PLACES = Fraction(1, 100), 2
"""A chance that is smaller, or as close to certain, is told as that; and decimals of the others."""

HUNDRED = 100


@dataclass(frozen=True)
class MarkRow:
    """A percentile: tokens, the share of samples that are longer, and the run with that sequence length: peak in GiB, verdict, and its value as
    a setting; these are empty where the model ends before it."""

    name: str
    label: str
    tokens: str
    longer: str
    peak: str
    verdict: str
    verdict_name: str
    value: str
    current: bool


@dataclass(frozen=True)
class BatchesRow:
    """One way to make batches: its rows, how much of them is padding, and the chance that a micro-batch does not fit."""

    label: str
    rows: str
    padding: str
    too_large: str


@dataclass(frozen=True)
class BarRow:
    """One bar of the histogram: its lengths, samples, their share, the share up to here, and whether such lengths fit."""

    span: str
    samples: str
    share: str
    upto: str
    fits: str


def read_sentence(read: LengthFile) -> str:
    """What was read, and from where."""
    told = f"Read {counted(read.lengths.samples, 'length')}"
    if not read.column:
        return f"{told}."
    others = [name for name in read.choices if name != read.column]
    beside = f"; {', '.join(quoted(name) for name in others[:MOST_NAMED])} hold{'s' if len(others) == 1 else ''} whole numbers too" if others else ""
    return f"{told} from {quoted(read.column)}, {read.why}{beside}."


MOST_NAMED = 4
"""Other columns that are named."""


def advice(found: LengthFit) -> str:
    """What to size for."""
    lengths = found.lengths
    return (
        f"Size for the 99th percentile, not the mean. A micro-batch is as long as its longest sample: the mean is"
        f" {exact_text(lengths.mean, places=0)} tokens, the 99th percentile {count_text(lengths.percentile(99))}, the longest {count_text(lengths.longest)}."
    )


def sentences(found: LengthFit) -> tuple[str, ...]:
    """What fits, what is cut, and what that means for a run."""
    return tuple(filter(None, (_limit(found), _cut(found), _uncut(found), _packed(found), _pairs(found))))


def _limit(found: LengthFit) -> str:
    settings, limit = found.estimate.settings, found.limit
    batch = f"At micro-batch {count_text(settings.micro_batch)}"
    if limit.value is None:
        return f"{batch} no length fits."
    if limit.at_cap:
        longer = found.too_long
        more = f" {_samples(longer, found)} longer than that: the model ends there." if longer else ""
        return f"{batch} every length up to {counted(limit.value, 'token')} fits, the longest this model is estimated for.{more}"
    fits = "fit" if found.estimate.process is None else "fit, or likely fit"
    longer = f"{_samples(found.too_long, found)} longer" if found.too_long else "no sample is longer"
    return f"{batch} sequences of up to {counted(limit.value, 'token')} {fits}: {longer}."


def _samples(count: int, found: LengthFit) -> str:
    return f"{counted(count, 'sample')} ({share_text(count, found.lengths.samples)}) {'is' if count == 1 else 'are'}"


def _cut(found: LengthFit) -> str:
    """What the sequence length cuts off."""
    length = found.estimate.settings.sequence_length
    longer = found.lengths.over(length)
    if not longer:
        return f"The sequence length of {counted(length, 'token')} cuts no sample."
    lost = found.lengths.tokens - found.lengths.cut(length).tokens
    safe = "; nothing longer reaches the GPU" if found.estimate.fits else ""
    return f"The sequence length of {counted(length, 'token')} cuts {counted(longer, 'sample')} ({share_text(longer, found.lengths.samples)}) and drops {share_text(lost, found.lengths.tokens)} of all tokens{safe}."


def _uncut(found: LengthFit) -> str:
    """What happens where nothing is cut."""
    chance = next(each.too_large for each in found.batches if each.how == UNCUT)
    if not chance or found.limit.value is None:
        return ""
    what = ("holds a sample beyond that", "hold one") if found.limit.at_cap else ("does not fit", "hold one that does not")
    batch = found.estimate.settings.micro_batch
    epoch = count_text(-(-found.lengths.samples // batch))
    return f"With nothing cut, a random micro-batch {what[0]} with a chance of {chance_text(chance)}. An epoch draws every sample once: its {epoch} micro-batches are sure to {what[1]}."


def _packed(found: LengthFit) -> str:
    packed = next((each for each in found.batches if each.how == PACKED), None)
    if packed is None:
        return ""
    certain = found.estimate.process is None
    fits = ("fits" if certain else "fits, or likely fits") if found.estimate.fits else "does not fit"
    padded = next(each.padding for each in found.batches if each.how == CUT)
    saved = f" In padded batches {chance_text(Fraction(padded))} would be padding." if padded else ""
    length = found.estimate.settings.sequence_length
    return f"Packed one behind the other, the samples fill {counted(packed.rows, 'row')} of {counted(length, 'token')}.{saved} Every micro-batch is then as large as the run above, which {fits}."


def _pairs(found: LengthFit) -> str:
    if not found.estimate.settings.trains_on_pairs:
        return ""
    return "This run is on pairs: give the length of the longer text of each. How much is padding depends on both, so it is not counted."


def mark_rows(found: LengthFit) -> tuple[MarkRow, ...]:
    """Percentiles and the longest sample."""
    now = found.estimate.settings.sequence_length
    rows = []
    for mark in found.marks:
        verdict = mark.point.verdict if mark.point else ""
        rows.append(MarkRow(
            mark.name, LABELS[mark.name], count_text(mark.tokens), share_text(mark.longer, found.lengths.samples),
            gib_text(mark.point.peak_bytes) if mark.point else "", words.verdict_text(verdict) if verdict else "", verdict,
            str(mark.tokens) if mark.point else "", mark.tokens == now,
        ))
    return tuple(rows)


def batches_rows(found: LengthFit) -> tuple[BatchesRow, ...]:
    """Every way to make batches."""
    length = count_text(found.estimate.settings.sequence_length)
    labels = {CUT: f"Padded, cut at {length}", UNCUT: "Padded, nothing cut", PACKED: f"Packed into rows of {length}"}
    return tuple(
        BatchesRow(
            labels[each.how], count_text(each.rows), "not counted" if each.padding is None else chance_text(Fraction(each.padding)), chance_text(each.too_large)
        )
        for each in found.batches
    )


BATCHES_NOTE = (
    "A random micro-batch is drawn from all samples without repeats, as a shuffled epoch does, and padded to its longest sample. Padding is the"
    " average over many. A trainer that groups by length pads less, and puts the longest samples together."
)
"""What is taken of batches."""


def bar_rows(found: LengthFit, drawn: LengthChart) -> tuple[BarRow, ...]:
    """The histogram as a table, without its empty ends."""
    samples = found.lengths.samples
    filled = [number for number, bar in enumerate(drawn.bars) if bar.samples]
    rows, before = [], 0
    for bar in drawn.bars[filled[0] : filled[-1] + 1]:
        before += bar.samples
        rows.append(BarRow(span_text(bar), count_text(bar.samples), share_text(bar.samples, samples), share_text(before, samples), _fits(found, bar)))
    return tuple(rows)


def span_text(bar: Bar) -> str:
    """The lengths of one bar."""
    return count_text(bar.low) if bar.low == bar.high else f"{count_text(bar.low)} to {count_text(bar.high)}"


def _fits(found: LengthFit, bar: Bar) -> str:
    limit = found.limit.value or 0
    return "fit" if bar.high <= limit else "do not fit" if bar.low > limit else f"fit up to {count_text(limit)}"


def line_texts(drawn: LengthChart) -> dict[str, str]:
    """The labels of the lines across the histogram."""
    told = {LIMIT: "fits up to", NOW: "sequence length", P99: "p99"}
    return {line.name: f"{told[line.name]} {count_text(line.tokens)}" for line in drawn.lines}


def histogram_label(drawn: LengthChart) -> str:
    """The drawing in a sentence."""
    return f"Samples by length, with lines: {', '.join(line_texts(drawn).values())}. The table below has the numbers."


def chance_text(chance: Fraction) -> str:
    """A chance or a share in per cent, with two decimals: '0 %', '< 0.01 %', '3.27 %', '> 99.99 %', '100 %'."""
    percent = HUNDRED * chance
    if 0 < percent < SMALLEST_PERCENT:
        return f"< {float(SMALLEST_PERCENT)} %"
    if HUNDRED - SMALLEST_PERCENT < percent < HUNDRED:
        return f"> {float(HUNDRED - SMALLEST_PERCENT)} %"
    return f"{exact_text(percent, places=PERCENT_PLACES)} %"


def share_text(part: int, whole: int) -> str:
    """A part of the whole in per cent."""
    return chance_text(Fraction(part, whole))
