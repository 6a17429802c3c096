"""The published evidence: that the data file is what the recorded files and the estimators say now."""

from vramplan.accountings import ACCOUNTINGS
from vramplan.evidence import KINDS, evidence, group_rows, percent, signed_percent, summary, worst_rows
from vramplan_site import errors


def test_the_data_file_is_what_the_recorded_runs_give_now():
    assert errors.DATA.read_text(encoding="utf-8") == errors.to_json(errors.compute())


def test_every_accounting_and_kind_has_quantiles_and_its_worst():
    found = evidence()
    assert {(group.accounting, group.kind) for group in found.groups if group.name == "all"} == {
        (name, kind) for name in ACCOUNTINGS for kind in KINDS
    }
    for name in ACCOUNTINGS:
        for kind in KINDS:
            assert all(row.reason for row in worst_rows(found, name, kind))


def test_quantiles_agree_with_the_points():
    found = evidence()
    for group in (each for each in found.groups if each.name == "all"):
        mine = [point.error for point in found.points if (point.accounting, point.kind) == (group.accounting, group.kind)]
        assert len(mine) == group.runs
        assert abs(min(mine) - group.worst_under) < 1e-6 and abs(max(mine) - group.worst_over) < 1e-6


def test_the_worst_are_the_largest_errors():
    found = evidence()
    for name in ACCOUNTINGS:
        worst = [abs(point.error) for point in found.worst if (point.accounting, point.kind) == (name, "measured")]
        rest = [abs(point.error) for point in found.points if (point.accounting, point.kind) == (name, "measured")]
        assert worst == sorted(rest, reverse=True)[: len(worst)]


def test_sentences_and_rows_are_text():
    found = evidence()
    assert len(summary(found)) == 5 and all(sentence.endswith(".") for sentence in summary(found))
    assert all(row.runs for row in group_rows(found))


def test_shares_are_written_so_that_small_ones_are_not_nothing():
    assert (percent(0.00006), percent(0.0028), percent(0.35)) == ("0.006 %", "0.28 %", "35.0 %")
    assert (signed_percent(-0.48), signed_percent(0.002), signed_percent(0)) == ("−48.0 %", "+0.20 %", "0.000 %")
