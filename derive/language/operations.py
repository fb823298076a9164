"""The operations of an expression, and those that are more than arithmetic on entries."""

from __future__ import annotations

from functools import lru_cache

from sympy import Add, Basic, E, Expr, Function, Mul, Piecewise, Pow, S, fraction
from sympy.core.function import _coeff_isneg
from sympy.core.operations import LatticeOp

from derive.language.choices import Branches, Compared
from derive.language.detached import Detach
from derive.language.functions import KINKED
from derive.language.nodes import Sum
from derive.language.symbols import axes_of

CHEAP = (*KINKED, Branches, Compared, Detach, Piecewise)  # they evaluate nothing


def is_evaluated(e: Expr) -> bool:
    """Whether ``e`` is a function, a root or a power with a varying exponent: more than arithmetic
    and comparisons.
    """
    if isinstance(e, Pow):
        return not e.exp.is_Integer
    return isinstance(e, Function) and not isinstance(e, CHEAP)


def is_contraction(e: Expr) -> bool:
    """Whether ``e`` sums a product larger than each of its factors: a matrix product, never to be
    multiplied out.
    """
    if not isinstance(e, Sum) or not e.operand.is_Mul:
        return False
    whole = axes_of(e.operand)
    return all(axes_of(factor) < whole for factor in e.operand.args)


@lru_cache(maxsize=65536)  # expressions that are compared have most of their parts in common
def operations_in(e: Basic) -> int:
    """The number of operations in ``e``, as SymPy's ``count_ops`` counts them, extended to our
    notation and cached part by part, so that shared parts are counted once.
    """
    if e.is_Rational:
        return int(e.p < 0) + int(e.q != 1)
    if isinstance(e, Add):
        opposite = [_coeff_isneg(term) for term in e.args]
        terms = (-t if minus else t for t, minus in zip(e.args, opposite, strict=True))
        return len(opposite) - 1 + all(opposite) + sum(map(operations_in, terms))
    own = 0
    if isinstance(e, Mul):
        if _coeff_isneg(e):
            own, e = 1, e.as_two_terms()[1] if e.args[0] is S.NegativeOne else -e
        above, below = fraction(e)
        if above.is_Integer:
            return own + 1 + int(above.p < 0) + operations_in(below)
        if below is not S.One:
            inside = 0 if below.is_Integer else operations_in(below)
            return own + 1 + operations_in(above) + inside
    if isinstance(e, Pow) and e.exp is S.NegativeOne:
        return own + 1 + operations_in(e.base)
    if isinstance(e, (Mul, LatticeOp)):
        own += len(e.args) - 1
    elif e is E or (e.args and (e.is_Pow or e.is_Function) and not isinstance(e, Detach)):
        own += 1
    return own + sum(map(operations_in, e.args))
