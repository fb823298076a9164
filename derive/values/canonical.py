"""One spelling for what can be written in several: exponentials in any base, shares of a whole of
exponentials, functions that are written out by exponentials and logarithms.

The closed form is looked for in this spelling; the statements stay as they were written, and every
line is proved against those. Only what is taken entry by entry is turned: a sum along an axis is
what it is. `equations` has the table; ``tests/test_canonical.py`` evaluates both sides of each.
"""

from __future__ import annotations

from itertools import permutations
from math import gcd

from sympy import (
    Abs,
    Add,
    Expr,
    Integer,
    Mul,
    Piecewise,
    Pow,
    Rational,
    S,
    asinh,
    atanh,
    cosh,
    erf,
    erfc,
    exp,
    expand,
    factor,
    factor_terms,
    log,
    preorder_traversal,
    sinh,
    tanh,
)

from derive.language.identity import Identity
from derive.language.nodes import OneHot, Reduction, Sum
from derive.language.traversal import everywhere
from derive.range.exponents import is_extreme
from derive.range.exponential_quotients import hyperbolic_quotient, share_of_whole
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


def _beside_a_number(node: Expr) -> Expr | None:
    """``c*n + c*f`` for a number n and a function f."""
    for term, other in permutations(node.args, 2) if isinstance(node, Add) else ():
        for function in Mul.make_args(term):
            factor_of_both = term / function
            number = other / factor_of_both
            found = _with_number(function, number) if number.is_number else None
            if found is not None:
                coefficient, rest = found
                return node - term - other + factor_of_both * coefficient * rest
    return None


def _with_number(function: Expr, number: Expr) -> tuple[Expr, Expr] | None:
    """``number + function`` as a number times what holds none that cancels."""
    if isinstance(function, tanh) and abs(number) == 1:
        return 2 * number, 1 / (1 + exp(-2 * number * function.args[0]))
    if number == -1 and function.is_Pow and isinstance(function.base, tanh) and function.exp == 2:
        return S.NegativeOne, cosh(function.base.args[0]) ** -2
    if isinstance(function, erf) and number == -1:
        return S.NegativeOne, erfc(function.args[0])
    if isinstance(function, erfc) and number in (-1, -2):
        return S.NegativeOne, erf(function.args[0]) - 1 - number
    whole = 1 / function
    if not isinstance(whole, Add) or not _is_plain_sum(whole):
        return None
    share = number * whole.as_coeff_Add()[0]
    return (number, expand(whole + 1 / number) / whole) if share in (-1, -S.Half) else None


def _is_plain_sum(e: Expr) -> bool:
    return e.has(exp) and not e.has(Reduction) and is_positive(e)


def _hyperbolic_quotient(node: Expr) -> Expr | None:
    return hyperbolic_quotient(node) if isinstance(node, Mul) else None


def _hyperbolic(node: Expr) -> Expr | None:
    """``a*exp(u) + a*exp(-u)`` and their difference."""
    for one, other in permutations(node.args, 2) if isinstance(node, Add) else ():
        (a, u), (b, v) = map(_exponential_of, (one, other))
        if u != 0 and expand(u + v) == 0 and a in (b, -b) and not u.could_extract_minus_sign():
            return node - one - other + 2 * a * (cosh(u) if a == b else sinh(u))
    return None


def _exponential_of(term: Expr) -> tuple[Expr, Expr]:
    """``a`` and ``u`` of a*exp(u)."""
    exponents = [f.exp for f in Mul.make_args(term) if isinstance(f, exp)]
    return (term / exp(exponents[0]), exponents[0]) if len(exponents) == 1 else (term, S.Zero)


def _beside_an_exponential(node: Expr) -> Expr | None:
    """exp(u)/(a*exp(2*u) + a) and exp(u)/cosh(u)."""
    if not isinstance(node, Mul):
        return None
    power, u = _exponential_of(node)
    for function in node.args:
        if isinstance(function, sinh) and function.args[0] in (u, -u):
            rest = power / function
            return rest * factor_terms(expand(exp(u) * function.rewrite(exp)))
    for whole in node.args:
        if whole.is_Pow and whole.exp == -1 and isinstance(whole.base, cosh):
            if expand(u**2 - whole.base.args[0] ** 2) == 0:
                return 2 * power / whole / (1 + exp(-2 * u))
        if whole.is_Pow and whole.exp == -1 and len(whole.base.args) == 2:
            (a, v), (b, w) = map(_exponential_of, whole.base.args)
            if u != 0 and a == b and expand(v + w - 2 * u) == 0:
                return power / whole / (2 * a * cosh(expand(v - u)))
    return None


def _tangent_times_a_sum(node: Expr) -> Expr | None:
    for function, whole in permutations(node.args, 2) if isinstance(node, Mul) else ():
        if isinstance(function, tanh) and isinstance(whole, Add) and len(whole.args) == 2:
            (a, u), (b, v) = map(_exponential_of, whole.args)
            side = {0: 0, 1: 1, -1: -1}.get((u - v) / (2 * function.args[0]), 0)
            if a == b and side:
                return node / function / whole * a * side * (exp(u) - exp(v))
    return None


def _logarithm_apart(node: Expr) -> Expr | None:
    """That of a product or a power with an exponential, or of what is picked of such."""
    e = node.args[0] if isinstance(node, log) and node.has(exp, cosh) else S.Zero
    if isinstance(e, Pow) and not isinstance(e, exp) and is_positive(e.base):
        return e.exp * log(e.base)
    if isinstance(e, Sum):
        hots = [f for f in Mul.make_args(e.operand) if isinstance(f, OneHot)]
        entry = Mul(*(f for f in Mul.make_args(e.operand) if f not in hots))
        own = [(hot.axis,) for hot in hots] == [e.axes]
        return e.on(hots[0] * log(entry)) if own and is_positive(entry) else None
    apart = [f for f in Mul.make_args(e) if isinstance(f, exp) or _is_picked(f)]
    rest = Mul(*(f for f in Mul.make_args(e) if f not in apart))
    if not isinstance(e, Mul) or not apart or not is_positive(rest):
        return None
    return Add(*(f.exp if isinstance(f, exp) else log(f) for f in apart), log(rest))


def _is_picked(e: Expr) -> bool:
    """Whether ``e`` is positive, the entry that a label picks."""
    return isinstance(e, Sum) and e.operand.has(OneHot) and e.operand.has(exp)


def _sum_with_its_larger(node: Expr) -> Expr | None:
    """n*log(1 + exp(-Abs(a - b))) and n times the larger of a and b, or -n times the smaller."""
    for term, other in permutations(node.args, 2) if isinstance(node, Add) else ():
        number, logarithm = term.as_coeff_Mul()
        times, choice = other.as_coeff_Mul()
        side = times / number
        if not isinstance(logarithm, log) or not isinstance(choice, Piecewise) or abs(side) != 1:
            continue
        if is_extreme(choice, largest=side == 1):
            a, b = (side * value for value, _ in choice.args)
            if logarithm.args[0] == 1 + exp(-Abs(a - b)):
                return node - term - other + number * log(exp(a) + exp(b))
    return None


def _mean_by_shares(node: Expr) -> Expr | None:
    for total, whole in permutations(node.args, 2) if isinstance(node, Mul) else ():
        if not isinstance(total, Sum) or not whole.is_Pow or whole.exp != -1:
            continue
        weight = whole.base.operand if isinstance(whole.base, Sum) else S.Zero
        if weight in total.operand.args and weight.is_positive and total.axes == whole.base.axes:
            return node / total / whole * total.on(total.operand * whole)
    return None


def _even(node: Expr) -> Expr | None:
    inside = node.args[0] if isinstance(node, cosh) else None
    return cosh(inside.args[0]) if isinstance(inside, Abs) else None


def _number_apart(node: Expr) -> Expr | None:
    if not isinstance(node, log) or not node.has(exp, cosh, tanh) or node.has(Reduction):
        return None
    inside = node.args[0]
    number, rest = inside.primitive() if isinstance(inside, Add) else inside.as_coeff_Mul()
    return log(number) + log(rest) if number.is_positive and number != 1 else None


def _into_the_logarithm(node: Expr) -> Expr | None:
    for term, other in permutations(node.args, 2) if isinstance(node, Add) else ():
        number, logarithm = term.as_coeff_Mul()
        whole = logarithm.args[0].rewrite(cosh, exp) if isinstance(logarithm, log) else S.Zero
        if not _is_plain_sum(whole) or not other.free_symbols:
            continue
        joined = number * log(expand(whole * exp(other / number), power_exp=False))
        if _length(joined) <= _length(term + other):
            return node - term - other + joined
    return None


def _length(e: Expr) -> tuple[int, Expr]:
    """By what of two equal expressions the shorter one is found: symbols, then operations."""
    return sum(not node.args for node in preorder_traversal(e) if node.free_symbols), e.count_ops()


def _inverse_hyperbolic(node: Expr) -> Expr | None:
    if not isinstance(node, log) or not isinstance(node.args[0], Add) or len(node.args[0].args) != 2:
        return None
    for one, root in permutations(node.args[0].args):
        if isinstance(root, Pow) and root.exp == S.Half and expand(root.base - one**2) == 1:
            return asinh(one)
    return None


def _inverse_tangent(node: Expr) -> Expr | None:
    """(1 + u)/(1 - u) under a logarithm, or in two of them."""
    if isinstance(node, log):
        above, below = node.args[0].as_numer_denom()
        u = expand(above - 1)
        return 2 * atanh(u) if u.free_symbols and expand(above + below) == 2 else None
    for one, other in permutations(node.args, 2) if isinstance(node, Add) else ():
        (a, f), (b, g) = one.as_coeff_Mul(), other.as_coeff_Mul()
        if a + b == 0 and a > 0 and isinstance(f, log) and isinstance(g, log):
            if f.free_symbols and expand(f.args[0] + g.args[0]) == 2:
                return node - one - other + 2 * a * atanh(expand(f.args[0] - 1))
    return None


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
    Identity(
        "1 + tanh(u) = 2/(1 + exp(-2*u)); 1 - erf(u) = erfc(u); 1 - a/(a + b) = b/(a + b); "
        "1 - 2*a/(a + b) = (b - a)/(a + b)",
        "a is a number, b holds an exponential and a + b is positive",
        _beside_a_number,
    ),
    Identity("sinh(u)/cosh(u) = tanh(u)", "always", _hyperbolic_quotient),
    Identity("exp(u) + exp(-u) = 2*cosh(u); exp(u) - exp(-u) = 2*sinh(u)", "always", _hyperbolic),
    Identity(
        "exp(u)/(a*exp(2*u) + a) = 1/(2*a*cosh(u)); exp(u)/cosh(u) = 2/(1 + exp(-2*u)); "
        "exp(u)*sinh(u) = (exp(2*u) - 1)/2",
        "always",
        _beside_an_exponential,
    ),
    Identity("tanh(u)*(exp(2*u) + 1) = exp(2*u) - 1", "always", _tangent_times_a_sum),
    Identity(
        "log(a*exp(u)) = log(a) + u; log(a**k) = k*log(a); "
        "log(Sum(OneHot(i, C)*a, C)) = Sum(OneHot(i, C)*log(a), C)",
        "a is positive",
        _logarithm_apart,
    ),
    Identity(
        "Max(a, b) + log(1 + exp(-Abs(a - b))) = log(exp(a) + exp(b))",
        "Max is a choice",
        _sum_with_its_larger,
    ),
    Identity("Sum(e*v, C)/Sum(e, C) = Sum(e/Sum(e, C)*v, C)", "e is positive", _mean_by_shares),
    Identity("cosh(Abs(u)) = cosh(u)", "u is real", _even),
    Identity("log(n*a) = log(n) + log(a)", "n is a positive number", _number_apart),
    Identity(
        "u + n*log(a + b*exp(v)) = n*log(a*exp(u/n) + b*exp(v + u/n))",
        "n is a number, the sum is positive, and the right side is no longer",
        _into_the_logarithm,
    ),
    Identity(
        "log(u + sqrt(u**2 + 1)) = asinh(u)", "always", _inverse_hyperbolic
    ),
    Identity(
        "log((1 + u)/(1 - u)) = 2*atanh(u), and log(1 + u) - log(1 - u)",
        "always where the left side has a value",
        _inverse_tangent,
    ),
)
