"""The page in Chinese: who gets it, that a run comes along, and that no English is left in it.

Belongs here: what a visitor of a page in another language sees and hears. Phrase books and how texts are told: tests/test_language.py.
"""

from urllib.parse import parse_qs
from xml.etree import ElementTree

from playwright.sync_api import expect
import pytest

from vramplan import report
from vramplan.language import plain_words
from vramplan.view import PANELS
from pages import Calculator
import runs
from test_embedding import documentation, other_site

FIXTURES = documentation, other_site
"""Those of test_embedding.py that are used here, too."""

CHINESE, ENGLISH = {"locale": "zh-CN"}, {"locale": "en-US"}
QUERY = "?v=2&method=lora&gpu=80&sequence_length=4096"
SAME = {"method": ["lora"], "gpu": ["80"], "sequence_length": ["4096"]}

MOST_LOOKS = 8
"""Times that all of the page is looked at, at most, until it stays as it is."""

TALL = 8_000
"""Height of a window that sees much of the page at once."""

NAMES = set(
    "logit logits token eager autocast autograd dropout notebook cookie epoch"  # as Chinese texts write them
    " gate up down in out qkv embed lm head norm cast index scale cross flat max min floor"  # names of maps, operations and functions
    " silu gelu foreach sgd flash sdpa flex attention none true delta"
    " transformers torchtune bitsandbytes torch peft accelerate unsloth trl"  # packages
    " mini medium large gpt bit fms hf al et and math course module memory hardware basics training estimator"  # models, titles of sources
    .split()
)
"""English words that a Chinese text may have."""

TEXTS = """() => {
    const skipped = new Set(["CODE", "PRE", "TEXTAREA", "SCRIPT", "STYLE", "NOSCRIPT"]);
    const read = ["aria-label", "aria-valuetext", "title", "placeholder", "alt", "label"];
    const texts = [document.title];
    const walk = node => {
        if (node.nodeType === Node.TEXT_NODE) texts.push(node.textContent);
        if (node.nodeType !== Node.ELEMENT_NODE || skipped.has(node.tagName) || node.lang === "en" || node.id === "references") return;
        texts.push(...read.map(name => node.getAttribute(name) ?? ""));
        node.childNodes.forEach(walk);
    };
    walk(document.body);
    return texts.map(text => text.trim().replace(/\\s+/g, " ")).filter(text => text);
}"""

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.10 GiB is free."
    " Of the allocated memory 20.90 GiB is allocated by PyTorch, and 800.00 MiB is reserved by PyTorch but unallocated."
)


def english_in(calculator):
    """Texts of the page that have English words which are no names."""
    return [text for text in calculator.root.evaluate(TEXTS) if set(plain_words(text)) - NAMES]


def expect_chinese(calculator):
    expect(calculator.root.locator("html")).to_have_attribute("lang", "zh-Hans")
    expect(calculator.root.get_by_role("button", name="复制链接")).to_be_visible()


def settings_of(calculator):
    asked = parse_qs(calculator.query.removeprefix("?"))
    return {name: asked.get(name) for name in SAME}


def arrive(visit, query, **options):
    """A tab that was led to another page of the site before it was ready."""
    calculator = visit(**options).blank()
    calculator.root.goto(calculator.address + query)
    calculator.wait_ready()
    return calculator


def test_a_chinese_browser_gets_the_chinese_page_with_the_run_of_the_link(visit):
    calculator = arrive(visit, QUERY, **CHINESE)
    calculator.page.wait_for_url("**/zh.html?**")
    calculator.wait_ready()
    expect_chinese(calculator)
    assert settings_of(calculator) == SAME
    peak = report.headline(runs.of_query(QUERY)).peak
    expect(calculator.region("估计峰值")).to_contain_text(peak)


def test_an_english_browser_gets_the_english_page_and_no_phrases(visit):
    visitor = visit(**ENGLISH)
    visitor.open(QUERY)
    assert not visitor.watch.asked_for("/zh")


@pytest.mark.parametrize(("options", "asked", "page"), [(CHINESE, "en", "index.html"), (ENGLISH, "zh", "zh.html")])
def test_the_address_goes_before_the_browser_and_holds_after_a_reload(visit, options, asked, page):
    calculator = arrive(visit, f"{QUERY}&lang={asked}", **options)
    wanted = calculator.address + (page if page != "index.html" else "")
    calculator.page.wait_for_url(f"{wanted}?**")
    calculator.wait_ready()
    assert settings_of(calculator) == SAME and not calculator.notices.is_visible()
    calculator.page.reload()
    calculator.page.wait_for_url(f"{wanted}?**")
    calculator.wait_ready()
    assert settings_of(calculator) == SAME


def test_a_run_comes_along_to_the_other_language_and_back(visit):
    calculator = arrive(visit, f"{QUERY}&theme=dark", **ENGLISH)
    calculator.root.get_by_role("link", name="简体中文").click()
    calculator.page.wait_for_url("**/zh.html?**")
    calculator.wait_ready()
    expect_chinese(calculator)
    assert settings_of(calculator) == SAME and "theme=dark" in calculator.query
    calculator.root.get_by_role("link", name="English").click()
    calculator.page.wait_for_url("**/index.html?**")
    calculator.wait_ready()
    expect(calculator.button("Copy link")).to_be_visible()
    assert settings_of(calculator) == SAME


@pytest.fixture(scope="module")
def chinese(browser, site):
    """One tab with the Chinese page, for all that is read of it."""
    context = browser.new_context(viewport={"width": 1440, "height": TALL}, service_workers="block", **CHINESE)
    calculator = Calculator(context.new_page(), site)
    calculator.root.goto(f"{site}zh.html")
    calculator.wait_ready()
    yield calculator
    context.close()


@pytest.mark.parametrize("query", [
    "?v=2", "?v=2&method=full&gpu=80&sharding=zero3&sharded_over=8", "?v=2&method=full&gpu=24&sharding=zero2&sharded_over=8&offload=optimizer",
    "?v=2&accounting=unsloth", "?v=2&accounting=rules&task=inference", "?v=2&objective=grpo", "?v=2&model=custom&gpu=custom&budget=30",
    "?v=2&sequence_length=banana&rank=0&nonsense=1&micro_batch=2&micro_batch=3",
])
def test_no_english_is_left_on_the_page_of_a_run(chinese, query):
    chinese.travel(query)
    unfold(chinese)
    assert english_in(chinese) == []


def unfold(calculator):
    """Open everything, and see all of it, until nothing changes any more."""
    calculator.root.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    before = ""
    for _ in range(MOST_LOOKS):
        now = calculator.root.evaluate("document.body.innerText")
        if now == before:
            return
        before = now
        for place in range(0, calculator.root.evaluate("document.body.scrollHeight"), TALL):
            calculator.root.evaluate(f"scrollTo(0, {place})")
            assert calculator.draws()


def test_no_english_is_left_in_what_is_brought_and_answered(chinese):
    chinese.travel("?v=2")
    unfold(chinese)
    for part, action, text in [
        ("您自己的运行", "读取测量结果", OOM), ("您自己的运行", "读取测量结果", "hello"), ("token 长度", "读取长度", "100\n512\n2000\n9000\n"), ("token 长度", "读取长度", "编号,长度\n1,100"),
    ]:
        place = chinese.region(part)
        place.get_by_role("textbox").first.fill(text)
        place.get_by_role("button", name=action).click()
        expect(place.get_by_role("status").first).not_to_be_empty()
        assert english_in(chinese) == []


def test_a_frame_in_chinese_is_the_chinese_page_with_the_parts_of_the_link(documentation):
    (framed,) = documentation(f"v=2&gpu=80&embed=1&lang=zh&panels={','.join(PANELS)}&lock=model,method", **ENGLISH).frames
    framed.root.wait_for_url("**/zh.html?**")
    framed.wait_ready()
    expect_chinese(framed)
    expect(framed.button("设置")).to_have_attribute("aria-expanded", "true")
    expect(framed.root.locator("#field-model").get_by_role("combobox")).to_be_disabled()
    peak = report.headline(runs.of(gpu="80")).peak
    expect(framed.region("估计峰值")).to_contain_text(peak)
    unfold(framed)
    assert english_in(framed) == []
    link = framed.root.get_by_role("link", name="完整页面").get_attribute("href")
    assert link.startswith(f"{framed.root.url.partition('?')[0]}?") and runs.of_query(link) == runs.of(gpu="80")


def test_no_english_is_left_in_the_drawing_that_is_saved(chinese):
    chinese.travel("?v=2")
    with chinese.page.expect_download() as saving:
        chinese.button("保存为 SVG").click()
    drawing = ElementTree.parse(saving.value.path())
    texts = [text for element in drawing.iter() if not element.tag.endswith("style") and (text := (element.text or "").strip())]
    assert any("峰值" in text for text in texts) and len(texts) > 20
    assert [text for text in texts if set(plain_words(text)) - NAMES] == []


def test_no_english_is_left_in_the_share_dialog(chinese):
    chinese.travel("?v=2")
    chinese.button("分享").click()
    dialog = chinese.root.get_by_role("dialog")
    expect(dialog.get_by_label("链接", exact=True)).to_be_visible()
    assert english_in(chinese) == []
    dialog.get_by_role("button", name="关闭").click()
