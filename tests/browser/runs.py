"""Expectations that several browser tests share: what CPython says of a run."""

from vramplan import accounts, report
from vramplan.accountings import estimate
from vramplan.compare import by_accounting, counted_or_why
from vramplan.curve import curve
from vramplan.errors import NotExpressible, SettingsError
from vramplan.fit import fit
from vramplan.link import read_query
from vramplan.settings import parse


def of(**texts):
    """The estimate of the opening configuration with these settings changed, as typed."""
    return estimate(parse(texts))


def first(**texts):
    """The estimate of a link of the first release with these settings."""
    return estimate(parse(texts, version=1))


def by(run, accounting):
    """The same run by another accounting."""
    return by_accounting(run.settings)[accounting]


def why_not(**texts):
    """The settings and why their accounting cannot count them."""
    settings = parse(texts)
    reason = counted_or_why(settings)
    assert isinstance(reason, NotExpressible)
    return settings, reason


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


def moment_rows(estimate):
    """The table of moments, cell by cell; the largest is marked 'peak'."""
    return [(each.label, *("peak",) * each.largest, each.gib) for each in accounts.moments(estimate)]


def stack_rows(estimate):
    """The peak with each training stack, cell by cell; the current one is marked 'now'."""
    return [(each.label, *("now",) * each.current, each.peak) for each in accounts.assumptions(estimate).stacks]


def other_rows(estimate):
    """The run by every accounting, cell by cell; the chosen one is marked 'now', the others say what makes the difference."""
    return [(each.label, *("now",) * each.current, *filter(None, [each.why]), each.peak or "–", each.more, each.verdict or "not counted")
            for each in accounts.others(estimate)]


def difference_rows(estimate):
    """The accountings component by component, cell by cell."""
    told = accounts.differences(estimate)
    return [(row.label, row.why, row.step, *(text for each in row.others for text in (each.gib, each.more))) for row in (*told.rows, told.peak)]


def change_rows(changes):
    """A table of changes, cell by cell; the current run is marked 'now', a saving says what it costs."""
    now = {True: ("now",), False: ()}
    return [(each.label, *now[each.current], *filter(None, [each.cost]), each.peak, each.difference, each.headroom, each.verdict) for each in changes]


def curve_rows(estimate):
    """The table of the curve, cell by cell; the current length and the longest that fits are marked."""
    longest = fit(estimate.settings).longest_sequence.value
    points = curve(estimate.settings, also=[longest] if longest else []).points
    rows = report.curve_rows(estimate, points, longest_fitting=longest)
    marks = [("longest that fits",) * each.longest + ("now",) * each.current for each in rows]
    return [(*mark, each.tokens, each.peak, each.headroom, each.verdict) for mark, each in zip(marks, rows, strict=True)]
