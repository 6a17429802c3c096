"""What people read: every option, component, fact and verdict has its words, and groups lose nothing.

Belongs here: completeness of the texts. What a report says of a run: test_library.py, test_cli.py and browser/.
"""

import pytest

from vramplan import accounts, report, words
from vramplan.accountings import ACCOUNTINGS, estimate
from vramplan.fields import BY_NAME, FIELDS
from vramplan.kinds import Choice
from vramplan.settings import Settings, parse
from vramplan.stacks import stacks


@pytest.mark.parametrize("name", [field.name for field in FIELDS if isinstance(field.kind, Choice)])
def test_groups_hold_every_option_once(name):
    groups = words.option_groups(name)
    listed = [option for _, options in groups for option in options]
    assert sorted(listed, key=repr) == sorted(BY_NAME[name].kind.options, key=repr)
    assert len({label for label, _ in groups}) == len(groups)


def test_long_lists_are_in_groups_and_what_is_typed_in_stands_alone():
    for name in ("gpu", "model"):
        *_, (label, options) = words.option_groups(name)
        assert (label, [option.value for option in options]) == ("", ["custom"])
        assert len(words.option_groups(name)) > 2


def test_every_component_and_every_fact_of_a_stack_has_its_words():
    assert set(words.DIFFERENCES) == set(ACCOUNTINGS) - {accounts.STEP}
    assert all(set(sentences) == set(words.COMPONENTS) for sentences in words.DIFFERENCES.values())
    for name, stack in stacks().items():
        run = parse({"stack": name})
        assert all(accounts.unchecked(estimate(run))) or not stack.unchecked


@pytest.mark.parametrize(
    ("texts", "verdict", "said"),
    [
        ({}, "yes", "to spare after"),
        ({"accounting": "planning"}, "yes", "to spare."),
        ({"method": "full"}, "no", "of CUDA context included."),
        ({"sequence_length": "7000"}, "unlikely", "with only "),
    ],
)
def test_the_sentence_says_what_is_left_or_lacking(texts, verdict, said):
    told = report.headline(estimate(parse(texts)))
    assert (told.verdict_name, said in told.sentence) == (verdict, True)


def test_the_amounts_of_the_sentence_add_up_to_the_budget():
    run = estimate(Settings(gpu="rtx-4090"))
    assert run.peak_bytes + run.headroom_bytes + run.context_bytes == run.budget_bytes
    assert report.line_text(run) and not report.line_text(estimate(Settings(accounting="planning")))


def test_the_settings_of_a_run_are_read_in_the_order_of_the_form_without_what_does_not_apply():
    rows = report.settings_rows(parse({"method": "full", "sequence_length": "4096"}))
    labels = [label for label, _ in rows]
    assert rows[0] == ("Model", "Llama 3.1 8B") and ("Sequence length", "4,096") in rows
    assert labels.index("Training method") < labels.index("GPU") < labels.index("Sequence length") < labels.index("Optimizer")
    assert not {"Adapter rank", "Hidden size", "Budget per GPU"} & {*labels}


def test_of_a_decoder_of_one_s_own_only_unusual_traits_are_read():
    labels = dict(report.settings_rows(parse({"model": "custom", "sliding_window": "512"})))
    assert labels["Hidden size"] == "4,096" and labels["Sliding window"] == "512"
    assert "Query/key norms" not in labels
