"""Rewrites of products: multiplied out, divided, and cancelled.

The identities that these are, with the conditions under which they hold, stand in the table of
``identities.py``, which also says what a rewrite receives and returns.
"""

from __future__ import annotations

from itertools import combinations

from sympy import Add, Expr, Mul, Pow, S, exp, expand

from derive.gradient.range.exponential_quotients import hyperbolic_quotient
from derive.language.symbols import Tensor


def distribute(node, knowledge):
    if isinstance(node, Mul) and any(isinstance(f, Add) for f in node.args):
        return node.expand(deep=False, power_exp=False, power_base=False, log=False)
    if (
        isinstance(node, Pow)
        and isinstance(node.base, Add)
        and node.exp.is_Integer
        and node.exp > 1
    ):
        return node.expand(deep=False, power_exp=False, power_base=False, log=False)
    return None


def proper_fraction(node, knowledge):
    if not isinstance(node, Mul):
        return None
    powers = node.as_powers_dict()
    for total in (f for f in node.args if isinstance(f, Add)):
        for whole in total.args:
            divisor = whole.as_coeff_Mul()[1]
            if isinstance(divisor, Tensor) and powers.get(divisor, 0) == -1:
                fraction = Add(*(term / divisor for term in total.args))
                return node / total * divisor * fraction
    return None


def cancel(node, knowledge):
    if not isinstance(node, Mul):
        return None
    powers = node.as_powers_dict()
    for total in (f for f in node.args if isinstance(f, Add)):
        for divisor in sorted(_divisors_of_terms(total), key=lambda e: e.sort_key()):
            power = powers.get(divisor, S.Zero)
            if divisor != total and power.is_number and power >= 1:
                return node / total / divisor * Add(*(term * divisor for term in total.args))
    return None


def _divisors_of_terms(total: Add) -> set[Expr]:
    """The tensors and sums that a term of ``total``, or of a sum in a term, divides by."""
    found = set()
    for term in total.args:
        powers = term.as_powers_dict()
        found |= {base for base, power in powers.items() if power == -1}
        found |= {d for f in powers if isinstance(f, Add) for d in _divisors_of_terms(f)}
    return {base for base in found if isinstance(base, (Add, Tensor))}


def exponents_cancel(node, knowledge):
    if not isinstance(node, Mul):
        return None
    exponentials = [f for f in node.args if isinstance(f, exp)]
    for one, other in combinations(exponentials, 2):
        together = expand(one.exp + other.exp)
        longer = max(len(Add.make_args(f.exp)) for f in (one, other))
        if together == 0 or len(Add.make_args(together)) < longer:
            return Mul(exp(together), *(f for f in node.args if f not in (one, other)))
    return None


def hyperbolic(node, knowledge):
    return hyperbolic_quotient(node) if isinstance(node, Mul) else None
