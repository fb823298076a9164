"""The theorems behind the proof of recurrences for every size, written out at explicit sizes."""

import pytest
from indexed import written_out
from sympy import IndexedBase, Integer, Mul, Symbol, exp, powsimp

from derive import Axis
from derive.language.scans import Previous, Scan
from derive.language.symbols import Tensor
from derive.proof.proving.indexed_sum import IndexedSum
from derive.proof.proving.products_between import ProductBetween, one_step, telescoped

B, T = Axis("B"), Axis("T")
r, q, t, s, n = (Symbol(name, integer=True) for name in "rqtsn")
a = IndexedBase("a")
SIZES = range(1, 6)


def places(size):
    return ((last, first) for last in range(1, size + 1) for first in range(size + 1))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("factor", [a[r], 1 - a[r] ** 2, exp(a[r])], ids=str)
def test_the_derivative_of_a_product_is_the_sum_over_its_factors(factor, size):
    whole = ProductBetween(factor, r, n, t, s)
    for last, first in places(size):
        at = {n: Integer(size), t: Integer(last), s: Integer(first)}
        for k in range(1, size + 1):
            ours = written_out(whole.diff(a[q]), {**at, q: Integer(k)}).doit()
            assert (ours - written_out(whole, at).diff(a[k])).expand() == 0


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("factor", [a[r], 1 - a[r] ** 2, Integer(1)], ids=str)
@pytest.mark.parametrize("side", ["before", "behind"])
def test_a_step_and_a_product_are_a_product(factor, size, side):
    ends, others = ((t, q), (q, s)) if side == "before" else ((q, s), (t, q))
    step = ProductBetween(Integer(0), r, n, *ends)
    other = ProductBetween(factor, r, n, *others)
    term = step * other * other.at(q)
    found = one_step(term, q)
    for last, first in places(size):
        at = {n: Integer(size), t: Integer(last), s: Integer(first)}
        total = written_out(IndexedSum(term, (q, 1, n)), at)
        assert (total - written_out(found, at)).expand() == 0


def test_only_a_step_is_taken_together():
    other = ProductBetween(a[r], r, n, q, s)
    assert one_step(ProductBetween(a[r], r, n, t, q) * other * other.at(q), q) is None
    assert one_step(ProductBetween(Integer(0), r, n, t, q) * other, q) is None


@pytest.mark.parametrize("size", SIZES)
def test_exponentials_of_differences_telescope(size):
    x = Tensor("x", (B, T))
    for sign in (1, -1):
        e = Scan(exp(sign * (Previous(x, T, initial=3) - x)), x, T)
        assert telescoped(e) == sign * x
        w = [sign * Symbol(f"w{k}") for k in range(size)]
        for last, first in places(size - 1):
            factors = (exp(w[k - 1] - w[k]) for k in range(first + 1, last + 1))
            whole = powsimp(Mul(*factors))
            assert first > last or whole == exp(w[first] - w[last])
    assert telescoped(Scan(exp(Previous(x, T) - 2 * x), x, T)) is None
