"""Which part of the page shows what: every panel's tree, from one estimate. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from vramplan import accounts, beside, chart, chronicle, fitmap, frontchart, gpus, make_fit_report, mapchart, needs, report, scene, studio, timechart, words
from vramplan.chart import WIDE, Chart, Frame
from vramplan.compare import compare, counted_or_why
from vramplan.curve import batch_curve, curve
from vramplan.errors import FieldError, NotExpressible
from vramplan.fit import Fit, fit, largest_micro_batch
from vramplan.front import Point, front as front_of
from vramplan.gpus import GpuCurve
from vramplan.growth import Grown, growth
from vramplan.kinds import with_sharding
from vramplan.ledger import Estimate
from vramplan.link import to_query
from vramplan.make_fit import MadeToFit, Offer, make_fit as search
from vramplan.questions import answered
from vramplan.settings import Settings
from vramplan.svg import svg
from vramplan.timeline import Timeline, timeline as timeline_of
from pyscript import answer
from pyscript.tree import Element, h
from pyscript.views import accounts as accounts_view
from pyscript.views import beside as beside_view
from pyscript.views import components as components_view
from pyscript.views import curve as curve_view
from pyscript.views import fitmap as fitmap_view
from pyscript.views import fits as fits_view
from pyscript.views import gpus as gpus_view
from pyscript.views import hardware as hardware_view
from pyscript.views import headline as headline_view
from pyscript.views import make_fit as make_fit_view
from pyscript.views import moments as moments_view
from pyscript.views import printed as printed_view
from pyscript.views import problems as problems_view
from pyscript.views import studio as studio_view
from pyscript.views import questions as questions_view
from pyscript.views import timeline as timeline_view


@dataclass(frozen=True)
class Results:
    """An estimate with everything that is searched and drawn around it."""

    estimate: Estimate
    found: Fit
    chart: Chart


STEP = "step"
"""The accounting that rules of thumb are held against."""

KEPT = "kept"
"""The name of the run that was kept, among those that can be laid over another."""

WIDE_LAYERS, NARROW_LAYERS = 16, 10
"""Layers of each pass that a column of results and a phone have room for."""


@dataclass(frozen=True)
class Films:
    """A run over time, the one laid over it and its name, the runs that can be laid over it by name, and the drawing."""

    shown: Timeline
    over: Timeline | None
    name: str
    runs: dict[str, Settings]
    drawn: scene.Scene


def results(estimate: Estimate, frame: Frame = WIDE) -> Results:
    """Search and lay out everything around an estimate; the chart in a frame of the wanted size."""
    found = fit(estimate.settings)
    return Results(estimate, found, chart.layout(estimate, longest_fitting=found.longest_sequence.value, frame=frame))


def uncounted(settings: Settings, shown: FieldError) -> Element:
    """Why the chosen accounting has no answer."""
    return headline_view.uncounted(report.run_text(settings), accounts.uncounted_text(settings), problems_view.link(shown))


def accountings(settings: Settings, known: Estimate | NotExpressible) -> Element:
    """The run by every accounting; `known` is what the chosen one makes of it."""
    return headline_view.accountings(accounts.counted_by_each(settings, {settings.accounting: known}))


def about(estimate: Estimate) -> Element:
    """What the number is, and counts about the run."""
    return headline_view.about(report.headline(estimate), accounts.assumed_text(estimate), report.facts(estimate))


def moments(estimate: Estimate) -> Element | None:
    """The moments of the step; None for an accounting that knows only one."""
    rows = accounts.moments(estimate)
    if not rows:
        return None
    bars = tuple(chart.stack(row.amounts, budget=estimate.usable_bytes, longest=max(estimate.peak_bytes, estimate.budget_bytes)) for row in rows)
    return moments_view.moments(rows, bars)


def films(estimate: Estimate, *, kept: Settings | None = None, over: str = "", narrow: bool = False) -> Films | None:
    """The run over time, and the one that is laid over it; None for an accounting that knows one moment only.

    over: a training method, KEPT for the run that was kept, or nothing.
    """
    if not accounts.moments(estimate):
        return None
    layers, frame = (NARROW_LAYERS, timechart.NARROW) if narrow else (WIDE_LAYERS, timechart.WIDE)
    shown = timeline_of(estimate.settings, most_layers=layers)
    runs = {each.settings.method: each.settings for each in compare(estimate.settings) if each.settings.method != estimate.settings.method}
    if kept is not None and isinstance(counted_or_why(kept), Estimate) and kept.accounting == estimate.settings.accounting:
        runs[KEPT] = kept
    laid_over = timeline_of(runs[over], most_layers=layers) if over in runs else None
    return Films(shown, laid_over, over if laid_over else "", runs, scene.scene(shown, over=laid_over, frame=frame))


def timeline(made: Films, place: int) -> Element:
    """The run over time, read at one frame."""
    told = (chronicle.sentence(made.shown), *((chronicle.against(made.shown, made.over),) if made.over else ()))
    return timeline_view.timeline(made.drawn, place, chronicle.reading(made.shown, place), chronicle.legend(made.shown, place), told)


def lay_over(made: Films, *, live: bool = True) -> Element:
    """Which runs can be laid over this one."""
    offered = tuple(
        timeline_view.Choice(name, "The run kept" if name == KEPT else words.value_text("method", name), name == made.name) for name in made.runs
    )
    kept = f"Kept: {report.run_text(made.runs[KEPT])}." if KEPT in made.runs else ""
    return timeline_view.choices(offered, kept, live=live)


def alive(made: Films, place: int) -> Element:
    """What is alive at one frame."""
    return timeline_view.alive(chronicle.alive(made.shown, place), chronicle.reading(made.shown, place))


def timeline_remarks(made: Films) -> Element:
    """What the drawing leaves out."""
    return timeline_view.remarks(chronicle.left_out(made.shown))


def for_files(made: Films) -> tuple[Timeline, Timeline | None]:
    """The run over time and the one laid over it, with as many layers as a file has room for."""
    return timeline_of(made.shown.estimate.settings), timeline_of(made.over.estimate.settings) if made.over else None


def timeline_file(made: Films) -> str:
    """The drawing as an SVG file."""
    shown, over = for_files(made)
    return svg(scene.for_a_file(shown, over=over), shown, over)


def assumptions(estimate: Estimate) -> Element | None:
    """What was assumed; None for an accounting that assumes nothing of the trainer."""
    told = accounts.assumptions(estimate)
    return accounts_view.assumptions(told, accounts.unchecked_text(estimate)) if told else None


def others(estimate: Estimate) -> Element:
    """How every accounting counts the run."""
    return accounts_view.others(accounts.others(estimate))


def differences(estimate: Estimate) -> Element | None:
    """How the accountings differ; None where fewer than two of them, or not the training step, can count the run."""
    told = accounts.differences(estimate)
    return accounts_view.differences(told) if told else None


def own_names(settings: Settings) -> Element:
    """The run as Unsloth Studio's own inputs have it."""
    return studio_view.own_names(studio.names(settings))


def recorded_studio() -> list[Element]:
    """What Unsloth Studio's document records, beside what its formulas come to."""
    return studio_view.recorded(studio.table_rows(), studio.TABLE_SENTENCE, studio.validation_rows(), studio.VALIDATION_SENTENCE)


def components(estimate: Estimate) -> Element:
    """What the memory holds."""
    return components_view.components(report.components(estimate), report.components_total(estimate))


def methods(estimate: Estimate) -> Element:
    """Every training method."""
    caption, first = "Every training method with every other setting held", "Method"
    if estimate.settings.serves:
        caption, first = "Every type of weights with every other setting held", "Weights"
    return fits_view.changes(report.methods(estimate), caption, first)


def maxima(shown: Results) -> Element:
    """The searches."""
    answers = (*report.maxima(shown.estimate, shown.found), report.smallest_gpu(shown.estimate, shown.found))
    return fits_view.maxima(answers)


def alternatives(shown: Results) -> Element:
    """The single changes."""
    caption = "Runs that differ from this one in a single setting, the largest saving first, with what it costs"
    return fits_view.changes(report.alternatives(shown.estimate, shown.found), caption, "One change")


def hardware(estimate: Estimate) -> Element:
    """The smallest hardware for every method and several lengths."""
    return hardware_view.needs(*needs.need_rows(estimate.settings), needs.need_sentence(estimate.settings), needs.host_guidance(estimate))


def spans(estimate: Estimate) -> Element:
    """Every training method as a range."""
    return beside_view.spans(beside.span_rows(estimate.settings), beside.SPAN_SENTENCE)


def served(estimate: Estimate) -> Element:
    """The same model answering on the same GPU, or why it is not counted."""
    settings = estimate.settings
    try:
        rows = beside.served_rows(settings)
    except NotExpressible as reason:
        return h("p", reason.message)
    back = to_query(settings.varied(task="training")) if settings.serves else ""
    return beside_view.served(rows, beside.served_sentence(settings), back)


def batches(estimate: Estimate) -> Element:
    """The peak against the micro-batch."""
    found = largest_micro_batch(estimate.settings)
    points = batch_curve(estimate.settings, largest_fitting=found.value)
    drawn = chart.layout_batches(estimate, points, largest_fitting=found.value)
    return beside_view.batches(drawn, beside.batch_rows(estimate, points), beside.batch_sentence(estimate, found), report.line_label(estimate))


def questions(estimate: Estimate) -> Element:
    """Questions people ask, answered with the figures of the run."""
    return questions_view.questions(answered(estimate.settings))


def rules_of_thumb() -> Element:
    """Rules of thumb beside what the training step computes."""
    return hardware_view.claims(needs.claim_rows(STEP))


def links_between_gpus() -> list[Element]:
    """What GPUs have between them."""
    return hardware_view.links(needs.link_rows(), needs.LINKS_SENTENCE)


def opening_map(estimate: Estimate) -> tuple[Element, Element]:
    """The map of what fits around a run, and its table, made at once."""
    drawn = mapchart.layout(fitmap.fit_map(estimate.settings))
    return fit_map(drawn, estimate.settings, drawn.made.current), fit_map_table(drawn)


def fit_map(drawn: mapchart.MapChart, settings: Settings, at: tuple[int, int], *, live: bool = False) -> Element:
    """The map of what fits, read at one cell, which leads to `settings` with that batch."""
    cell = drawn.cell(*at)
    query = to_query(settings.varied(micro_batch=cell.micro_batch, sequence_length=cell.sequence_length))
    return fitmap_view.fit_map(drawn, at, report.map_reading(cell), report.map_sentence(drawn.made), query, report.map_legend(drawn), live=live)


def fit_map_table(drawn: mapchart.MapChart) -> Element:
    """The longest sequence that fits with every micro-batch."""
    return fitmap_view.longest_table(report.map_rows(drawn.made))


def make_fit(made: MadeToFit | None, offers: Iterable[Offer], grown: Iterable[Grown]) -> Element:
    """What makes the run fit, or how far it can grow, as far as it was found."""
    return make_fit_view.result(make_fit_report.told(made, offers, grown))


def opening_make_fit(estimate: Estimate) -> Element:
    """The same, at once."""
    made = search(estimate.settings)
    return make_fit(made, made.offers, growth(estimate.settings) if made.run.fits else ())


def front(estimate: Estimate, points: tuple[Point, ...], frame: Frame = WIDE) -> Element:
    """What peak buys which effective batch and length."""
    return make_fit_view.front(frontchart.layout(estimate, points, frame=frame), make_fit_report.front_table(points), report.line_label(estimate))


def opening_front(estimate: Estimate) -> Element:
    """The same, at once."""
    return front(estimate, front_of(estimate.settings, [each.offer for each in growth(estimate.settings)]))


def gpu_curve(estimate: Estimate) -> GpuCurve | None:
    """The peak against the number of GPUs, where the run divides its states or does not fit as it is; None where there is none to draw."""
    settings = estimate.settings
    if settings.serves or not with_sharding(settings.__dict__) or (estimate.fits and not settings.divides_states):
        return None
    try:
        return gpus.gpu_curve(estimate.settings, gpus.shown_sharding(estimate.settings))
    except NotExpressible:
        return None


def gpus_drawing(estimate: Estimate, drawn: GpuCurve, frame: Frame = WIDE) -> Element:
    """The peak against the number of GPUs."""
    laid_out = chart.layout_gpus(estimate, drawn, frame=frame)
    return gpus_view.gpus(laid_out, report.gpu_sentence(drawn), report.gpu_floor(drawn), report.gpu_traffic(drawn), report.line_label(estimate))


def gpus_table(estimate: Estimate, drawn: GpuCurve) -> Element:
    """Its numbers."""
    return gpus_view.gpus_table(report.gpu_rows(estimate, drawn))


def host(estimate: Estimate) -> Element | None:
    """What the machine's own memory holds; None where that is not counted."""
    rows = report.host(estimate)
    return gpus_view.host(rows, report.host_sentence(estimate)) if rows else None


def curve_drawing(shown: Results, chosen: int) -> Element:
    """The sequence curve, read at one sample."""
    estimate = shown.estimate
    reading = report.reading(shown.chart.samples[chosen].point)
    sentence = report.curve_sentence(estimate, shown.found)
    return curve_view.curve(shown.chart, sentence, report.line_label(estimate), chosen, reading)


def curve_table(shown: Results) -> Element:
    """The sequence curve's numbers, the crossing among them."""
    longest = shown.found.longest_sequence.value
    points = curve(shown.estimate.settings, also=[longest] if longest else []).points
    return curve_view.curve_table(report.curve_rows(shown.estimate, points, longest_fitting=longest))


def printed(estimate: Estimate, link: str = "") -> Element:
    """The run on one sheet."""
    found = fit(estimate.settings)
    made = printed_view.results(
        answer.headline(estimate), accountings(estimate.settings, estimate), components(estimate), moments(estimate),
        (*report.maxima(estimate, found), report.smallest_gpu(estimate, found)), report.alternatives(estimate, found))
    return printed_view.sheet(report.run_text(estimate.settings), report.settings_rows(estimate.settings), link, made)


def printed_reason(settings: Settings, link: str, reason: str) -> Element:
    """The settings on one sheet, with the sentence that says why there is no number."""
    return printed_view.sheet(report.run_text(settings), report.settings_rows(settings), link, h("p", reason))


SELDOM = {"hardware": hardware, "spans": spans, "served": served, "batches": batches, "questions": questions}
"""Parts that are worked out only where somebody sees them, by id of their region."""
