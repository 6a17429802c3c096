"""Expectations that several browser tests share: what CPython says of a run."""

from vramplan import report
from vramplan.accountings import estimate
from vramplan.curve import curve
from vramplan.errors import SettingsError
from vramplan.fit import fit
from vramplan.link import read_query
from vramplan.settings import parse


def of(**texts):
    """The estimate of the opening configuration with these settings changed, as typed."""
    return estimate(parse(texts))


def of_query(query):
    """The estimate a query string opens."""
    link = read_query(query)
    return estimate(parse(link.texts, version=link.version))


def sentences(**texts):
    """The sentence of every setting that cannot be used, by name, in order."""
    try:
        parse(texts)
    except SettingsError as problem:
        return {error.field: error.message for error in problem.errors}
    return {}


def component_rows(estimate):
    """The component table, cell by cell."""
    rows = []
    for row in report.components(estimate):
        rows += [(each.label, each.gib, each.share_text) for each in (row, *row.parts)]
    return [*rows, ("Peak per GPU", report.components_total(estimate))]


def change_rows(changes):
    """A table of changes, cell by cell; the current run is marked 'now'."""
    now = {True: ("now",), False: ()}
    return [(each.label, *now[each.current], each.peak, each.difference, each.headroom, each.verdict) for each in changes]


def curve_rows(estimate):
    """The table of the curve, cell by cell; the current length and the longest that fits are marked."""
    longest = fit(estimate.settings).longest_sequence.value
    points = curve(estimate.settings, also=[longest] if longest else []).points
    rows = report.curve_rows(estimate, points, longest_fitting=longest)
    marks = [("longest that fits",) * each.longest + ("now",) * each.current for each in rows]
    return [(*mark, each.tokens, each.peak, each.headroom, each.verdict) for mark, each in zip(marks, rows, strict=True)]
