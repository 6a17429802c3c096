"""How far a run can grow: beginning at the cost of the run before leaves no cheaper set out.

Belongs here: every step of growth against a search of its own. Not here: which sets a search finds (test_make_fit.py).
"""

from hypothesis import assume, example, given, settings as hypothesis_settings, strategies as st

from configurations import OPENING, OPENINGS
from strategies import configurations
from vramplan import make_fit
from vramplan.accountings import estimate
from vramplan.errors import NotExpressible
from vramplan.growth import GROWING, growth
from vramplan.make_fit import Wanted
from vramplan.settings import parse

LOCKED = ("method", "rank", "quantization", "adapter_targets", "base_precision", "offload", "sharding", "checkpointing")


@given(configurations(small=True), st.sets(st.sampled_from(LOCKED), min_size=4))
@example({**OPENING, "model": "llama-3.2-1b", "gpu": "16"}, {"method", "rank", "adapter_targets"})
@example({**OPENING, "gradient_accumulation_steps": "1", "micro_batch": "4"}, {"method", "sharding", "checkpointing"})
@example({**OPENINGS["rules"], "gpu": "24"}, {"rank", "offload"})
@hypothesis_settings(max_examples=15)
def test_every_larger_run_has_the_cheapest_set_there_is(typed, kept):
    run = parse(typed)
    try:
        assume(estimate(run).fits)
    except NotExpressible:
        assume(False)
    for each in growth(run, Wanted(frozenset(kept))):
        if each.offer.steps:
            alone = make_fit(run.varied(**{each.name: each.value}), keep=[*kept, *GROWING])
            assert each.offer == alone.offers[0]
