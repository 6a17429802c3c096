"""The run as a file of a tool, in the Share dialog: chosen, copied, downloaded, and brought back.

Belongs here: what a person does with it. What is written: tests/test_export.py.
"""

from pathlib import Path

from playwright.sync_api import expect
import pytest

from vramplan.exporting.export import FORMS, export
import runs
from test_accessibility import PHONE, WIDE, findings

TEXTS = {"method": "lora", "rank": "32", "lora_dropout": "0.05", "adapter_targets": "q,v", "sequence_length": "1024", "stack": "trl-1.15"}


@pytest.fixture
def shared(calculator):
    calculator.set(**TEXTS)
    calculator.share()
    return calculator


def choose(page, form):
    page.dialog.get_by_label("Export as", exact=True).select_option(label=FORMS[form])


@pytest.mark.parametrize("form", FORMS)
def test_a_run_is_shown_in_every_form_copied_and_downloaded(shared, form):
    choose(shared, form)
    made = export(runs.of(**TEXTS), form, link=shared.shared("Link"))
    assert shared.shared(FORMS[form]) == made.text
    shared.dialog.get_by_role("button", name=f"Copy {FORMS[form]}", exact=True).click()
    expect(shared.dialog.get_by_role("status")).to_contain_text(f"{FORMS[form]} copied")
    assert shared.root.evaluate("navigator.clipboard.readText()") == made.text
    with shared.page.expect_download() as download:
        shared.dialog.get_by_role("button", name=f"Download {FORMS[form]}", exact=True).click()
    assert download.value.suggested_filename == made.file
    assert Path(download.value.path()).read_text(encoding="utf-8") == made.text


def test_what_was_exported_is_brought_back(shared):
    choose(shared, "axolotl")
    text = shared.shared(FORMS["axolotl"])
    shared.page.keyboard.press("Escape")
    shared.button("Reset").click()
    shared.bring(text)
    expect(shared.control("rank")).to_have_value("32")
    expect(shared.control("sequence_length")).to_have_value("1024")


def test_a_run_that_is_not_counted_has_no_export_and_one_that_answers_says_why(calculator):
    calculator.set(objective="grpo")
    calculator.share()
    expect(calculator.dialog.get_by_label("Export as", exact=True)).not_to_be_visible()
    calculator.page.keyboard.press("Escape")
    calculator.set(accounting="rules", task="inference")
    calculator.share()
    choose(calculator, "trl")
    expect(calculator.dialog).to_contain_text("there is no training file of it")


def test_the_export_has_no_finding_and_stays_in_the_window(shared):
    choose(shared, "trl")
    assert findings(shared) == {}
    for size in (WIDE, PHONE):
        shared.page.set_viewport_size(size)
        assert shared.dialog.evaluate("each => each.scrollWidth <= each.clientWidth")
