"""How others count a run: the terms that make the difference, from the ledgers."""

import json
import re

import pytest

from command import run
from configurations import ACCOUNTINGS, OPENING, OPENINGS, RULES
from vramplan import accounts, words
from vramplan.accountings import estimate
from vramplan.compare import by_accounting
from vramplan.ledger import Estimate
from vramplan.settings import parse
from vramplan.units import gib_text

RUNS = [*OPENINGS.values(), {**OPENING, "method": "full", "gpu": "80"}, {**OPENING, "sequence_length": "16384", "micro_batch": "4"},
        {**OPENING, "checkpointing": "none", "attention_kernel": "eager"}]


def between(typed, name):
    """Bytes of every component by another accounting, less those by the chosen one."""
    settings = parse(typed)
    mine, other = (dict(accounts.component_bytes(by_accounting(settings)[each].terms)) for each in (settings.accounting, name))
    return {part: other[part] - mine[part] for part in mine}


@pytest.mark.parametrize("typed", RUNS)
def test_every_accounting_has_a_row_and_the_chosen_one_no_difference(typed):
    now = estimate(parse(typed))
    rows = accounts.others(now)
    assert [row.label for row in rows] == [words.value_text("accounting", name) for name in ACCOUNTINGS]
    (mine,) = [row for row in rows if row.current]
    assert (mine.peak, mine.more, mine.why) == (gib_text(now.peak_bytes), "", "")


@pytest.mark.parametrize("typed", RUNS)
def test_the_sentence_names_the_largest_differences_with_their_amounts(typed):
    now = estimate(parse(typed))
    for name, other in by_accounting(now.settings).items():
        if name == now.accounting or not isinstance(other, Estimate):
            continue
        amounts = sorted((each for each in between(typed, name).values() if each), key=abs, reverse=True)
        told = re.findall(r"\(([−+][\d.]+)\)", accounts.terms_between(now, other))
        assert told == [gib_text(each, signed=True) for each in amounts[:len(told)]] and 1 <= len(told) <= 3


def test_what_is_left_out_and_what_is_on_top_are_told_apart():
    now = estimate(parse(OPENING))
    counted = by_accounting(now.settings)
    assert accounts.terms_between(now, counted["rules"]).startswith("Nothing for logits and loss (−")
    assert "on top (+" in accounts.terms_between(estimate(parse(RULES)), counted["planning"])
    assert accounts.terms_between(now, now) == "The same, term by term."


def test_an_accounting_without_a_number_says_why():
    rows = {row.label: row for row in accounts.others(estimate(parse({**OPENING, "optimizer": "lion"})))}
    assert rows["Byte rules"].peak == "" and rows["Byte rules"].why == "The byte rules count AdamW and 8-bit AdamW only, not Lion."


def test_the_terminal_compares_the_accountings_that_are_named():
    out = run("compare", "--accountings", "all").out
    assert all(words.value_text("accounting", name) in out for name in ACCOUNTINGS) and "QLoRA  " not in out
    two = run("compare", "--accountings", "rules, planning").out
    assert "Byte rules" in two and "Planning formula" in two and "Unsloth Studio" not in two


def test_accountings_json():
    printed = json.loads(run("compare", "--accountings", "all", "--json").out)["accountings"]
    peaks = {name: each.peak_bytes for name, each in by_accounting(parse(OPENING)).items()}
    assert {each["accounting"]: each["peak_bytes"] for each in printed} == peaks
    assert {each["accounting"]: each["difference_bytes"] for each in printed} == {name: peak - peaks["step"] for name, peak in peaks.items()}


@pytest.mark.parametrize("named", ["", "step,", "everything", "step,<b>"])
def test_an_accounting_that_there_is_not_is_named(named):
    refused = run("compare", "--accountings", named)
    assert refused.returncode == 2 and refused.out == ""
    assert refused.err.startswith("vramplan: --accountings: must be all, or a comma list of step, planning, unsloth, rules; ")
    assert refused.err.rstrip().endswith("nothing was entered." if named in ("", "step,") else f"got “{named.removeprefix('step,')}”.")


def test_an_abbreviation_stays_as_it_is_within_a_sentence():
    assert [words.inside(label) for label in ("CUDA overhead", "FP32 copies", "Base weights", "8-bit maps")] == ["CUDA overhead", "FP32 copies", "base weights", "8-bit maps"]
    by_rules = {each.label: each.why for each in accounts.others(estimate(parse({**RULES, "model": "mixtral-8x7b", "method": "lora"})))}
    assert "CUDA overhead on top" in by_rules["Unsloth Studio"]
