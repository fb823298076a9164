"""Numbers at which expressions are tried: those at which sizes, roots and divisors are defined."""

from random import Random

import pytest
from sympy import ITE, Abs, And, Dummy, Not, Or, Piecewise, S, Xor, log, sqrt

from derive import Axis, Forward, Given, Input, Max, Min, Scalar, Sum, derive
from derive.language.at_numbers import needs_of_sizes, points_for, sizes_for, truth_at, value_at
from derive.proof.proving.batch_sizes import batches_of

G, N, C = Axis("G"), Axis("N"), Axis("C")
x, w = Dummy("x", real=True), Dummy("w", real=True)

WITHOUT_VALUE = [
    1 / x,
    log(x),
    log(Abs(x) - 1),
    sqrt(x - 1),
    1 / (1 / x - 1 / (x + 1)),
    Piecewise((sqrt(x - 1), x < 1), (0, True)),
    Piecewise((0, 1 / x > 1), (1, True)),
]


@pytest.mark.parametrize("e", WITHOUT_VALUE, ids=str)
def test_no_real_number_is_no_value(e):
    assert value_at(e, {x: S(0)}) is None


def test_a_value_that_is_not_chosen_need_not_be_there():
    chosen = Piecewise((1 / sqrt(x), x > 0), (2, True))
    assert [value_at(chosen, {x: S(n)}) for n in (-1, 4)] == [2, chosen.subs(x, 4)]


def test_a_comparison_with_no_real_number_is_neither_true_nor_false():
    unknown = sqrt(x) > 1
    assert truth_at(unknown, {x: -1 + S(0)}) is None
    assert truth_at(Not(unknown), {x: -1 + S(0)}) is None
    assert truth_at(And(unknown, x < 0), {x: -1 + S(0)}) is None
    assert truth_at(And(unknown, x > 0), {x: -1 + S(0)}) is False
    assert truth_at(Or(unknown, x < 0), {x: -1 + S(0)}) is True
    assert truth_at(ITE(x < 0, x > -2, unknown), {x: S(-1)}) is True
    assert truth_at(ITE(unknown, x > -2, x < 0), {x: S(-1)}) is None
    assert truth_at(Xor(x < 0, x > 2), {x: S(-1)}) is True


DIVIDED = {
    "unbiased": (1 / (N - 1), {N}),
    "adjusted": (1 / (N - 3), {N}),
    "far": (1 / (N - 40), {N}),
    "root": (sqrt(N - 3), {N}),
    "logarithm": (log(N - 2), {N}),
    "nested": (1 / (1 / (N - 2) - 1 / (N - 1)), {N}),
    "left": (1 / (N - C), {N, C}),
    "root of a difference": (sqrt(N - C - 1), {N, C}),
}


@pytest.mark.parametrize("name", DIVIDED)
def test_sizes_are_drawn_where_they_are_divided_by(name):
    e, axes = DIVIDED[name]
    sizes = sizes_for(needs_of_sizes(e), axes, Random(0))
    assert value_at(e, sizes) is not None


@pytest.mark.parametrize("e", [log(x) / sqrt(w), sqrt(1 - x**2) / (w - 1), 1 / sqrt(x * w)])
def test_points_have_a_value_and_differ(e):
    points = [tuple(p.values()) for p in points_for([e], [x, w], 20, Random(0))]
    assert len(points) == 20 and len({*points}) > 5
    assert all(value_at(e, {x: a, w: b}) is not None for a, b in points)


def test_nothing_is_drawn_for_what_has_a_value_nowhere():
    assert [*points_for([sqrt(-1 - x**2)], [x], 5, Random(0))] == []


class Clipped(Forward):
    x = Input(G)
    r = Given(G)
    low = Scalar(0.2)
    adv = r / (sqrt(Sum(r**2, G) / (G - 3)) + 1e-4)
    y = Sum(Min(x * adv, Max(x, 1 - low) * adv), G)


class Spaced(Forward):
    x = Input(N)
    high = Scalar(2)
    y = Max(x / (high / (N - 1)), 0)


class Left(Forward):
    x = Input(N, C)
    y = x**2 / (N - C)


@pytest.mark.parametrize("forward", [Clipped, Spaced])
def test_a_clipped_quotient_is_derived(forward):
    assert derive(forward).every_size


def test_batches_allow_a_difference_of_sizes():
    assert all(batch[N] > batch[C] for batch in batches_of(Left.definition))
