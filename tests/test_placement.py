"""Which cards a run is put on, and what people type or paste of their cards.

Source of the rule: Unsloth Studio, VRAM estimation for training (March 2026), section 8 and parameter flow.
"""

from fractions import Fraction
from itertools import combinations

from hypothesis import given, strategies as st
import pytest

from command import run
from configurations import UNSLOTH
from vramplan import estimate
from vramplan.errors import CardsError
from vramplan.free_memory import read_cards, read_numbers
from vramplan.placement import Card, place, usable_bytes
from vramplan.placement_report import placed, told
from vramplan.settings import parse

SMI = "index, memory.total [MiB], memory.free [MiB]\n0, 24564 MiB, 23040 MiB\n1, 24564 MiB, 1024 MiB\n5, 81559 MiB, 40960 MiB\n"
frees = st.lists(st.integers(0, 100), min_size=1, max_size=7)


def on(needed, free, named=()):
    return place(needed_bytes=needed, cards=[Card(index, each) for index, each in enumerate(free)], named=named)


def numbers(placement):
    return [card.index for card in placement.chosen.cards]


def test_the_first_card_counts_whole_and_every_other_with_85_per_cent():
    assert usable_bytes(free=[22]) == 22
    assert usable_bytes(free=[20, 10, 30]) == 20 + Fraction(85, 100) * 40


def test_the_freest_cards_are_added_until_the_run_fits():
    assert numbers(on(20, [10, 22, 24])) == [2]
    assert numbers(on(40, [10, 22, 24])) == [2, 1]  # 24 + 0.85 · 22 = 42.7
    assert numbers(on(43, [10, 22, 24])) == [2, 1, 0]
    assert [each.enough for each in on(43, [10, 22, 24]).tried] == [False, False, True]


def test_to_the_byte_the_run_fits():
    assert on(24, [24]).fits and not on(25, [24]).fits
    assert on(37, [20, 20]).fits and not on(38, [20, 20]).fits


def test_where_not_even_all_are_enough_all_are_shown_and_it_does_not_fit():
    one = on(100, [10, 20])
    assert (one.fits, numbers(one)) == (False, [1, 0])


def test_cards_that_are_named_are_all_used_in_their_order():
    one = on(5, [10, 22, 24], named=(0, 1))
    assert (numbers(one), one.named, one.chosen.usable_bytes) == ([0, 1], True, 10 + Fraction(85, 100) * 22)
    assert not on(60, [10, 22, 24], named=(0,)).fits


def test_the_device_map_is_balanced_over_several_cards_and_sequential_on_one():
    assert [on(needed, [10, 10]).device_map for needed in (10, 11)] == ["sequential", "balanced"]


@given(st.integers(1, 300), frees)
def test_no_fewer_cards_would_hold_the_run(needed, free):
    one = on(needed, free)
    count = len(one.chosen.cards)
    for fewer in range(1, count):
        for some in combinations(sorted(free, reverse=True), fewer):
            assert usable_bytes(free=some) < needed
    assert one.fits == (usable_bytes(free=sorted(free, reverse=True)) >= needed)


def test_cards_are_typed_in_gib():
    assert read_cards("22.5, 22.5 10;0") == (Card(0, 24159191040), Card(1, 24159191040), Card(2, 10737418240), Card(3, 0))


def test_cards_are_read_from_what_nvidia_smi_prints():
    expected = (Card(0, 23040 * 2**20), Card(1, 1024 * 2**20), Card(5, 40960 * 2**20))
    assert read_cards(SMI) == read_cards(SMI.replace("\n", " ")) == expected
    assert read_cards("\n".join(SMI.splitlines()[1:])) == expected
    assert read_cards("memory.free [MiB], index\n500 MiB, 3") == (Card(3, 500 * 2**20),)


@pytest.mark.parametrize("text", ["", "  \n", ",", "-1", "20, -3", "abc", "1e3", "3000", "NaN", "index, memory.total [MiB], memory.free [MiB]",
                                  "0, 24564 MiB, [N/A]", "0, 24564 MiB", "index, memory.total [MiB]\n0, 5 MiB", "0, 9 MiB, 8 MiB\n0, 9 MiB, 7 MiB",
                                  "<b>", " ".join(["1"] * 65), "٣", "\x00", "1" * 30_000])
def test_what_cannot_be_read_of_cards_is_one_sentence_about_free_memory(text):
    with pytest.raises(CardsError) as wrong:
        read_cards(text)
    assert wrong.value.field == "free" and str(wrong.value).startswith("Free memory must ") and len(str(wrong.value)) < 400


@pytest.mark.parametrize(("text", "came"), [("4", "4"), ("0, 0", "0"), ("-1", "-1"), ("x", "x"), ("1.5", "1.5"), ("9" * 50, "9")])
def test_numbers_of_cards_that_are_not_there_or_come_twice_are_one_sentence(text, came):
    with pytest.raises(CardsError) as wrong:
        read_numbers(text, read_cards("10, 20"))
    assert wrong.value.field == "cards" and str(wrong.value).startswith("Cards to use must ") and came in str(wrong.value)


def test_no_numbers_leave_the_choice_open():
    assert read_numbers(" ", read_cards("10, 20")) == ()
    assert read_numbers("1 0", read_cards("10, 20")) == (1, 0)


@given(st.text(max_size=60), st.text(max_size=20))
def test_any_text_gives_cards_or_one_sentence(free, cards):
    try:
        seen = read_cards(free)
        assert set(read_numbers(cards, seen)) <= {card.index for card in seen}
    except CardsError as wrong:
        assert str(wrong).count("\n") == 0


def test_a_run_needs_what_unsloth_studio_estimates_whatever_accounting_is_chosen():
    needed = estimate(parse(UNSLOTH)).peak_bytes
    for accounting in ("step", "planning", "unsloth"):
        assert placed(parse({**UNSLOTH, "accounting": accounting}), free="24").needed_bytes == needed


def test_the_choice_is_told_with_why():
    settings = parse({**UNSLOTH, "method": "full", "optimizer": "adamw-8bit"})
    there = told(placed(settings, free="40, 24, 40"))
    assert there.fits and there.answer.startswith("On cards 0 and 2: ") and "balanced" in there.answer and "85 %" in there.why
    assert [row.cards for row in there.rows] == ["0", "0, 2"]
    alone = told(placed(settings, free="80"))
    assert alone.answer.startswith("On card 0: ") and "sequential" in alone.answer
    short = told(placed(settings, free="10, 10"))
    assert not short.fits and short.answer.startswith("Does not fit: ") and "all cards together" in short.answer
    named = told(placed(settings, free="10, 10, 90", cards="0, 1"))
    assert not named.fits and "these cards" in named.answer and named.why.startswith("Cards that are named are all used.")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [(("--free", "22.5,22.5,10"), 0, "On card 0"), (("--free", "2,1"), 1, "Does not fit"), (("--free", "22.5,10", "--cards", "1,0"), 0, "On cards 1 and 0")])
def test_the_command_says_which_cards(arguments, status, said):
    done = run("place", *arguments)
    assert done.returncode == status and said in done.out and "Usable GiB" in done.out


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [((), "free"), (("--free", ""), "free"), (("--free", "-1"), "free"), (("--free", "10", "--cards", "7"), "cards"),
     (("--free", "10", "--cards", "0,0"), "cards"), (("--free", "10", "--optimizer", "lion"), "optimizer"), (("--free", "10", "--rank", "0"), "rank")])
def test_what_the_command_cannot_use_is_one_line(arguments, flag):
    done = run("place", *arguments)
    assert done.returncode == 2 and done.out == "" and done.err.startswith(f"vramplan: --{flag}: ") and done.err.count("\n") == 1


def test_columns_that_nothing_names_are_not_taken_for_others():
    with pytest.raises(CardsError, match="columns index, memory.total, memory.free"):
        read_cards("0, 24564 MiB, 1564 MiB, 23000 MiB")


def test_one_named_card_is_one_card():
    full = parse({**UNSLOTH, "method": "full"})
    assert "this card can hold" in told(placed(full, free="24,24", cards="1")).answer
    assert "these cards can hold" in told(placed(full, free="24,24", cards="0,1")).answer


def test_the_terminal_names_what_of_a_link_is_not_used_and_tells_of_the_run_that_is_placed():
    done = run("place", "--free", "24", "--link", "?v=2&accounting=rules&task=inference&banana=1", "--budget", "30")
    assert "banana" in done.err and "budget is not used" in done.err and "task" not in done.err.replace("task=inference is used", "")
    assert done.out.startswith("Llama 3.1 8B · QLoRA")
