"""The indexed sums of the second route: what vanishes for every size, and what does not."""

import sympy
from sympy import IndexedBase, Symbol, sqrt

from derive.every_size import LargestAlong, vanishes
from derive.indexed_sum import IndexedSum

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


def test_an_index_of_a_sum_is_no_index_outside_of_it():
    """What is put in for an index is put in where that is free, and is not captured."""
    y, j, n = IndexedBase(Symbol("y", real=True)), Symbol("j", integer=True), sympy.Integer(1)
    total = IndexedSum(x[i] * y[j], (i, 1, SIZE))
    assert total.xreplace({i: n}) == total
    assert total.xreplace({j: n}) == IndexedSum(x[i] * y[1], (i, 1, SIZE))
    assert total.xreplace({x[i]: n}) == total and total.xreplace({total: n}) == n
    moved = total.xreplace({j: i})
    (own,) = moved.variables
    assert own != i and moved.function == x[own] * y[i]
    assert not vanishes(moved - IndexedSum(x[i] * y[i], (i, 1, SIZE)))
    largest = LargestAlong(x[i] * y[j], i)
    assert largest.xreplace({i: n}) == largest
    assert largest.xreplace({j: i}).args[0].has(y[i])
    assert not largest.xreplace({j: i}).args[0].has(x[i])
