"""The adjoints of the nodes of a square matrix, under the contract of ``rules.py``.

A matrix is transposed by reading it along its axes in the other order, and a product of two goes
along a further axis of the same length.
"""

from __future__ import annotations

from sympy import Expr, Integer, Piecewise

from derive.language.matrices import Cholesky, Inverse, LogDet, Solve, spare_axis
from derive.language.nodes import Position, Sum, renamed
from derive.language.symbols import Axis

Pairs = list[tuple[Expr, Expr]]


def through_inverse(node: Inverse, upstream: Expr) -> Pairs:
    # Y = A**-1  =>  dA = -Y^T*dY*Y^T
    rows, columns = node.axes
    other = spare_axis(node.axes, upstream, node)
    right = Sum.over(upstream * renamed(node, {rows: other}), [columns])  # (rows, other)
    right = renamed(right, {rows: other, other: columns})
    left = renamed(node, {rows: other, columns: rows})
    return [(node.matrix, -Sum.over(left * right, [other]))]


def through_log_det(node: LogDet, upstream: Expr) -> Pairs:
    # y = log|det A|  =>  dA = dy*(A**-1)^T
    return [(node.matrix, upstream * transposed(Inverse.over(node.matrix, node.axes), node.axes))]


def through_solve(node: Solve, upstream: Expr) -> Pairs:
    # A*x = b  =>  A^T*db = dx, dA = -db*x^T
    rows, columns = node.axes
    back = Solve.over(node.matrix, upstream, (columns, rows))
    return [(node.right, back), (node.matrix, -back * node)]


def through_cholesky(node: Cholesky, upstream: Expr) -> Pairs:
    # A = L*L^T  =>  L^T*dA*L = P/2, P symmetric with the lower triangle of L^T*dL
    rows, columns = node.axes
    other = spare_axis(node.axes, upstream, node)
    product = Sum.over(node * renamed(upstream, {columns: other}), [rows])  # (columns, other)
    row, column = (Position.over(Integer(0), [axis]) for axis in (columns, other))
    mirrored = transposed(product, (columns, other))
    both = Piecewise((product, column <= row), (mirrored, True)) / 2
    left = Solve.over(node, both, (columns, rows))  # (rows, other)
    factor = renamed(node, {rows: columns, columns: other})
    return [(node.matrix, Solve.over(factor, left, (other, columns)))]


def transposed(e: Expr, axes: tuple[Axis, Axis]) -> Expr:
    """``e`` read along two axes in the other order."""
    first, second = axes
    return renamed(e, {first: second, second: first})
