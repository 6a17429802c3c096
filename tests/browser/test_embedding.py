"""The page in a frame of documentation: the parts it shows, the settings that stay, and what it and the page around it tell each other.

Belongs here: ?embed=1 and the messages. A whole page in a frame, and copying there: test_frame.py. Tools that make documentation: test_embedding_tools.py.
"""

from http.server import ThreadingHTTPServer
from functools import partial
import json
import re
from threading import Thread
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import expect
import pytest

from conftest import DIST, HOST, QuietHandler, serving
from pages import Calculator
import runs
from vramplan.catalogue import defaults
from vramplan.link import read_query, to_query
from vramplan.settings import format_settings, parse
from vramplan.view import PANELS, USUAL_PANELS, read_view

TITLES = {
    "pins": "Pinned runs", "components": "What fills the memory", "moments": "The step, moment by moment", "make-fit": "Make it fit", "fits": "What fits",
    "methods": "Methods compared", "hardware": "Which hardware", "served": "Then serve it", "curve": "Memory against sequence length",
    "map": "What fits, by micro-batch and sequence length", "batches": "Memory against the micro-batch", "gpus": "Memory against the number of GPUs",
    "host": "Host memory", "assumptions": "What is assumed", "others": "How others count this run", "about": "About this number",
}
CHROME = ("navigation", "contentinfo")
ASKED = "embed=1&panels=headline,components,fits,curve&lock=model,method"
FRAME = '<iframe data-vramplan src="{address}" title="Calculator" width="100%" height="420" {more}></iframe>'
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>Documentation</title>
<link rel="icon" href="data:,"><script>const heard = []; addEventListener("message", ({{ data }}) => heard.push(data));</script>
<p>Before.</p>{frames}<p id="after">After.</p>{script}</html>"""


class Documentation:
    """A page of another site with frames in it."""

    def __init__(self, page, site):
        self.page, self.site = page, site

    @property
    def frames(self):
        """The calculators in its frames, in order, live."""
        found = [Calculator(frame) for frame in self.page.main_frame.child_frames]
        for each in found:
            each.wait_ready()
        return found

    def heard(self, kind):
        """The messages of a type, as they came."""
        return [each for each in self.page.evaluate("heard") if isinstance(each, dict) and each.get("type") == kind]

    def expect_heard(self, **wanted):
        """The last message of the run says this."""
        self.page.wait_for_function(
            "wanted => { const last = heard.filter(each => ['estimate', 'problems'].includes(each?.type)).at(-1);"
            " return last && Object.entries(wanted).every(([key, value]) => JSON.stringify(last[key]) === JSON.stringify(value)); }", arg=wanted,
        )

    def say(self, message, number=0):
        """Send a message to a frame."""
        self.page.evaluate("([message, number]) => document.querySelectorAll('iframe')[number].contentWindow.postMessage(message, '*')", [message, number])

    def box_height(self, number=0):
        """How high a frame is on the page."""
        return self.page.locator("iframe").nth(number).bounding_box()["height"]


@pytest.fixture(scope="module")
def other_site(tmp_path_factory):
    """A folder of another site, and its address."""
    folder = tmp_path_factory.mktemp("documentation")
    with serving(folder) as address:
        yield folder, address


@pytest.fixture
def documentation(visit, other_site):
    """Opens a page of another site that shows these links in frames: documentation(query, …, more=attributes, script=whether frames are sized, held=what of the page never comes)."""
    folder, address = other_site

    def show(*queries, more="", script=True, site=None, held="", **options):
        visitor = visit(**options)
        if held:
            visitor.context.route(re.compile(re.escape(held)), lambda route: None)
        at = site or visitor.site
        frames = "".join(FRAME.format(address=f"{at}?{query}".replace("&", "&amp;"), more=more) for query in queries)
        text = PAGE.format(frames=frames, script=f'<script src="{at}embed.js"></script>' if script else "")
        (folder / "page.html").write_text(text, encoding="utf-8")
        page = visitor.context.new_page()
        page.goto(address + "page.html")
        made = Documentation(page, at)
        made.visitor = visitor
        return made

    return show


def expect_panels(framed, names):
    """These parts are shown, and no others."""
    for name, title in TITLES.items():
        expect(framed.region(title)).to_be_visible(visible=name in names)
    expect(framed.answer.get_by_text("Budget", exact=True)).to_be_visible(visible="headline" in names)
    expect(framed.answer.get_by_role("list", name="By accounting")).to_be_visible(visible="accountings" in names)
    expect(framed.form).to_be_visible(visible="settings" in names)


def expect_no_chrome(framed):
    """Nothing of the page around its results."""
    for role in CHROME:
        expect(framed.root.get_by_role(role)).to_have_count(0)
    for title in ("How it is calculated", "Help", "Token lengths", "Your own run", "Your own cards"):
        expect(framed.root.get_by_role("heading", name=title, exact=True)).to_have_count(0)
    for name in ("Share", "Reset"):
        expect(framed.button(name)).to_have_count(0)


def full_page(framed):
    """The link to the whole page."""
    return framed.root.get_by_role("link", name="Full page")


def test_a_frame_shows_the_parts_that_were_asked_for_and_no_chrome(documentation):
    run = runs.of(gpu="48")
    (framed,) = documentation(f"v=2&gpu=48&{ASKED}").frames
    framed.expect_headline_alone(run)
    expect_panels(framed, read_view(ASKED).panels)
    expect_no_chrome(framed)
    framed.expect_rows(framed.table("What fills the memory"), runs.component_rows(run))
    expect(full_page(framed)).to_have_attribute("target", "_blank")
    expect(full_page(framed)).to_have_attribute("rel", "noopener")
    link = full_page(framed).get_attribute("href")
    assert read_view(link) == read_view("") and runs.of_query(urlsplit(link).query) == run


@pytest.mark.parametrize("panels", [[], ["curve"], ["headline", "accountings", "about", "map"], ["headline", "moments", "others", "assumptions"], ["settings", "headline", "served", "methods", "hardware"]])
def test_any_parts_can_be_chosen(documentation, panels):
    (framed,) = documentation(f"v=2&embed=1&panels={','.join(panels)}").frames
    expect_panels(framed, panels or USUAL_PANELS)
    expect_no_chrome(framed)


def test_parts_that_are_not_shown_are_not_worked_out(documentation):
    opened = documentation("v=2&method=lora&embed=1&panels=headline,methods")
    (framed,) = opened.frames
    run = runs.of(method="lora")
    framed.expect_rows(framed.table("Methods compared"), runs.change_rows(report_methods(run)))
    opened.say({"vramplan": 1, "type": "settings", "settings": {"rank": 64}})
    run = runs.of(method="lora", rank="64")
    framed.expect_headline_alone(run)
    framed.expect_rows(framed.table("Methods compared"), runs.change_rows(report_methods(run)))
    opening = (DIST / "index.html").read_text("utf-8")
    for part in ("components", "alternatives", "accountings", "curve-table", "others", "hardware", "questions"):
        text = framed.root.evaluate("id => document.getElementById(id).textContent", part)
        assert re.sub(r"\s", "", text) and re.sub(r"\s", "", text) in re.sub(r"\s|<[^>]*>", "", opening).replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"), part


def report_methods(run):
    from vramplan import report

    return report.methods(run)


def test_nothing_of_the_whole_page_is_shown_while_the_calculator_loads(documentation):
    """The layout of the first paint is decided by a script that comes before the style sheet and the page."""
    opened = documentation(f"v=2&rank=8&{ASKED}&theme=dark", held="/engine-")
    framed = Calculator(opened.page.main_frame.child_frames[0])
    expect(framed.status("Loading the calculator.")).to_be_visible()
    expect(framed.root.get_by_text("Your run is computed as soon as")).not_to_be_visible()
    expect(framed.answer).to_have_count(0)
    expect(framed.root.locator("html")).to_have_attribute("data-boot", "loading")
    expect_no_chrome(framed)
    for name in ("methods", "map", "others"):
        expect(framed.region(TITLES[name])).not_to_be_visible()
    assert framed.root.evaluate("document.querySelector('script').compareDocumentPosition(document.querySelector('link[rel=stylesheet]')) & Node.DOCUMENT_POSITION_FOLLOWING")
    ground = framed.root.evaluate("getComputedStyle(document.body).backgroundColor")
    assert sum(map(int, re.findall(r"\d+", ground)[:3])) < 200
    link = full_page(framed).get_attribute("href")
    assert dict(parse_qsl(urlsplit(link).query)) == {"v": "2", "rank": "8"}
    assert opened.box_height() == pytest.approx(opened.heard("height")[-1]["height"], abs=6)


def test_locked_settings_stay_whatever_is_typed_said_or_followed(documentation):
    opened = documentation(f"v=2&method=lora&model=qwen3-8b&{ASKED}")
    (framed,) = opened.frames
    texts = {"method": "lora", "model": "qwen3-8b"}
    framed.button("Settings").click()
    for name in ("model", "method"):
        field = framed.root.locator(f"#field-{name}")
        expect(field).to_contain_text("Fixed here. The full page can change it.")
    expect(framed.control("model")).to_be_disabled()
    expect(framed.radio("method", "lora")).to_be_disabled()
    framed.set(sequence_length="1024")
    framed.expect_headline_alone(runs.of(**texts, sequence_length="1024"))
    for asked in ({"model": "llama-3.1-8b"}, {"method": "full", "hidden_size": 64}, {"method": "qlora", "rank": 8}):
        opened.say({"vramplan": 1, "type": "settings", "settings": asked})
    run = runs.of(**texts, sequence_length="1024", rank="8")
    framed.expect_headline_alone(run)
    assert runs.of_query(framed.query) == run
    with opened.page.context.expect_page() as popup:
        framed.apply("What fits", re.compile("^Training method: QLoRA"))
    whole = Calculator(popup.value)
    whole.wait_ready()
    whole.expect_headline(runs.of(**texts | {"method": "qlora"}, sequence_length="1024", rank="8"))
    expect(whole.root.get_by_role("navigation")).to_be_visible()
    framed.expect_headline_alone(run)
    framed.apply("What fits", re.compile("^Adapter targets: Attention only"))
    framed.expect_headline_alone(runs.of(**texts, sequence_length="1024", rank="8", adapter_targets="attention"))


def test_where_everything_is_locked_there_is_nothing_to_set(documentation):
    (framed,) = documentation("v=2&rank=8&embed=1&lock=all").frames
    framed.expect_headline_alone(runs.of(rank="8"))
    expect(framed.button("Settings")).to_have_count(0)
    expect(framed.form).not_to_be_visible()
    expect(framed.root.get_by_text("Every setting is fixed here.")).to_be_visible()


def test_what_a_link_says_of_the_frame_and_cannot_be_used_is_named(documentation):
    (framed,) = documentation("v=2&embed=1&panels=headline,graph&lock=ranks&theme=black").frames
    notices = read_view("embed=1&panels=headline,graph&lock=ranks&theme=black").notices
    assert len(notices) == 3
    expect(framed.notices.get_by_role("listitem")).to_have_text(list(notices))
    expect_panels(framed, ["headline"])


def test_the_frame_says_what_is_wrong_and_what_is_not_counted(documentation):
    opened = documentation("v=2&rank=none&embed=1&panels=curve")
    (framed,) = opened.frames
    framed.expect_problems(runs.sentences(rank="none").values())
    opened.expect_heard(type="problems", fields=["rank"])
    opened.say({"vramplan": 1, "type": "settings", "settings": {"rank": 8}})
    expect(framed.region("Memory against sequence length")).to_be_visible()
    opened.expect_heard(type="estimate", peak_bytes=runs.of(rank="8").peak_bytes)
    settings, reason = runs.why_not(model="olmoe-1b-7b", accounting="planning")
    opened.say({"vramplan": 1, "type": "settings", "settings": {"model": "olmoe-1b-7b", "accounting": "planning"}})
    expect(framed.answer.get_by_role("link", name=reason.message, exact=True)).to_be_visible()
    opened.expect_heard(type="problems", fields=[reason.field])


def test_every_estimate_is_announced(documentation):
    opened = documentation(f"v=2&gpu=12&{ASKED}")
    (framed,) = opened.frames
    expect_announced(opened, runs.of(gpu="12"))
    framed.button("Settings").click()
    framed.set(sequence_length="512")
    expect_announced(opened, runs.of(gpu="12", sequence_length="512"))
    opened.say({"vramplan": 1, "type": "settings", "settings": {"sequence_length": 4096, "rank": "32", "lora_dropout": 0.05}})
    run = runs.of(gpu="12", sequence_length="4096", rank="32", lora_dropout="0.05")
    expect_announced(opened, run)
    framed.expect_headline_alone(run)
    framed.expect_setting("sequence_length", "4096")
    assert {tuple(sorted(each)) for each in opened.heard("estimate")} == {("budget_bytes", "fits", "link", "peak_bytes", "settings", "type", "vramplan")}
    assert {tuple(sorted(each)) for each in opened.heard("height")} == {("height", "type", "vramplan")}


def expect_announced(opened, run):
    """The page around has last heard of this run."""
    opened.expect_heard(
        vramplan=1, type="estimate", settings=format_settings(run.settings), peak_bytes=run.peak_bytes, budget_bytes=run.budget_bytes, fits=run.fits,
        link=f"{opened.site}?{to_query(run.settings)}",
    )


WRONG = (
    None, 1, "settings", [], {}, {"type": "settings", "settings": {"rank": 8}}, {"vramplan": 2, "type": "settings", "settings": {"rank": 8}},
    {"vramplan": "1", "type": "settings", "settings": {"rank": 8}}, {"vramplan": True, "type": "settings", "settings": {"rank": 8}},
    {"vramplan": 1, "type": "set", "settings": {"rank": 8}}, {"vramplan": 1, "type": "settings"}, {"vramplan": 1, "type": "settings", "settings": []},
    {"vramplan": 1, "type": "settings", "settings": {}}, {"vramplan": 1, "type": "settings", "settings": {"ranks": 8}},
    {"vramplan": 1, "type": "settings", "settings": {"rank": 8, "__proto__x": 1}}, {"vramplan": 1, "type": "settings", "settings": {"rank": {"a": 1}}},
    {"vramplan": 1, "type": "settings", "settings": {"rank": 8}, "script": "alert(1)"}, {"vramplan": 1, "type": "settings", "settings": {"rank": None}},
    {"vramplan": 1, "type": "settings", "settings": {"rank": "8" * 30_000}},
)


def test_messages_of_another_shape_are_ignored(documentation):
    opened = documentation("v=2&embed=1")
    (framed,) = opened.frames
    expect_announced(opened, runs.of())
    for message in WRONG:
        opened.say(message)
    opened.page.evaluate("""() => {
        const frame = document.querySelector('iframe').contentWindow, around = { vramplan: 1, type: 'settings', settings: { rank: 8 } };
        around.settings.more = around;
        frame.postMessage(around, '*');
        frame.postMessage({ vramplan: 1, type: 'settings', settings: { rank: 8n } }, '*');
    }""")
    opened.say({"vramplan": 1, "type": "settings", "settings": {"rank": "<img src=x onerror=alert(1)>"}})
    opened.expect_heard(type="problems", fields=["rank"])
    framed.expect_problems(runs.sentences(rank="<img src=x onerror=alert(1)>").values())
    told = [each for each in opened.page.evaluate("heard") if each["type"] != "height"]
    assert [each["type"] for each in told] == ["estimate", "problems"], "a message of another shape was read"


def test_only_the_page_around_is_heard(documentation):
    opened = documentation("v=2&embed=1", "v=2&embed=1")
    first, second = opened.frames
    second.root.evaluate("parent.frames[0].postMessage({ vramplan: 1, type: 'settings', settings: { rank: 8 } }, '*')")
    first.root.evaluate("postMessage({ vramplan: 1, type: 'settings', settings: { rank: 8 } }, '*')")
    opened.say({"vramplan": 1, "type": "settings", "settings": {"rank": 32}})
    first.expect_headline_alone(runs.of(rank="32"))
    told = [each["settings"]["rank"] for each in opened.heard("estimate")]
    assert sorted(told) == ["16", "16", "32"]


def test_whoever_comes_late_can_ask(documentation):
    opened = documentation("v=2&gpu=12&embed=1", script=False)
    opened.frames
    expect_announced(opened, runs.of(gpu="12"))
    opened.page.evaluate("heard.length = 0")
    opened.say({"vramplan": 1, "type": "ask"})
    expect_announced(opened, runs.of(gpu="12"))
    assert len(opened.heard("height")) == 1


AS_HIGH = """() => new Promise((done, fail) => {
    const until = performance.now() + 20_000;
    const look = () => {
        const needed = document.body.getBoundingClientRect().height;
        if (Math.abs(innerHeight - needed) <= 1 && document.documentElement.scrollHeight <= innerHeight + 1) done();
        else if (performance.now() > until) fail(new Error(`${innerHeight} high, ${needed} needed`));
        else setTimeout(look, 50);
    };
    look();
})"""
BORDERS = 4  # of a frame without a style


def test_the_script_makes_a_frame_as_high_as_what_it_shows(documentation):
    opened = documentation("v=2&embed=1", f"v=2&{ASKED}")
    first, second = opened.frames

    def expect_sized(number, framed):
        framed.root.evaluate(AS_HIGH)
        assert opened.box_height(number) == pytest.approx(framed.root.evaluate("document.body.getBoundingClientRect().height") + BORDERS, abs=1.5)

    expect_sized(0, first)
    expect_sized(1, second)
    usual = opened.box_height()
    first.button("Settings").click()
    expect_sized(0, first)
    assert opened.box_height() > usual + 300
    first.button("Settings").click()
    expect_sized(0, first)
    assert abs(opened.box_height() - usual) < 2


def test_heights_are_taken_from_the_frame_itself_and_only_numbers(documentation):
    opened = documentation("v=2&embed=1&lock=all")
    (framed,) = opened.frames
    framed.root.evaluate(AS_HIGH)
    before = opened.box_height()
    for height in ("'999'", "-1", "1e9", "NaN", "{}", "null", "'1px;position:fixed'"):
        framed.root.evaluate(f"parent.postMessage({{ vramplan: 1, type: 'height', height: {height} }}, '*')")
    framed.root.evaluate("parent.postMessage({ vramplan: 2, type: 'height', height: 777 }, '*')")
    opened.page.evaluate("postMessage({ vramplan: 1, type: 'height', height: 777 }, '*')")
    opened.page.wait_for_function("heard.filter(each => each.height === 777).length === 2")
    assert opened.box_height() == before
    framed.root.evaluate("parent.postMessage({ vramplan: 1, type: 'height', height: 1234 }, '*')")
    opened.page.wait_for_function("document.querySelector('iframe').clientHeight === 1234")


def test_the_script_is_small_and_plain():
    text = (DIST / "embed.js").read_text("utf-8")
    assert len(text.encode()) <= 1024
    assert "source" in text and not re.search(r"import|fetch|eval|innerHTML|document\.write|https?:", text)


@pytest.mark.parametrize(("theme", "system", "dark"), [("auto", "dark", True), ("auto", "light", False), ("light", "dark", False), ("dark", "light", True)])
def test_a_frame_is_light_or_dark_as_it_is_told_or_as_the_system_is(documentation, theme, system, dark):
    (framed,) = documentation(f"v=2&embed=1&theme={theme}", color_scheme=system).frames
    ground = framed.root.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", ground)[:3])) < 200) == dark


SANDBOX = 'sandbox="allow-scripts allow-same-origin allow-popups"'


def test_a_sandboxed_frame_works_and_opens_the_full_page(documentation):
    opened = documentation(f"v=2&gpu=12&{ASKED}", more=SANDBOX)
    opened.visitor.watch.allow_error("Permissions policy violation")
    (framed,) = opened.frames
    framed.button("Settings").click()
    framed.set(rank="8")
    framed.control("rank").press("Enter")
    run = runs.of(gpu="12", rank="8")
    framed.expect_headline_alone(run)
    expect_announced(opened, run)
    framed.button("Copy link").click()
    expect(framed.status(re.compile("Link copied|does not allow copying"))).to_be_visible()
    with opened.page.context.expect_page() as popup:
        full_page(framed).click()
    whole = Calculator(popup.value)
    whole.wait_ready()
    whole.expect_headline(run)
    assert popup.value.evaluate("opener === null")


def test_a_frame_leaves_the_history_to_the_page_around(documentation):
    opened = documentation(f"v=2&{ASKED}")
    (framed,) = opened.frames
    before = opened.page.evaluate("history.length")
    framed.button("Settings").click()
    framed.set(rank="8", sequence_length="512")
    framed.apply("What fits", re.compile("^Adapter targets: Attention only"))
    framed.expect_headline_alone(runs.of(rank="8", sequence_length="512", adapter_targets="attention"))
    assert opened.page.evaluate("history.length") == before
    framed.root.evaluate("location.reload()")
    (framed,) = opened.frames
    framed.expect_headline_alone(runs.of(rank="8", sequence_length="512", adapter_targets="attention"))
    expect_panels(framed, read_view(ASKED).panels)


@pytest.fixture
def counting_site():
    """The built page behind a server that counts how often each file is sent."""
    sent = []

    class Counting(QuietHandler):
        def send_response(self, code, message=None):
            sent.append((code, urlsplit(self.path).path))
            super().send_response(code, message)

    server = ThreadingHTTPServer((HOST, 0), partial(Counting, directory=str(DIST)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://{HOST}:{server.server_address[1]}/", sent
    server.shutdown()
    server.server_close()
    thread.join()


def test_several_frames_on_a_page_download_the_runtime_once(documentation, counting_site):
    site, sent = counting_site
    opened = documentation("v=2&embed=1", f"v=2&rank=8&{ASKED}", "v=2&gpu=12&embed=1&panels=curve", site=site)
    opened.frames
    whole = [path for code, path in sent if code == 200 and re.search(r"/(engine|snapshot)-\w+\.bin$|pyodide\.asm\.mjs$", path)]
    assert len(whole) == len(set(whole)) == 3


def test_a_frame_is_used_with_the_keyboard_alone(documentation):
    opened = documentation(f"v=2&{ASKED}")
    (framed,) = opened.frames
    keys = opened.page.keyboard
    opened.page.get_by_text("Before.").click()
    keys.press("Tab")
    expect(framed.button("Settings")).to_be_focused()
    keys.press("Enter")
    expect(framed.button("Settings")).to_have_attribute("aria-expanded", "true")
    keys.press("Tab")
    expect(framed.button("Copy link")).to_be_focused()
    keys.press("Tab")
    expect(full_page(framed)).to_be_focused()
    keys.press("Tab")
    expect(framed.control("objective")).to_be_focused()
    for _ in range(3):
        keys.press("Tab")
    framed.control("rank").focus()
    keys.press("ControlOrMeta+A")
    keys.type("8")
    framed.expect_headline_alone(runs.of(rank="8"))
