"""Which hardware: classes by method and length, and rules of thumb. What they are: tests/test_hardware.py."""

from playwright.sync_api import expect

import runs
from vramplan import needs


def test_every_method_has_its_hardware_and_a_name_opens_the_run_on_it(calculator):
    calculator.set(model="llama-3.1-70b")
    region = calculator.region("Which hardware")
    region.scroll_into_view_if_needed()
    _, rows = needs.need_rows(runs.of(model="llama-3.1-70b").settings)
    for row in rows:
        shown = region.get_by_role("row").filter(has=calculator.root.get_by_role("rowheader", name=row.label, exact=True))
        for number, cell in enumerate(row.cells):
            expect(shown.get_by_role("cell").nth(number)).to_contain_text(cell.text)
            expect(shown.get_by_role("cell").nth(number)).to_contain_text(cell.peak)
    qlora = region.get_by_role("row").filter(has=calculator.root.get_by_role("rowheader", name="QLoRA", exact=True))
    qlora.get_by_role("link").first.click()
    calculator.expect_headline(runs.of(model="llama-3.1-70b", gpu="64"))


def test_rules_of_thumb_stand_beside_what_is_computed(calculator):
    region = calculator.region("Which hardware")
    region.get_by_text("Rules of thumb, and what is computed").click()
    table = calculator.root.get_by_role("group", name="Rules of thumb, as a table")
    for row in needs.claim_rows("step"):
        found = table.get_by_role("row").filter(has=calculator.root.get_by_role("link", name=row.label, exact=True))
        for text in (row.said, row.computed, row.place.capitalize(), row.why):
            expect(found).to_contain_text(text)


def test_the_focus_stays_where_it_is_when_the_part_is_made_for_the_first_time(visit):
    page = visit().open("?v=2&model=llama-3.1-70b")
    region = page.region("Which hardware")
    link = region.get_by_role("link").nth(1)
    _, rows = needs.need_rows(runs.of(model="llama-3.1-70b").settings)
    _, opening = needs.need_rows(runs.of().settings)
    assert rows[0].cells[0].peak != opening[0].cells[0].peak
    expect(region).not_to_contain_text(rows[0].cells[0].peak)
    link.focus()
    expect(region).to_contain_text(rows[0].cells[0].peak)
    expect(link).to_be_focused()
