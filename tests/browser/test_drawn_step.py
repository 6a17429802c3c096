"""The step over time on the page: read by keyboard, pointer and touch, laid over with another run, saved as files.

Belongs here: what a person does with the drawing. Its frames and files: tests/test_timeline.py.
"""

import re
import xml.etree.ElementTree as ElementTree

from PIL import Image
from playwright.sync_api import expect
import pytest

from configurations import OPENING
from vramplan import chronicle
from vramplan.documents import TimelineDocument
from vramplan.settings import parse
from vramplan.scene import scene
from vramplan.timeline import timeline
from pyscript.panels import NARROW_LAYERS, WIDE_LAYERS
import runs

WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 360, "height": 740}


def shown(layers=WIDE_LAYERS, **texts):
    return timeline(parse(texts), most_layers=layers)


def test_the_step_opens_at_its_peak_and_says_when_it_is(calculator):
    one = shown()
    expect(calculator.step).to_contain_text(chronicle.sentence(one))
    calculator.expect_step_at(one, one.peak_index)
    expect(calculator.step_drawing).to_have_attribute("aria-label", re.compile(re.escape(chronicle.sentence(one))))


def test_the_keyboard_walks_through_the_step(calculator):
    one = shown()
    expect(calculator.step_slider).to_be_visible()
    calculator.step_slider.focus()
    press = calculator.page.keyboard.press
    press("Home")
    calculator.expect_step_at(one, 0)
    press("ArrowRight")
    press("ArrowRight")
    calculator.expect_step_at(one, 2)
    press("End")
    calculator.expect_step_at(one, len(one.frames) - 1)
    press("ArrowLeft")
    calculator.expect_step_at(one, len(one.frames) - 2)
    expect(calculator.step_slider).to_be_focused()


def place(calculator, chart, index):
    """Where on the screen a frame is drawn, once the drawing is there as a whole."""
    calculator.step_drawing.evaluate("drawing => drawing.scrollIntoView({ block: 'end' })")
    box = calculator.step_drawing.bounding_box()
    scale = box["width"] / chart.frame.width
    return box["x"] + chart.middle(index) * scale, box["y"] + chart.frame.top * scale + 40


def drawn(one):
    return scene(one).chart


def test_the_mouse_reads_where_it_points_and_picks_where_it_presses(calculator):
    one = shown()
    calculator.step_drawing.scroll_into_view_if_needed()
    expect(calculator.step.get_by_role("button", name="Keep")).to_be_visible()  # put in where the part is seen; what is below moves
    chart, mouse = drawn(one), calculator.page.mouse
    mouse.move(*place(calculator, chart, 60))
    calculator.expect_step_at(one, 60)
    mouse.move(5, 5)
    calculator.expect_step_at(one, one.peak_index)
    mouse.move(*place(calculator, chart, 20))
    mouse.down()
    mouse.up()
    mouse.move(5, 5)
    calculator.expect_step_at(one, 20)


def test_a_finger_reads_the_step_on_a_phone(visit):
    page = visit(viewport=PHONE, has_touch=True, is_mobile=True).open()
    one = shown(layers=NARROW_LAYERS)
    page.step_drawing.evaluate("drawing => drawing.scrollIntoView({ block: 'end' })")
    page.expect_step_at(one, one.peak_index)
    page.step_drawing.evaluate("drawing => drawing.scrollIntoView({ block: 'end' })")
    box = page.step_drawing.bounding_box()
    page.page.touchscreen.tap(box["x"] + box["width"] * 0.3, box["y"] + box["height"] * 0.6)
    expect(page.step_reading).to_contain_text("Step 1, micro-batch 1")
    assert page.root.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


def test_a_change_of_settings_is_followed_and_what_was_picked_stays_picked(calculator):
    calculator.step_slider.press("Home")
    calculator.set(method="full", gpu="80")
    one = shown(method="full", gpu="80")
    calculator.expect_step_at(one, 0)
    calculator.page.keyboard.press("Escape")
    calculator.step_slider.press("ArrowRight")
    calculator.expect_step_at(one, 1)


def test_another_method_is_laid_over_and_taken_away(calculator):
    one, other = shown(), shown(method="lora")
    expect(calculator.step).to_contain_text(chronicle.sentence(one))
    button = calculator.step.get_by_role("group", name="Lay over it").get_by_role("button", name="LoRA", exact=True)
    expect(button).to_have_attribute("aria-pressed", "false")
    button.click()
    expect(calculator.step).to_contain_text(chronicle.against(one, other))
    expect(button).to_have_attribute("aria-pressed", "true")
    expect(button).to_be_focused()
    button.click()
    expect(calculator.step).not_to_contain_text("Laid over:")


def test_a_run_is_kept_and_laid_over_the_ones_that_come(calculator):
    calculator.button("Keep this run to compare").click()
    calculator.set(sequence_length="4096")
    expect(calculator.step).to_contain_text(chronicle.against(shown(sequence_length="4096"), shown()))
    calculator.set(accounting="planning")
    expect(calculator.region("The step, moment by moment")).not_to_be_visible()
    calculator.set(accounting="step")
    expect(calculator.step).to_contain_text(chronicle.against(shown(sequence_length="4096"), shown()))


def saved(calculator, kind):
    with calculator.page.expect_download() as waiting:
        calculator.button(f"Save as {kind}").click()
    assert waiting.value.suggested_filename == f"vramplan-step.{kind.lower()}"
    return waiting.value.path()


def test_the_drawing_is_saved_as_svg_png_and_json(calculator):
    calculator.set(model="llama-3.2-1b")
    expect(calculator.step).to_contain_text(chronicle.sentence(shown(model="llama-3.2-1b")))
    assert "Llama 3.2 1B" in ElementTree.parse(saved(calculator, "SVG")).getroot()[0].text
    with Image.open(saved(calculator, "PNG")) as image:
        colours = {colour for _, colour in image.convert("RGB").getcolors(maxcolors=2**20)}
        assert image.format == "PNG" and image.width == 2_400 and bytes.fromhex("2b5597") in {bytes(colour) for colour in colours}
    text = saved(calculator, "JSON").read_text(encoding="utf-8")
    assert text == TimelineDocument.of(timeline(parse({"model": "llama-3.2-1b"}))).to_json()


def test_out_of_sight_nothing_is_worked_out_until_it_is_looked_at(calculator):
    calculator.page.set_viewport_size({"width": 360, "height": 500})
    one = shown(layers=NARROW_LAYERS)
    calculator.expect_step_at(one, one.peak_index)
    calculator.control("model").scroll_into_view_if_needed()
    calculator.set(method="lora")
    calculator.expect_headline(runs.of(method="lora"))
    assert calculator.region("The step, moment by moment").get_by_role("status").inner_text() == chronicle.reading(one, one.peak_index)
    expect(calculator.step).to_contain_text(chronicle.sentence(shown(layers=NARROW_LAYERS, method="lora")))


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_no_label_of_the_drawing_lies_on_another_or_is_cut_off(calculator, size):
    calculator.page.set_viewport_size(size)
    for texts in ({}, {"gpu": "8"}, {"method": "full", "gpu": "80", "gradient_accumulation_steps": "1"}):
        calculator.set(**{**{name: OPENING[name] for name in ("method", "gradient_accumulation_steps")}, **texts})
        expect(calculator.step).to_contain_text(chronicle.sentence(shown(**texts)))
        found = calculator.step_drawing.evaluate("""drawing => {
            const edge = drawing.getBoundingClientRect();
            const boxes = [...drawing.querySelectorAll('text')].map(each => [each.textContent, each.getBoundingClientRect()]);
            const out = boxes.filter(([, box]) => box.left < edge.left - 1 || box.right > edge.right + 1).map(([text]) => text);
            const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
            const on = boxes.flatMap(([text, box], i) => boxes.slice(i + 1).filter(([, other]) => meet(box, other)).map(([other]) => `${text} / ${other}`));
            return [...out, ...on];
        }""")
        assert found == []
