"""What stands beside a run, told to people: every method as a range, the peak against the micro-batch, and the same model answering."""

from dataclasses import dataclass

from vramplan import words
from vramplan.accountings import estimate as estimate_of
from vramplan.accounts import component_bytes
from vramplan.compare import Span, spans
from vramplan.curve import BatchPoint
from vramplan.fields import BY_NAME
from vramplan.fit import Limit, largest_micro_batch, longest_sequence
from vramplan.kinds import INFERENCE
from vramplan.ledger import Estimate
from vramplan.link import to_query
from vramplan.settings import Settings
from vramplan.units import count_text, counted, gib_text


@dataclass(frozen=True)
class SpanRow:
    """One training method: peak in GiB at the least and at the most, whether each fits, and the components of the least."""

    label: str
    least: str
    most: str
    verdict: str
    parts: str
    query: str


@dataclass(frozen=True)
class ServedRow:
    """The model answering with one type of weights: GiB of weights and of a thousand tokens in the cache, how many sequences fit at
    once, how long one may be, and the link that opens it."""

    label: str
    weights: str
    cache: str
    sequences: str
    longest: str
    query: str


@dataclass(frozen=True)
class BatchRow:
    """One micro-batch of the drawing, as a row of its table."""

    batch: str
    peak: str
    headroom: str
    fits: bool
    current: bool


NAMED_PARTS = 3
"""Components that are named of a method’s least peak."""

TOKENS = 1_000
"""Tokens whose keys and values are told."""


def span_rows(settings: Settings) -> tuple[SpanRow, ...]:
    """Every training method as a range."""
    return tuple(_span_row(each) for each in spans(settings))


def _span_row(each: Span) -> SpanRow:
    fits = {(True, True): "fits at both ends", (True, False): "fits at the least", (False, False): "fits at neither", (False, True): "fits at the most"}
    return SpanRow(
        words.value_text("method", each.least.settings.method),
        gib_text(each.least.peak_bytes),
        gib_text(each.most.peak_bytes),
        fits[each.least.fits, each.most.fits],
        largest_parts(each.least),
        to_query(each.least.settings),
    )


def largest_parts(estimate: Estimate) -> str:
    """The largest components of a peak in GiB."""
    parts = sorted((part for part in component_bytes(estimate.terms) if part[1]), key=lambda part: -part[1])[:NAMED_PARTS]
    return ", ".join(f"{words.inside(words.component_label(estimate.accounting, name))} {gib_text(amount)}" for name, amount in parts)


SPAN_SENTENCE = (
    f"From “{BY_NAME['checkpointing'].label}: On” with efficient attention to neither, every other setting held."
    " Beside each method: the largest parts of the lower end, in GiB."
)
"""What the ends of a range are."""


def served_rows(settings: Settings) -> tuple[ServedRow, ...]:
    """The model of a run answering on the same GPU, with every type of weights; nothing where no rule counts it."""
    formats = BY_NAME["served_weights"].kind.values
    runs = (settings.varied(accounting="rules", task=INFERENCE, served_weights=each, micro_batch=1) for each in formats)
    return tuple(_served_row(run) for run in runs)


def _served_row(run: Settings) -> ServedRow:
    rows = {term.name: term.bytes for term in estimate_of(run).terms}
    per_token = rows["kv_cache"] // run.sequence_length
    return ServedRow(
        words.value_text("served_weights", run.served_weights),
        gib_text(rows["base_weights"]),
        gib_text(TOKENS * per_token),
        _limit_text(largest_micro_batch(run)),
        _limit_text(longest_sequence(run)),
        to_query(run),
    )


def _limit_text(limit: Limit) -> str:
    return "none" if limit.value is None else f"{count_text(limit.value)}{'+' if limit.at_cap else ''}"


def served_sentence(settings: Settings) -> str:
    """What the columns of a served model are about."""
    return (
        f"{settings.model_label} answering on the same GPU: its weights, and keys and values of every token. Sequences at once are of"
        f" {counted(settings.sequence_length, 'token')} each; the longest is for one alone. By the byte rules: a server’s own buffers come on top."
    )


def batch_rows(estimate: Estimate, points: tuple[BatchPoint, ...]) -> tuple[BatchRow, ...]:
    """The peak against the micro-batch, as a table."""
    now = estimate.settings.micro_batch
    return tuple(
        BatchRow(count_text(each.micro_batch), gib_text(each.peak_bytes), gib_text(each.headroom_bytes, signed=True), each.fits, each.micro_batch == now)
        for each in points
    )


def batch_sentence(estimate: Estimate, found: Limit) -> str:
    """How much one sequence more takes, and how many fit."""
    unit = estimate.settings.example
    if found.value is None:
        return f"Not even one {unit} at once fits."
    more = " or more" if found.at_cap else ""
    return f"Up to {counted(found.value, unit)}{more} at once {'fits, or likely fits' if found.value == 1 else 'fit, or likely fit'}."
