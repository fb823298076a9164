"""SymPy's sum over an index, with the choices in it left where they stand."""

from __future__ import annotations

from sympy import Dummy, Expr, Piecewise, Sum, Tuple


class OverIndices:
    """Base of nodes that bind indices, which mean nothing outside."""

    def has(self, *patterns) -> bool:
        """As SymPy's, but a choice inside is none outside, as of an array node."""
        return patterns != (Piecewise,) and super().has(*patterns)

    def _xreplace(self, rule):
        """As SymPy's, for free symbols only: a bound index is no index of that name outside, and is
        renamed where one comes in.
        """
        if self in rule:
            return rule[self], True
        own = set(self.bound_symbols)
        rule = {old: new for old, new in rule.items() if not old.free_symbols & own}
        captured = own & {s for new in rule.values() for s in new.free_symbols}
        apart = {index: Dummy(index.name, integer=True) for index in captured}
        renamed = self.func(*(arg.xreplace(apart) for arg in self.args)) if apart else self
        replaced, changed = super(OverIndices, renamed)._xreplace(rule)
        return (replaced, True) if changed else (self, False)


class IndexedSum(OverIndices, Sum):
    """``IndexedSum(e, (i, 1, n))``.

    SymPy's own `Sum` moves a `Piecewise` outside of itself, and outside of a sum in it whose index
    the condition holds, where that index means nothing (sympy 1.14).
    """

    def __new__(cls, function: Expr, *limits):
        self = Expr.__new__(cls, function, *(Tuple(*limit) for limit in limits))
        self.is_commutative = True
        return self
