"""Bringing models and adapters: pasted, chosen, dropped, fetched; whatever comes, a sentence, and nothing of it is run."""

from contextlib import contextmanager
import json
import shutil

from playwright.sync_api import expect
import pytest

from conftest import DIST, serving
from hub_stand_in import hub
from vramplan import import_text
from vramplan.fields import BY_NAME
from vramplan.importing.hub import ORIGIN, TIMEOUT_MILLISECONDS
from vramplan.link import MAX_QUERY
import files
import runs

NASTY = "<img src=x onerror=alert(1)><script>alert(2)</script>"
LLAMA = {"model": "custom"}  # the opening dimensions are those of the file
QWEN = {"model": "custom", "hidden_size": "3584", "num_layers": "28", "num_attention_heads": "28", "num_kv_heads": "4", "head_dim": "128",
        "intermediate_size": "18944", "vocab_size": "152064", "tied_embeddings": "false", "query_biases": "true"}


def test_a_pasted_model_becomes_the_run(calculator):
    calculator.bring(files.LLAMA)
    expect(calculator.brought).to_contain_text("8,030,261,248")
    calculator.expect_setting("model", "custom")
    calculator.expect_setting("intermediate_size", "14336")
    calculator.expect_headline(runs.of(**LLAMA))
    assert "model=custom" in calculator.query
    calculator.page.go_back()
    calculator.expect_headline(runs.of())
    calculator.page.go_forward()
    calculator.expect_headline(runs.of(**LLAMA))


def test_what_was_assumed_and_ignored_is_listed(calculator):
    calculator.bring(files.LLAMA)
    calculator.brought.get_by_text("Assumed", exact=False).click()
    expect(calculator.brought.get_by_role("listitem").filter(has_text="head_dim is not in the file")).to_be_visible()
    calculator.brought.get_by_text("Ignored", exact=False).click()
    expect(calculator.brought.get_by_role("listitem").filter(has_text="rope_theta")).to_be_visible()


def test_a_file_is_chosen_and_another_is_dropped(calculator):
    calculator.choose_file("config.json", files.LLAMA.encode())
    expect(calculator.brought).to_contain_text("From config.json.")
    calculator.expect_headline(runs.of(**LLAMA))
    calculator.drop_file("adapter_config.json", files.ADAPTER)
    expect(calculator.brought).to_contain_text("27,262,976")
    calculator.expect_headline(runs.of(**LLAMA, rank="64", adapter_targets="q,v", lora_dropout="0.1"))
    expect(calculator.brought.get_by_role("listitem").filter(has_text="not_there")).to_be_visible()


def test_an_adapter_is_matched_with_the_model_brought_before(calculator):
    calculator.bring(files.MIXTRAL)
    expect(calculator.brought).to_contain_text("46,702,792,704")
    expect(calculator.brought).to_contain_text("12,879,925,248")
    calculator.expect_headline(runs.of(**import_text(files.MIXTRAL, {}).texts))
    calculator.bring(json.dumps({**json.loads(files.ADAPTER), "target_modules": ["q_proj"], "base_model_name_or_path": "mistralai/Mixtral-8x7B-v0.1"}))
    expect(calculator.brought).to_contain_text("16,777,216")


def test_an_unknown_type_is_read_as_dense_only_when_asked(calculator):
    calculator.bring(files.UNKNOWN)
    expect(calculator.brought).to_contain_text("“brandnew” is not one this calculator knows")
    calculator.expect_headline(runs.of())
    calculator.brought.get_by_role("button", name="Read it as a dense decoder").click()
    calculator.expect_setting("hidden_size", "2048")
    calculator.brought.get_by_text("Assumed", exact=False).click()
    expect(calculator.brought).to_contain_text("read as a dense decoder like Llama, which you asked for")


@pytest.mark.parametrize("text, words", (
    ("", "There is nothing in it"), ("<!doctype html><p>Sign in", "a web page"), ("LlamaConfig {", "as Python prints it"), (files.LLAMA[:90], "ends in the middle"),
    ("[1]", "a JSON list"), ('{"model_type": "t5"}', "an encoder-decoder"), (files.LLAMA.replace("4096", '"4096"', 1), "without quotes"),
    (files.LLAMA.replace("4096", "NaN", 1), "NaN"), ('{"weight_map": {}}', "index"),
))
def test_what_is_no_model_gets_a_sentence_and_changes_nothing(calculator, text, words):
    calculator.bring(text)
    expect(calculator.brought).to_contain_text(words)
    calculator.expect_headline(runs.of())


def test_a_large_file_is_refused_before_it_is_read(calculator):
    calculator.choose_file("model.safetensors", b"x" * (4 * 2**20 + 1))
    expect(calculator.brought).to_contain_text("4,194,305 bytes")


def test_markup_in_a_file_stays_text(calculator):
    config = {**json.loads(files.UNKNOWN), "model_type": NASTY, NASTY: NASTY}
    calculator.bring(json.dumps(config))
    expect(calculator.brought).to_contain_text("<img")
    calculator.brought.get_by_role("button", name="Read it as a dense decoder").click()
    calculator.expect_setting("hidden_size", "2048")
    adapter = {**json.loads(files.ADAPTER), "target_modules": ["q_proj", NASTY], "base_model_name_or_path": NASTY, "task_type": NASTY}
    calculator.bring(json.dumps(adapter))
    expect(calculator.brought).to_contain_text("<script>")
    assert calculator.root.locator("img[onerror]").count() == 0


def test_a_regular_expression_that_never_ends_is_answered(calculator):
    calculator.bring(json.dumps({**json.loads(files.ADAPTER), "target_modules": "(.+)+(.+)+X"}))
    expect(calculator.brought).to_contain_text("None of the model’s modules is a target")


@contextmanager
def page_with_hub(visit, folder, origin):
    """The page, built for another Hub: only the name of the origin differs."""
    copied = folder / "site"
    shutil.copytree(DIST, copied)
    page = (copied / "index.html").read_text("utf-8")
    assert ORIGIN in page
    (copied / "index.html").write_text(page.replace(ORIGIN, origin), "utf-8")
    with serving(copied) as address:
        visitor = visit()
        visitor.site = address
        yield visitor


@pytest.fixture
def with_hub(visit, tmp_path):
    with hub() as server, page_with_hub(visit, tmp_path, server.origin) as visitor:
        yield visitor.open(), server, visitor


def test_a_model_is_fetched_from_the_hub_when_asked_and_never_before(with_hub):
    page, server, visitor = with_hub
    page.open_bring()
    page.hub_id.fill("ok/Qwen2.5-7B")
    assert server.asked == []
    page.button("Fetch").click()
    page.expect_headline(runs.of(**QWEN))
    expect(page.brought).to_contain_text("7,615,616,512")
    assert server.asked == ["/ok/Qwen2.5-7B/resolve/main/config.json", "/api/resolve-cache/ok/Qwen2.5-7B/config.json"]


def test_every_other_answer_of_the_hub_is_a_sentence(with_hub):
    page, server, visitor = with_hub
    visitor.watch.allow_error("Failed to load resource")
    visitor.watch.allow_error("Content Security Policy|violates|Refused to connect")
    for name, words in (
        ("gated/m", "without a login"), ("missing/m", "no config.json for missing/m"), ("busy/m", "too many requests"), ("broken/m", "status 503"),
        ("html/m", "a web page"), ("cut/m", "ended in the middle"), ("huge/m", "1,000,000,000 bytes"), ("not an id", "an owner and a name"),
    ):
        page.fetch(name)
        expect(page.brought).to_contain_text(words)
    with hub() as other:
        server.elsewhere = f"{other.origin}/api/config.json"
        page.fetch("elsewhere/m")
        expect(page.brought).to_contain_text("cannot be reached")
        assert other.asked == []
    page.expect_headline(runs.of())


def test_a_slow_answer_can_be_cancelled_and_the_page_goes_on(with_hub):
    page, server, visitor = with_hub
    page.fetch("slow/m")
    expect(page.brought.get_by_role("progressbar")).to_be_visible()
    page.set(rank="32")
    page.expect_headline(runs.of(rank="32"))
    page.brought.get_by_role("button", name="Cancel").click()
    expect(page.brought).to_contain_text("was cancelled")
    expect(page.brought).to_be_focused()
    server.release.set()


def test_what_was_asked_for_last_counts(with_hub):
    page, server, visitor = with_hub
    page.fetch("slow/m")
    expect(page.brought.get_by_role("progressbar")).to_be_visible()
    page.hub_id.fill("ok/Qwen2.5-7B")
    page.page.keyboard.press("Enter")
    page.expect_headline(runs.of(**QWEN))
    page.fetch("slow/m")
    page.bring(files.LLAMA)
    server.release.set()
    expect(page.brought).to_contain_text("8,030,261,248")
    page.fetch("missing/m")
    visitor.watch.allow_error("Failed to load resource")
    expect(page.brought).to_contain_text("no config.json for missing/m")
    page.expect_headline(runs.of(**LLAMA))


def test_a_late_answer_is_not_waited_for(visit, tmp_path):
    with hub() as server, page_with_hub(visit, tmp_path, server.origin) as visitor:
        page = visitor.blank()
        page.page.clock.install()
        page.open()
        page.fetch("slow/m")
        expect(page.brought.get_by_role("progressbar")).to_be_visible()
        page.page.clock.fast_forward(TIMEOUT_MILLISECONDS)
        expect(page.brought).to_contain_text("did not answer within 20 seconds")


def test_the_page_says_where_a_file_can_be_dropped_and_stops_saying_so(calculator):
    dropping = "document.body.classList.contains('dropping')"
    transfer = calculator.root.evaluate_handle("() => { const files = new DataTransfer(); files.items.add(new File(['x'], 'x')); return files; }")
    calculator.root.locator("main").dispatch_event("dragover", {"dataTransfer": transfer})
    assert calculator.root.evaluate(dropping)
    calculator.root.locator("main").dispatch_event("dragleave", {"dataTransfer": transfer, "relatedTarget": None})
    assert not calculator.root.evaluate(dropping)


def test_the_page_works_where_nothing_may_be_stored(visit):
    visitor = visit()
    visitor.context.add_init_script("Object.defineProperty(window, 'sessionStorage', { get() { throw new DOMException('denied', 'SecurityError'); } })")
    page = visitor.open("?v=2&rank=8")
    page.set(rank="9" * MAX_QUERY)
    assert len(page.query) <= MAX_QUERY + 1


def test_no_other_place_can_be_reached(with_hub):
    page, server, visitor = with_hub
    visitor.watch.expect_error("Content Security Policy|violates")
    reach = "address => fetch(address).then(() => 'reached', () => 'refused')"
    with hub() as other:
        assert page.root.evaluate(reach, f"{other.origin}/api/x") == "refused"
        assert other.asked == []
    assert page.root.evaluate(reach, f"{server.origin}/api/x") == "reached"
    assert page.root.evaluate("document.querySelector('meta[http-equiv]').content.match(/connect-src ([^;]*)/)[1]") == f"'self' {server.origin}"


def test_what_does_not_fit_the_address_is_named_and_comes_back_after_a_reload(calculator):
    long = "9" * (MAX_QUERY + 500)
    calculator.choose("model", "custom")
    calculator.set_number("hidden_size", long)
    calculator.set_number("num_layers", "7")
    assert len(calculator.query) <= MAX_QUERY + 1 and "num_layers=7" in calculator.query
    calculator.button("Copy link").click()
    expect(calculator.status("Link copied, without Hidden size")).to_be_visible()
    calculator.share()
    expect(calculator.dialog).to_contain_text("The link has no room for Hidden size")
    with calculator.page.expect_download() as saving:
        calculator.dialog.get_by_role("button", name="Save settings file").click()
    saved = saving.value.path().read_text("utf-8")
    calculator.page.keyboard.press("Escape")
    calculator.page.reload()
    calculator.wait_ready()
    calculator.expect_setting("hidden_size", long)
    calculator.expect_setting("num_layers", "7")
    calculator.button("Reset").click()
    calculator.expect_headline(runs.of())
    calculator.choose_file("vramplan-settings.json", saved.encode())
    calculator.expect_setting("hidden_size", long)
    calculator.expect_setting("num_layers", "7")


def test_a_saved_settings_file_opens_the_run_again(calculator):
    calculator.set(model="qwen3-8b", method="lora", rank="24")
    calculator.share()
    with calculator.page.expect_download() as saving:
        calculator.dialog.get_by_role("button", name="Save settings file").click()
    calculator.page.keyboard.press("Escape")
    calculator.button("Reset").click()
    calculator.choose_file("vramplan-settings.json", saving.value.path().read_bytes())
    calculator.expect_headline(runs.of(model="qwen3-8b", method="lora", rank="24"))


def test_a_model_is_found_by_typing(calculator):
    box = calculator.control("model")
    box.click()
    expect(calculator.matches("model").get_by_role("option")).to_have_text([option.label for option in BY_NAME["model"].kind.options])
    calculator.find("model", "gemma 3 27b")
    expect(calculator.matches("model").get_by_role("option")).to_have_text(["Gemma 3 27B"])
    calculator.page.keyboard.press("Escape")
    calculator.expect_setting("model", "llama-3.1-8b")
    calculator.find("model", "google/gemma-3-27b")
    calculator.page.keyboard.press("Enter")
    calculator.expect_headline(runs.of(model="gemma-3-27b"))
    assert "model=gemma-3-27b" in calculator.query
    box.fill("no such model")
    calculator.page.keyboard.press("Enter")
    box.blur()
    calculator.expect_setting("model", "gemma-3-27b")
