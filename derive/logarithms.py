"""Logarithms of products and exponentials, split: ``log(exp(z)/s)`` is ``z - log(s)``, and stays
finite.

The identities, for positive a and b: log(a*b) = log(a) + log(b); log(a**k) = k*log(a); log(exp(z))
= z. They are used only where they remove an exponential, which could overflow, or underflow to a
logarithm of zero.
"""

from __future__ import annotations

from sympy import Add, Expr, Mul, Pow, exp, log

from derive.relations import Relations
from derive.symbols import Tensor, axes_of


def split_logarithms(e: Expr, relations: Relations) -> Expr:
    """``e`` with its logarithms split where that removes an exponential, also one behind the
    name of a value.
    """

    def split(node: Expr) -> Expr:
        parts = _logarithm(node.args[0], relations)
        return node if parts is None else parts

    return e.replace(lambda node: isinstance(node, log), split)


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
