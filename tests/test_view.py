"""How a link says the page is shown: what is read, what is named as of no use, and that none of it is a setting.

Belongs here: vramplan.view, and that links to runs and views do not know each other. What the page makes of it: browser/test_embedding.py.
"""

import re
from pathlib import Path

from hypothesis import given, strategies as st
import pytest

from vramplan import view
from vramplan.catalogue import DIMENSIONS, TRAITS
from vramplan.fields import BY_NAME
from vramplan.link import VIEW_KEYS, read_query, to_query
from vramplan.settings import Settings
from vramplan.view import EVERYTHING, PANELS, THEMES, USUAL_PANELS, View, read_view, view_query

ROOT = Path(__file__).resolve().parent.parent

names = st.lists(st.sampled_from(sorted(BY_NAME)), unique=True, max_size=4).map(tuple)
views = st.builds(View, embed=st.just(True), panels=st.lists(st.sampled_from(list(PANELS)), unique=True, min_size=1).map(tuple), lock=names, theme=st.sampled_from(list(THEMES)))


@given(views)
def test_a_view_comes_back_from_its_part_of_a_link(made):
    run = to_query(Settings(rank=8))
    for query in (f"?{view_query(made)}", f"{run}&{view_query(made)}", f"https://example.org/vram/?{view_query(made)}&{run}#top"):
        found = read_view(query)
        assert found == made and found.notices == ()


@given(views)
def test_a_run_knows_nothing_of_how_it_is_shown(made):
    link, plain = read_query(f"v=2&rank=8&{view_query(made)}"), read_query("v=2&rank=8")
    assert link == plain and link.notices == ()


@given(st.text(max_size=300))
def test_no_text_is_too_strange_to_be_read(text):
    for query in (text, f"?embed=1&panels={text}", f"?embed=1&lock={text}", f"?theme={text}", f"?embed={text}"):
        found = read_view(query)
        assert set(found.panels) <= set(PANELS) and found.theme in THEMES and found.locked <= set(BY_NAME)
        assert all(sentence.endswith(".") and len(sentence) < 600 for sentence in found.notices)


def test_the_usual_view_needs_no_words():
    assert view_query(View()) == "" and read_view("") == View() == read_view("?v=2&rank=8")
    assert view_query(View(embed=True)) == "embed=1"
    assert read_view("?embed=1").panels == read_view("?embed=1&panels=").panels == USUAL_PANELS


@pytest.mark.parametrize(("query", "sentences"), [
    ("embed=yes", ["embed must be 1 or 0; got “yes”. The whole page is shown."]),
    ("theme=black", ["theme must be one of auto, light, dark; got “black”. The reader’s own choice is followed."]),
    ("embed=1&lock=ranks,rank,<b>", ["lock must be a comma list of settings, or all; got “ranks” and 1 more. The rest is used."]),
    ("panels=curve&lock=rank", ["panels is not used: it applies with embed=1 only.", "lock is not used: it applies with embed=1 only."]),
])
def test_what_cannot_be_used_is_named(query, sentences):
    assert list(read_view(query).notices) == sentences


def test_an_unknown_part_is_named_with_those_there_are_and_the_others_are_shown():
    found = read_view("embed=1&panels=headline,graph,curve,headline")
    assert found.panels == ("headline", "curve")
    assert found.notices == (f"panels must be a comma list of {', '.join(PANELS)}; got “graph”. The rest is used.",)
    assert read_view("embed=1&panels=graph").panels == USUAL_PANELS


def test_what_would_change_the_meaning_of_a_setting_stays_with_it():
    assert View(lock=("rank",)).locked == {"rank"}
    assert View(lock=("model",)).locked == {"model", *DIMENSIONS, *TRAITS}
    assert View(lock=("gpu",)).locked == {"gpu", "budget", "budget_unit"}
    assert View(lock=(EVERYTHING,)).locked == set(BY_NAME)


def test_a_frame_shows_the_parts_it_names_and_the_page_shows_all():
    assert [name for name in PANELS if View(embed=True, panels=("curve",)).shows(name)] == ["curve"]
    assert all(map(View().shows, PANELS))


def test_keys_of_the_view_are_no_settings():
    assert set(VIEW_KEYS).isdisjoint(BY_NAME) and (view.EMBED, view.PANELS_KEY, view.LOCK, view.THEME) == VIEW_KEYS


def test_the_parts_are_those_of_the_page_and_the_style_sheet_shows_each():
    markup = (ROOT / "index.html").read_text("utf-8")
    marked = re.findall(r'data-panel="([\w-]+)"', markup)
    assert sorted(marked) == sorted(PANELS)
    sheet = (ROOT / "static" / "style.css").read_text("utf-8")
    assert sorted(re.findall(r'html\[data-embed\]:not\(\[data-panels~="([\w-]+)"\]\) \[data-panel="\1"\]', sheet)) == sorted(PANELS)


def test_the_documentation_names_every_part_and_every_key():
    told = (ROOT / "README.md").read_text("utf-8").partition("## In documentation")[2].partition("## How it is built")[0]
    table = {key: row for key, row in re.findall(r"^\| `(\w+)` \| (.*) \|$", told, re.MULTILINE)}
    assert tuple(table) == VIEW_KEYS
    named = re.findall(r"`([\w-]+)`", table["panels"])
    assert [name for name in named if name in PANELS] == list(PANELS)
    assert f"`{','.join(USUAL_PANELS)}`" in table["panels"] and all(f"`{name}`" in table["theme"] for name in list(THEMES)[1:])
