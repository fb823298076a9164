"""One spelling for what can be written in several: exponentials in any base, shares of a whole of
exponentials, hyperbolic tangents.

The closed form is looked for in this spelling; the statements stay as they were written, and every
line is proved against those. Only what is taken entry by entry is turned: a sum along an axis is
what it is. `equations` has the table; ``tests/test_canonical.py`` evaluates both sides of each.
"""

from __future__ import annotations

from math import gcd

from sympy import Add, Expr, Integer, Mul, Pow, Rational, exp, expand, factor, log, tanh

from derive.language.identity import Identity
from derive.language.nodes import Reduction
from derive.language.traversal import everywhere
from derive.range.exponential_quotients import share_of_whole
from derive.zero.positive import LARGEST_PRIME, is_positive, split_log


def canonical(e: Expr) -> Expr:
    """``e`` in the one spelling that all equations lead to."""

    def rewritten(node: Expr) -> Expr | None:
        results = (equation.rewrite(node) for equation in equations)
        found = next((r for r in results if r is not None and r != node), None)
        return None if found is None else canonical(found)

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


# The contract: ``rewrite(node)`` gives the right side, or None where the left side is not met.
equations: tuple[Identity, ...] = (
    Identity("a**u = exp(u*log(a))", "a is a positive number and u varies", _in_base_e),
    Identity(
        "exp(k*u)/(a*exp(u) + b)**k = 1/(a + b*exp(-u))**k",
        "the divisor is a sum of positive terms",
        _share,
    ),
    Identity(
        "(a - b)/(a + b) = tanh((log(a) - log(b))/2)",
        "a and b are positive and one of them holds an exponential",
        _tangent,
    ),
)
