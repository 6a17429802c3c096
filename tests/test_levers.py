"""Single changes: every saving says what it costs."""

import pytest

from configurations import OPENING, OPENINGS
from vramplan import report, tables
from vramplan.accountings import estimate
from vramplan.fit import fit, single_changes
from vramplan.settings import parse
from vramplan.words import COSTS, cost_text


def levers(typed):
    now = estimate(parse(typed))
    return report.alternatives(now, fit(now.settings))


@pytest.mark.parametrize(
    "typed",
    [*OPENINGS.values(), {**OPENING, "method": "full", "sharding": "zero2", "sharded_over": "4"}, {**OPENING, "micro_batch": "4", "checkpointing": "none"},
     {**OPENING, "stack": "trl-1.15", "objective": "dpo"}])
def test_every_saving_says_what_it_costs_and_nothing_else_does(typed):
    for each in levers(typed):
        assert bool(each.cost) == each.difference.startswith("saves"), each


@pytest.mark.parametrize("typed", [OPENING, {**OPENING, "sharding": "fsdp2", "sharded_over": "8"}, {**OPENING, "stack": "trl-1.15", "objective": "dpo"}])
def test_every_setting_that_is_changed_has_a_cost_in_words(typed):
    assert {next(iter(change)) for change in single_changes(parse(typed))} <= set(COSTS)


def test_the_largest_saving_comes_first():
    printed = tables.fit_table(estimate(parse(OPENING)), fit(parse(OPENING)))
    assert printed.index("Loss: Fused linear") < printed.index("Adapter rank: 8") < printed.index("Training method: Full")
    assert "nothing in quality; needs Liger’s kernels" in printed


def test_dividing_over_two_gpus_is_offered_until_the_states_are_divided():
    assert {"sharding": "fsdp2", "sharded_over": 2} in single_changes(parse(OPENING))
    divided = single_changes(parse({**OPENING, "sharding": "zero1", "sharded_over": "4"}))
    assert {"sharded_over": 8} in divided and {"offload": "optimizer"} in divided
    assert not any("sharding" in change for change in divided)


def test_a_value_can_have_a_cost_of_its_own():
    assert cost_text({"checkpointing": "full"}) != cost_text({"checkpointing": "offloaded"})
    assert cost_text({"rank": 8}) == cost_text({"rank": 4}) != ""
