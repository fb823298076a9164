"""Quotients of exponentials: how they are recognised, and turned so that none overflows."""

from __future__ import annotations

from sympy import Add, Expr, Mul, Pow, S, cosh, exp, expand, sinh, tanh

from derive.language.symbols import is_constant
from derive.proof.zero.positive import is_positive


def over_positive_sums(product: Expr) -> Expr:
    """exp(u)/(a*exp(v) + b) = 1/(a*exp(v - u) + b*exp(-u)), and sinh(u)/cosh(u) = tanh(u)."""
    product = hyperbolic_quotient(product) or product
    factors = list(Mul.make_args(product))
    exponent = Add(*(f.exp for f in factors if isinstance(f, exp)))
    rest = [f for f in Mul.make_args(Mul(*factors)) if not isinstance(f, exp)]
    for i, factor in enumerate(rest):
        base, power = factor.as_base_exp()
        divides = power.is_Integer and power < 0 and isinstance(base, Add)
        if not divides or exponent == 0 or not is_positive(base) or not base.has(exp):
            continue
        times = next((n for n in range(2, 1 - power) if _is_multiple(exponent, base, n)), 1)
        share = exponent / times
        turned = Add(*(one_exponential(term * exp(-share)) for term in base.args))
        return Mul(*rest[:i], *rest[i + 1 :], turned**-times, base ** (power + times))
    return Mul(*factors)


def hyperbolic_quotient(product: Expr) -> Expr | None:
    """sinh(u)/cosh(u) = tanh(u), as often as it is met."""
    turned, powers = product, product.as_powers_dict()
    for u in {f.args[0] for f in powers if isinstance(f, sinh)}:
        count = powers[sinh(u)]
        if count.is_Integer and 0 < count <= -powers.get(cosh(u), S.Zero):
            turned *= (tanh(u) * cosh(u) / sinh(u)) ** count
    return None if turned == product else turned


def share_of_whole(product: Expr) -> Expr | None:
    """exp(k*u)/(a*exp(u) + b)**k = 1/(a + b*exp(-u))**k; None where no term of a positive sum goes
    with the exponential above it.
    """
    exponent = Add(*(f.exp for f in Mul.make_args(product) if isinstance(f, exp)))
    rest = [f for f in Mul.make_args(product) if not isinstance(f, exp)]
    for factor in rest:
        base, power = factor.as_base_exp()
        divides = power.is_Integer and power < 0 and isinstance(base, Add) and is_positive(base)
        if divides and exponent != 0 and _is_multiple(exponent, base, -power):
            share = exponent / -power
            turned = Add(*(one_exponential(term * exp(-share)) for term in base.args))
            return Mul(*(f for f in rest if f is not factor), turned**power)
    return None


def one_exponential(e: Expr) -> Expr:
    """A product of exponentials as one."""
    coefficient, exponents = S.One, S.Zero
    for factor in Mul.make_args(e):
        if isinstance(factor, exp):
            exponents += factor.exp
        else:
            coefficient *= factor
    return coefficient * exp(expand(exponents))


def _is_multiple(exponent: Expr, base: Add, times: int) -> bool:
    """Whether the exponent is so many times that of a term of ``base``."""
    return any(
        isinstance(f, exp) and expand(times * f.exp - exponent) == 0
        for term in base.args
        for f in Mul.make_args(term)
    )


def constant_of(e: Expr) -> Expr | None:
    """The number ``a``, if ``e`` is a + b*exp(u), both positive."""
    if not isinstance(e, Add) or len(e.args) != 2:
        return None
    constants = [term for term in e.args if is_constant(term) and term.is_positive]
    exponentials = [f for term in e.args for f in Mul.make_args(term) if isinstance(f, exp)]
    if len(constants) != 1 or len(exponentials) != 1:
        return None
    factor = (e - constants[0]) / exponentials[0]
    return constants[0] if is_constant(factor) and factor.is_positive else None


def is_share(e: Expr) -> bool:
    """Whether ``e`` is a power of 1/(a + b*exp(u))."""
    return isinstance(e, Pow) and e.exp.is_Integer and e.exp < 0 and constant_of(e.base) is not None
