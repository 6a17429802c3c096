"""What makes a run fit, on the page: sets of changes that open the run, what is kept and required, and how far a run can grow.

Belongs here: what a person does with the part. Which sets are found, and that none is missed: tests/test_make_fit.py.
"""

import re

from playwright.sync_api import expect
import pytest

from vramplan import make_fit_report, report
from vramplan.front import front
from vramplan.growth import growth
from vramplan.link import to_query
from vramplan.make_fit import make_fit
import runs

TIGHT = {"method": "lora", "gpu": "16", "sequence_length": "4096"}


@pytest.fixture
def part(calculator):
    return calculator.region("Make it fit")


def rows(part):
    return part.get_by_role("row").filter(has=part.page.get_by_role("rowheader"))


def bring_to_sight(part):
    """Scroll to the part, and wait until the search is over."""
    part.evaluate("part => part.scrollIntoView()")
    expect(part.locator("[aria-busy=true]")).to_have_count(0, timeout=30_000)


def expect_sets(part, made):
    """Every set of changes is there, those behind the summary too, in order and linked to its run."""
    bring_to_sight(part)
    expect(part).to_contain_text(make_fit_report.sentence(made))
    told = make_fit_report.offer_rows(made)
    sets = part.get_by_role("table", name=re.compile("of changes that make the run fit"), include_hidden=True)
    links = sets.get_by_role("link", include_hidden=True)
    expect(links).to_have_count(len(told))
    for link, row in zip(links.all(), told, strict=True):
        expect(link).to_have_text("; ".join(row.changes))
        expect(link).to_have_attribute("href", f"?{row.query}")


def test_a_run_that_does_not_fit_has_the_sets_first_and_a_click_makes_it_fit(calculator, part):
    calculator.set(**TIGHT)
    made = make_fit(runs.of(**TIGHT).settings)
    expect_sets(part, made)
    first = calculator.region("What fills the memory")
    assert part.bounding_box()["y"] < first.bounding_box()["y"]
    row = make_fit_report.offer_rows(made)[0]
    expect(rows(part).first).to_contain_text(row.peak)
    expect(rows(part).first).to_contain_text("; ".join(row.costs))
    part.get_by_role("link", name="; ".join(row.changes), exact=True).click()
    calculator.expect_headline(runs.of_query(row.query))
    calculator.page.go_back()
    calculator.expect_headline(runs.of(**TIGHT))


def test_what_is_kept_is_in_no_set_any_more(calculator, part):
    calculator.set(**TIGHT)
    bring_to_sight(part)
    part.get_by_text("What must stay", exact=True).click()
    part.get_by_role("checkbox", name="Sequence length").check()
    run = runs.of(**TIGHT).settings
    expect_sets(part, make_fit(run, keep=["sequence_length"]))
    part.get_by_role("checkbox", name="Training method").focus()
    calculator.page.keyboard.press("Space")
    expect_sets(part, make_fit(run, keep=["sequence_length", "method"]))
    part.get_by_role("checkbox", name="Training method").uncheck()
    part.get_by_role("checkbox", name="Sequence length").uncheck()
    expect_sets(part, make_fit(run))


def test_what_is_required_is_in_every_set_and_a_bad_number_is_one_sentence(calculator, part):
    calculator.set(**TIGHT)
    bring_to_sight(part)
    part.get_by_text("What must stay", exact=True).click()
    box = part.get_by_label("Sequence length of at least")
    box.fill("8192")
    box.press("Enter")
    expect_sets(part, make_fit(runs.of(**TIGHT).settings, at_least={"sequence_length": 8192}))
    box.fill("many")
    box.press("Enter")
    expect(part.get_by_role("status")).to_have_text("sequence_length must be a whole number; got “many”.")
    expect(box).to_have_attribute("aria-invalid", "true")
    expect(part.get_by_role("table")).to_have_count(0)
    box.fill("")
    box.press("Enter")
    expect_sets(part, make_fit(runs.of(**TIGHT).settings))
    expect(box).to_have_attribute("aria-invalid", "false")


def test_a_run_that_fits_says_how_far_it_can_grow(calculator, part):
    bring_to_sight(part)
    expect(part).to_contain_text("The run fits as it is.")
    found = growth(runs.of().settings)
    told = make_fit_report.grown_rows(found)
    expect(rows(part)).to_have_count(len(told))
    for line, row in zip(rows(part).all(), told, strict=True):
        for text in (row.value, make_fit_report.changes_text(row.offer), row.offer.peak):
            expect(line).to_contain_text(text)
    rows(part).nth(1).get_by_role("link").click()
    calculator.expect_headline(runs.of_query(told[1].offer.query))
    for name in ("sequence_length", "micro_batch"):
        calculator.expect_setting(name, str(getattr(found[1].offer.settings, name)))


def test_where_no_set_is_enough_there_is_somewhere_to_turn(calculator, part):
    texts = {"model": "llama-3.1-70b", "gpu": "24"}
    calculator.set(**texts)
    made = make_fit(runs.of(**texts).settings)
    bring_to_sight(part)
    expect(part).to_contain_text(make_fit_report.sentence(made))
    for row in make_fit_report.turn_rows(made):
        expect(part).to_contain_text(row.text)
    part.get_by_role("link", name=re.compile("^Use this ?: Largest model of the family")).click()
    calculator.expect_headline(runs.of(model=made.smaller_model.settings.model, gpu="24"))
    assert report.headline(made.smaller_model).verdict == "Fits"


def test_every_point_of_the_front_opens_its_run_with_the_keyboard_too(calculator, part):
    bring_to_sight(part)
    part.get_by_text("Peak against effective batch and sequence length", exact=True).click()
    settings = runs.of().settings
    points = front(settings, [each.offer for each in growth(settings)])
    links = part.get_by_role("link", name=re.compile("^Open effective batch"))
    expect(links).to_have_count(len(points))
    queries = {f"?{to_query(point.settings)}" for point in points}
    assert {link.get_attribute("href") for link in links.all()} == queries
    link = links.last
    query = link.get_attribute("href").removeprefix("?")
    link.focus()
    link.press("Enter")
    calculator.expect_headline(runs.of_query(query))
