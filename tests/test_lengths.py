"""Token lengths: what is read from files, and what follows for batches, against counting every batch by hand.

Belongs here: reading, percentiles, chances, padding, packing, the histogram, and the terminal. The page: browser/test_token_lengths.py.
"""

from collections import Counter
from fractions import Fraction
from itertools import combinations
import json
from math import ceil
import random

from hypothesis import given, strategies as st
import pytest

from command import run
from vramplan import NotExpressible, Settings, estimate, fit, lengthchart, lengths_report
from vramplan.importing import length_files
from vramplan.importing.length_files import NAMES, WhichColumn, read_length_bytes, read_lengths
from vramplan.importing.problems import ImportProblem
from vramplan.length_fit import CUT, PACKED, UNCUT, length_fit
from vramplan.lengths import Lengths

few = st.lists(st.integers(0, 12), min_size=1, max_size=8).filter(any)


def of(samples):
    return Lengths.of(Counter(samples))


# Reading


@pytest.mark.parametrize(("text", "column", "samples"), [
    ("512\n300\r\n\n800\n", "", [512, 300, 800]),
    ("\ufeff512\n300", "", [512, 300]),
    ("512, 300 800;7", "", [512, 300, 800, 7]),
    ("512.0\n300.\n", "", [512, 300]),
    ("length\n5\n6\n5\n", "length", [5, 6, 5]),
    ("id,text,num_tokens\n1,\"a, \"\"b\"\"\nc\",5\n2,d,7\n", "num_tokens", [5, 7]),
    ("id;n_tokens\n1;5\n2;7\n", "n_tokens", [5, 7]),
    ("id\tToken Count\n1\t5\n2\t7\n", "Token Count", [5, 7]),
    (",length\n0,5\n1,6\n", "length", [5, 6]),
    ("name,odd\na,5\nb,6\n", "odd", [5, 6]),
    ('{"length": 5}\n\n{"length": 6}\n', "length", [5, 6]),
    ('{"text": "a", "input_ids": [1, 2, 3]}\n{"text": "b", "input_ids": []}\n', "input_ids", [3, 0]),
    ('{"input_ids": [1, 2, 3], "num_tokens": 9}\n', "num_tokens", [9]),
    ('[5, 6, "7"]', "", [5, 6, 7]),
    ('[{"length": 5}, {"length": 6.0}]', "length", [5, 6]),
    ("[1, 2]\n[3]\n", "", [2, 1]),
])
def test_lengths_are_read_from_what_people_have(text, column, samples):
    read = read_lengths(text)
    assert (read.column, read.lengths) == (column, of(samples))
    assert read_length_bytes(text.encode()).lengths == read.lengths


def test_of_several_columns_the_named_one_is_read_and_the_others_are_told():
    text = "id,a,b\n1,5,50\n2,7,70\n"
    with pytest.raises(WhichColumn) as refused:
        read_lengths(text)
    assert refused.value.choices == ("id", "a", "b") and "“a”" in str(refused.value)
    assert read_lengths(text, "b").lengths == of([50, 70])
    named = read_lengths("id,length\n1,5\n2,7\n")
    assert named.choices == ("id", "length")
    assert "“length”" in lengths_report.read_sentence(named) and "“id”" in lengths_report.read_sentence(named)
    assert read_lengths("1,5\n2,7", "2").lengths == of([5, 7])


def test_the_first_of_the_known_names_goes_before_the_others():
    for first, second in zip(NAMES, NAMES[1:]):
        assert read_lengths(f"{second},{first}\n1,2\n").column == first


@pytest.mark.parametrize(("text", "column", "said"), [
    ("", "", "nothing in it"),
    ("  \n", "", "nothing in it"),
    ("5\n\nabc\n6", "", "Line 3 must have a whole number of tokens; got “abc”"),
    ("5\n-6", "", "Line 2 must have a whole number of tokens; got “-6”"),
    ("5\n6.5", "", "got “6.5”"),
    ("5\n12345678901", "", "got “12345678901”"),
    ("12a\n5", "", "Line 1"),
    ("length\n5\n\n", "size", "no column “size”; there are “length”"),
    ("5\n6", "size", "plain list"),
    ("a,length\nx,5\ny", "", "Line 3 must have a whole number of tokens as “length”; there is nothing"),
    ("a,length\nx,5\ny,", "", "Line 3 must have a whole number of tokens as “length”; nothing was entered"),
    ('a,length\n"x,5', "", "no line of a CSV file"),
    ("text\nhello", "", "Nothing is tokenised here"),
    ("text", "", "Nothing is tokenised here"),
    ('{"text": "hello"}', "", "the columns: “text”"),
    ('{"length": 5}\n{"size": 6}', "", "Line 2 must have a whole number of tokens as “length”; there is nothing"),
    ('{"length": 5}\n{"length": true}', "", "got “true”"),
    ('{"length": 5}\n{"length": [1, "a"]}', "", "a list came that is not of token ids"),
    ('{"length": 5}\n7', "", "Line 2 is not a JSON object"),
    ('{"length": 5}\n{"length": ', "", "Line 2 is not JSON by itself"),
    ('{"length": 1' + "0" * 5_000 + "}", "length", "whole number of tokens as “length”; got “1000"),
    ("[" * 100_000, "", "nested too deeply"),
    ("0\n0", "", "Every length is 0"),
    ("[]", "", "no lengths in it"),
])
def test_what_cannot_be_read_is_one_sentence_with_its_place(text, column, said):
    with pytest.raises(ImportProblem) as refused:
        read_lengths(text, column)
    assert said in str(refused.value)


def test_a_file_of_something_else_is_named():
    for data, said in ((b"PAR1\x00", "Parquet"), (b"5\x006", "zero bytes"), (b"5\n\xff", "line 2")):
        with pytest.raises(ImportProblem) as refused:
            read_length_bytes(data)
        assert said in str(refused.value)


def test_too_large_files_and_too_many_samples_are_refused(monkeypatch):
    with pytest.raises(ImportProblem, match="at most 16,777,216"):
        read_length_bytes(b"1" * (length_files.MAX_BYTES + 1))
    monkeypatch.setattr(length_files, "MAX_SAMPLES", 10)
    assert read_lengths("7\n" * 10).lengths.samples == 10
    with pytest.raises(ImportProblem, match="more than 10 lengths"):
        read_lengths("7\n" * 11)


SEEDS = ("512\n300\n800\n", "id,text,num_tokens\n1,\"a\nb\",5\n2,c,7\n", "a;length\r\nx;5\r\ny;6\r\n", '{"length": 5, "id": 3}\n{"length": 6, "id": 4}\n',
         '{"input_ids": [1, 2, 3]}\n{"input_ids": [4]}\n', '[5, 6, {"length": 7}]', "5, 6, 7", "length\n5\n")
PIECES = ("", '"', ",", ";", "\t", "\n", "\r", "\x00", "{", "}", "[", "]", ":", "-", ".", "e9", "NaN", "null", "true", "9" * 12, "9" * 5_000, "²", "١", "\ud800", "\u2028", "length", "\ufeff", "'", "\\")


def test_ten_thousand_mutated_files_raise_nothing_but_import_problems():
    dice, read, refused = random.Random(7), 0, 0
    for _ in range(10_000):
        text = dice.choice(SEEDS)
        for _ in range(dice.randint(1, 4)):
            start = dice.randint(0, len(text))
            text = text[:start] + dice.choice(PIECES) + text[start + dice.choice((0, 0, 1, 1, 5)):]
        try:
            lengths = read_lengths(text, dice.choice(("", "", "", "", "length", "2"))).lengths
        except ImportProblem as problem:
            refused += 1
            assert problem.message.endswith(".") and "\n" not in str(problem) and len(str(problem)) < 800
        else:
            read += 1
            assert lengths.samples > 0 and lengths.longest > 0
    assert read > 1_000 and refused > 5_000


# Statistics


@given(few, st.integers(1, 99))
def test_percentiles_are_the_nearest_rank(samples, percent):
    assert of(samples).percentile(percent) == sorted(samples)[ceil(Fraction(percent * len(samples), 100)) - 1]


@given(few, st.integers(0, 13))
def test_samples_and_tokens_are_those_of_the_list(samples, length):
    lengths = of(samples)
    assert (lengths.samples, lengths.tokens, lengths.longest) == (len(samples), sum(samples), max(samples))
    assert lengths.mean == Fraction(sum(samples), len(samples))
    assert lengths.over(length) == sum(each > length for each in samples)


@given(few, st.integers(1, 13))
def test_cutting_cuts_each_sample(samples, length):
    assert of(samples).cut(length) == of([min(each, length) for each in samples])


def batches(samples, batch):
    return list(combinations(samples, min(batch, len(samples))))


@given(few, st.integers(0, 13), st.integers(1, 9))
def test_the_chance_is_the_share_of_all_batches_that_are_too_long(samples, length, batch):
    drawn = batches(samples, batch)
    assert of(samples).too_long_share(length, batch=batch) == Fraction(sum(max(each) > length for each in drawn), len(drawn))


@given(few, st.integers(1, 9))
def test_padding_is_that_of_all_batches_together(samples, batch):
    drawn = batches(samples, batch)
    padded = sum(max(each) * len(each) for each in drawn)
    held = sum(map(sum, drawn))
    assert of(samples).padded_length(batch=batch) == pytest.approx(Fraction(padded, len(drawn) * len(drawn[0])), rel=1e-12)
    assert of(samples).padding_share(batch=batch) == pytest.approx(1 - held / padded, abs=1e-12)


def test_the_mean_of_the_longest_holds_for_many_samples_and_large_batches():
    lengths = Lengths.of(Counter(range(1, 100_001)))
    for batch in (1, 2, 7, 64, 1_024):  # of the numbers 1 to n, the largest of b is (n + 1) b / (b + 1) on average
        assert lengths.padded_length(batch=batch) == pytest.approx(100_001 * batch / (batch + 1), rel=1e-9)
    assert lengths.padded_length(batch=200_000) == 100_000


@given(few, st.integers(1, 20))
def test_packed_rows_hold_every_token(samples, length):
    rows = of(samples).packed_rows(length)
    assert (rows - 1) * length < sum(samples) <= rows * length


# Against a run

DATA = of([100, 300, 512, 700, 2_000, 4_000, 9_000, 9_000])


def ways(found):
    return {each.how: each for each in found.batches}


def test_with_the_sequence_length_within_the_limit_only_uncut_batches_fail():
    current = estimate(Settings(micro_batch=2))
    found = length_fit(DATA, current)
    assert found.limit == fit(current.settings).longest_sequence and current.fits
    assert 2_048 < found.limit.value < 4_000 and found.too_long == 3
    by_how = ways(found)
    assert by_how[CUT].too_large == 0 and by_how[PACKED].too_large == 0
    assert by_how[UNCUT].too_large == DATA.too_long_share(found.limit.value, batch=2) > 0
    assert by_how[CUT].padding == DATA.cut(2_048).padding_share(batch=2)
    assert by_how[PACKED].rows == DATA.packed_rows(2_048)
    assert by_how[PACKED].padding == pytest.approx(1 - DATA.tokens / (by_how[PACKED].rows * 2_048))


def test_a_run_that_does_not_fit_fails_where_a_batch_is_long_enough():
    current = estimate(Settings(micro_batch=2, sequence_length=8_192))
    by_how = ways(length_fit(DATA, current))
    assert not current.fits and by_how[PACKED].too_large == 1
    assert 0 < by_how[CUT].too_large == by_how[UNCUT].too_large < 1
    nothing = length_fit(DATA, estimate(Settings(gpu=8)))
    assert nothing.limit.value is None and nothing.too_long == DATA.samples
    assert {each.too_large for each in nothing.batches} == {1}


def test_percentiles_have_the_peak_of_a_run_with_that_length():
    current = estimate(Settings())
    for mark in length_fit(DATA, current).marks:
        assert mark.point.peak_bytes == estimate(Settings(sequence_length=mark.tokens)).peak_bytes
    beyond = length_fit(of([10, 200_000]), current).marks
    assert [mark.point is None for mark in beyond] == [False, True, True, True]


def test_pairs_have_no_padding_and_a_model_that_answers_has_no_batches():
    pairs = length_fit(DATA, estimate(Settings(objective="dpo", stack="trl-1.15", method="lora", gpu=80)))
    assert [each.padding for each in pairs.batches] == [None, None]
    assert any("pairs" in sentence for sentence in lengths_report.sentences(pairs))
    with pytest.raises(NotExpressible) as refused:
        length_fit(DATA, estimate(Settings(accounting="rules", task="inference")))
    assert refused.value.field == "task"


def test_the_page_says_to_size_for_the_99th_percentile():
    told = lengths_report.advice(length_fit(DATA, estimate(Settings())))
    assert "Size for the 99th percentile, not the mean" in told and "9,000" in told


@pytest.mark.parametrize(("chance", "text"), [
    (0, "0 %"), (Fraction(1, 10**9), "< 0.01 %"), (Fraction(327, 10_000), "3.27 %"), (Fraction(1, 2), "50 %"), (1 - Fraction(1, 10**9), "> 99.99 %"), (1, "100 %")])
def test_a_chance_is_never_rounded_to_none_or_certain(chance, text):
    assert lengths_report.chance_text(Fraction(chance)) == text


# The histogram

many = st.lists(st.integers(0, 300_000), min_size=1, max_size=60).filter(any)


@given(many, st.sampled_from(({}, {"gpu": 8}, {"micro_batch": 3}, {"sequence_length": 1}, {"sequence_length": 100_000})))
def test_every_sample_is_in_one_bar_and_everything_lies_in_the_frame(samples, changes):
    found = length_fit(of(samples), estimate(Settings(**changes)))
    for frame in (lengthchart.WIDE, lengthchart.NARROW):
        drawn = lengthchart.layout(found, frame=frame)
        for bar in drawn.bars:
            assert bar.samples == sum(bar.low <= each <= bar.high for each in samples)
        assert sum(bar.samples for bar in drawn.bars) == len(samples)
        assert len(drawn.bars) <= lengthchart.MOST_BARS
        edges = [(bar.x, bar.x + bar.width) for bar in drawn.bars] + [(line.x, line.x) for line in drawn.lines]
        assert all(drawn.frame.left <= left <= right <= drawn.frame.plot_right + 0.2 for left, right in edges)
        assert len({line.label_y for line in drawn.lines}) == len(drawn.lines)
        rows = lengths_report.bar_rows(found, drawn)
        assert rows[-1].upto == "100 %" and rows[0].samples != "0"


def test_lines_stand_at_the_limit_the_sequence_length_and_the_99th_percentile():
    found = length_fit(DATA, estimate(Settings(micro_batch=2)))
    drawn = lengthchart.layout(found)
    assert {line.name: line.tokens for line in drawn.lines} == {"limit": found.limit.value, "now": 2_048, "p99": 9_000}
    for line in drawn.lines:
        (bar,) = [bar for bar in drawn.bars if bar.low <= line.tokens <= bar.high]
        assert bar.x <= line.x <= bar.x + bar.width


# In a terminal


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("lengths") / "data.csv"
    path.write_text("id,length\n" + "".join(f"{number},{length}\n" for number, length in enumerate((100, 300, 512, 700, 2_000, 4_000, 9_000, 9_000))))
    return str(path)


def test_the_table_tells_percentiles_batches_and_the_histogram(file):
    done, found = run("lengths", file, "--micro-batch", "2"), length_fit(DATA, estimate(Settings(micro_batch=2)))
    assert done.returncode == 0 and done.err == ""
    for row in (*lengths_report.mark_rows(found), *lengths_report.batches_rows(found)):
        assert any(row.label in line and (getattr(row, "tokens", "") or row.rows) in line for line in done.out.splitlines())
    for sentence in (lengths_report.advice(found), *lengths_report.sentences(found)):
        assert sentence in done.out
    assert run("lengths", file, "--column", "id").out != done.out
    assert run("lengths", file, "--gpu", "8").returncode == 1


def test_json_holds_the_same(file):
    printed = json.loads(run("lengths", file, "--micro-batch", "2", "--json").out)
    found = length_fit(DATA, estimate(Settings(micro_batch=2)))
    assert (printed["samples"], printed["tokens"], printed["column"], printed["columns"]) == (8, DATA.tokens, "length", ["id", "length"])
    assert {each["name"]: each["tokens"] for each in printed["percentiles"]} == {mark.name: mark.tokens for mark in found.marks}
    assert printed["longest_fitting"] == found.limit.value and printed["too_long_samples"] == found.too_long
    assert [each["too_large_probability"] for each in printed["batches"]] == [float(each.too_large) for each in found.batches]
    assert sum(bar["samples"] for bar in printed["histogram"]) == 8


@pytest.mark.parametrize(("arguments", "said"), [
    ((), "No file was named"), (("no/such.csv",), "cannot be read"), (("FILE", "--column", "size"), "no column “size”"),
    (("FILE", "--accounting", "rules", "--task", "inference"), "--task")])
def test_what_cannot_be_used_is_one_sentence_and_status_2(file, arguments, said):
    done = run("lengths", *(file if each == "FILE" else each for each in arguments))
    assert done.returncode == 2 and said in done.err and done.out == ""


def test_a_problem_is_a_document_with_json(file):
    done = run("lengths", file, "--column", "size", "--json")
    assert done.returncode == 2 and json.loads(done.out)["error"]["code"] == "no_column"
