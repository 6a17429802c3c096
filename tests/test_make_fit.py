"""Sets of changes that make a run fit: everything offered fits, nothing in it can be left out, and no smaller set was missed.

Belongs here: the search against counting every set, its bounds, what is required and kept, words and the command. Not here: single
changes (test_levers.py).
"""

from itertools import combinations, product
import json
import tomllib
from pathlib import Path

from hypothesis import example, given, settings as hypothesis_settings, strategies as st
import pytest

from command import run as command
from configurations import OPENING, OPENINGS
from strategies import configurations
from vramplan import SettingsError, estimate, levers as levers_module, make_fit, make_fit_report, words
from vramplan.accountings import peak_bytes
from vramplan.errors import NotExpressible
from vramplan.fields import BY_NAME
from vramplan.front import front
from vramplan.growth import growth
from vramplan.levers import applied, levers
from vramplan.link import read_query
from vramplan.make_fit import MOST_CHANGES
from vramplan.settings import format_settings, parse
from vramplan.words import COSTS, TERM_LABELS

CHANGES = tomllib.loads((Path(levers_module.__file__).parent / "data" / "changes.toml").read_text(encoding="utf-8"))["change"]
NAMES = [entry["setting"] for entry in CHANGES]
TIGHT = {**OPENING, "gpu": "12", "sequence_length": "4096", "micro_batch": "4"}
FEW = hypothesis_settings(max_examples=25)
near_the_budget = st.one_of(configurations(small=True), configurations(model="llama-3.2-1b", small=True))


@pytest.fixture(scope="module")
def quarters():
    """Quarters of a sequence in place of sixteenths, so that every set can be counted."""
    before, levers_module.LENGTH_PARTS = levers_module.LENGTH_PARTS, 4
    yield
    levers_module.LENGTH_PARTS = before


def every_set(run, kept):
    """Every set of steps of up to three levers, as {place: step}."""
    found = levers(run, kept)
    for count in range(1, MOST_CHANGES + 1):
        for places in combinations(range(len(found)), count):
            for steps in product(*(range(len(found[place].steps)) for place in places)):
                yield dict(zip(places, steps, strict=True)), [found[place].steps[step] for place, step in zip(places, steps, strict=True)]


def fitting(run, kept):
    """The sets that fit, each counted afresh as a run of its own."""
    found = []
    for places, steps in every_set(run, kept):
        changed = applied(run, steps)
        try:
            if changed is not None and estimate(changed).fits:
                found.append((places, changed))
        except NotExpressible:
            continue
    return found


def within(one, other):
    return one != other and all(other.get(place, -1) >= step for place, step in one.items())


@given(near_the_budget, st.sets(st.sampled_from(NAMES), min_size=len(NAMES) - 9))
@example(TIGHT, {"rank", "adapter_targets", "kbit_preparation", "base_precision", "trainable_precision", "offload", "reference"})
@example({**TIGHT, "gpu": "16", "method": "full", "checkpointing": "none"}, {"rank", "quantization", "adapter_targets", "base_precision", "optimizer", "offload"})
@example({**OPENINGS["planning"], "gpu": "8", "micro_batch": "4"}, set())
@example({**OPENINGS["unsloth"], "gpu": "8", "micro_batch": "4"}, set())
@example({**OPENINGS["rules"], "gpu": "8", "micro_batch": "4", "replicas": "4"}, set())
@FEW
def test_the_offers_are_the_smallest_of_all_sets_that_fit(quarters, typed, kept):
    run = parse(typed)
    made = make_fit(run, keep=kept)
    if made.run.fits:
        assert made.offers == ()
        return
    every = fitting(run, kept)
    smallest = {changed for places, changed in every if not any(within(other, places) for other, _ in every)}
    assert {offer.settings for offer in made.offers} == smallest
    for offer in made.offers:
        again = estimate(offer.settings)
        assert (again.peak_bytes, again.headroom_bytes, again.verdict) == (offer.peak_bytes, offer.headroom_bytes, offer.verdict) and again.fits
        assert again == estimate(parse(format_settings(offer.settings)))
        assert 0 < len(offer.steps) <= MOST_CHANGES
        assert all(getattr(offer.settings, name) == getattr(run, name) for name in kept)
    assert [offer.order for offer in made.offers] == sorted(offer.order for offer in made.offers)
    assert made.counted <= made.sets


@given(configurations(), st.data())
@hypothesis_settings(max_examples=200)
def test_no_lever_makes_a_term_smaller_that_it_does_not_name(typed, data):
    run = parse(typed)
    found = levers(run)
    chosen = data.draw(st.lists(st.sampled_from(range(len(found))), min_size=1, max_size=MOST_CHANGES, unique=True).map(sorted))
    steps = {place: data.draw(st.sampled_from(found[place].steps)) for place in chosen}
    first = data.draw(st.sets(st.sampled_from(chosen), max_size=len(chosen) - 1))
    before, after = (applied(run, [steps[place] for place in places]) for places in (sorted(first), chosen))
    rest = [found[place].smaller for place in chosen if place not in first]
    if before is None or after is None or None in rest:
        return
    smaller = frozenset().union(*rest)
    try:
        started, peak = estimate(before), peak_bytes(after)
    except NotExpressible:
        return
    for moment in started.moments:
        assert sum(term.bytes for term in moment.terms if term.name not in smaller) <= peak, moment.name


def test_what_is_declared_is_there():
    for entry in CHANGES:
        kind = BY_NAME[entry["setting"]].kind
        assert entry["smaller"] == "all" or set(entry["smaller"]) <= set(TERM_LABELS), entry["setting"]
        allowed = {option.value for option in getattr(kind, "options", ())}
        for step in entry["steps"]:
            assert not allowed or step["value"] in allowed
            assert entry["setting"] in COSTS and step["quality"] >= 0 and step["speed"] >= 0
        assert set(entry.get("from", ())) <= allowed
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize("typed", [TIGHT, {**TIGHT, "method": "full", "replicas": "4"}, {**OPENINGS["planning"], "gpu": "8"}, {**OPENINGS["rules"], "gpu": "8", "task": "inference"}])
def test_every_change_says_what_it_costs(typed):
    made = make_fit(parse(typed))
    assert made.offers or not made.run.fits
    assert all(words.cost_text(step.change) for lever in levers(made.run.settings) for step in lever.steps)
    assert all(row.changes and row.costs and row.query.startswith("v=") for row in make_fit_report.offer_rows(made))


def test_the_cheapest_in_quality_comes_first():
    offers = make_fit(parse(TIGHT)).offers
    assert len(offers) > 1
    assert [(each.quality, each.speed) for each in offers] == sorted((each.quality, each.speed) for each in offers)


def test_a_smaller_micro_batch_keeps_the_effective_batch():
    run = parse({**TIGHT, "micro_batch": "8", "gradient_accumulation_steps": "2"})
    (lever,) = [lever for lever in levers(run) if lever.name == "micro_batch"]
    batches = [applied(run, [step]) for step in lever.steps]
    assert [(each.micro_batch, each.gradient_accumulation_steps) for each in batches] == [(4, 4), (2, 8), (1, 16)]
    assert {each.effective_batch for each in batches} == {run.effective_batch}


def test_what_is_kept_is_in_no_offer():
    run = parse(TIGHT)
    free = {name for offer in make_fit(run).offers for step in offer.steps for name in step.change}
    assert {"sequence_length", "micro_batch"} <= free
    kept = make_fit(run, keep=["sequence_length", "gradient_accumulation_steps"])
    assert {name for offer in kept.offers for step in offer.steps for name in step.change}.isdisjoint({"sequence_length", "micro_batch", "gradient_accumulation_steps"})


def test_where_nothing_fits_what_is_kept_is_in_nothing_that_is_offered_instead():
    run = parse({"model": "llama-3.1-70b", "gpu": "24"})
    labels = {"model": "Largest model of the family", "gpu": "Smallest GPU class", "sharding": "Fewest GPUs like this one"}
    assert [row.label for row in make_fit_report.turn_rows(make_fit(run))] == [labels[name] for name in ("gpu", "sharding", "model")]
    for kept, label in labels.items():
        assert label not in {row.label for row in make_fit_report.turn_rows(make_fit(run, keep=[kept]))}
    assert make_fit_report.turn_rows(make_fit(run, keep=BY_NAME)) == ()


def test_what_is_required_is_there_in_every_offer():
    made = make_fit(parse(TIGHT), at_least={"sequence_length": 3072, "effective_batch": 64})
    assert made.run.settings.effective_batch >= 64 and made.run.settings.sequence_length == 4096
    assert made.offers
    assert all(each.settings.sequence_length >= 3072 and each.settings.effective_batch >= 64 for each in made.offers)
    longer = make_fit(parse({**OPENING, "gpu": "24"}), at_least={"sequence_length": 8192})
    assert longer.run.settings.sequence_length == 8192
    assert all(each.settings.sequence_length == 8192 for each in longer.offers)


@pytest.mark.parametrize(
    ("keep", "at_least", "field", "says"),
    [
        (["colour"], {}, "keep", "colour is not a setting"),
        ([], {"rank": 8}, "at_least", "rank cannot be required"),
        ([], {"sequence_length": 0}, "at_least", "from 1 to"),
        ([], {"sequence_length": 10**9}, "at_least", "from 1 to"),
        ([], {"effective_batch": 10**9}, "at_least", "from 1 to"),
        (["sequence_length"], {"sequence_length": 8192}, "at_least", "is kept at"),
        (["micro_batch", "gradient_accumulation_steps"], {"effective_batch": 4096}, "at_least", "is kept at"),
    ],
)
def test_what_cannot_be_asked_for_is_one_sentence(keep, at_least, field, says):
    with pytest.raises(SettingsError) as caught:
        make_fit(parse(OPENING), keep=keep, at_least=at_least)
    (error,) = caught.value.errors
    assert error.field == field and says in error.message and error.message.endswith(".")


def test_a_run_that_fits_is_left_alone():
    made = make_fit(parse({**OPENING, "gpu": "288"}))
    assert made.run.fits and made.fits and made.offers == () and made.sets == 0
    assert make_fit_report.sentence(made) == "The run fits as it is."


def test_when_nothing_fits_there_is_somewhere_to_turn():
    made = make_fit(parse({**OPENING, "model": "llama-3.1-70b", "method": "qlora", "gpu": "24"}))
    assert made.offers == () and not made.fits
    rows = make_fit_report.turn_rows(made)
    assert len(rows) == 3
    for row in rows:
        link = read_query(row.query)
        changed = parse(link.texts, version=link.version)
        assert estimate(changed).fits, row
    assert made.smaller_model.parameters.total < made.run.parameters.total
    assert made.divided.gpu == "24" and not estimate(made.divided.varied(sharded_over=made.divided.sharded_over - 1)).fits


def test_a_change_that_cannot_be_counted_is_named_once():
    made = make_fit(parse({**OPENING, "stack": "trl-1.15", "method": "qlora", "gpu": "8", "sequence_length": "8192", "micro_batch": "8"}))
    assert "Liger’s fused loss" in make_fit_report.refused_text(made)
    assert not any("loss" in step.change for offer in made.offers for step in offer.steps)


def test_the_command_prints_the_same_offers():
    flags = ("fit", "--make-it-fit", "--model", "llama-3.1-8b", "--method", "lora", "--gpu", "16", "--sequence-length", "4096")
    free, kept = (command(*flags, "--json", *more) for more in ((), ("--keep", "sequence-length,rank", "--at-least", "effective_batch=8")))
    assert free.returncode == kept.returncode == 1
    made, with_kept = json.loads(free.out), json.loads(kept.out)
    assert {"sequence_length", "rank"} == set(with_kept["kept"]) and with_kept["at_least"] == {"effective_batch": 8}
    smaller = [offer["changes"] for offer in with_kept["offers"]]
    assert smaller and smaller == [offer["changes"] for offer in made["offers"] if not {"sequence_length", "rank"} & {name for change in offer["changes"] for name in change}]
    table = command(*flags).out
    assert "At the cost of" in table and "Training method: QLoRA; Loss: Fused linear (Liger)" in table


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--keep", "colour"), "--keep: colour is not a setting"),
        (("--at-least", "sequence_length"), "--at-least: must be NAME=NUMBER"),
        (("--at-least", "sequence_length=-4"), "--at-least: must be NAME=NUMBER"),
        (("--at-least", "rank=4"), "--at-least: rank cannot be required"),
    ],
)
def test_the_command_says_what_cannot_be_asked_for(flags, says):
    done = command("fit", "--make-it-fit", *flags)
    assert done.returncode == 2 and says in done.err and len(done.err.splitlines()) == 1


@pytest.mark.parametrize("typed", [OPENING, TIGHT, {**OPENINGS["planning"], "gpu": "80"}])
def test_no_run_of_the_front_beats_another_and_each_fits(typed):
    made = make_fit(parse(typed))
    offers = made.offers or [each.offer for each in growth(made.run.settings)]
    points = front(made.run.settings, offers)
    assert len(points) > 1
    for point in points:
        again = estimate(point.settings)
        assert again.fits and again.peak_bytes == point.peak_bytes
        assert point.settings.gradient_accumulation_steps <= made.run.settings.gradient_accumulation_steps
    for one, other in product(points, repeat=2):
        assert one is other or any(a < b for a, b in zip(one.wants, other.wants, strict=True))
    told = make_fit_report.front_table(points)
    assert sum(cell is not None for _, cells in told.rows for cell in cells) == len(points)


@pytest.mark.parametrize("typed", [OPENING, {**OPENINGS["planning"], "gpu": "80"}])
def test_every_larger_run_fits_and_takes_what_it_says(typed):
    run = parse(typed)
    found = growth(run)
    assert {each.name for each in found} == {"sequence_length", "micro_batch"}
    for each in found:
        assert getattr(each.offer.settings, each.name) == each.value > getattr(run, each.name)
        assert estimate(each.offer.settings).fits
        other = "micro_batch" if each.name == "sequence_length" else "sequence_length"
        assert getattr(each.offer.settings, other) == getattr(run, other)
        assert each.offer.steps == () or each.offer == make_fit(run.varied(**{each.name: each.value}), keep=["sequence_length", "micro_batch"]).offers[0]
