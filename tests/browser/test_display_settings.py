"""What a visitor has set for all pages: larger letters, zoom, wider spacing, colours of one's own, less motion."""

from playwright.sync_api import expect
import pytest

from configurations import OPENING
from vramplan import report
from vramplan.view import PANELS
import runs
from test_accessibility import PHONE, SIDEWAYS, TABLET, WIDE, everything_unfolded

CLIPPED = """() => [...document.querySelectorAll('body *')].filter(each => {
    const style = getComputedStyle(each);
    return each.checkVisibility() && each.clientWidth > 2 && ['hidden', 'clip'].includes(style.overflowX) && each.scrollWidth > each.clientWidth + 1;
}).map(each => each.outerHTML.slice(0, 120))"""
"""Elements whose text is wider than they show."""

MOVING = """() => [...document.querySelectorAll('*')].filter(each => {
    const style = getComputedStyle(each);
    return style.animationName !== 'none' || style.scrollBehavior === 'smooth' || style.transitionDuration.split(', ').some(time => parseFloat(time) > 0);
}).map(each => each.outerHTML.slice(0, 120))"""

SPACED = """() => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync('* { line-height: 1.5 !important; letter-spacing: .12em !important; word-spacing: .16em !important } p { margin-bottom: 2em !important }');
    document.adoptedStyleSheets = [sheet];
}"""
"""The spacing of WCAG 2.2, 1.4.12."""

USUAL_LETTERS = {"standard": 16, "fixed": 13}


@pytest.fixture
def frame(visit):
    """A frame that shows everything."""
    return visit().open(f"?v=2&embed=1&panels={','.join(PANELS)}&lock=model")


def set_letters(page, times):
    """Set the size of letters that a browser is set to, as a multiple of the usual one."""
    session = page.page.context.new_cdp_session(page.page)
    session.send("Page.setFontSizes", {"fontSizes": {name: size * times for name, size in USUAL_LETTERS.items()}})
    assert page.root.evaluate("getComputedStyle(document.documentElement).fontSize") == f"{USUAL_LETTERS['standard'] * times}px"
    session.detach()


def expect_all_in_sight(page, sizes):
    found = {}
    for size in sizes:
        page.page.set_viewport_size(size)
        found[size["width"]] = page.root.evaluate(SIDEWAYS), page.root.evaluate(CLIPPED)
    assert found == {size["width"]: (0, []) for size in sizes}


@pytest.mark.parametrize("shown", ("calculator", "frame"))
def test_letters_of_twice_the_size_and_wider_spacing_cut_nothing_off(request, shown):
    page = request.getfixturevalue(shown)
    everything_unfolded(page)
    set_letters(page, 2)
    expect_all_in_sight(page, (WIDE, TABLET))
    set_letters(page, 1)
    page.root.evaluate(SPACED)
    expect_all_in_sight(page, (WIDE, TABLET, PHONE))
    page.root.evaluate("document.adoptedStyleSheets = []")


def test_nothing_moves_by_itself(calculator):
    calculator.page.emulate_media(reduced_motion="reduce")
    calculator.share()
    assert (calculator.root.evaluate(MOVING), calculator.root.evaluate("document.getAnimations().length")) == ([], 0)
    calculator.page.emulate_media(reduced_motion="no-preference")


@pytest.mark.parametrize("texts", [{}, {"method": "full"}], ids=("fits", "does-not"))
def test_choices_and_verdicts_are_told_apart_in_a_visitor_s_own_colours(calculator, texts):
    calculator.page.emulate_media(forced_colors="active")
    calculator.set(**texts)
    run = runs.of(**texts)
    chosen = OPENING["method"] if not texts else texts["method"]
    for value in ("full", "lora", "qlora"):
        outline = calculator.radio("method", value).evaluate("each => getComputedStyle(each.nextElementSibling).outlineStyle")
        assert (outline != "none") == (value == chosen), value
    weight = "each => Number(getComputedStyle(each.firstElementChild).fontWeight)"
    assert calculator.accounting("Training step").evaluate(weight) > calculator.accounting("Planning formula").evaluate(weight)
    expect(calculator.answer).to_contain_text(report.headline(run).verdict)
    stroke, ground = calculator.answer.evaluate("card => [getComputedStyle(card.querySelector('[data-verdict] svg[aria-hidden] path')).stroke, getComputedStyle(card).backgroundColor]")
    assert stroke != ground
    parts = calculator.answer.evaluate("card => [...card.querySelectorAll('rect[data-part]')].map(each => getComputedStyle(each).fill)")
    assert len(set(parts)) == len(parts) > 3
    calculator.page.keyboard.press("Tab")
    assert calculator.root.evaluate("getComputedStyle(document.activeElement).outlineStyle !== 'none' || getComputedStyle(document.activeElement.nextElementSibling).outlineStyle !== 'none'")
    calculator.page.emulate_media(forced_colors="none")
