"""How Python starts: from the snapshot, and in another way when that one fails; every way gives the same numbers."""

import json
import re

from playwright.sync_api import expect
import pytest

from conftest import DIST
import runs
from vramplan_site.sums import integrity

LINK = {"sequence_length": "4096", "method": "lora", "rank": "24"}
QUERY = "?v=2&" + "&".join(f"{name}={text}" for name, text in LINK.items())
SNAPSHOT, CODE, ZIP, MANIFEST, UNPACKER = (
    re.compile(rf"/{name}$") for name in (r"snapshot-[^/]*\.bin", r"code-[^/]*\.zip", r"app-[^/]*\.zip", r"boot-[^/]*\.json", r"unpacker-[^/]*\.mjs")
)
PAGE = re.compile(r"/\?v=")
LONG_ENOUGH = 60_000
FALLEN_BACK = "Python did not start from the"


class Fallbacks:
    """A visitor’s page and what its console says about ways that failed."""

    def __init__(self, visitor):
        self.visitor, self.told = visitor, []
        self.page = visitor.blank()
        self.page.page.on("console", lambda message: self.told.append(message.text) if message.text.startswith(FALLEN_BACK) else None)

    def expect_start(self, way, *failed):
        """The page opens a link in this way, after these failed, with the right numbers."""
        self.page.wait_ready()
        expect(self.page.root.locator("html")).to_have_attribute("data-way", way)
        self.page.expect_headline(runs.of(**LINK))
        assert [re.match(rf"{FALLEN_BACK} (\w+): ", text)[1] for text in self.told] == list(failed)

    def open(self):
        self.page.page.goto(self.visitor.site + QUERY)


@pytest.fixture
def opened(visit):
    return Fallbacks(visit())


def altered(change):
    """Answers a request with what the server has, changed."""
    def answer(route):
        response = route.fetch()
        body = bytearray(response.body())
        route.fulfill(response=response, body=bytes(change(body)))
    return answer


def damaged(body):
    """One byte in the middle is another."""
    body[len(body) // 2] ^= 0xFF
    return body


def other_manifest(context, change):
    """A build whose manifest has another entry for the snapshot; its page holds the hash of that manifest."""
    (file,) = DIST.glob("boot-*.json")
    manifest = json.loads(file.read_text("utf-8"))
    change(manifest["ways"][0])
    edited = json.dumps(manifest).encode()
    hashes = [integrity(content).encode() for content in (file.read_bytes(), edited)]
    context.route(MANIFEST, altered(lambda body: edited))
    context.route(PAGE, altered(lambda body: body.replace(*hashes)))


def test_a_shared_link_starts_from_the_snapshot(opened):
    opened.open()
    opened.expect_start("snapshot")
    assert opened.visitor.watch.asked_for("/app-") == []


def test_where_there_can_be_no_worker_the_page_unpacks_and_compiles(opened):
    opened.visitor.context.add_init_script("delete globalThis.Worker")
    opened.open()
    opened.expect_start("snapshot")


def test_a_worker_that_does_not_come_keeps_nobody_from_the_numbers(visit):
    visitor = visit()
    visitor.watch.allow_error(".*")
    visitor.context.route(UNPACKER, lambda route: route.abort(), times=1)  # the worker; the page gets it
    visitor.open(QUERY).expect_headline(runs.of(**LINK))


def test_a_damaged_snapshot_falls_back_to_the_zip(opened):
    opened.visitor.context.route(SNAPSHOT, altered(damaged))
    opened.open()
    opened.expect_start("zip", "snapshot")
    assert "is not the file that was built" in opened.told[0]


def test_a_snapshot_of_another_runtime_falls_back_to_the_zip(opened):
    def another(way):
        way["restoring"]["checked"]["sum"] += 1
    other_manifest(opened.visitor.context, another)
    opened.open()
    opened.expect_start("zip", "snapshot")
    assert "another runtime" in opened.told[0]


def test_a_snapshot_that_counts_otherwise_falls_back_to_the_zip(opened):
    def otherwise(way):
        link = next(iter(way["told"]))
        way["told"][link] = way["told"][link].replace("1", "2", 1)
    other_manifest(opened.visitor.context, otherwise)
    opened.open()
    opened.expect_start("zip", "snapshot")
    assert "other answers" in opened.told[0]


@pytest.mark.parametrize("part", [SNAPSHOT, CODE], ids=["all of it", "what it does not hold"])
def test_a_snapshot_that_never_comes_falls_back_to_the_zip(opened, part):
    held = []
    opened.page.page.clock.install()
    opened.visitor.context.route(part, lambda route: held.append(route))
    with opened.page.page.expect_request(part):
        opened.open()
    if part is SNAPSHOT:
        expect(opened.page.status("Loading the calculator")).to_be_visible()
    with opened.page.page.expect_request(ZIP):
        while not opened.told:
            opened.page.page.clock.run_for(LONG_ENOUGH)
    opened.expect_start("zip", "snapshot")
    assert held and "nothing has come" in opened.told[0]


@pytest.mark.parametrize("broken", [altered(damaged), lambda route: route.abort()], ids=["damaged", "missing"])
def test_without_what_the_snapshot_does_not_hold_the_zip_does(opened, broken):
    """The answer has been there by then; the page around it comes in the other way."""
    opened.visitor.watch.allow_error(".*")
    opened.visitor.context.add_init_script(SEEN_FIRST)
    opened.visitor.context.route(CODE, broken)
    opened.open()
    opened.expect_start("zip", "snapshot")
    assert opened.page.page.evaluate("seenFirst")[1] == "visible"
    opened.page.share()
    expect(opened.page.dialog).to_be_visible()


def test_without_snapshot_and_zip_the_stock_library_does(opened):
    opened.visitor.watch.allow_error(".*")  # Python tells at length what it cannot read
    opened.visitor.context.route(SNAPSHOT, altered(damaged))
    opened.visitor.context.route(ZIP, altered(lambda body: body[:1000]))
    opened.open()
    opened.expect_start("stock", "snapshot", "zip")


@pytest.mark.parametrize("broken", ([], [SNAPSHOT], [SNAPSHOT, ZIP]), ids=("snapshot", "zip", "stock"))
def test_documents_can_be_saved_whatever_the_page_started_from(visit, broken):
    visitor = visit()
    visitor.watch.allow_error(".*")
    for pattern in broken:
        visitor.context.route(pattern, lambda route: route.abort())
    page = visitor.open(QUERY)
    page.share()
    with page.page.expect_download() as saving:
        page.dialog.get_by_role("button", name="Save as JSON").click()
    with open(saving.value.path(), encoding="utf-8") as file:
        assert json.load(file)


def test_two_restored_pages_draw_different_chances(visit):
    """What a snapshot would repeat in every browser."""
    drawn = [visit().open(QUERY).page.evaluate("pyodide.runPython('import random; random.random()')") for _ in range(2)]
    assert drawn[0] != drawn[1]


def test_what_a_restored_python_prints_is_told(visit):
    visitor = visit()
    visitor.watch.allow_error("to the second")
    page, told = visitor.open(QUERY).page, []
    page.on("console", lambda message: told.append(message.text))
    page.evaluate("""pyodide.runPython("import sys; print('to the first'); print('to the second', file=sys.stderr)")""")
    assert told == ["to the first", "to the second"]


def test_a_mistake_within_the_library_is_told_in_full(visit):
    """What is shipped without line numbers still names files and functions."""
    page = visit().open(QUERY)
    told = page.page.evaluate("""() => { try { pyodide.runPython("import json; json.loads('{')"); } catch (error) { return error.message; } }""")
    assert re.search(r'File "json/decoder.py", line \d+, in raw_decode', told) and "JSONDecodeError: Expecting property name" in told


def test_loading_names_bytes_and_steps(visit):
    visitor = visit()
    held = []
    visitor.context.route(SNAPSHOT, lambda route: held.append(route))
    page = visitor.blank()
    page.page.goto(visitor.site + QUERY)
    expect(page.root.locator("#boot-bytes")).to_have_text(re.compile(r"^Step 1 of 3 · \d+\.\d of \d+\.\d MB$"))
    held[0].continue_()
    page.wait_ready()
    expect(page.root.locator("#boot-bytes")).to_have_text("")


SEEN_FIRST = """new MutationObserver((changes, observer) => {
  const page = document.documentElement, seen = (id) => getComputedStyle(document.getElementById(id)).visibility;
  if (page.dataset.answered === undefined) return;
  globalThis.seenFirst = [page.dataset.boot, seen("headline"), seen("accountings"), seen("moments-part"), document.getElementById("headline").innerText];
  observer.disconnect();
}).observe(document, { attributes: true, subtree: true, attributeFilter: ["data-answered"] })"""
"""Keeps what can be seen at the moment of the answer."""


def test_the_answer_to_a_link_is_seen_before_the_page_around_it(visit):
    visitor = visit()
    visitor.context.add_init_script(SEEN_FIRST)
    page = visitor.open(QUERY)
    boot, headline, accountings, panels, text = page.page.evaluate("seenFirst")
    assert (boot, headline, accountings, panels) == ("loading", "visible", "hidden", "hidden")
    assert text == page.root.locator("#headline").inner_text()
    page.expect_headline(runs.of(**LINK))


@pytest.mark.parametrize("query", ["", "?v=2&sequence_length=lots", "?v=2&method=pretraining&accounting=unsloth", "?v=2&measured=allocated.13207024640"], ids=["opening", "wrong", "not countable", "measured"])
def test_there_is_no_answer_ahead_where_the_link_alone_gives_none(visit, query):
    page = visit().open(query)
    assert page.root.evaluate("document.documentElement.dataset.answered") is None


def test_an_answer_ahead_is_taken_back_where_the_page_around_it_fails(visit):
    visitor = visit()
    visitor.watch.allow_error(".*")
    visitor.context.add_init_script(SEEN_FIRST + ";delete globalThis.Blob")  # which the page wants, and the answer does not
    page = visitor.blank()
    page.page.goto(visitor.site + QUERY)
    expect(page.root.locator("html")).to_have_attribute("data-boot", "failed", timeout=60_000)
    assert page.page.evaluate("seenFirst")[1] == "visible"
    page.expect_headline(runs.of())
