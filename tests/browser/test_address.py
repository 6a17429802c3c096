"""The address: it follows every change, opens what it says, names what it cannot use, and can be handed on."""

import io
import re
import shlex
from contextlib import redirect_stdout
from html import unescape
from urllib.parse import quote, urlencode

from playwright.sync_api import expect

from answers import by_each
from command import run as terminal
from configurations import OPENING
from vramplan import report, words
from vramplan.link import read_query, to_query
import runs

CHANGES = {
    "model": "qwen3-8b", "method": "lora", "rank": "32", "adapter_targets": "attention", "gpu": "48", "replicas": "2",
    "sequence_length": "4096", "micro_batch": "2", "checkpointing": "none", "attention_kernel": "eager",
    "gradient_accumulation_steps": "4", "trainable_precision": "pure-bf16", "optimizer": "adamw-8bit",
    "lora_dropout": "0.05", "loss": "fused-linear", "stack": "trainer-4.46", "accounting": "planning", "extra_allowance": "0.25",
}
NOT_PLANNED = {"rank", "adapter_targets", "lora_dropout", "loss", "stack"}
HOSTILE_VALUES = (
    "<img src=x onerror=alert(1)>", "\"><script>alert(1)</script>", "javascript:alert(1)", "\x00", "16\x00", "x" * 5_000,
    "9" * 5_000, "é" * 2_000, "🦙", "\u202e16", "٣", "NaN", "1e309", "-0", " ", "", "%", "[object Object]", "__proto__",
)
HOSTILE_QUERIES = (
    "?%", "?%zz=%zz&rank=%", "?rank=%00&%00=1", "?rank=%ff%fe", "?" + "&" * 500, "?=&==&=1", "?rank", "?v=", "?v=999999",
    "?v=1&v=1", "?v=%3Cb%3E", "?__proto__=1&constructor=2&toString=3", "?" + "k" * 5_000 + "=1", "?" + "a=1&" * 1_500,
    "?rank=1;rank=2", "?rank=1?rank=2", "?RANK=1", "?model=custom&hidden_size=9999999999999999999999",
)


def history_length(page):
    return page.root.evaluate("history.length")


def injected(page):
    """Elements that could only come out of a link."""
    return page.root.evaluate("document.querySelectorAll('img[src=x], script:not([src]), [onerror], [onload], a[href^=\"javascript:\"]').length")


def test_every_change_is_one_step_and_back_and_forward_return(visit):
    visitor = visit()
    page, other = visitor.open(), visitor.open("?v=2&sequence_length=512")
    page.page.bring_to_front()
    texts, steps = {}, [{}]
    page.open_advanced()
    for name, text in CHANGES.items():
        before = history_length(page)
        if name in ("sequence_length", "replicas"):
            page.control(name).clear()
            page.control(name).press_sequentially(text)
            typed = runs.of(**texts | {name: text})
            page.expect_headline(typed)
            assert runs.of_query(page.query) == typed
            assert history_length(page) == before
            page.control(name).press("Enter" if name == "replicas" else "Tab")
        else:
            page.set(**{name: text})
        texts[name] = text
        steps.append(dict(texts))
        run = runs.of(**texts)
        page.expect_headline(run)
        assert page.query == f"?{to_query(run.settings)}"
        assert history_length(page) == before + 1, name

    before = history_length(page)
    page.apply("Methods compared", re.compile("^Full$"))
    steps.append({**texts, "method": "full"})
    page.expect_headline(runs.of(**steps[-1]))
    assert history_length(page) == before + 1
    page.control("sequence_length").focus()
    page.control("sequence_length").blur()
    page.radio("method", "full").check()
    assert history_length(page) == before + 1

    def expect_step(texts, names):
        run = runs.of(**texts)
        page.expect_headline(run)
        for name in names:
            page.expect_setting(name, texts.get(name, OPENING[name]))
        assert page.query == f"?{to_query(run.settings)}"

    changed = [*CHANGES, "method"]
    for number in reversed(range(len(changed))):
        page.page.go_back(wait_until="commit")
        expect_step(steps[number], [changed[number]])
    expect_step({}, set(CHANGES) - {"extra_allowance"})
    for number, name in enumerate(changed, start=1):
        page.page.go_forward(wait_until="commit")
        expect_step(steps[number], [name])
    expect_step(steps[-1], set(CHANGES) - NOT_PLANNED)

    other.expect_headline(runs.of(sequence_length="512"))
    other.set(sequence_length="256")
    other.expect_headline(runs.of(sequence_length="256"))
    expect_step(steps[-1], ["sequence_length"])


def test_back_to_before_the_page_and_forward_again(visit):
    visitor = visit()
    visitor.watch.allow_error(r"favicon\.ico")  # a text file names no icon, and a browser may look for the host's
    page = visitor.open("?v=2&rank=8")
    page.set(rank="24")
    page.page.goto(page.address + "licences/README.txt")
    page.page.go_back()
    page.wait_ready()
    page.expect_headline(runs.of(rank="24"))
    page.expect_setting("rank", "24")
    page.page.reload()
    page.wait_ready()
    page.expect_headline(runs.of(rank="24"))
    page.page.go_back(wait_until="commit")
    page.expect_headline(runs.of(rank="8"))
    page.expect_setting("rank", "8")


def test_a_link_opens_its_run_and_names_what_it_cannot_use(visit):
    visitor = visit()
    query = "?v=2&method=lora&rank=4&rank=64&hidden_size=4096&warp_speed=9&budget=20&sequence_length=4096#help"
    page = visitor.open(query)
    page.expect_headline(runs.of(method="lora", rank="64", sequence_length="4096"))
    notices = read_query(query).notices
    assert len(notices) == 4
    expect(page.notices.get_by_role("listitem")).to_have_text(list(notices))
    for part in ("rank more than once", "hidden_size is not used", "warp_speed", "budget is not used"):
        expect(page.notices).to_contain_text(part)
    assert runs.of_query(page.query) == runs.of(method="lora", rank="64", sequence_length="4096")
    page.set(rank="32")
    expect(page.notices).to_be_visible()
    page.notices.get_by_role("button", name="Dismiss").click()
    expect(page.notices).not_to_be_visible()

    page.open("?v=2&model=gpt-9&method=lora&gpu=25&optimizer=%3Cb%3Esgd%3C/b%3E&sequence_length=4096")
    texts = {"model": "gpt-9", "method": "lora", "gpu": "25", "optimizer": "<b>sgd</b>", "sequence_length": "4096"}
    sentences = runs.sentences(**texts)
    assert list(sentences) == ["model", "gpu", "optimizer"]
    page.expect_problems(sentences.values())
    page.expect_setting("sequence_length", "4096")
    page.expect_setting("method", "lora")
    page.expect_setting("model", "gpt-9")
    expect(page.root.get_by_text(sentences["optimizer"], exact=True).last).to_be_visible()
    page.page.reload()
    page.wait_ready()
    page.expect_problems(sentences.values())
    page.set(model="llama-3.2-3b", gpu="16", optimizer="adamw")
    page.expect_headline(runs.of(model="llama-3.2-3b", gpu="16", method="lora", sequence_length="4096"))


def test_a_link_of_the_first_release_opens_as_it_did(visit):
    """With the planning formula and its bytes, which are those of test_planning.py."""
    visitor = visit()
    page = visitor.open("?v=1")
    opened = runs.first()
    page.expect_headline(opened)
    page.expect_setting("accounting", "planning")
    assert opened == runs.of(accounting="planning", trainable_precision="mixed-bf16")
    page.expect_accountings(by_each(opened))
    query = "?v=1&method=lora&rank=64&activation_multiplier=1.5&extra_allowance=0.25&gpu=16"
    page.open(query)
    page.expect_headline(runs.of_query(query))
    assert runs.of_query(page.query) == runs.of_query(query)
    for name, text in {"activation_multiplier": "1.5", "extra_allowance": "0.25", "rank": "64", "gpu": "16"}.items():
        page.expect_setting(name, text)


def test_what_cannot_be_used_survives_a_reload(visit):
    page = visit().open("?v=2&rank=%3Cimg%20src=x%20onerror=alert(1)%3E&%3Cscript%3Ealert(1)%3C/script%3E=1&micro_batch=2")
    expect(page.notices).to_contain_text("<script>alert(1)</script>")
    expect(page.problems).to_contain_text("<img src=x onerror=alert(1)>")
    assert injected(page) == 0
    page.type_number("sequence_length", "12 thousand")
    page.type_number("lora_dropout", "½")
    expect(page.page).to_have_url(re.compile("lora_dropout="))
    page.page.reload()
    page.wait_ready()
    for name, text in {"rank": "<img src=x onerror=alert(1)>", "sequence_length": "12 thousand", "lora_dropout": "½", "micro_batch": "2"}.items():
        page.expect_setting(name, text)
    expect(page.problems.get_by_role("link")).to_have_count(3)
    assert injected(page) == 0


def test_hostile_links_are_named_and_do_nothing(calculator):
    names = ("rank", "sequence_length", "lora_dropout", "adapter_targets", "model", "gpu", "method", "unheard_of")
    for value in HOSTILE_VALUES:
        query = "?" + urlencode({name: value for name in names} | {"micro_batch": "2"})
        calculator.travel(query)
        calculator.expect_problems(runs.sentences(**_known(query)).values())
        expect(calculator.notices.get_by_role("listitem")).to_have_text(_said(read_query(query).notices))
        calculator.expect_setting("micro_batch", "2")
        assert injected(calculator) == 0
    for value in HOSTILE_VALUES[:2]:
        calculator.travel(f"?{quote(value)}=1")
        expect(calculator.notices.get_by_role("listitem")).to_have_text(_said(read_query(f"?{quote(value)}=1").notices))
        calculator.expect_headline(runs.of())
        assert injected(calculator) == 0
    for query in HOSTILE_QUERIES:
        calculator.travel(query)
        wrong, notices = runs.sentences(**_known(query)), read_query(query).notices
        if wrong:
            calculator.expect_problems(wrong.values())
        else:
            calculator.expect_headline(runs.of_query(query))
        if notices:
            expect(calculator.notices.get_by_role("listitem")).to_have_text(_said(notices))
        else:
            expect(calculator.notices).not_to_be_visible()
    expect(calculator.root.get_by_role("alert")).not_to_be_visible()


def _known(query):
    return read_query(query).texts


def _said(sentences):
    """Sentences as they show in a page, where white space collapses and bare control characters have no place."""
    return [re.compile(r"^\s*" + r"\s+".join(map(re.escape, sentence.split())) + r"\s*$") for sentence in sentences]


IN_ONE_BREATH = """([rank, targets]) => {
    const box = document.querySelector("[name=rank]"), offer = [...document.querySelectorAll("#panels a")].find(each => each.textContent === targets);
    box.value = rank;
    box.dispatchEvent(new Event("input", { bubbles: true }));
    box.dispatchEvent(new Event("change", { bubbles: true }));
    offer.click();
}"""


def test_an_offer_made_before_the_last_key_keeps_what_was_typed(calculator):
    calculator.apply("What fits", words.change_text({"optimizer": "adamw-8bit"}))
    calculator.expect_headline(runs.of(optimizer="adamw-8bit"))
    calculator.expect_renewed()
    calculator.root.evaluate(IN_ONE_BREATH, ["48", words.change_text({"adapter_targets": "attention"})])
    calculator.expect_headline(runs.of(optimizer="adamw-8bit", rank="48", adapter_targets="attention"))
    calculator.expect_setting("rank", "48")
    calculator.page.go_back(wait_until="commit")
    calculator.expect_headline(runs.of(optimizer="adamw-8bit", rank="48"))


def test_back_finds_what_the_address_had_no_room_for(calculator):
    own = "8" * 2_100
    calculator.set(method="lora")
    calculator.type_number("rank", own)
    calculator.expect_problems(runs.sentences(method="lora", rank=own).values())
    calculator.button("Reset").click()
    calculator.expect_headline(runs.of())
    calculator.page.go_back(wait_until="commit")
    calculator.expect_setting("rank", own)
    calculator.expect_problems(runs.sentences(method="lora", rank=own).values())


def test_copy_link_gives_the_address_and_reset_the_opening(calculator):
    calculator.set(model="qwen3-8b", sequence_length="8192")
    calculator.button("Copy link").click()
    expect(calculator.status("Link copied")).to_be_visible()
    copied = calculator.root.evaluate("navigator.clipboard.readText()")
    assert copied == calculator.page.url
    assert runs.of_query(copied) == runs.of(model="qwen3-8b", sequence_length="8192")

    calculator.type_number("rank", "none")
    calculator.button("Copy link").click()
    expect(calculator.status("Link copied")).to_be_visible()
    calculator.page.wait_for_function("async () => (await navigator.clipboard.readText()).includes('rank=none')")

    before = history_length(calculator)
    calculator.button("Reset").click()
    calculator.expect_headline(runs.of())
    assert runs.of_query(calculator.query) == runs.of()
    assert before <= history_length(calculator) <= before + 1
    calculator.page.go_back(wait_until="commit")
    calculator.expect_setting("rank", "none")
    calculator.expect_setting("sequence_length", "8192")


def test_copying_falls_back_and_says_when_it_cannot(visit):
    visitor = visit()
    visitor.context.add_init_script("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    page = visitor.open("?v=2&rank=8")
    page.button("Copy link").click()
    expect(page.status("Link copied")).to_be_visible()
    expect(page.button("Copy link")).to_be_focused()
    page.type_number("lora_dropout", "")
    page.page.keyboard.press("ControlOrMeta+V")
    expect(page.control("lora_dropout")).to_have_value(re.compile(r"\?v=2&rank=8$"))

    page.root.evaluate("document.execCommand = () => false")
    page.button("Copy link").click()
    expect(page.status("does not allow copying")).to_be_visible()
    page.share()
    page.dialog.get_by_role("button", name="Copy Link").click()
    expect(page.dialog.get_by_role("status")).to_contain_text("does not allow copying")


def test_the_share_dialog_hands_the_run_on(calculator):
    texts = {"model": "custom", "hidden_size": "1024", "tied_embeddings": "true", "gpu": "custom", "budget_unit": "gb", "budget": "7.5",
             "method": "lora", "lora_dropout": "0.05", "adapter_targets": "q,v", "sequence_length": "1024"}
    calculator.set(**texts)
    run = runs.of(**texts)
    calculator.share()
    told = report.headline(run)

    link = calculator.shared("Link")
    assert link == calculator.page.url and runs.of_query(link) == run
    frame = calculator.shared("Frame for another page")
    source = unescape(re.search(r'<iframe [^>]*src="([^"]*)"', frame)[1])
    assert source == f"{link}&embed=1" and runs.of_query(source.partition("?")[2]) == run

    command = shlex.split(calculator.shared("Terminal"))
    assert command[0] == "vramplan"
    printed = terminal(*command[1:])
    assert told.sentence in printed.out and told.run in printed.out
    assert printed.returncode == (0 if run.fits else 1)

    output = io.StringIO()
    with redirect_stdout(output):
        exec(calculator.shared("Python"), {})
    assert output.getvalue().split() == [str(run.peak_bytes), str(run.fits)]

    calculator.dialog.get_by_text("In a page of documentation", exact=True).click()
    for label in ("Link", "Frame for another page", "Terminal", "Python"):
        calculator.dialog.get_by_role("button", name=f"Copy {label}", exact=True).click()
        expect(calculator.dialog.get_by_role("status")).to_contain_text(f"{label} copied")
        assert calculator.root.evaluate("navigator.clipboard.readText()") == calculator.shared(label)

    calculator.page.keyboard.press("Escape")
    expect(calculator.dialog).not_to_be_visible()
    expect(calculator.button("Share")).to_be_focused()
    calculator.page.keyboard.press("Enter")
    expect(calculator.dialog).to_be_visible()
    calculator.dialog.get_by_role("button", name="Close").click()
    expect(calculator.dialog).not_to_be_visible()
    expect(calculator.button("Share")).to_be_focused()

    calculator.type_number("rank", "many")
    calculator.share()
    assert "rank=many" in calculator.shared("Link")
    expect(calculator.dialog.get_by_label("Terminal", exact=True)).to_have_count(0)
    expect(calculator.dialog).to_contain_text("when every input can be used")
