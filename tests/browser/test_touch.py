"""A phone of 360 pixels, held in the hand: every step is a tap, everything is large enough for a finger, and nothing needs a mouse."""

from playwright.sync_api import expect
import pytest

from conftest import sharing
from vramplan import report, words
from vramplan.fit import fit
from vramplan.view import PANELS
import runs
from test_accessibility import PHONE, SIDEWAYS, everything_unfolded, invalid
from test_pins import pin

ON_HOVER = """() => [...document.styleSheets].flatMap(sheet => [...sheet.cssRules]).flatMap(rule => [rule, ...rule.cssRules ?? []])
    .filter(rule => rule.selectorText?.includes(':hover') && [...rule.style].some(name => /^(display|visibility|opacity|clip|content|pointer)/.test(name)))
    .map(rule => rule.cssText)"""
"""Rules that show something only where a mouse is."""

ONLY_IN_TITLE = """() => [...document.querySelectorAll('[title]:not(iframe)')].filter(each => !each.textContent.includes(each.title)).map(each => each.outerHTML.slice(0, 120))"""
"""Elements that show a mouse what their text does not say."""

TOO_SMALL = """least => {
    const boxOf = each => (each.matches('label *') ? each.closest('label') : each).getBoundingClientRect();
    const targets = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
        .filter(each => each.checkVisibility({ visibilityProperty: true }) && !each.disabled && (!document.querySelector('dialog[open]') || each.closest('dialog')))
        .map(each => ({ each, box: boxOf(each) })).filter(({ box }) => box.width > 1 && box.height > 1);
    const small = ({ box }) => box.width < least - .5 || box.height < least - .5;
    const middle = ({ box }) => [box.x + box.width / 2, box.y + box.height / 2];
    const near = (one, other) => {
        const [x, y] = middle(one), { box } = other;
        if (small(other)) { const [a, b] = middle(other); return Math.hypot(x - a, y - b) < least; }
        return Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom)) < least / 2;
    };
    const inText = ({ each }) => each.tagName === 'A' && each.closest('p, dd, li, .cost') !== null && getComputedStyle(each).display === 'inline';
    const lie = (one, other) => one.each.contains(other.each) || other.each.contains(one.each) || boxOf(one.each) === boxOf(other.each);
    const elsewhere = ({ each }) => each.closest('svg') && targets.some(other => !other.each.closest('svg') && other.each.getAttribute('href') === each.getAttribute('href'));
    return targets.filter(one => small(one) && !inText(one) && !elsewhere(one) && targets.some(other => other !== one && !lie(one, other) && near(one, other)))
        .map(({ each, box }) => `${each.tagName} ${each.textContent.trim().slice(0, 40) || each.id} ${box.width}x${box.height}`);
}"""
"""Targets below the least size that have no room of that size around them either, links within a text apart, and those of a drawing whose table has them too."""

LEAST_TARGET = 24
"""CSS pixels, WCAG 2.2, 2.5.8."""


@pytest.fixture(scope="module")
def shared_visit(browser, site):
    yield from sharing(browser, site, viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2)


@pytest.fixture
def phone(shared_visit):
    page = shared_visit.calculator
    page.start_again(PHONE)
    yield page
    shared_visit.watch.check()


def expect_room_for_fingers(page):
    assert page.root.evaluate(TOO_SMALL, LEAST_TARGET) == []
    assert page.root.evaluate(SIDEWAYS) == 0
    assert page.root.evaluate("visualViewport.scale") == 1


def test_a_run_is_planned_and_handed_on_by_taps_alone(phone):
    assert phone.root.evaluate("matchMedia('(hover: none)').matches && navigator.maxTouchPoints > 0")
    phone.control("model").tap()
    phone.control("model").fill("llama 3.2 3b")
    phone.matches("model").get_by_role("option", name="Llama 3.2 3B", exact=True).tap()
    phone.radio("method", "lora").tap()
    phone.expect_headline(runs.of(model="llama-3.2-3b", method="lora"))
    phone.accounting("Planning formula").tap()
    phone.expect_headline(runs.of(model="llama-3.2-3b", method="lora", accounting="planning"))
    phone.accounting("Training step").tap()
    now = runs.of(model="llama-3.2-3b", method="lora")
    wanted = words.change_text({"optimizer": "adamw-8bit"})
    (told,) = [each for each in report.alternatives(now, fit(now.settings)) if each.label == wanted]
    expect(phone.table("What fits").get_by_role("row").filter(has_text=wanted)).to_contain_text(told.peak)  # nothing moves under the finger any more
    phone.region("What fits").get_by_role("link", name=wanted).tap()
    run = runs.of(model="llama-3.2-3b", method="lora", optimizer="adamw-8bit")
    phone.expect_headline(run)

    drawing = phone.region("Memory against sequence length").get_by_role("img")
    drawing.scroll_into_view_if_needed()
    before = phone.curve_reading.text_content()
    box = drawing.bounding_box()
    phone.page.touchscreen.tap(box["x"] + box["width"] * .8, box["y"] + box["height"] / 2)
    expect(phone.curve_reading).not_to_have_text(before)

    phone.button("Share").tap()
    assert runs.of_query(phone.shared("Link")) == run
    phone.dialog.get_by_role("button", name="Close").tap()
    expect(phone.dialog).not_to_be_visible()


def test_nothing_needs_a_mouse_to_be_seen(phone):
    assert phone.root.evaluate(ON_HOVER) == []
    assert phone.root.evaluate(ONLY_IN_TITLE) == []


def test_a_frame_has_room_for_a_finger_and_is_used_by_taps(visit):
    page = visit(viewport=PHONE, has_touch=True, is_mobile=True, device_scale_factor=2).open(f"?v=2&embed=1&panels={','.join(PANELS)}&lock=model")
    page.button("Settings").tap()
    expect(page.form).not_to_be_visible()
    page.button("Settings").tap()
    page.radio("method", "lora").tap()
    page.expect_headline(runs.of(method="lora"))
    page.expect_renewed()
    page.region("What fits").get_by_role("link", name=words.change_text({"adapter_targets": "attention"})).tap()
    page.expect_headline(runs.of(method="lora", adapter_targets="attention"))
    expect_room_for_fingers(page)
    everything_unfolded(page)
    expect_room_for_fingers(page)


@pytest.mark.parametrize("state", (lambda page: None, pin, invalid, everything_unfolded, lambda page: page.share()), ids=("opening", "pinned", "invalid", "unfolded", "share"))
def test_every_target_has_room_for_a_finger_and_nothing_scrolls_sideways(phone, state):
    state(phone)
    expect_room_for_fingers(phone)
