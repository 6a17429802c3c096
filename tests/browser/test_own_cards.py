"""Cards of one's own on the page: what is free on them, which of them a run is put on, and why."""

from playwright.sync_api import expect
import pytest

from vramplan.placement_report import placed, told
import runs

SMI = "index, memory.total [MiB], memory.free [MiB]\n0, 24564 MiB, 23040 MiB\n1, 24564 MiB, 23040 MiB\n"


@pytest.fixture
def part(calculator):
    return calculator.region("Your own cards")


def choose(part, free, cards=""):
    part.get_by_label("Free memory of your cards").fill(free)
    part.get_by_label("Cards to use").fill(cards)
    part.get_by_role("button", name="Choose cards").click()


def expect_choice(part, settings, free, cards=""):
    there = told(placed(settings, free=free, cards=cards))
    expect(part).to_contain_text(there.answer)
    expect(part).to_contain_text(there.why)
    rows = part.get_by_role("row").filter(has=part.page.get_by_role("rowheader"))
    expect(rows).to_have_count(len(there.rows))
    for number, row in enumerate(there.rows):
        expect(rows.nth(number)).to_contain_text("".join((row.cards, row.free, row.usable, row.headroom, "yes" if row.enough else "no")))


def test_cards_are_chosen_and_chosen_again_when_the_run_changes(calculator, part):
    query = calculator.query
    choose(part, "10, 22.5, 22.5")
    expect_choice(part, runs.of().settings, "10, 22.5, 22.5")
    assert calculator.query == query
    calculator.set(method="lora", sequence_length="4096")
    expect_choice(part, runs.of(method="lora", sequence_length="4096").settings, "10, 22.5, 22.5")
    choose(part, "10, 22.5, 22.5", "0, 1")
    expect_choice(part, runs.of(method="lora", sequence_length="4096").settings, "10, 22.5, 22.5", "0, 1")


def test_the_output_of_nvidia_smi_is_read(calculator, part):
    choose(part, SMI)
    expect_choice(part, runs.of().settings, SMI)


@pytest.mark.parametrize(
    ("free", "cards", "label", "said"),
    [("", "", "Free memory of your cards", "Free memory must name at least one card"), ("20, -1", "", "Free memory of your cards", "“-1”"),
     ("20", "3", "Cards to use", "Cards to use must be among 0"), ("20 20", "1 1", "Cards to use", "1 came twice")])
def test_what_cannot_be_used_is_one_sentence_and_marks_its_box(part, free, cards, label, said):
    choose(part, free, cards)
    expect(part).to_contain_text(said)
    expect(part.get_by_label(label)).to_have_attribute("aria-invalid", "true")
    expect(part.get_by_role("table")).to_have_count(0)


def test_a_run_that_the_estimate_cannot_count_is_said_here(calculator, part):
    choose(part, "80")
    calculator.set(optimizer="lion")
    expect(part).to_contain_text("Unsloth Studio’s estimate, revision 2026-03, has bytes for")
