"""Factor a sum of products: the last step to a closed form.

Only whole factors move, so the result is the same polynomial. What all terms share goes out first;
then the factor that saves most among some of the terms, as long as that saves multiplications.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from sympy import Add, Expr, Integer, Mul, Piecewise, Pow, Rational, S

from derive.language.nodes import Reindexing, Sum
from derive.language.symbols import axes_of, is_constant, is_number_or_size


@lru_cache(maxsize=8192)  # a search for names meets the same ones again
def factored(e: Expr) -> Expr:
    """``e`` with common factors outside, also inside of its sums."""
    return _without_minus(_factored(e))


def _factored(e: Expr) -> Expr:
    if isinstance(e, (Sum, Reindexing)):
        return e.on(_factored(e.operand))
    if isinstance(e, (Mul, Pow)):
        return _from_numbers(e.func(*map(_factored, e.args)))
    if not isinstance(e, Add):
        return e
    terms = [_powers(_factored(term)) for term in e.args]
    common = _common(terms)
    outside = _product(common)
    inside = [_without(term, common) for term in terms]
    return _from_numbers(outside * _grouped(inside))


def _from_numbers(e: Expr) -> Expr:
    """``y**2 - 1`` as the opposite of ``1 - y**2``, and ``-a*(b - c)`` as ``a*(c - b)``."""
    number, rest = e.as_coeff_Mul(rational=True)
    factors = list(Mul.make_args(rest))
    for i, factor in enumerate(factors):
        first = next((term for term in Add.make_args(factor) if term.is_number), S.Zero)
        negative = number.is_negative if first == 0 or is_constant(factor) else first.is_negative
        if negative and _is_difference(factor):
            number, factors[i] = -number, -factor
    return number * Mul(*factors)


def _without_minus(e: Expr) -> Expr:
    """``-a*(1 - b)`` as ``a*(b - 1)``, which is one operation less; ``-a*(b + c*(d - e))`` too."""
    number, rest = e.as_coeff_Mul(rational=True)
    for factor in Mul.make_args(rest) if number.is_negative else ():
        opposite = _opposite(factor)
        if opposite is not None:
            return -number * (rest / factor) * opposite
    return e


def _opposite(e: Expr) -> Expr | None:
    """``-e``, where that takes no operation more: for a sum with a subtracted term, or with such a
    sum as a factor.
    """
    if isinstance(e, Mul):
        inside = ((factor, _opposite(factor)) for factor in e.args if isinstance(factor, Add))
        found = next((e / factor * other for factor, other in inside if other is not None), None)
        return -e if e.could_extract_minus_sign() else found
    if not isinstance(e, Add):
        return None
    terms = [_opposite(term) for term in e.args]
    if all(other is None for other in terms):
        return None
    return Add(*(-own if new is None else new for own, new in zip(e.args, terms, strict=True)))


def _is_difference(e: Expr) -> bool:
    return isinstance(e, Add) and any(term.could_extract_minus_sign() for term in e.args)


Powers = dict[Expr, Expr]


def _powers(term: Expr) -> Powers:
    coefficient, rest = term.as_coeff_Mul()
    powers: Powers = {}
    for factor in Mul.make_args(rest):
        base, power = _base_and_power(factor)
        powers[base] = power
    powers[S.One] = coefficient
    return powers


def _base_and_power(factor: Expr) -> tuple[Expr, Expr]:
    """A quotient that is chosen where it has a value is a power too: of one over the divisor."""
    if isinstance(factor, Pow) and factor.exp.is_Rational:
        return factor.args
    if isinstance(factor, Piecewise):
        value, *others = {value for value, _ in factor.args if value != 0}
        quotient = isinstance(value, Pow) and value.exp.is_Integer and value.exp.is_negative
        if quotient and not others:
            inside = ((1 / value.base if v != 0 else v, condition) for v, condition in factor.args)
            return Piecewise(*inside), -value.exp
    return factor, S.One


def _product(powers: Powers) -> Expr:
    return Mul(powers.get(S.One, S.One), *(b**p for b, p in powers.items() if b != 1))


def _common(terms: list[Powers]) -> Powers:
    """The factors that every term has, each in the power nearest to zero; a number if it is the
    same up to sign.
    """
    common: Powers = {}
    for base in terms[0]:
        powers = [term.get(base, S.Zero) for term in terms]
        if base == 1:
            same = len({abs(p) for p in powers}) == 1
            sign = -1 if all(p.is_negative for p in powers) else 1
            common[base] = sign * abs(powers[0]) if same else Integer(sign)
        elif all(p.is_positive for p in powers):
            common[base] = min(powers)
        elif all(p.is_negative for p in powers):
            common[base] = max(powers)
    return common


def _without(term: Powers, common: Powers) -> Powers:
    rest = {base: power - common.get(base, 0) for base, power in term.items() if base != 1}
    rest = {base: power for base, power in rest.items() if power != 0}
    rest[S.One] = Rational(term[S.One]) / common.get(S.One, S.One)
    return rest


def _grouped(terms: list[Powers]) -> Expr:
    """The sum of the terms, with the largest shared factor taken out, so that large factors are
    multiplied once; of equally large ones the most shared.
    """
    counts = Counter(
        base
        for term in terms
        for base, power in term.items()
        if power.is_positive and not is_number_or_size(base)
    )
    shared = [(count, base) for base, count in counts.items() if 2 <= count < len(terms)]
    if not shared:
        return Add(*map(_product, terms))
    base = min(shared, key=lambda pair: (-len(axes_of(pair[1])), -pair[0], pair[1].sort_key()))[1]
    inside = [term for term in terms if term.get(base, S.Zero).is_positive]
    others = [term for term in terms if not term.get(base, S.Zero).is_positive]
    common = _common(inside)
    group = _from_numbers(_product(common) * _grouped([_without(term, common) for term in inside]))
    return group + (_grouped(others) if len(others) > 1 else _product(others[0]))


def common_factor(products: list[Expr]) -> Expr:
    """The common factor of the products, numbers apart."""
    common = _common([_powers(product) for product in products])
    return Mul(*(base**power for base, power in common.items() if base != 1))
