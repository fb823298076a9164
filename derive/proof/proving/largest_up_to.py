"""The largest entry up to a place of a row, and whether an entry is that."""

from __future__ import annotations

from sympy import Dummy, Expr, Integer

from derive.proof.proving.indexed_sum import IndexedSum, OverIndices
from derive.proof.proving.products_between import ProductBetween
from derive.proof.proving.small_batch import TotalDerivative


class OfARow(OverIndices, Expr):
    """The args are the place, how many there are, the entry, and indices of its own: that of the
    entry first.
    """

    is_real = True
    is_commutative = True

    @property
    def bound_symbols(self):
        return list(self.args[3:])


class IsNewLargest(OfARow):
    """1 where the entry at the place is the largest up to itself, else 0.

    Where no other is equal it stays that, so its derivative is 0.
    """

    is_integer = True

    def _eval_derivative(self, variable):
        return Integer(0)


class LargestUpTo(OfARow):
    """y[t] = max(y[t-1], x[t]), with a second index for places between; differentiable where the
    two differ.
    """

    def _eval_derivative(self, variable):
        # dy[t] = new[t]*dx[t] + (1 - new[t])*dy[t-1]
        # = new[t]*dx[t] + sum_s (1 - new[t])*prod_{s<r<t} (1 - new[r])*new[s]*dx[s]
        last, size, entry, index, place = self.args
        derivative = TotalDerivative(variable).of(entry)
        earlier = Dummy(index.name, integer=True)

        def new(at: Expr) -> Expr:
            return IsNewLargest(at, size, entry, index)

        def moved(at: Expr) -> Expr:
            return new(at) * derivative.xreplace({index: at})

        kept = ProductBetween(1 - new(place), place, size, last, earlier)
        total = IndexedSum(kept * kept.at(last) * moved(earlier), (earlier, 1, size))
        return moved(last) + total
