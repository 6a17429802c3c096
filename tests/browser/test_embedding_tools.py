"""The examples of embedding, each made by the tool it is for and used in a browser: a plain page, MkDocs, Sphinx, a notebook.

Belongs here: that what tests/embedding says works as it stands there. What frames can do: test_embedding.py.
"""

import os
from pathlib import Path
import re
import shutil
import subprocess
import sys

from playwright.sync_api import expect
import pytest

from conftest import serving
from pages import Calculator
import runs
from vramplan import report
from vramplan.badge import FILE, badge, svg

EXAMPLES = Path(__file__).resolve().parents[1] / "embedding"
APP = EXAMPLES.parents[1] / "app"
WRITTEN = "https://example.org/vram/"
TEXTS = {"model": "llama-3.2-3b", "gpu": "12"}
SANDBOXED = "Permissions policy violation"


@pytest.fixture
def example(tmp_path, site):
    """A folder with the examples, the address of the calculator and the badge of the run written into them."""
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in folder.rglob("*"):
        if file.suffix in (".html", ".md", ".rst", ".yml") or file.name == "conf.py":
            file.write_text(file.read_text("utf-8").replace(WRITTEN, site), "utf-8")
    picture = svg(badge(runs.of(**TEXTS)))
    for place in ("mkdocs/docs", "sphinx"):
        (folder / place / FILE).write_text(picture, "utf-8")
    return folder


def make(*command, cwd):
    """Run a tool, and fail with what it says."""
    environment = {**os.environ, "PYTHONPATH": str(APP), "IPYTHONDIR": str(cwd), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run([sys.executable, *command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def shown(visit):
    """Opens a page of a folder, on a site of its own, and gives it with the calculator in its frame, live."""
    servers = []

    def show(folder, name="index.html"):
        visitor = visit()
        visitor.watch.allow_error(SANDBOXED)
        server = serving(folder)
        address = server.__enter__()
        servers.append(server)
        page = visitor.context.new_page()
        page.goto(address + name)
        (frame,) = page.main_frame.child_frames
        page.locator("iframe").scroll_into_view_if_needed()
        framed = Calculator(frame)
        framed.wait_ready()
        return page, framed

    yield show
    for server in servers:
        server.__exit__(None, None, None)


def expect_sized(page, framed):
    """The frame is as high as what it shows."""
    needed = framed.root.evaluate("document.body.getBoundingClientRect().height")
    page.wait_for_function("needed => Math.abs(document.querySelector('iframe').clientHeight - needed) <= 1.5", arg=needed)


def expect_example(page, framed):
    """The frame of the examples: its run, its parts, and the badge beside it."""
    run = runs.of(**TEXTS)
    framed.expect_headline_alone(run)
    framed.expect_rows(framed.table("What fills the memory"), runs.component_rows(run))
    expect(framed.region("Memory against sequence length")).to_contain_text(report.line_label(run))
    expect(framed.region("What fits")).not_to_be_visible()
    framed.button("Settings").click()
    expect(framed.control("model")).to_be_disabled()
    framed.set(sequence_length="512")
    framed.expect_headline_alone(runs.of(**TEXTS, sequence_length="512"))
    expect_sized(page, framed)
    told = badge(run).alternative
    assert told == "Llama 3.2 3B: QLoRA fits 12 GiB at 2,048"
    picture = page.get_by_role("img", name=told)
    assert picture.evaluate("async each => { await each.decode(); return each.naturalWidth; }") > 200


def test_a_plain_page_sets_settings_and_writes_what_the_calculator_answers(example, shown):
    page, framed = shown(example, "plain.html")
    framed.expect_headline_alone(runs.of(**TEXTS))
    answer = page.get_by_role("status")

    def expect_answer(run):
        expect(answer).to_have_text(f"{run.settings.sequence_length} tokens: {run.peak_bytes} of {run.budget_bytes} bytes, {'fits' if run.fits else 'does not fit'}")

    expect_answer(runs.of(**TEXTS))
    page.get_by_label("Tokens per sequence").select_option("8192")
    expect_answer(runs.of(**TEXTS, sequence_length="8192"))
    framed.expect_headline_alone(runs.of(**TEXTS, sequence_length="8192"))
    framed.button("Settings").click()
    framed.type_number("rank", "none")
    expect(answer).to_have_text("Check rank")
    expect_sized(page, framed)


def test_a_page_of_mkdocs(example, shown):
    make("-m", "mkdocs", "build", "--strict", "--site-dir", str(example / "made"), cwd=example / "mkdocs")
    expect_example(*shown(example / "made"))


def test_a_page_of_sphinx(example, shown):
    make("-m", "sphinx", "-W", "-q", "-b", "html", ".", str(example / "made"), cwd=example / "sphinx")
    expect_example(*shown(example / "made"))


def test_cells_of_a_notebook(example, shown, site):
    page_text = make(str(example / "cells.py"), "notebook.ipynb", site, cwd=example)
    (example / "notebook.html").write_text(page_text, "utf-8")
    page, framed = shown(example, "notebook.html")
    run = runs.of(**TEXTS)
    told = report.headline(run)
    expect(page.get_by_role("table")).to_contain_text(told.run)
    for row in report.components(run):
        expect(page.get_by_role("row").filter(has=page.get_by_role("rowheader", name=row.label, exact=True))).to_have_text(
            re.compile(rf"^{re.escape(row.label)}\s*{re.escape(row.gib)}\s*{re.escape(row.share_text)}$"))
    framed.expect_headline_alone(run)
    expect(framed.region("What fills the memory")).not_to_be_visible()
