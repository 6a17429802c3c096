"""The command, run as people run it: a process with arguments, its two output streams and its exit status.

Belongs here: tables, flags, statuses, sentences. JSON: test_cli_json.py. Numbers: test_planning.py, test_oracle.py.
"""

from pathlib import Path
import subprocess
import sys

import pytest

from command import ENVIRONMENT, flags, printed_json, run
from configurations import CUSTOM, FIELD_ORDER, GPU_CLASSES
from vramplan import Settings, SettingsError, fit
from vramplan.link import read_query
from vramplan.settings import parse

COMMANDS = ("estimate", "fit", "curve", "compare", "link")
PAGE = "https://example.org/plan/"


# Tables for people


@pytest.mark.parametrize("command", ["estimate", "fit", "curve", "compare"])
def test_tables_begin_with_the_headline(command):
    done = run(command)
    top = "\n".join(done.out.splitlines()[:4])
    assert done.returncode == 0 and done.err == ""
    assert "11.83 GiB" in top and "24.00 GiB" in top and "12.17 GiB" in top and "fits" in top.lower()


def test_estimate_shows_every_component_to_three_decimals_and_the_counts():
    out = run("estimate").out
    for text in ("7.268", "0.078", "0.156", "0.312", "0.766", "0.979", "0.109", "2.000", "11.825", "8,030,261,248", "41,943,040"):
        assert text in out
    assert "Effective batch" in out


def test_a_shortfall_reads_as_one():
    done = run("estimate", "--gpu", "8")
    assert done.returncode == 1
    assert "does not fit" in done.out.lower() and "3.83 GiB" in done.out and "spare" not in done.out


def test_fit_says_what_is_largest_and_that_the_two_do_not_combine():
    out = run("fit").out
    answers = fit(Settings())
    assert f" {answers.largest_micro_batch.value} " in out and f" {answers.longest_sequence.value:,} " in out
    assert "combine" in out and "12 GiB" in out
    assert "131,072+" in run("fit", "--gpu", "288").out
    nothing = run("fit", "--gpu", "8")
    assert nothing.returncode == 1 and "no micro-batch" in nothing.out.lower() and "no sequence" in nothing.out.lower()


def test_24_00_says_on_which_side_of_the_budget_it_lies():
    for budget, word, status in (("11.83", "below", 0), ("11.8252", "above", 1)):
        done = run("estimate", "--gpu", "custom", "--budget", budget)
        assert done.returncode == status and word in done.out


def test_compare_lists_the_three_methods():
    out = run("compare").out
    assert all(text in out for text in ("138.36", "19.41", "11.83", "Full", "LoRA", "QLoRA"))


# Exit statuses and bad input


@pytest.mark.parametrize("command", COMMANDS)
def test_exit_status_tells_whether_the_run_fits(command):
    assert run(command, "--gpu", "12").returncode == 0
    assert run(command, "--gpu", "10").returncode == 1
    assert run(command, "--rank", "0").returncode == 2


BAD = [
    {"micro_batch": "0"}, {"gpu": "custom", "budget": "0.5"}, {**CUSTOM, "num_kv_heads": "4"}, {"rank": ""},
    {"rank": "many", "sequence_length": "32769", "model": "qwen3-8b", "gpu": "25", "activation_multiplier": "nan"},
]


@pytest.mark.parametrize("typed", BAD, ids=lambda typed: "-".join(list(typed)[-2:]))
def test_bad_input_is_told_in_the_sentences_of_the_library(typed):
    with pytest.raises(SettingsError) as caught:
        parse(typed)
    done = run("estimate", *flags(typed))
    assert (done.returncode, done.out) == (2, "")
    lines = done.err.splitlines()
    assert len(lines) == len(caught.value.errors)
    for line, error in zip(lines, caught.value.errors, strict=True):
        assert line.endswith(error.message)


HOSTILE = [
    ("\udcff\udcfe", "\x1b[31m", "<script>", "9" * 5_000),
    ("1e999999999", "NaN", "١٦", "$(id)"),
    ("%s%n", "{0}", "\n", "\u202e16"),
    ("@/etc/passwd", "-", "-1", "x" * 50_000),
]


@pytest.mark.parametrize("texts", HOSTILE, ids=["raw", "numbers", "formats", "files"])
def test_hostile_flag_values_are_bad_input(texts):
    names = ("model", "rank", "budget", "extra-allowance")
    done = run("estimate", "--gpu=custom", *(f"--{name}={text}" for name, text in zip(names, texts, strict=True)))
    assert (done.returncode, done.out) == (2, "")
    assert len(done.err.splitlines()) == 4 and len(done.err) < 4_000 and "\x1b" not in done.err


@pytest.mark.parametrize("flag", ["--rank=--", "--link=--"])
def test_two_dashes_as_a_value_are_no_way_in(flag):
    done = run("estimate", flag)
    assert done.returncode in (0, 2) and (done.out == "") == (done.returncode == 2)


WRONG_LINES = [(), ("guess",), ("estimate", "--batch-size", "4"), ("estimate", "--rank"), ("estimate", "8")]


@pytest.mark.parametrize("arguments", WRONG_LINES)
def test_a_wrong_command_line_is_bad_input(arguments):
    done = run(*arguments)
    assert (done.returncode, done.out) == (2, "") and "usage: vramplan" in done.err


def test_settings_that_do_not_apply_are_named_and_change_nothing():
    done = run("estimate", "--hidden-size", "64", "--budget", "many")
    assert done.returncode == 0 and done.out == run("estimate").out
    assert "hidden_size" in done.err.replace("-", "_") and "budget" in done.err


# Links


def test_a_link_starts_a_run_and_flags_change_it():
    link = f"{PAGE}?v=1&model=qwen3-8b&sequence_length=4096#results"
    assert printed_json("estimate", "--link", link)["settings"]["sequence_length"] == 4096
    changed = printed_json("estimate", "--link", link, "--sequence-length", "1024")["settings"]
    assert (changed["sequence_length"], changed["model"]) == (1024, "qwen3-8b")
    assert run("estimate", "--link", f"{PAGE}?v=1&rank=0").returncode == 2
    assert run("estimate", "--link", f"{PAGE}?v=1&rank=0", "--rank", "8").returncode == 0


def test_link_prints_what_opens_the_same_run():
    out = run("link", *flags(CUSTOM)).out
    assert parse(read_query(out.strip()).texts) == parse(CUSTOM)
    assert parse(read_query(printed_json("link", *flags(CUSTOM))["query"]).texts) == parse(CUSTOM)


def test_unknown_parts_of_a_link_are_named():
    done = run("estimate", "--link", f"{PAGE}?v=1&ranks=8&<b>=1")
    assert done.returncode == 0 and "ranks" in done.err and "<b>" in done.err
    assert run("estimate", "--link", "").returncode == 0
    assert run("estimate", "--link", "\udcff?\udcff=\udcff").returncode in (0, 2)


# Help and pipes


@pytest.mark.parametrize("command", COMMANDS)
def test_help_lists_every_flag_with_its_hint(command):
    out = run(command, "--help").out
    assert all(f"--{name.replace('_', '-')}" in out for name in FIELD_ORDER)
    assert "--link" in out and "--json" in out
    assert all(str(size) in out for size in GPU_CLASSES)
    assert max(map(len, out.splitlines())) <= 100


def test_help_of_the_command_explains_itself_and_keeps_names_as_they_are_written():
    out = run("--help").out
    assert all(command in out for command in COMMANDS)
    assert "0 the run fits" in out and "1 it does not" in out
    helps = run("estimate", "--help").out + run("compare", "--help").out + run("fit", "--help").out
    assert not any(wrong in helps for wrong in (" gpu class", "per gpu", "lora and qlora"))


@pytest.mark.parametrize("arguments", [("estimate",), ("curve", "--json")])
def test_a_reader_that_stops_early_sees_no_traceback(arguments):
    command = [sys.executable, "-m", "vramplan", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode in (0, 1)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_a_terminal_without_these_characters_still_gets_the_numbers(encoding):
    command = [sys.executable, "-m", "vramplan", "curve"]
    done = subprocess.run(command, capture_output=True, env={**ENVIRONMENT, "PYTHONIOENCODING": encoding}, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "11.83" in done.stdout.decode(encoding)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_full_disk_is_told_and_is_not_taken_for_a_verdict():
    command = [sys.executable, "-m", "vramplan", "estimate"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT, timeout=60)
    assert done.returncode == 2
    assert b"could not be written" in done.stderr and b"Traceback" not in done.stderr


def test_dimensions_left_out_of_a_custom_model_are_named():
    done = run("estimate", "--model", "custom", "--hidden-size", "2048")
    assert "num_layers=32" in done.err and "hidden_size" not in done.err
    assert run("estimate", "--link", f"{PAGE}?v=1&model=custom&hidden_size=2048").err == ""
