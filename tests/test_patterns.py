"""Regular expressions from files: the same answers as Python's own matcher, and no pattern that takes forever."""

import re
from time import process_time

from hypothesis import given, settings, strategies as st
import pytest

from vramplan.importing.patterns import Pattern
from vramplan.importing.problems import ImportProblem

NAMES = (
    "model.layers.0.self_attn.q_proj", "model.layers.13.mlp.down_proj", "lm_head", "model.embed_tokens", "a.b", "", "x_1-y", "proj\n",
)
PATTERNS = (
    r".*\.(q_proj|v_proj)", r"model\.layers\.\d+\.self_attn\.(q|k|v)_proj", r"model\.layers\.(1[0-9]|[0-9])\..*proj", r"^(?!.*lm_head).*proj$",
    r"(?:.*?(?:language|text|).*?(?:self_attn|mlp).*?(?:q_proj|down_proj).*?)|(?:\bmodel\.layers\.[\d]{1,}\.(?:self_attn)\.(?:(?:q_proj)))",
    r"[^a-z]*.{1,3}\.\w", r"(a|b|\.)*", "", r"x??a\.b\b", r"\Alm_head\Z", r".*(?=proj)proj", r"\w{2,}\W\w+|\S+", r"(?P<name>lm)_head", r"\Bm_head|lm_head",
)
PIECES = st.sampled_from(["a", "b", ".", r"\.", r"\d", r"\w", "[ab]", "[^a]", "(?:a|b)", "(a.)", "a*", "b+?", ".{0,2}", "^", "$", r"\b", "|", "(?=a)", "(?!b)"])


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_same_names_match_as_in_python(pattern):
    ours = Pattern(pattern, "target_modules")
    assert [name for name in NAMES if ours.fullmatch(name)] == [name for name in NAMES if re.fullmatch(pattern, name)]


@settings(max_examples=500, deadline=None)
@given(st.lists(PIECES, max_size=8).map("".join), st.text("ab1._", max_size=8))
def test_any_pattern_of_these_pieces_matches_as_in_python(pattern, text):
    assert Pattern(pattern, "target_modules").fullmatch(text) is bool(re.fullmatch(pattern, text))


@pytest.mark.parametrize("pattern", (r"(.+)+x", r"((a|b)*)*c", r"(.*)*(.*)*(.*)*y", r"(a?){2000}a{2000}"))
def test_patterns_that_take_python_forever_are_answered(pattern):
    started = process_time()
    assert not Pattern(pattern, "target_modules").fullmatch("ab" * 40)
    assert process_time() - started < 5  # seconds; Python's own matcher does not end


def test_work_without_end_is_refused_after_a_while():
    pattern = Pattern("(" + "|".join(["(.*)*"] * 150) + ")*X", "target_modules")
    started = process_time()
    with pytest.raises(ImportProblem, match="takes too long"):
        for number in range(100_000):
            pattern.fullmatch(f"model.layers.{number}.self_attn.q_proj")
    assert process_time() - started < 20  # seconds


@pytest.mark.parametrize("pattern, why", (
    (r"(?i)q_proj", "sets flags"), (r"(?i:q)_proj", "sets flags"), (r"(a)\1", "refers back"), (r"(?<=a)b", "looks behind"), ("(", "not a regular expression"), ("(?=" * 30 + "x" + ")" * 30, "nested more than 20 deep"),
    ("((((a*)*)*)*)*", "repeats"), ("a" * 2_001, "characters"), (r"(?>a*)b", "remember"), (r"a*+b", "remember"),
))
def test_patterns_that_are_not_followed_are_refused_by_name(pattern, why):
    with pytest.raises(ImportProblem, match="target_modules holds a pattern") as refused:
        Pattern(pattern, "target_modules")
    assert why in refused.value.message
