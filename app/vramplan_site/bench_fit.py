"""How long it takes to find what makes a run fit: in a page of its own each time, and in native Python right before."""

import time

from vramplan_site import toolchain

RUNS = {
    "Llama 3.1 8B, full, 24 GiB": {"method": "full", "gpu": "24"},
    "Llama 3.1 70B, QLoRA, 24": {"model": "llama-3.1-70b", "gpu": "24"},
    "Qwen3 30B-A3B, LoRA, 48": {"model": "qwen3-30b-a3b", "method": "lora", "gpu": "48"},
    "Llama 3.1 8B, LoRA, 16": {"method": "lora", "gpu": "16", "sequence_length": 4096},
    "Opening run, how it grows": {},
}
"""Runs by what is special about them: where little has to be counted, and where much."""

QUIET_MS, PATIENCE_MS = 2_000, 120_000
"""Milliseconds until a page has nothing left to do but this, and that anything may take."""

SHOWN = "performance.getEntriesByName('make-fit').map(each => each.duration).at(-1)"
"""Milliseconds until the answer was shown, as the page keeps it."""

AGAIN = """import vramplan.accountings.step.moments, vramplan.accountings.step.surfaces
vramplan.accountings.step.moments.forget()
vramplan.accountings.step.surfaces.forget()"""
"""What makes the page work everything out anew."""


def times(address: str, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    """Milliseconds in the page until the answer is shown, and in native Python until it is told, for every run and round."""
    from playwright.sync_api import sync_playwright

    found = {name: ([], []) for name in RUNS}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=toolchain.chromium())
        for name, changes in RUNS.items():
            for _ in range(rounds):
                found[name][1].append(_native(changes))
                found[name][0].append(_in_the_page(browser, address, changes))
        browser.close()
    return found


def _in_the_page(browser, address: str, changes: dict[str, object]) -> float:
    """Milliseconds of a search that somebody asks for again once the page is quiet."""
    from vramplan import Settings
    from vramplan.link import to_query

    page = browser.new_page()
    page.goto(f"{address}?{to_query(Settings(**changes))}")
    page.wait_for_selector("html[data-boot=ready]", timeout=PATIENCE_MS)
    page.evaluate("document.getElementById('make-fit-part').scrollIntoView()")
    page.wait_for_selector("#make-fit[aria-busy=false]", timeout=PATIENCE_MS)
    page.wait_for_timeout(QUIET_MS)
    page.evaluate("code => pyodide.runPython(code)", AGAIN)
    page.evaluate("document.getElementById('make-fit-batch').dispatchEvent(new Event('change'))")
    page.wait_for_selector("#make-fit[aria-busy=false]", timeout=PATIENCE_MS)
    milliseconds = page.evaluate(SHOWN)
    page.close()
    return milliseconds


def _native(changes: dict[str, object]) -> float:
    """Milliseconds of the same search here, and of telling what it found."""
    from vramplan import Settings, make_fit
    from vramplan.accountings.step import moments, surfaces
    from vramplan.growth import growth
    from vramplan.make_fit_report import told

    moments.forget()
    surfaces.forget()
    settings, begun = Settings(**changes), time.perf_counter()
    made = make_fit(settings)
    told(made, made.offers, growth(settings) if made.run.fits else ())
    return (time.perf_counter() - begun) * 1000
