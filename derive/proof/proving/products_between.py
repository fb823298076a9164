"""The product between two places of a row: the factor that a recurrence puts on its earlier terms.

``ProductBetween(a, r, n, t, s)`` is the product of ``a`` over s < r < t where s < t, and else 0.
"""

from __future__ import annotations

from itertools import permutations

from sympy import Add, Dummy, Expr, Integer, Mul, exp, expand

from derive.language.nodes import Recurrence, RecurrenceBefore
from derive.proof.proving.indexed_sum import IndexedSum, OverIndices
from derive.proof.proving.small_batch import TotalDerivative


class ProductBetween(OverIndices, Expr):
    """Its args are ``a``, the index r in it, how many places there are, and the ends t and s, which
    are counted from 1; s may be 0.
    """

    is_real = True
    is_commutative = True

    def __new__(cls, factor: Expr, index: Expr, size: Expr, last: Expr, first: Expr) -> Expr:
        if last == first:
            return Integer(0)
        if last - first == 2 and not isinstance(factor, Add):  # a sum is not multiplied out
            return factor.xreplace({index: first + 1})
        return Expr.__new__(cls, factor, index, size, last, first)

    @property
    def bound_symbols(self):
        return [self.args[1]]

    def at(self, place: Expr) -> Expr:
        """The factor at one place."""
        return self.func(*self.args[:3], place + 1, place - 1)

    def between(self, last: Expr, first: Expr) -> Expr:
        """The product between other ends."""
        return self.func(*self.args[:3], last, first)

    def _eval_derivative(self, variable):
        # d prod_{s<q<t} a[q] = sum_r prod_{r<q<t} a[q] * da[r] * prod_{s<q<r} a[q]
        factor, index, size, last, first = self.args
        derivative = TotalDerivative(variable).of(factor)
        if last - first == 2:
            return derivative.xreplace({index: first + 1})
        if derivative == 0:
            return derivative
        place = Dummy(index.name, integer=True)
        there = derivative.xreplace({index: place})
        total = self.between(last, place) * there * self.between(place, first)
        return IndexedSum(total, (place, 1, size))


def one_step(term: Expr, variable: Expr) -> Expr | None:
    """Close the sum over one step of a product between places: the sum over s of [t = s +
    1]*a[s]*P(s, u) is P(t, u) - [t = u + 1], and that of P(t, s)*a[s]*[s = u + 1] too.
    """
    products = [f for f in Mul.make_args(term) if isinstance(f, ProductBetween) and f.has(variable)]
    for step, other in permutations(products, 2):
        (*_, last, first), (*_, end, start) = step.args, other.args
        if first == end == variable:
            ends = last, start
        elif start == last == variable:
            ends = end, first
        else:
            continue
        if step.args[0] != 0:
            continue
        rest = term / (step * other * other.at(variable))
        if variable not in rest.free_symbols:
            return rest * (other.between(*ends) - step.between(*ends))
    return None


def telescoped(e: Recurrence) -> Expr | None:
    """``w``, if the factors of a recurrence are exp(Previous(w) - w): the product of those for
    s < r <= t is exp(w[s] - w[t]).
    """
    if not isinstance(e.factor, exp):
        return None
    exponent = expand(e.factor.exp)
    for step in exponent.atoms(RecurrenceBefore):
        for sign in (1, -1) if step.is_step and step.axis == e.axis else ():
            if expand(exponent - sign * (step - step.operand)) == 0:
                return sign * step.operand
    return None
