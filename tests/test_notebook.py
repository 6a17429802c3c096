"""What a notebook shows of an estimate: the answer and its ledger, in markup without scripts."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from vramplan import Settings, estimate, report
from vramplan import notebook
from vramplan.units import gib_text

RUNS = [Settings(), Settings(method="full", gpu="12"), Settings(accounting="planning"), Settings(accounting="rules", task="inference")]


class Reader(HTMLParser):
    """Tags, attributes, and the texts of the table's rows."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.rows, self._open = set(), set(), [], []
        self.feed(text)
        assert self._open == [], "a tag is left open"

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] in ("td", "th"):
            self.rows[-1].append(data.strip())


@pytest.mark.parametrize("settings", RUNS)
def test_a_notebook_shows_the_answer_and_every_component(settings):
    counted = estimate(settings)
    text, told = counted._repr_html_(), report.headline(counted)
    read = Reader(text)
    for part in (f"{told.peak} GiB", told.verdict.lower(), told.budget_label, told.run):
        assert part in text
    for row in report.components(counted):
        assert [row.label, row.gib, row.share_text.replace("<", "&lt;")] in [[cell.replace("<", "&lt;") for cell in each] for each in read.rows]
    assert ["Peak per GPU", gib_text(counted.peak_bytes, places=3)] in read.rows
    assert [told.headroom_label, told.headroom] in read.rows


@pytest.mark.parametrize("settings", RUNS)
def test_there_is_nothing_in_it_but_paragraphs_and_a_table(settings):
    read = Reader(estimate(settings)._repr_html_())
    assert read.tags <= {"div", "p", "strong", "table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"}
    assert read.attributes <= {"style", "scope"}


def test_texts_are_escaped(monkeypatch):
    usual = report.headline
    monkeypatch.setattr(report, "headline", lambda counted: replace(usual(counted), run="<script>alert(1)</script>", budget_label="\"&<b>", counted="<i>"))
    text = notebook.html(estimate(Settings()))
    assert "&lt;script&gt;" in text and not Reader(text).tags & {"script", "b", "i"}
