"""One estimate told to people: numbers as text, rows and sentences. The page paints it and the terminal prints it."""

from dataclasses import dataclass

from vramplan import words
from vramplan.catalogue import gpu_classes
from vramplan.checks import Value
from vramplan.compare import compare
from vramplan.curve import Point
from vramplan.fields import BY_NAME
from vramplan.fit import Fit, Limit
from vramplan.ledger import Estimate
from vramplan.link import to_query
from vramplan.units import count_text, counted, gib_text, short_count_text


SMALLEST_SHARE = 0.01
"""Per cent below which a share is only said to be smaller."""

WHOLE_SHARES_FROM = 9.995
"""Per cent from which a share has no decimals."""


@dataclass(frozen=True)
class Headline:
    """The answer: estimated peak per GPU, budget and headroom in GiB with two decimals, and the verdict in words."""

    peak: str
    budget: str
    headroom: str
    headroom_label: str
    verdict: str
    fits: bool
    sentence: str
    closeness: str
    budget_label: str
    run: str


@dataclass(frozen=True)
class Fact:
    """One number about the run, with the exact value where the text is shortened."""

    label: str
    text: str
    exact: str = ""


@dataclass(frozen=True)
class Component:
    """One row of the component table: GiB with three decimals, share of the peak, and the terms it sums."""

    name: str
    label: str
    gib: str
    bytes: int
    share: float
    share_text: str
    parts: tuple["Component", ...] = ()


@dataclass(frozen=True)
class Change:
    """A run that differs from the current one, with the link that opens it."""

    label: str
    peak: str
    difference: str
    headroom: str
    fits: bool
    verdict: str
    current: bool
    query: str


@dataclass(frozen=True)
class Answer:
    """One answer to 'what fits': the value ('7', '1,024+' or 'None'), a sentence, and the link that opens it."""

    label: str
    text: str
    sentence: str
    query: str


@dataclass(frozen=True)
class CurveRow:
    """One row of the curve's table."""

    tokens: str
    peak: str
    headroom: str
    fits: bool
    verdict: str
    current: bool
    longest: bool


def headline(estimate: Estimate) -> Headline:
    """The answer for one estimate."""
    peak, budget = gib_text(estimate.peak_bytes), gib_text(estimate.budget_bytes)
    spare = words.amount_text(abs(estimate.headroom_bytes)) if estimate.headroom_bytes else "nothing"
    ending = f"with {spare} to spare" if estimate.fits else f"short by {spare}"
    verdict = words.fits_text(estimate.fits)
    return Headline(
        peak=peak,
        budget=budget,
        headroom=gib_text(estimate.headroom_bytes, signed=True),
        headroom_label="Headroom" if estimate.fits else "Shortfall",
        verdict=verdict,
        fits=estimate.fits,
        sentence=f"Estimated peak {peak} GiB per GPU. {verdict} {budget} GiB, {ending}.",
        closeness=_closeness(estimate) if peak == budget else "",
        budget_label=budget_label(estimate),
        run=run_text(estimate),
    )


def _closeness(estimate: Estimate) -> str:
    """Which side of the budget a peak lies on when both read the same."""
    if estimate.headroom_bytes == 0:
        return "The peak equals the budget to the byte, which fits."
    side = "below" if estimate.fits else "above"
    return f"Both read {gib_text(estimate.peak_bytes)} GiB; the peak is {counted(abs(estimate.headroom_bytes), 'byte')} {side} the budget."


def budget_label(estimate: Estimate) -> str:
    """What the budget is: a nominal class, or what was typed."""
    settings = estimate.settings
    return f"{words.value_text('gpu', settings.gpu)} class" if settings.budget is None else "your budget"


def run_text(estimate: Estimate) -> str:
    """The run in a line: model, method and batch."""
    settings = estimate.settings
    adapter = f" rank {settings.rank}" if settings.trains_adapters else ""
    return (
        f"{settings.model_label} · {words.value_text('method', settings.method)}{adapter} · "
        f"{counted(settings.sequence_length, 'token')} × {count_text(settings.micro_batch)}"
    )


def facts(estimate: Estimate) -> tuple[Fact, ...]:
    """Parameter counts and effective batch."""
    total, trainable = estimate.parameters.total, estimate.parameters.trainable
    return (
        Fact("Parameters", short_count_text(total), count_text(total)),
        Fact("Trained", f"{short_count_text(trainable)} ({percent_text(trainable, total)})", count_text(trainable)),
        Fact("Effective batch", *counted(estimate.settings.effective_batch, "sequence").split(" ")),
    )


def percent_text(part: int, whole: int) -> str:
    """A share of the whole, with two decimals where it is small: '0.52 %', '61 %'."""
    share = 100 * part / whole
    if part and share < SMALLEST_SHARE:
        return f"< {SMALLEST_SHARE} %"
    return f"{share:.0f} %" if share >= WHOLE_SHARES_FROM else f"{share:.2f} %"


def components(estimate: Estimate) -> tuple[Component, ...]:
    """The component table, largest meaning first, in the order of the ledger. Rows add up to the peak."""
    by_name = {term.name: term.bytes for term in estimate.terms}
    peak = estimate.peak_bytes
    rows = []
    for name, (label, terms) in words.COMPONENTS.items():
        parts = [_component(term, words.TERM_LABELS[term], by_name[term], peak) for term in terms]
        shown = tuple(part for part in parts if part.bytes) if len(parts) > 1 else ()
        rows.append(_component(name, label, sum(by_name[term] for term in terms), peak, shown if len(shown) > 1 else ()))
    return tuple(rows)


def components_total(estimate: Estimate) -> str:
    """What the component rows add up to, with their three decimals."""
    return gib_text(estimate.peak_bytes, places=3)


def _component(name: str, label: str, amount: int, peak: int, parts: tuple[Component, ...] = ()) -> Component:
    return Component(
        name, label, gib_text(amount, places=3), amount, amount / peak, percent_text(amount, peak), parts
    )


def methods(estimate: Estimate) -> tuple[Change, ...]:
    """The three training methods with everything else held."""
    current = estimate.settings.method
    return tuple(
        _change(
            {"method": other.settings.method},
            words.value_text("method", other.settings.method),
            other,
            estimate,
            current=other.settings.method == current,
        )
        for other in compare(estimate.settings)
    )


def alternatives(estimate: Estimate, found: Fit) -> tuple[Change, ...]:
    """Every single change worth trying, with what it would do."""
    return tuple(
        _change(
            each.change,
            words.change_text(each.change),
            each.estimate,
            estimate,
            current=each.estimate.settings == estimate.settings,
        )
        for each in found.alternatives
    )


def _change(change: dict[str, Value], label: str, other: Estimate, estimate: Estimate, *, current: bool) -> Change:
    return Change(
        label=label,
        peak=gib_text(other.peak_bytes),
        difference=words.difference_text(other.peak_bytes - estimate.peak_bytes),
        headroom=gib_text(other.headroom_bytes, signed=True),
        fits=other.fits,
        verdict=words.fits_text(other.fits),
        current=current,
        query=to_query(other.settings),
    )


def maxima(estimate: Estimate, found: Fit) -> tuple[Answer, Answer]:
    """The largest micro-batch and the longest sequence, each with the other held."""
    settings = estimate.settings
    budget = gib_text(estimate.budget_bytes)
    return (
        _maximum(
            estimate,
            "micro_batch",
            "Largest micro-batch",
            found.largest_micro_batch,
            held=f"at {counted(settings.sequence_length, 'token')}",
            nothing=f"No micro-batch fits {budget} GiB at this sequence length: one sequence is already too much.",
        ),
        _maximum(
            estimate,
            "sequence_length",
            "Longest sequence",
            found.longest_sequence,
            held=f"at micro-batch {count_text(settings.micro_batch)}",
            nothing=f"No sequence fits {budget} GiB at this micro-batch: a single token is already too much.",
        ),
    )


MAXIMA_NOTE = "Each maximum holds the other setting as it is now. The two do not combine into one run that fits."


def _maximum(estimate: Estimate, name: str, label: str, limit: Limit, *, held: str, nothing: str) -> Answer:
    if limit.value is None:
        return Answer(label, "None", nothing, "")
    unit = BY_NAME[name].kind.unit
    unit = unit.removesuffix("s") if limit.value == 1 else unit
    text = count_text(limit.value) + ("+" if limit.at_cap else "")
    end = " The search ends there; larger values were not tried." if limit.at_cap else ""
    query = to_query(estimate.settings.varied(**{name: limit.value}))
    return Answer(label, text, f"{unit} {held}.{end}", query)


def smallest_gpu(estimate: Estimate, found: Fit) -> Answer:
    """The smallest GPU class that holds the run."""
    label = "Smallest GPU class"
    if found.smallest_gpu is None:
        return Answer(label, "None", f"No class up to {max(gpu.capacity_gib for gpu in gpu_classes().values())} GiB holds this run on one GPU.", "")
    gpu, spare = found.smallest_gpu.gpu, found.smallest_gpu.headroom_bytes
    room = f"{words.amount_text(spare)} of headroom" if spare else "no headroom"
    return Answer(
        label,
        f"{gpu.capacity_gib} GiB",
        f"{room}, e.g. {', '.join(gpu.cards)}.",
        to_query(estimate.settings.replace(gpu=gpu.name)),
    )


def curve_rows(
    estimate: Estimate, points: tuple[Point, ...], *, longest_fitting: int | None = None
) -> tuple[CurveRow, ...]:
    """The curve as a table, the longest sequence that fits marked where it is given."""
    return tuple(
        CurveRow(
            tokens=count_text(each.sequence_length),
            peak=gib_text(each.peak_bytes),
            headroom=gib_text(each.headroom_bytes, signed=True),
            fits=each.fits,
            verdict=words.fits_text(each.fits),
            current=each.sequence_length == estimate.settings.sequence_length,
            longest=each.sequence_length == longest_fitting,
        )
        for each in points
    )


def curve_sentence(estimate: Estimate, found: Fit) -> str:
    """What the curve shows, in a sentence."""
    limit = found.longest_sequence
    if limit.value is None:
        return "The whole curve lies above the budget: no sequence length fits at this micro-batch."
    if limit.at_cap:
        return f"The curve stays within the budget up to {counted(limit.value, 'token')}, the longest this model is estimated for."
    return f"The curve leaves the budget after {counted(limit.value, 'token')}."


def reading(point: Point) -> str:
    """One point of the curve, read aloud."""
    return f"{counted(point.sequence_length, 'token')}: {gib_text(point.peak_bytes)} GiB, {words.fits_text(point.fits).lower()}"
