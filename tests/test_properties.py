"""What holds for every valid configuration by every accounting, and for every query string a stranger could send (hypothesis).

Belongs here: laws (round trips, sums, never decreasing, searches). Not here: single values (test_planning.py).
"""

from decimal import Decimal
from urllib.parse import quote, quote_plus

from hypothesis import example, given, settings as hypothesis_settings, strategies as st
import pytest

from configurations import ACCOUNTINGS, CHOICES, CUSTOM_STEP, DIMENSION_KEYS, FIELD_ORDER, GPU_CLASSES, OPENING, OPENINGS, PLANNING, PLAUSIBLE_STACKS, TRAIT_KEYS, reading
from oracle import PRESETS
from strategies import HOSTILE_KEYS, HOSTILE_VALUES, SMALL_CUSTOM, configurations, queries, whole
from vramplan import SettingsError, compare, curve, estimate, fit
from vramplan.accountings import fits, peak_bytes, usable_bytes
from vramplan.catalogue import presets
from vramplan.compare import by_accounting, compared, peaks_by_stack
from vramplan.errors import NotExpressible
from vramplan.fit import largest
from vramplan.link import MAX_QUERY, fitted, read_query, to_query
from vramplan.settings import format_settings as as_strings, parse

METHODS = ["full", "lora", "qlora", "pretraining"]
every = configurations()
near_the_budget = st.one_of(configurations(small=True), configurations(model="llama-3.2-1b", small=True))
by_either = pytest.mark.parametrize("accounting", list(OPENINGS))
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
@example(PLANNING)
def test_a_link_brings_back_the_same_settings(typed):
    settings = parse(typed)
    link = read_query(to_query(settings))
    assert parse(link.texts, version=link.version) == settings
    assert list(link.notices) == []


@given(every)
def test_a_link_reads_the_same_with_a_question_mark_and_shuffled_pairs(typed):
    query = to_query(parse(typed))
    pairs = query.split("&")
    assert parse(read_query("?" + "&".join(reversed(pairs))).texts) == parse(typed)


@given(every)
@example(OPENING)
@example(PLANNING)
@example({**CUSTOM_STEP, "num_layers": "1", "method": "lora", "checkpointing": "none"})
def test_the_ledger_sums_to_the_peak(typed):
    one = estimate(parse(typed))
    for moment in one.moments:
        assert moment.bytes == sum(term.bytes for term in moment.terms)
        assert all(term.bytes >= 0 for term in moment.terms)
        assert len({term.name for term in moment.terms}) == len(moment.terms)
    assert one.peak_bytes == sum(term.bytes for term in one.terms) == max(moment.bytes for moment in one.moments)
    assert one.terms == one.moment.terms and one.moment in one.moments
    assert len({moment.name for moment in one.moments}) == len(one.moments)
    assert one.headroom_bytes == one.budget_bytes - one.context_bytes - one.peak_bytes
    assert one.fits == (one.verdict in ("yes", "likely"))


@given(every)
@example(OPENING)
@example(PLANNING)
def test_the_short_ways_give_what_the_estimate_says(typed):
    settings = parse(typed)
    one = estimate(settings)
    assert (peak_bytes(settings), fits(settings), usable_bytes(settings)) == (one.peak_bytes, one.fits, one.usable_bytes)


def layers_differ(model):
    """Whether some layers of a preset have a window and others do not."""
    return model in presets() and presets()[model].architecture.sliding_window_pattern > 0


@by_either
@pytest.mark.parametrize("name", ["micro_batch", "sequence_length", "rank", "num_layers"])
@given(data=st.data())
def test_never_decreasing_in(accounting, name, data):
    typed = data.draw(configurations(accounting, model="custom" if name == "num_layers" else None))
    cap = PRESETS.get(typed["model"], {"cap": 131_072})["cap"] if name == "sequence_length" else None
    low, high = sorted((int(data.draw(whole(name, upto=cap))), int(data.draw(whole(name, upto=cap)))))
    smaller, larger = (estimate(parse({**typed, name: str(value)})) for value in (low, high))
    assert smaller.peak_bytes <= larger.peak_bytes
    if "0" not in (typed.get("sliding_window", "0"), typed.get("sliding_window_pattern", "0")) or layers_differ(typed["model"]):
        return  # which kind the last layer is of, and whether layers are of several kinds at all, depends on both
    sizes = {moment.name: moment.bytes for moment in larger.moments}  # more layers may have a moment between the last and the first
    assert all(moment.bytes <= sizes[moment.name] for moment in smaller.moments)
    assert name == "num_layers" or len(sizes) == len(smaller.moments)
    if smaller.process:
        assert smaller.process.low <= larger.process.low and smaller.process.high <= larger.process.high


@given(configurations("planning"), st.sampled_from(["micro_batch", "sequence_length", "rank"]))
def test_no_term_of_the_planning_formula_decreases(typed, name):
    one, other = (estimate(parse({**typed, name: str(int(typed[name]) // part or 1)})) for part in (2, 1))
    sizes = {term.name: term.bytes for term in other.terms}
    assert all(term.bytes <= sizes[term.name] for term in one.terms)


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
@example(SMALL_CUSTOM["planning"])
@example(SMALL_CUSTOM["step"])
@example({**PLANNING, "gpu": "288"})
@example({**OPENING, "gpu": "288"})
@example({**OPENING, "gpu": "8"})
@example({**OPENING, "loss": "fused-linear", "sequence_length": "1"})
@example({**OPENING, "model": "qwen3-8b", "gpu": "288"})
@FEW
def test_search_results_fit_and_their_successors_do_not(typed):
    settings = parse(typed)
    found = fit(settings)
    check_limit(settings, "micro_batch", found.largest_micro_batch, 1_024)
    check_limit(settings, "sequence_length", found.longest_sequence, PRESETS.get(typed["model"], {"cap": 131_072})["cap"])
    assert found.largest_micro_batch == largest(1_024, lambda value: fits(settings.varied(micro_batch=value)))
    assert found.longest_sequence == largest(settings.max_sequence_length, lambda value: fits(settings.varied(sequence_length=value)))


@given(near_the_budget)
@example(OPENING)
@FEW
def test_alternatives_differ_by_exactly_the_change(typed):
    settings = parse(typed)
    now = estimate(settings)
    tried = fit(settings).alternatives
    assert tried
    for one in tried:
        changed = settings.replace(**one.change)
        assert tuple(one.change) == ("sharding", "sharded_over") or (len(one.change) == 1 and set(one.change) <= set(FIELD_ORDER))
        assert one.settings == changed
        assert {k: v for k, v in as_strings(changed).items() if k not in one.change} == {
            k: v for k, v in as_strings(settings).items() if k not in one.change}
        there = estimate(changed)
        assert (one.peak_bytes, one.headroom_bytes, one.verdict, one.fits) == (there.peak_bytes, there.headroom_bytes, there.verdict, there.fits)
        assert one.difference_bytes == one.peak_bytes - now.peak_bytes


@given(st.one_of(near_the_budget, every))
@example({**PLANNING, "method": "full"})
@example({**OPENING, "gpu": "t4", "other_processes": "3"})
@FEW
def test_smallest_gpu_fits_and_the_next_smaller_class_does_not(typed):
    settings = parse(typed)
    found = fit(settings).smallest_gpu
    on_each = {size: estimate(settings.replace(gpu=str(size))) for size in GPU_CLASSES}
    fitting = [size for size, there in on_each.items() if there.fits]
    assert fitting == [size for size in GPU_CLASSES if size >= min(fitting, default=max(GPU_CLASSES) + 1)]
    if found is None:
        assert not fitting
    else:
        assert (found.gpu.name, found.gpu.budget_bytes) == (str(fitting[0]), fitting[0] * 2**30)
        assert found.headroom_bytes == on_each[fitting[0]].headroom_bytes


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
        assert (point.peak_bytes, point.verdict, point.headroom_bytes) == (there.peak_bytes, there.verdict, there.headroom_bytes)


def counted(settings):
    """The estimate, or the field that keeps the accounting from making one."""
    try:
        return estimate(settings)
    except NotExpressible as reason:
        assert reason.message.endswith(".") and str(reason) == reason.message
        return reason.field


@given(every)
@FEW
def test_comparison_changes_only_the_method(typed):
    settings = parse(typed)
    varied = compared(settings)
    expected = [counted(settings.replace(**{varied: value})) for value in (CHOICES["served_weights"] if settings.serves else METHODS)]
    assert list(compare(settings)) == [one for one in expected if not isinstance(one, str)]


@given(configurations("planning"))
def test_the_planning_formula_compares_all_methods(typed):
    assert [row.settings.method for row in compare(parse(typed))] == METHODS


@given(every)
@FEW
def test_each_accounting_counts_the_same_run(typed):
    settings = parse(typed)
    found = by_accounting(settings)
    assert list(found) == list(ACCOUNTINGS)
    for name, one in found.items():
        on_pairs = settings.trains_on_pairs and name != "step"
        expected = "objective" if on_pairs else counted(settings.replace(accounting=name))
        assert expected == (one.field if isinstance(one, NotExpressible) else one)
    assert found[typed["accounting"]] == estimate(settings)


@given(configurations("step"))
@FEW
def test_each_stack_counts_the_same_run(typed):
    settings = parse(typed)
    expected = {name: counted(settings.replace(stack=name)) for name in PLAUSIBLE_STACKS}
    found = peaks_by_stack(settings)
    assert found == {name: one.peak_bytes for name, one in expected.items() if not isinstance(one, str)}


def open_link(query):
    """What a visitor with this query gets: a link's notices, and an estimate or an error with a sentence, never anything else."""
    notices, outcome = [], None
    try:
        link = read_query(query)
        notices = list(link.notices)
        outcome = estimate(parse(link.texts, version=link.version))
    except SettingsError as error:
        assert error.errors and all(one.message for one in error.errors)
        outcome = error
    except NotExpressible as error:
        assert error.field in FIELD_ORDER and error.message
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
            open_link(f"v=2&model=custom&gpu=custom&{name}={written}")
            open_link(f"v=1&{name}={written}")
            open_link(f"v=2&{name}={written}&{name}=16")


@given(st.sampled_from(FIELD_ORDER), st.one_of(st.sampled_from(HOSTILE_VALUES), st.text(max_size=40)))
def test_what_was_typed_survives_in_the_address(name, value):
    made = fitted({**reading(name), name: value})
    assert len(made.text) <= MAX_QUERY
    if name in made.left_out:
        assert made.left_out == (name,) and len(quote_plus(value)) > MAX_QUERY - len(fitted(reading(name)).text) - len(name) - 2
    else:
        assert read_query(made.text).all_texts[name] == value.strip()


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


@pytest.mark.parametrize("key", [*DIMENSION_KEYS, *TRAIT_KEYS])
def test_a_dimension_beside_a_preset_is_named_as_unused(key):
    notices, outcome = open_link(f"v=1&model=qwen3-8b&{key}=8")
    assert any(key in notice for notice in notices)
    assert outcome == estimate(parse({**PLANNING, "model": "qwen3-8b"}))


@pytest.mark.parametrize(
    "query", ["rank=8&note=a?b", "?rank=8&note=a?b", "https://example.org/?rank=8&note=a?b#x?y", "rank=8&rank%3F=1"])
def test_a_stray_question_mark_loses_nothing_in_silence(query):
    notices, outcome = open_link(query)
    assert outcome.settings.rank == 8 and notices


def test_a_repeated_key_is_named():
    notices, outcome = open_link("v=1&rank=8&rank=32")
    assert any("rank" in notice for notice in notices) or isinstance(outcome, SettingsError)
