"""An estimate as a notebook shows it: the answer and a table, in markup without scripts, styles or pictures."""

from html import escape

from vramplan import report
from vramplan.ledger import Estimate
from vramplan.report import Component

LEFT, RIGHT = 'style="text-align: left"', 'style="text-align: right"'
"""Where the text of a cell stands; notebooks put all of it to the right."""


def html(estimate: Estimate) -> str:
    """The answer of an estimate and its components, as HTML. Every text is escaped."""
    told = report.headline(estimate)
    rows = [line for row in report.components(estimate) for line in (_row(row), *(_row(part, inside=True) for part in row.parts))]
    return "".join((
        f"<div><p><strong>{escape(told.peak)} GiB</strong>: {escape(told.verdict.lower())} {escape(told.budget_label)}.</p>",
        f"<table><caption>{escape(told.run)}</caption>",
        f"<thead><tr><th {LEFT} scope=\"col\">Component</th><th {RIGHT} scope=\"col\">GiB</th><th {RIGHT} scope=\"col\">Share</th></tr></thead>",
        f"<tbody>{''.join(rows)}</tbody>",
        f"<tfoot><tr><th {LEFT} scope=\"row\">Peak per GPU</th><td {RIGHT}>{report.components_total(estimate)}</td><td></td></tr>",
        f"<tr><th {LEFT} scope=\"row\">Budget</th><td {RIGHT}>{told.budget}</td><td></td></tr>",
        f"<tr><th {LEFT} scope=\"row\">{escape(told.headroom_label)}</th><td {RIGHT}>{told.headroom}</td><td></td></tr></tfoot></table>",
        f"<p>{escape(told.counted)} {escape(told.beside)}</p></div>",
    ))


def _row(row: Component, *, inside: bool = False) -> str:
    label = f"&emsp;{escape(row.label)}" if inside else escape(row.label)
    return f'<tr><th {LEFT} scope="row">{label}</th><td {RIGHT}>{row.gib}</td><td {RIGHT}>{escape(row.share_text)}</td></tr>'
