"""A condition as a polynomial: 1 where it holds, and 0 elsewhere.

Of the three signs of a difference one is there. So ``a >= b``, ``b <= a`` and what is not ``a < b``
are one condition, and what holds where ``a > b`` meets nothing that holds where ``b > a``.
"""

from __future__ import annotations

from collections.abc import Callable

from sympy import And, Expr, Mul, Not, Or, S
from sympy.core.relational import Relational
from sympy.logic.boolalg import Boolean

Signs = tuple[Expr, Expr, Expr]  # 1 where a difference is above 0, below it, and 0


def holding(
    condition: Boolean, signs: Callable[[Expr], Signs], otherwise: Callable[[Boolean], Expr]
) -> Expr:
    """1 where ``condition`` holds, else 0: in the ``signs`` of differences; ``otherwise`` gives it
    for conditions of unknown kinds.
    """
    if condition in (S.true, S.false):
        return S.One if condition == S.true else S.Zero
    if isinstance(condition, Relational):
        above, below, zero = signs(condition.lhs - condition.rhs)
        return COMPARED[condition.rel_op](above, below, zero)
    if not isinstance(condition, (And, Or, Not)):
        return otherwise(condition)
    parts = [holding(part, signs, otherwise) for part in condition.args]
    if isinstance(condition, And):
        return Mul(*parts)
    return 1 - Mul(*(parts if isinstance(condition, Not) else [1 - part for part in parts]))


COMPARED: dict[str, Callable[[Expr, Expr, Expr], Expr]] = {
    ">": lambda above, below, zero: above,
    "<": lambda above, below, zero: below,
    ">=": lambda above, below, zero: 1 - below,
    "<=": lambda above, below, zero: 1 - above,
    "==": lambda above, below, zero: zero,
    "!=": lambda above, below, zero: 1 - zero,
}
