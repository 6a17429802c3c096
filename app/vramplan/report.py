"""One estimate told to people: numbers as text, rows and sentences. The page paints it and the terminal prints it."""

from dataclasses import dataclass

from vramplan import mapchart, words
from vramplan.accountings import estimate as estimate_of
from vramplan.catalogue import TRAITS, cards, defaults, gpu_classes
from vramplan.checks import Value
from vramplan.compare import compared
from vramplan.curve import Point
from vramplan.fields import BY_NAME, FIELDS, MAX_SHARDED_OVER, SECTIONS, applying
from vramplan.fit import Alternative, Fit, Limit, changed
from vramplan.fitmap import Cell, FitMap
from vramplan.gpus import GpuCurve, divided
from vramplan.kinds import Measured
from vramplan.ledger import LIKELY, UNLIKELY, Estimate
from vramplan.link import to_query
from vramplan.settings import Settings, format_settings
from vramplan.units import count_text, counted, gib_text, plain_decimal, short_count_text


LOADING = "host_loading"
"""The row of host memory that is there only while a model is loaded."""

MOST_LEFT = 4
"""Rows that are named of those that no number of GPUs takes away."""

SMALLEST_SHARE = 0.01
"""Per cent below which a share is only said to be smaller."""

WHOLE_SHARES_FROM = 9.995
"""Per cent from which a share has no decimals."""


@dataclass(frozen=True)
class Headline:
    """The answer: estimated peak per GPU, budget and headroom in GiB with two decimals, and the verdict in words.

    line: what the line across the bar marks, where that is not the budget. counted, beside: what the peak is, and what
    comes on top of it.
    """

    peak: str
    budget: str
    headroom: str
    headroom_label: str
    verdict: str
    verdict_name: str
    fits: bool
    sentence: str
    closeness: str
    budget_label: str
    run: str
    line: str
    counted: str
    beside: str


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
class HostRow:
    """One row of host memory, per GPU, in GiB with three decimals."""

    label: str
    gib: str


@dataclass(frozen=True)
class GpuRow:
    """One number of GPUs: the peak of each in GiB, what that leaves, and whether it fits."""

    gpus: str
    peak: str
    headroom: str
    fits: bool
    current: bool
    fewest: bool
    enough: bool


@dataclass(frozen=True)
class Change:
    """A run that differs from the current one, with the link that opens it, and what a saving costs."""

    label: str
    peak: str
    difference: str
    headroom: str
    fits: bool
    verdict: str
    verdict_name: str
    current: bool
    query: str
    cost: str = ""


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
    verdict_name: str
    current: bool
    longest: bool


def headline(estimate: Estimate) -> Headline:
    """The answer for one estimate."""
    peak, budget = gib_text(estimate.peak_bytes), gib_text(estimate.budget_bytes)
    verdict = words.verdict_text(estimate.verdict)
    return Headline(
        peak=peak,
        budget=budget,
        headroom=gib_text(estimate.headroom_bytes, signed=True),
        headroom_label="Headroom" if estimate.headroom_bytes >= 0 else "Shortfall",
        verdict=verdict,
        verdict_name=estimate.verdict,
        fits=estimate.fits,
        sentence=f"Estimated peak {peak} GiB per GPU. {verdict} {budget} GiB, {_what_is_left(estimate)}.",
        closeness=_closeness(estimate) if peak == gib_text(estimate.usable_bytes) else "",
        budget_label=budget_label(estimate),
        run=run_text(estimate.settings),
        line=line_text(estimate),
        counted=counted_text(estimate),
        beside=beside_text(estimate),
    )


def _what_is_left(estimate: Estimate) -> str:
    """How much the budget leaves, or lacks: 'with 2.10 GiB to spare'."""
    spare = words.amount_text(abs(estimate.headroom_bytes)) if estimate.headroom_bytes else "nothing"
    context = f"{words.amount_text(estimate.context_bytes)} of CUDA context" if estimate.context_bytes else ""
    if estimate.headroom_bytes < 0:
        return f"short by {spare}, {context} included" if context else f"short by {spare}"
    only = "only " if estimate.verdict == UNLIKELY else ""
    return f"with {only}{spare} to spare" + (f" after {context}" if context else "")


def line_text(estimate: Estimate) -> str:
    """What the line across the bar and the curve marks; nothing where it is the budget itself."""
    if not estimate.context_bytes:
        return ""
    usable, context = gib_text(estimate.usable_bytes), words.amount_text(estimate.context_bytes)
    return f"The line is at {usable} GiB: the budget less {context} of CUDA context."


def line_label(estimate: Estimate) -> str:
    """The same in few words."""
    return "budget less context" if estimate.context_bytes else "budget"


def counted_text(estimate: Estimate) -> str:
    """What the peak is, and when it is reached."""
    if estimate.process is None:
        return "Everything listed below, counted as if it were alive at once."
    return f"Allocated by tensors at the largest moment: {estimate.moment.name}."


def beside_text(estimate: Estimate) -> str:
    """What comes on top of an allocated peak: the CUDA context, and what the allocator holds unused."""
    if estimate.process is None:
        return ""
    if estimate.settings.has_unified_memory:
        return UNIFIED
    low, high = (gib_text(each) for each in (estimate.process.low, estimate.process.high))
    would, where = ("would", " on a card with room for it") if estimate.process.high > estimate.budget_bytes else ("will", "")
    return f"nvidia-smi {would} show about {low} to {high} GiB for this process{where}: unused blocks of the allocator and the CUDA context are on top."


UNIFIED = (
    "Counted with the tensors that PyTorch makes on an NVIDIA card: take it as memory alone. On a GPU that shares the machine’s memory some kernels"
    " and quantised weights do not run."
)
"""What stands beside a peak where there is no CUDA."""


def _closeness(estimate: Estimate) -> str:
    """Which side of the usable memory a peak lies on when both read the same."""
    if estimate.headroom_bytes == 0:
        return f"The peak equals {_what_is_usable(estimate)} to the byte{', which fits' if estimate.fits else ''}."
    side = "below" if estimate.headroom_bytes > 0 else "above"
    return f"Both read {gib_text(estimate.peak_bytes)} GiB; the peak is {counted(abs(estimate.headroom_bytes), 'byte')} {side} {_what_is_usable(estimate)}."


def _what_is_usable(estimate: Estimate) -> str:
    return "the budget less the CUDA context" if estimate.context_bytes else "the budget"


def budget_label(estimate: Estimate) -> str:
    """What the budget is: a nominal class, or what was typed."""
    settings = estimate.settings
    label = words.value_text("gpu", settings.gpu)
    if settings.gpu in cards():
        return f"{label} less {plain_decimal(settings.other_processes)} GiB in use" if settings.other_processes else label
    return f"{label} class" if settings.budget is None else "your budget"


def run_text(settings: Settings) -> str:
    """The run in a line: model, method and batch."""
    if settings.serves:
        served, tokens = words.value_text("served_weights", settings.served_weights), counted(settings.sequence_length, "token")
        return f"{settings.model_label} · inference, {served} weights · {tokens} × {count_text(settings.micro_batch)}"
    adapter = f" rank {settings.rank}" if settings.trains_adapters else ""
    objective = f"{words.value_text('objective', settings.objective)} · " if settings.trains_on_pairs else ""
    batch = counted(settings.micro_batch, "pair") if settings.trains_on_pairs else count_text(settings.micro_batch)
    return (
        f"{settings.model_label} · {objective}{words.value_text('method', settings.method)}{adapter} · "
        f"{counted(settings.sequence_length, 'token')} × {batch}"
    )


def settings_rows(settings: Settings) -> tuple[tuple[str, str], ...]:
    """Every setting that applies to the run, in the order of the form: what it is called, and its value. Traits that a decoder of
    one's own has as usual are left out."""
    values, texts, usual = {name: getattr(settings, name) for name in BY_NAME}, format_settings(settings), defaults()
    left_out = {name for name in BY_NAME if isinstance(BY_NAME[name].kind, Measured) or name in TRAITS and texts.get(name) == usual[name]}
    shown = applying(values) - left_out
    ordered = sorted((field for field in FIELDS if field.name in shown), key=lambda field: [*SECTIONS].index(field.section))
    return tuple((field.label, words.value_text(field.name, values[field.name])) for field in ordered)


def facts(estimate: Estimate) -> tuple[Fact, ...]:
    """Parameter counts and effective batch; how many tokens are in the cache where the model answers."""
    total, trainable = estimate.parameters.total, estimate.parameters.trainable
    if estimate.settings.serves:
        tokens = estimate.settings.micro_batch * estimate.settings.sequence_length
        return Fact("Parameters", short_count_text(total), count_text(total)), Fact("Tokens in the cache", count_text(tokens))
    return (
        Fact("Parameters", short_count_text(total), count_text(total)),
        Fact("Trained", f"{short_count_text(trainable)} ({percent_text(trainable, total)})", count_text(trainable)),
        Fact("Effective batch", *counted(estimate.settings.effective_batch, estimate.settings.example).split(" ")),
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
    for name, (_, terms) in words.COMPONENTS.items():
        known = [term for term in terms if term in by_name]
        if not known:
            continue
        parts = [_component(term, words.term_label(estimate.accounting, term), by_name[term], peak) for term in known]
        shown = tuple(part for part in parts if part.bytes)
        label = words.component_label(estimate.accounting, name)
        rows.append(_component(name, label, sum(by_name[term] for term in known), peak, shown if len(shown) > 1 else ()))
    return tuple(rows)


def host(estimate: Estimate) -> tuple[HostRow, ...]:
    """What the machine's own memory holds for each GPU."""
    return tuple(HostRow(words.HOST_LABELS[term.name], gib_text(term.bytes, places=3)) for term in estimate.host)


def host_sentence(estimate: Estimate) -> str:
    """How much host memory each GPU takes while it trains, and all of a copy's together; nothing where none is counted."""
    kept = sum(term.bytes for term in estimate.host if term.name != LOADING)
    if not kept:
        return "Nothing of the run stays in host memory." if estimate.host else ""
    gpus = estimate.settings.sharded_over
    together = f", {gib_text(gpus * kept)} GiB for {counted(gpus, 'GPU')}" if gpus > 1 else ""
    return f"While it trains, {gib_text(kept)} GiB of host memory per GPU{together}."


def components_total(estimate: Estimate) -> str:
    """What the component rows add up to, with their three decimals."""
    return gib_text(estimate.peak_bytes, places=3)


def _component(name: str, label: str, amount: int, peak: int, parts: tuple[Component, ...] = ()) -> Component:
    return Component(
        name, label, gib_text(amount, places=3), amount, amount / peak, percent_text(amount, peak), parts
    )


def methods(estimate: Estimate) -> tuple[Change, ...]:
    """Every training method with everything else held, or every type of weights that the model can be served in."""
    varied = compared(estimate.settings)
    return tuple(
        _change(each, words.value_text(varied, each.change[varied]), estimate)
        for each in changed(estimate, ({varied: option.value} for option in BY_NAME[varied].kind.options))
    )


def alternatives(estimate: Estimate, found: Fit) -> tuple[Change, ...]:
    """Every single change worth trying, with what it would do and what that costs, the largest saving first."""
    return tuple(_change(each, words.change_text(each.change), estimate) for each in found.alternatives)


def _change(other: Alternative, label: str, estimate: Estimate) -> Change:
    return Change(
        label=label,
        peak=gib_text(other.peak_bytes),
        difference=words.difference_text(other.peak_bytes - estimate.peak_bytes),
        headroom=gib_text(other.headroom_bytes, signed=True),
        fits=other.fits,
        verdict=words.verdict_text(other.verdict),
        verdict_name=other.verdict,
        current=other.settings == estimate.settings,
        query=to_query(other.settings),
        cost=words.cost_text(other.change) if other.peak_bytes < estimate.peak_bytes else "",
    )


def maxima(estimate: Estimate, found: Fit) -> tuple[Answer, Answer]:
    """The largest micro-batch and the longest sequence, each with the other held."""
    settings = estimate.settings
    budget = gib_text(estimate.budget_bytes)
    return (
        _maximum(
            estimate,
            "micro_batch",
            "Sequences at once" if settings.serves else "Largest micro-batch",
            found.largest_micro_batch,
            held=f"at {counted(settings.sequence_length, 'token')}",
            nothing=f"No micro-batch fits {budget} GiB at this sequence length: one {settings.example} is already too much.",
        ),
        _maximum(
            estimate,
            "sequence_length",
            "Longest sequence",
            found.longest_sequence,
            held=_beside_it(settings),
            nothing=f"No sequence fits {budget} GiB at this micro-batch: a single token is already too much.",
        ),
    )


MAXIMA_NOTE = "Each maximum holds the other setting as it is now. Raising both at once makes a larger run than either."


def _beside_it(settings: Settings) -> str:
    """How many sequences the longest one is among."""
    if not settings.serves:
        return f"at micro-batch {count_text(settings.micro_batch)}"
    return "for one alone" if settings.micro_batch == 1 else f"for each of {counted(settings.micro_batch, 'sequence')}"


def _maximum(estimate: Estimate, name: str, label: str, limit: Limit, *, held: str, nothing: str) -> Answer:
    if limit.value is None:
        return Answer(label, "None", nothing, "")
    unit = f"{estimate.settings.example}s" if name == "micro_batch" else BY_NAME[name].kind.unit
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


def fewest_gpus(estimate: Estimate, found: Fit) -> tuple[Answer, ...]:
    """The fewest GPUs per copy, for each kind of sharding that runs with the other settings."""
    answers = []
    for sharding, count in found.fewest_gpus.items():
        label = f"Fewest GPUs, {words.value_text('sharding', sharding)}"
        if count is None:
            answers.append(Answer(label, "None", f"Not even {count_text(MAX_SHARDED_OVER)} GPUs make it fit.", ""))
            continue
        there = divided(estimate.settings, sharding, count)
        spare = words.amount_text(estimate_of(there).headroom_bytes)
        answers.append(Answer(label, count_text(count), f"GPU{'s' if count > 1 else ''} per copy, with {spare} of headroom per GPU.", to_query(there)))
    return tuple(answers)


def gpu_rows(estimate: Estimate, drawn: GpuCurve) -> tuple[GpuRow, ...]:
    """The peak per GPU against the number of GPUs, as a table."""
    settings = estimate.settings
    current = settings.sharded_over if settings.divides_states and settings.sharding == drawn.sharding else None
    return tuple(
        GpuRow(
            count_text(each.gpus), gib_text(each.peak_bytes), gib_text(each.headroom_bytes, signed=True), each.fits,
            each.gpus == current, each.gpus == drawn.fewest, each.gpus == drawn.enough,
        )
        for each in drawn.points
    )


def gpu_sentence(drawn: GpuCurve) -> str:
    """From how many GPUs on a run fits, and where more of them stop to help."""
    label = words.value_text("sharding", drawn.sharding)
    fits = "does not fit, however many GPUs divide it" if drawn.fewest is None else f"fits, or likely fits, on {counted(drawn.fewest, 'GPU')} per copy"
    return f"Under {label} the run {fits}. From {counted(drawn.enough, 'GPU')} on, more of them save less than 5 % of what one holds."


def gpu_traffic(drawn: GpuCurve) -> str:
    """What the GPUs divide, and what that costs in traffic."""
    label = words.value_text("sharding", drawn.sharding)
    return f"{label} divides {words.DIVIDES[drawn.sharding]}. In each step there travels {words.TRAVELS[drawn.sharding]}."


def gpu_floor(drawn: GpuCurve) -> str:
    """What no number of GPUs takes away, with the rows that make it up."""
    labels = [(words.term_label(drawn.floor.accounting, term.name), term.bytes) for term in drawn.left[:MOST_LEFT]]
    rows = ", ".join(f"{words.inside(label)} {gib_text(size)}" for label, size in labels)
    most = count_text(drawn.points[-1].gpus)
    return f"With {most} GPUs each still holds {gib_text(drawn.floor.peak_bytes)} GiB, at the moment “{drawn.floor.moment.name}”: {rows} GiB."


def curve_rows(
    estimate: Estimate, points: tuple[Point, ...], *, longest_fitting: int | None = None
) -> tuple[CurveRow, ...]:
    """The curve as a table, the longest sequence that fits marked where it is given."""
    return tuple(_curve_row(estimate, each, longest_fitting) for each in points)


def _curve_row(estimate: Estimate, each: Point, longest_fitting: int | None) -> CurveRow:
    return CurveRow(
        tokens=count_text(each.sequence_length),
        peak=gib_text(each.peak_bytes),
        headroom=gib_text(each.headroom_bytes, signed=True),
        fits=each.fits,
        verdict=words.verdict_text(each.verdict),
        verdict_name=each.verdict,
        current=each.sequence_length == estimate.settings.sequence_length,
        longest=each.sequence_length == longest_fitting,
    )


def curve_sentence(estimate: Estimate, found: Fit) -> str:
    """What the curve shows, in a sentence."""
    limit = found.longest_sequence
    fits = "fits" if estimate.process is None else "fits, or likely fits,"
    if limit.value is None:
        return "No sequence length fits at this micro-batch."
    if limit.at_cap:
        return f"The run {fits} at every length up to {counted(limit.value, 'token')}, the longest this model is estimated for."
    return f"The run {fits} up to {counted(limit.value, 'token')}."


def reading(point: Point) -> str:
    """One point of the curve, read aloud."""
    return f"{counted(point.sequence_length, 'token')}: {gib_text(point.peak_bytes)} GiB, {words.verdict_text(point.verdict).lower()}"


@dataclass(frozen=True)
class LongestRow:
    """One micro-batch: the longest sequence that fits with it, its peak and headroom in GiB, and the link that opens that run."""

    micro_batch: str
    tokens: str
    peak: str
    headroom: str
    query: str
    current: bool


MAP_BANDS = {
    mapchart.AMPLE: "half free or more",
    mapchart.EASY: "a quarter free or more",
    mapchart.CLOSE: "fits, with less free",
    LIKELY: "likely fits",
    UNLIKELY: "unlikely to fit",
    mapchart.OVER: "up to twice too large",
    mapchart.FAR: "larger still",
}
"""What each band of the map means, from the most headroom to the least."""


def map_sentence(made: FitMap) -> str:
    """What the map holds, and how far one comes in it."""
    cells = [cell for row in made.cells for cell in row]
    fitting = sum(cell.fits for cell in cells)
    return f"{count_text(len(cells))} runs, each counted by itself; {count_text(fitting) if fitting else 'none'} of them fit{'s' if fitting == 1 else ''}."


def map_legend(drawn: mapchart.MapChart) -> tuple[tuple[str, str], ...]:
    """The bands there are, with what they mean."""
    there = {band.name for band in drawn.bands}
    return tuple((name, label) for name, label in MAP_BANDS.items() if name in there)


def batch_text(cell: Cell) -> str:
    """The batch of one cell."""
    return f"Micro-batch {count_text(cell.micro_batch)}, {counted(cell.sequence_length, 'token')}"


def map_reading(cell: Cell) -> str:
    """One cell of the map, read aloud."""
    room = words.amount_text(abs(cell.headroom_bytes))
    left = f"{room} of headroom" if cell.headroom_bytes > 0 else f"{room} too much" if cell.headroom_bytes else "no headroom"
    return f"{batch_text(cell)}: {gib_text(cell.peak_bytes)} GiB, {left}, {words.verdict_text(cell.verdict).lower()}"


def map_rows(made: FitMap) -> tuple[LongestRow, ...]:
    """The longest sequence that fits, for every micro-batch that is a power of two."""
    settings = made.settings
    return tuple(
        LongestRow(
            micro_batch=count_text(micro_batch),
            tokens=f"{count_text(limit.value)}{'+' if limit.at_cap else ''}" if limit.value else "None",
            peak=gib_text(cell.peak_bytes) if cell else "",
            headroom=gib_text(cell.headroom_bytes, signed=True) if cell else "",
            query=to_query(settings.varied(micro_batch=micro_batch, sequence_length=limit.value)) if limit.value else "",
            current=micro_batch == settings.micro_batch,
        )
        for micro_batch, limit, cell in made.longest
    )


def labels_text(names: tuple[str, ...]) -> str:
    """Settings by what they are called: 'Hidden size and Layers'."""
    labels = [BY_NAME[name].label for name in names]
    return " and ".join((", ".join(labels[:-1]), labels[-1])) if len(labels) > 1 else "".join(labels)
