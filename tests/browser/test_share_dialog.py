"""What the Share dialog offers for other pages: a frame as it will be, chosen there, and a badge.

The link, the command and the lines of Python: test_address.py. What frames can do: test_embedding.py.
"""

from html.parser import HTMLParser
from pathlib import Path
import re

from playwright.sync_api import expect
import pytest

from pages import Calculator
import runs
from vramplan.badge import FILE, badge, markdown, svg
from vramplan.view import PANELS, USUAL_PANELS, View, read_view

PHONE = {"width": 360, "height": 740}


class Markup(HTMLParser):
    """Attributes of the elements of a snippet, by tag."""

    def __init__(self, text):
        super().__init__()
        self.found = {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found[tag] = dict(attrs)


@pytest.fixture
def fresh(visit):
    """A page of its own: what is chosen for a frame stays chosen."""
    return visit().open()


def unfold(calculator, title):
    """Open a folded part of the dialog."""
    calculator.dialog.get_by_text(title, exact=True).first.click()


def snippet(calculator):
    """The elements of the offered markup."""
    return Markup(calculator.shared("Frame for another page")).found


def preview(calculator):
    """The calculator in the frame of the dialog, live."""
    framed = Calculator(calculator.dialog.get_by_title("Preview of the frame").element_handle().content_frame())
    framed.wait_ready()
    return framed


def test_the_frame_is_shown_as_it_will_be_and_follows_what_is_chosen(fresh):
    fresh.set(method="lora", gpu="48")
    run = runs.of(method="lora", gpu="48")
    steps = fresh.root.evaluate("history.length")
    fresh.share()
    unfold(fresh, "In a page of documentation")
    framed = preview(fresh)
    framed.expect_headline_alone(run)
    expect(framed.region("Memory against sequence length")).not_to_be_visible()
    for name in PANELS:
        expect(fresh.dialog.get_by_role("checkbox", name=PANELS[name], exact=True)).to_be_checked(checked=name in USUAL_PANELS)

    fresh.dialog.get_by_role("checkbox", name="Memory against sequence length", exact=True).check()
    fresh.dialog.get_by_role("checkbox", name="What fills the memory", exact=True).uncheck()
    unfold(fresh, "Settings that readers cannot change")
    fresh.dialog.get_by_role("checkbox", name="Training method", exact=True).check()
    fresh.dialog.get_by_label("Light or dark", exact=True).select_option("dark")
    field = fresh.dialog.get_by_label("Frame for another page", exact=True)
    wanted = View(True, ("headline", "curve"), ("method",), "dark")
    expect(field).to_have_value(re.compile("theme=dark"))
    address = snippet(fresh)["iframe"]["src"]
    assert read_view(address) == wanted and runs.of_query(address.partition("?")[2]) == run
    expect(fresh.dialog.get_by_title("Preview of the frame")).to_have_attribute("data-shown", address)
    framed = preview(fresh)
    framed.expect_headline_alone(run)
    expect(framed.region("Memory against sequence length")).to_be_visible()
    expect(framed.region("What fills the memory")).not_to_be_visible()
    expect(framed.root.get_by_text("Training method: fixed here.")).to_be_visible()
    assert fresh.root.evaluate("history.length") == steps


def test_the_markup_has_the_script_only_where_it_is_wanted(fresh):
    fresh.share()
    unfold(fresh, "In a page of documentation")
    found = snippet(fresh)
    assert found["script"]["src"] == fresh.page.url.partition("?")[0] + "embed.js"
    assert {"data-vramplan", "title", "height", "width", "src"} <= found["iframe"].keys()
    fresh.dialog.get_by_role("checkbox", name="Always as high as what it shows").uncheck()
    field = fresh.dialog.get_by_label("Frame for another page", exact=True)
    expect(field).not_to_have_value(re.compile("script"))
    fresh.dialog.get_by_role("button", name="Close").click()
    expect(fresh.dialog).not_to_be_visible()
    assert all("embed=1" not in frame.url for frame in fresh.page.frames), "the frame goes on after the dialog is closed"


def test_the_badge_is_shown_saved_and_copied(calculator):
    calculator.set(model="llama-3.2-1b", gpu="12")
    run = runs.of(model="llama-3.2-1b", gpu="12")
    made = badge(run)
    calculator.share()
    unfold(calculator, "A badge for a README")
    picture = calculator.dialog.get_by_role("img", name=made.alternative)
    assert picture.evaluate("async each => { await each.decode(); return each.naturalWidth; }") > 200
    assert calculator.shared("Markdown") == markdown(made, link=calculator.shared("Link"))
    with calculator.page.expect_download() as download:
        calculator.dialog.get_by_role("button", name="Save badge").click()
    assert download.value.suggested_filename == FILE
    assert Path(download.value.path()).read_text("utf-8") == svg(made)
    calculator.dialog.get_by_role("button", name="Copy Markdown").click()
    expect(calculator.dialog.get_by_role("status")).to_contain_text("Markdown copied")
    assert calculator.root.evaluate("navigator.clipboard.readText()") == calculator.shared("Markdown")


def test_without_an_estimate_there_is_no_badge(calculator):
    calculator.type_number("rank", "many")
    calculator.share()
    unfold(calculator, "A badge for a README")
    expect(calculator.dialog.get_by_text("There is no badge while the run cannot be counted.")).to_be_visible()
    expect(calculator.dialog.get_by_role("button", name="Save badge")).to_have_count(0)


def test_the_dialog_is_used_with_the_keyboard_on_a_phone(fresh):
    fresh.page.set_viewport_size(PHONE)
    fresh.share()
    summary = fresh.dialog.get_by_text("In a page of documentation", exact=True)
    summary.focus()
    fresh.page.keyboard.press("Enter")
    fresh.page.keyboard.press("Tab")
    first = fresh.dialog.get_by_role("checkbox", name="Peak and verdict")
    expect(first).to_be_focused()
    fresh.page.keyboard.press("Tab")
    fresh.page.keyboard.press("Space")
    expect(fresh.dialog.get_by_role("checkbox", name="Settings, unfolded")).to_be_checked()
    expect(fresh.dialog.get_by_label("Frame for another page", exact=True)).to_have_value(re.compile("panels=headline,settings,components"))
    assert fresh.root.evaluate("(each => each.scrollWidth - each.clientWidth)(document.getElementById('share'))") <= 1
