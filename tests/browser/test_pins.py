"""Pinned runs on the page: pinned by the headline, compared term by term with every change, in the link, and as Markdown and CSV.

Belongs here: what a person does with them. Links, differences and tables: tests/test_pinned_runs.py.
"""

import re

from playwright.sync_api import expect
import pytest

from vramplan import estimate, pins_report
from vramplan.link import MAX_PINS, read_query, to_query
from vramplan.pins import pinned
from vramplan.units import counted
import runs
from test_accessibility import findings

PHONE = {"width": 360, "height": 740}


@pytest.fixture
def part(calculator):
    return calculator.region("Pinned runs")


def pin(page):
    page.button("Pin this run").click()


def rows_of(table):
    return table.get_by_role("row").filter(has=table.page.get_by_role("rowheader"))


def expect_pinned(page, pins, current):
    """The part, the headline and the address tell of these pinned runs and the one as it is, in the words CPython has for it."""
    part, told = page.region("Pinned runs"), pins_report.difference(pins[0], current)
    expect(page.answer.get_by_role("link", name=told.short, exact=True)).to_be_visible()
    for sentence in told.sentences:
        expect(part).to_contain_text(sentence)
    lines = [("Baseline", told.before)]
    for row in told.rows:
        lines += [(each.label, each.before, each.after, each.difference) for each in (row, *row.terms)]
    lines.append(("Now", told.after, told.difference))
    expect(rows_of(part.get_by_role("table", name="From the baseline"))).to_have_text([re.compile(r"^\s*" + r"\s*".join(map(re.escape, line)) + r"\s*$") for line in lines])
    beside = pins_report.side_by_side(pins, current)
    table = part.get_by_role("table", name="Pinned runs and the one as it is")
    heads = table.get_by_role("columnheader")
    expect(heads).to_have_text([re.compile(rf"^{re.escape(column.label)}{re.escape(column.run)}") for column in beside.columns])
    expect(rows_of(table)).to_have_text(["".join((row.label, *row.cells)) for row in beside.rows])
    query = to_query(current.settings, [run.settings for run in pins])
    expect(page.page).to_have_url(re.compile(rf"{re.escape(query)}$"))


def test_a_run_is_pinned_and_every_change_is_held_against_it(calculator, part):
    expect(part).to_be_hidden()
    pin(calculator)
    expect(calculator.status("Pinned; every change is held against it")).to_be_visible()
    expect_pinned(calculator, [runs.of()], runs.of())
    calculator.set(method="lora")
    expect_pinned(calculator, [runs.of()], runs.of(method="lora"))
    calculator.type_number("sequence_length", "4096")
    expect_pinned(calculator, [runs.of()], runs.of(method="lora", sequence_length="4096"))
    calculator.type_number("sequence_length", "0")
    expect(calculator.problems).to_be_visible()
    calculator.type_number("sequence_length", "1024")
    expect_pinned(calculator, [runs.of()], runs.of(method="lora", sequence_length="1024"))


def test_up_to_four_runs_stand_side_by_side(calculator):
    pins = []
    for rank in ("4", "8", "32", "64"):
        calculator.set(rank=rank)
        pin(calculator)
        pins.append(runs.of(rank=rank))
    assert len(pins) == MAX_PINS
    expect_pinned(calculator, pins, runs.of(rank="64"))
    pin(calculator)
    expect(calculator.status("This run is pinned already")).to_be_visible()
    calculator.set(rank="16")
    pin(calculator)
    expect(calculator.status("4 runs are pinned; unpin one of them first")).to_be_visible()
    expect_pinned(calculator, pins, runs.of())


def test_a_pinned_run_is_opened_unpinned_and_made_the_baseline(calculator, part):
    pin(calculator)
    calculator.set(method="lora")
    pin(calculator)
    calculator.set(sequence_length="4096")
    now = runs.of(method="lora", sequence_length="4096")
    part.get_by_role("button", name="Make baseline Pinned 2").click()
    expect_pinned(calculator, [runs.of(method="lora"), runs.of()], now)
    expect(part).to_be_focused()
    part.get_by_role("link", name="Open Pinned 2").click()
    expect_pinned(calculator, [runs.of(method="lora"), runs.of()], runs.of())
    part.get_by_role("button", name="Unpin Pinned 1, baseline").click()
    expect_pinned(calculator, [runs.of()], runs.of())
    part.get_by_role("button", name="Unpin Pinned 1, baseline").click()
    expect(part).to_be_hidden()
    expect(calculator.answer).to_be_focused()
    assert calculator.query == "?v=2"


def test_back_forward_and_a_reload_bring_pinned_runs_back(calculator, part):
    pin(calculator)
    calculator.set(method="lora")
    pin(calculator)
    page = calculator.page
    page.go_back()
    expect_pinned(calculator, [runs.of()], runs.of(method="lora"))
    page.go_back()
    expect_pinned(calculator, [runs.of()], runs.of())
    page.go_back()
    expect(part).to_be_hidden()
    for _ in range(3):
        page.go_forward()
    expect_pinned(calculator, [runs.of(), runs.of(method="lora")], runs.of(method="lora"))
    page.reload()
    calculator.wait_ready()
    expect_pinned(calculator, [runs.of(), runs.of(method="lora")], runs.of(method="lora"))


def test_a_link_opens_with_its_pinned_runs_and_names_what_it_cannot_use(calculator):
    calculator.travel("?v=2&rank=8&pin=%26method%3Dlora&pin=v%3D2%26rank%3D0")
    expect_pinned(calculator, [runs.of(rank="8", method="lora")], runs.of(rank="8"))
    expect(calculator.notices).to_contain_text("Pinned run 2: Adapter rank must be")
    query = calculator.query
    calculator.share()
    expect(calculator.dialog.get_by_role("textbox", name="Link")).to_have_value(re.compile(re.escape(query) + "$"))
    calculator.page.keyboard.press("Escape")


def test_other_runs_of_the_page_are_opened_beside_the_pinned_ones(calculator):
    pin(calculator)
    calculator.region("Methods compared").get_by_role("link", name="LoRA", exact=True).click()
    expect_pinned(calculator, [runs.of()], runs.of(method="lora"))
    calculator.button("Reset").click()
    expect(calculator.region("Pinned runs")).to_be_hidden()
    assert calculator.query == "?v=2"


def test_runs_are_copied_as_markdown_and_saved_as_csv(calculator, part):
    pin(calculator)
    calculator.set(method="lora")
    expect_pinned(calculator, [runs.of()], runs.of(method="lora"))
    part.get_by_role("button", name="Copy as Markdown").click()
    expect(calculator.status("Markdown copied")).to_be_visible()
    assert calculator.root.evaluate("navigator.clipboard.readText()") == pins_report.markdown([runs.of()], runs.of(method="lora"))
    with calculator.page.expect_download() as download:
        part.get_by_role("button", name="Save CSV").click()
    assert download.value.suggested_filename == "vramplan-runs.csv"
    assert download.value.path().read_text(encoding="utf-8") == pins_report.csv_text([runs.of()], runs.of(method="lora"))


def test_pins_that_the_address_has_no_room_for_stay_in_the_tab(visit):
    page = visit(permissions=["clipboard-read", "clipboard-write"]).open()
    numbers = {"accounting": "planning", "gpu": "custom", "sequence_length": "3000", "micro_batch": "3", "activation_multiplier": f"1.{'3' * 99}", "extra_allowance": f"0.{'7' * 99}"}
    page.set(**numbers)
    pins = []
    for digit in "12345678"[:MAX_PINS]:
        texts = numbers | {"budget": f"24.{digit * 124}", "activation_multiplier": f"1.{digit * 124}", "extra_allowance": f"0.{digit * 124}"}
        page.set(budget=texts["budget"], activation_multiplier=texts["activation_multiplier"], extra_allowance=texts["extra_allowance"])
        pin(page)
        pins.append(runs.of(**texts).settings)
    page.set(accounting="step", gpu="24", sequence_length="2048", micro_batch="1")
    page.expect_headline_alone(runs.of())
    in_address = pinned(read_query(page.query)).settings
    assert in_address == tuple(pins[: len(in_address)]) and len(in_address) < MAX_PINS
    table = page.region("Pinned runs").get_by_role("table", name="Pinned runs and the one as it is")
    expect(table.get_by_role("columnheader")).to_have_count(MAX_PINS + 1)
    page.page.reload()
    page.wait_ready()
    expect(table.get_by_role("columnheader")).to_have_count(MAX_PINS + 1)

    left = counted(MAX_PINS - len(in_address), "pinned run")
    told = page.root.get_by_text(f"There is no room for the last {left}. A settings file holds every setting and every pinned run")
    expect(told).to_be_visible()
    page.share()
    expect(page.dialog).to_contain_text(f"The link has no room for the last {left}; the settings file holds everything")
    with page.page.expect_download() as saving:
        page.dialog.get_by_role("button", name="Save settings file").click()
    page.page.keyboard.press("Escape")
    page.button("Reset").click()
    expect(page.region("Pinned runs")).to_be_hidden()
    page.choose_file("vramplan-settings.json", saving.value.path().read_bytes())
    beside = pins_report.side_by_side([estimate(each) for each in pins], runs.of())
    expect(rows_of(table)).to_have_text(["".join((row.label, *row.cells)) for row in beside.rows])
    expect(told).to_be_visible()


def test_the_keyboard_alone_is_enough(calculator, part):
    calculator.button("Pin this run").focus()
    calculator.page.keyboard.press("Enter")
    expect(calculator.button("Pin this run")).to_be_focused()
    calculator.page.keyboard.press("Tab")
    expect(calculator.answer.get_by_role("link", name="the same peak as the baseline")).to_be_focused()
    unpin = part.get_by_role("button", name="Unpin Pinned 1, baseline")
    unpin.focus()
    calculator.page.keyboard.press("Space")
    expect(part).to_be_hidden()
    expect(calculator.answer).to_be_focused()


def test_axe_finds_nothing_and_nothing_scrolls_sideways(calculator):
    pin(calculator)
    calculator.set(method="lora")
    pin(calculator)
    calculator.set(method="full", gpu="80")
    expect_pinned(calculator, [runs.of(), runs.of(method="lora")], runs.of(method="full", gpu="80"))
    assert findings(calculator) == {}
