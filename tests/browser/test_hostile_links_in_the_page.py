"""Links that were made to break, stall or deceive, opened in the page: nothing runs, nothing is lost, the address stays short."""

from functools import cache

from playwright.sync_api import expect
import pytest

from hostile import hostile
import runs
from vramplan.catalogue import defaults
from vramplan.checks import check
from vramplan.fields import BY_NAME
from vramplan.link import MAX_QUERY, read_query
from vramplan.pins import pinned

LINKS, AT_ONCE, OPENED = 300, 50, 12
SERVED = 8_000
"""Characters that a server takes in one line without being asked for more."""

TRAVEL = """async queries => {
    const outcomes = [];
    for (const query of queries) {
        const begun = performance.now();
        history.pushState(null, "", location.pathname + query);
        dispatchEvent(new PopStateEvent("popstate"));
        const spent = performance.now() - begun;
        await new Promise(done => setTimeout(done, 100)); // browsers take 200 changes of the address in ten seconds
        outcomes.push({
            spent, address: location.href,
            trouble: !document.getElementById("trouble").hidden,
            strange: document.querySelectorAll("script:not([src]), iframe, object, embed, base, img:not([alt]), [onerror], [onload], [onfocus], a[href^='javascript:'], a[href*='elsewhere']").length,
            elements: document.querySelectorAll("#notices *").length,
            values: Object.fromEntries([...document.querySelectorAll("#form [name]")].filter(each => each.type !== "radio" || each.checked).map(each => [each.name, each.value])),
        });
    }
    return outcomes;
}"""
PATIENCE = 5_000
"""Milliseconds for one link on a busy machine; usual are some tens."""


@cache
def worst():
    """The longest, those with most parts, and those with pinned runs of the first thousands, and as many others."""
    made = [hostile(seed) for seed in range(3_000)]
    made = [each for each in made if each.query.startswith("?") and "#" not in each.query and len(each.query) < 100_000]
    ranked = [sorted(made, key=rank, reverse=True) for rank in (lambda each: len(each.query), lambda each: each.query.count("&"), lambda each: each.query.count("pin="))]
    chosen = {each.query: each for many in zip(*ranked, made, strict=True) for each in many}
    return list(chosen.values())[:LINKS]


def is_sound(made, outcome):
    """Nothing ran, and the address holds what is shown, in few characters."""
    assert not outcome["trouble"] and outcome["strange"] == 0, made.query
    assert outcome["spent"] < PATIENCE, made.query
    assert len(outcome["address"]) <= MAX_QUERY, made.query
    assert outcome["elements"] < 30
    for name, text in made.untouched.items():
        assert outcome["values"][name] == text, (name, made.query)
        assert read_query(outcome["address"]).all_texts[name] == text, (name, made.query)


@pytest.mark.parametrize("first", range(0, LINKS, AT_ONCE))
def test_travelling_to_hostile_links_breaks_nothing(calculator, first):
    links = worst()[first:first + AT_ONCE]
    calculator.travel("?v=2&rank=24&method=lora")
    outcomes = calculator.root.evaluate(TRAVEL, [each.query for each in links])
    for made, outcome in zip(links, outcomes, strict=True):
        is_sound(made, outcome)
    calculator.travel("?v=2&rank=24&method=lora&sequence_length=1024")
    calculator.expect_headline(runs.of(rank="24", method="lora", sequence_length="1024"))
    calculator.page.go_back(wait_until="commit")
    last = links[-1]
    texts = read_query(last.query).all_texts
    checked = check(texts, defaults())
    if checked.errors:
        expect(calculator.problems.get_by_role("link").first).to_be_visible()
    for name, text in last.untouched.items():
        calculator.expect_setting(name, text)


def test_opening_hostile_links_breaks_nothing(visit):
    links = [each for each in worst() if len(each.query) < SERVED and each.untouched][:OPENED]
    assert len(links) == OPENED
    page = visit().open("?v=2&rank=24")
    for made in links:
        page.open(made.query.encode("utf-8", "replace").decode())
        expect(page.root.get_by_role("alert")).not_to_be_visible()
        for name, text in made.untouched.items():
            page.expect_setting(name, text)
        assert len(page.page.url) <= MAX_QUERY
        link = read_query(made.query)
        if told := (*link.notices, *pinned(link).notices):
            expect(page.notices.get_by_role("listitem").first).to_be_visible()
            assert page.notices.get_by_role("listitem").count() >= len(told)
    page.page.go_back(wait_until="commit")
    page.wait_ready()
    for name, text in links[-2].untouched.items():
        page.expect_setting(name, text)


def test_what_the_address_has_no_room_for_is_named_and_saved_with_the_keyboard(calculator):
    long = "9" * (MAX_QUERY + 500)
    calculator.travel(f"?v=2&micro_batch=2&rank={long}&method=lora")
    told = calculator.root.get_by_role("heading", name="Not in the address").locator("..")
    expect(told).to_contain_text(f"There is no room for {BY_NAME['rank'].label}.")
    assert len(calculator.page.url) <= MAX_QUERY and "micro_batch=2" in calculator.query
    calculator.expect_setting("rank", long)
    save = told.get_by_role("button", name="Save settings file")
    save.focus()
    with calculator.page.expect_download() as saving:
        calculator.page.keyboard.press("Enter")
    saved = saving.value.path().read_bytes()
    calculator.set_number("rank", "16")
    expect(told).not_to_be_visible()
    calculator.button("Reset").click()
    calculator.choose_file("vramplan-settings.json", saved)
    calculator.expect_setting("rank", long)
    calculator.expect_setting("micro_batch", "2")
    expect(told).to_be_visible()


def test_a_place_in_the_page_makes_no_address_too_long(calculator):
    calculator.travel("?v=2&rank=24#" + "x" * 3_000)
    calculator.set_number("rank", "32")
    assert calculator.query == "?v=2&rank=32" and len(calculator.page.url) <= MAX_QUERY


def test_a_browser_that_takes_no_change_of_the_address_is_asked_again(calculator):
    """Some refuse with an error, others in silence."""
    for rank, refusal in (("32", "() => {}"), ("48", "() => { throw new DOMException('too often', 'SecurityError'); }")):
        calculator.travel("?v=2&rank=24")
        calculator.expect_headline(runs.of(rank="24"))
        calculator.root.evaluate(f"() => {{ history.pushState = history.replaceState = {refusal}; }}")
        calculator.set_number("rank", rank)
        calculator.expect_headline(runs.of(rank=rank))
        assert calculator.query == "?v=2&rank=24"
        calculator.root.evaluate("() => { delete history.pushState; delete history.replaceState; }")
        expect(calculator.page).to_have_url(f"{calculator.address}?v=2&rank={rank}")
