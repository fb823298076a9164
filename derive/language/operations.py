"""Which operations are more than arithmetic on entries."""

from __future__ import annotations

from sympy import Abs, Expr, Function, Piecewise, Pow, sign

from derive.language.choices import Branches, Compared
from derive.language.nodes import Sum
from derive.language.symbols import axes_of

CHEAP = (Abs, Branches, Compared, Piecewise, sign)  # they compare and choose, and evaluate nothing


def is_evaluated(e: Expr) -> bool:
    """Whether ``e`` is a function, a root or a power with a varying exponent: more than arithmetic
    and comparisons.
    """
    if isinstance(e, Pow):
        return not e.exp.is_Integer
    return isinstance(e, Function) and not isinstance(e, CHEAP)


def is_contraction(e: Expr) -> bool:
    """A sum over a product that is larger than each of its factors: a matrix product, never to
    be multiplied out.
    """
    if not isinstance(e, Sum) or not e.operand.is_Mul:
        return False
    whole = axes_of(e.operand)
    return all(axes_of(factor) < whole for factor in e.operand.args)
