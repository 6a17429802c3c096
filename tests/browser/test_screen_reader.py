"""What a screen reader has to say: parts, headings in order, what each control is called and in which state, and what is heard after a change."""

import re

from playwright.sync_api import expect
import pytest

from vramplan import report
from vramplan.fields import BY_NAME
import runs
from test_accessibility import everything_unfolded

HEADINGS = """() => [...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].filter(each => each.checkVisibility()).map(each => [Number(each.tagName[1]), each.textContent.trim()])"""

PARTS = """
- link "Skip to the result"
- banner:
  - heading "VRAM Plan" [level=1]
  - navigation "Page"
  - button "Reset"
  - button "Copy link"
  - button "Share"
- main:
  - form "Training run"
  - region "Estimated peak"
  - region "About this number"
  - region "What fills the memory"
  - region "The step, moment by moment"
- article
- contentinfo
"""


def test_the_page_is_read_in_parts_and_headings_go_down_one_step_at_a_time(calculator):
    expect(calculator.root.locator("body")).to_match_aria_snapshot(PARTS)
    for prepare in (lambda page: None, everything_unfolded):
        prepare(calculator)
        levels = [level for level, text in calculator.root.evaluate(HEADINGS) if text]
        assert levels[0] == 1 and levels.count(1) == 1
        assert [(one, other) for one, other in zip(levels, levels[1:], strict=False) if other > one + 1] == []


def test_a_setting_is_announced_with_its_name_its_state_and_what_it_takes(calculator):
    rank, method = BY_NAME["rank"], BY_NAME["method"]
    expect(calculator.control("rank")).to_match_aria_snapshot(f'- textbox "{rank.label}": "16"')
    expect(calculator.control("rank")).to_have_accessible_description(re.compile(f"^{re.escape(rank.hint)} 1 to 256"))
    group = calculator.control("method").aria_snapshot()
    assert group.startswith(f'- group "{method.label}"')
    assert [("[checked]" in line) for line in group.splitlines() if "- radio" in line] == [False, False, True, False]
    expect(calculator.control("method")).to_have_accessible_description(method.hint)

    calculator.find("model", "llama 3.2")
    expect(calculator.control("model")).to_have_attribute("aria-expanded", "true")
    calculator.page.keyboard.press("ArrowDown")
    active = calculator.control("model").get_attribute("aria-activedescendant")
    expect(calculator.matches("model").get_by_role("option", selected=True)).to_have_attribute("id", active)
    calculator.page.keyboard.press("Escape")
    expect(calculator.control("model")).to_have_attribute("aria-expanded", "false")


def test_a_mistake_is_heard_is_named_at_its_field_and_is_gone_when_mended(calculator):
    calculator.type_number("rank", "many")
    said = runs.sentences(rank="many")["rank"]
    expect(calculator.status(said)).to_have_count(1)
    expect(calculator.control("rank")).to_have_attribute("aria-invalid", "true")
    expect(calculator.control("rank")).to_have_accessible_description(re.compile(re.escape(said)))
    expect(calculator.problems.get_by_role("link", name=said)).to_be_visible()
    calculator.type_number("rank", "8")
    expect(calculator.control("rank")).not_to_have_attribute("aria-invalid", "true")
    expect(calculator.control("rank")).not_to_have_accessible_description(re.compile(re.escape(said)))
    expect(calculator.status(report.headline(runs.of(rank="8")).sentence)).to_have_count(1)


@pytest.mark.parametrize("texts", [{}, {"method": "full"}], ids=("fits", "does-not"))
def test_the_answer_is_read_as_text_with_the_chosen_accounting_named(calculator, texts):
    calculator.set(**texts)
    run = runs.of(**texts)
    calculator.expect_headline(run)
    told = report.headline(run)
    read = calculator.answer.aria_snapshot()
    for text in (told.run, told.peak, f"{told.verdict} {told.budget_label}", told.headroom, f'link "Training step (chosen) {told.peak} GiB {told.verdict}"'):
        assert text in read, text
    assert "img" not in read  # the bar says what the table below says


def test_a_dialog_is_named_keeps_the_focus_and_gives_it_back(calculator):
    calculator.share()
    assert calculator.dialog.aria_snapshot().startswith('- dialog "Share this run"')
    assert calculator.root.evaluate("document.activeElement.closest('dialog') !== null")
    calculator.dialog.get_by_role("button", name="Copy Link").click()
    expect(calculator.dialog.get_by_role("status")).to_contain_text("Link copied")
    calculator.page.keyboard.press("Escape")
    expect(calculator.button("Share")).to_be_focused()
