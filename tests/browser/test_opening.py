"""How the page opens: useful before any script runs, honest while it loads, readable when it cannot start."""

import re

from playwright.sync_api import expect

from vramplan import report
from vramplan.calculation import EXPLAINED, steps
from vramplan.catalogue import defaults
from vramplan.fields import BY_NAME, applying
from vramplan.fit import fit
import runs

OPENING_NUMBERS = re.compile("opening configuration")
STARTS = re.compile(r"/(snapshot|app|stock)-[^/]*\.(bin|zip)$")
"""Whatever Python is started from."""


def test_the_page_is_useful_before_any_script_runs(visit):
    visitor = visit(java_script_enabled=False)
    page = visitor.blank()
    page.page.goto(visitor.site)
    opening = runs.of()
    found = fit(opening.settings)

    page.expect_headline(opening)
    page.expect_rows(page.table("What fills the memory"), runs.component_rows(opening))
    for fact in report.facts(opening):
        expect(page.fact(fact.label)).to_contain_text(f"{fact.text} {fact.exact}")
    for answer in (*report.maxima(opening, found), report.smallest_gpu(opening, found)):
        expect(page.tile(answer.label)).to_contain_text(answer.text)
        expect(page.tile(answer.label)).to_contain_text(answer.sentence)
    page.expect_rows(page.table("What fits"), runs.change_rows(report.alternatives(opening, found)))
    page.expect_rows(page.table("Methods compared"), runs.change_rows(report.methods(opening)))
    page.region("Memory against sequence length").locator("summary").click()
    page.expect_rows(
        page.table("Memory against sequence length"),
        runs.curve_rows(opening),
    )

    page.open_advanced()
    usual = defaults()
    for name in applying(usual):
        page.expect_setting(name, usual[name])
    for name in set(usual) - applying(usual):
        expect(page.form.get_by_label(BY_NAME[name].label, exact=True)).not_to_be_visible()
    expect(page.root.locator("noscript > p")).to_be_visible()
    expect(page.root.locator("noscript > p")).to_contain_text("needs JavaScript and WebAssembly")

    formulas = page.region("How it is calculated").get_by_role("math")
    cases = sum(len(step.cases) for name in EXPLAINED for step in steps(name))
    assert formulas.count() > cases
    assert {formula.evaluate("node => node.namespaceURI") for formula in formulas.all()[:5]} == {"http://www.w3.org/1998/Math/MathML"}
    for step in (each for name in EXPLAINED for each in steps(name)):
        expect(page.region("How it is calculated")).to_contain_text(step.title)
        expect(page.region("How it is calculated")).to_contain_text(step.source)


def test_a_link_shows_the_opening_run_where_the_script_that_starts_python_does_not_come(visit):
    visitor = visit()
    visitor.watch.allow_error(".*")
    page = visitor.blank()
    visitor.context.route(re.compile(r"/boot-[^/]*\.mjs$"), lambda route: route.abort())
    page.page.goto(f"{visitor.site}?v=2&method=lora")
    expect(page.region("What fills the memory")).to_be_visible()
    page.expect_headline(runs.of())


def test_a_link_to_a_part_of_the_page_shows_that_part(visit):
    page = visit().open("?v=2&method=lora#help")
    expect(page.root.get_by_role("heading", name="Help", exact=True)).to_be_in_viewport()


def test_loading_is_visible_and_keeps_what_is_typed(visit):
    visitor = visit()
    held = []
    visitor.context.route(STARTS, lambda route: held.append(route))
    page = visitor.blank()
    page.page.goto(visitor.site)
    loading = page.status("Loading the calculator")
    expect(loading).to_be_visible()
    page.expect_headline(runs.of())

    page.set(sequence_length="4096", method="lora", optimizer="adamw-8bit", gpu="16")
    page.control("adapter_targets").get_by_role("radio", name=re.compile("^A list")).check()
    page.type_number("micro_batch", "2")
    expect(page.control("micro_batch")).to_be_focused()
    expect(loading).to_be_visible()
    expect(page.root.get_by_text("Your run is computed as soon as")).to_be_visible()
    held[-1].continue_()
    page.wait_ready()

    expect(loading).not_to_be_visible()
    wanted = {"sequence_length": "4096", "method": "lora", "optimizer": "adamw-8bit", "gpu": "16", "micro_batch": "2",
              "adapter_targets": "q,k,v,o,gate,up,down"}
    for name, text in wanted.items():
        page.expect_setting(name, text)
    page.expect_headline(runs.of(**wanted))
    assert runs.of_query(page.query) == runs.of(**wanted)
    expect(page.control("micro_batch")).to_be_focused()


def test_without_webassembly_the_page_says_so_and_keeps_its_numbers(visit):
    visitor = visit()
    visitor.context.add_init_script("delete globalThis.WebAssembly")
    page = visitor.blank()
    page.page.goto(visitor.site)
    expect(page.status("This browser has no WebAssembly")).to_be_visible()
    expect(page.status(OPENING_NUMBERS)).to_be_visible()
    page.expect_headline(runs.of())


def test_a_failed_download_is_told_and_can_be_tried_again(visit):
    visitor = visit()
    visitor.watch.expect_error(r"/(snapshot|app|stock)-|/pyodide-")  # the requests, and Python's own account of what it misses
    visitor.context.route(STARTS, lambda route: route.abort())
    page = visitor.blank()
    page.page.goto(visitor.site + "?v=2&sequence_length=4096")
    expect(page.status("could not be downloaded")).to_be_visible()
    visitor.context.unroute(STARTS)
    page.button("Try again").click()
    page.wait_ready()
    expect(page.button("Try again")).not_to_be_visible()
    page.expect_headline(runs.of(sequence_length="4096"))
