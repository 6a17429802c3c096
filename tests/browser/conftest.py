"""Browser, static server and opened pages for the browser tests.

Belongs here: starting and stopping things, and what must hold in every test (no error in the console, no request that
leaves this machine). Not here: locators and verbs (pages.py), assertions on what the page says.
"""

from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
import os
from pathlib import Path
import re
from threading import Thread
from urllib.parse import urlsplit

from playwright.sync_api import expect
import pytest

from pages import Calculator
from vramplan_site.toolchain import system_firefox

DIST = Path(__file__).resolve().parents[2] / "dist"
HOST = "127.0.0.1"
WIDE = {"width": 1440, "height": 900}
EXPECT_MS, ACTION_MS = 20_000, 30_000

expect.set_options(timeout=EXPECT_MS)


class QuietHandler(SimpleHTTPRequestHandler):
    """Files as any static server gives them, without a line for each."""

    def log_message(self, format, *args):
        pass


@contextmanager
def serving(folder, handler=QuietHandler):
    """A plain static server for a folder, on a free port; gives its address."""
    server = ThreadingHTTPServer((HOST, 0), partial(handler, directory=str(folder)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://{HOST}:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="session")
def site():
    """Address of the built page."""
    assert (DIST / "index.html").is_file(), "dist/ is missing; run python3 build.py build"
    with serving(DIST) as address:
        yield address


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args):
    """The machine's Chromium if one is named, kept from calling out."""
    quiet = [
        "--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-sync",
        "--no-first-run", f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {HOST}",
    ]
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    given = os.environ.get("VRAMPLAN_CHROMIUM")
    return {
        **browser_type_launch_args,
        "args": [*quiet, "--no-sandbox"] if root else quiet,
        **({"executable_path": given} if given else {}),
    }


@pytest.fixture(scope="session")
def firefox(playwright):
    """Firefox, kept from calling out: the machine's, which Playwright speaks to through firefox.mjs, else Playwright's own."""
    quiet = {
        "network.proxy.type": 1, "network.proxy.http": HOST, "network.proxy.ssl": HOST, "network.proxy.http_port": 9, "network.proxy.ssl_port": 9,
        "javascript.options.wasm_optimizingjit": False,  # Python is compiled once, which is most of a start, not twice
    }
    given = os.environ.get("VRAMPLAN_FIREFOX") or system_firefox()
    of_machine = {"channel": "moz-firefox", "executable_path": Path(__file__).with_name("firefox.mjs"), "env": {**os.environ, "VRAMPLAN_FIREFOX": given}}
    browser = playwright.firefox.launch(firefox_user_prefs=quiet, **(of_machine if given else {}))
    yield browser
    browser.close()


class Watch:
    """What every page of a context says to the console and asks the network for."""

    def __init__(self, context):
        self.requests, self.errors, self._expected, self._allowed = [], [], [], []
        context.on("request", lambda request: self.requests.append(request.url))
        context.on("console", self._on_console)
        context.on("weberror", lambda error: self.errors.append(str(error.error)))
        context.on("dialog", self._on_dialog)

    def _on_console(self, message):
        if message.type in ("error", "assert"):
            self.errors.append(f"{message.text} ({message.location.get('url', '')})")

    def _on_dialog(self, dialog):
        self.errors.append(f"a dialog opened: {dialog.message}")
        dialog.dismiss()

    def expect_error(self, pattern):
        """The test provokes errors like this; at least one has to come."""
        self._expected.append(pattern)

    def allow_error(self, pattern):
        """The browser may say this on its own account."""
        self._allowed.append(pattern)

    def asked_for(self, part):
        """Addresses requested so far that hold this text."""
        return [url for url in self.requests if part in url]

    def check(self):
        """Nothing went wrong that the test did not provoke, and nothing left this machine."""
        known = [*self._expected, *self._allowed]
        unexpected = [error for error in self.errors if not any(re.search(each, error) for each in known)]
        missing = [each for each in self._expected if not any(re.search(each, error) for error in self.errors)]
        schemes = {"http", "https", "ws", "wss"}
        outside = [url for url in self.requests if urlsplit(url).scheme in schemes and urlsplit(url).hostname != HOST]
        assert (unexpected, missing, outside) == ([], [], [])


class Visit:
    """A person with a browser: opens tabs on the page, and keeps watch over all of them."""

    def __init__(self, browser, site, **options):
        self.site = site
        self.context = browser.new_context(**{"viewport": WIDE, "accept_downloads": True, "service_workers": "block", **options})
        self.context.set_default_timeout(ACTION_MS)
        self.watch = Watch(self.context)

    def blank(self):
        """A tab on the page's address, before it is opened."""
        return Calculator(self.context.new_page(), self.site)

    def open(self, query=""):
        """A tab with the calculator ready."""
        calculator = self.blank()
        calculator.open(query)
        return calculator


def visiting(browser, site):
    """Makes visitors of a browser, on options of their context. All are closed, then checked."""
    visits = []

    def start(site=site, **options):
        visits.append(Visit(browser, site, **options))
        return visits[-1]

    yield start
    for each in visits:
        each.context.close()
    for each in visits:
        each.watch.check()


def sharing(browser, site, **options):
    """One visitor for many tests, with the page open."""
    visitor = Visit(browser, site, **options)
    visitor.calculator = visitor.open()
    yield visitor
    visitor.context.close()


@pytest.fixture
def visit(browser, site):
    """Makes visitors: visit(**options of the browser context). Each is checked and closed after the test."""
    yield from visiting(browser, site)


@pytest.fixture(scope="module")
def shared_visit(browser, site):
    """One visitor for all tests of a file that need no fresh page."""
    yield from sharing(browser, site, permissions=["clipboard-read", "clipboard-write"])


@pytest.fixture
def calculator(shared_visit):
    """The file's page with the opening configuration, wide, nothing open; a new tab if the old one no longer draws."""
    if not shared_visit.calculator.draws():
        shared_visit.calculator.page.close()
        shared_visit.calculator = shared_visit.open()
    page = shared_visit.calculator
    page.start_again(WIDE)
    yield page
    shared_visit.watch.check()
    shared_visit.watch.errors.clear()
