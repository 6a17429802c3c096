"""`build.py bench`: how long a calculation takes here, and how soon the page is live beside bare Pyodide."""

import statistics
import threading
import time
import timeit
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from vramplan_site import bench_fit, bench_page, toolchain
from vramplan_site.server import open_server
from vramplan_site.toolchain import DIST

ROUNDS = 5


def main() -> int:
    """Print every table."""
    print("Calculation, native Python   milliseconds")
    for name, seconds in calculation_times().items():
        print(f"  {name:<27}{seconds * 1000:>12.3f}")
    print(f"\nSweep over micro-batch and length (one core, median of {ROUNDS})   estimates per second")
    for name, rate in sweep_rates().items():
        print(f"  {name:<27}{rate:>50,.0f}")
    print(f"\nMake it fit, in the page and in native Python, nothing remembered (least and median of {ROUNDS})   milliseconds   ratio of the least")
    with served(DIST) as address:
        for name, times in bench_fit.times(address, ROUNDS).items():
            (page, of_page), (native, of_native) = ((min(each), statistics.median(each)) for each in times)
            print(f"  {name:<27}{page:>8.0f}{of_page:>8.0f}{native:>8.0f}{of_native:>8.0f}{page / native:>8.1f}")
    print(f"\nMap of what fits, in the page (median of {ROUNDS})   milliseconds   longest slice")
    for name, (total, longest) in map_times().items():
        print(f"  {name:<27}{total:>31.1f}{longest:>16.1f}")
    plain, compressed = bench_page.transfer()
    print(f"\nBytes until the first number   million\n  from a host that compresses nothing{plain / 1e6:>19.2f}\n  from one that compresses{compressed / 1e6:>30.2f}")
    print(f"\nFirst number of a shared link, beside bare Pyodide (median of {ROUNDS})   milliseconds   ratio (of each round)")
    for kind, pairs in bench_page.start_ratios(ROUNDS).items():
        ours, bare = (statistics.median(times) for times in zip(*pairs, strict=True))
        ratios = [mine / its for mine, its in pairs]
        print(f"  {kind:<27}{ours:>10.0f} of {bare:>6.0f}{statistics.median(ratios):>8.2f}   ({', '.join(f'{ratio:.2f}' for ratio in ratios)})")
    print(f"\nTyping, processor slowed {bench_page.SLOWDOWN} times (median of {bench_page.KEYSTROKES})   milliseconds")
    for name, times in bench_page.typing_times().items():
        print(f"  {name:<27}{statistics.median(times):>10.0f}")
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


SWEPT = {"micro_batch": "1:64", "sequence_length": "64:131072:8"}
"""About a million batches."""

SWEPT_RUNS = {
    "opening configuration": {},
    "eager attention": {"attention_kernel": "eager"},
    "fused loss, full": {"method": "full", "loss": "fused-linear", "gpu": "80"},
    "DPO, tiled loss": {"stack": "trl-1.15", "objective": "dpo", "gpu": "80"},
    "FSDP2 over 8": {"sharding": "fsdp2", "sharded_over": "8"},
}
"""Runs that are swept, by what is special about them."""


def sweep_rates() -> dict[str, float]:
    """Estimates, each a peak and a verdict, per second of a whole sweep, from its texts to arrays."""
    from vramplan.sweep import Sweep

    rates = {}
    for name, texts in SWEPT_RUNS.items():
        found = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            points = sum(len(plane.peaks) for plane in Sweep(texts | SWEPT).planes())
            found.append(points / (time.perf_counter() - begun))
        rates[name] = statistics.median(found)
    return rates


MAPPED_RUNS = {
    "opening configuration": "",
    "mixture of experts, LoRA": "?v=2&model=qwen3-30b-a3b&method=lora&gpu=80",
    "two kinds of layers, full": "?v=2&model=gpt-oss-20b&method=full&gpu=180",
    "latent attention": "?v=2&model=deepseek-v2-lite&gpu=80",
}
"""Runs whose maps are made, by what is special about them."""

SLICES = "performance.getEntriesByName('map-slice').map(each => each.duration)"
SETTLED_MS = 1_000
"""Milliseconds after its drawing by which the map's table is there too."""


def map_times() -> dict[str, tuple[float, float]]:
    """Milliseconds that a map takes in all, and the longest at a time, for which input waits: medians over new pages."""
    from playwright.sync_api import sync_playwright

    times = {}
    with sync_playwright() as playwright, served(DIST) as url:
        browser = playwright.chromium.launch(executable_path=toolchain.chromium())
        for name, query in MAPPED_RUNS.items():
            found = []
            for _ in range(ROUNDS):
                page = browser.new_page()
                page.goto(url + query)
                page.wait_for_selector("html[data-boot=ready]", timeout=120_000)
                page.evaluate("document.getElementById('map-part').scrollIntoView()")
                page.wait_for_timeout(SETTLED_MS)
                page.wait_for_selector("#map[aria-busy=false]", timeout=120_000)
                page.wait_for_timeout(SETTLED_MS)
                found.append(page.evaluate(SLICES))
                page.close()
            times[name] = statistics.median(map(sum, found)), statistics.median(map(max, found))
        browser.close()
    return times


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
