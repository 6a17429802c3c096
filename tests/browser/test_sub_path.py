"""The page under a path of another site, served as plainly as can be: everything it asks for and hands on stays there."""

import shutil

from playwright.sync_api import expect
import pytest

from conftest import DIST, serving
import runs

PLACE = "docs/vram/"
QUERY = "?v=2&method=lora&sequence_length=4096"
RUN = {"method": "lora", "sequence_length": "4096"}
ACTIVE = "navigator.serviceWorker.ready.then(registration => [registration.scope, registration.active.scriptURL])"


@pytest.fixture
def served(tmp_path):
    """Address of a site that has the page in a folder of a folder, beside a page of its own."""
    shutil.copytree(DIST, tmp_path / PLACE)
    (tmp_path / "index.html").write_text('<!doctype html><html lang="en"><title>Elsewhere</title><link rel="icon" href="data:,">', "utf-8")
    with serving(tmp_path) as address:
        yield address


def test_everything_stays_under_the_path(visit, served):
    visitor = visit(site=served + PLACE, service_workers="allow")
    page = visitor.blank()
    page.root.goto(served + PLACE.removesuffix("/") + QUERY)
    page.wait_ready()
    page.expect_headline(runs.of(**RUN))
    assert page.page.url == served + PLACE + QUERY
    page.set(optimizer="adamw-8bit")
    page.share()
    link = page.shared("Link")
    assert link.startswith(f"{served}{PLACE}?v=2&")
    with page.page.expect_download():
        page.dialog.get_by_role("button", name="Save as JSON").click()
    assert page.page.evaluate(ACTIVE) == [served + PLACE, f"{served}{PLACE}service-worker.mjs"]
    asked = [url for url in visitor.watch.requests if url.startswith("http")]
    assert len(asked) > 15 and [url for url in asked if not url.startswith(served + PLACE.removesuffix("/"))] == []

    again = visitor.blank()
    again.root.goto(link)
    again.wait_ready()
    again.expect_headline(runs.of(**RUN, optimizer="adamw-8bit"))
    assert again.page.evaluate("!!navigator.serviceWorker.controller")
    outside = visitor.context.new_page()
    outside.goto(served)
    assert outside.evaluate("navigator.serviceWorker.controller") is None


def test_links_that_were_handed_on_open_without_a_network(visit, tmp_path):
    shutil.copytree(DIST, tmp_path / PLACE)
    with serving(tmp_path) as address:
        visitor = visit(site=address + PLACE, service_workers="allow")
        visitor.open().page.evaluate(ACTIVE)
    visitor.watch.allow_error("ERR_CONNECTION_REFUSED")
    for name in ("", "index.html"):
        page = visitor.blank()
        page.root.goto(address + PLACE + name + QUERY)
        page.wait_ready()
        page.expect_headline(runs.of(**RUN))
        expect(page.root.locator("html")).to_have_attribute("data-way", "snapshot")
