"""Expressions positive for all values of their symbols; roots and logarithms simplified by it."""

from __future__ import annotations

from functools import lru_cache

from sympy import (
    Add,
    Expr,
    Ge,
    Gt,
    Le,
    Lt,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    cancel,
    exp,
    expand,
    log,
)
from sympy import Sum as SymbolicSum

LARGEST = 60  # operations of a difference that is looked into
LARGEST_PRIME = 1000  # by which numbers are divided to take them apart


def log_of_number(number: Expr) -> Expr:
    """log(12) = 2*log(2) + log(3): logarithms of numbers in those of primes."""
    if not isinstance(number, Rational) or number <= 0:
        return log(number)
    primes = number.factors(limit=LARGEST_PRIME)
    return Add(*(power * log(prime) for prime, power in primes.items()))


def split_log(argument: Expr) -> Expr:
    """The logarithm of ``argument``, by log(a*b) = log(a) + log(b), log(a**k) = k*log(a) and
    log(exp(z)) = z, each only for positive a and b.
    """
    if isinstance(argument, exp):
        return argument.exp
    if argument.is_Rational and argument.is_positive:
        return log_of_number(argument)
    if isinstance(argument, Mul):
        positive = [f for f in argument.args if is_positive(f)]
        rest = Mul(*(f for f in argument.args if not is_positive(f)))
        if positive and (rest != 1 or len(positive) > 1):
            return Add(*map(split_log, positive), log(rest))
    if isinstance(argument, Pow) and is_positive(argument.base):
        return argument.exp * split_log(argument.base)
    if isinstance(argument, Add) and argument.has(exp):
        if is_positive(argument):
            return _log_of_sum(argument)
        quotient = positive_quotient(argument)
        return _log_of_sum(argument) if quotient is None else split_log(quotient)
    return log(argument)


def in_exponentials(e: Expr) -> Expr:
    """``e`` with powers of positive numbers as exponentials."""
    return e.replace(
        lambda p: isinstance(p, Pow) and p.base.is_Rational and p.base > 0 and not p.exp.is_number,
        lambda p: exp(expand(p.exp * log_of_number(p.base))),
    )


@lru_cache(maxsize=1024)
def positive_quotient(e: Expr) -> Expr | None:
    """A difference such as 1 - 1/(1 + exp(-x)) as the quotient of positive sums that it is, or
    None.
    """
    divided = any(p.exp.is_negative for p in e.atoms(Pow))
    if e.has(Piecewise) or e.count_ops() > LARGEST or not divided:
        return None
    above, below = cancel(e).as_numer_denom()
    for sign in (1, -1):
        positive = expand(sign * above), expand(sign * below)
        if all(map(is_positive, positive)):
            return positive[0] / positive[1]
    return None


def logarithm_of_positive(base: Expr) -> Expr | None:
    """The logarithm of ``base``, if its form shows that it is positive."""
    base = base if is_positive(base) else positive_quotient(base)
    return None if base is None else split_log(base)


def _log_of_sum(e: Add) -> Expr:
    """log(c*a*exp(u) + c*b*exp(v)) = u + log(c) + log(a + b*exp(v - u)), for a positive sum."""
    exponent, rest = _exponential_apart(e)
    content, rest = rest.primitive()
    return exponent + log(content) + log(rest)


def _exponential_apart(e: Add) -> tuple[Expr, Expr]:
    """``k`` and ``r`` with ``e = exp(k)*r``.

    Of all the exponents the one that is taken out is the first in an order that adding the same to
    all of them does not change, so sums that differ by an exponential have one ``r``.
    """
    terms = []
    for term in e.args:
        parts = [_factor_apart(f) for f in Mul.make_args(term)]
        exponent = expand(Add(*(k for k, _ in parts)))
        terms.append((Mul(*(r for _, r in parts)), exponent, exponent.as_coefficients_dict()))
    atoms = sorted({atom for *_, powers in terms for atom in powers}, key=lambda a: a.sort_key())
    _, first, _ = min(terms, key=lambda term: [term[2].get(atom, S.Zero) for atom in atoms])
    return first, Add(*(factor * exp(expand(exponent - first)) for factor, exponent, _ in terms))


def _factor_apart(factor: Expr) -> tuple[Expr, Expr]:
    """The same of a factor: an exponential, or a whole power of a sum with such in it."""
    if isinstance(factor, exp):
        return factor.exp, S.One
    base, power = factor.as_base_exp()
    if not isinstance(base, Add) or not base.has(exp) or not power.is_Integer:
        return S.Zero, factor
    exponent, rest = _exponential_apart(base)
    return power * exponent, rest**power


def is_positive(e: Expr) -> bool:
    """Whether ``e`` is positive for all real values of its symbols, as far as its form tells."""
    if isinstance(e, exp) or e.is_positive:
        return True
    if isinstance(e, Add):
        return all(map(_is_nonnegative, e.args)) and any(map(is_positive, e.args))
    if isinstance(e, Mul):
        return all(map(is_positive, e.args))
    if isinstance(e, Pow):
        return is_positive(e.base)
    return isinstance(e, SymbolicSum) and is_positive(e.function)


def _is_nonnegative(e: Expr) -> bool:
    """Whether ``e`` is nonnegative so; of a choice each branch where it is chosen."""
    if isinstance(e, Piecewise):
        return all(_is_nonnegative_where(*branch.args) for branch in e.args)
    return bool(e.is_nonnegative) or is_positive(e)


def _is_nonnegative_where(e: Expr, condition) -> bool:
    orders = isinstance(condition, (Ge, Gt, Le, Lt))
    return (orders and e == condition.gts - condition.lts) or _is_nonnegative(e)


@lru_cache(maxsize=8192)
def scaled(base: Expr) -> tuple[Expr, Expr]:
    """``base`` as a positive factor, of a number, an exponential and positive symbols, times the
    rest.

    The root of the product is the product of the roots, whatever the sign of the rest.
    """
    if not isinstance(base, Add):
        return S.One, base
    exponent, base = _exponential_apart(base) if base.has(exp) else (S.Zero, base)
    content, primitive = base.primitive()
    powers = [term.as_powers_dict() for term in Add.make_args(primitive)]
    positive = {s for s in primitive.free_symbols if s.is_positive}
    common = {s: min(term.get(s, S.Zero) for term in powers) for s in positive}
    outside = Mul(*(s**p for s, p in common.items() if p.is_Integer))
    rest = primitive if outside == 1 else Add(*(t / outside for t in Add.make_args(primitive)))
    return content * outside * exp(exponent), rest
