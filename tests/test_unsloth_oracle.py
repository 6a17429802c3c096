"""Unsloth Studio's estimate against the independent oracle, on thousands of seeded random configurations, to the byte.

Half of them are mixtures of experts, which only some choices of the revision count.
"""

import random

import pytest

from configurations import COUNTED, UNSLOTH
from oracle import MIXTURES
import oracle_unsloth
from unsloth_configurations import unsloth_configuration
from vramplan import estimate
from vramplan.settings import parse

COUNT = 10_000
SEED = 20_260
REVISIONS = ("2026-03", "2026-08")


@pytest.fixture(scope="module")
def both():
    """(configurations, the oracle's columns, the package's estimates), one entry per configuration."""
    generator = random.Random(SEED)
    configurations = [{**UNSLOTH, **unsloth_configuration(generator)} for _ in range(COUNT)]
    return configurations, oracle_unsloth.ledger(configurations), [estimate(parse(c)) for c in configurations]


def differences(configurations, expected, actual):
    return [(a, e, c) for c, e, a in zip(configurations, expected, actual, strict=True) if a != e][:3]


def test_random_configurations_reach_every_option_of_both_revisions(both):
    configurations, _, _ = both
    for revision in REVISIONS:
        mine = [c for c in configurations if c["unsloth_revision"] == revision]
        assert len(mine) > COUNT / 3
        for name in ("method", "checkpointing", "attention_kernel", "quantization", "optimizer", "adapter_targets"):
            assert {c[name] for c in mine} >= set(COUNTED["unsloth"][name]), name
        assert sum(c["model"] in MIXTURES or c.get("num_experts", "0") != "0" for c in mine) > len(mine) / 3


@pytest.mark.parametrize("name", list(oracle_unsloth.ledger([UNSLOTH | {"optimizer": "sgd"}])["terms"]))
def test_each_term_is_equal_to_the_byte(both, name):
    configurations, expected, estimates = both
    actual = [sum(term.bytes for term in e.terms if term.name == name) for e in estimates]
    assert differences(configurations, expected["terms"][name], actual) == []
    assert len(set(actual)) > (0 if name == "fixed_allowance" else 1_000)


def test_no_other_terms_and_always_in_the_same_order(both):
    _, expected, estimates = both
    assert {tuple(term.name for term in each.terms) for each in estimates} == {tuple(expected["terms"])}


@pytest.mark.parametrize(
    ("column", "of"),
    [
        ("peak", lambda e: e.peak_bytes),
        ("budget", lambda e: e.budget_bytes),
        ("total", lambda e: e.parameters.total),
        ("trainable", lambda e: e.parameters.trainable),
    ],
)
def test_totals_are_equal(both, column, of):
    configurations, expected, estimates = both
    assert differences(configurations, expected[column], [of(e) for e in estimates]) == []
