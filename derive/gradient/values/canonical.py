"""One spelling for equal expressions: exponentials in any base, shares of a whole of
exponentials, functions that are written out by exponentials and logarithms.

The closed form is looked for in this spelling; the statements stay as they were written, and every
line is proved against those. Only what is taken entry by entry is turned: a sum along an axis is
what it is. `equations` has the table; ``tests/test_canonical.py`` evaluates both sides of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from sympy import Add, Expr, Integer, Mul, Pow, Rational, exp, expand, factor, log, tanh

from derive.gradient.range.exponential_quotients import hyperbolic_quotient, share_of_whole
from derive.gradient.values.hyperbolic_rules import (
    beside_an_exponential,
    even_and_odd,
    number_and_function,
    of_magnitude,
    remainder,
    tangent_times_whole,
)
from derive.gradient.values.logarithm_rules import (
    exponent_inside,
    factors_apart,
    inverse_of_sine,
    inverse_of_tangent,
    larger_inside,
    number_apart,
    picked_apart,
)
from derive.language.identity import IdentityRule
from derive.language.nodes import Reduction
from derive.language.traversal import everywhere
from derive.proof.zero.positive import LARGEST_PRIME, is_positive, split_log


def canonical(e: Expr) -> Expr:
    """``e`` in the one spelling that all equations lead to.

    A remainder stays a difference where its share is read beside it: two shares are dearer.
    """
    turned = _turned(e, equations)
    exponents = {f.exp for f in turned.atoms(exp)}
    if exponents.isdisjoint(-u for u in exponents):
        return turned
    others = [equation for equation in equations if equation.rewrite is not remainder]
    return min(turned, _turned(e, others), key=lambda form: len(form.atoms(exp)))


def _turned(e: Expr, table: Iterable[IdentityRule]) -> Expr:
    def rewritten(node: Expr) -> Expr | None:
        results = (equation.rewrite(node) for equation in table)
        found = next((r for r in results if r is not None and r != node), None)
        return None if found is None else _turned(found, table)

    return everywhere(e, rewritten)


def _in_base_e(node: Expr) -> Expr | None:
    if not isinstance(node, Pow) or node.exp.is_number or not node.base.is_number:
        return None
    return exp(node.exp * _logarithm(node.base)) if node.base.is_positive else None


def _logarithm(number: Expr) -> Expr:
    """log(8) = 3*log(2), log(1/36) = -2*log(6): that of a power is a multiple of one."""
    if not isinstance(number, Rational):
        return log(number)
    primes = number.factors(limit=LARGEST_PRIME)
    times = gcd(*primes.values()) * (1 if number > 1 else -1)
    return times * log(
        Mul(*(Integer(prime) ** (power // times) for prime, power in primes.items()))
    )


def _share(node: Expr) -> Expr | None:
    if not isinstance(node, Mul) or not node.has(exp) or node.has(Reduction):
        return None
    return share_of_whole(node)


def _tangent(node: Expr) -> Expr | None:
    if not isinstance(node, Mul) or not node.has(exp) or node.has(Reduction):
        return None
    for whole in node.args:
        if not (isinstance(whole, Pow) and whole.exp == -1 and is_positive(whole.base)):
            continue
        for difference in (f for f in node.args if isinstance(f, Add)):
            parts = _parts_of(whole.base, difference)
            if parts is not None:
                a, b = parts
                rest = Mul(*(f for f in node.args if f not in (whole, difference)))
                return rest * tanh(expand((split_log(a) - split_log(b)) / 2))
    return None


def _parts_of(whole: Expr, difference: Expr) -> tuple[Expr, Expr] | None:
    """``a`` and ``b``, both positive, whose sum and whose difference the two are; None where they
    are no simpler than these.
    """
    a, b = (factor(expand((whole + side * difference) / 2)) for side in (1, -1))
    simple = a.count_ops() + b.count_ops() <= whole.count_ops()
    positive = is_positive(a) and is_positive(b)
    return (a, b) if simple and positive and (a.has(exp) or b.has(exp)) else None


def _quotient(node: Expr) -> Expr | None:
    return hyperbolic_quotient(node) if isinstance(node, Mul) else None


# The contract: ``rewrite(node)`` gives the right side, or None where the left side is not met.
equations: tuple[IdentityRule, ...] = (
    IdentityRule("a**u = exp(u*log(a))", "a is a positive number and u varies", _in_base_e),
    IdentityRule(
        "exp(k*u)/(a*exp(u) + b)**k = 1/(a + b*exp(-u))**k",
        "the divisor is a sum of positive terms",
        _share,
    ),
    IdentityRule(
        "(a - b)/(a + b) = tanh((log(a) - log(b))/2)",
        "a and b are positive and one of them holds an exponential",
        _tangent,
    ),
    IdentityRule(
        "1 + tanh(u) = 2/(1 + exp(-2*u)); 1 - tanh(u)**2 = cosh(u)**-2; 1 - erf(u) = erfc(u); "
        "1 - 2*a/(a + b) = (b - a)/(a + b)",
        "a is a number, b holds an exponential and a + b is positive",
        number_and_function,
    ),
    IdentityRule(
        "1 - a/(a + b) = b/(a + b)",
        "a is a number, b holds an exponential and a + b is positive",
        remainder,
    ),
    IdentityRule("sinh(u)/cosh(u) = tanh(u)", "always", _quotient),
    IdentityRule(
        "exp(u) + exp(-u) = 2*cosh(u); exp(u) - exp(-u) = 2*sinh(u)", "always", even_and_odd
    ),
    IdentityRule(
        "exp(u)/(a*exp(2*u) + a) = 1/(2*a*cosh(u)); exp(u)/cosh(u) = 2/(1 + exp(-2*u)); "
        "exp(u)*sinh(u) = (exp(2*u) - 1)/2",
        "always",
        beside_an_exponential,
    ),
    IdentityRule("tanh(u)*(exp(2*u) + 1) = exp(2*u) - 1", "always", tangent_times_whole),
    IdentityRule(
        "log(a*exp(u)) = log(a) + u; log(a**k) = k*log(a)",
        "a is positive; in a power it is along an axis, or holds cosh",
        factors_apart,
    ),
    IdentityRule(
        "log(Sum(OneHot(i, C)*a, C)) = Sum(OneHot(i, C)*log(a), C)",
        "a is positive and holds an exponential; i is the index of an entry along C",
        picked_apart,
    ),
    IdentityRule(
        "Max(a, b) + log(1 + exp(-Abs(a - b))) = log(exp(a) + exp(b))",
        "Max is a choice",
        larger_inside,
    ),
    IdentityRule("cosh(Abs(u)) = cosh(u)", "u is real", of_magnitude),
    IdentityRule("log(n*a) = log(n) + log(a)", "n is a positive number", number_apart),
    IdentityRule(
        "u + n*log(a + b*exp(v)) = n*log(a*exp(u/n) + b*exp(v + u/n))",
        "n is a number, the sum is positive, and the right side is no longer",
        exponent_inside,
    ),
    IdentityRule("log(u + sqrt(u**2 + 1)) = asinh(u)", "always", inverse_of_sine),
    IdentityRule(
        "log((1 + u)/(1 - u)) = 2*atanh(u), and log(1 + u) - log(1 - u)",
        "always where the left side has a value",
        inverse_of_tangent,
    ),
)
