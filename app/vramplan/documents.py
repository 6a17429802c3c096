"""The JSON documents that leave the estimator, described by pydantic models with a published JSON Schema.

Loaded only where a document is made: pydantic is not on the way to the first number.
"""

from typing import Literal, Self

from pydantic import Field

from vramplan import accounts, chronicle, own_run
from vramplan.badge_document import BadgeDocument
from vramplan.claims import Held, held
from vramplan.compare import compared, counted_by
from vramplan.curve import Curve
from vramplan.document import Bytes, Document, Setting, settings_values as _settings
from vramplan.export_document import ExportDocument
from vramplan.fit import Fit, Limit
from vramplan.gpus import GpuCurve
from vramplan.front import Point
from vramplan.growth import Grown
from vramplan.hardware import Needed, grid
from vramplan.importing.imported import Imported
from vramplan.importing.model import Left
from vramplan.importing.problems import ImportProblem
from vramplan.lengths_document import LengthsDocument
from vramplan.ledger import Band, Estimate, Frame, Moment, Term
from vramplan.link import to_query
from vramplan.make_fit import MadeToFit, Offer
from vramplan.make_fit_report import offer_row, turn_rows
from vramplan.measure import needs
from vramplan.measured_run import against
from vramplan.measured_run.failure import Candidate, failure, same
from vramplan.measured_run.reading import Reading
from vramplan.measured_run.record import Record
from vramplan.pins_document import PinsDocument
from vramplan.placement import Placement
from vramplan.questions import answered
from vramplan.settings import Settings
from vramplan.sweep import Sweep
from vramplan.timeline import Timeline
from vramplan.words import cost_text


class ParametersDocument(Document):
    """Parameter counts of the model."""

    total: int
    trainable: int


class TermDocument(Document):
    """One row of the ledger."""

    name: str
    bytes: Bytes


class BandDocument(Document):
    """The least and the most that is to be expected."""

    low: Bytes
    high: Bytes

    @classmethod
    def of(cls, band: Band | None) -> Self | None:
        """The document of a band."""
        return band and cls(low=band.low, high=band.high)


class TensorDocument(Document):
    """Tensors that are alive at a moment."""

    term: str
    name: str
    shape: str = Field(description="B, S: micro-batch and sequence length")
    dtype: str
    count: int
    bytes: Bytes
    why: str

    @classmethod
    def list_of(cls, moment: Moment) -> list[Self]:
        """The documents of a moment's tensors."""
        return [
            cls(term=term, name=each.name, shape=each.shape, dtype=each.dtype, count=each.count, bytes=each.bytes, why=each.why)
            for term, holdings in moment.inspect().items()
            for each in holdings
        ]


class MomentDocument(Document):
    """One moment of a training step, by term."""

    name: str
    bytes: Bytes
    terms: list[TermDocument]

    @classmethod
    def of(cls, moment: Moment) -> Self:
        """The document of a moment."""
        return cls(name=moment.name, bytes=moment.bytes, terms=_terms(moment.terms))


def _terms(terms: tuple[Term, ...]) -> list[TermDocument]:
    return [TermDocument(name=term.name, bytes=term.bytes) for term in terms]


class EstimateDocument(Document):
    """The estimated peak of one run, by term, against its budget."""

    accounting: str
    settings: dict[str, Setting]
    parameters: ParametersDocument
    terms: list[TermDocument]
    peak_bytes: Bytes
    budget_bytes: Bytes
    context_bytes: Bytes = Field(description="CUDA context, taken from the budget; 0 where a term counts it")
    headroom_bytes: int = Field(description="Budget less context less peak in bytes; negative is a shortfall")
    verdict: str = Field(description="yes, likely, unlikely or no")
    fits: bool = Field(description="Whether the verdict is yes or likely")
    reserved_bytes: BandDocument | None = Field(description="What PyTorch's allocator is expected to hold; null where terms count it")
    process_bytes: BandDocument | None = Field(description="What nvidia-smi is expected to show; null where terms count it")
    moments: list[MomentDocument] = Field(description="Every moment of the step; terms and peak are those of the largest")
    tensors: list[TensorDocument] = Field(description="What is alive at the largest moment, as far as the accounting knows it")
    host: list[TermDocument] = Field(description="Host memory per GPU; host_loading is there only while the model is loaded")

    @classmethod
    def of(cls, estimate: Estimate) -> Self:
        """The document of an estimate."""
        return cls(
            accounting=estimate.accounting,
            settings=_settings(estimate.settings),
            parameters=ParametersDocument(
                total=estimate.parameters.total, trainable=estimate.parameters.trainable
            ),
            terms=_terms(estimate.terms),
            peak_bytes=estimate.peak_bytes,
            budget_bytes=estimate.budget_bytes,
            context_bytes=estimate.context_bytes,
            headroom_bytes=estimate.headroom_bytes,
            verdict=estimate.verdict,
            fits=estimate.fits,
            reserved_bytes=BandDocument.of(estimate.reserved),
            process_bytes=BandDocument.of(estimate.process),
            moments=[MomentDocument.of(moment) for moment in estimate.moments],
            tensors=TensorDocument.list_of(estimate.moment),
            host=_terms(estimate.host),
        )


class LimitDocument(Document):
    """The largest value that fits; null when nothing does."""

    value: int | None
    at_cap: bool

    @classmethod
    def of(cls, limit: Limit) -> Self:
        """The document of a search result."""
        return cls(value=limit.value, at_cap=limit.at_cap)


class AlternativeDocument(Document):
    """One changed setting and what it does to the peak."""

    change: dict[str, Setting]
    peak_bytes: Bytes
    difference_bytes: int = Field(description="Changed peak less current peak in bytes; negative is a saving")
    fits: bool
    cost: str = Field(description="What a saving costs in quality, time or hardware, in words")


class SmallestGpuDocument(Document):
    """The smallest GPU class that holds the run."""

    gpu: int = Field(description="Nominal capacity in GiB, as the setting gpu takes it")
    budget_bytes: Bytes
    headroom_bytes: Bytes


class FitDocument(Document):
    """What fits around one run."""

    largest_micro_batch: LimitDocument
    longest_sequence: LimitDocument
    alternatives: list[AlternativeDocument]
    smallest_gpu: SmallestGpuDocument | None
    fewest_gpus: dict[str, int | None] = Field(description="Fewest GPUs per copy by kind of sharding; null where no number is enough")

    @classmethod
    def of(cls, found: Fit) -> Self:
        """The document of the answers."""
        smallest = found.smallest_gpu
        return cls(
            largest_micro_batch=LimitDocument.of(found.largest_micro_batch),
            longest_sequence=LimitDocument.of(found.longest_sequence),
            alternatives=[
                AlternativeDocument(
                    change=each.change,
                    peak_bytes=each.peak_bytes,
                    difference_bytes=each.difference_bytes,
                    fits=each.fits,
                    cost=cost_text(each.change) if each.difference_bytes < 0 else "",
                )
                for each in found.alternatives
            ],
            smallest_gpu=smallest
            and SmallestGpuDocument(
                gpu=smallest.gpu.capacity_gib,
                budget_bytes=smallest.gpu.budget_bytes,
                headroom_bytes=smallest.headroom_bytes,
            ),
            fewest_gpus=found.fewest_gpus,
        )


class OfferDocument(Document):
    """A set of changes with which a run fits."""

    changes: list[dict[str, Setting]] = Field(description="In the order they are applied; some settings go together, as accumulation with the micro-batch")
    quality_cost: int = Field(description="0 for nothing, the more the dearer")
    speed_cost: int = Field(description="0 for nothing, the more the dearer")
    cost: str = Field(description="What the changes cost in quality, time or hardware, in words")
    peak_bytes: Bytes
    headroom_bytes: int
    verdict: Literal["yes", "likely"]
    query: str = Field(description="Query string that opens the changed run")

    @classmethod
    def of(cls, offer: Offer) -> Self:
        """The document of a set."""
        row = offer_row(offer)
        return cls(
            changes=[step.change for step in offer.steps], quality_cost=offer.quality, speed_cost=offer.speed, cost="; ".join(row.costs),
            peak_bytes=offer.peak_bytes, headroom_bytes=offer.headroom_bytes, verdict=offer.verdict, query=row.query,
        )


class TurnDocument(Document):
    """Something else than changes that makes a run fit."""

    label: str
    text: str
    query: str


class LargerDocument(Document):
    """A larger run."""

    setting: str
    value: int
    offer: OfferDocument


class FrontDocument(Document):
    """A run that no other beats in peak, effective batch and sequence length together."""

    effective_batch: int
    sequence_length: int
    peak_bytes: Bytes
    changes: list[dict[str, Setting]] = Field(description="Besides those of the batch")
    query: str

    @classmethod
    def of(cls, point: Point) -> Self:
        """The document of a run."""
        batch, length, _ = point.wants
        changes = [step.change for step in point.steps]
        return cls(effective_batch=batch, sequence_length=length, peak_bytes=point.peak_bytes, changes=changes, query=to_query(point.settings))


class MadeToFitDocument(Document):
    """Every smallest set of up to three changes that makes a run fit, cheapest first; where none does, what else would."""

    settings: dict[str, Setting] = Field(description="The run with what was required of it")
    kept: list[str]
    at_least: dict[str, int]
    peak_bytes: Bytes
    fits: bool = Field(description="Whether the run fits without changes")
    offers: list[OfferDocument]
    otherwise: list[TurnDocument]
    larger: list[LargerDocument] = Field(description="Where the run fits: larger ones, each with the cheapest changes that make room for it")
    front: list[FrontDocument] = Field(description="Peak against effective batch and sequence length, as the run is and with the cheapest sets of changes")
    refused: dict[str, str] = Field(description="Settings whose changes cannot be counted for this run, and why")
    sets: int = Field(description="Sets of changes that there are")
    counted: int = Field(description="Of how many the peak was worked out; the others were ruled out")

    @classmethod
    def of(cls, answer: tuple[MadeToFit, tuple[Grown, ...], tuple[Point, ...]]) -> Self:
        """The document of the answer, of what larger runs take, and of the front."""
        made, grown, points = answer
        return cls(
            settings=_settings(made.run.settings),
            kept=sorted(made.wanted.keep),
            at_least=dict(made.wanted.at_least),
            peak_bytes=made.run.peak_bytes,
            fits=made.run.fits,
            offers=[OfferDocument.of(offer) for offer in made.offers],
            otherwise=[TurnDocument(label=row.label, text=row.text, query=row.query) for row in turn_rows(made)],
            larger=[LargerDocument(setting=each.name, value=each.value, offer=OfferDocument.of(each.offer)) for each in grown],
            front=[FrontDocument.of(point) for point in points],
            refused=made.refused,
            sets=made.sets,
            counted=made.counted,
        )


class PointDocument(Document):
    """One point of the sequence curve."""

    sequence_length: int
    peak_bytes: Bytes
    fits: bool


class CurveDocument(Document):
    """Peak against sequence length."""

    settings: dict[str, Setting]
    budget_bytes: Bytes
    points: list[PointDocument]

    @classmethod
    def of(cls, curve: Curve) -> Self:
        """The document of a curve."""
        return cls(
            settings=_settings(curve.settings),
            budget_bytes=curve.settings.budget_bytes,
            points=[
                PointDocument(sequence_length=each.sequence_length, peak_bytes=each.peak_bytes, fits=each.fits)
                for each in curve.points
            ],
        )


class GpuPointDocument(Document):
    """One number of GPUs that divide a copy's states."""

    gpus: int
    peak_bytes: Bytes
    fits: bool


class GpuCurveDocument(Document):
    """Peak per GPU against the number of GPUs, under one kind of sharding."""

    sharding: str
    points: list[GpuPointDocument]
    fewest: int | None = Field(description="Fewest GPUs per copy that fit; null where no number of them does")
    enough: int = Field(description="Fewest GPUs beyond which more save less than 5 % of the peak")
    left: list[TermDocument] = Field(description="What each GPU still holds with the most of them, largest first")

    @classmethod
    def of(cls, drawn: GpuCurve) -> Self:
        """The document of one kind of sharding."""
        points = [GpuPointDocument(gpus=each.gpus, peak_bytes=each.peak_bytes, fits=each.fits) for each in drawn.points]
        return cls(sharding=drawn.sharding, points=points, fewest=drawn.fewest, enough=drawn.enough, left=_terms(drawn.left))


class NeededDocument(Document):
    """What one run needs."""

    under: str = Field(description="Training method, or type of the weights while the model answers")
    sequence_length: int
    peak_bytes: Bytes = Field(description="Peak if it ran on one GPU")
    kind: Literal["consumer", "datacenter", "several", "nodes", "none"]
    gib: int | None = Field(description="Smallest class of GPU, in GiB")
    gpus: int | None = Field(description="How many of them; null where no number is enough")
    sharding: str

    @classmethod
    def of(cls, found: Needed) -> Self:
        """The document of one run."""
        about = {name: getattr(found, name) for name in ("peak_bytes", "kind", "gib", "gpus", "sharding")}
        return cls(under=getattr(found.settings, compared(found.settings)), sequence_length=found.settings.sequence_length, **about)


class ClaimDocument(Document):
    """A rule of thumb in GB (10^9 bytes), and the peak computed for the run it is about."""

    about: str
    low_gb: int
    high_gb: int
    peak_bytes: Bytes
    place: Literal["below", "within", "above"]
    source: str

    @classmethod
    def of(cls, each: Held) -> Self:
        """The document of one rule."""
        claim = each.claim
        return cls(about=claim.what, low_gb=claim.low, high_gb=claim.high, peak_bytes=each.estimate.peak_bytes, place=each.place, source=claim.source)


class HardwareDocument(Document):
    """The smallest hardware for every method and several sequence lengths, everything else held; and rules of thumb."""

    settings: dict[str, Setting]
    needs: list[NeededDocument]
    rules_of_thumb: list[ClaimDocument]

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The document of a run."""
        return cls(
            settings=_settings(settings),
            needs=[NeededDocument.of(cell) for row in grid(settings) for cell in row if cell],
            rules_of_thumb=[ClaimDocument.of(each) for each in held(settings.accounting)],
        )


class QuestionDocument(Document):
    """A question, the claim people meet, and the answer with the figures of a run."""

    question: str
    claim: str
    answer: str


class QuestionsDocument(Document):
    """Questions people ask about memory, answered with the figures of a run."""

    settings: dict[str, Setting]
    questions: list[QuestionDocument]

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The document of a run."""
        told = [QuestionDocument(question=each.question, claim=each.claim, answer=each.answer) for each in answered(settings)]
        return cls(settings=_settings(settings), questions=told)


class GpusDocument(Document):
    """Peak per GPU against the number of GPUs, under every kind of sharding that runs with the settings."""

    settings: dict[str, Setting]
    budget_bytes: Bytes
    kinds: list[GpuCurveDocument]

    @classmethod
    def of(cls, content: tuple[Settings, tuple[GpuCurve, ...]]) -> Self:
        """The document of a run and its curves."""
        settings, drawn = content
        return cls(settings=_settings(settings), budget_bytes=settings.budget_bytes, kinds=[GpuCurveDocument.of(each) for each in drawn])


class CountedDocument(Document):
    """The run by one accounting: its peak and what makes the difference from the chosen one, or why there is no number."""

    accounting: str
    peak_bytes: Bytes | None
    difference_bytes: int | None = Field(description="Peak less that of the chosen accounting; null where there is no number")
    fits: bool | None
    why: str = Field(description="Terms that make the difference, or what keeps the accounting from counting the run")


class AccountingsDocument(Document):
    """The same run by several accountings."""

    settings: dict[str, Setting]
    accountings: list[CountedDocument]

    @classmethod
    def of(cls, content: tuple[Estimate, tuple[str, ...]]) -> Self:
        """The document of a run and the names of accountings."""
        current, names = content
        return cls(settings=_settings(current.settings), accountings=[_counted(current, name) for name in names])


def _counted(current: Estimate, name: str) -> CountedDocument:
    other = counted_by(current.settings, name)
    if not isinstance(other, Estimate):
        return CountedDocument(accounting=name, peak_bytes=None, difference_bytes=None, fits=None, why=other.message)
    why = "" if name == current.accounting else accounts.terms_between(current, other)
    difference = other.peak_bytes - current.peak_bytes
    return CountedDocument(accounting=name, peak_bytes=other.peak_bytes, difference_bytes=difference, fits=other.fits, why=why)


class CompareDocument(Document):
    """The same run under each training method."""

    methods: list[EstimateDocument]

    @classmethod
    def of(cls, estimates: tuple[Estimate, ...]) -> Self:
        """The document of a comparison."""
        return cls(methods=[EstimateDocument.of(each) for each in estimates])


class LinkDocument(Document):
    """The query string that opens a run in the page."""

    query: str
    settings: dict[str, Setting]

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The document of a link."""
        return cls(query=to_query(settings), settings=_settings(settings))


class ReadDocument(Document):
    """One value a file gives."""

    key: str
    setting: str
    value: Setting | list[Setting] | None
    line: int | None = Field(description="Where it stands, from 1; null where that is not known")


class AssumedDocument(Document):
    """One value a file leaves out."""

    setting: str
    value: Setting | list[Setting] | None
    why: str
    source: str | None = Field(description="Where a training tool has it so")


class LeftDocument(Document):
    """Something in a file that is not used."""

    key: str
    why: str
    line: int | None = Field(description="Where it stands, from 1; null where that is not known")
    bound: str | None = Field(description="What the estimate then is of the run: upper (the most it takes), lower, or none of both; null if it is as good")


class CountsDocument(Document):
    """Parameter counts of what a file describes."""

    total: int
    active: int = Field(description="Parameters that one token goes through")
    trainable: int = Field(description="Parameters that the run or the adapter trains")


class ModulesDocument(Document):
    """The modules an adapter trains."""

    matched: list[str]
    not_matched: list[str] = Field(description="Linear maps of the model that stay as they are")
    unknown: list[str] = Field(description="Targets that no module of the model has")


class ImportDocument(Document):
    """What a file comes to: a config.json, an adapter_config.json, saved settings, or a training file."""

    kind: str = Field(description="model, adapter, settings or training")
    label: str
    settings: dict[str, Setting] = Field(description="The settings the file gives; empty if no accounting has terms for the model")
    parameters: CountsDocument
    stored_bytes: Bytes | None = Field(description="All weights as the file says they are stored; null where that is not known")
    read: list[ReadDocument]
    assumed: list[AssumedDocument]
    ignored: list[LeftDocument]
    unsupported: list[LeftDocument]
    repaired: list[str]
    modules: ModulesDocument | None = Field(description="Of an adapter")

    @classmethod
    def of(cls, imported: Imported) -> Self:
        """The document of something that was read."""
        found = imported.adapter
        return cls(
            kind=imported.kind,
            label=imported.label,
            settings={name: value for name, value in _settings(imported.settings).items() if name in imported.texts} if imported.settings else {},
            parameters=CountsDocument(total=imported.total, active=imported.active, trainable=imported.trainable),
            stored_bytes=imported.stored_bytes,
            read=[ReadDocument(key=each.key, setting=each.setting, value=_plain(each.value), line=each.line or None) for each in imported.read],
            assumed=[AssumedDocument(setting=each.setting, value=_plain(each.value), why=each.why, source=each.source or None) for each in imported.assumed],
            ignored=_left(imported.ignored),
            unsupported=_left(imported.unsupported),
            repaired=list(imported.repaired),
            modules=found and ModulesDocument(matched=list(found.matched), not_matched=list(found.unmatched), unknown=list(found.unknown)),
        )


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _left(parts: tuple[Left, ...]) -> list[LeftDocument]:
    return [LeftDocument(key=each.key, why=each.why, line=each.line or None, bound=each.bound or None) for each in parts]


class MeasureDocument(Document):
    """A script that measures a run."""

    query: str = Field(description="The run it measures")
    needs: list[str] = Field(description="Packages it imports")
    script: str

    @classmethod
    def of(cls, content: tuple[Settings, str]) -> Self:
        """The document of a run and its script."""
        settings, script = content
        return cls(query=to_query(settings), needs=list(needs(settings)), script=script)


class ComparedDocument(Document):
    """One measured peak against its estimate."""

    kind: str = Field(description="allocated, reserved or process")
    measured_bytes: Bytes
    low_bytes: Bytes = Field(description="The least that was estimated; the estimate itself for allocated memory")
    high_bytes: Bytes
    difference_bytes: int = Field(description="Measured less the nearest of the two; 0 between them")


class FailedDocument(Document):
    """What the message of a run that ran out of memory says, as far as it does."""

    tried_bytes: Bytes
    held_bytes: Bytes | None = Field(description="Allocated when it failed")
    free_bytes: Bytes | None
    total_bytes: Bytes | None
    reserved_bytes: Bytes | None
    process_bytes: Bytes | None
    needed_bytes: Bytes | None = Field(description="Allocated at least, had it not failed")


class CandidateDocument(Document):
    """A tensor of the size that a failed run asked for."""

    moment: str
    name: str
    shape: str
    dtype: str
    bytes: Bytes
    beside_bytes: Bytes | None = Field(description="What the estimate has alive besides it then")
    as_measured: bool = Field(description="Whether that is what the run had allocated")


class ExplanationDocument(Document):
    """Other settings, and how far what was measured is from them."""

    change: str
    also: str = Field(description="Changes with the same peak")
    peak_gib: str
    difference: str
    likely: bool
    query: str = Field(description="The link that takes them over")


class BlockDocument(Document):
    """Blocks of a snapshot that were alive at its peak and made in one place."""

    bytes: Bytes
    count: int
    place: str


class MeasuredDocument(Document):
    """What was measured of one run, against its estimate."""

    source: str = Field(description="What was read; empty where the link has it")
    notes: list[str]
    query: str = Field(description="The link with the measurement")
    same_settings: bool = Field(description="Whether these settings were measured, as far as is known")
    peak_bytes: Bytes
    compared: list[ComparedDocument]
    failed: FailedDocument | None
    headroom_bytes: int
    adjusted_headroom_bytes: int | None = Field(description="With the difference of the measured run; null where there is none")
    sentences: list[str]
    candidates: list[CandidateDocument]
    explanations: list[ExplanationDocument]
    blocks: list[BlockDocument]

    @classmethod
    def of(cls, content: tuple[Estimate, Reading | None]) -> Self:
        """The document of an estimate with a measurement, and of what was read."""
        estimate, reading = content
        record, told, why = against.record_of(estimate.settings), own_run.own_run(estimate), own_run.explained(estimate)
        found = failure(estimate, record) if not told.other else None
        return cls(
            source=reading.source if reading else "",
            notes=list(reading.told) if reading else [],
            query=to_query(estimate.settings),
            same_settings=not told.other,
            peak_bytes=estimate.peak_bytes,
            compared=[_compared(each) for each in against.compared(estimate, record)],
            failed=_failed(record) if record.failed else None,
            headroom_bytes=estimate.headroom_bytes,
            adjusted_headroom_bytes=against.adjusted_headroom(estimate),
            sentences=[told.settings, *told.sentences, *(why.sentences if why else ())],
            candidates=[_candidate(each, record) for each in found.candidates] if found else [],
            explanations=[
                ExplanationDocument(change=each.label, also=each.also, peak_gib=each.peak, difference=each.difference, likely=each.likely, query=each.query)
                for each in (why.choices if why else ())
            ],
            blocks=[BlockDocument(bytes=each.bytes, count=each.count, place=each.place) for each in (reading.blocks if reading else ())],
        )


def _compared(each: against.Compared) -> ComparedDocument:
    return ComparedDocument(kind=each.kind, measured_bytes=each.measured, low_bytes=each.low, high_bytes=each.high, difference_bytes=each.difference)


def _failed(record: Record) -> FailedDocument:
    return FailedDocument(
        tried_bytes=record.tried, held_bytes=record.held, free_bytes=record.free, total_bytes=record.total, reserved_bytes=record.pool,
        process_bytes=record.taken, needed_bytes=against.least_needed(record),
    )


def _candidate(each: Candidate, record: Record) -> CandidateDocument:
    tensor = each.tensor
    return CandidateDocument(
        moment=each.moment, name=tensor.name, shape=tensor.shape, dtype=tensor.dtype, bytes=tensor.bytes, beside_bytes=each.beside_bytes,
        as_measured=same(each, record),
    )


class ErrorDocument(Document):
    """Why a file cannot be read."""

    code: str
    message: str
    hint: str


class ProblemDocument(Document):
    """The answer in place of a result."""

    error: ErrorDocument

    @classmethod
    def of(cls, problem: ImportProblem) -> Self:
        """The document of a file that cannot be read."""
        return cls(error=ErrorDocument(code=problem.code, message=problem.message, hint=problem.hint))


class FrameDocument(Document):
    """One point in time of the run."""

    part: str = Field(description="load, a micro-batch or an optimizer step")
    name: str
    moment: str = Field(description="The moment of the estimate it is an instant of, or a name of its own")
    bytes: Bytes
    terms: dict[str, Bytes] = Field(description="Bytes by term; those that hold nothing are left out")

    @classmethod
    def of(cls, frame: Frame) -> Self:
        """The document of a frame."""
        terms = {term.name: term.bytes for term in frame.terms}
        return cls(part=frame.part, name=frame.name, moment=frame.moment, bytes=frame.bytes, terms=terms)


class AgainstDocument(Document):
    """A second run, laid over the first."""

    settings: dict[str, Setting]
    peak_bytes: Bytes
    difference_bytes: int = Field(description="Its peak less the peak of the first run")
    frames: list[FrameDocument]


class TimelineDocument(Document):
    """A run in the order of time, from loading to the end of its second step."""

    settings: dict[str, Setting]
    peak_bytes: Bytes
    usable_bytes: Bytes = Field(description="Budget less CUDA context")
    budget_bytes: Bytes
    peak_frame: int = Field(description="Place of the largest frame in frames, counted from 1")
    frames: list[FrameDocument]
    left_out: list[str] = Field(description="What repeats and has no frames of its own, in sentences")
    shown_frame: int = Field(description="Place of the frame whose tensors are listed, counted from 1")
    tensors: list[TensorDocument] = Field(description="What is alive at that frame, as far as the accounting knows it")
    against: AgainstDocument | None = Field(description="The second run, where one is given")

    @classmethod
    def of(cls, shown: Timeline, at: int | None = None, over: Timeline | None = None) -> Self:
        """The document of a timeline. at: the frame whose tensors are listed, counted from 0; the largest if none is given."""
        one, at = shown.estimate, shown.peak_index if at is None else at
        return cls(
            settings=_settings(one.settings),
            peak_bytes=one.peak_bytes,
            usable_bytes=one.usable_bytes,
            budget_bytes=one.budget_bytes,
            peak_frame=shown.peak_index + 1,
            frames=[FrameDocument.of(frame) for frame in shown.frames],
            left_out=list(chronicle.left_out(shown)),
            shown_frame=at + 1,
            tensors=TensorDocument.list_of(shown.frames[at]),
            against=over
            and AgainstDocument(
                settings=_settings(over.estimate.settings),
                peak_bytes=over.estimate.peak_bytes,
                difference_bytes=over.estimate.peak_bytes - one.peak_bytes,
                frames=[FrameDocument.of(frame) for frame in over.frames],
            ),
        )


class SweepPointDocument(Document):
    """One point of a grid: its values as they are typed, and what it comes to, or which setting keeps it from being counted."""

    values: dict[str, str]
    peak_bytes: Bytes | None = None
    budget_bytes: Bytes | None = None
    headroom_bytes: int | None = None
    fits: bool | None = None
    verdict: str | None = None
    field: str | None = None
    message: str | None = None


class SweepDocument(Document):
    """A run over a grid of settings."""

    settings: dict[str, str] = Field(description="What was given and has one value, as it is typed; everything else is a default")
    swept: dict[str, list[str]] = Field(description="The values of every setting that has several; those of the last one vary fastest")
    points: list[SweepPointDocument]

    @classmethod
    def of(cls, swept: Sweep) -> Self:
        """The document of a grid."""
        points = []
        for point in swept.points():
            values = dict(zip(swept.names, point.values, strict=True))
            if point.problem:
                points.append(SweepPointDocument(values=values, field=point.problem.field, message=point.problem.message))
            else:
                known = {"peak_bytes": point.peak_bytes, "budget_bytes": point.budget_bytes, "headroom_bytes": point.headroom_bytes}
                points.append(SweepPointDocument(values=values, **known, fits=point.fits, verdict=point.verdict))
        return cls(settings=swept.held, swept={name: list(values) for name, values in swept.axes.items()}, points=points)


class CardsDocument(Document):
    """Cards that were considered together."""

    cards: list[int]
    usable_bytes: Bytes
    enough: bool


class PlaceDocument(Document):
    """Which cards a run is put on by Unsloth Studio's rule, and what was tried."""

    needed_bytes: Bytes
    cards: list[int]
    usable_bytes: Bytes
    fits: bool
    device_map: str
    named: bool = Field(description="Whether the cards were named, instead of chosen by their free memory")
    tried: list[CardsDocument]

    @classmethod
    def of(cls, placement: Placement) -> Self:
        """The document of a placement."""
        tried = [CardsDocument(cards=[card.index for card in each.cards], usable_bytes=int(each.usable_bytes), enough=each.enough) for each in placement.tried]
        return cls(
            needed_bytes=placement.needed_bytes, cards=tried[-1].cards, usable_bytes=tried[-1].usable_bytes, fits=placement.fits,
            device_map=placement.device_map, named=placement.named, tried=tried,
        )


DOCUMENTS: dict[str, type[Document]] = {
    "estimate": EstimateDocument,
    "fit": FitDocument,
    "make-it-fit": MadeToFitDocument,
    "curve": CurveDocument,
    "gpus": GpusDocument,
    "hardware": HardwareDocument,
    "questions": QuestionsDocument,
    "place": PlaceDocument,
    "compare": CompareDocument,
    "accountings": AccountingsDocument,
    "pins": PinsDocument,
    "timeline": TimelineDocument,
    "sweep": SweepDocument,
    "lengths": LengthsDocument,
    "link": LinkDocument,
    "measure": MeasureDocument,
    "measured": MeasuredDocument,
    "import": ImportDocument,
    "export": ExportDocument,
    "badge": BadgeDocument,
}
"""Every document by the command that prints it."""
