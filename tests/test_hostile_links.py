"""Ten thousand links that were made to break, stall or deceive: none does, and what else they say is kept."""

import json
import time
import urllib.parse

import pytest

from hostile import KEYS, OWN_KEYS, hostile
from vramplan import estimate, share
from vramplan.asked import asked_query, read_asked
from vramplan.catalogue import defaults
from vramplan.checks import check
from vramplan.errors import NotExpressible, SettingsError
from vramplan.fields import BY_NAME
from vramplan.importing.imported import import_text
from vramplan.levers import lockable
from vramplan.link import ASKED_KEYS, LANGUAGE_KEY, MAX_NOTICES, MAX_QUERY, PIN_KEY, VERSION_KEY, VIEW_KEYS, fitted, read_query, to_query
from vramplan.pins import pinned
from vramplan.settings import of_checked, parse
from vramplan.view import PANELS, read_view, view_query

LINKS, AT_ONCE = 10_000, 500
LONGEST_SENTENCE = 700
"""Characters; the longest names ten keys of 32 each."""
PATIENCE = 2
"""Seconds of processor time for one link; usual are a few thousandths."""


def own_words(name):
    """Characters of what the sentence about a setting may list: the values that it takes."""
    return sum(len(f"{option.value}, ") for option in getattr(BY_NAME[name].kind, "options", ()))


def sentences_are_fit_to_show(sentences, *, beside=0):
    """Whole sentences of bounded length without anything that a page could not show or that turns it around."""
    for sentence in sentences:
        assert sentence.endswith((".", "”")) and len(sentence) <= LONGEST_SENTENCE + beside, sentence
        assert sentence.isprintable(), ascii(sentence)


def open_as_the_page_does(made):
    """Read, check, count and write again; returns what the address would hold."""
    link, view = read_query(made.query), read_view(made.query)
    sentences_are_fit_to_show(view.notices, beside=len(", ".join(PANELS)))
    assert len(view.notices) <= len(VIEW_KEYS) and read_view(view_query(view)) == view
    asked = read_asked(made.query)
    sentences_are_fit_to_show(asked.notices, beside=len(", ".join(each.name for each in lockable())))
    assert len(asked.notices) <= len(ASKED_KEYS) and read_asked(asked_query(asked.wanted)) == asked
    pins = pinned(link)
    sentences_are_fit_to_show(link.notices)
    sentences_are_fit_to_show(pins.notices, beside=max(map(own_words, BY_NAME)))
    assert len(link.notices) <= MAX_NOTICES + 1 and len(pins.notices) <= 4
    texts = link.all_texts
    for name, text in made.untouched.items():
        assert texts[name] == text, name
    checked = check(texts, defaults())
    for error in checked.errors:
        sentences_are_fit_to_show([error.message], beside=own_words(error.field))
    wrong = {error.field for error in checked.errors}
    assert len(wrong) == len(checked.errors) and not wrong & {name for name in made.untouched if name != "sequence_length"}
    try:
        settings = of_checked(checked)
        counted = estimate(settings)
        assert counted.peak_bytes > 0
        assert parse(read_query(to_query(settings)).texts) == settings
    except NotExpressible as problem:
        sentences_are_fit_to_show([problem.message])
    except SettingsError as problem:
        assert problem.errors == checked.errors
    return texts, checked, fitted(texts, pins.settings, asked=asked_query(asked.wanted))


@pytest.mark.parametrize("first", range(0, LINKS, AT_ONCE))
def test_hostile_links_neither_throw_nor_stall_nor_lose_what_else_they_say(first):
    for seed in range(first, first + AT_ONCE):
        made = hostile(seed)
        begun = time.process_time()
        texts, checked, query = open_as_the_page_does(made)
        spent = time.process_time() - begun
        assert spent < PATIENCE, (seed, spent)
        assert len(query.text) <= MAX_QUERY and query.text.isascii() and query.text.isprintable(), seed
        again = read_query(query.text)
        assert again.dropped == (), seed
        kept = [*checked.values, *(error.field for error in checked.errors)]
        for name in set(kept) - set(checked.unused) - set(query.left_out):
            assert again.all_texts[name] == texts[name].strip(), (seed, name)
        for name in query.left_out:
            assert json.loads(share.settings_file(texts))["settings"][name] == texts[name], (seed, name)


def test_the_links_are_as_hostile_as_they_should_be():
    """Every key of the code, duplicates, sizes, bytes and runs that can be counted are among them."""
    queries = [hostile(seed).query for seed in range(LINKS)]
    assert len(set(queries)) > 0.95 * LINKS and [hostile(seed).query for seed in range(50)] == queries[:50]
    whole = "\n".join(queries)
    assert {VERSION_KEY, PIN_KEY, LANGUAGE_KEY, *ASKED_KEYS, *VIEW_KEYS} == set(OWN_KEYS)
    for key in KEYS:
        assert f"{key}=" in whole, key
    for part in ("__proto__", "%00", "NaN", "1e309", "%3Cscript", "%ED%A0%80".lower(), "\x00", "rank=0&rank=1&"):
        assert part in whole, part
    assert sum(len(query) > 50_000 for query in queries) > 100
    assert sum(len(query) > MAX_QUERY for query in queries) > 1_000
    counted = 0
    for query in queries[:1_000]:
        try:
            parse(read_query(query).texts)
        except SettingsError:
            continue
        counted += 1
    assert 100 < counted < 700
    assert sum(bool(hostile(seed).untouched) for seed in range(1_000)) > 200
    assert max(len(dict(urllib.parse.parse_qsl(query))) for query in queries[:1_000]) > 100


def test_what_the_address_has_no_room_for_comes_back_from_the_settings_file():
    made = next(each for each in map(hostile, range(LINKS)) if fitted(read_query(each.query).all_texts).left_out)
    texts = read_query(made.query).all_texts
    left_out = fitted(texts).left_out
    brought = import_text(share.settings_file(texts), {})
    assert {name: brought.texts[name] for name in left_out} == {name: texts[name] for name in left_out}
