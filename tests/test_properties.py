"""What holds for every valid configuration, and for every query string a stranger could send (hypothesis).

Belongs here: laws (round trips, sums, never decreasing, searches). Not here: single values (test_planning.py).
"""

from decimal import Decimal
from urllib.parse import quote

from hypothesis import example, given, settings as hypothesis_settings, strategies as st
import pytest

from configurations import CUSTOM, DIMENSION_KEYS, FIELD_ORDER, GPU_CLASSES, OPENING
from oracle import PRESETS
from strategies import HOSTILE_KEYS, HOSTILE_VALUES, SMALL_CUSTOM, configurations, queries, whole
from vramplan import Settings, SettingsError, compare, curve, estimate, fit
from vramplan.settings import format_settings as as_strings, parse
from vramplan.link import read_query, texts_to_query, to_query

hypothesis_settings.load_profile("vramplan")
every = configurations()
near_the_budget = st.one_of(configurations(small=True), configurations(model="llama-3.2-1b", small=True))
FEW = hypothesis_settings(max_examples=50)


@given(every)
def test_parse_undoes_format(typed):
    settings = parse(typed)
    assert parse(as_strings(settings)) == settings


@given(every)
def test_format_keeps_every_typed_value(typed):
    back = as_strings(parse(typed))
    for key, text in typed.items():
        assert back[key] == text or Decimal(back[key]) == Decimal(text)


@given(every)
@example(OPENING)
def test_a_link_brings_back_the_same_settings(typed):
    settings = parse(typed)
    link = read_query(to_query(settings))
    assert parse(link.texts) == settings
    assert list(link.notices) == []


@given(every)
def test_a_link_reads_the_same_with_a_question_mark_and_shuffled_pairs(typed):
    query = to_query(parse(typed))
    pairs = query.split("&")
    assert parse(read_query("?" + "&".join(reversed(pairs))).texts) == parse(typed)


@given(every)
def test_the_ledger_sums_to_the_peak(typed):
    one = estimate(parse(typed))
    assert one.peak_bytes == sum(term.bytes for term in one.terms)
    assert one.headroom_bytes == one.budget_bytes - one.peak_bytes
    assert one.fits == (one.peak_bytes <= one.budget_bytes)
    assert all(term.bytes >= 0 for term in one.terms)


@pytest.mark.parametrize("name", ["micro_batch", "sequence_length", "rank", "num_layers"])
@given(data=st.data())
def test_never_decreasing_in(name, data):
    typed = data.draw(configurations(model="custom" if name == "num_layers" else None))
    cap = PRESETS.get(typed["model"], {"cap": 131_072})["cap"] if name == "sequence_length" else None
    low, high = sorted((int(data.draw(whole(name, upto=cap))), int(data.draw(whole(name, upto=cap)))))
    smaller, larger = (estimate(parse({**typed, name: str(value)})) for value in (low, high))
    assert smaller.peak_bytes <= larger.peak_bytes
    sizes = {term.name: term.bytes for term in larger.terms}
    assert all(term.bytes <= sizes[term.name] for term in smaller.terms)


def check_limit(settings, name, limit, cap):
    """The found value fits and its successor does not; nothing found means not even 1 fits."""
    def fits(value):
        return estimate(settings.replace(**{name: value})).fits

    assert limit.at_cap == (limit.value == cap)
    if limit.value is None:
        assert not fits(1)
    else:
        assert 1 <= limit.value <= cap and fits(limit.value)
        assert limit.value == cap or not fits(limit.value + 1)


@given(near_the_budget)
@example(SMALL_CUSTOM)
@example({**OPENING, "gpu": "288"})
@example({**OPENING, "gpu": "8"})
@example({**OPENING, "model": "qwen3-8b", "gpu": "288"})
@FEW
def test_search_results_fit_and_their_successors_do_not(typed):
    settings = parse(typed)
    found = fit(settings)
    check_limit(settings, "micro_batch", found.largest_micro_batch, 1_024)
    check_limit(settings, "sequence_length", found.longest_sequence, PRESETS.get(typed["model"], {"cap": 131_072})["cap"])


@given(near_the_budget)
@example(OPENING)
@FEW
def test_alternatives_differ_by_exactly_the_change(typed):
    settings = parse(typed)
    now = estimate(settings)
    for one in fit(settings).alternatives:
        changed = settings.replace(**one.change)
        assert len(one.change) == 1 and set(one.change) <= set(FIELD_ORDER)
        assert one.estimate == estimate(changed)
        assert {k: v for k, v in as_strings(changed).items() if k not in one.change} == {
            k: v for k, v in as_strings(settings).items() if k not in one.change}
        assert one.peak_bytes == estimate(changed).peak_bytes
        assert one.difference_bytes == one.peak_bytes - now.peak_bytes
        assert one.fits == (one.peak_bytes <= now.budget_bytes)


@given(st.one_of(near_the_budget, every))
@example({**OPENING, "method": "full"})
@FEW
def test_smallest_gpu_fits_and_the_next_smaller_class_does_not(typed):
    settings = parse(typed)
    peak, found = estimate(settings).peak_bytes, fit(settings).smallest_gpu
    sizes = [size * 2**30 for size in GPU_CLASSES]
    fitting = [size for size in sizes if peak <= size]
    if found is None:
        assert not fitting
    else:
        assert (found.gpu.budget_bytes, found.headroom_bytes) == (fitting[0], fitting[0] - peak)
        assert int(found.gpu.name) * 2**30 == fitting[0]


@given(every)
@FEW
def test_curve_points_are_estimates_in_rising_order(typed):
    settings = parse(typed)
    points = curve(settings).points
    lengths = [point.sequence_length for point in points]
    assert lengths == sorted(set(lengths)) and len(lengths) > 2 and settings.sequence_length in lengths
    assert lengths[-1] == PRESETS.get(typed["model"], {"cap": 131_072})["cap"]
    for point in points[:: max(1, len(points) // 5)]:
        there = estimate(settings.replace(sequence_length=point.sequence_length))
        assert (point.peak_bytes, point.fits) == (there.peak_bytes, there.fits)


@given(every)
def test_comparison_changes_only_the_method(typed):
    settings = parse(typed)
    rows = compare(settings)
    assert [row.settings.method for row in rows] == ["full", "lora", "qlora"]
    assert list(rows) == [estimate(settings.replace(method=row.settings.method)) for row in rows]


def open_link(query):
    """What a visitor with this query gets: a link's notices, and settings or a SettingsError, never anything else."""
    notices, outcome = [], None
    try:
        link = read_query(query)
        notices = list(link.notices)
        outcome = estimate(parse(link.texts))
    except SettingsError as error:
        assert error.errors and all(one.message for one in error.errors)
        outcome = error
    return notices, outcome


@given(queries)
@hypothesis_settings(max_examples=300)
def test_hostile_links_raise_nothing_but_settings_errors(query):
    open_link(query)


@pytest.mark.parametrize("name", FIELD_ORDER)
def test_every_field_withstands_every_hostile_value(name):
    for value in HOSTILE_VALUES:
        for written in (value, quote(value)):
            open_link(f"v=1&model=custom&gpu=custom&{name}={written}")
            open_link(f"v=1&{name}={written}")
            open_link(f"v=1&{name}={written}&{name}=16")


@given(st.sampled_from(FIELD_ORDER), st.one_of(st.sampled_from(HOSTILE_VALUES), st.text(max_size=40)))
def test_what_was_typed_survives_in_the_address(name, value):
    defaults = as_strings(Settings(model="custom", gpu="custom")) | as_strings(Settings())
    link = read_query(texts_to_query({**CUSTOM, name: value}))
    assert (defaults | link.texts)[name] == value.strip()


unknown_keys = st.from_regex(r"[a-z][a-z0-9_]{0,30}", fullmatch=True).filter(lambda key: key not in (*FIELD_ORDER, "v"))


@given(unknown_keys, st.text(max_size=9))
@example("utm_source", "x")
def test_every_unknown_key_is_named(key, value):
    notices, _ = open_link(f"v=1&{key}={quote(value)}&rank=8")
    assert any(key in notice for notice in notices)


def test_odd_keys_are_noticed_too():
    for key in HOSTILE_KEYS:
        if key not in (*FIELD_ORDER, "v", ""):
            assert open_link(f"v=1&{quote(key)}=1")[0], key


@pytest.mark.parametrize("key", DIMENSION_KEYS)
def test_a_dimension_beside_a_preset_is_named_as_unused(key):
    notices, outcome = open_link(f"v=1&model=qwen3-8b&{key}=8")
    assert any(key in notice for notice in notices)
    assert outcome == estimate(parse({**OPENING, "model": "qwen3-8b"}))


@pytest.mark.parametrize(
    "query", ["rank=8&note=a?b", "?rank=8&note=a?b", "https://example.org/?rank=8&note=a?b#x?y", "rank=8&rank%3F=1"])
def test_a_stray_question_mark_loses_nothing_in_silence(query):
    notices, outcome = open_link(query)
    assert outcome.settings.rank == 8 and notices


def test_a_repeated_key_is_named():
    notices, outcome = open_link("v=1&rank=8&rank=32")
    assert any("rank" in notice for notice in notices) or isinstance(outcome, SettingsError)
