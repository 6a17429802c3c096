"""Everyone can use it: no finding of axe-core in any state, the keyboard alone is enough, results are spoken after a pause."""

import re

from playwright.sync_api import expect
import pytest

from configurations import OPENING
from vramplan import accounts, report
from vramplan.evidence import evidence
from vramplan.view import PANELS
from vramplan_site.toolchain import axe_path
import files
import runs

WIDE, TABLET, PHONE = ({"width": 1440, "height": 900}, {"width": 768, "height": 1024}, {"width": 360, "height": 740})
NARROWEST = {"width": 320, "height": 640}
AXE = """async apart => {
    const part = document.querySelector(apart), place = document.createComment('');
    part?.replaceWith(place);
    const { violations } = await axe.run('html', { resultTypes: ['violations'] });
    if (part) place.replaceWith(part);
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).join(' | ')}`);
}"""
"""What axe-core finds. One part of the page may be taken out: wherever axe looks, its time grows with all elements there are."""

EVIDENCE = "#evidence"
"""A thousand cells that nothing changes: looked at once."""

SIDEWAYS = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
FOCUSABLE = """() => {
    const wanted = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
    const visible = each => each.checkVisibility({ visibilityProperty: true }) && !each.disabled;
    const stops = each => each.type !== 'radio' || each.checked;
    return [...document.querySelectorAll(wanted)].filter(each => visible(each) && stops(each)).map(describe);
}"""
DESCRIBE = """() => {
    globalThis.describe = each => {
        const place = [...document.querySelectorAll('*')].indexOf(each);
        return `${place} ${each.tagName} ${each.id || each.textContent.trim().slice(0, 40)}`;
    };
}"""

WITHOUT_RING = """() => {
    const focused = document.activeElement, near = [focused, focused.nextElementSibling, focused.closest('label')];
    const drawn = near.filter(each => each && each.getBoundingClientRect().width > 1 && getComputedStyle(each).opacity > 0);
    return drawn.some(each => getComputedStyle(each).outlineStyle !== 'none') ? '' : describe(focused);
}"""
"""The element with the focus, unless it has a ring; buttons that are drawn by their labels have it there."""

MOST_STOPS = 150


def does_not_fit(page):
    page.set(method="full")
    page.expect_headline(runs.of(method="full"))


def custom_everything(page):
    page.set(model="custom", gpu="custom", budget="20")
    page.expect_headline(runs.of(model="custom", gpu="custom", budget="20"))


def invalid(page):
    page.set(model="custom", hidden_size="none", sliding_window="?", rank="0", gpu="custom", budget="-1", lora_dropout="?", adapter_targets="w")
    expect(page.problems).to_be_visible()


def likely_and_partly_unchecked(page):
    texts = {"model": "llama-3.2-3b", "method": "lora", "loss": "fused-linear", "gpu": "8"}
    assert runs.of(**texts).verdict == "likely" and accounts.unchecked(runs.of(**texts))
    page.set(**texts)
    page.expect_headline(runs.of(**texts))


def unlikely_on_a_card(page):
    texts = {"gpu": "rtx-4090", "other_processes": "0.5", "sequence_length": "6700", "adapter_targets": "q,v"}
    assert runs.of(**texts).verdict == "unlikely"
    page.set(**texts)
    page.expect_headline(runs.of(**texts))


def planned(page):
    page.set(accounting="planning")
    page.expect_headline(runs.of(accounting="planning"))
    expect(page.region("The step, moment by moment")).not_to_be_visible()


def not_countable(page):
    page.set(optimizer="lion", accounting="planning")
    page.expect_no_number(*runs.why_not(optimizer="lion", accounting="planning"))


def everything_unfolded(page):
    for summary in page.root.locator("summary").filter(visible=True).all():
        summary.click()
    expect(page.table("Memory against sequence length")).to_be_visible()
    expect(page.control("optimizer")).to_be_visible()


def a_run_laid_over(page):
    page.button("Keep this run to compare").click()
    page.set(method="lora", gpu="16")
    expect(page.step).to_contain_text("Laid over:")
    page.step_slider.press("Home")


def notices(page):
    page.travel("?v=2&warp_speed=9&hidden_size=3")
    expect(page.notices).to_be_visible()


def unknown_choice(page):
    page.travel("?v=2&model=gpt-9&optimizer=sgd")
    expect(page.problems).to_be_visible()


def finding(page):
    page.find("model", "qwen")


def nothing_found(page):
    page.control("model").fill("no such model")
    expect(page.form.get_by_text("Nothing of that name").last).to_be_visible()


def brought_model(page):
    page.bring(files.MIXTRAL)
    expect(page.brought).to_contain_text("46,702,792,704")


def brought_adapter(page):
    page.bring(files.ADAPTER)
    expect(page.brought).to_contain_text("27,262,976")


def brought_training_file(page):
    page.bring("base_model: Qwen/Qwen3-8B\nadapter: qlora\nload_in_4bit: true\nsequence_len: 2048\nmicro_batch_size: 1\npeft_use_dora: true\nown_key: 1\nlearning_rate: 2e-5")
    expect(page.brought).to_contain_text("own_key")
    for title in ("Assumed (", "Read (", "Ignored ("):
        page.brought.get_by_text(title, exact=False).click()


def brought_nothing(page):
    page.bring("<html>")
    expect(page.brought).to_contain_text("a web page")


def share_dialog(page):
    page.share()
    page.dialog.get_by_role("button", name="Copy Link").click()
    expect(page.dialog.get_by_role("status")).to_contain_text("Link copied")


def share_dialog_unfolded(page):
    page.share()
    for name in ("In a page of documentation", "Settings that readers cannot change", "A badge for a README"):
        page.dialog.get_by_text(name, exact=True).first.click()
    expect(page.dialog.get_by_label("Markdown", exact=True)).to_be_visible()
    expect(page.dialog.frame_locator("iframe").get_by_role("button", name="Settings")).to_be_enabled(timeout=60_000)


STATES = (does_not_fit, likely_and_partly_unchecked, unlikely_on_a_card, planned, not_countable, custom_everything, invalid,
          everything_unfolded, a_run_laid_over, finding, nothing_found, brought_model, brought_adapter, brought_training_file, brought_nothing, notices, unknown_choice, share_dialog, share_dialog_unfolded)


def findings(page, looks=((WIDE, "light"), (PHONE, "dark")), apart=EVIDENCE):
    """What is wrong with the page as it is, by width: sideways scrolling, and what axe-core finds in these widths and colours."""
    if not page.root.evaluate("'axe' in globalThis"):
        page.root.evaluate(axe_path().read_text(encoding="utf-8"))
    found = {}
    for size in (WIDE, TABLET, PHONE, NARROWEST):
        page.page.set_viewport_size(size)
        found[size["width"]] = page.root.evaluate(SIDEWAYS)
    for size, colours in looks:
        page.page.set_viewport_size(size)
        page.page.emulate_media(color_scheme=colours)
        found[size["width"], colours] = page.root.evaluate(AXE, apart)
    page.page.emulate_media(color_scheme="light")
    return {where: problems for where, problems in found.items() if problems}


def test_axe_finds_nothing_in_any_part_at_the_opening(calculator):
    every = [(size, colours) for size in (WIDE, PHONE) for colours in ("light", "dark")]
    assert findings(calculator, every, apart=None) == {}


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_axe_finds_nothing_and_nothing_scrolls_sideways(calculator, state):
    state(calculator)
    assert findings(calculator) == {}


def test_axe_finds_nothing_in_the_page_of_every_recorded_run(calculator):
    calculator.root.get_by_role("link", name="The scatters as a table").click()
    expect(calculator.root.get_by_role("heading", level=1)).to_have_text("Every recorded run")
    expect(calculator.root.get_by_role("row")).to_have_count(1 + len({(point.kind, point.id) for point in evidence().points}))
    assert findings(calculator, apart=None) == {}
    calculator.root.get_by_role("link", name="Back to the calculator").click()
    expect(calculator.root.get_by_role("heading", name="How right is it", exact=True)).to_be_in_viewport()


@pytest.mark.parametrize("query", ("embed=1", f"embed=1&panels={','.join(PANELS)}&lock=model,method,rank", "embed=1&rank=none&panels=settings,curve,graph&theme=dark"))
def test_axe_finds_nothing_in_what_a_frame_shows(visit, query):
    page = visit().open(f"?v=2&{query}")
    assert findings(page) == {}


def test_axe_finds_nothing_while_loading_and_after_a_failure(visit):
    visitor = visit()
    visitor.watch.expect_error(r"/(snapshot|app|stock)-|/pyodide-")
    held, lost = [], []
    starts = re.compile(r"/(snapshot|app|stock)-[^/]*\.(bin|zip)$")
    visitor.context.route(starts, lambda route: route.abort() if lost else held.append(route))
    page = visitor.blank()
    page.page.goto(visitor.site)
    expect(page.status("Loading the calculator")).to_be_visible()
    while_loading = findings(page)
    expect(page.status("Loading the calculator")).to_be_visible()
    lost.append("the connection")
    held[-1].abort()
    expect(page.status("could not be downloaded")).to_be_visible()
    assert (while_loading, findings(page, [(PHONE, "light")])) == ({}, {})


def test_tab_reaches_everything_in_the_order_of_the_page(calculator):
    everything_unfolded(calculator)
    calculator.root.evaluate(DESCRIBE)
    calculator.page.mouse.click(1, 1)
    wanted = calculator.root.evaluate(FOCUSABLE)
    assert len(wanted) > 50
    reached = []
    for _ in wanted:
        calculator.page.keyboard.press("Tab")
        reached.append(calculator.root.evaluate("describe(document.activeElement)"))
    assert reached == wanted


def tab_to(page, target):
    """Press Tab until the focus is there, and see it on the way."""
    for _ in range(MOST_STOPS):
        page.page.keyboard.press("Tab")
        assert page.root.evaluate(WITHOUT_RING) == ""
        if target.evaluate("each => each === document.activeElement"):
            return
    pytest.fail(f"Tab does not get to {target}")


def test_tab_alone_leads_to_a_setting_and_on_to_an_offer(calculator):
    calculator.root.evaluate(DESCRIBE)
    calculator.page.mouse.click(1, 1)
    tab_to(calculator, calculator.control("rank"))
    calculator.page.keyboard.type("64")
    calculator.expect_headline(runs.of(rank="64"))
    calculator.expect_renewed()
    tab_to(calculator, calculator.region("What fits").get_by_role("link", name="Optimizer: 8-bit AdamW"))
    calculator.page.keyboard.press("Enter")
    calculator.expect_headline(runs.of(rank="64", optimizer="adamw-8bit"))


def test_the_keyboard_alone_does_the_main_job(calculator):
    press = calculator.page.keyboard.press
    calculator.page.mouse.click(1, 1)
    press("Tab")
    skip = calculator.root.get_by_role("link", name="Skip to the result")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    press("Enter")
    expect(calculator.answer).to_be_focused()
    press("Tab")
    assert calculator.root.evaluate("document.activeElement.closest('main') !== null && document.activeElement.closest('form') === null")

    calculator.control("model").focus()
    calculator.page.keyboard.type("llama 2")
    press("ArrowDown")
    press("ArrowUp")
    press("Enter")
    calculator.expect_setting("model", "llama-2-7b")
    press("Tab")
    expect(calculator.form.get_by_text("Bring a model, an adapter or a training file", exact=True)).to_be_focused()
    press("Tab")
    expect(calculator.control("objective")).to_be_focused()
    press("Tab")
    expect(calculator.radio("method", "qlora")).to_be_focused()
    press("ArrowLeft")
    expect(calculator.radio("method", "lora")).to_be_focused()
    calculator.expect_setting("method", "lora")
    press("Tab")
    calculator.page.keyboard.type("64")
    calculator.expect_setting("rank", "64")
    press("Tab")
    press("ArrowUp")
    calculator.expect_setting("adapter_targets", "attention")
    run = runs.of(model="llama-2-7b", method="lora", rank="64", adapter_targets="attention")
    calculator.expect_headline(run)
    press("ArrowUp")
    press("Tab")
    expect(calculator.own_targets).to_be_focused()
    calculator.page.keyboard.press("ControlOrMeta+A")
    calculator.page.keyboard.type("q,v")
    calculator.expect_headline(runs.of(model="llama-2-7b", method="lora", rank="64", adapter_targets="q,v"))
    calculator.expect_renewed()  # else the offer with the focus may become another one

    link = calculator.region("What fits").get_by_role("link", name="Optimizer: 8-bit AdamW")
    link.focus()
    press("Enter")
    calculator.expect_headline(runs.of(model="llama-2-7b", method="lora", rank="64", adapter_targets="q,v", optimizer="adamw-8bit"))
    calculator.expect_setting("optimizer", "adamw-8bit")  # the folded section opens where it explains the numbers
    calculator.form.locator("summary").filter(has_text="Advanced").focus()
    press("Enter")
    expect(calculator.control("optimizer")).not_to_be_visible()
    press("Enter")
    expect(calculator.control("optimizer")).to_be_visible()

    planning = calculator.accounting("Planning formula")
    planning.focus()
    press("Enter")
    expect(calculator.accounting("Planning formula")).to_be_focused()
    calculator.expect_setting("accounting", "planning")

    calculator.button("Share").focus()
    press("Enter")
    expect(calculator.dialog).to_be_visible()
    for _ in range(15):
        press("Tab")
        assert calculator.root.evaluate("document.activeElement === document.body || document.activeElement.closest('dialog') !== null")
    press("Escape")
    expect(calculator.button("Share")).to_be_focused()


def test_a_result_is_spoken_once_after_a_pause(calculator):
    spoken = calculator.status(report.headline(runs.of()).sentence)
    expect(spoken).to_have_count(1)
    expect(spoken).to_have_attribute("aria-live", "polite")
    calculator.root.evaluate("""() => {
        globalThis.heard = [];
        const region = document.querySelector('[role=status][aria-live=polite]:not(dialog *)');
        new MutationObserver(() => heard.push(region.textContent)).observe(region, { childList: true, characterData: true, subtree: true });
    }""")
    calculator.control("sequence_length").evaluate("""box => {
        for (const text of ['', '4', '40', '409', '4096']) {
            box.value = text;
            box.dispatchEvent(new InputEvent('input', { bubbles: true }));
        }
    }""")
    sentence = report.headline(runs.of(sequence_length="4096")).sentence
    expect(calculator.status(sentence)).to_have_count(1)
    assert calculator.root.evaluate("heard") == [sentence]
    calculator.type_number("sequence_length", "4,096")
    wrong = runs.sentences(sequence_length="4,096")["sequence_length"]
    expect(calculator.status(wrong)).to_contain_text("Check training inputs")


@pytest.mark.parametrize("size", (WIDE, PHONE), ids=("wide", "phone"))
def test_the_headline_stays_in_view_and_covers_no_field(calculator, size):
    calculator.page.set_viewport_size(size)
    calculator.open_advanced()
    for name in ("model", "method", "rank", "gpu", "sequence_length", "checkpointing", "optimizer", "lora_dropout", "rank", "model"):
        control = calculator.radio(name, OPENING[name]) if name in ("method", "checkpointing") else calculator.control(name)
        control.focus()
        expect(control).to_be_in_viewport(ratio=0.5)
        expect(calculator.figure("Estimated peak per GPU")).to_be_in_viewport(ratio=0.9)
        expect(calculator.figure("Headroom")).to_be_in_viewport(ratio=0.9)
        field, card = control.bounding_box(), calculator.answer.bounding_box()
        beside = field["x"] + field["width"] <= card["x"] or card["x"] + card["width"] <= field["x"]
        assert beside or field["y"] >= card["y"] + card["height"] or field["y"] + field["height"] <= card["y"], name
    for part in ("What fits", "Memory against sequence length"):
        calculator.region(part).get_by_role("heading").first.evaluate("heading => heading.scrollIntoView()")
        expect(calculator.figure("Estimated peak per GPU")).to_be_in_viewport(ratio=0.9)
