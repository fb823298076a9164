"""The notation's nodes for square matrices, in a formula."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Protocol

from sympy import Expr

from derive.claims.reading.refusals import Refusal
from derive.claims.reading.usage import USAGE
from derive.claims.reading.values import Space, TextValue
from derive.language.errors import NotationError
from derive.language.nodes import Cholesky, Inverse, LogDet, Solve
from derive.language.symbols import Axis

MATRICES = {node.__name__: node for node in (Cholesky, Inverse, LogDet, Solve)}


class MatrixReader(Protocol):
    """The interface of the notation that matrix nodes need."""

    space: Space

    def operand(self, node: ast.AST) -> TextValue: ...

    def axis(self, node: ast.AST, among: TextValue | None = None, what: str = "") -> Axis: ...

    def value(self, e: Expr, axes: Iterable[Axis], of: TextValue) -> TextValue: ...


def of_matrix(notation: MatrixReader, *arguments: ast.AST, name: str) -> TextValue:
    """A matrix node on its operands, followed by the axes of rows and columns."""
    if len(arguments) < 3:
        raise Refusal(f"{name} takes a matrix and its two axes", USAGE[name])
    *operands, rows, columns = arguments
    values = [notation.operand(node) for node in operands]
    axes = [notation.axis(node, values[0], name) for node in (rows, columns)]
    if notation.space.size(axes[0]) != notation.space.size(axes[1]):
        raise Refusal(f"{axes[0]} and {axes[1]} have different sizes", USAGE[name], columns)
    try:
        e = MATRICES[name](*(x.expression for x in values), *axes)
    except NotationError as error:
        raise Refusal(error.problem, error.remedy) from None
    left = set().union(*(x.axes for x in values)) - {*e.binds} | {*e.brings}
    return notation.value(e, left, values[0])
