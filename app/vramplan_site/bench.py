"""`build.py bench`: how long a calculation takes here, and how soon the page is live beside bare Pyodide."""

import statistics
import tempfile
import threading
import timeit
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from vramplan_site import toolchain
from vramplan_site.server import open_server
from vramplan_site.toolchain import DIST

ROUNDS = 5
READY = "performance.getEntriesByName('boot-ready')[0].startTime"

BARE_PAGE = """<!doctype html><title>Bare Pyodide</title><link rel="icon" href="data:,"><script type="module">
import { loadPyodide } from "./pyodide/pyodide.mjs";
(await loadPyodide()).runPython("1 + 1");
performance.mark("boot-ready");
document.documentElement.dataset.boot = "ready";
</script>"""


def main() -> int:
    """Print both tables."""
    print("Calculation, native Python   milliseconds")
    for name, seconds in calculation_times().items():
        print(f"  {name:<27}{seconds * 1000:>12.3f}")
    ours, bare = start_times()
    print(f"\nPage live (new browser, median of {ROUNDS})   milliseconds   ratio")
    print(f"  bare Pyodide{bare:>37.0f}{1:>8.2f}\n  VRAM Plan{ours:>40.0f}{ours / bare:>8.2f}")
    return 0


def calculation_times() -> dict[str, float]:
    """Seconds for one call of each calculation, with the opening configuration."""
    import vramplan
    from vramplan.accountings import peak_bytes
    from vramplan.accountings.step.moments import forget

    settings = vramplan.Settings()

    def unlike_any_before() -> None:
        forget()
        vramplan.estimate(settings)

    calculations = {name: getattr(vramplan, name) for name in ("estimate", "fit", "curve", "compare")}
    timers = {"peak alone": lambda: peak_bytes(settings), "estimate, tensors new": unlike_any_before}
    timers |= {name: partial(calculate, settings) for name, calculate in calculations.items()}
    times = {}
    for name, call in timers.items():
        calls, total = timeit.Timer(call).autorange()
        times[name] = total / calls
    return times


def start_times() -> tuple[float, float]:
    """Median milliseconds until the page is live, and until a page with nothing but Pyodide is; taken in turns."""
    from playwright.sync_api import sync_playwright

    times, chromium = {"ours": [], "bare": []}, toolchain.chromium()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        (Path(scratch) / "index.html").write_text(BARE_PAGE, "utf-8")
        (Path(scratch) / "pyodide").symlink_to(toolchain.npm_package("pyodide"), target_is_directory=True)
        with served(DIST) as ours, served(Path(scratch)) as bare:
            for _ in range(ROUNDS):
                for name, url in (("bare", bare), ("ours", ours)):
                    browser = playwright.chromium.launch(executable_path=chromium)
                    page = browser.new_page()
                    page.goto(url)
                    page.wait_for_selector("html[data-boot=ready]", timeout=120_000)
                    times[name].append(page.evaluate(READY))
                    browser.close()
    return statistics.median(times["ours"]), statistics.median(times["bare"])


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder while the block runs; gives its address."""
    with open_server(folder=folder) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield "http://{}:{}/".format(*server.server_address)
        finally:
            server.shutdown()
            thread.join()
