"""The step accounting against an independent run of the same steps without values, on thousands of seeded random settings, to the byte."""

from collections import Counter
import random

import pytest

from oracle_step import peaks
from step_configurations import CHOICES, KEY_HEADS, SIZES, program, settings_of
from vramplan.accountings import step
from vramplan.settings import parse

CHUNKS, PROGRAMS, MODELS, BATCHES = 8, 105, 3, 4
COUNT = CHUNKS * PROGRAMS * MODELS * BATCHES
SEED = 20_261
OFTEN = 100


def drawn(chunk):
    """(how key heads are shared, the settings of each program) of one chunk."""
    generator = random.Random(SEED + chunk)
    for _ in range(PROGRAMS):
        chosen, shared = program(generator)
        yield shared, settings_of(generator, chosen, shared, models=MODELS, batches=BATCHES)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_peak_is_that_of_a_step_run_tensor_by_tensor(chunk):
    different = []
    for _, configurations in drawn(chunk):
        settings = [parse(configuration) for configuration in configurations]
        expected, found = peaks(settings), [step.peak_bytes(each) for each in settings]
        different += [(e, f, c) for e, f, c in zip(expected, found, configurations, strict=True) if e != f]
    assert not different, f"{len(different)}, such as {different[0]}"


def test_the_settings_reach_every_choice_often():
    assert COUNT >= 10_000
    seen = Counter()
    for chunk in range(CHUNKS):
        for shared, configurations in drawn(chunk):
            seen["key heads", shared] += len(configurations)
            seen.update((name, configuration[name]) for configuration in configurations for name in (*CHOICES, *SIZES))
    wanted = [(name, option) for name, options in CHOICES.items() for option in options]
    wanted += [(name, str(size)) for name, sizes in SIZES.items() if isinstance(sizes, tuple) for size in sizes]
    wanted += [("key heads", shared) for shared in KEY_HEADS]
    assert [each for each in wanted if seen[each] < OFTEN] == []


def test_the_run_without_values_holds_nothing_when_it_is_over():
    for _, configurations in drawn(0):
        left = peaks([parse(each) for each in configurations], left_over=True)
        assert left == [0] * len(configurations)
