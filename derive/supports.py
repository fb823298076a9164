"""Where a value of the forward is zero, because a choice made it so.

A score that is masked out is -oo, its exponential is 0, and so is every multiple of that: of
``z = Piecewise((x, q), (-oo, True))`` the support of ``exp(z)`` is ``q``. So it is of ``exp(z)/s``
where ``s`` is not zero: positive by its form, or because a choice asks for it, as in
``Piecewise((exp(z)/s, s > 0), (0, True))``; 0/0 is not zero. Where ``q`` does not hold, nothing
that is multiplied with them needs to be chosen again.
"""

from __future__ import annotations

from collections.abc import Mapping

from sympy import Basic, Expr, Gt, Lt, Mul, Ne, Piecewise, Pow, S, exp

from derive.nodes import renamed
from derive.symbols import MINUS_INFINITY, Tensor

Conditions = frozenset[Basic]
NONE: Conditions = frozenset()


class Supports:
    """What is known of the definitions of a forward, value by value."""

    def __init__(self, definitions: Mapping[str, Expr]):
        self.definitions = definitions

    def of(self, e: Expr, not_zero: frozenset[Expr] = frozenset()) -> Conditions:
        """Conditions without each of which ``e`` is zero, where none of ``not_zero`` is."""
        return self._needed(e, S.Zero, not_zero)

    def _needed(self, e: Expr, least: Expr, not_zero: frozenset[Expr]) -> Conditions:
        """Conditions without each of which ``e`` has its least value, 0 or -oo."""
        if isinstance(e, Tensor):
            definition = self.definitions.get(e.name)
            known = NONE if definition is None else self._needed(definition, least, frozenset())
            met = dict(zip(e.home, e.axes, strict=True))
            return frozenset(renamed(condition, met) for condition in known)
        if isinstance(e, Piecewise):
            (value, condition), *others = e.args
            if any(other != least for other, _ in others):
                return NONE
            asked = {condition.lhs} if _asks_for_not_zero(condition) else set()
            return self._needed(value, least, not_zero | asked) | {condition}
        if least == MINUS_INFINITY:
            return NONE
        if isinstance(e, exp):
            return self._needed(e.exp, MINUS_INFINITY, not_zero)
        if isinstance(e, Pow) and e.exp.is_positive:
            return self.of(e.base, not_zero)
        divisors = [
            f.base for f in Mul.make_args(e) if isinstance(f, Pow) and not f.exp.is_positive
        ]
        if not isinstance(e, Mul) or any(d not in not_zero and not d.is_nonzero for d in divisors):
            return NONE
        return NONE.union(*(self.of(factor, not_zero) for factor in e.args))


def _asks_for_not_zero(condition: Basic) -> bool:
    """Whether ``condition`` is s > 0, s < 0 or s != 0."""
    return isinstance(condition, (Gt, Lt, Ne)) and condition.rhs == 0
