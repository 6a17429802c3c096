"""Pinned runs told to people: what differs from the baseline, all of them side by side, and both as files."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from vramplan import words
from vramplan.accounts import component_bytes, terms_between
from vramplan.fields import BY_NAME
from vramplan.ledger import Estimate
from vramplan.link import to_query
from vramplan.pins import Step, TermStep, differing, steps, used
from vramplan.report import run_text
from vramplan.settings import as_text
from vramplan.units import gib_text
from vramplan.waterfall import Bar, Waterfall, layout

BASELINE, NOW = "baseline", "now"
"""What the first pinned run and the run as it is are called."""

SETTING, COMPONENT, PEAK, PLAIN = "setting", "component", "peak", "plain"
"""Kinds of rows."""

NOTHING = "–"
"""In place of a value that a run does not have."""

PLACES = 3
"""Decimals of GiB, as in the table of components."""


@dataclass(frozen=True)
class TermRow:
    """One row of the ledgers in both runs, in GiB, and the difference."""

    label: str
    before: str
    after: str
    difference: str


@dataclass(frozen=True)
class StepRow(TermRow):
    """One component with its bar; whether it grows; and the rows of the ledgers behind it, where there is more than one."""

    name: str
    bar: Bar
    grows: bool
    terms: tuple[TermRow, ...]


@dataclass(frozen=True)
class Difference:
    """The way from the baseline to the run as it is. short: the difference in a few words. drawn: where its bars lie."""

    short: str
    sentences: tuple[str, ...]
    before: str
    rows: tuple[StepRow, ...]
    after: str
    difference: str
    drawn: Waterfall


@dataclass(frozen=True)
class Column:
    """One of several runs: what it is called, the run in a line, the link that opens it, and whether it is the baseline, or the one as it is."""

    label: str
    run: str
    query: str
    baseline: bool
    current: bool


@dataclass(frozen=True)
class Row:
    """One row of several runs: what it is about, and a cell for each."""

    kind: str
    label: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class SideBySide:
    """Pinned runs, the baseline first, and the run as it is."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]


def difference(first: Estimate, second: Estimate) -> Difference:
    """What differs between the baseline and the run as it is."""
    found = steps(first, second)
    drawn = layout(first, second, found)
    rows = tuple(_step_row(step, bar, second.accounting) for step, bar in drawn.steps)
    more = gib_text(second.peak_bytes - first.peak_bytes, places=PLACES, signed=True)
    return Difference(short_text(first, second), _sentences(first, second), _gib(first.peak_bytes), rows, _gib(second.peak_bytes), more, drawn)


def short_text(first: Estimate, second: Estimate) -> str:
    """The difference of the peaks in a few words."""
    more = second.peak_bytes - first.peak_bytes
    return f"{words.amount_text(abs(more))} {'more' if more > 0 else 'less'} than the baseline" if more else "the same peak as the baseline"


def _sentences(first: Estimate, second: Estimate) -> tuple[str, ...]:
    short = short_text(first, second)
    told = [f"{short[0].upper()}{short[1:]}: {gib_text(second.peak_bytes)} against {gib_text(first.peak_bytes)} GiB. {terms_between(first, second)}"]
    if first.accounting != second.accounting:
        labels = (words.value_text("accounting", each.accounting) for each in (first, second))
        told.append("The baseline is counted as “{}”, this run as “{}”.".format(*labels))
    elif first.moment.name != second.moment.name:
        told.append(f"The baseline is largest at the moment “{first.moment.name}”, this run at “{second.moment.name}”.")
    return tuple(told)


def _step_row(step: Step, bar: Bar, accounting: str) -> StepRow:
    terms = tuple(_term_row(each, words.term_label(accounting, each.name)) for each in step.terms)
    row = _term_row(step, words.component_label(accounting, step.name))
    return StepRow(row.label, row.before, row.after, row.difference, step.name, bar, step.difference > 0, terms if len(terms) > 1 else ())


def _term_row(step: TermStep, label: str) -> TermRow:
    return TermRow(label, _gib(step.before), _gib(step.after), gib_text(step.difference, places=PLACES, signed=True))


def _gib(count: int) -> str:
    return gib_text(count, places=PLACES)


def side_by_side(pinned: Sequence[Estimate], current: Estimate) -> SideBySide:
    """Every pinned run and the one as it is: settings that differ, components, peak, headroom, verdict."""
    runs = (*pinned, current)
    columns = tuple(
        Column(label_of(number, len(runs)), run_text(run.settings), to_query(run.settings), number == 0, run is current) for number, run in enumerate(runs)
    )
    values = [used(run.settings) for run in runs]
    rows = [Row(SETTING, BY_NAME[name].label, tuple(words.value_text(name, each[name]) if name in each else NOTHING for each in values)) for name in _differing(runs)]
    amounts = [dict(component_bytes(run.terms)) for run in runs]
    rows += [
        Row(COMPONENT, f"{label}, GiB", tuple(_gib(each[name]) for each in amounts))
        for name, (label, _) in words.COMPONENTS.items() if any(each[name] for each in amounts)
    ]
    base = pinned[0]
    rows += [
        Row(PEAK, "Peak per GPU, GiB", tuple(_gib(run.peak_bytes) for run in runs)),
        Row(PLAIN, "Against the baseline, GiB", (NOTHING, *(gib_text(run.peak_bytes - base.peak_bytes, places=PLACES, signed=True) for run in runs[1:]))),
        Row(PLAIN, "Largest at", tuple(words.moment_text(run.moment.name) for run in runs)),
        Row(PLAIN, "Headroom, GiB", tuple(gib_text(run.headroom_bytes, signed=True) for run in runs)),
        Row(PLAIN, "Verdict", tuple(words.verdict_text(run.verdict) for run in runs)),
    ]
    return SideBySide(columns, tuple(rows))


def _differing(runs: Sequence[Estimate]) -> tuple[str, ...]:
    return differing([run.settings for run in runs])


def label_of(number: int, count: int) -> str:
    """What the run at a place among all of them is called; the last one is that as it is."""
    return "Now" if number == count - 1 else f"Pinned {number + 1}{f', {BASELINE}' if number == 0 else ''}"


def markdown(pinned: Sequence[Estimate], current: Estimate) -> str:
    """The runs side by side as a table in Markdown."""
    told = side_by_side(pinned, current)
    lines = [("", *(column.label for column in told.columns)), ("---", *("---:" for _ in told.columns)), ("Run", *(column.run for column in told.columns))]
    for row in told.rows:
        bold = row.kind == PEAK
        lines.append(tuple(f"**{cell}**" if bold else cell for cell in (row.label, *row.cells)))
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def csv_text(pinned: Sequence[Estimate], current: Estimate) -> str:
    """The runs as comma-separated values, a row for each: settings that differ, whole bytes, verdict, and the query that opens it."""
    runs = (*pinned, current)
    names = _differing(runs)
    amounts = [dict(component_bytes(run.terms)) for run in runs]
    parts = [name for name in words.COMPONENTS if any(each[name] for each in amounts)]
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("run", *names, *(f"{name}_bytes" for name in parts), "peak_bytes", "against_baseline_bytes", "budget_bytes", "headroom_bytes", "verdict", "query"))
    for number, (run, amount) in enumerate(zip(runs, amounts, strict=True)):
        values = used(run.settings)
        table.writerow((
            NOW if run is current else f"pinned {number + 1}", *(as_text(values[name]) if name in values else "" for name in names), *(amount[name] for name in parts),
            run.peak_bytes, run.peak_bytes - pinned[0].peak_bytes, run.budget_bytes, run.headroom_bytes, run.verdict, to_query(run.settings),
        ))
    return text.getvalue()
