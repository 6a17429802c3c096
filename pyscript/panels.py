"""Which part of the page shows what: every panel's tree, from one estimate. Pure."""

from dataclasses import dataclass

from vramplan import chart, report
from vramplan.chart import WIDE, Chart, Frame
from vramplan.curve import curve
from vramplan.fit import Fit, fit
from vramplan.ledger import Estimate
from pyscript.tree import Element
from pyscript.views import components as components_view
from pyscript.views import curve as curve_view
from pyscript.views import fits as fits_view
from pyscript.views import headline as headline_view


@dataclass(frozen=True)
class Results:
    """An estimate with everything that is searched and drawn around it."""

    estimate: Estimate
    found: Fit
    chart: Chart


def results(estimate: Estimate, frame: Frame = WIDE) -> Results:
    """Search and lay out everything around an estimate; the chart in a frame of the wanted size."""
    found = fit(estimate.settings)
    return Results(estimate, found, chart.layout(estimate, longest_fitting=found.longest_sequence.value, frame=frame))


def headline(estimate: Estimate) -> Element:
    """The answer."""
    amounts = {row.name: row.bytes for row in report.components(estimate)}
    stack = chart.stack(amounts, budget=estimate.budget_bytes)
    return headline_view.headline(report.headline(estimate), stack)


def facts(estimate: Estimate) -> Element:
    """Parameter counts and effective batch."""
    return headline_view.facts(report.facts(estimate))


def components(estimate: Estimate) -> Element:
    """What the memory holds."""
    return components_view.components(report.components(estimate), report.components_total(estimate))


def methods(estimate: Estimate) -> Element:
    """The three training methods."""
    caption = "Full fine-tuning, LoRA and QLoRA with every other setting held"
    return fits_view.changes(report.methods(estimate), caption, "Method")


def maxima(shown: Results) -> Element:
    """The searches."""
    answers = (*report.maxima(shown.estimate, shown.found), report.smallest_gpu(shown.estimate, shown.found))
    return fits_view.maxima(answers)


def alternatives(shown: Results) -> Element:
    """The single changes."""
    caption = "Runs that differ from this one in a single setting"
    return fits_view.changes(report.alternatives(shown.estimate, shown.found), caption, "One change")


def curve_drawing(shown: Results, chosen: int) -> Element:
    """The sequence curve, read at one sample."""
    return curve_view.curve(shown.chart, report.curve_sentence(shown.estimate, shown.found), chosen)


def curve_table(shown: Results) -> Element:
    """The sequence curve's numbers, the crossing among them."""
    longest = shown.found.longest_sequence.value
    points = curve(shown.estimate.settings, also=[longest] if longest else []).points
    return curve_view.curve_table(report.curve_rows(shown.estimate, points, longest_fitting=longest))
