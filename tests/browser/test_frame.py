"""The page inside a frame of another site: it works, follows its own settings, and copying works or says why not."""

import re

from playwright.sync_api import expect
import pytest

from conftest import serving
from pages import Calculator
import runs

HOST_PAGE = """<!doctype html><html lang="en"><title>A page about training</title><link rel="icon" href="data:,">
<label>Paste here <textarea></textarea></label>
{frame}
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """Address of another site, and a function that puts a frame on one of its pages."""
    folder = tmp_path_factory.mktemp("host")

    def write(name, frame):
        (folder / name).write_text(HOST_PAGE.format(frame=frame), encoding="utf-8")

    with serving(folder) as address:
        yield address, write


def test_the_offered_snippet_works_on_another_site(visit, hosts):
    address, write = hosts
    visitor = visit()
    own = visitor.open("?v=2&model=llama-3.2-3b")
    own.share()
    write("snippet.html", own.shared("Frame for another page"))
    own.root.goto(address + "snippet.html")
    framed = framed_calculator(own.page, visitor.site)
    framed.expect_headline_alone(runs.of(model="llama-3.2-3b"))
    framed.button("Settings").click()
    framed.set(method="lora", sequence_length="4096", optimizer="adamw-8bit")
    run = runs.of(model="llama-3.2-3b", method="lora", sequence_length="4096", optimizer="adamw-8bit")
    framed.expect_headline_alone(run)
    assert runs.of_query(framed.query) == run
    assert own.page.url == address + "snippet.html"
    expect_copied_link(framed, run)


def test_the_whole_page_in_a_frame_is_shared_from_there(visit, hosts):
    address, write = hosts
    visitor = visit()
    write("whole.html", f'<iframe src="{visitor.site}?v=2&amp;rank=8" title="Calculator" width="900" height="700" allow="clipboard-write"></iframe>')
    page = visitor.context.new_page()
    page.goto(address + "whole.html")
    framed = framed_calculator(page, visitor.site)
    framed.expect_headline(runs.of(rank="8"))
    framed.share()
    assert runs.of_query(framed.shared("Link")) == runs.of(rank="8")
    page.keyboard.press("Escape")
    expect(framed.dialog).not_to_be_visible()


def test_a_frame_without_any_permission_still_copies_or_says_why_not(visit, hosts):
    address, write = hosts
    visitor = visit()
    visitor.watch.allow_error("Permissions policy violation")
    write("bare.html", f'<iframe src="{visitor.site}?v=2&amp;rank=8" title="Calculator" width="900" height="700" sandbox="allow-scripts allow-same-origin"></iframe>')
    page = visitor.context.new_page()
    page.goto(address + "bare.html")
    framed = framed_calculator(page, visitor.site)
    framed.expect_headline(runs.of(rank="8"))
    framed.set(gpu="custom", budget="16")
    framed.expect_headline(runs.of(rank="8", gpu="custom", budget="16"))
    framed.apply("What fits", re.compile("^Adapter targets: Attention only"))
    run = runs.of(rank="8", gpu="custom", budget="16", adapter_targets="attention")
    framed.expect_headline(run)
    assert runs.of_query(framed.query) == run
    expect_copied_link(framed, run)
    framed.type_number("micro_batch", "none")
    expect(framed.problems).to_be_visible()


def framed_calculator(page, site):
    """The calculator in the only frame of a page, live, on a site of its own."""
    (frame,) = page.main_frame.child_frames
    framed = Calculator(frame)
    framed.wait_ready()
    assert frame.url.startswith(site) and not page.url.startswith(site)
    return framed


def expect_copied_link(framed, run):
    """Copy link tells that it worked, and what is pasted opens the run; or it tells that copying is not allowed."""
    framed.button("Copy link").click()
    told = framed.status(re.compile("Link copied|does not allow copying"))
    expect(told).to_be_visible()
    if "copied" in told.text_content():
        field = framed.page.get_by_label("Paste here")
        field.click()
        framed.page.keyboard.press("ControlOrMeta+V")
        expect(field).to_have_value(re.compile("^http"))
        assert runs.of_query(field.input_value()) == run
