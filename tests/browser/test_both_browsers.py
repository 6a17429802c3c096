"""The core journeys, in Chromium and in Firefox: the same pages, the same steps, the same numbers."""

import json
from pathlib import Path
import re

from playwright.sync_api import expect
import pytest

from conftest import sharing, visiting
from configurations import random_configurations
from vramplan import report, words
from vramplan.chart import layout
from vramplan.fit import fit
from vramplan.view import read_view
import answers
import files
import runs
from test_embedding import AS_HIGH, ASKED, BORDERS, documentation, expect_announced, expect_no_chrome, expect_panels, full_page, other_site
from test_fit_map import bring_to_sight, shown
from test_pins import expect_pinned, pin
from test_same_bytes import IN_PAGE

FIXTURES = documentation, other_site
"""Those of test_embedding.py that are used here, too."""

LINK = {"model": "qwen3-8b", "method": "lora", "rank": "32", "gpu": "48", "sequence_length": "4096"}
QUERY = "?v=2&" + "&".join(f"{name}={text}" for name, text in LINK.items())
CASES = [{}, LINK, *random_configurations(6, seed=30), *random_configurations(6, seed=31, accounting="step")]


@pytest.fixture(scope="module", params=["chromium", "firefox"])
def each_browser(request):
    """Chromium, then Firefox."""
    return request.getfixturevalue({"chromium": "browser", "firefox": "firefox"}[request.param])


@pytest.fixture
def visit(each_browser, site):
    yield from visiting(each_browser, site)


@pytest.fixture(scope="module")
def shared_visit(each_browser, site):
    yield from sharing(each_browser, site)


def test_the_opening_shows_its_numbers(calculator):
    run = runs.of()
    calculator.expect_headline(run)
    calculator.expect_rows(calculator.table("What fills the memory"), runs.component_rows(run))
    calculator.expect_rows(calculator.table("What fits"), runs.change_rows(report.alternatives(run, fit(run.settings))))


def test_what_is_typed_changes_the_numbers_key_by_key(calculator):
    box = calculator.control("sequence_length")
    box.press("ControlOrMeta+A")
    for place, key in enumerate("4096", start=1):
        box.press(key)
        calculator.expect_headline(runs.of(sequence_length="4096"[:place]))
        expect(box).to_be_focused()
    assert runs.of_query(calculator.query) == runs.of(sequence_length="4096")


def test_what_cannot_be_used_is_said_and_put_right(calculator):
    calculator.type_number("rank", "many")
    calculator.expect_problems(runs.sentences(rank="many").values())
    calculator.problems.get_by_role("link").click()
    expect(calculator.control("rank")).to_be_focused()
    expect(calculator.control("rank")).to_have_attribute("aria-invalid", "true")
    calculator.type_number("rank", "8")
    expect(calculator.problems).not_to_be_visible()
    calculator.expect_headline(runs.of(rank="8"))


def test_every_change_is_one_step_and_back_and_forward_return(calculator):
    steps = [{}]
    for change in ({"method": "lora"}, {"gpu": "16"}, {"model": "llama-3.2-3b"}):
        calculator.set(**change)
        steps.append({**steps[-1], **change})
        calculator.expect_headline(runs.of(**steps[-1]))
    box = calculator.control("micro_batch")
    box.press("ControlOrMeta+A")
    box.press("2")
    box.press("Tab")  # keys and no fill, which Firefox does not take for a change of the visitor's
    steps.append({**steps[-1], "micro_batch": "2"})
    calculator.expect_headline(runs.of(**steps[-1]))
    for texts in steps[-2::-1]:
        calculator.root.evaluate("history.back()")
        calculator.expect_headline(runs.of(**texts))
    for texts in steps[1:]:
        calculator.root.evaluate("history.forward()")
        calculator.expect_headline(runs.of(**texts))
    for name, text in steps[-1].items():
        calculator.expect_setting(name, text)


def test_a_run_of_what_fits_is_opened(calculator):
    calculator.apply("What fits", words.change_text({"optimizer": "adamw-8bit"}))
    calculator.expect_headline(runs.of(optimizer="adamw-8bit"))
    calculator.expect_setting("optimizer", "adamw-8bit")
    found = fit(runs.of(optimizer="adamw-8bit").settings)
    longest = str(found.longest_sequence.value)
    expect(calculator.tile("Longest sequence")).to_contain_text(report.maxima(runs.of(optimizer="adamw-8bit"), found)[1].sentence)
    calculator.tile("Longest sequence").get_by_role("link").click()
    calculator.expect_headline(runs.of(optimizer="adamw-8bit", sequence_length=longest))


def test_the_curve_is_read_by_keyboard(calculator):
    run = runs.of()
    points = [each.point for each in layout(run, longest_fitting=fit(run.settings).longest_sequence.value).samples]
    here = next(place for place, point in enumerate(points) if point.sequence_length == run.settings.sequence_length)
    calculator.expect_renewed()
    calculator.curve_slider.focus()
    for key, place in (("ArrowRight", here + 1), ("ArrowLeft", here), ("End", -1), ("Home", 0)):
        calculator.page.keyboard.press(key)
        expect(calculator.curve_reading).to_have_text(report.reading(points[place]))
    expect(calculator.curve_slider).to_have_attribute("aria-valuetext", report.reading(points[0]))


def test_the_map_is_read_by_keyboard_and_opens_a_run(calculator):
    drawn = shown()
    row, column = drawn.made.current
    bring_to_sight(calculator)
    calculator.map_link.focus()
    calculator.page.keyboard.press("ArrowUp")
    calculator.expect_map_at(drawn, row + 1, column)
    calculator.page.keyboard.press("Enter")
    cell = drawn.cell(row + 1, column)
    calculator.expect_headline(runs.of(micro_batch=str(cell.micro_batch), sequence_length=str(cell.sequence_length)))


def test_a_change_is_held_against_a_pinned_run(calculator):
    pin(calculator)
    calculator.set(method="lora")
    expect_pinned(calculator, [runs.of()], runs.of(method="lora"))


def test_a_run_is_handed_on_by_link(calculator):
    calculator.set(**LINK)
    calculator.share()
    assert runs.of_query(calculator.shared("Link")) == runs.of(**LINK)
    calculator.dialog.get_by_role("button", name="Copy Terminal").click()
    expect(calculator.dialog.get_by_role("status")).to_contain_text("Terminal copied")
    calculator.page.keyboard.press("Escape")
    expect(calculator.dialog).not_to_be_visible()
    expect(calculator.button("Share")).to_be_focused()
    calculator.button("Copy link").click()
    expect(calculator.status("Link copied")).to_be_visible()
    calculator.open_bring()
    calculator.brought_text.focus()
    calculator.page.keyboard.press("ControlOrMeta+V")
    expect(calculator.brought_text).to_have_value(calculator.page.url)


def test_a_model_is_brought_pasted_and_chosen(calculator):
    calculator.bring(files.MIXTRAL)
    expect(calculator.brought).to_contain_text("46,702,792,704")
    calculator.choose_file("config.json", files.LLAMA.encode())
    expect(calculator.brought).to_contain_text("8,030,261,248")
    calculator.expect_setting("model", "custom")


def test_every_answer_is_the_same_in_the_page(calculator):
    source = Path(answers.__file__).read_text(encoding="utf-8")
    where, text = calculator.root.evaluate(IN_PAGE, [source, json.dumps(CASES)])
    assert where == "emscripten" and len(json.loads(text)) == len(CASES)
    assert json.loads(text) == json.loads(answers.answers(json.dumps(CASES)))


def test_a_frame_of_documentation_is_used_and_talks_with_the_page_around(documentation):
    opened = documentation(f"v=2&gpu=12&{ASKED}")
    (framed,) = opened.frames
    expect_announced(opened, runs.of(gpu="12"))
    framed.expect_headline_alone(runs.of(gpu="12"))
    expect_panels(framed, read_view(ASKED).panels)
    expect_no_chrome(framed)
    framed.button("Settings").click()
    expect(framed.control("model")).to_be_disabled()
    box = framed.control("sequence_length")
    box.press("ControlOrMeta+A")
    box.press_sequentially("512")
    framed.expect_headline_alone(runs.of(gpu="12", sequence_length="512"))
    opened.say({"vramplan": 1, "type": "settings", "settings": {"rank": 8, "model": "llama-3.2-3b"}})
    run = runs.of(gpu="12", sequence_length="512", rank="8")
    expect_announced(opened, run)
    framed.expect_setting("rank", "8")
    framed.apply("What fits", re.compile("^Adapter targets: Attention only"))
    run = runs.of(gpu="12", sequence_length="512", rank="8", adapter_targets="attention")
    framed.expect_headline_alone(run)
    assert runs.of_query(full_page(framed).get_attribute("href")) == run
    framed.root.evaluate(AS_HIGH)
    assert opened.box_height() == pytest.approx(framed.root.evaluate("document.body.getBoundingClientRect().height") + BORDERS, abs=1.5)


def test_a_link_opens_its_run_and_a_reload_keeps_it(visit):
    page = visit().open(QUERY)
    page.expect_headline(runs.of(**LINK))
    page.set(rank="64")
    page.page.reload()
    page.wait_ready()
    page.expect_headline(runs.of(**LINK | {"rank": "64"}))
    page.expect_setting("rank", "64")
