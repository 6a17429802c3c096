"""The verdict on a run, to the byte, and what the accountings refuse to count.

Belongs here: yes, likely, unlikely, no; NotExpressible. Exit statuses of the terminal: test_cli.py.
"""

import pytest

from configurations import OPENING, PLANNING
from vramplan import NotExpressible, Settings, compare, estimate, fit
from vramplan.accountings import fits, peak_bytes
from vramplan.compare import by_accounting, peaks_by_stack
from vramplan.fit import single_changes
from vramplan.ledger import Band, Estimate, Moment, Parameters, Term, verdict
from vramplan.settings import parse

# usable 1,000 bytes of a budget of 1,050: 92 per cent of the usable ones are 920.
NARROW, AT_THE_BUDGET, WIDE = Band(1_000, 1_040), Band(1_000, 1_100), Band(1_000, 1_102)  # middles 1,020, 1,050 and 1,051

VERDICTS = [
    # (peak, band of the process, verdict)
    (0, WIDE, "yes"),
    (919, WIDE, "yes"),
    (920, WIDE, "yes"),
    (921, WIDE, "unlikely"),
    (921, AT_THE_BUDGET, "likely"),
    (921, NARROW, "likely"),
    (1_000, NARROW, "likely"),
    (1_000, AT_THE_BUDGET, "likely"),
    (1_000, WIDE, "unlikely"),
    (1_001, NARROW, "no"),
    (1_001, WIDE, "no"),
    (1_000, None, "yes"),
    (921, None, "yes"),
    (1_001, None, "no"),
]


@pytest.mark.parametrize(("peak", "process", "expected"), VERDICTS)
def test_every_verdict_at_its_limits(peak, process, expected):
    assert verdict(usable=1_000, budget=1_050, peak=peak, process=process) == expected


def test_the_middle_of_a_band_is_rounded_down():
    assert (Band(1_000, 1_101).middle, Band(3, 4).middle, Band(5, 5).middle) == (1_050, 3, 5)


@pytest.mark.parametrize("usable", [0, -1])
def test_nothing_fits_where_nothing_is_usable(usable):
    assert verdict(usable=usable, budget=0, peak=1, process=None) == "no"
    assert verdict(usable=usable, budget=0, peak=1, process=WIDE) == "no"


def made(*moments, process=None, context=0):
    """An estimate with these moments' bytes, against a budget of 1 GiB."""
    rows = tuple(Moment(name, (Term("base_weights", size),)) for name, size in moments)
    return Estimate("step", Settings(gpu="custom", budget=1), Parameters(1, 1), rows, {}, context, process, process)


def test_the_largest_moment_is_the_peak_and_the_first_of_equals():
    one = made(("forward", 5), ("loss", 9), ("optimizer step", 9))
    assert (one.moment.name, one.peak_bytes, one.terms) == ("loss", 9, (Term("base_weights", 9),))


GIB = 2**30


@pytest.mark.parametrize(
    ("peak", "context", "process", "expected", "fit"),
    [
        (GIB, 0, None, "yes", True),
        (GIB + 1, 0, None, "no", False),
        (GIB - 100, 100, Band(GIB, GIB), "likely", True),
        (GIB - 99, 100, Band(GIB, GIB), "no", False),
        (GIB - 100, 100, Band(GIB, GIB + 2), "unlikely", False),
        (1, 100, Band(9 * GIB, 9 * GIB), "yes", True),
    ],
)
def test_an_estimate_fits_when_its_verdict_is_yes_or_likely(peak, context, process, expected, fit):
    one = made(("loss", peak), process=process, context=context)
    assert (one.verdict, one.fits) == (expected, fit)
    assert (one.budget_bytes, one.usable_bytes, one.headroom_bytes) == (GIB, GIB - context, GIB - context - peak)


# What cannot be counted: settings, and the one that is in the way.
REFUSED = [
    ({**PLANNING, "optimizer": "lion"}, "optimizer"),
    ({**PLANNING, "optimizer": "adafactor"}, "optimizer"),
    ({**PLANNING, "optimizer": "paged-adamw-8bit"}, "optimizer"),
    ({**PLANNING, "quantization": "int8"}, "quantization"),
    ({**PLANNING, "quantization": "nf4"}, "quantization"),
    ({**PLANNING, "adapter_targets": "q,v"}, "adapter_targets"),
    ({**PLANNING, "adapter_targets": "q,k,v,o,lm_head"}, "adapter_targets"),
    ({**OPENING, "stack": "trl-1.15", "loss": "fused-linear"}, "loss"),
    ({**OPENING, "loss": "fused-linear", "adapter_targets": "q,lm_head"}, "adapter_targets"),
    ({**OPENING, "loss": "chunked", "adapter_targets": "q,lm_head"}, "adapter_targets"),
    ({**OPENING, "stack": "trl-1.15", "adapter_targets": "q,lm_head"}, "adapter_targets"),
]


@pytest.mark.parametrize(("typed", "field"), REFUSED)
@pytest.mark.parametrize("question", [estimate, peak_bytes, fits])
def test_what_cannot_be_counted_is_refused_with_the_setting_and_a_sentence(typed, field, question):
    with pytest.raises(NotExpressible) as refused:
        question(parse(typed))
    assert refused.value.field == field
    assert refused.value.message[0].isupper() and refused.value.message.endswith(".") and "\n" not in refused.value.message


COUNTED = [
    {**OPENING, "autocast": "off"},  # PyTorch's own attention, written out
    # what is in the way above is not where it is not read, or where another setting makes room
    {**PLANNING, "method": "full", "adapter_targets": "q,v"},
    {**PLANNING, "method": "lora", "quantization": "int8"},
    {**PLANNING, "stack": "trl-1.15", "loss": "fused-linear"},
    {**OPENING, "stack": "trl-1.6", "loss": "fused-linear"},
    {**OPENING, "loss": "fused-linear", "method": "full", "adapter_targets": "q,lm_head"},
    {**OPENING, "loss": "logits", "adapter_targets": "q,lm_head"},
    {**OPENING, "autocast": "off", "attention_kernel": "eager"},
    {**OPENING, "autocast": "off", "kbit_preparation": "none"},
]


@pytest.mark.parametrize("typed", COUNTED)
def test_what_can_be_counted_is(typed):
    assert estimate(parse(typed)).peak_bytes > 0


def refused(settings, change):
    try:
        estimate(settings.replace(**change))
    except NotExpressible:
        return True
    return False


@pytest.mark.parametrize(
    ("typed", "left_out"),
    [
        ({**OPENING, "stack": "trl-1.15"}, [{"loss": "fused-linear"}]),
        ({**OPENING, "loss": "logits", "adapter_targets": "lm_head"}, [{"loss": "fused-linear"}]),
        ({**PLANNING, "method": "full", "optimizer": "adamw-fused", "quantization": "int8"}, [{"method": "qlora"}]),
        (OPENING, []),
        (PLANNING, []),
    ],
)
def test_the_search_leaves_out_changes_that_cannot_be_counted_and_no_others(typed, left_out):
    settings = parse(typed)
    offered = [one.change for one in fit(settings).alternatives]
    peaks = [one.peak_bytes for one in fit(settings).alternatives]
    assert peaks == sorted(peaks)
    assert sorted(offered, key=repr) == sorted((change for change in single_changes(settings) if change not in left_out), key=repr)
    assert [change for change in single_changes(settings) if refused(settings, change)] == left_out


def test_comparisons_leave_out_or_explain_what_cannot_be_counted():
    settings = parse({**PLANNING, "method": "full", "quantization": "int8"})
    assert [one.settings.method for one in compare(settings)] == ["full", "lora", "pretraining"]
    both = by_accounting(parse({**OPENING, "optimizer": "lion"}))
    assert isinstance(both["step"], Estimate) and isinstance(both["planning"], NotExpressible)
    assert both["planning"].field == "optimizer"
    assert "trl-1.15" not in peaks_by_stack(parse({**OPENING, "loss": "fused-linear"}))
    assert "trl-1.15" in peaks_by_stack(parse(OPENING))
