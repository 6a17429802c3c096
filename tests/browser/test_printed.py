"""On paper: one sheet with the run as it is, its results and its address, and nothing to press."""

import re

from playwright.sync_api import expect
import pytest

from vramplan import accounts, report
from vramplan.fit import fit
import runs

PAGES = re.compile(rb"/Type\s*/Page\b(?!s)")
LONG = {
    "model": "custom", "query_key_norms": "true", "extra_norms": "true", "logit_softcap": "true", "sliding_window": "512", "gpu": "custom", "budget": "20",
    "adapter_targets": "q,k,v,o,gate,up,down", "replicas": "8", "sharding": "zero3", "gradient_accumulation_steps": "4", "optimizer": "adamw-8bit",
}


def print_page(page):
    """How many sheets come out of the printer; the page stays as it is printed, to be looked at."""
    sheets = len(PAGES.findall(page.page.pdf(prefer_css_page_size=True)))
    page.page.emulate_media(media="print")
    return sheets


def closed_up(text):
    """Without any white space: what is a line of its own on paper has none in the source."""
    return "".join(text.split())


@pytest.fixture
def printed(calculator):
    yield calculator
    calculator.page.emulate_media(media="null")


@pytest.mark.parametrize("texts", [{}, LONG, {"accounting": "planning", "model": "llama-3.2-1b", "method": "full"}], ids=("opening", "long", "planned"))
def test_a_run_is_one_sheet_with_all_there_is_to_know(printed, texts):
    run = runs.of(**texts)
    printed.travel(f"?v=2&{'&'.join(f'{name}={text}' for name, text in texts.items())}")
    printed.expect_headline(run)
    assert print_page(printed) == 1

    shown = closed_up(printed.page.locator("body").inner_text())
    told, found = report.headline(run), fit(run.settings)
    wanted = [told.run, told.peak, told.headroom, f"{told.verdict} {told.budget_label}", printed.page.url, report.components_total(run)]
    wanted += [text for row in report.components(run) for text in (row.label, row.gib)]
    wanted += [text for row in accounts.moments(run) for text in (row.label, row.gib)]
    wanted += [text for each in (*report.maxima(run, found), report.smallest_gpu(run, found)) for text in (each.label, each.text)]
    wanted += [f"{label}{value}" for label, value in report.settings_rows(run.settings)]
    assert [text for text in wanted if closed_up(text) not in shown] == []
    for role in ("button", "textbox", "combobox", "radio", "slider", "navigation", "form"):
        expect(printed.page.get_by_role(role)).to_have_count(0)


def test_what_stands_in_the_way_of_a_number_is_printed_instead(printed):
    settings, reason = runs.why_not(optimizer="lion", accounting="planning")
    printed.travel("?v=2&optimizer=lion&accounting=planning")
    printed.expect_no_number(settings, reason)
    assert print_page(printed) == 1
    expect(printed.page.locator("body")).to_contain_text(reason.message, use_inner_text=True)
    printed.page.emulate_media(media="null")
    printed.travel("?v=2&rank=many")
    printed.expect_problems(runs.sentences(rank="many").values())
    assert print_page(printed) == 1
    expect(printed.page.locator("body")).to_contain_text(runs.sentences(rank="many")["rank"], use_inner_text=True)
