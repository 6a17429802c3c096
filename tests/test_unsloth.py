"""Unsloth Studio's estimate: every figure of its document that follows from its formulas, its revisions, and what it refuses to count.

Source of the figures: Unsloth Studio, VRAM estimation for training (March 2026). Its GB are GiB. Not here: random
configurations (test_unsloth_oracle.py).
"""

from pathlib import Path
import tomllib

import pytest

from configurations import CUSTOM, OPENING, UNSLOTH
from vramplan import NotExpressible, Settings, compare, curve, estimate, fit, studio
from vramplan.accounts import counted_by_each, differences
from vramplan.accountings import frames
from vramplan.accountings.unsloth import own_names
from vramplan.compare import by_accounting
from vramplan.fields import BY_NAME, applying
from vramplan.link import read_query, to_query
from vramplan.report import components, headline
from vramplan.settings import parse
from vramplan.units import gib_text

RECORDED = tomllib.loads((Path(__file__).parent.parent / "app/vramplan/data/unsloth_studio.toml").read_text(encoding="utf-8"))
TEXT_TOTALS = ("2.1", "2.9", "4.6", "9.5", "21.1", "63.5", "81.5", "61.7")  # worked out from the text's 15 %, section 6
COLUMNS = {
    "weights": ("base_weights",), "lora": ("adapters",), "optim": ("optimizer_states",), "gradients": ("gradients", "gradient_floor"),
    "activations": ("saved_activations", "activation_floor"), "cuda": ("fixed_allowance",),
}
by_row = pytest.mark.parametrize("entry", RECORDED["table"], ids=lambda entry: entry["row"])


def of(**changes):
    return estimate(parse({**UNSLOTH, "optimizer": "adamw-8bit", **changes}))


def held(one):
    return {term.name: term.bytes for term in one.terms}


def of_table(entry, floor):
    """A row of the reference table: bsz=2, seq=2048, rank=16, GC=unsloth, adamw_8bit."""
    return of(model=entry["model"], method=entry["method"], micro_batch="2", sequence_length="2048", rank="16", checkpointing="offloaded", floor_fraction=floor)


@by_row
def test_with_a_floor_of_20_per_cent_every_cell_of_the_reference_table_comes_out(entry):
    one = of_table(entry, "0.20")
    amounts = {name: gib_text(sum(held(one)[term] for term in terms), places=1) for name, terms in COLUMNS.items()}
    assert amounts == {name: entry[name].replace("–", "0.0") for name in COLUMNS}
    assert gib_text(one.peak_bytes, places=1) == entry["total"]


def test_with_the_15_per_cent_of_the_text_six_totals_are_smaller():
    totals = [gib_text(of_table(entry, "0.15").peak_bytes, places=1) for entry in RECORDED["table"]]
    assert tuple(totals) == TEXT_TOTALS
    assert sum(float(text) < float(entry["total"]) for text, entry in zip(totals, RECORDED["table"], strict=True)) == 6


def test_the_two_estimates_of_the_validation_that_follow_from_the_formulas_come_out_without_floors():
    printed = {row.row: (row.printed, row.computed) for row in studio.validation_rows()}
    assert printed["Full FT adamw_8bit"] == ("10.89", "10.89")
    assert printed["Full FT adamw_torch"] == ("13.19", "13.19")


def test_the_validation_is_recorded_as_it_was_printed():
    assert [(row.printed, row.measured) for row in studio.validation_rows()] == [
        ("2.55", "2.65"), ("2.60", "2.65"), ("2.65", "2.65"), ("3.84", "3.88"), ("10.89", "10.80"), ("13.19", "12.93"),
    ]


def test_the_table_is_shown_with_both_floors():
    rows = studio.table_rows()
    assert [row.printed for row in rows] == [row.with_table_floor for row in rows] == [entry["total"] for entry in RECORDED["table"]]
    assert tuple(row.with_text_floor for row in rows) == TEXT_TOTALS


@pytest.mark.parametrize(("optimizer", "size"), [("adamw-8bit", 4), ("adamw-foreach", 6), ("adamw-fused", 6), ("paged-adamw-32bit", 8), ("sgd", 4)])
def test_bytes_of_optimizers_by_name(optimizer, size):
    for revision in ("2026-03", "2026-08"):
        one = of(optimizer=optimizer, unsloth_revision=revision)
        assert held(one)["optimizer_states"] == size * one.parameters.trainable


# One layer of the small decoder, B = 2, S = 10, in bytes: (10·2·(64 + 20 + 20) + 10·2·2 + 10·2·(200 + 200)) · 2 · 1.25, K = 64 // 6 · 2 = 20.
ONE_LAYER = 25_300


@pytest.mark.parametrize(
    ("method", "checkpointing", "layers"),
    [("full", "none", 3), ("lora", "none", 3), ("full", "full", 2), ("lora", "full", 1), ("full", "offloaded", 1.5), ("qlora", "offloaded", 1)],
)
def test_layers_whose_activations_are_alive(method, checkpointing, layers):
    one = of(**CUSTOM_DECODER, method=method, checkpointing=checkpointing, micro_batch="2", sequence_length="10", floor_fraction="0")
    assert held(one)["saved_activations"] == ONE_LAYER * layers and held(one)["activation_floor"] == 0


CUSTOM_DECODER = {name: text for name, text in CUSTOM.items() if name not in (*OPENING, "budget", "budget_unit")} | {"model": "custom"}


def test_the_floor_of_the_activations_grows_with_the_micro_batch():
    for micro_batch in (1, 2, 6):
        one = held(of(micro_batch=str(micro_batch), sequence_length="1", floor_fraction="0.5"))
        assert abs(one["saved_activations"] + one["activation_floor"] - one["base_weights"] * micro_batch / 4) < 2


def test_since_august_activations_have_no_floor_and_the_one_of_adapters_is_capped():
    march, august = (of(unsloth_revision=revision, sequence_length="64") for revision in ("2026-03", "2026-08"))
    now = held(august)
    assert held(march)["activation_floor"] > 0 and now["activation_floor"] == 0
    assert now["gradients"] + now["gradient_floor"] == max(now["saved_activations"], now["optimizer_states"]) < 0.15 * now["base_weights"]
    full = held(of(unsloth_revision="2026-08", sequence_length="64", method="full", floor_fraction="1"))
    assert full["gradients"] + full["gradient_floor"] == full["base_weights"]


def test_since_august_double_quantisation_is_smaller():
    sizes = {(revision, kind): held(of(unsloth_revision=revision, quantization=kind))["base_weights"]
             for revision in ("2026-03", "2026-08") for kind in ("nf4", "nf4-double")}
    assert sizes["2026-03", "nf4"] == sizes["2026-03", "nf4-double"] == sizes["2026-08", "nf4"] > sizes["2026-08", "nf4-double"]


def test_since_august_attention_that_stores_scores_is_counted():
    march, fused, eager = (held(of(sequence_length="8192", unsloth_revision=revision, attention_kernel=kernel))["saved_activations"]
                           for revision, kernel in (("2026-03", "eager"), ("2026-08", "efficient"), ("2026-08", "eager")))
    assert march == fused < eager == 32 * 8192**2 * 2 * 12  # 32 heads, 12 times 16 bits, one layer


def test_since_august_the_head_is_as_wide_as_the_model_says():
    """Qwen3 0.6B has 16 heads of 128 beside a hidden size of 1,024: queries twice as wide."""
    march, august = (of(model="qwen3-0.6b", unsloth_revision=revision).parameters.total for revision in ("2026-03", "2026-08"))
    assert august - march == 28 * 2 * 1024 * (2048 - 1024 + 1024 - 512)


def test_since_august_experts_that_are_shared_are_counted_and_a_token_goes_through_its_own():
    one = of(model="qwen1.5-moe-a2.7b", unsloth_revision="2026-08", sequence_length="128")
    experts, shared = 60 * 3 * 2048 * 1408 + 60 * 2048, 3 * 2048 * 5632 + 2048
    assert one.parameters.total == 24 * (4 * 2048 * 2048 + experts + shared + 2 * 2048) + 2 * 151_936 * 2048
    assert held(one)["saved_activations"] == 128 * (3 * 2048 + 2 + 2 * (4 * 1408 + 5632)) * 2 * 1.25


def test_mixtures_are_counted_by_the_document_with_an_adapter_for_every_expert():
    one = of(model="mixtral-8x7b", sequence_length="128")
    attention = 16 * (4 * 4096 + 4096 + 4096 + 2 * 1024)
    assert one.parameters.trainable == 32 * (attention + 8 * 3 * 16 * (4096 + 14336))


REFUSED = [
    ({"model": "gpt2", "sequence_length": "128"}, "model"),
    ({"model": "qwen1.5-moe-a2.7b", "sequence_length": "128"}, "model"),
    ({"model": "deepseek-v2-lite", "sequence_length": "128"}, "model"),
    ({"model": "lfm2-1.2b", "sequence_length": "128"}, "model"),
    ({"method": "pretraining"}, "method"),
    ({"sharding": "zero3", "sharded_over": "2"}, "sharding"),
    ({"adapter_targets": "q,lm_head"}, "adapter_targets"),
    ({"quantization": "awq"}, "quantization"),
    ({"quantization": "int8", "unsloth_revision": "2026-08"}, "quantization"),
    ({"optimizer": "lion"}, "optimizer"),
    ({"optimizer": "adamw-fp32-states"}, "optimizer"),
    ({"optimizer": "paged-adamw-8bit"}, "optimizer"),
]


@pytest.mark.parametrize(("changes", "field"), REFUSED)
def test_what_it_has_no_term_for_is_one_sentence(changes, field):
    with pytest.raises(NotExpressible) as refused:
        of(**changes)
    assert refused.value.field == field
    assert refused.value.message.startswith("Unsloth Studio’s ") and refused.value.message.endswith(".")


def test_pairs_and_a_timeline_are_refused_with_its_own_sentence():
    reason = by_accounting(parse({**OPENING, "stack": "trl-1.15", "objective": "dpo"}))["unsloth"]
    assert isinstance(reason, NotExpressible) and (reason.field, "pairs" in reason.message) == ("objective", True)
    with pytest.raises(NotExpressible, match="no timeline"):
        frames(parse(UNSLOTH), most_layers=4)


def test_settings_of_other_accountings_change_nothing():
    usual = of().peak_bytes
    for changes in ({"trainable_precision": "mixed-bf16"}, {"loss": "triton"}, {"activation_multiplier": "3"}, {"lora_dropout": "0.1"}, {"attention_kernel": "eager"}):
        assert of(**changes).peak_bytes == usual


def test_only_the_settings_that_it_reads_apply():
    own = {"unsloth_revision", "floor_fraction"}
    for accounting in ("step", "planning", "unsloth"):
        names = applying(parse({**OPENING, "accounting": accounting}).__dict__)
        assert (own <= names, bool(own & names)) == (accounting == "unsloth", accounting == "unsloth")
        assert ("quantization" in names, "trainable_precision" in names) == (accounting != "planning", accounting != "unsloth")
    assert "attention_kernel" not in applying(parse(UNSLOTH).__dict__)
    assert "attention_kernel" in applying(parse({**UNSLOTH, "unsloth_revision": "2026-08"}).__dict__)


def test_every_feature_works_with_it():
    settings = parse({**UNSLOTH, "unsloth_revision": "2026-08", "floor_fraction": "0.2"})
    one = estimate(settings)
    assert headline(one).verdict_name == "yes" and one.context_bytes == 0 and one.process is None
    assert [row.label for row in components(one)][-1] == "CUDA overhead"
    assert [row.settings.method for row in compare(settings)] == ["full", "lora", "qlora"]
    found = fit(settings)
    assert found.largest_micro_batch.value > 1 and found.longest_sequence.value > 2048 and len(found.alternatives) > 6
    points = curve(settings).points
    assert points[0].peak_bytes <= points[-1].peak_bytes
    assert parse(read_query(to_query(settings)).texts) == settings
    assert [each.current for each in counted_by_each(settings, {"unsloth": one})] == [False, False, True, False]


def test_the_accountings_are_compared_component_by_component():
    told = differences(estimate(parse(OPENING)))
    assert told.labels == ("Planning formula", "Unsloth Studio", "Byte rules")
    assert all(len(row.others) == 3 for row in (*told.rows, told.peak))
    peaks = {name: each.peak_bytes for name, each in by_accounting(parse(OPENING)).items()}
    assert told.peak.step == gib_text(peaks["step"])
    assert [(each.gib, each.more) for each in told.peak.others] == [
        (gib_text(peaks[name]), gib_text(peaks[name] - peaks["step"], signed=True)) for name in ("planning", "unsloth", "rules")
    ]
    without = differences(estimate(parse({**OPENING, "optimizer": "lion"})))
    assert without is None
    assert differences(estimate(parse({**OPENING, "checkpointing": "offloaded"}))).labels == ("Unsloth Studio",)


def test_its_own_names_stand_beside_ours():
    named = {each.name: (each.field, each.value) for each in own_names(parse({**UNSLOTH, "checkpointing": "offloaded", "adapter_targets": "q,v"}))}
    assert named == {
        "training_method": ("method", "qlora"), "lora_r": ("rank", "16"), "target_modules": ("adapter_targets", "q_proj, v_proj"),
        "max_seq_length": ("sequence_length", "2048"), "per_device_train_batch_size": ("micro_batch", "1"), "optim": ("optimizer", "adamw_torch"),
        "gradient_checkpointing": ("checkpointing", "unsloth"),
    }
    later = {each.name: each.value for each in own_names(parse({**UNSLOTH, "unsloth_revision": "2026-08", "optimizer": "lion"}))}
    assert (later["target_modules"], later["attention_implementation"], later["optim"]) == ("all-linear", "sdpa", "")
    assert all(each.field in BY_NAME for each in own_names(Settings()))
