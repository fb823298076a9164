"""Logarithms: taken apart, put together, and inverse functions that are written out by them.

The identities that these are, with the conditions under which they hold, stand in the table of
``canonical.py``, which also says what a rewrite receives and returns.
"""

from __future__ import annotations

from sympy import (
    Abs,
    Add,
    Expr,
    Mul,
    Piecewise,
    Pow,
    S,
    asinh,
    atanh,
    cosh,
    exp,
    expand,
    log,
    preorder_traversal,
    tanh,
)

from derive.gradient.range.exponents import is_extreme, positive_picked
from derive.gradient.values.hyperbolic_rules import is_plain_sum, terms_and_others
from derive.language.nodes import Reduction
from derive.proof.zero.positive import is_positive


def number_apart(node: Expr) -> Expr | None:
    if not isinstance(node, log) or not node.has(exp, cosh, tanh) or node.has(Reduction):
        return None
    inside = node.args[0]
    number, rest = inside.primitive() if isinstance(inside, Add) else inside.as_coeff_Mul()
    return log(number) + log(rest) if number.is_positive and number != 1 else None


def factors_apart(node: Expr) -> Expr | None:
    """Of a product the exponentials and what is picked of them, and the exponent of a power."""
    e = node.args[0] if isinstance(node, log) and node.has(exp, cosh) else S.Zero
    if isinstance(e, Pow) and is_positive(e.base) and not is_plain_sum(e.base):
        return e.exp * log(e.base)
    apart = [f for f in Mul.make_args(e) if isinstance(f, exp) or positive_picked(f) is not None]
    rest = Mul(*(f for f in Mul.make_args(e) if f not in apart))
    if not isinstance(e, Mul) or not apart or not is_positive(rest):
        return None
    of_rest = rest.exp * log(rest.base) if rest.is_Pow else log(rest)
    return Add(*(f.exp if isinstance(f, exp) else log(f) for f in apart), of_rest)


def picked_apart(node: Expr) -> Expr | None:
    found = positive_picked(node.args[0]) if isinstance(node, log) and node.has(exp) else None
    if found is None:
        return None
    hot, entry = found
    return node.args[0].on(hot * log(entry))


def exponent_inside(node: Expr) -> Expr | None:
    """``u + n*log(s)`` as a logarithm, unless that is longer."""
    for term, other, rest in terms_and_others(node):
        number, logarithm = term.as_coeff_Mul()
        whole = logarithm.args[0].rewrite(cosh, exp) if isinstance(logarithm, log) else S.Zero
        if not is_plain_sum(whole) or not other.free_symbols:
            continue
        joined = number * log(expand(whole * exp(other / number), power_exp=False))
        if _length(joined) <= _length(term + other):
            return rest + joined
    return None


def _length(e: Expr) -> tuple[int, Expr]:
    """Sort key for equal expressions, the shorter first: symbols, then operations."""
    return sum(node.is_Symbol for node in preorder_traversal(e)), e.count_ops()


def larger_inside(node: Expr) -> Expr | None:
    """``n*log(1 + exp(-Abs(a - b)))`` and n times the larger, or -n times the smaller of -a, -b."""
    for term, other, rest in terms_and_others(node):
        number, logarithm = term.as_coeff_Mul()
        times, choice = other.as_coeff_Mul()
        side = times / number
        if not isinstance(logarithm, log) or not isinstance(choice, Piecewise) or abs(side) != 1:
            continue
        if is_extreme(choice, largest=side == 1):
            a, b = (side * value for value, _ in choice.args)
            if logarithm.args[0] == 1 + exp(-Abs(a - b)):
                return rest + number * log(exp(a) + exp(b))
    return None


def inverse_of_sine(node: Expr) -> Expr | None:
    inside = node.args[0] if isinstance(node, log) else S.Zero
    for u, root, rest in terms_and_others(inside):
        if rest == 0 and root.is_Pow and root.exp == S.Half and expand(root.base - u**2) == 1:
            return asinh(u)
    return None


def inverse_of_tangent(node: Expr) -> Expr | None:
    """atanh for a quotient under a logarithm, or for the difference of two logarithms."""
    if isinstance(node, log):
        u = _share_apart(*node.args[0].as_numer_denom())
        return None if u is None else 2 * atanh(u)
    for one, other, rest in terms_and_others(node):
        (a, f), (b, g) = one.as_coeff_Mul(), other.as_coeff_Mul()
        both = isinstance(f, log) and isinstance(g, log) and a + b == 0 and a > 0
        u = _share_apart(f.args[0], g.args[0]) if both else None
        if u is not None:
            return rest + 2 * a * atanh(u)
    return None


def _share_apart(above: Expr, below: Expr) -> Expr | None:
    """``u``, that holds no number beside others, where the two are k*(1 + u) and k*(1 - u)."""
    twice = expand(above + below)
    if not (twice.is_positive and twice.is_number and above.free_symbols):
        return None
    u = expand(2 * above / twice - 1)
    return u if u.as_coeff_Add()[0] == 0 else None
