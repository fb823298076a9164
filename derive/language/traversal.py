"""Going through an expression: once through each part, however often it stands there."""

from __future__ import annotations

from collections.abc import Callable

from sympy import Basic, Expr

from derive.language.choices import Compared, with_args
from derive.language.nodes import (
    ArgMax,
    ArrayNode,
    MatrixNode,
    Max,
    OneHot,
    Reindexing,
    Sum,
    Whole,
    renamed,
)
from derive.language.symbols import Along, tensors_in

OPAQUE = (Max, ArgMax, OneHot)


def everywhere(
    e: Expr,
    rewrite: Callable[[Expr], Expr | None],
    known: dict[Expr, Expr] | None = None,
    opaque: tuple[type, ...] = OPAQUE,
) -> Expr:
    """``rewrite`` applied to every node, operands first; a node for which it gives None stays.

    What is in an ``opaque`` node stays: indices (one-hots, arg maxima) and what a maximum is taken
    of, for which entry they mean does not depend on how it is written. So do choices in conditions.
    ``known`` is what ``rewrite`` has made of expressions before: they are looked up.
    """
    known = {} if known is None else known
    result = known.get(e)
    if result is None:
        result = known[e] = _rewritten(e, rewrite, known, opaque)
    return result


def _rewritten(
    e: Expr,
    rewrite: Callable[[Expr], Expr | None],
    known: dict[Expr, Expr],
    opaque: tuple[type, ...],
) -> Expr:
    if e.args and not isinstance(e, Compared):
        if isinstance(e, ArrayNode):
            if not isinstance(e, (Sum, Reindexing, Whole, *OPAQUE)):
                return e
            if not isinstance(e, opaque):
                e = _rebuilt(e, [everywhere(o, rewrite, known, opaque) for o in e.operands])
            if isinstance(e, (ArgMax, OneHot)):
                return e
        else:
            args = [
                arg if isinstance(arg, Along) else everywhere(arg, rewrite, known, opaque)
                for arg in e.args
            ]
            e = e if all(a is b for a, b in zip(args, e.args, strict=True)) else with_args(e, args)
    result = rewrite(e)
    return e if result is None else result


def _rebuilt(node: ArrayNode, operands: list[Expr]) -> Expr:
    before = node.operands
    if all(new is old for new, old in zip(operands, before, strict=True)):
        return node
    if operands == [0]:
        return operands[0]
    changed = dict(zip(before, operands, strict=True))
    return node.through(changed.__getitem__)


def read_otherwise(node: MatrixNode, known: Callable[[Expr], Expr | None]) -> Expr | None:
    """``known(node)``, or the same of its matrix read along other axes, renamed back: it may be the
    transpose.
    """
    found, free = known(node), node.free_axes
    for met in tensors_in(node) if found is None else ():
        away = {a: home for a, home in zip(met.axes, met.home, strict=True) if a in free}
        taken = {*away.values()} & (free - {*away})
        if not taken and (found := known(renamed(node, away))) is not None:
            return renamed(found, {home: own for own, home in away.items()})
    return found


def parts_of(e: Basic) -> set[Basic]:
    """Every subexpression of ``e``, once. A small batch written out has few, each of which may
    stand in it a million times.
    """
    met, pending = {e}, [e]
    while pending:
        new = {*pending.pop().args} - met
        met |= new
        pending += new
    return met
