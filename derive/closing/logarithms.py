"""Logarithms of products and exponentials, split: ``log(exp(z)/s)`` is ``z - log(s)``, and stays
finite.

The identities, for positive a and b: log(a*b) = log(a) + log(b); log(a**k) = k*log(a); log(exp(z))
= z. They are used only where they remove an exponential, which could overflow, or underflow to a
logarithm of zero. The logarithm of the entry that a label picks is picked from the logarithms.
"""

from __future__ import annotations

from sympy import Add, Expr, Mul, Pow, exp, log

from derive.language.nodes import OneHot, Sum
from derive.language.symbols import Tensor, axes_of
from derive.values.relations import Relations


def split_logarithms(e: Expr, relations: Relations) -> Expr:
    """``e`` with its logarithms split where that removes an exponential, also one behind the
    name of a value.
    """

    def split(node: Expr) -> Expr:
        parts = _logarithm(node.args[0], relations)
        return node if parts is None else parts

    return e.replace(lambda node: isinstance(node, log), split)


def picked_logarithms(e: Expr, relations: Relations) -> Expr:
    """``e`` with log(Sum(OneHot(i, C)*a, C)) = Sum(OneHot(i, C)*log(a), C) used, for positive a,
    also where the sum has a name, and only where log(a) would not stay finite as it stands.
    """

    def picked(node: Expr) -> Expr:
        total = node.args[0]
        if isinstance(total, Tensor) and total.name in relations.by_name:
            total = relations.unfolded(total)
        if not isinstance(total, Sum):
            return node
        factors = Mul.make_args(total.operand)
        hots = [f for f in factors if isinstance(f, OneHot) and total.axes == (f.axis,)]
        entry = Mul(*(f for f in factors if f not in hots))
        if len(hots) != 1 or not entry.is_positive or not relations.scales.overflows(log(entry)):
            return node
        return total.on(hots[0] * log(entry))

    return e.replace(lambda node: isinstance(node, log), picked)


def _logarithm(e: Expr, relations: Relations) -> Expr | None:
    """The logarithm of ``e`` without the exponentials in it, or None where there are none to
    remove.
    """
    if isinstance(e, exp):
        return e.exp
    if isinstance(e, Tensor) and e.name in relations.by_name and e.is_positive:
        return _logarithm(relations.unfolded(e), relations)
    if isinstance(e, Mul) and all(factor.is_positive for factor in e.args):
        parts = [(factor, _logarithm(factor, relations)) for factor in e.args]
        if all(part is None for _, part in parts):
            return None
        return Add(*(_plain_logarithm(f, relations) if part is None else part for f, part in parts))
    if isinstance(e, Pow) and e.base.is_positive:
        inner = _logarithm(e.base, relations)
        return None if inner is None else e.exp * inner
    return None


def _plain_logarithm(e: Expr, relations: Relations) -> Expr:
    """log(s**-1) = -log(s), also where the power has a name."""
    if isinstance(e, Tensor) and e.name in relations.by_name:
        definition = relations.unfolded(e)
        if (
            isinstance(definition, Pow)
            and isinstance(definition.base, Tensor)
            and axes_of(definition) == axes_of(e)
        ):
            return definition.exp * log(definition.base)
    return e.exp * log(e.base) if isinstance(e, Pow) and e.base.is_positive else log(e)
