"""Without a network: the second visit works, and a new build replaces an old one whole."""

import json
import re
import shutil

from playwright.sync_api import expect
import pytest

from conftest import DIST, serving
from vramplan import report
import runs
import workers
from vramplan_site.site import write_service_worker
from vramplan_site.sums import integrity

QUERY = "?v=2&sequence_length=4096&method=lora"
RUN = {"sequence_length": "4096", "method": "lora"}
SOON = """const soon = async (there, again) => {
    for (let turn = 1; turn <= 1200; turn++) {
        if (await there()) return;
        await new Promise(done => setTimeout(done, 50));
        if (turn % 200 === 0) await again?.();
    }
    throw new Error(`it did not come to that: ${there}`);
};"""
"""Waits until something is there, a minute at the most; now and then it is tried again."""

STATE = f"""async wanted => {{
    {SOON}
    const found = () => navigator.serviceWorker.getRegistration();
    const there = async () => {{ const worker = (await found())?.[wanted]; return worker && worker.state !== "activating"; }};
    await soon(there, async () => (await found())?.update()); // as the next visit would
}}"""
BUILDS = f"""async wanted => {{
    {SOON}
    await soon(async () => (await caches.keys()).length === wanted);
}}"""


@pytest.fixture
def online(visit):
    """Makes visitors whose browser keeps pages."""
    return lambda address: visit(site=address, service_workers="allow")


def kept(page):
    """Wait until the page’s build is kept, whole."""
    page.page.evaluate(STATE, "active")


def files_of(page):
    """What the page has loaded of the site, by name."""
    names = page.page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")
    return {name.removeprefix(page.address) for name in names if name.startswith(page.address)}


def other_build(folder):
    """The same page built from other sources: all names are other ones."""
    target = folder / "other"
    shutil.copytree(DIST, target)
    page = (target / "index.html").read_text("utf-8")
    renamed = {}
    for file in sorted(target.iterdir()):
        if found := re.fullmatch(r"(.+-)([0-9a-f]{12})(\.\w+)", file.name):
            renamed[file.name] = f"{found[1]}{found[2][::-1]}{found[3]}"
    for name in renamed:
        (target / name).rename(target / renamed[name])
    rewritten = dict(renamed)
    for file in sorted(target.iterdir(), key=lambda each: each.suffix == ".html"):  # a page comes last: it holds the hashes of the others
        if file.suffix in (".mjs", ".json", ".css", ".html") and file.name != "service-worker.mjs":
            before = file.read_bytes()
            text = before.decode()
            for old, other in rewritten.items():
                text = text.replace(old, other)
            file.write_text(text, "utf-8")
            rewritten[integrity(before)] = integrity(text.encode())
    assert (target / "index.html").read_text("utf-8") != page
    write_service_worker(target)
    return target


def test_the_second_visit_needs_no_network(online):
    with serving(DIST) as address:
        visitor = online(address)
        kept(visitor.open(QUERY))
    page = visitor.blank()
    visitor.watch.allow_error("ERR_CONNECTION_REFUSED")
    page.open(QUERY)
    page.expect_headline(runs.of(**RUN))
    expect(page.root.locator("html")).to_have_attribute("data-way", "snapshot")
    page.share()
    with page.page.expect_download() as saving:
        page.dialog.get_by_role("button", name="Save as JSON").click()
    with open(saving.value.path(), encoding="utf-8") as file:
        assert json.load(file)["peak_bytes"] == runs.of(**RUN).peak_bytes
    page.page.keyboard.press("Escape")
    page.root.get_by_role("link", name="The scatters as a table").click()
    expect(page.root.get_by_role("heading", level=1)).to_have_text("Every recorded run")


def test_the_page_in_every_language_is_kept_with_the_first_visit_to_any_of_them(visit):
    with serving(DIST) as address:
        visitor = visit(site=address, service_workers="allow", locale="zh-CN")
        first = visitor.blank()
        first.root.goto(address + QUERY)
        first.page.wait_for_url("**/zh.html?**")
        first.wait_ready()
        kept(first)
        first.page.close()
    visitor.watch.allow_error("ERR_CONNECTION_REFUSED")
    visitor.context.set_offline(True)
    page = visitor.blank()
    page.root.goto(address + QUERY)
    page.page.wait_for_url("**/zh.html?**")
    page.wait_ready()
    expect(page.root.locator("html")).to_have_attribute("data-way", "snapshot")
    peak = report.headline(runs.of(**RUN)).peak
    expect(page.region("估计峰值")).to_contain_text(peak)
    page.root.get_by_role("link", name="English").click()
    page.page.wait_for_url("**/index.html?**")
    page.wait_ready()
    page.expect_headline(runs.of(**RUN))


def test_a_new_build_is_seen_at_once_and_never_mixed_with_the_old_one(online, tmp_path):
    new = other_build(tmp_path)
    site = tmp_path / "site"
    site.symlink_to(DIST, target_is_directory=True)
    with serving(site) as address:
        visitor = online(address)
        first = visitor.open(QUERY)
        kept(first)
        old_files = files_of(first)
        site.unlink()
        site.symlink_to(new, target_is_directory=True)

        second = visitor.open(QUERY)
        second.expect_headline(runs.of(**RUN))
        new_files = files_of(second)
        changed = {name for name in old_files if re.search(r"-[0-9a-f]{12}\.", name)}
        assert changed and not changed & new_files
        second.page.evaluate(STATE, "waiting")
        assert not files_of(first) & (new_files - old_files)
        for page in (first, second):
            page.page.close()
        third = visitor.blank()
        workers.newest_has_taken_over(third.page)
        third.open(QUERY)
        third.page.evaluate(BUILDS, 1)
    fourth = visitor.blank()
    visitor.watch.allow_error("ERR_CONNECTION_REFUSED")
    fourth.open(QUERY)
    fourth.expect_headline(runs.of(**RUN))
    assert not changed & files_of(fourth)


def test_a_page_and_a_worker_of_different_builds_are_not_kept_together(online, tmp_path):
    """Deployed file by file, the page still the old one: nothing is kept until both are of one build."""
    new = other_build(tmp_path)
    site = tmp_path / "site"
    shutil.copytree(DIST, site)
    shutil.copyfile(new / "service-worker.mjs", site / "service-worker.mjs")
    with serving(site) as address:
        visitor = online(address)
        visitor.context.add_init_script(workers.WATCHED)
        page = visitor.open(QUERY)
        assert page.page.evaluate(workers.END) == ["redundant", []]
        page.expect_headline(runs.of(**RUN))
