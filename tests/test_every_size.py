"""The indexed sums of the second route: what vanishes for every size, and what does not."""

import sympy
from sympy import IndexedBase, Symbol, sqrt

from derive.every_size import vanishes

SIZE = Symbol("size_C", integer=True, positive=True)
i = Symbol("i", integer=True)
x, eps = IndexedBase(Symbol("x", real=True)), Symbol("eps", real=True)
squares = sympy.Sum(x[i] ** 2, (i, 1, SIZE))


def test_a_size_may_stand_inside_or_outside_of_a_root():
    inside = 1 / sqrt(squares / SIZE + eps)
    assert vanishes(sqrt(SIZE) / sqrt(squares + SIZE * eps) - inside)
    assert not vanishes(sqrt(SIZE) / sqrt(squares + eps) - inside)


def test_what_has_a_sign_stays_under_its_root():
    shift = Symbol("shift", real=True)
    outside = sqrt(shift) / sqrt(squares + shift * eps)
    assert not vanishes(outside - 1 / sqrt(squares / shift + eps))
