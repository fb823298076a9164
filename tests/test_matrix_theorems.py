"""The theorems behind the proof of square matrices for every size, written out at explicit sizes:
the derivatives of an inverse, of log|det| and of a triangular factor.
"""

from itertools import product

import pytest
from indexed import written_out
from sympy import IndexedBase, Integer, Symbol, simplify

from derive.proof.proving.matrix_entries import FactorEntry, InverseEntry, LogDetOf

a = IndexedBase(Symbol("a", positive=True))
i, j, p, q, n = (Symbol(name, integer=True) for name in "ijpqn")
WHOLE = {
    "inverse": InverseEntry(a[i, j], i, j, n, p, q),
    "inverse of a symmetric one": InverseEntry(a[i, j] + a[j, i], i, j, n, p, q),
    "logdet": LogDetOf(a[i, j], i, j, n),
    "logdet of squares": LogDetOf(a[i, j] ** 2, i, j, n),
    "factor": FactorEntry(a[i, j], i, j, n, p, q),
}


@pytest.mark.parametrize("size", (1, 2))
@pytest.mark.parametrize("name", WHOLE)
def test_the_derivative_is_that_of_the_entries(name, size):
    whole, r, s = WHOLE[name], Symbol("r", integer=True), Symbol("s", integer=True)
    for place in product(range(1, size + 1), repeat=4):
        at = {n: Integer(size), **dict(zip((p, q, r, s), map(Integer, place), strict=True))}
        ours = written_out(whole.diff(a[r, s]), at).doit()
        theirs = written_out(whole, at).diff(a[at[r], at[s]])
        assert simplify(ours - theirs) == 0


def test_an_entry_of_the_transposed_inverse_is_one_of_the_inverse():
    assert InverseEntry(a[j, i], i, j, n, p, q) == InverseEntry(a[i, j], i, j, n, q, p)
    assert InverseEntry(a[i, j], i, j, n, p, q) != InverseEntry(a[i, j], i, j, n, q, p)
    assert FactorEntry(a[j, i], i, j, n, p, q) != FactorEntry(a[i, j], i, j, n, q, p)


def test_indices_of_its_own_are_none_outside():
    inner = FactorEntry(a[i, j], i, j, n, p, q)
    outer = InverseEntry(inner, p, q, n, i, j)
    assert outer.xreplace({i: Integer(1)}) == InverseEntry(inner, p, q, n, Integer(1), j)
    own = outer.args[1]
    assert outer.xreplace({own: Integer(1)}) == outer
