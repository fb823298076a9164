"""Functions that every target has under a name because their formula loses digits or is slow.

Used in the forward and the backward; the step-by-step functions compute what is written. A target
gives each its name, as it does for SymPy's functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sympy import Add, Expr, Function, Pow, exp, log

from derive.symbols import is_constant


class log1p(Function):
    """log(1 + u), which for small u is not 0."""


class expm1(Function):
    """exp(u) - 1, which for small u is not 0."""


class sigmoid(Function):
    """1/(1 + exp(-u))."""


@dataclass(frozen=True)
class Idiom:
    """``statement`` is the equation; ``rewrite`` gives its left side for a node, or None."""

    statement: str
    rewrite: Callable[[Expr], Expr | None]


def _log1p(e: Expr) -> Expr | None:
    inside = e.args[0] if isinstance(e, log) else None
    return log1p(inside - 1) if isinstance(inside, Add) and 1 in inside.args else None


def _expm1(e: Expr) -> Expr | None:
    if not isinstance(e, Add) or abs(e.as_coeff_Add()[0]) != 1:
        return None
    number = e.as_coeff_Add()[0]
    for term in e.args:
        if isinstance(-number * term, exp):
            return e - number - term - number * expm1((-number * term).exp)
    return None


def _sigmoid(e: Expr) -> Expr | None:
    if not isinstance(e, Pow) or not e.exp.is_Integer or e.exp > 0:
        return None
    inside = e.base - 1
    return sigmoid(-inside.exp) ** -e.exp if isinstance(inside, exp) else None


idioms: tuple[Idiom, ...] = (
    Idiom("log1p(u) = log(1 + u)", _log1p),
    Idiom("expm1(u) = exp(u) - 1", _expm1),
    Idiom("sigmoid(u) = 1/(1 + exp(-u))", _sigmoid),
)


def with_idioms(e: Expr) -> Expr:
    """``e`` with the idioms in it under their names, where they are of a tensor."""
    for idiom in idioms:

        def rewritten(node: Expr, idiom=idiom) -> Expr:
            result = None if is_constant(node) else idiom.rewrite(node)
            return node if result is None else result

        e = e.replace(lambda node: isinstance(node, (Add, Pow, log)), rewritten)
    return e
