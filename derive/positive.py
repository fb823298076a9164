"""What is positive for all values of its symbols, and what follows for roots and logarithms."""

from __future__ import annotations

from functools import lru_cache

from sympy import Add, Expr, Mul, Pow, S, exp, log
from sympy import Sum as SymbolicSum


def split_log(argument: Expr) -> Expr:
    """The logarithm of ``argument``, by log(a*b) = log(a) + log(b), log(a**k) = k*log(a) and
    log(exp(z)) = z, each only for positive a and b.
    """
    if isinstance(argument, exp):
        return argument.exp
    if isinstance(argument, Mul):
        positive = [f for f in argument.args if is_positive(f)]
        rest = Mul(*(f for f in argument.args if not is_positive(f)))
        if positive and (rest != 1 or len(positive) > 1):
            return Add(*map(split_log, positive), log(rest))
    if isinstance(argument, Pow) and is_positive(argument.base):
        return argument.exp * split_log(argument.base)
    return log(argument)


def is_positive(e: Expr) -> bool:
    """Whether ``e`` is positive for all real values of its symbols, as far as its form tells."""
    if isinstance(e, exp) or e.is_positive:
        return True
    if isinstance(e, (Add, Mul)):
        return all(map(is_positive, e.args))
    if isinstance(e, Pow):
        return is_positive(e.base)
    return isinstance(e, SymbolicSum) and is_positive(e.function)


@lru_cache(maxsize=8192)
def scaled(base: Expr) -> tuple[Expr, Expr]:
    """``base`` as a positive factor, of a number and positive symbols, times the rest.

    The root of the product is the product of the roots, whatever the sign of the rest.
    """
    if not isinstance(base, Add):
        return S.One, base
    content, primitive = base.primitive()
    powers = [term.as_powers_dict() for term in Add.make_args(primitive)]
    positive = {s for s in primitive.free_symbols if s.is_positive}
    common = {s: min(term.get(s, S.Zero) for term in powers) for s in positive}
    outside = Mul(*(s**p for s, p in common.items() if p.is_Integer))
    rest = primitive if outside == 1 else Add(*(t / outside for t in Add.make_args(primitive)))
    return content * outside, rest
