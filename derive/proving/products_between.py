"""The product of what stands between two places of a row: what a recurrence multiplies its earlier
terms by.

``ProductBetween(a, r, n, t, s)`` is the product of ``a`` over s < r < t where s < t, and else 0.
"""

from __future__ import annotations

from sympy import Dummy, Expr, Integer

from derive.proving.indexed_sum import IndexedSum, OverIndices
from derive.proving.small_batch import TotalDerivative


class ProductBetween(OverIndices, Expr):
    """Its args are ``a``, the index r in it, how many places there are, and the ends t and s, which
    are counted from 1; s may be 0.
    """

    is_real = True
    is_commutative = True

    def __new__(cls, factor: Expr, index: Expr, size: Expr, last: Expr, first: Expr) -> Expr:
        if last == first:
            return Integer(0)
        return Expr.__new__(cls, factor, index, size, last, first)

    @property
    def bound_symbols(self):
        return [self.args[1]]

    def _eval_derivative(self, variable):
        # d prod_{s<q<t} a[q] = sum_r prod_{r<q<t} a[q] * da[r] * prod_{s<q<r} a[q]
        factor, index, size, last, first = self.args
        derivative = TotalDerivative(variable).of(factor)
        if derivative == 0:
            return derivative
        place = Dummy(index.name, integer=True)
        after, before = (
            self.func(factor, index, size, *ends) for ends in ((last, place), (place, first))
        )
        return IndexedSum(after * derivative.xreplace({index: place}) * before, (place, 1, size))
