"""The tape and the walk over it, on operations small enough to follow by hand.

Belongs here: when a tensor is alive. Sizes in the comments are bytes per token. What a layer writes down: test_layer.py.
"""

import random

import pytest

from configurations import random_configuration
from vramplan.accountings.step.build import structure
from vramplan.accountings.step.head import head_and_loss
from vramplan.accountings.step.layer import decoder_layer
from vramplan.accountings.step.tape import FIXED, NOTHING, PAIRS, POSITIONS, TOKENS, Tape, Tensor
from vramplan.settings import parse


def per_token(moments):
    """Bytes per token of each moment."""
    return [amount[TOKENS] for amount in moments]


def backward(tape):
    return per_token(amount for amount, _ in tape.backward())


def tensor(name, size=4, **details):
    """A tensor of so many bytes per token, in a type of two bytes if that is all it has."""
    itemsize = details.pop("itemsize", 2 if size % 4 else 4)
    return Tensor(name, size // itemsize, itemsize, **details)


def chain(**input_details):
    """x (10) -> y (4) -> z (6); the first operation saves its input, the second its output."""
    tape = Tape()
    x, y, z = tensor("x", 10, **input_details), tensor("y", 4), tensor("z", 6)
    tape.add("first", (x,), y, saves=(x,))
    tape.add("second", (y,), z, saves=(z,))
    return tape


def test_forward_keeps_what_backward_needs():
    assert per_token(chain().forward(keeps=True)) == [10 + 4, 10 + 4 + 6]


def test_forward_without_backward_lets_go_of_everything_it_has_used():
    assert per_token(chain().forward(keeps=False)) == [10 + 4, 4 + 6]


def test_what_is_somebody_elses_is_not_counted():
    tape = chain(external=True)
    assert per_token(tape.forward(keeps=True)) == [4, 4 + 6]
    assert tape.saved()[TOKENS] == 6


def test_saved_tensors_go_when_their_operation_has_run_backward():
    tape = chain()
    assert tape.saved()[TOKENS] == 10 + 6
    # saved x, z and the gradient of z; with that of y made: 26. Then z and its gradient go; with that of x made: 24.
    assert backward(tape) == [10 + 6 + 6 + 4, 10 + 4 + 10]


def test_a_tensor_saved_twice_is_one_tensor_and_stays_for_both():
    tape = Tape()
    x, y, z = tensor("x", 10), tensor("y"), tensor("z")
    tape.add("first", (x,), y, saves=(x,))
    tape.add("second", (y,), z, saves=(x,))
    assert tape.saved()[TOKENS] == 10
    assert backward(tape) == [10 + 4 + 4, 10 + 4 + 10]


def test_both_inputs_of_a_sum_have_the_gradient_that_came_in():
    tape = Tape()
    x, a, b, c = (tensor(name) for name in "xabc")
    tape.add("f", (x,), a)
    tape.add("g", (x,), b)
    tape.add("sum", (a, b), c, shares=True)
    # one gradient for a, b and c; then x's from g; then x's from f, added in place.
    assert backward(tape) == [4, 4 + 4, 4 + 4 + 4]


def test_inputs_of_another_type_get_a_gradient_of_their_own():
    tape = Tape()
    a, b = tensor("a", 4, itemsize=4), tensor("b", 2, itemsize=2)
    tape.add("sum", (a, b), tensor("c", 4, itemsize=4), shares=True)
    assert backward(tape) == [4 + 2]


def test_a_gradient_that_nobody_else_uses_is_added_to_in_place():
    """A residual: x is used by f, and by the sum."""
    tape = Tape()
    x, a, c, before = (tensor(name) for name in ("x", "a", "c", "before"))
    tape.add("earlier", (before,), x)
    tape.add("f", (x,), a)
    tape.add("sum", (x, a), c, shares=True)
    # the shared gradient; x's from f; then both are one, and the earlier operation makes its own.
    assert backward(tape) == [4, 4 + 4, 4 + 4]


def test_a_gradient_that_is_still_used_elsewhere_is_added_to_a_new_one():
    tape = Tape()
    x, a, b, c, d = (tensor(name) for name in "xabcd")
    tape.add("h", (x,), b)
    tape.add("f", (x,), a)
    tape.add("inner sum", (x, b), c, shares=True)
    tape.add("outer sum", (c, a), d, shares=True)
    # One gradient g for everything; f makes x's second: 8. g is still b's, so x gets a new sum of both: g and that, 8.
    # h makes x's third, 12, which is added to the sum in place.
    assert backward(tape) == [4, 4, 4 + 4, 4 + 4 + 4]


def views():
    """A tensor (8) in two halves: f saves one and uses it, g the other."""
    tape = Tape()
    whole = tensor("whole", 8)
    left, right = (Tensor(name, 1, 4, base=whole) for name in ("left", "right"))
    a, b, c = (tensor(name) for name in "abc")
    tape.add_views("halves", whole, (left, right))
    tape.add("f", (left,), a, saves=(left,))
    tape.add("g", (right,), b, saves=(right,))
    tape.add("sum", (a, b), c, shares=True)
    return tape


def test_views_have_no_storage_of_their_own():
    tape = views()
    assert tape.saved()[TOKENS] == 8
    assert [each.name for each in tape.saved_tensors()] == ["whole"]
    assert per_token(tape.forward(keeps=True)) == [8, 8 + 4, 8 + 4 + 4, 8 + 4 + 4 + 4]
    # without backward the whole stays until its second half has been used
    assert per_token(tape.forward(keeps=False)) == [8, 8 + 4, 8 + 4 + 4, 4 + 4 + 4]


def test_gradients_of_views_are_tensors_and_come_together_in_one():
    # 8 saved and one gradient; right's 4; left's 4, as g's gradient is still a's; the whole's 8 with the halves' 8.
    assert backward(views()) == [8 + 4, 8 + 4 + 4, 8 + 4 + 4 + 4, 4 + 4 + 8]


def test_a_view_of_a_view_shows_the_storage_of_the_first():
    whole = tensor("whole", 8)
    inner = Tensor("inner", 1, 4, base=Tensor("outer", 2, 4, base=whole))
    assert inner.base is whole


def grown(sizes):
    """An amount of so many bytes for each of these ways to grow."""
    return tuple(sizes.get(growth, 0) for growth in range(len(NOTHING)))


def handed_over(**details):
    tape = Tape()
    x, early = tensor("x", 6), tensor("gradient made early", 6)
    tape.add("loss", (x,), Tensor("loss", 1, 4, FIXED), saves=(early,), **details)
    return tape


def test_a_gradient_made_in_the_forward_pass_is_handed_over_not_copied():
    assert handed_over(hands_over=True).backward() == [(grown({FIXED: 4, TOKENS: 6}), 0)]
    assert handed_over().backward() == [(grown({FIXED: 4, TOKENS: 6 + 6}), 0)]


def test_a_variable_keeps_a_tensor_until_it_is_read_for_the_last_time():
    def moments(reads=(), held=False):
        tape = Tape()
        x, y, z, w = tensor("x", 10, held=held), tensor("y"), tensor("z"), tensor("w")
        tape.add("first", (x,), y)
        tape.add("second", (y,), z, reads=(x,) if reads == "second" else ())
        tape.add("third", (z,), w)
        return per_token(tape.forward(keeps=False))

    assert moments() == [10 + 4, 4 + 4, 4 + 4]
    assert moments(reads="second") == [10 + 4, 10 + 4 + 4, 4 + 4]
    assert moments(held=True) == [10 + 4, 10 + 4 + 4, 10 + 4 + 4]


def test_workspaces_are_there_only_while_their_operation_runs():
    tape = Tape()
    x, y, z = (tensor(name) for name in "xyz")
    tape.add("first", (x,), y, scratch=((PAIRS, 100),), forward_scratch=((POSITIONS, 7), (TOKENS, 1)))
    tape.add("second", (y,), z)
    assert tape.forward(keeps=True) == [grown({TOKENS: 4 + 4 + 1, POSITIONS: 7}), grown({TOKENS: 4 + 4})]
    assert [amount for amount, _ in tape.backward()] == [grown({TOKENS: 4 + 4}), grown({TOKENS: 4 + 4, PAIRS: 100})]


def test_weight_gradients_stay_and_their_unconverted_form_does_not():
    tape = Tape()
    x, y, z = (tensor(name) for name in "xyz")
    tape.add("first", (x,), y, gradient=50, gradient_scratch=25)
    tape.add("second", (y,), z, gradient=8, gradient_scratch=4)
    assert tape.gradient_bytes() == 58
    assert tape.backward() == [(grown({FIXED: 8 + 4, TOKENS: 8}), 0), (grown({FIXED: 8 + 50 + 25, TOKENS: 8}), 8)]


def test_a_gradient_that_is_converted_comes_after_what_came_in_and_what_was_saved():
    tape = Tape()
    x, y = (tensor(name) for name in "xy")
    kept = Tensor("16-bit weight", 100, 1, FIXED)
    tape.add("first", (x,), y, saves=(kept,), gradient=50, gradient_scratch=25, converts=True)
    both_gradients, one = 8, 4
    assert tape.backward() == [(grown({FIXED: 100 + 25, TOKENS: both_gradients}), 0), (grown({FIXED: 50 + 25, TOKENS: one}), 0)]
    assert sum(each.tensor.bytes for each in tape.alive_backward(1) if each.tensor.growth == FIXED) == 50 + 25


def test_recomputation_ends_before_the_operation_that_saves_the_last_tensor():
    tape = Tape()
    x, y, z, w = tensor("x", 10), tensor("y"), tensor("z", 20), tensor("w", 40)
    tape.add("first", (x,), y, saves=(x,))
    tape.add("second", (y,), z, saves=(y,))
    tape.add("third", (z,), w)
    assert per_token(tape.forward(keeps=True)) == [10 + 4, 10 + 4 + 20, 10 + 4 + 20 + 40]
    assert per_token(tape.recomputation()) == [10 + 4]


def test_copies_of_weights_that_are_saved_are_there_in_the_forward_pass_too():
    tape = Tape()
    tape.add("product", (tensor("x"),), tensor("y"), saves=(Tensor("16-bit weight", 30, 2, FIXED),))
    assert tape.forward(keeps=True) == [grown({FIXED: 60, TOKENS: 4 + 4})]
    assert tape.forward(keeps=False) == [grown({TOKENS: 4 + 4})]


# The list of what is alive, against the amounts, for layers and heads of any kind


def amount_of(alive):
    total = [*NOTHING]
    for each in alive:
        total[each.tensor.growth] += each.tensor.bytes
    return tuple(total)


def tapes(seed):
    """The layer and the head of a random run."""
    run = structure(parse(random_configuration(random.Random(seed), "step")))
    return decoder_layer(run, external_input=run.checkpointing), head_and_loss(run)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_alive_adds_up_to_the_amount_at_every_moment(seed):
    for tape in tapes(seed):
        for keeps in (True, False):
            for index, amount in enumerate(tape.forward(keeps=keeps)):
                assert amount_of(tape.alive_forward(index, keeps=keeps)) == amount
        for index, (amount, made) in enumerate(tape.backward()):
            assert amount_of(tape.alive_backward(index)) == amount
            assert amount_of(tape.alive_backward(index, accumulating=True)) == (amount[FIXED] - made, *amount[1:])
