"""The planning estimate against the independent oracle, on thousands of seeded random configurations, to the byte."""

import pytest

from configurations import COUNTED, PLANNING, random_configurations
import oracle
from vramplan import estimate
from vramplan.settings import parse

COUNT = 10_000
SEED = 20_250


@pytest.fixture(scope="module")
def both():
    """(configurations, the oracle's columns, the package's estimates), one entry per configuration."""
    configurations = random_configurations(COUNT, SEED)
    return configurations, oracle.ledger(configurations), [estimate(parse(c)) for c in configurations]


def differences(configurations, expected, actual):
    return [(a, e, c) for c, e, a in zip(configurations, expected, actual, strict=True) if a != e][:3]


def test_random_configurations_reach_every_option(both):
    configurations, _, _ = both
    for name, options in COUNTED["planning"].items():
        assert {c[name] for c in configurations if name in c} == set(options)


@pytest.mark.parametrize("name", list(oracle.ledger([PLANNING])["terms"]))
def test_each_term_is_equal_to_the_byte(both, name):
    configurations, expected, estimates = both
    actual = [sum(term.bytes for term in e.terms if term.name == name) for e in estimates]
    assert differences(configurations, expected["terms"][name], actual) == []
    assert len(set(actual)) > (0 if name == "fixed_allowance" else 3)


def test_no_other_terms_and_always_the_documented_order(both):
    _, expected, estimates = both
    order = list(expected["terms"])
    for one in estimates:
        names = [term.name for term in one.terms]
        assert names == [name for name in order if name in names]


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


def test_headroom_and_fits_follow_from_peak_and_budget(both):
    configurations, expected, estimates = both
    headroom = expected["budget"] - expected["peak"]
    assert differences(configurations, headroom, [e.headroom_bytes for e in estimates]) == []
    assert differences(configurations, headroom >= 0, [e.fits for e in estimates]) == []
    assert {e.fits for e in estimates} == {True, False}


def test_every_number_is_a_whole_one(both):
    _, _, estimates = both
    for one in estimates:
        numbers = [one.peak_bytes, one.budget_bytes, one.headroom_bytes, one.parameters.total, *(t.bytes for t in one.terms)]
        assert {type(number) for number in numbers} == {int}
