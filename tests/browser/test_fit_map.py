"""The map of what fits on the page: read by pointer and keyboard, followed to another run, and its numbers as a table.

Belongs here: what a person does with the map. Its cells and where they are drawn: tests/test_fitmap.py.
"""

from playwright.sync_api import expect
import pytest

from vramplan import mapchart, report
from vramplan.fitmap import fit_map
from vramplan.settings import parse
import runs

PHONE = {"width": 360, "height": 740}


def shown(frame=mapchart.WIDE, **texts):
    return mapchart.layout(fit_map(parse(texts)), frame=frame)


def bring_to_sight(page):
    """Scroll to the map, and wait until it is the one of the run."""
    page.map_link.evaluate("link => link.scrollIntoView({ block: 'end' })")
    expect(page.map.locator("[aria-busy=true]")).to_have_count(0)


def place(page, drawn, row, column):
    """Where on the screen the middle of a cell is."""
    box = page.map_link.bounding_box()
    left, top, right, bottom = drawn.box(row, column)
    scale = box["width"] / drawn.frame.width
    return box["x"] + (left + right) / 2 * scale, box["y"] + (top + bottom) / 2 * scale


def test_the_map_opens_at_the_run_as_it_is(calculator):
    drawn = shown()
    expect(calculator.map).to_contain_text(report.map_sentence(drawn.made))
    calculator.expect_map_at(drawn, *drawn.made.current)
    for _, label in report.map_legend(drawn):
        expect(calculator.map.get_by_role("list")).to_contain_text(label)


def test_the_mouse_reads_the_run_it_points_at_and_a_click_opens_it(calculator):
    drawn = shown()
    bring_to_sight(calculator)
    calculator.expect_map_at(drawn, *drawn.made.current)
    calculator.page.mouse.move(*place(calculator, drawn, 2, 3))
    calculator.expect_map_at(drawn, 2, 3)
    calculator.page.mouse.move(5, 5)
    calculator.expect_map_at(drawn, *drawn.made.current)
    calculator.page.mouse.click(*place(calculator, drawn, 4, 10))
    cell = drawn.cell(4, 10)
    batch = {"micro_batch": str(cell.micro_batch), "sequence_length": str(cell.sequence_length)}
    calculator.expect_headline(runs.of(**batch))
    for name, text in batch.items():
        calculator.expect_setting(name, text)
    calculator.page.mouse.move(5, 5)
    there = shown(**batch)
    calculator.expect_map_at(there, *there.made.current)
    calculator.page.go_back()
    calculator.expect_headline(runs.of())


def test_the_keyboard_moves_from_run_to_run_and_opens_one(calculator):
    drawn = shown()
    row, column = drawn.made.current
    bring_to_sight(calculator)
    calculator.expect_map_at(drawn, row, column)
    calculator.map_link.focus()
    press = calculator.page.keyboard.press
    press("ArrowUp")
    calculator.expect_map_at(drawn, row + 1, column)
    press("ArrowRight")
    press("ArrowRight")
    calculator.expect_map_at(drawn, row + 1, column + 2)
    press("ArrowDown")
    press("ArrowDown")
    calculator.expect_map_at(drawn, row, column + 2)
    press("ArrowLeft")
    calculator.expect_map_at(drawn, row, column + 1)
    press("Enter")
    cell = drawn.cell(row, column + 1)
    calculator.expect_headline(runs.of(micro_batch=str(cell.micro_batch), sequence_length=str(cell.sequence_length)))
    expect(calculator.map_link).to_be_focused()


def test_the_table_has_the_longest_sequence_of_each_micro_batch_and_opens_it(calculator):
    calculator.set(gpu="48")
    rows = report.map_rows(fit_map(parse({"gpu": "48"})))
    bring_to_sight(calculator)
    calculator.map.get_by_text("Longest sequence for every micro-batch", exact=True).click()
    table = calculator.map.get_by_role("table").get_by_role("row").filter(has=calculator.root.get_by_role("rowheader"))
    expect(table).to_have_count(len(rows))
    for line, row in zip(table.all(), rows, strict=True):
        for text in (row.micro_batch, row.tokens, row.peak, row.headroom):
            expect(line).to_contain_text(text)
    expect(table.filter(has_text="now")).to_have_count(1)
    table.nth(2).get_by_role("link").click()
    calculator.expect_headline(runs.of(gpu="48", micro_batch="4", sequence_length=rows[2].tokens.replace(",", "")))


def test_a_change_of_settings_is_followed(calculator):
    bring_to_sight(calculator)
    for texts in ({"method": "lora"}, {"method": "lora", "accounting": "planning"}, {"method": "lora", "accounting": "planning", "gpu": "80"}):
        calculator.set(**texts)
        drawn = shown(**texts)
        bring_to_sight(calculator)
        expect(calculator.map).to_contain_text(report.map_sentence(drawn.made))
        calculator.expect_map_at(drawn, *drawn.made.current)


def test_what_cannot_be_counted_has_no_map(calculator):
    calculator.set(accounting="planning", optimizer="lion")
    expect(calculator.map).to_be_hidden()
    calculator.set(accounting="step")
    expect(calculator.map).to_be_visible()


def test_a_finger_opens_a_run_on_a_phone_and_nothing_is_cut_off(visit):
    page = visit(viewport=PHONE, has_touch=True, is_mobile=True).open()
    drawn = shown(frame=mapchart.NARROW)
    bring_to_sight(page)
    page.expect_map_at(drawn, *drawn.made.current)
    bring_to_sight(page)
    page.page.touchscreen.tap(*place(page, drawn, 6, 4))
    cell = drawn.cell(6, 4)
    page.expect_headline(runs.of(micro_batch=str(cell.micro_batch), sequence_length=str(cell.sequence_length)))
    assert page.root.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0


@pytest.mark.parametrize("size", [{"width": 1440, "height": 900}, PHONE], ids=["wide", "phone"])
def test_no_label_of_the_map_lies_on_another_or_is_cut_off(calculator, size):
    calculator.page.set_viewport_size(size)
    frame = mapchart.NARROW if size == PHONE else mapchart.WIDE
    for texts in ({}, {"model": "llama-2-7b"}, {"micro_batch": "700"}):
        calculator.set(**texts)
        bring_to_sight(calculator)
        drawn = shown(frame, **({"model": "llama-2-7b"} if texts != {} else {}), **({"micro_batch": "700"} if "micro_batch" in texts else {}))
        calculator.expect_map_at(drawn, *drawn.made.current)
        found = calculator.map_link.evaluate("""link => {
            const edge = link.getBoundingClientRect();
            const boxes = [...link.parentElement.querySelectorAll('text')].map(each => [each.textContent, each.getBoundingClientRect()]);
            const out = boxes.filter(([, box]) => box.left < edge.left - 1 || box.right > edge.right + 1).map(([text]) => text);
            const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3;
            const on = boxes.flatMap(([text, box], i) => boxes.slice(i + 1).filter(([, other]) => meet(box, other)).map(([other]) => `${text} / ${other}`));
            return [...out, ...on];
        }""")
        assert found == []
