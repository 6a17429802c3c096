"""Beside the run: methods as ranges, the peak against the micro-batch, and serving the model. What they are: tests/test_beside.py."""

from playwright.sync_api import expect

import runs
from vramplan import beside
from vramplan.fit import largest_micro_batch


def test_one_switch_from_training_a_model_to_serving_it_and_back(calculator):
    calculator.set(gpu="16")
    region = calculator.region("Then serve it")
    region.scroll_into_view_if_needed()
    row = beside.served_rows(runs.of(gpu="16").settings)[4]
    shown = region.get_by_role("row").filter(has=calculator.root.get_by_role("link", name=row.label, exact=True))
    for text in (row.weights, row.cache, row.sequences, row.longest):
        expect(shown).to_contain_text(text)
    region.get_by_role("link", name=row.label, exact=True).click()
    served = runs.of(accounting="rules", task="inference", served_weights="int4", gpu="16")
    calculator.expect_headline(served)
    expect(calculator.control("method")).to_be_hidden()
    expect(calculator.control("served_weights")).to_be_visible()
    region.scroll_into_view_if_needed()
    region.get_by_role("link", name="Back to training it").click()
    calculator.expect_headline(runs.of(accounting="rules", served_weights="int4", gpu="16"))
    expect(calculator.control("method")).to_be_visible()


def test_the_peak_against_the_micro_batch(calculator):
    region = calculator.region("Memory against the micro-batch")
    region.scroll_into_view_if_needed()
    calculator.set(micro_batch="2")
    now = runs.of(micro_batch="2")
    expect(region).to_contain_text(beside.batch_sentence(now, largest_micro_batch(now.settings)))
    region.get_by_text("The drawing as a table", exact=True).click()
    expect(region.get_by_role("row").filter(has_text="now")).to_contain_text("2")


def test_methods_as_ranges(calculator):
    region = calculator.region("Methods compared")
    region.get_by_text("Each method as a range", exact=True).click()
    for row in beside.span_rows(runs.of().settings):
        shown = region.get_by_role("row").filter(has_text=row.verdict).filter(has=calculator.root.get_by_role("link", name=row.label, exact=True))
        for text in (row.least, row.most, row.parts):
            expect(shown).to_contain_text(text)
