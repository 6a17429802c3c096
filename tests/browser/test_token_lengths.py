"""Token lengths on the page: pasted, chosen or dropped, held against the run, followed by it, and taken over as its sequence length.

Belongs here: what a person does with the part. Reading, chances and the histogram: tests/test_lengths.py.
"""

import re

from playwright.sync_api import expect
import pytest

from vramplan import lengthchart, lengths_report
from vramplan.importing.length_files import read_lengths
from vramplan.length_fit import length_fit
import runs
from test_accessibility import findings

LIST = "".join(f"{tokens}\n" for tokens in (100, 300, 512, 700, 2_000, 4_000, 9_000, 9_000))
TABLE = "id,length\n" + "".join(f"{number},{tokens}\n" for number, tokens in enumerate(LIST.split()))
UNNAMED = TABLE.replace("length", "size")


@pytest.fixture
def part(calculator):
    part = calculator.region("Token lengths")
    part.get_by_text("Bring the lengths of your data", exact=True).click()
    return part


def paste(part, text):
    part.get_by_label("Paste token lengths").fill(text)
    part.get_by_role("button", name="Read the lengths").click()


def choose(part, name, content):
    part.get_by_label("Choose a file of lengths").set_input_files({"name": name, "mimeType": "text/csv", "buffer": content})


def drop(calculator, target, name, content):
    transfer = calculator.root.evaluate_handle("([name, text]) => { const files = new DataTransfer(); files.items.add(new File([text], name)); return files; }", [name, content])
    for event in ("dragenter", "dragover", "drop"):
        target.dispatch_event(event, {"dataTransfer": transfer})


def expect_told(part, text, column="", **texts):
    """The part tells of these lengths against the run with these settings, in the words CPython has for it."""
    read = read_lengths(text, column)
    found = length_fit(read.lengths, runs.of(**texts))
    for sentence in (lengths_report.read_sentence(read), lengths_report.advice(found), *lengths_report.sentences(found)):
        expect(part).to_contain_text(sentence)
    marks = part.get_by_role("table", name="Percentiles of the lengths").get_by_role("row").filter(has=part.page.get_by_role("rowheader"))
    expect(marks).to_have_text([re.compile(rf"^{re.escape(row.label)}.*{re.escape(row.tokens)}.*{re.escape(row.peak)}") for row in lengths_report.mark_rows(found)])
    batches = part.get_by_role("table", name="Rows, padding").get_by_role("row").filter(has=part.page.get_by_role("rowheader"))
    expect(batches).to_have_text(["".join((row.label, row.rows, row.padding, row.too_large)) for row in lengths_report.batches_rows(found)])


def test_a_pasted_list_is_held_against_the_run_and_stays_in_the_page(calculator, part):
    query = calculator.query
    paste(part, LIST)
    expect_told(part, LIST)
    drawn = lengthchart.layout(length_fit(read_lengths(LIST).lengths, runs.of()))
    expect(part.get_by_role("img", name=lengths_report.histogram_label(drawn), exact=True)).to_be_visible()
    for text in lengths_report.line_texts(drawn).values():
        expect(part.get_by_role("img")).to_contain_text(text)
    part.get_by_text("The histogram as a table").click()
    expect(part.get_by_role("table", name="Samples by length", exact=True)).to_be_visible()
    assert calculator.query == query


def test_every_change_of_settings_is_followed(calculator, part):
    paste(part, LIST)
    for texts in ({"micro_batch": "2"}, {"micro_batch": "2", "sequence_length": "8192"}, {"micro_batch": "2", "sequence_length": "8192", "gpu": "80"}):
        calculator.set(**texts)
        expect_told(part, LIST, **texts)
    calculator.type_number("rank", "0")
    expect(calculator.problems).to_be_visible()
    calculator.type_number("rank", "8")
    expect_told(part, LIST, **texts, rank="8")


def test_one_press_makes_a_percentile_the_sequence_length_as_a_step_of_its_own(calculator, part):
    paste(part, LIST)
    part.get_by_role("button", name="Use p99: 9,000 tokens").click()
    calculator.expect_setting("sequence_length", "9000")
    calculator.expect_headline(runs.of(sequence_length="9000"))
    expect_told(part, LIST, sequence_length="9000")
    expect(part.get_by_role("button", name="Use p99: 9,000 tokens")).to_be_focused()
    part.get_by_role("button", name="Use p50: 700 tokens").press("Enter")
    calculator.expect_headline(runs.of(sequence_length="700"))
    calculator.page.go_back()
    calculator.expect_headline(runs.of(sequence_length="9000"))
    calculator.page.go_back()
    calculator.expect_headline(runs.of())


def test_the_column_of_a_file_is_found_or_chosen(calculator, part):
    choose(part, "data.csv", TABLE.encode())
    expect_told(part, TABLE)
    column = part.get_by_label("Column with the token lengths")
    expect(column).to_have_value("length")
    column.select_option("id")
    expect_told(part, TABLE, "id")
    choose(part, "data.csv", UNNAMED.encode())
    expect(part).to_contain_text("Several columns hold whole numbers: “id”, “size”.")
    expect(part.get_by_role("table")).to_have_count(0)
    column.select_option("size")
    expect_told(part, UNNAMED, "size")


def test_a_file_is_dropped_on_the_part_or_known_by_its_name(calculator, part):
    drop(calculator, part, "data.txt", LIST)
    expect_told(part, LIST)
    drop(calculator, calculator.answer, "data.CSV", TABLE)
    expect_told(part, TABLE)
    drop(calculator, calculator.answer, "data.txt", LIST)
    expect(calculator.brought).to_contain_text("This is not JSON")
    expect_told(part, TABLE)


def test_what_cannot_be_read_is_one_sentence_and_marks_the_box(part):
    paste(part, "512\nabc\n")
    expect(part).to_contain_text("Line 2 must have a whole number of tokens; got “abc”.")
    expect(part.get_by_label("Paste token lengths")).to_have_attribute("aria-invalid", "true")
    expect(part.get_by_role("table")).to_have_count(0)
    choose(part, "data.jsonl", b'{"text": "<img src=x onerror=alert(1)>"}')
    expect(part).to_contain_text("Nothing is tokenised here.")


def test_a_model_that_answers_has_no_lengths(calculator, part):
    paste(part, LIST)
    calculator.set(accounting="rules", task="inference")
    expect(part).to_contain_text("one that answers has none")
    expect(part.get_by_role("table")).to_have_count(0)


def test_many_samples_are_read_without_a_long_wait(part):
    samples = "\n".join(str(1 + number * 7_919 % 30_011) for number in range(200_000))
    choose(part, "data.txt", samples.encode())
    expect_told(part, samples)


def test_axe_finds_nothing_and_nothing_scrolls_sideways(calculator, part):
    choose(part, "data.csv", TABLE.encode())
    expect_told(part, TABLE)
    part.get_by_text("The histogram as a table").click()
    assert findings(calculator) == {}
    paste(part, "abc\n")
    assert findings(calculator) == {}
