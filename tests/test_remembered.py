"""What is kept for several structures: it depends on nothing but what it is kept by.

Belongs here: the fields of a structure that walks and parameter tensors are made of, and what need not be made. Not here: what they come
to (test_step.py).
"""

from dataclasses import fields, replace

from hypothesis import given, settings as hypothesis_settings
import pytest

from strategies import configurations
from vramplan.accountings.step import remembered, state, walks
from vramplan.accountings.step.build import structure
from vramplan.accountings.step.layers import rows_of_layers
from vramplan.accountings.step.moments import Step
from vramplan.accountings.step.structure import Structure
from vramplan.accountings.step.tape import NOTHING
from vramplan.settings import parse

MANY = hypothesis_settings(max_examples=150)


def blind(run, names):
    """The structure without anything but some fields: what reads another one fails, or takes it for nothing."""
    return replace(run, **{field.name: None for field in fields(Structure) if field.name not in names})


def of_a_layer(made):
    points = made.forward, made.without_graph, made.recomputation, made.backward, made.adding
    return points, made.saved, made.escaped, made.gradients, made.waiting


def of_the_head(made):
    points = made.forward, made.after, made.backward, made.adding, made.every_forward, made.every_backward, made.every_adding
    return points, made.gradients, made.waits, made.forward_ends


@given(configurations("step"))
@MANY
def test_walks_depend_on_nothing_but_what_they_are_kept_by(typed):
    run = structure(parse(typed))
    for kind in {kind for kind, _ in rows_of_layers(run)}:
        assert of_a_layer(walks.LayerWalks(kind)) == of_a_layer(walks.LayerWalks(blind(kind, walks.OF_A_LAYER)))
    has_adapter = "lm_head" in run.targets
    alone = blind(run, (*walks.OF_THE_HEAD, *(walks.OF_ITS_ADAPTER if has_adapter else ())))
    alone = alone if has_adapter else replace(alone, targets=frozenset())
    assert of_the_head(walks.HeadWalks(run)) == of_the_head(walks.HeadWalks(alone))


@given(configurations("step"))
@MANY
def test_parameter_tensors_depend_on_nothing_but_what_they_are_kept_by(typed):
    run = structure(parse(typed))
    base, adapters = blind(run, state.OF_BASE_WEIGHTS), blind(run, state.OF_ADAPTERS)
    assert state.base_weights.__wrapped__(run) == state.base_weights.__wrapped__(base)
    assert state.weight_bytes.__wrapped__(run) == state.weight_bytes.__wrapped__(base)
    assert state.adapter_weights.__wrapped__(run) == state.adapter_weights.__wrapped__(adapters)
    trained = replace(base if run.trains_base else adapters, trains_base=run.trains_base, optimizer=run.optimizer)
    assert state.gradient_bytes.__wrapped__(run) == state.gradient_bytes.__wrapped__(trained)
    assert state.state_bytes.__wrapped__(run) == state.state_bytes.__wrapped__(trained)


@given(configurations("step"))
@MANY
def test_one_row_is_like_several_where_a_structure_says_so(typed):
    run = structure(parse({**typed, "micro_batch": "1", "objective": "sft"}))
    if run.one_row:
        return
    first, second = ([(each.moment, each.amount) for each in Step(replace(run, one_row=one)).instants] for one in (False, True))
    assert first == second


def test_what_is_kept_is_made_once_and_the_oldest_goes_first():
    made = []

    @remembered.remembered(lambda run: run % 10, most=2)
    def last_digit(run):
        made.append(run)
        return run % 10

    assert [last_digit(run) for run in (1, 11, 2, 21, 3, 31)] == [1, 1, 2, 1, 3, 1]
    assert made == [1, 2, 3, 31]
    remembered.forget()
    assert last_digit(2) == 2 and made[-1] == 2


@pytest.mark.parametrize("names", [walks.OF_A_LAYER, walks.OF_THE_HEAD, state.OF_BASE_WEIGHTS, state.OF_ADAPTERS])
def test_what_things_are_kept_by_is_in_a_structure_and_is_not_all_of_it(names):
    every = {field.name for field in fields(Structure)}
    assert set(names) < every and len(set(names)) == len(names)


@given(configurations("step"))
@MANY
def test_nothing_escapes_a_checkpoint_but_what_linear_maps_keep(typed):
    run = structure(parse(typed))
    if not run.keeps_inputs:
        assert all(walks.LayerWalks(kind).escaped == NOTHING for kind in {kind for kind, _ in rows_of_layers(run)})
