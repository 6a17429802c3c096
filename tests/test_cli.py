"""The command, run as people run it: a process with arguments, its two output streams and its exit status.

Belongs here: tables, flags, statuses, sentences. JSON: test_cli_json.py. Numbers: test_planning.py, test_oracle.py.
"""

import json
from pathlib import Path
import subprocess
import sys

import pytest

from command import ENVIRONMENT, flags, printed_json, run
from configurations import CARDS, CUSTOM, FIELD_ORDER, GPU_CLASSES, STACKS
from vramplan import NotExpressible, Settings, SettingsError, estimate, fit, report
from vramplan.fields import BY_NAME
from vramplan.link import read_query
from vramplan.settings import parse

PLANNING = ("--link", "?v=1")  # a link of the first release: the planning formula
COMMANDS = ("estimate", "fit", "curve", "gpus", "compare", "link")
PAGE = "https://example.org/plan/"


# Tables for people


def gib(count):
    return f"{count / 2**30:.2f} GiB"


@pytest.mark.parametrize("command", ["estimate", "fit", "curve", "compare"])
def test_tables_begin_with_the_headline(command):
    done = run(command, *PLANNING)
    top = "\n".join(done.out.splitlines()[:4])
    assert done.returncode == 0 and done.err == ""
    assert "11.83 GiB" in top and "24.00 GiB" in top and "12.17 GiB" in top and "fits" in top.lower()


@pytest.mark.parametrize("command", ["estimate", "fit", "curve", "compare"])
def test_the_headline_of_a_step_says_when_it_peaks_and_what_nvidia_smi_will_show(command):
    done, opening = run(command), estimate(Settings())
    top = "\n".join(done.out.splitlines()[:4])
    assert done.returncode == 0 and done.err == ""
    assert gib(opening.peak_bytes) in top and gib(opening.headroom_bytes) in top and opening.moment.name in top
    assert gib(opening.process.low)[:-4] in top and gib(opening.process.high) in top and "nvidia-smi" in top


def test_estimate_shows_every_component_to_three_decimals_and_the_counts():
    out = run("estimate", *PLANNING).out
    for text in ("7.268", "0.078", "0.156", "0.312", "0.766", "0.979", "0.109", "2.000", "11.825", "8,030,261,248", "41,943,040"):
        assert text in out
    assert "Effective batch" in out


def test_estimate_shows_every_moment_the_tensors_at_the_peak_and_the_other_accounting():
    out, opening = run("estimate").out, estimate(Settings())
    for moment in opening.moments:
        (line,) = [line for line in out.splitlines() if line.strip().lower().startswith(f"{moment.name} ")]
        assert gib(moment.bytes)[:-4] in line and ("peak" in line) == (moment is opening.moment)
    assert "(B, S, 128,256)" in out and "float32" in out
    assert "Planning formula" in out and "11.83" in out


def test_estimate_says_what_the_stack_decided_and_why_another_accounting_cannot_count():
    out = run("estimate", "--optimizer", "lion").out
    with pytest.raises(NotExpressible) as refused:
        estimate(Settings(accounting="planning", optimizer="lion"))
    assert refused.value.message in out and "Lion" in out
    for stack in ("trainer-5", "trl-1.6"):
        label = next(option.label for option in BY_NAME["stack"].kind.options if option.value == stack)
        assert label in run("estimate", "--stack", stack).out


def test_a_shortfall_reads_as_one():
    done = run("estimate", "--gpu", "8", *PLANNING)
    assert done.returncode == 1
    assert "does not fit" in done.out.lower() and "3.83 GiB" in done.out and "spare" not in done.out


@pytest.mark.parametrize("start", [(), PLANNING], ids=["step", "planning"])
def test_fit_says_what_is_largest_and_that_the_two_do_not_combine(start):
    out = run("fit", *start).out
    answers = fit(Settings() if not start else parse({}, version=1))
    assert f" {answers.largest_micro_batch.value} " in out and f" {answers.longest_sequence.value:,} " in out
    assert report.MAXIMA_NOTE in out and f" {answers.smallest_gpu.gpu.capacity_gib} GiB" in out
    assert "131,072+" in run("fit", "--gpu", "288", *start).out
    nothing = run("fit", "--gpu", "8", *start)
    assert nothing.returncode == 1 and "no micro-batch" in nothing.out.lower() and "no sequence" in nothing.out.lower()


def test_24_00_says_on_which_side_of_the_budget_it_lies():
    for budget, word, status in (("11.83", "below", 0), ("11.8252", "above", 1)):
        done = run("estimate", "--gpu", "custom", "--budget", budget, *PLANNING)
        assert done.returncode == status and word in done.out


def test_compare_lists_the_three_methods():
    out = run("compare", *PLANNING).out
    assert all(text in out for text in ("138.36", "19.41", "11.83", "Full", "LoRA", "QLoRA"))


# Exit statuses and bad input


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "link"])
def test_exit_status_tells_whether_the_run_fits(command):
    assert run(command, "--gpu", "12", *PLANNING).returncode == 0
    assert run(command, "--gpu", "10", *PLANNING).returncode == 1
    assert run(command, "--rank", "0").returncode == 2


def test_a_link_is_printed_whether_the_run_fits_or_can_be_counted():
    assert run("link", "--gpu", "10", *PLANNING).returncode == 0
    assert run("link", "--optimizer", "lion", *PLANNING).out.strip().endswith("optimizer=lion")
    assert run("link", "--rank", "0").returncode == 2


SHORT = {"sequence_length": 128, "loss": "fused-linear"}  # little that comes and goes, so a narrow band


def verdicts():
    """(verdict, budget in bytes, exit status) for a run whose band of process memory lies close to its peak."""
    one = estimate(Settings(**SHORT))
    least, middle = one.peak_bytes + one.context_bytes, one.process.middle
    return [("yes", 24 * 2**30, 0), ("likely", middle, 0), ("unlikely", middle - 1, 1), ("unlikely", least, 1), ("no", least - 1, 1)]


@pytest.mark.parametrize(("verdict", "amount", "status"), verdicts())
def test_exit_status_follows_the_verdict(verdict, amount, status):
    budget = {"gpu": "custom", "budget": f"{amount // 10**9}.{amount % 10**9:09d}", "budget_unit": "gb"}
    done = run("estimate", *flags({name: str(value) for name, value in SHORT.items()}), *flags(budget), "--json")
    assert (json.loads(done.out)["verdict"], done.returncode) == (verdict, status)


UNCOUNTED = [
    (("--accounting", "planning", "--optimizer", "lion"), "optimizer"),
    (("--accounting", "planning", "--adapter-targets", "q,v"), "adapter-targets"),
    (("--stack", "trl-1.15", "--loss", "fused-linear"), "loss"),
]


@pytest.mark.parametrize(("arguments", "flag"), UNCOUNTED)
def test_what_cannot_be_counted_is_bad_input_with_a_sentence(arguments, flag):
    done = run("estimate", *arguments)
    assert (done.returncode, done.out) == (2, "")
    (line,) = done.err.splitlines()
    assert line.startswith(f"vramplan: --{flag}: ") and line.endswith(".")


BAD = [
    {"micro_batch": "0"}, {"gpu": "custom", "budget": "0.5"}, {**CUSTOM, "num_kv_heads": "4"}, {"rank": ""},
    {"rank": "many", "sequence_length": "32769", "model": "qwen3-8b", "gpu": "25", "lora_dropout": "nan"},
    {"stack": "trainer"}, {"adapter_targets": "q,q"},
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
    names = ("model", "rank", "budget", "lora-dropout")
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
    assert run("link", *PLANNING).out.strip() == "?v=2&accounting=planning&trainable_precision=mixed-bf16"


def test_unknown_parts_of_a_link_are_named():
    done = run("estimate", "--link", f"{PAGE}?v=1&ranks=8&<b>=1")
    assert done.returncode == 0 and "ranks" in done.err and "<b>" in done.err
    assert run("estimate", "--link", "").returncode == 0
    assert run("estimate", "--link", "\udcff?\udcff=\udcff").returncode in (0, 2)


# Help and pipes


@pytest.mark.parametrize("command", (*COMMANDS, "sweep"))
def test_help_lists_every_flag_with_its_hint(command):
    out = run(command, "--help").out
    assert all(f"--{name.replace('_', '-')}" in out for name in FIELD_ORDER)
    assert "--link" in out and "--json" in out
    assert all(str(name) in out for name in (*GPU_CLASSES, *CARDS, *STACKS))
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
    assert gib(estimate(Settings()).peak_bytes) in done.stdout.decode(encoding)


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
