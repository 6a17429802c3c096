"""What makes a run fit, on the page: sets of changes that open the run, what is kept and required, and how far a run can grow.

Belongs here: what a person does with the part. Which sets are found, and that none is missed: tests/test_make_fit.py.
"""

import re

from playwright.sync_api import expect
import pytest

from vramplan import make_fit_report, report
from vramplan.asked import read_asked
from vramplan.front import front
from vramplan.growth import growth
from vramplan.link import to_query
from vramplan.make_fit import Wanted, make_fit
import runs

TIGHT = {"method": "lora", "gpu": "16", "sequence_length": "4096"}
LARGE = {"method": "lora", "gpu": "24", "sequence_length": "4096", "micro_batch": "8"}


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


def test_what_is_asked_for_is_part_of_the_address(visit):
    asked = {"keep": ["method", "model"], "at_least": {"sequence_length": 4096}}
    run = runs.of(**LARGE).settings
    calculator = visit().open(f"?{to_query(run)}&keep=method,model,colour&at_least=sequence_length=4096")
    part = calculator.region("Make it fit")
    expect(calculator.notices).to_contain_text("got “colour”. The rest is used.")
    made = make_fit(run, **asked)
    expect_sets(part, made)
    part.get_by_text("What must stay", exact=True).click()
    expect(part.get_by_role("checkbox", name="Training method")).to_be_checked()
    expect(part.get_by_role("checkbox", name="Model", exact=True)).to_be_checked()
    box = part.get_by_label("Sequence length of at least")
    expect(box).to_have_value("4096")

    part.get_by_role("checkbox", name="Gradient checkpointing").check()
    more = make_fit(run, keep=[*asked["keep"], "checkpointing"], at_least=asked["at_least"])
    expect_sets(part, more)
    box.fill("many")
    box.press("Enter")
    box.fill("2048")
    box.press("Enter")
    least = make_fit(run, keep=more.wanted.keep, at_least={"sequence_length": 2048})
    expect_sets(part, least)
    assert read_asked(calculator.query).wanted == least.wanted
    calculator.page.go_back(wait_until="commit")
    expect(box).to_have_value("")
    calculator.page.go_back(wait_until="commit")
    expect_sets(part, more)
    assert read_asked(calculator.query).wanted == more.wanted
    calculator.page.go_back(wait_until="commit")
    expect_sets(part, made)
    expect(part.get_by_role("checkbox", name="Gradient checkpointing")).not_to_be_checked()
    calculator.page.go_forward(wait_until="commit")
    calculator.page.reload()
    calculator.wait_ready()
    expect_sets(part, more)

    row = make_fit_report.offer_rows(more)[0]
    part.get_by_role("link", name="; ".join(row.changes), exact=True).click()
    calculator.expect_headline(runs.of_query(row.query))
    assert read_asked(calculator.query).wanted == more.wanted
    calculator.button("Reset").click()
    calculator.expect_headline(runs.of())
    assert read_asked(calculator.query).wanted == Wanted()


def test_what_is_locked_in_a_frame_stays_when_a_run_is_made_to_fit(visit):
    run = runs.of(**LARGE).settings
    lock = "model,method,sequence_length"
    calculator = visit().open(f"?{to_query(run)}&keep=checkpointing&embed=1&panels=headline,make-fit&lock={lock}")
    part = calculator.region("Make it fit")
    expect_sets(part, make_fit(run, keep=[*lock.split(","), "checkpointing"]))
    part.get_by_text("What must stay", exact=True).click()
    for name in ("Model", "Training method", "Sequence length"):
        expect(part.get_by_role("checkbox", name=name, exact=True)).to_be_disabled()
        expect(part.get_by_role("checkbox", name=name, exact=True)).to_be_checked()
    part.get_by_role("checkbox", name="Gradient checkpointing").uncheck()
    made = make_fit(run, keep=lock.split(","))
    expect_sets(part, made)
    assert read_asked(calculator.query).wanted == Wanted()
    row = make_fit_report.offer_rows(made)[0]
    part.get_by_role("link", name="; ".join(row.changes), exact=True).click()
    calculator.expect_headline_alone(runs.of_query(row.query))
    box = part.get_by_label("Sequence length of at least")
    box.fill("8192")
    box.press("Enter")
    expect(part.get_by_role("status")).to_have_text("sequence_length is kept at 4,096, so it cannot be at least 8,192.")
    link = calculator.root.get_by_role("link", name="Full page").get_attribute("href")
    assert read_asked(link).wanted == Wanted(at_least={"sequence_length": 8192})


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
