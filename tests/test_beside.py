"""What stands beside a run: methods as ranges, the peak against the micro-batch, the model answering."""

import pytest

from configurations import OPENING, OPENINGS, PLANNING, RULES
from vramplan import beside, chart
from vramplan.accountings import estimate, fits
from vramplan.compare import spans
from vramplan.curve import batch_curve
from vramplan.errors import NotExpressible
from vramplan.fit import largest_micro_batch
from vramplan.link import read_query
from vramplan.settings import parse
from vramplan.units import gib_text


@pytest.mark.parametrize("typed", OPENINGS.values())
def test_a_range_runs_from_checkpointing_and_efficient_attention_to_neither(typed):
    settings = parse(typed)
    for each in spans(settings):
        method = each.least.settings.method
        least, most = (
            estimate(parse({**typed, "method": method, "checkpointing": kept, "attention_kernel": kernel})).peak_bytes
            for kept, kernel in (("full", "efficient"), ("none", "eager"))
        )
        assert (each.least.peak_bytes, each.most.peak_bytes) == (least, most) and least <= most


def test_the_four_methods_have_ranges_side_by_side():
    rows = beside.span_rows(parse(OPENING))
    assert [row.label for row in rows] == ["Full", "LoRA", "QLoRA", "Pre-training"]
    assert all(float(row.least) < float(row.most) for row in rows)
    assert rows[2].verdict == "fits at the least" and rows[0].verdict == "fits at neither"
    assert rows[2].parts.startswith("base weights ")


def test_a_method_that_cannot_be_counted_at_one_end_has_no_range():
    assert [row.label for row in beside.span_rows(parse({**PLANNING, "quantization": "awq"}))] == ["Full", "LoRA", "Pre-training"]
    assert beside.span_rows(parse({**RULES, "task": "inference"})) == ()


@pytest.mark.parametrize("typed", [*OPENINGS.values(), {**OPENING, "micro_batch": "37"}, {**OPENING, "model": "llama-3.2-1b", "sequence_length": "16"}, {**OPENING, "method": "full"}])
def test_the_curve_of_micro_batches_holds_the_current_and_the_largest_that_fits(typed):
    settings = parse(typed)
    largest = largest_micro_batch(settings).value
    points = batch_curve(settings, largest_fitting=largest)
    batches = [each.micro_batch for each in points]
    assert batches == sorted(set(batches)) and batches[0] == 1 and {settings.micro_batch, largest or 1} <= set(batches) and batches[-1] <= 1_024
    for each in points:
        run = estimate(settings.varied(micro_batch=each.micro_batch))
        assert (each.peak_bytes, each.headroom_bytes, each.fits) == (run.peak_bytes, run.headroom_bytes, run.fits)
    drawn = chart.layout_batches(estimate(settings), points, largest_fitting=largest)
    assert drawn.current.point.micro_batch == settings.micro_batch
    assert [mark.x for mark in drawn.marks] == sorted(mark.x for mark in drawn.marks)
    assert all(drawn.frame.top <= mark.y <= drawn.frame.floor for mark in drawn.marks) and drawn.marks[0].y >= drawn.marks[-1].y


def test_the_table_of_micro_batches_marks_the_run():
    now = estimate(parse({**OPENING, "micro_batch": "3"}))
    rows = beside.batch_rows(now, batch_curve(now.settings, largest_fitting=None))
    assert [(row.batch, row.peak) for row in rows if row.current] == [("3", gib_text(now.peak_bytes))]


@pytest.mark.parametrize(("changes", "said"), [
    ({}, "Up to 3 sequences at once fit, or likely fit."), ({"method": "full"}, "Not even one sequence at once fits."),
    ({"model": "llama-3.2-1b", "sequence_length": "1", "gpu": "288"}, "Up to 1,024 sequences or more at once fit, or likely fit."),
    ({"objective": "dpo", "stack": "trl-1.15", "sequence_length": "4096"}, "Up to 1 pair at once fits, or likely fits.")])
def test_how_many_at_once_in_a_sentence(changes, said):
    now = estimate(parse({**OPENING, **changes}))
    assert beside.batch_sentence(now, largest_micro_batch(now.settings)) == said


def test_a_trained_model_can_be_served_on_the_same_card():
    settings = parse(OPENING)
    rows = beside.served_rows(settings)
    assert [row.label for row in rows] == ["16-bit", "FP32", "FP8", "INT8", "4-bit"]
    for row in rows:
        link = read_query(row.query)
        run = parse(link.texts, version=link.version)
        assert run.serves and run.gpu == settings.gpu and run.sequence_length == settings.sequence_length
        assert row.weights == gib_text(estimate(run).terms[0].bytes)
        assert (row.sequences == "none") != fits(run)
    assert settings.model_label in beside.served_sentence(settings)


def test_a_model_that_no_rule_serves_says_so():
    with pytest.raises(NotExpressible):
        beside.served_rows(parse({**OPENING, "model": "deepseek-v2-lite"}))
