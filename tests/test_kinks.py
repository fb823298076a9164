"""What is smooth and computed by parts that are not."""

import pytest
from sympy import Abs, Piecewise, Rational, exp, log, sign, simplify

from derive.gradient.orders.kinks import made_smooth
from derive.language.symbols import Tensor

A, B = Tensor("a", (), role="input"), Tensor("b", (), role="input")
LARGER = Piecewise((A, A >= 0), (0, True))
SMALLER = Piecewise((A, A <= 0), (0, True))
PARTS = log(1 + exp(-Abs(A)))
POINTS = (-3, Rational(-1, 2), 0, Rational(1, 3), 2)


def slope_at_0(e):
    """By the rules of a derivative that takes the branch which holds."""
    return simplify(e.diff(A).subs(A, 0))


def test_what_is_a_logarithm_of_a_sum_is_differentiated_as_that():
    assert made_smooth([LARGER + PARTS]) == [log(exp(A) + 1)]
    assert made_smooth([-SMALLER + PARTS]) == [log(exp(-A) + 1)]
    magnitude = Abs(A) + log(3 + 3 * exp(-2 * Abs(A)))
    assert made_smooth([magnitude]) == [log(3 * exp(A) + 3 * exp(-A))]
    two = Piecewise((A, A >= B), (B, True)) + log(1 + exp(-Abs(A - B)))
    assert made_smooth([two]) == [log(exp(A) + exp(B))]


def test_its_parts_may_stand_apart():
    larger, parts = made_smooth([LARGER, PARTS])
    assert larger + parts == log(exp(A) + 1)
    assert made_smooth([PARTS], beside=[LARGER]) == [parts]


def test_smaller_and_larger_take_the_same_side():
    larger, smaller, parts = made_smooth([LARGER, SMALLER, PARTS])
    assert slope_at_0(LARGER + SMALLER) == 2  # one takes this branch, and the other that
    assert slope_at_0(larger + smaller) == 1
    assert slope_at_0(larger + parts) == Rational(1, 2) == -slope_at_0(parts - smaller)


@pytest.mark.parametrize("e", [LARGER + PARTS, SMALLER * PARTS, PARTS**2 / (1 + LARGER)])
def test_no_value_changes(e):
    new, _ = made_smooth([e, LARGER])
    assert new != e
    for point in POINTS:
        assert abs((new - e).subs(A, point).evalf()) < 1e-12


def test_a_kink_of_its_own_is_kept():
    own = exp(-Abs(A)) * A
    assert made_smooth([own, LARGER.subs(A, B), Abs(A) * SMALLER])[0] != own
    assert made_smooth([own, LARGER.subs(A, B)]) == [own, LARGER.subs(A, B)]
    assert made_smooth([exp(Abs(A)), LARGER]) == [exp(Abs(A)), LARGER]
    assert made_smooth([sign(A), SMALLER]) == [sign(A), SMALLER]
