"""A grid over settings: every point is what the run comes to alone, ranges are read as they are typed, and the command writes it all.

Belongs here: sweep.py, ranges.py, `vramplan sweep`, and counting many batches at once. What one run comes to: the tests of its accounting.
"""

import csv
import io
import json
import sys

from hypothesis import given, settings as hypothesis_settings, strategies as st
import numpy
import pytest

from command import run
from configurations import CUSTOM_STEP, LATENT_ATTENTION, OPENINGS, SMALL_DELTA_NET
from strategies import configurations
from vramplan import NotExpressible, Settings, SettingsError, estimate
from vramplan.accountings import at_batches, fits, grid, peak_bytes
from vramplan.documents import SweepDocument
from vramplan.errors import Missing
from vramplan.fields import BY_NAME
from vramplan.ledger import VERDICTS
from vramplan.ranges import several
from vramplan.settings import parse
from vramplan.sweep import MOST_POINTS, Sweep

CORNERS = {
    "opening": {},
    "a window": {"model": "custom", "sliding_window": "1024", "sliding_window_pattern": "2"},
    "scores written out": {"attention_kernel": "eager"},
    "embedding that is sorted": {"method": "full", "gpu": "80"},
    "fused loss": {"loss": "fused-linear"},
    "chunks of the loss": {"stack": "trl-1.13"},
    "tiles of the loss": {"stack": "trl-1.15"},
    "pairs beside a second model": {"stack": "trl-1.15", "objective": "dpo", "method": "full", "gpu": "180"},
    "pairs on logits": {"stack": "trl-1.5", "objective": "dpo"},
    "rewards": {"stack": "trl-1.15", "objective": "reward"},
    "chunks of positions": {"stack": "litgpt-0.5"},
    "all logits of LitGPT": {"stack": "litgpt-0.5", "method": "full"},
    "parts of a sequence": {"stack": "torchtune-0.6"},
    "parts of a sequence, compiled": {"stack": "torchtune-0.6", "torch_compile": "on"},
    "checkpoints in host memory": {"stack": "unsloth-2026.10", "checkpointing": "offloaded"},
    "checkpoints in host memory from the second step on": {"stack": "unsloth-2025.11", "checkpointing": "offloaded", "gpu": "16"},
    "rows by free memory": {"stack": "unsloth-2025.11", "gpu": "12"},
    "small tiles": {"stack": "unsloth-2026.10", "gpu": "24"},
    "wide tiles": {"stack": "unsloth-2026.10", "gpu": "80"},
    "several GPUs": {"sharding": "fsdp2", "sharded_over": "4", "gradient_accumulation_steps": "1"},
    "latent attention": {"model": "deepseek-v2-lite", "gpu": "80"},
    "latent attention without checkpoints": {"model": "moonlight-16b-a3b", "method": "lora", "checkpointing": "none", "gpu": "180"},
    "latent attention with narrow heads": {**CUSTOM_STEP, **LATENT_ATTENTION, "method": "full"},
    "rows in chunks": {**CUSTOM_STEP, **SMALL_DELTA_NET, "method": "lora"},
    "rows in chunks, in 16 bits, without checkpoints": {**CUSTOM_STEP, **SMALL_DELTA_NET, "method": "full", "checkpointing": "none", "trainable_precision": "pure-bf16"},
    "planning formula": {"accounting": "planning"},
}
"""Runs that turn at some batch, by what is there to turn."""

MICRO_BATCHES = (1, 2, 3, 4, 7, 16, 33)
LENGTHS = (1, 2, 63, 64, 65, 100, 128, 255, 256, 257, 511, 512, 513, 767, 768, 769, 1023, 1024, 1025, 1536, 1537, 3071, 3072, 3073, 4096, 8200, 32_768, 131_072)


def alone(settings, micro_batch, length):
    """What the run comes to at one batch, by itself."""
    at = settings.replace(micro_batch=micro_batch, sequence_length=length)
    counted = estimate(at)
    assert (counted.peak_bytes, counted.fits) == (peak_bytes(at), fits(at))
    return counted.peak_bytes, counted.verdict


def together(settings, batches):
    """What it comes to at many, counted together and one by one."""
    micro_batches, lengths = (numpy.array(each, numpy.int64) for each in zip(*batches, strict=True))
    found, at = grid(settings, micro_batches, lengths), at_batches(settings)
    one_by_one = [at(*batch) for batch in batches]
    if found is not None:
        peaks, verdicts = found
        assert [(peak, VERDICTS[place]) for peak, place in zip(peaks.tolist(), verdicts.tolist(), strict=True)] == one_by_one
    return one_by_one


@pytest.mark.parametrize("case", CORNERS)
def test_many_batches_counted_together_are_each_what_they_are_alone(case):
    settings = parse(CORNERS[case])
    batches = [(b, s) for b in MICRO_BATCHES for s in LENGTHS if s <= settings.max_sequence_length]
    assert together(settings, batches) == [alone(settings, *batch) for batch in batches]


def test_every_verdict_there_is_is_found_among_many_batches():
    settings = Settings(method="full", loss="fused-linear", gpu="custom", budget=69)
    found = {verdict for _, verdict in together(settings, [(b, s) for b in (1, 2) for s in range(64, 16_384, 64)])}
    assert found == set(VERDICTS)


@pytest.mark.parametrize("accounting", OPENINGS)
@hypothesis_settings(max_examples=60)
@given(data=st.data())
def test_every_point_of_any_grid_is_what_the_run_comes_to_alone(accounting, data):
    typed = data.draw(configurations(accounting=accounting, small=data.draw(st.booleans())))
    settings = parse(typed)
    length = st.integers(1, settings.max_sequence_length) | st.integers(1, 5_000).filter(lambda n: n <= settings.max_sequence_length)
    batches = data.draw(st.lists(st.tuples(st.integers(1, 1_024) | st.integers(1, 8), length), min_size=1, max_size=8))
    assert together(settings, batches) == [alone(settings, *batch) for batch in batches]


def test_amounts_that_64_bits_do_not_hold_are_counted_exactly():
    huge = {"model": "custom", "hidden_size": "65536", "intermediate_size": "1048576", "num_layers": "1024", "num_attention_heads": "1024",
            "num_kv_heads": "1024", "head_dim": "1024", "method": "full", "attention_kernel": "eager", "checkpointing": "none"}
    batches = [(1, 1), (1_024, 131_072)]
    peaks, _ = grid(parse(huge), *(numpy.array(each, numpy.int64) for each in zip(*batches, strict=True)))
    assert peaks.tolist() == [alone(parse(huge), *batch)[0] for batch in batches] and max(peaks) > 2**62


# Grids


def points(**texts):
    return list(Sweep(texts).points())


def test_a_grid_has_every_combination_and_each_is_the_run_alone():
    texts = {"method": "full,qlora", "rank": "8,16", "sequence_length": "512:2048:*2", "gpu": "48"}
    swept = Sweep(texts)
    assert swept.names == ("method", "rank", "sequence_length") and swept.size == 12
    for point in swept.points():
        counted = estimate(parse({"gpu": "48"} | dict(zip(swept.names, point.values, strict=True))))
        assert (point.peak_bytes, point.headroom_bytes, point.budget_bytes) == (counted.peak_bytes, counted.headroom_bytes, counted.budget_bytes)
        assert (point.verdict, point.fits, point.problem) == (counted.verdict, counted.fits, None)
    assert [point.values for point in swept.points()][:4] == [("full", "8", "512"), ("full", "8", "1024"), ("full", "8", "2048"), ("full", "16", "512")]


@pytest.mark.parametrize("accounting", OPENINGS)
def test_a_grid_of_every_accounting_is_the_run_alone(accounting):
    for point in points(accounting=accounting, micro_batch="1:3", sequence_length="2048,512"):
        counted = estimate(parse({"accounting": accounting, "micro_batch": point.values[0], "sequence_length": point.values[1]}))
        assert (point.peak_bytes, point.headroom_bytes, point.verdict) == (counted.peak_bytes, counted.headroom_bytes, counted.verdict)


def test_a_point_that_cannot_be_counted_says_which_setting_is_in_the_way():
    sft, grpo = points(objective="sft,grpo")
    with pytest.raises(NotExpressible) as refused:
        estimate(Settings(objective="grpo"))
    assert sft.problem is None and (grpo.problem.field, grpo.problem.message) == ("objective", refused.value.message)
    assert grpo.peak_bytes is None and not grpo.fits


def test_rows_are_labelled_by_the_task_that_was_counted():
    tasks = {accounting: [point.values[0] for point in points(accounting=accounting, task="training,inference")] for accounting in ("step", "rules")}
    assert tasks == {"step": ["training", "training"], "rules": ["training", "inference"]}


def test_a_length_that_one_model_of_several_does_not_take_is_a_point_with_a_sentence():
    short, long, both = points(model="llama-2-7b,llama-3.1-8b", sequence_length="4096,8192")[:3]
    assert short.problem is None and both.problem is None
    assert long.problem.field == "sequence_length" and "1 to 4,096" in long.problem.message and "8192" in long.problem.message


def test_settings_that_do_not_go_together_are_points_with_a_sentence():
    found = points(model="custom", num_kv_heads="2:4")
    assert [bool(point.problem) for point in found] == [False, True, False] and found[1].problem.field == "num_kv_heads"


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("micro_batch", "1:4", "1,2,3,4"), ("micro_batch", "1:9:4", "1,5,9"), ("micro_batch", "1:10:4", "1,5,9"),
        ("sequence_length", "512:4096:*2", "512,1024,2048,4096"), ("rank", "8, 16,8 ,32:33", "8,16,32,33"), ("micro_batch", "5", "5"),
        ("method", "qlora,full", "qlora,full"), ("lora_dropout", "0:0.2:0.1", "0,0.1,0.2"), ("budget", "10:40:*2", "10,20,40"),
        ("gpu", "24,48", "24,48"), ("adapter_targets", "attention,all-linear", "attention,all-linear"),
    ],
)
def test_ranges_and_lists_are_read_in_their_order_each_value_once(name, text, values):
    assert several(BY_NAME[name], text, {}) == tuple(values.split(","))


def test_a_list_of_maps_is_one_value():
    assert several(BY_NAME["adapter_targets"], "q,v", {}) == ("q,v",)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("micro_batch", "4:1"), ("micro_batch", "0:4"), ("micro_batch", "1:2000"), ("micro_batch", "1:4:0"), ("micro_batch", "1:8:*1"), ("micro_batch", "1:"),
        ("micro_batch", ":"), ("micro_batch", "1:2:3:4"), ("micro_batch", "1:4:x"), ("micro_batch", "1,"), ("micro_batch", "1:²"), ("rank", "8,-1"),
        ("method", "full,"), ("method", "full,adapters"), ("lora_dropout", "0:1"), ("lora_dropout", "0:0.5:*2"), ("lora_dropout", "0,2"), ("lora_dropout", "0:0.1:NaN"),
    ],
)
def test_what_is_no_range_is_one_sentence_that_names_the_setting_and_repeats_what_came(name, text):
    with pytest.raises(SettingsError) as refused:
        Sweep({name: text, "sequence_length": "512,1024"})
    (error,) = refused.value.errors
    assert error.field == name and BY_NAME[name].label in error.message and ("“" in error.message or "nothing was entered" in error.message)
    assert error.message.count("\n") == 0 and error.message.endswith(".")


@given(text=st.text(alphabet="0123456789:*,. x-e", max_size=16), name=st.sampled_from(["micro_batch", "rank", "lora_dropout", "budget", "method", "adapter_targets"]))
def test_whatever_is_typed_gives_values_that_the_setting_takes_or_a_sentence(text, name):
    try:
        values = several(BY_NAME[name], text, {})
    except SettingsError as refused:
        assert [error.field for error in refused.errors] == [name]
        return
    if len(values) > 1:
        for value in (values[0], values[-1]):
            assert getattr(parse({"gpu": "custom", name: value}), name) is not None


def test_a_grid_with_nothing_to_sweep_or_with_too_much_is_refused():
    for texts, told in (({"rank": "8"}, "several values"), ({"micro_batch": "1:1024", "sequence_length": "1:131072"}, f"{MOST_POINTS:,}")):
        with pytest.raises(SettingsError) as refused:
            Sweep(texts)
        assert told in str(refused.value)


# The command

GRID = ("--micro-batch", "1,2", "--sequence-length", "512:2048:*2", "--gpu", "24")


def expected():
    return [estimate(parse({"gpu": "24", "micro_batch": b, "sequence_length": s})) for b in ("1", "2") for s in ("512", "1024", "2048")]


def test_the_command_prints_a_small_grid_as_a_table():
    done = run("sweep", *GRID)
    lines = done.out.splitlines()
    assert done.returncode == 0 and done.err == "" and len(lines) == 7
    for line, counted in zip(lines[1:], expected(), strict=True):
        assert f"{counted.peak_bytes / 2**30:.2f}" in line and str(counted.settings.sequence_length) in line and "Fits" in line


def test_the_command_writes_a_grid_as_comma_separated_values(tmp_path):
    path = tmp_path / "grid.csv"
    printed, written = run("sweep", *GRID, "--csv", "-"), run("sweep", *GRID, "--csv", str(path))
    assert written.returncode == 0 and written.out == "" and path.read_text(encoding="utf-8") == printed.out.replace("\r\n", "\n")
    rows = list(csv.DictReader(io.StringIO(printed.out)))
    assert list(rows[0]) == ["micro_batch", "sequence_length", "peak_bytes", "budget_bytes", "headroom_bytes", "fits", "verdict", "field", "message"]
    assert [(int(r["peak_bytes"]), int(r["headroom_bytes"]), r["fits"], r["verdict"]) for r in rows] == [
        (e.peak_bytes, e.headroom_bytes, "true" if e.fits else "false", e.verdict) for e in expected()
    ]


def test_the_command_writes_why_a_point_is_not_counted():
    rows = list(csv.DictReader(io.StringIO(run("sweep", "--objective", "sft,grpo", "--csv", "-").out)))
    assert rows[0]["message"] == rows[1]["peak_bytes"] == rows[1]["fits"] == "" and rows[1]["field"] == "objective"
    assert "GRPO" in rows[1]["message"] and "GRPO" in run("sweep", "--objective", "sft,grpo").out


def test_the_command_prints_a_grid_as_json():
    printed = json.loads(run("sweep", *GRID, "--json").out)
    assert printed["settings"] == {"gpu": "24"} and printed["swept"] == {"micro_batch": ["1", "2"], "sequence_length": ["512", "1024", "2048"]}
    assert [point["peak_bytes"] for point in printed["points"]] == [counted.peak_bytes for counted in expected()]
    swept = Sweep({"gpu": "24", "micro_batch": "1,2", "sequence_length": "512:2048:*2"})
    assert SweepDocument.of(swept) == SweepDocument.model_validate(printed)


def test_the_status_says_whether_anything_fits():
    assert run("sweep", "--micro-batch", "1,1024", "--gpu", "24").returncode == 0
    assert run("sweep", "--micro-batch", "1,2", "--gpu", "8", "--method", "full").returncode == 1
    assert run("sweep", "--objective", "grpo,ppo").returncode == 2


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (("--micro-batch", "1:64", "--sequence-length", "512:8192:16"), "--csv"), (("--micro-batch", "8:1"), "--micro-batch"), ((), "--micro-batch"),
        (("--micro-batch", "1,2", "--rank", "0"), "--rank"), (("--method", "full,loro"), "--method"),
    ],
)
def test_the_command_says_in_one_sentence_which_flag_is_wrong(arguments, flag):
    done = run("sweep", *arguments)
    assert done.returncode == 2 and done.out == "" and done.err.startswith(f"vramplan: {flag}: ") and done.err.count("\n") == 1


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path):
    done = run("sweep", *GRID, "--csv", str(tmp_path / "no folder" / "grid.csv"))
    assert done.returncode == 2 and "could not be written" in done.err and done.err.count("\n") == 1


def test_without_numpy_a_sweep_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(Missing, match=r'pip install "vramplan\[sweep\]"'):
        Sweep({"micro_batch": "1,2"})


def test_a_link_and_a_configuration_file_hold_what_is_not_swept(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8,
                                "num_key_value_heads": 2, "intermediate_size": 1024, "vocab_size": 1000}), encoding="utf-8")
    done = run("sweep", "--config", str(path), "--link", "?v=2&method=lora", "--rank", "8,16", "--csv", "-")
    alone = [json.loads(run("estimate", "--config", str(path), "--link", "?v=2&method=lora", "--rank", rank, "--json").out)["peak_bytes"] for rank in ("8", "16")]
    assert [int(row["peak_bytes"]) for row in csv.DictReader(io.StringIO(done.out))] == alone


def test_what_no_point_uses_is_named_and_what_one_of_them_uses_is_not():
    assert "budget is not used" in run("sweep", "--gpu", "24,48", "--budget", "30").err
    assert run("sweep", "--gpu", "24,custom", "--budget", "30").err == ""
    assert "banana" in run("sweep", "--micro-batch", "1,2", "--link", "?v=2&banana=1").err
    assert "hidden_size=4096" in run("sweep", "--model", "custom, qwen3-8b").err


def test_a_number_that_is_written_twice_is_one_value():
    assert several(BY_NAME["micro_batch"], "01,1,2", {}) == ("1", "2")
    assert several(BY_NAME["lora_dropout"], "0.5,0.50,.25", {}) == ("0.5", "0.25")


def test_a_table_of_values_and_a_document_are_not_asked_for_together():
    done = run("sweep", "--micro-batch", "1,2", "--csv", "-", "--json")
    assert (done.returncode, done.out) == (2, "") and "not allowed" in done.err
