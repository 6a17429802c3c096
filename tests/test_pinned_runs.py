"""Pinned runs: in links and out of them again, compared term by term, and as text, Markdown, CSV and JSON.

Belongs here: the core and the terminal. The page: browser/test_pins.py.
"""

import csv
import io
import json
import random
from urllib.parse import parse_qsl, quote, urlencode

from hypothesis import given, strategies as st
import pytest

from command import run
from strategies import HOSTILE_KEYS, HOSTILE_VALUES, configurations
from vramplan import Settings, estimate, pins_report, waterfall
from vramplan.accounts import terms_between
from vramplan.importing.imported import import_text
from vramplan.link import FROM_HERE, MAX_PINS, MAX_QUERY, PIN_KEY, PINS_IN_FILE, fitted, read_query, to_query
from vramplan.pins import differing, pinned, steps
from vramplan.settings import format_settings, parse
from vramplan.share import settings_file

QLORA, LORA, FULL = Settings(), Settings(method="lora"), Settings(model="qwen3-8b", method="full", gpu=80)
OWN = Settings(model="custom", hidden_size=2_048, num_layers=20, gpu="custom", budget="23.5")
SIZES = {"intermediate_size": 5_504, "vocab_size": 50_000, "micro_batch": 3, "sequence_length": 3_000, "rank": 77, "replicas": 5}
FAR = [
    OWN.replace(budget=f"{20 + number}.{'123456789' * 11}", extra_allowance=f"0.{'1' * 99}", activation_multiplier=f"1.{'3' * 99}", accounting="planning", **SIZES)
    for number in range(MAX_PINS)
]
"""Runs that an address has no room for."""


def again(query):
    """The settings and pinned runs of a query string, and everything it says of them."""
    link = read_query(query)
    found = pinned(link)
    return parse(link.texts, version=link.version), found.settings, (*link.notices, *found.notices)


# In links


@given(st.lists(configurations(), min_size=1, max_size=MAX_PINS + 1))
def test_settings_and_pinned_runs_come_back_from_their_link(texts):
    current, *pins = map(parse, texts)
    assert again(to_query(current, pins)) == (current, tuple(pins), ())


def test_a_link_without_pins_is_what_it_was_and_old_links_stay_valid():
    assert to_query(LORA) == to_query(LORA, ()) == "v=2&method=lora"
    assert again("?v=1&rank=8") == (parse({"rank": "8"}, version=1), (), ())
    first = "?v=1&pin=v%3D1%26rank%3D8&pin=%26rank%3D4"
    assert again(first)[1] == (parse({"rank": "8"}, version=1), parse({"rank": "4"}, version=1))


def test_a_pin_says_what_differs_from_the_defaults_or_from_the_run_whichever_is_shorter():
    beside = OWN.replace(rank=8)
    parts = dict(parse_qsl(to_query(OWN, [beside])))
    assert parts[PIN_KEY] == "&rank=8"
    parts = dict(parse_qsl(to_query(OWN, [LORA])))
    assert parts[PIN_KEY] == to_query(LORA)


def test_a_pin_is_the_same_run_whatever_is_typed_beside_it():
    texts = format_settings(OWN)
    for changes in ({"rank": "?"}, {"method": "full"}, {"hidden_size": "", "budget": "-1"}, {"accounting": "planning", "rank": "0"}):
        query = fitted(texts | changes, [OWN, LORA]).text
        assert pinned(read_query(query)).settings == (OWN, LORA)


def test_an_address_never_grows_too_long_and_what_is_left_out_is_counted():
    made = fitted(format_settings(FULL), FAR)
    assert len(made.text) <= MAX_QUERY and made.unpinned == to_query(FULL) and made.left_pins > 0
    assert pinned(read_query(made.text)).settings == tuple(FAR[: len(FAR) - made.left_pins])
    huge = fitted({"gpu": "custom", "budget": "9" * 5_000}, [LORA, FULL])
    assert huge.left_out == ("budget",) and huge.left_pins == 0
    assert pinned(read_query(huge.text)).settings == (LORA, FULL)


def test_a_settings_file_holds_every_pinned_run_whatever_the_address_has_room_for(tmp_path):
    assert fitted(format_settings(LORA), FAR).left_pins > 0
    found = import_text(settings_file(format_settings(LORA), FAR), {})
    assert found.settings == LORA and pinned(read_query("").with_pins(found.pins)).settings == tuple(FAR)
    assert found.unsupported == () and [each.value for each in found.read if each.key == PINS_IN_FILE] == list(found.pins)
    path = tmp_path / "vramplan-settings.json"
    path.write_text(settings_file(format_settings(LORA), [QLORA]), "utf-8")
    assert "6.21 GiB more than the baseline" in run("compare", "--config", str(path)).out
    assert run("link", "--config", str(path)).out.strip() == f"?{to_query(LORA, [QLORA])}"
    beside = run("compare", "--config", str(path), "--link", f"?{urlencode([(PIN_KEY, to_query(each)) for each in FAR])}")
    assert "The link and the file pin 5 runs; the first 4 are used." in beside.err and beside.out.count("Pinned") > MAX_PINS
    assert PINS_IN_FILE not in json.loads(settings_file(format_settings(LORA)))


@pytest.mark.parametrize("pins", [7, None, {"a": 1}, [1, to_query(LORA)], [to_query(LORA)] * 9, "v=2"])
def test_what_a_settings_file_pins_and_no_run_is_is_named(pins):
    found = import_text(json.dumps({"settings": {"rank": 8}, PINS_IN_FILE: pins}), {})
    assert set(pinned(read_query("").with_pins(found.pins)).settings) <= {LORA} and len(found.pins) <= MAX_PINS
    assert [each.key for each in found.unsupported] == [PINS_IN_FILE] and found.settings == Settings(rank=8)


@pytest.mark.parametrize(("query", "runs", "said"), [
    ("pin=" + quote("v=2&rank=0"), 0, ["Pinned run 1: Adapter rank must be"]),
    ("pin=" + quote("&optimizer=lion&accounting=planning"), 0, ["Pinned run 1: The planning formula counts"]),
    ("pin=" + quote("v=2&warp=9"), 1, ["Pinned run 1: The link has a key this calculator does not know, “warp”"]),
    ("pin=" + quote("&v=1"), 1, []),
    ("pin=" + quote("v=77"), 1, ["Pinned run 1: The link was made for version “77”"]),
    ("pin=" + quote("v=2&pin=v%3D2"), 1, ["Pinned run 1: A pinned run has no pinned runs of its own."]),
    ("pin=" + quote("v=2&hidden_size=9"), 1, ["Pinned run 1: hidden_size is not used"]),
    ("&".join(f"pin={quote(f'v=2&rank={rank}')}" for rank in range(1, 900)), MAX_PINS, ["The link pins 899 runs; the first 4 are used."]),
    ("pin=", 1, []),
])
def test_what_cannot_be_used_of_a_pin_is_said_once(query, runs, said):
    link = read_query(query)
    found = pinned(link)
    told = (*link.notices, *found.notices)
    assert len(found.runs) == runs and len(told) == len(said)
    assert all(start in sentence for start, sentence in zip(said, told))


def test_ten_thousand_hostile_pins_raise_nothing_and_earn_at_most_one_sentence_each():
    dice = random.Random(11)
    starts = ("", "v=2", FROM_HERE, "v=1&", "&v=2", "?v=2", "https://example.org/?v=2&", "pin=", "v=2&pin=%26pin%3D%2526", "%", "\ud800")
    short = [value for value in HOSTILE_VALUES if len(value) < 100]
    for _ in range(10_000 // MAX_PINS):
        texts = [
            dice.choice(starts) + dice.choice(("", "&")).join(f"{dice.choice(HOSTILE_KEYS[:-20] + HOSTILE_KEYS[-5:])}={dice.choice(short)}" for _ in range(dice.randint(0, 3)))
            for _ in range(MAX_PINS)
        ]
        query = urlencode([(PIN_KEY, text) for text in texts] + [("rank", dice.choice(short))], errors="replace")
        found = pinned(read_query(query))
        numbers = [notice.split(":")[0] for notice in found.notices]
        assert len(set(numbers)) == len(numbers) and len(found.runs) <= MAX_PINS


# Term by term


@given(configurations(), configurations())
def test_the_steps_lead_exactly_from_one_peak_to_the_other(first, second):
    one, other = estimate(parse(first)), estimate(parse(second))
    found = steps(one, other)
    assert sum(step.difference for step in found) == other.peak_bytes - one.peak_bytes
    assert (sum(step.before for step in found), sum(step.after for step in found)) == (one.peak_bytes, other.peak_bytes)
    for step in found:
        assert sum(term.difference for term in step.terms) == step.difference
    drawn = waterfall.layout(one, other, found)
    assert len(drawn.steps) == sum(bool(step.difference) for step in found)
    bars = (drawn.first, *(bar for _, bar in drawn.steps), drawn.second)
    assert all(0 <= bar.start <= bar.start + bar.length <= waterfall.LENGTH + 0.1 for bar in bars)


def test_bars_hang_together():
    one, other = estimate(QLORA), estimate(LORA)
    drawn = waterfall.layout(one, other, steps(one, other))
    at = drawn.first.length
    for step, bar in drawn.steps:
        ends = (bar.start, bar.start + bar.length) if step.difference > 0 else (bar.start + bar.length, bar.start)
        assert abs(ends[0] - at) <= waterfall.THINNEST + 0.1
        at = ends[1]
    assert abs(at - drawn.second.length) <= waterfall.THINNEST + 0.1


def test_only_what_applies_makes_a_difference_between_settings():
    assert differing([QLORA, QLORA]) == ()
    assert differing([QLORA, QLORA.replace(rank=8)]) == ("rank",)
    assert differing([Settings(method="full"), Settings(method="full").replace(measured="")]) == ()
    assert {"method", "rank"} <= set(differing([LORA, Settings(method="full")]))


def test_the_difference_is_told_in_words_from_the_ledgers():
    one, other = estimate(QLORA), estimate(LORA)
    told = pins_report.difference(one, other)
    assert told.short == "6.21 GiB more than the baseline"
    assert terms_between(one, other) in told.sentences[0]
    assert pins_report.short_text(one, one) == "the same peak as the baseline"
    elsewhere = estimate(Settings(gradient_accumulation_steps=1))
    assert elsewhere.moment.name != one.moment.name
    assert elsewhere.moment.name in pins_report.difference(one, elsewhere).sentences[1]
    assert "Planning formula" in pins_report.difference(one, estimate(Settings(accounting="planning"))).sentences[1]


def test_runs_stand_side_by_side_with_settings_components_and_peaks():
    runs = [estimate(each) for each in (QLORA, FULL, LORA)]
    told = pins_report.side_by_side(runs[:2], runs[2])
    assert [column.label for column in told.columns] == ["Pinned 1, baseline", "Pinned 2", "Now"]
    rows = {row.label: row.cells for row in told.rows}
    assert rows["Training method"] == ("QLoRA", "Full", "LoRA") and rows["Adapter rank"] == ("16", "–", "16")
    assert rows["Peak per GPU, GiB"] == tuple(f"{each.peak_bytes / 2**30:,.3f}" for each in runs)
    assert rows["Against the baseline, GiB"][0] == "–" and rows["Against the baseline, GiB"][2] == "+6.210"
    for column, each in zip(told.columns, runs):
        assert again(column.query)[0] == each.settings


def test_markdown_is_a_table_of_as_many_cells_in_every_line():
    text = pins_report.markdown([estimate(QLORA), estimate(FULL)], estimate(LORA))
    lines = text.splitlines()
    assert {line.count("|") for line in lines} == {5} and lines[1] == "| --- | ---: | ---: | ---: |"
    assert any(line.startswith("| **Peak per GPU, GiB** | **12.856** |") for line in lines)


def test_csv_has_whole_bytes_and_the_query_of_every_run():
    runs = [estimate(each) for each in (QLORA, FULL, LORA)]
    rows = list(csv.DictReader(io.StringIO(pins_report.csv_text(runs[:2], runs[2]))))
    assert [row["run"] for row in rows] == ["pinned 1", "pinned 2", "now"]
    for row, each in zip(rows, runs, strict=True):
        parts = [int(value) for name, value in row.items() if name.endswith("_bytes") and name.split("_bytes")[0] not in ("peak", "against_baseline", "budget", "headroom")]
        assert sum(parts) == int(row["peak_bytes"]) == each.peak_bytes
        assert int(row["against_baseline_bytes"]) == each.peak_bytes - runs[0].peak_bytes
        assert again(row["query"])[0] == each.settings and row["method"] == each.settings.method


# In a terminal


def test_compare_against_tells_the_difference_and_all_runs():
    done = run("compare", "--method", "lora", "--against", "?v=2", "--against", f"https://example.org/?{to_query(FULL)}")
    assert done.returncode == 0 and done.err == ""
    for text in ("6.21 GiB more than the baseline", "+7.689", "Pinned 1, baseline", "Pinned 2: Qwen3 8B · Full", "65.145", "Now: Llama 3.1 8B · LoRA"):
        assert text in done.out
    assert run("compare", "--against", "?v=2", "--gpu", "8").returncode == 1


def test_the_runs_that_a_link_pins_are_compared_and_kept_in_its_link():
    address = f"https://example.org/?{to_query(LORA, [QLORA])}"
    assert "6.21 GiB more than the baseline" in run("compare", "--link", address).out
    assert run("link", "--link", address).out.strip() == address
    other = run("estimate", "--link", address)
    assert "pins 1 run" in other.err and other.returncode == 0
    assert "Pinned run 1: Adapter rank" in run("compare", "--link", "?pin=%26rank%3D0").err


def test_markdown_csv_and_json_of_the_same_runs(tmp_path):
    one, other = estimate(QLORA), estimate(LORA)
    assert run("compare", "--method", "lora", "--against", "?v=2", "--markdown").out == pins_report.markdown([one], other)
    assert run("compare", "--method", "lora", "--against", "?v=2", "--csv", "-").out == pins_report.csv_text([one], other)
    path = tmp_path / "runs.csv"
    assert "6.21 GiB more" in run("compare", "--method", "lora", "--against", "?v=2", "--csv", str(path)).out
    assert path.read_text(encoding="utf-8") == pins_report.csv_text([one], other)
    printed = json.loads(run("compare", "--method", "lora", "--against", "?v=2", "--json").out)
    assert printed["differing"] == list(differing([QLORA, LORA]))
    assert [each["peak_bytes"] for each in printed["runs"]] == [one.peak_bytes, other.peak_bytes]
    assert sum(step["difference_bytes"] for step in printed["runs"][1]["steps"]) == other.peak_bytes - one.peak_bytes


@pytest.mark.parametrize(("arguments", "said"), [
    (("--against", "?rank=0"), "--against: Adapter rank must be"),
    (("--against", "?accounting=planning&optimizer=lion"), "--against: The planning formula"),
    (("--against", "?v=2") * 5, "--against: At most 4 runs"),
    (("--markdown",), "--markdown: needs runs"),
    (("--csv", "-"), "--csv: needs runs"),
    (("--against", "?v=2", "--csv", "/no/such/folder/runs.csv"), "could not be written"),
])
def test_what_cannot_be_compared_is_one_sentence_and_status_2(arguments, said):
    done = run("compare", *arguments)
    assert done.returncode == 2 and said in done.err and done.out == ""
