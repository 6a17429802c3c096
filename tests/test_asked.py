"""What a link says of how its run is made to fit: what is read, what is named as of no use, and that it comes back.

Belongs here: vramplan.asked. What the page makes of it: browser/test_make_it_fit.py. What changes then are found: test_make_fit.py.
"""

from hypothesis import given, strategies as st
import pytest

from command import run as command
from vramplan.asked import asked_query, read_asked
from vramplan.levers import lockable
from vramplan.link import MAX_QUERY, fitted, read_query, to_query
from vramplan.make_fit import REQUIRABLE, Wanted
from vramplan.pins import pinned
from vramplan.settings import Settings, format_settings

NAMES = [each.name for each in lockable()]
wants = st.builds(Wanted, st.frozensets(st.sampled_from(NAMES)), st.dictionaries(st.sampled_from(REQUIRABLE), st.integers(0, 10**12 - 1)))


@given(wants)
def test_what_is_asked_for_comes_back_and_is_no_part_of_the_run(wanted):
    run = to_query(Settings(rank=8))
    for query in (f"?{asked_query(wanted)}", f"{run}&{asked_query(wanted)}", f"https://example.org/vram/?{asked_query(wanted)}&{run}#top"):
        found = read_asked(query)
        assert found.wanted == wanted and found.notices == ()
    assert read_query(f"{run}&{asked_query(wanted)}") == read_query(run)


@given(wants)
def test_it_stays_where_an_address_has_no_room_for_all(wanted):
    asked, texts = asked_query(wanted), {**format_settings(Settings()), "gpu": "custom", "budget": "9" * 1_700}
    pins = [Settings(rank=rank) for rank in (4, 8, 64)]
    made = fitted(texts, pins, asked=asked)
    assert len(made.text) <= MAX_QUERY and read_asked(made.text).wanted == wanted == read_asked(made.unpinned).wanted
    assert read_asked(made.run).wanted == Wanted() and read_query(made.run) == read_query(made.unpinned)
    assert pinned(read_query(made.text)).settings == tuple(pins[: len(pins) - made.left_pins])
    assert len(made.run) + len(asked) <= MAX_QUERY and ("budget" in made.left_out) == (len(fitted(texts).text) + len(asked) + bool(asked) > MAX_QUERY)


@pytest.mark.parametrize(("query", "wanted", "says"), [
    ("keep=rank,colour,<b>&keep=method", Wanted(frozenset({"rank", "method"})), ["keep must be a comma list of", "got “colour” and 1 more. The rest is used."]),
    ("keep=lora_dropout", Wanted(), ["got “lora_dropout”. The rest is used."]),
    ("at_least=sequence_length=many,effective_batch=16", Wanted(at_least={"effective_batch": 16}), ["at_least must be a comma list such as sequence_length=4096,effective_batch=16; got “sequence_length=many”. The rest is used."]),
    ("at_least=rank=4", Wanted(), ["got “rank=4”. The rest is used."]),
    ("at_least=sequence_length=512&at_least=sequence_length=0256", Wanted(at_least={"sequence_length": 512}), []),
    ("keep=&at_least=,", Wanted(), []),
])
def test_what_cannot_be_used_is_named_and_the_rest_is_used(query, wanted, says):
    found = read_asked(query)
    assert found.wanted == wanted
    assert len(found.notices) == bool(says) and all(part in found.notices[0] for part in says)


def test_the_terminal_asks_for_what_the_link_asks_for_and_for_what_its_flags_say_besides():
    flags = ("fit", "--make-it-fit", "--json", "--gpu", "16", "--sequence-length", "4096")
    plain = command(*flags, "--keep", "rank,method", "--at-least", "effective_batch=8")
    linked = command(*flags, "--keep", "method", "--link", "?v=2&keep=rank,colour&at_least=effective_batch=8")
    assert linked.out == plain.out and linked.returncode == plain.returncode
    assert "got “colour”" in linked.err and "colour" not in plain.err
