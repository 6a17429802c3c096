"""How soon the page shows its own number, and how soon it follows typing: measured in browsers, in turns with a page that only loads Pyodide.

Both pages come from one server, which compresses; a script added to each tells the server when the number is there.
"""

import functools
import gzip
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from urllib.parse import parse_qs, urlencode, urlsplit

from vramplan import Settings, estimate, report
from vramplan.link import to_query
from vramplan_site import toolchain
from vramplan_site.server import HOST, SiteHandler
from vramplan_site.toolchain import DIST

SHARED = Settings(model="qwen3-8b", method="lora", rank=24, sequence_length=6144, gpu=48)
"""The run of the link that is opened."""

COMPRESSED = (".html", ".mjs", ".js", ".json", ".css", ".wasm", ".svg")
"""What a usual host compresses."""

LINK_SPEED, LINK_DELAY = 20_000_000, 40
"""Bits per second and milliseconds of the slower link."""

SLOWDOWN, KEYSTROKES, PAUSE = 4, 60, 1_500
"""Of the processor while typing; how many keys; milliseconds between them."""

PATIENCE = 300
"""Seconds for one page."""

BARE = """<!doctype html><title>Bare Pyodide</title><link rel="icon" href="data:,"><script type="module">
import { loadPyodide } from "./pyodide/pyodide.mjs";
const answer = (await loadPyodide()).runPython("1 + 1");
fetch(`told?bare=${performance.now()}&answer=${answer}`);
</script>"""

CALM = """<!doctype html><title>A browser that has started</title><link rel="icon" href="data:,"><script type="module">
setTimeout(() => location.replace(new URLSearchParams(location.search).get("to")), %d);
</script>"""
"""The page a browser without a driver opens: once the browser itself has settled, it goes on to the page that is measured."""

SETTLING = 6_000
"""Milliseconds that a browser has for its own start."""

WATCH = """const place = document.getElementById("headline");
const expected = %s;
const look = () => {
  if (!place.textContent.includes(expected) || !place.checkVisibility({ visibilityProperty: true })) return;
  seen.disconnect();
  const shown = performance.now();
  fetch(`told?ours=${shown}`);
};
const seen = new MutationObserver(look);
seen.observe(place, { childList: true, characterData: true, subtree: true });
seen.observe(document.documentElement, { attributes: true });
"""
"""Tells when the number that is expected can be seen."""

TYPING = """async ({ keys, pause }) => {
  const box = document.getElementById("sequence_length"), head = document.getElementById("headline");
  const results = { headline: [], "everything on the screen": [], "the whole page": [] };
  let first, seen, last;
  const painted = () => new Promise(done => requestAnimationFrame(() => scheduler.postTask(done, { priority: "user-blocking" }))); // right behind the frame
  const onScreen = ({ target }) => {
    const { top, bottom, height } = (target.nodeType === 1 ? target : target.parentElement)?.getBoundingClientRect() ?? { height: 0 };
    return height > 0 && bottom > 0 && top < innerHeight;
  };
  const spoken = document.getElementById("announcement"); // waits for a pause, so that nobody hears every key
  const watching = new MutationObserver(async all => {
    const entries = all.filter(entry => !spoken.contains(entry.target) && entry.attributeName !== "aria-busy");
    if (!entries.length) return;
    const answer = entries.some(entry => head.contains(entry.target)), shown = entries.some(onScreen);
    await painted();
    last = performance.now();
    if (answer && !first) first = last;
    if (shown) seen = last;
  });
  watching.observe(document.body, { childList: true, characterData: true, subtree: true, attributes: true });
  const base = box.value.slice(0, -1); // shorter, so that every key leaves a run that can be counted
  for (let key = 0; key < keys; key++) {
    first = seen = last = 0;
    const begun = performance.now();
    box.value = key % 2 ? base : `${base}${1 + key % 9}`;
    box.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await new Promise(done => setTimeout(done, pause));
    if (first) [first, seen, last].forEach((at, place) => Object.values(results)[place].push(at - begun));
  }
  watching.disconnect();
  return results;
}"""


class BenchHandler(SiteHandler):
    """The site under /ours/ and bare Pyodide under /bare/, compressed as usual hosts do; what the pages tell is kept."""

    packed: dict[Path, bytes] = {}

    def __init__(self, *arguments, told: Queue, **options):
        self._told = told
        super().__init__(*arguments, **options)

    def do_GET(self):
        """A file, or something told."""
        place = urlsplit(self.path)
        if place.path.endswith("/told"):
            self._told.put({name: float(values[0]) for name, values in parse_qs(place.query).items()})
            self.send_response(204)
            self.end_headers()
            return
        file = Path(self.translate_path(place.path))
        file = file / "index.html" if file.is_dir() else file
        if file.suffix not in COMPRESSED or not file.is_file():
            super().do_GET()
            return
        content = self.packed.get(file) or self.packed.setdefault(file, gzip.compress(file.read_bytes(), 6))
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(str(file)))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class BenchServer(ThreadingHTTPServer):
    """A server that says nothing of browsers that are closed while they still ask for something."""

    def handle_error(self, request, client_address):
        """Only what is no broken connection is told."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def bench_site() -> Iterator[tuple[str, Queue]]:
    """Serve both pages; gives the address and what they tell."""
    told = Queue()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "bare").mkdir()
        (folder / "bare" / "index.html").write_text(BARE, "utf-8")
        (folder / "calm").mkdir()
        (folder / "calm" / "index.html").write_text(CALM % SETTLING, "utf-8")
        (folder / "bare" / "pyodide").symlink_to(toolchain.npm_package("pyodide"), target_is_directory=True)
        shutil.copytree(DIST, folder / "ours", copy_function=lambda source, target: Path(target).hardlink_to(source))
        expected = f"{report.headline(estimate(SHARED)).peak}"
        (folder / "ours" / "watch.js").write_text(WATCH % json.dumps(expected), "utf-8")
        page = folder / "ours" / "index.html"
        text = page.read_text("utf-8").replace("</body>", '<script type="module" src="watch.js"></script></body>')
        page.unlink()
        page.write_text(text, "utf-8")
        server = BenchServer((HOST, 0), functools.partial(BenchHandler, directory=str(folder), told=told))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield "http://{}:{}/".format(*server.server_address), told
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def links(address: str) -> dict[str, str]:
    """The two pages."""
    return {"bare": f"{address}bare/", "ours": f"{address}ours/?{to_query(SHARED)}"}


class Chromium:
    """Opens pages in new browsers."""

    def __init__(self, playwright):
        self._start = functools.partial(playwright.chromium.launch_persistent_context, executable_path=toolchain.chromium())

    def visit(self, url: str, told: Queue, *, times: int = 1, slow: bool = False) -> float:
        """Milliseconds until the number is there on the last of several visits with one profile."""
        with tempfile.TemporaryDirectory() as profile:
            context = self._start(profile, chromium_sandbox=False)
            for visit in range(times):
                page = context.new_page()
                if slow:
                    client = context.new_cdp_session(page)
                    client.send("Network.enable")
                    client.send("Network.emulateNetworkConditions", {
                        "offline": False, "latency": LINK_DELAY, "downloadThroughput": LINK_SPEED / 8, "uploadThroughput": LINK_SPEED / 8,
                    })
                page.goto(url, wait_until="commit")
                (milliseconds, *_) = told.get(timeout=PATIENCE).values()
                if visit + 1 < times:
                    _settle(page)
                page.close()
            context.close()
        return milliseconds


def _settle(page) -> None:
    """Wait until the service worker, where the page has one, keeps the build."""
    if page.evaluate("'way' in document.documentElement.dataset || !!document.getElementById('headline')"):
        page.wait_for_selector("html[data-boot=ready]", timeout=PATIENCE * 1_000)
        page.evaluate("navigator.serviceWorker.ready.then(() => 0)")


def firefox_visit(program: str, address: str, url: str, told: Queue) -> float:
    """The same in a new Firefox, once that has started."""
    with tempfile.TemporaryDirectory() as profile:
        first = f"{address}calm/?{urlencode({'to': url})}"
        running = subprocess.Popen([program, "--headless", "--no-remote", "--profile", profile, first], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            (milliseconds, *_) = told.get(timeout=PATIENCE).values()
        finally:
            running.terminate()
            running.wait()
    return milliseconds


def start_ratios(rounds: int, kinds: tuple[str, ...] = ("cold", "third visit", "20 Mbit/s, 40 ms", "Firefox, cold")) -> dict[str, list[tuple[float, float]]]:
    """Milliseconds of (ours, bare) for every round, by kind of visit, taken in turns."""
    from playwright.sync_api import sync_playwright

    firefox = shutil.which("firefox") or shutil.which("firefox-esr")
    found: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    with bench_site() as (address, told), sync_playwright() as playwright:
        chromium = Chromium(playwright)
        visits = {
            "cold": lambda url: chromium.visit(url, told),
            "third visit": lambda url: chromium.visit(url, told, times=3),
            "20 Mbit/s, 40 ms": lambda url: chromium.visit(url, told, slow=True),
            "Firefox, cold": lambda url: firefox_visit(firefox, address, url, told),
        }
        for _ in range(rounds):
            for kind in kinds:
                if kind.startswith("Firefox") and not firefox:
                    continue
                times = {name: visits[kind](url) for name, url in links(address).items()}
                found[kind].append((times["ours"], times["bare"]))
    return {kind: pairs for kind, pairs in found.items() if pairs}


def typing_times() -> dict[str, list[float]]:
    """Milliseconds from a keystroke to the headline, to everything on the screen, and to all of the page, with a slowed processor."""
    from playwright.sync_api import sync_playwright

    with bench_site() as (address, told), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=toolchain.chromium(), chromium_sandbox=False)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(links(address)["ours"])
        page.wait_for_selector("html[data-boot=ready]", timeout=PATIENCE * 1_000)
        page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": SLOWDOWN})
        found = page.evaluate(TYPING, {"keys": KEYSTROKES, "pause": PAUSE})
        browser.close()
    return found


def transfer() -> tuple[int, int]:
    """Bytes until the first number, from a host that compresses nothing and from one that does as BenchHandler."""
    from vramplan_site.site import first_files

    contents = {name: (DIST / name).read_bytes() for name in first_files(DIST)}
    packed = (min(len(data), len(gzip.compress(data, 6))) if Path(name).suffix in COMPRESSED else len(data) for name, data in contents.items())
    return sum(map(len, contents.values())), sum(packed)
