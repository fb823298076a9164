"""Going through an expression: bottom up, with indices left alone."""

from __future__ import annotations

from collections.abc import Callable

from sympy import Expr

from derive.choices import Compared, with_args
from derive.nodes import ArrayNode, Max, Reshaping, Sum
from derive.symbols import Along


def everywhere(
    e: Expr, rewrite: Callable[[Expr], Expr | None], known: dict[Expr, Expr] | None = None
) -> Expr:
    """``rewrite`` applied to every node, operands first; a node for which it gives None stays.

    Indices (one-hots, arg maxima) are opaque, and so are what a maximum is taken of and choices in
    conditions: which entry they mean does not depend on how it is written. ``known`` is what
    ``rewrite`` has made of expressions before: they are looked up.
    """
    known = {} if known is None else known
    result = known.get(e)
    if result is None:
        result = known[e] = _rewritten(e, rewrite, known)
    return result


def _rewritten(e: Expr, rewrite: Callable[[Expr], Expr | None], known: dict[Expr, Expr]) -> Expr:
    if e.args and not isinstance(e, Compared):
        if isinstance(e, ArrayNode):
            if not isinstance(e, (Sum, Reshaping, Max)):
                return e
            operand = e.operand if isinstance(e, Max) else everywhere(e.operand, rewrite, known)
            e = e if operand is e.operand else _rebuilt(e, operand)
        else:
            args = [
                arg if isinstance(arg, Along) else everywhere(arg, rewrite, known) for arg in e.args
            ]
            e = e if all(a is b for a, b in zip(args, e.args, strict=True)) else with_args(e, args)
    result = rewrite(e)
    return e if result is None else result


def _rebuilt(node: ArrayNode, operand: Expr) -> Expr:
    return operand if operand == 0 else node.on(operand)
