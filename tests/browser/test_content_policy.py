"""What the page may do: nothing is in its way, and nothing else is possible; damaged parts are refused."""

from html import escape, unescape
import re
import shutil

from playwright.sync_api import expect
import pytest

from conftest import DIST, QuietHandler, serving
from hub_stand_in import hub
import runs
from vramplan_site import deploy, sums
import workers

QUERY = "?v=2&method=lora&sequence_length=4096"
RUN = {"method": "lora", "sequence_length": "4096"}
COLLECT = """
globalThis.violations = [];
document.addEventListener("securitypolicyviolation", event => violations.push(`${event.effectiveDirective} ${event.blockedURI} ${event.sample}`));
"""
KEPT = "navigator.serviceWorker.ready.then(registration => registration.active.scriptURL)"
INLINE = b"""
<script>globalThis.ran = "an inline script"</script>
<img src="nothing.png" onerror="globalThis.ran = 'an inline handler'" alt="">
<p id="styled" style="position: fixed">Styled</p>
<a id="link" href="javascript:globalThis.ran='an address'">Link</a>
<iframe src="data:text/html,A page in the page"></iframe>
<object data="icon.svg" type="image/svg+xml"></object>
<base href="https://elsewhere.example/">
<form id="away" action="/elsewhere" method="get"><input name="settings" value="1"></form>
<script type="module" src="probe.mjs"></script>
"""
PROBE = """
const elsewhere = "%s";
const attempts = {
  "eval": () => eval("1"),
  "new Function": () => new Function("return 1")(),
  "a timer of text": () => setTimeout("globalThis.ran = 'a timer of text'", 0),
  "markup from text": () => { document.createElement("p").innerHTML = "<b>x</b>"; },
  "a script by address": () => { document.createElement("script").src = "boot.mjs"; },
  "a script of text": () => { document.createElement("script").textContent = "1"; },
  "another service worker": () => navigator.serviceWorker.register("other.mjs"),
  "another policy": () => trustedTypes.createPolicy("other", { createHTML: text => text }),
  "a worker": () => new Worker(URL.createObjectURL(new Blob(["1"]))),
  "a request elsewhere": () => fetch(elsewhere),
  "a socket elsewhere": () => new Promise((resolve, reject) => {
    const socket = new WebSocket(elsewhere.replace("http", "ws"));
    socket.onopen = resolve; socket.onerror = () => reject(new Error("refused"));
  }),
  "a module elsewhere": () => import(`${elsewhere}module.mjs`),
  "a module of text": () => import("data:text/javascript,globalThis.ran=1"),
  "a picture elsewhere": () => new Promise((resolve, reject) => {
    const picture = new Image(); picture.onload = resolve; picture.onerror = () => reject(new Error("refused")); picture.src = elsewhere + "x.png";
  }),
};
globalThis.outcomes = {};
for (const [name, attempt] of Object.entries(attempts)) {
  try { await attempt(); outcomes[name] = "done"; } catch (error) { outcomes[name] = "refused"; }
}
document.documentElement.dataset.probed = "";
"""

SUBMIT = """() => new Promise(done => {
    document.addEventListener("securitypolicyviolation", done, { once: true });
    document.getElementById("away").submit();
}).then(() => 0)"""


class HeaderHandler(QuietHandler):
    """Files with the headers that dist/ asks Netlify and Cloudflare Pages for."""

    rules: dict = {}

    def end_headers(self):
        path = self.path.partition("?")[0]
        for name, value in {**self.rules["/*"], **self.rules.get(path, {})}.items():
            self.send_header(name, value)
        super().end_headers()


@pytest.fixture(scope="module")
def with_headers():
    """Address of the built page as a host serves it that reads _headers."""
    rules, path = {}, ""
    for line in (DIST / deploy.NETLIFY).read_text("utf-8").splitlines():
        if line.startswith("  "):
            name, value = line.strip().split(": ", 1)
            rules[path][name] = value
        else:
            path = line
            rules[path] = {}
    with serving(DIST, type("Handler", (HeaderHandler,), {"rules": rules})) as address:
        yield address


@pytest.fixture(params=("tag", "header"))
def address(request, site, with_headers):
    """The page with its own tag alone, and where the host sends the header besides."""
    return site if request.param == "tag" else with_headers


def violations(page):
    return page.root.evaluate("violations")


def test_a_journey_through_the_page_breaks_no_rule(visit, address):
    visitor = visit(site=address, service_workers="allow")
    visitor.context.add_init_script(COLLECT)
    page = visitor.open(QUERY)
    page.expect_headline(runs.of(**RUN))
    page.set(sequence_length="2048", optimizer="adamw-8bit")
    page.type_number("rank", "<b>")
    expect(page.problems).to_be_visible()
    page.type_number("rank", "16")
    page.share()
    with page.page.expect_download():
        page.dialog.get_by_role("button", name="Save as JSON").click()
    with page.page.expect_download():
        page.dialog.get_by_role("button", name="Save settings file").click()
    page.page.keyboard.press("Escape")
    for kind in ("SVG", "PNG"):
        with page.page.expect_download():
            page.button(f"Save as {kind}").click()
    page.region("How it is calculated").get_by_role("math").first.scroll_into_view_if_needed()
    page.root.evaluate("document.fonts.ready.then(() => 0)")
    page.page.go_back(wait_until="commit")
    assert page.page.evaluate(KEPT) == f"{address}service-worker.mjs"
    assert violations(page) == []
    again = visitor.open(QUERY)
    assert again.page.evaluate("!!navigator.serviceWorker.controller")
    again.expect_headline(runs.of(**RUN))
    assert violations(again) == []


def test_what_a_page_never_does_is_impossible(visit, address):
    """Script, style and frames in the markup; text run as a script or read as markup; anything from or to elsewhere."""
    with hub() as elsewhere:
        visitor = visit(site=address, service_workers="allow")
        visitor.watch.expect_error("Content Security Policy")
        visitor.watch.allow_error(".*")
        visitor.context.add_init_script(COLLECT)

        def answer(route):
            response = route.fetch()
            route.fulfill(response=response, body=response.body().replace(b"</body>", INLINE + b"</body>"))
        visitor.context.route(re.compile(r"/\?v="), answer)
        visitor.context.route("**/probe.mjs", lambda route: route.fulfill(body=PROBE % f"{elsewhere.origin}/ok/m/", content_type="text/javascript"))
        page = visitor.open(QUERY)
        page.expect_headline(runs.of(**RUN))
        expect(page.root.locator("html")).to_have_attribute("data-probed", "")
        page.root.evaluate("document.getElementById('link').click()")
        outcomes = page.root.evaluate("outcomes")
        assert len(outcomes) > 12
        assert [name for name, outcome in outcomes.items() if outcome != "refused"] == []
        assert page.root.evaluate("globalThis.ran") is None
        assert page.root.evaluate("getComputedStyle(document.getElementById('styled')).position") == "static"
        assert page.root.evaluate("document.baseURI") == page.page.url
        page.root.evaluate(SUBMIT)
        told = violations(page)
        for directive in ("script-src-elem inline", "script-src-attr inline", "style-src-attr inline", "frame-src", "object-src", "base-uri", "connect-src", "img-src", "require-trusted-types-for", "trusted-types", "form-action"):
            assert [each for each in told if each.startswith(directive)], (directive, told)
        assert page.root.evaluate("location.href").startswith(address)
        assert elsewhere.asked == []


TAG = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')

TELL = """
document.addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI }) => {
    document.documentElement.dataset.violations = `${document.documentElement.dataset.violations ?? ""};${effectiveDirective} ${blockedURI}`;
});
"""
"""A script that runs before those of the page and writes what was blocked on the page, where a test can wait for it."""


def see_a_formula(page):
    page.region("How it is calculated").get_by_role("math").first.scroll_into_view_if_needed()


def share_in_a_frame(page):
    page.wait_ready()
    page.share()
    page.dialog.get_by_text("In a page of documentation", exact=True).click()


def fetch_a_model(page):
    page.wait_ready()
    page.fetch("org/name")


NEEDED = {
    "script-src 'self'": ("script-src-elem", None), "script-src 'wasm-unsafe-eval'": ("script-src", None), "style-src 'self'": ("style-src-elem", None),
    "img-src 'self'": ("img-src", None), "img-src data:": ("img-src data", share_in_a_frame), "font-src 'self'": ("font-src", see_a_formula),
    "connect-src 'self'": ("connect-src", None), "connect-src https://huggingface.co": ("connect-src https://huggingface.co", fetch_a_model),
    "frame-src 'self'": ("frame-src", share_in_a_frame), "worker-src 'self'": ("worker-src", None), "trusted-types service-worker": ("trusted-types", None),
    "trusted-types unpacker": ("trusted-types", None),
}
"""Everything that the policy grants, what the browser then says is blocked without it, and what a visitor does to need it."""


def granted(policy):
    """Every source of every directive."""
    directives = [part.split() for part in policy.split("; ")]
    return [f"{name} {source}" for name, *sources in directives for source in sources if source != "'none'" and not name.startswith("require-")]


def without(policy, grant):
    """The policy that does not grant one thing. A directive that grants nothing else then says 'none': where it is left out another stands for it."""
    name, source = grant.split()
    parts = []
    for part in policy.split("; "):
        directive, *sources = part.split()
        kept = [each for each in sources if (directive, each) != (name, source)]
        parts.append(" ".join((directive, *(kept or ["'none'"]))))
    return "; ".join(parts)


def test_nothing_is_granted_that_is_not_known_to_be_needed():
    (policy,) = TAG.findall((DIST / "index.html").read_text("utf-8"))
    assert sorted(granted(unescape(policy))) == sorted(NEEDED)


@pytest.mark.parametrize("grant", NEEDED)
def test_without_any_one_grant_something_that_the_page_needs_is_blocked(visit, grant):
    blocked, need = NEEDED[grant]
    visitor = visit(service_workers="allow")
    visitor.watch.allow_error(".*")
    visitor.context.add_init_script(TELL)

    body = TAG.sub(lambda match: match[0].replace(match[1], escape(without(unescape(match[1]), grant))), (DIST / "index.html").read_text("utf-8"))
    visitor.context.route(re.compile(r"/\?v="), lambda route: route.fulfill(body=body, content_type="text/html"))
    page = visitor.blank()
    page.root.goto(visitor.site + QUERY)
    if need:
        need(page)
    expect(page.root.locator("html")).to_have_attribute("data-violations", re.compile(f";{blocked}"))


REFUSED = {
    "style": (r"/style-[^/]*\.css$", None), "boot script": (r"/boot-[^/]*\.mjs$", None), "downloads": (r"/downloads-[^/]*\.mjs$", None),
    "manifest": (r"/boot-[^/]*\.json$", "failed"), "Pyodide": (r"/pyodide\.mjs$", "failed"), "engine’s script": (r"/pyodide\.asm\.mjs$", "failed"),
    "engine": (r"/engine-[^/]*\.bin$", "failed"),
}
"""What is damaged on its way, and how the start then ends; None where that is not told."""


def damage(route):
    """Answer with one wrong bit."""
    response = route.fetch()
    body = bytearray(response.body())
    body[len(body) // 2] ^= 1
    route.fulfill(response=response, body=bytes(body))


@pytest.mark.parametrize("part", REFUSED)
def test_a_damaged_part_is_refused(visit, part):
    pattern, outcome = REFUSED[part]
    visitor = visit()
    visitor.watch.expect_error("integrity|is not the file that was built")
    visitor.watch.allow_error(".*")
    visitor.context.route(re.compile(pattern), damage)
    page = visitor.blank()
    with page.page.expect_event("console", lambda message: re.search("integrity|is not the file that was built", message.text)):
        page.page.goto(visitor.site + QUERY)
    if outcome:
        expect(page.root.locator("html")).to_have_attribute("data-boot", outcome, timeout=60_000)
        expect(page.button("Try again")).to_be_visible()
    elif part == "style":
        assert page.root.evaluate("document.styleSheets.length") == 0
    else:
        assert page.root.evaluate("globalThis.pyodide") is None
        page.expect_headline(runs.of())


@pytest.mark.parametrize("name", ("app", "stdlib"))
def test_a_damaged_rest_is_refused_and_can_be_asked_for_again(visit, name):
    visitor = visit()
    visitor.watch.expect_error("integrity")
    visitor.watch.allow_error(".*")
    visitor.context.route(re.compile(rf"/{name}-[^/]*\.(zip|bin)$"), damage)
    page = visitor.open(QUERY)
    page.share()
    save = page.dialog.get_by_role("button", name="Save as JSON")
    save.click()
    expect(page.dialog.get_by_role("status")).to_contain_text("could not be downloaded")
    visitor.context.unroute_all()
    with page.page.expect_download():
        save.click()


def test_a_damaged_build_is_not_kept_for_later(visit, tmp_path):
    """The service worker keeps a build whole or not at all."""
    folder = shutil.copytree(DIST, tmp_path / "site")
    (file,) = folder.glob("stdlib-*.bin")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert sums.differences(folder) == [f"{file.name} is not the file that was built."]
    with serving(folder) as damaged:
        visitor = visit(site=damaged, service_workers="allow")
        visitor.watch.allow_error("integrity")
        visitor.context.add_init_script(workers.WATCHED)
        page = visitor.open(QUERY)
        assert page.page.evaluate(workers.END) == ["redundant", []]
