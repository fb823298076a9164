"""The entries of matrix nodes, from minors or a factor of the matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, product

from sympy import Integer, Rational, log

from derive.claims.checking.numbers.arithmetic import Arithmetic, Undefined
from derive.claims.checking.numbers.tables import BELOW, UNDEFINED, Table, projection
from derive.language.cofactors import Rows, determinant, factor, inverse
from derive.language.nodes import Cholesky, Inverse, LogDet, MatrixNode, Solve


def _logarithm(rows: Rows, right: Sequence, by: Arithmetic) -> list:
    square = by.power(determinant(rows, by), by.number(Integer(2)))
    return [by.multiply([by.number(Rational(1, 2)), by.apply(log, [square])])]


def _solution(rows: Rows, right: Sequence, by: Arithmetic) -> list:
    over = inverse(rows, by)
    return [by.add([by.multiply(p) for p in zip(row, right, strict=True)]) for row in over]


# The entries of each node, the last axis fastest, from the rows of a matrix and a right-hand side.
MADE: dict[type[MatrixNode], Callable[..., list]] = {
    Inverse: lambda rows, right, by: [*chain(*inverse(rows, by))],
    Cholesky: lambda rows, right, by: [*chain(*factor(rows, by))],
    LogDet: _logarithm,
    Solve: _solution,
}


def of_matrix(at, e: MatrixNode) -> Table:
    """Apply the matrix function to each matrix of the batch (contract: ``array_nodes.py``)."""
    rows, columns = e.axes
    matrix, right = at.table(e.matrix), at.table(e.operands[-1])
    others = (axis for table in (matrix, right) for axis in table.axes if axis not in e.axes)
    batch = tuple(dict.fromkeys(others))
    left = (*batch, *(axis for axis in (rows, columns) if axis in e.free_axes))
    whole, side = (*batch, rows, columns), (*batch, rows) if isinstance(e, Solve) else ()
    inside, beside = projection(whole, matrix.axes), side and projection(side, right.axes)
    size, entries = at.size(rows), {}
    places = [*product(range(size), repeat=2)]

    def made(*values):
        if any(value is BELOW for value in values):
            raise Undefined(f"{e} of an infinite entry")
        square = [values[size * k : size * (k + 1)] for k in range(size)]
        return MADE[type(e)](square, values[size**2 :], at.arithmetic)

    for i in at.indices(batch):
        values = [matrix.entries[inside((*i, *place))] for place in places]
        if side:
            values += [right.entries[beside((*i, k))] for k in range(size)]
        own = [*at.indices(left[len(batch) :])]
        found = at.or_undefined(made, *values)
        found = [UNDEFINED for _ in own] if found is UNDEFINED else found
        entries |= {(*i, *j): value for j, value in zip(own, found, strict=True)}
    return Table(left, entries)
