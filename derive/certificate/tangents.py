"""The tangent of a statement: what it changes by, along a curve of the inputs.

In: a `Statement`. Out: an expression that is linear in the tangents of what it reads, in which the
derivatives are those of the chain: SymPy's, in terms of the output where that is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from sympy import Add, Expr

from derive.gradient.chain.chain import in_terms_of_output, leaves_of, local_derivative
from derive.language.array_node import ArrayNode
from derive.language.errors import NotationError
from derive.language.nodes import ArgMax, Flatten, Max, OneHot, Sum, Unflatten
from derive.language.notation.definition import Statement
from derive.language.reading_at import At
from derive.language.symbols import Tensor, tensors_in

TANGENT = "tangent"


def tangent_of(tensor: Tensor) -> Tensor:
    """The tangent ``x'`` of ``x``: same axes."""
    return Tensor(f"{tensor.name}'", tensor.axes, tensor.home, TANGENT)


def tangent(statement: Statement, moving: Collection[str]) -> Expr:
    """The tangent of a statement; ``moving`` are the names of what changes along the curve."""
    return in_terms_of_output(_tangent(statement.expression, moving), statement)


def _tangent(e: Expr, moving: Collection[str]) -> Expr:
    found = []
    for leaf in leaves_of(e):
        if not any(t.name in moving for t in tensors_in(leaf)):
            continue
        slope = local_derivative(e, leaf)
        if slope != 0:
            inner = tangent_of(leaf) if isinstance(leaf, Tensor) else _of_node(leaf, moving)
            found.append(slope * inner)
    return Add(*found)


def _of_node(e: ArrayNode, moving: Collection[str]) -> Expr:
    """The tangent of an array node by those of its operands."""
    rule = NODES.get(type(e))
    if rule is None:
        raise NotationError(
            f"{type(e).__name__} has no certificate: {e}",
            "add its rule to NODES in derive/certificate/tangents.py",
        )
    return rule(e, _tangent(e.operand, moving))


NODES: dict[type, Callable[[ArrayNode, Expr], Expr]] = {
    Sum: lambda e, moved: Sum.over(moved, e.axes),
    Flatten: lambda e, moved: e.on(moved),
    Unflatten: lambda e, moved: e.on(moved),
    At: lambda e, moved: At.over(moved, e.axis, e.index),
    Max: lambda e, moved: Sum.over(
        OneHot.over(ArgMax.over(e.operand, e.axes), e.axes) * moved, e.axes
    ),
}
