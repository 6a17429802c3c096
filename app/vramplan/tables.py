"""Reports as text for a terminal: aligned columns, nothing else."""

from collections.abc import Iterable

from vramplan import accounts, brought, make_fit_report, needs, own_run, placement_report, report, studio, words
from vramplan.accountings import ACCOUNTINGS
from vramplan.curve import Curve
from vramplan.evidence import Evidence, evidence, group_rows, summary, worst_rows
from vramplan.fields import BY_NAME
from vramplan.fit import Fit
from vramplan.gpus import GpuCurve
from vramplan.front import Point
from vramplan.growth import Grown
from vramplan.importing.imported import Imported
from vramplan.kinds import ExactDecimal, WholeNumber
from vramplan.ledger import Estimate
from vramplan.make_fit import MadeToFit
from vramplan.measured_run.reading import Reading
from vramplan.questions import answered
from vramplan.placement import Placement
from vramplan.settings import Settings
from vramplan.sweep import Point, Sweep
from vramplan.units import gib_text

BAR_WIDTH = 24
"""Characters of the longest bar of the component table."""

BAR = "█"

NOW = "← now"
"""Marks the row of the run as it is."""


def columns(rows: list[tuple[str, ...]], *, left: tuple[int, ...] = (0,)) -> str:
    """Rows as aligned columns, numbers to the right, the columns listed in `left` to the left."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "\n".join(f"  {line}".rstrip() for line in lines)


def headline(estimate: Estimate) -> str:
    """The answer in the first lines of every command."""
    told = report.headline(estimate)
    lines = (told.run, told.sentence, told.closeness, own_run.adjusted_text(estimate), told.counted, told.beside)
    return "\n".join(line for line in lines if line)


def estimate_table(estimate: Estimate) -> str:
    """Headline, the component table with bars, the moments and tensors, the other accountings, and parameter counts."""
    rows = [("Component", "GiB", "Share", "")]
    for row in report.components(estimate):
        rows.append((row.label, row.gib, row.share_text, bar(row.share)))
        rows += [(f"  {part.label}", part.gib, "", "") for part in row.parts]
    rows.append(("Peak per GPU", report.components_total(estimate), "", ""))
    facts = [(fact.label, fact.text, fact.exact) for fact in report.facts(estimate)]
    parts = (
        headline(estimate),
        columns(rows, left=(0, 3)),
        moments_table(estimate),
        tensors_table(estimate),
        accountings_table(estimate),
        host_table(estimate),
        assumptions_text(estimate),
        columns(facts, left=(0, 1, 2)),
    )
    return "\n\n".join(part for part in parts if part)


def host_table(estimate: Estimate) -> str:
    """What host memory holds for each GPU; empty where that is not counted."""
    rows = [(row.label, row.gib) for row in report.host(estimate)]
    return "\n".join((columns([("Host memory per GPU", "GiB"), *rows]), f"  {report.host_sentence(estimate)}")) if rows else ""


def gpus_table(estimate: Estimate, drawn: tuple[GpuCurve, ...]) -> str:
    """Headline, and for every kind of sharding the peak per GPU against their number, with what is never divided."""
    parts = [headline(estimate)]
    for each in drawn:
        label = words.value_text("sharding", each.sharding)
        rows = [(f"{label}: GPUs per copy", "Peak GiB per GPU", "Headroom", "", "")]
        rows += [
            (row.gpus, row.peak, row.headroom, "fits" if row.fits else "does not fit", _gpu_marks(row))
            for row in report.gpu_rows(estimate, each)
        ]
        parts.append("\n".join((columns(rows, left=(3, 4)), f"  {report.gpu_sentence(each)}", f"  {report.gpu_floor(each)}", f"  {report.gpu_traffic(each)}")))
    return "\n\n".join(parts if drawn else (*parts, "No kind of sharding runs with these settings."))


def questions_text(estimate: Estimate) -> str:
    """Headline, and every question with its claim and the answer."""
    told = (f"{each.question}\n  Claim: {each.claim}\n  {each.answer}" for each in answered(estimate.settings))
    return "\n\n".join((headline(estimate), *told))


def hardware_table(estimate: Estimate) -> str:
    """Headline, the hardware that every method needs at several lengths, rules of thumb beside what is computed, links and host memory."""
    settings = estimate.settings
    lengths, rows = needs.need_rows(settings)
    grid = [("Needs", *(f"{length} tokens" for length in lengths)), *((row.label, *(f"{cell.text} ({cell.how})" if cell.how else cell.text for cell in row.cells)) for row in rows)]
    claims = [("Rule of thumb", "GB", "Here", "", "")]
    claims += [(row.label, row.said, row.computed, row.place, row.why) for row in needs.claim_rows(settings.accounting)]
    links = [("Between GPUs", "", ""), *needs.link_rows()]
    everywhere = tuple(range(len(lengths) + 1))
    return "\n\n".join((
        headline(estimate),
        f"{columns(grid, left=everywhere)}\n  {needs.need_sentence(settings)}",
        columns(claims, left=(0, 3, 4)),
        f"{columns(links, left=(0, 1, 2))}\n  {needs.LINKS_SENTENCE}",
        needs.host_guidance(estimate),
    ))


def _gpu_marks(row: report.GpuRow) -> str:
    marks = [text for text, holds in (("now", row.current), ("fewest that fit", row.fewest), ("more help little", row.enough)) if holds]
    return f"← {', '.join(marks)}" if marks else ""


def moments_table(estimate: Estimate) -> str:
    """Every moment of the step with a bar, the largest marked; empty where there is only one."""
    rows = [(row.label, row.gib, bar(row.share), "← peak" if row.largest else "") for row in accounts.moments(estimate)]
    return columns([("Moment", "GiB", "", ""), *rows], left=(0, 2, 3)) if rows else ""


def tensors_table(estimate: Estimate) -> str:
    """The tensors in work at the largest moment; empty where the accounting does not know them."""
    rows = [(row.label, row.shape, row.dtype, row.count, row.gib, row.why) for row in accounts.tensors(estimate)]
    return columns([("Alive at the peak", "Shape", "Type", "Count", "GiB", "Why"), *rows], left=(0, 1, 2, 5)) if rows else ""


def accountings_table(estimate: Estimate) -> str:
    """The same run by every accounting, with the terms that make the difference, and component by component."""
    others = others_table(estimate)
    told = accounts.differences(estimate)
    if not told:
        return others
    header = ("Difference by component", "Step", *(text for label in told.labels for text in (label, "±")))
    parts = [(row.label, row.step, *(text for each in row.others for text in (each.gib, each.more))) for row in (*told.rows, told.peak)]
    return "\n\n".join((others, columns([header, *parts])))


def others_table(estimate: Estimate, names: Iterable[str] = ACCOUNTINGS) -> str:
    """The same run by these accountings, with the terms that make the difference."""
    wanted = {words.value_text("accounting", name) for name in names}
    rows = [("Accounting", "Peak GiB", "Against now", "", "")]
    rows += [
        (each.label, each.peak or "–", each.more, each.verdict, NOW if each.current else each.why)
        for each in accounts.others(estimate) if each.label in wanted
    ]
    return columns(rows, left=(0, 3, 4))


def assumptions_text(estimate: Estimate) -> str:
    """What the stack decided, and what was only read in code."""
    told = accounts.assumptions(estimate)
    if not told:
        return ""
    unchecked = f"Only read in code, not checked by a recorded run: {', '.join(told.unchecked)}." if told.unchecked else ""
    return "\n".join(line for line in (told.sentence, told.spread, unchecked) if line)


def fit_table(estimate: Estimate, found: Fit) -> str:
    """Headline, the searches and the one-change alternatives."""
    answers = (*report.maxima(estimate, found), report.smallest_gpu(estimate, found), *report.fewest_gpus(estimate, found))
    searches = [(answer.label, answer.text, answer.sentence) for answer in answers]
    changes = [("One change", "Peak GiB", "Against now", "Headroom", "", "At the cost of")]
    changes += [
        (each.label, each.peak, each.difference, each.headroom, each.verdict, NOW if each.current else each.cost)
        for each in report.alternatives(estimate, found)
    ]
    return "\n\n".join(
        (headline(estimate), columns(searches, left=(0, 2)), report.MAXIMA_NOTE, columns(changes, left=(0, 4, 5)))
    )


def _front_table(points: tuple[Point, ...]) -> str:
    """The front as a table; empty where nothing fits."""
    if not points:
        return ""
    told = make_fit_report.front_table(points)
    rows = [("Effective batch", *(f"{length} tokens" for length in told.lengths)), *((batch, *(cell.peak if cell else "" for cell in cells)) for batch, cells in told.rows)]
    return f"{columns(rows, left=())}\n  {make_fit_report.FRONT_SENTENCE}"


def make_fit_table(made: MadeToFit, grown: Iterable[Grown] = (), points: tuple[Point, ...] = ()) -> str:
    """Headline of the run as required, every set of changes that makes it fit, where to turn if none does, what larger runs take, and the front."""
    larger = [
        (row.label, row.value, make_fit_report.changes_text(row.offer), row.offer.peak, "; ".join(row.offer.costs)) for row in make_fit_report.grown_rows(grown)
    ]
    rows = [("Changes", "Peak GiB", "Headroom", "", "At the cost of")]
    rows += [("; ".join(row.changes), row.peak, row.headroom, row.verdict, "; ".join(row.costs)) for row in make_fit_report.offer_rows(made)]
    turns = [(row.label, row.text) for row in make_fit_report.turn_rows(made)]
    parts = (
        headline(made.run),
        make_fit_report.sentence(made),
        columns(rows, left=(0, 3, 4)) if made.offers else "",
        columns(turns, left=(0, 1)) if turns else "",
        columns([("Larger", "", "Changes", "Peak GiB", "At the cost of"), *larger], left=(0, 2, 4)) if larger else "",
        _front_table(points),
        "\n".join(line for line in (make_fit_report.proof(made), make_fit_report.refused_text(made)) if line),
    )
    return "\n\n".join(part for part in parts if part)


def curve_table(estimate: Estimate, drawn: Curve, longest_fitting: int | None) -> str:
    """Headline and the curve, the current length and the longest that fits marked."""
    rows = [("Tokens", "Peak GiB", "Headroom", "", "")]
    rows += [
        (each.tokens, each.peak, each.headroom, each.verdict, _marks(each))
        for each in report.curve_rows(estimate, drawn.points, longest_fitting=longest_fitting)
    ]
    return "\n\n".join((headline(estimate), columns(rows, left=(3, 4))))


def compare_table(estimate: Estimate, accountings: tuple[str, ...] = ()) -> str:
    """Headline and every method; or every accounting that is named."""
    if accountings:
        return "\n\n".join((headline(estimate), others_table(estimate, accountings)))
    rows = [("Method", "Peak GiB", "Against now", "Headroom", "", "")]
    rows += [
        (each.label, each.peak, each.difference, each.headroom, each.verdict, NOW if each.current else "")
        for each in report.methods(estimate)
    ]
    return "\n\n".join((headline(estimate), columns(rows, left=(0, 4, 5))))


MOST_SWEEP_ROWS = 200
"""Points of a grid that a table has room for."""


def sweep_table(swept: Sweep) -> str:
    """Every point of a grid with its peak, headroom and verdict, or why it is not counted."""
    header = (*(BY_NAME[name].label for name in swept.names), "Peak GiB", "Headroom", "", "")
    rows = [header, *((*point.values, *_counted_point(point)) for point in swept.points())]
    chosen = tuple(index for index, name in enumerate(swept.names) if not isinstance(BY_NAME[name].kind, WholeNumber | ExactDecimal))
    return columns(rows, left=(*chosen, len(header) - 2, len(header) - 1))


def _counted_point(point: Point) -> tuple[str, ...]:
    if point.problem:
        return ("–", "–", "not counted", point.problem.message)
    return (gib_text(point.peak_bytes), gib_text(point.headroom_bytes, signed=True), words.verdict_text(point.verdict), "")


def _marks(row: report.CurveRow) -> str:
    marks = [text for text, holds in (("now", row.current), ("longest that fits", row.longest)) if holds]
    return f"← {', '.join(marks)}" if marks else ""


def bar(share: float) -> str:
    """A bar for a share of the longest one."""
    return BAR * round(BAR_WIDTH * share)


def evidence_tables() -> str:
    """How right the estimates are: sentences, error quantiles, and the worst runs of every accounting."""
    found = evidence()
    header = ("Accounting", "Recorded", "Runs of", "Runs", "Median", "10th", "Worst under", "Worst over", "Median ±", "90th ±", "Under by > 10 %")
    rows = [
        (r.accounting, r.kind, r.name, r.runs, r.median, r.tenth, r.worst_under, r.worst_over, r.median_absolute, r.ninetieth_absolute, r.far_under)
        for r in group_rows(found)
    ]
    parts = ["\n".join(summary(found)), columns([header, *rows], left=(0, 1, 2))]
    for accounting, kind in sorted({(point.accounting, point.kind) for point in found.worst}, reverse=True):
        parts.append(_worst_table(found, accounting, kind))
    return "\n\n".join((*parts, *_studio_tables()))


def _studio_tables() -> tuple[str, str]:
    """What Unsloth Studio's document records, beside what its formulas come to."""
    totals = [("Unsloth Studio’s table", "Printed GiB", "Floor 0.20", "Floor 0.15")]
    totals += [(row.row, row.printed, row.with_table_floor, row.with_text_floor) for row in studio.table_rows()]
    runs = [("Unsloth Studio’s measured runs", "Its estimate", "By its formulas", "nvidia-smi")]
    runs += [(row.row, row.printed, row.computed, row.measured) for row in studio.validation_rows()]
    return f"{studio.TABLE_SENTENCE}\n{columns(totals)}", f"{studio.VALIDATION_SENTENCE}\n{columns(runs)}"


def _worst_table(found: Evidence, accounting: str, kind: str) -> str:
    worst = worst_rows(found, accounting, kind)
    header = (f"{worst[0].accounting}, {worst[0].kind.lower()}: the worst", "Recorded GiB", "Estimate", "Error", "Why")
    return columns([header, *((r.id, r.recorded, r.estimated, r.error, r.reason) for r in worst)], left=(0, 4))


def placement_table(settings: Settings, placement: Placement) -> str:
    """The run in a line, the choice of cards, why, and what was tried."""
    there = placement_report.told(placement)
    rows = [("Cards", "Free GiB", "Usable GiB", "Left", "")]
    rows += [(row.cards, row.free, row.usable, row.headroom, "enough" if row.enough else "not enough") for row in there.rows]
    run = report.run_text(settings.varied(accounting=placement_report.ACCOUNTING))
    return "\n\n".join((f"{run}\n{there.answer}\n{there.why}", columns(rows, left=(0, 4))))


def import_table(imported: Imported) -> str:
    """What a file comes to: counts, then every list of what was read, assumed and left out."""
    counts = [(each.label, each.text, each.exact) for each in brought.counts(imported)]
    lists = [f"{group.title}\n{columns(list(group.rows), left=(0, 1))}" for group in brought.groups(imported)]
    return "\n\n".join((f"{brought.title(imported)}\n{brought.sentence(imported)}", columns(counts), *lists))


def measured_table(estimate: Estimate, reading: Reading | None) -> str:
    """Headline, what was measured against the estimate, what may explain it, and the blocks of a snapshot."""
    told, why = own_run.own_run(estimate), own_run.explained(estimate)
    lines = [f"Read: {reading.source}.", *reading.told] if reading else []
    rows = [("Measured", "GiB", "Estimate", "Difference", "")]
    rows += [(each.label, each.measured, each.estimated, each.difference, each.share) for each in told.measures]
    parts = [
        headline(estimate),
        "\n".join((*lines, told.settings, *told.sentences)),
        columns(rows) if told.measures else "",
        "\n".join(why.sentences) if why else "",
        _tensors_asked_for(why.tensors) if why else "",
        _choices(why.choices) if why else "",
        _blocks(own_run.block_rows(reading.blocks)) if reading else "",
    ]
    return "\n\n".join(part for part in parts if part)


def _tensors_asked_for(tensors: tuple[own_run.TensorRow, ...]) -> str:
    rows = [("Tensor of this size", "Shape", "Type", "GiB", "Moment", "Besides, GiB", "")]
    rows += [(t.label, t.shape, t.dtype, t.gib, t.moment, t.beside, "← as your run" if t.same else "") for t in tensors]
    return columns(rows, left=(0, 1, 2, 4, 6)) if tensors else ""


def _choices(choices: tuple[own_run.Choice, ...]) -> str:
    rows = [("With", "Peak GiB", "Measured less that", "", "", "The same with")]
    rows += [(each.label, each.peak, each.difference, each.share, "← likely" if each.likely else "", each.also) for each in choices]
    return columns(rows, left=(0, 4, 5)) if choices else ""


def _blocks(blocks: tuple[own_run.BlockRow, ...]) -> str:
    rows = [("GiB", "Blocks", "Made at"), *((each.gib, each.count, each.place) for each in blocks)]
    return f"Alive at the peak of the snapshot:\n{columns(rows, left=(2,))}" if blocks else ""
