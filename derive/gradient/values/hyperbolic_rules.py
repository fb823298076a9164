"""Hyperbolic functions, their shares and the error function, where they are written out.

The identities that these are, with the conditions under which they hold, stand in the table of
``canonical.py``, which also says what a rewrite receives and returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import permutations

from sympy import (
    Abs,
    Add,
    Expr,
    Mul,
    Pow,
    S,
    cosh,
    erf,
    erfc,
    exp,
    expand,
    sinh,
    tanh,
)

from derive.language.nodes import Reduction
from derive.proof.zero.positive import is_positive


def terms_and_others(node: Expr) -> Iterator[tuple[Expr, Expr, Expr]]:
    """Each pair of terms of a sum, with the remaining terms."""
    for one, other in permutations(node.args, 2) if isinstance(node, Add) else ():
        yield one, other, node - one - other


def is_plain_sum(e: Expr) -> bool:
    """Whether ``e`` holds exponentials, none of them along an axis, and is positive."""
    return e.has(exp) and not e.has(Reduction) and is_positive(e)


def exponential_apart(term: Expr) -> tuple[Expr, Expr]:
    """``a`` and ``u`` of a*exp(u)."""
    exponents = [f.exp for f in Mul.make_args(term) if isinstance(f, exp)]
    return (term / exp(exponents[0]), exponents[0]) if len(exponents) == 1 else (term, S.Zero)


def number_and_function(node: Expr) -> Expr | None:
    """``c*n + c*f`` for a number n and a function f."""
    return _put_together(node, _with_number)


def remainder(node: Expr) -> Expr | None:
    """Rewrite a whole of exponentials minus a number as the rest, which does not cancel."""
    return _put_together(node, lambda function, number: _less_share(function, number, S.One))


def _put_together(node: Expr, together: Callable) -> Expr | None:
    for term, other, rest in terms_and_others(node):
        for function in (f for f in Mul.make_args(term) if isinstance(f, (tanh, erf, erfc, Pow))):
            common = term / function
            number = other / common
            found = together(function, number) if number.is_number else None
            if found is not None:
                return rest + common * found[0] * found[1]
    return None


def _with_number(function: Expr, number: Expr) -> tuple[Expr, Expr] | None:
    """``number + function`` as a number times a form that does not cancel."""
    base, power = function.as_base_exp()
    if isinstance(base, tanh) and power == 1 and abs(number) == 1:
        return 2 * number, 1 / (1 + exp(expand(-2 * number * base.args[0])))
    if isinstance(base, tanh) and power == 2 and number == -1:
        return S.NegativeOne, cosh(base.args[0]) ** -2
    if isinstance(function, erf) and number == -1:
        return S.NegativeOne, erfc(function.args[0])
    if isinstance(function, erfc) and number in (-1, -2):
        return S.NegativeOne, erf(function.args[0]) - 1 - number
    return _less_share(function, number, S.Half)


def _less_share(function: Expr, number: Expr, share: Expr) -> tuple[Expr, Expr] | None:
    """The same of 1/(a + b), where ``number`` is -share/a."""
    whole = 1 / function
    if not is_plain_sum(whole) or number * whole.as_coeff_Add()[0] != -share:
        return None
    return number, expand(whole + 1 / number) / whole


def even_and_odd(node: Expr) -> Expr | None:
    """``a*exp(u) + a*exp(-u)`` and their difference."""
    for one, other, rest in terms_and_others(node):
        (a, u), (b, v) = map(exponential_apart, (one, other))
        if u != 0 and expand(u + v) == 0 and a in (b, -b) and not u.could_extract_minus_sign():
            return rest + 2 * a * (cosh(u) if a == b else sinh(u))
    return None


def of_magnitude(node: Expr) -> Expr | None:
    inside = node.args[0] if isinstance(node, cosh) else None
    return cosh(inside.args[0]) if isinstance(inside, Abs) else None


def beside_an_exponential(node: Expr) -> Expr | None:
    """Rewrite a product of exp(u) with sinh(u), or over an even function of u."""
    rest, u = exponential_apart(node) if isinstance(node, Mul) else (node, S.Zero)
    for f in node.args if u != 0 else ():
        base, power = f.as_base_exp()
        if isinstance(base, (sinh, cosh)) and base.args[0] not in (u, -u):
            continue
        if isinstance(f, sinh):
            return rest / f * expand(exp(u) * f.rewrite(exp))
        if isinstance(base, cosh) and power == -1:
            return 2 * rest / f / (1 + exp(-2 * u))
        if isinstance(base, Add) and power == -1 and len(base.args) == 2:
            (a, v), (b, w) = map(exponential_apart, base.args)
            if a == b and expand(v + w - 2 * u) == 0:
                return rest / f / (2 * a * cosh(expand(v - u)))
    return None


def tangent_times_whole(node: Expr) -> Expr | None:
    """tanh(u)*(a*exp(v) + a*exp(w)) with v - w = 2*u."""
    for f, whole in permutations(node.args, 2) if isinstance(node, Mul) else ():
        if isinstance(f, tanh) and isinstance(whole, Add) and len(whole.args) == 2:
            for (a, v), (b, w) in permutations(map(exponential_apart, whole.args)):
                if a == b and expand(v - w - 2 * f.args[0]) == 0:
                    return node / f / whole * a * (exp(v) - exp(w))
    return None
