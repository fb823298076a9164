"""Square matrices along two axes of one length: their inverse, determinant, factor and solutions.

Each is a node with one adjoint. The matrix A has its rows along the first axis and its columns
along the second; what else it lies along is a batch.

    `Inverse`   the matrix A**-1, along the same axes
    `LogDet`    log|det A|
    `Solve`     the x along the second axis with Sum(A*x, J) = b, for b along the first
    `Cholesky`  the lower triangular L with L*L^T = A, for A symmetric and positive definite
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from sympy import Expr, Integer, Piecewise, Rational, log

from derive.language.array_node import (
    Gradients,
    Whole,
    check_carried,
    check_single,
    checked_operand,
)
from derive.language.cofactors import Calculates, Rows, determinant, factor, inverse
from derive.language.entries import EntryReader, Places
from derive.language.errors import NotationError
from derive.language.one_hots import Position
from derive.language.renaming import renamed
from derive.language.sums import Sum
from derive.language.symbols import Along, Axis, Tensor, axes_of, ordered
from derive.language.words import word

SPARE = (2, 3)  # numbers in the names of further axes of the same length: products need one


class MatrixNode(Whole):
    """A node of a square matrix; ``axes`` are those of its rows and its columns."""

    usage, said = "", ""  # how a user and a book write it

    def __new__(cls, matrix: Expr | float, *axes: Axis) -> Expr:
        if axes and isinstance(axes[0], Along):  # SymPy rebuilds a node from its args
            return cls.over(matrix, axes[0].axes)
        return cls.over(checked_matrix(cls, matrix, axes), axes)

    @classmethod
    def over(cls, matrix: Expr, axes: Iterable[Axis]) -> Expr:
        return Expr.__new__(cls, matrix, Along(axes))

    def entry(self, by: EntryReader, at: Places) -> Any:
        return by.of_matrix(self, at)

    @staticmethod
    def of_rows(rows: Rows, right: Sequence, by: Calculates) -> Any:
        """Return the entries along the axes that the node brings, nested, from those of the matrix
        and of a right side.
        """
        raise NotImplementedError

    @property
    def matrix(self) -> Expr:
        return self.args[0]

    @property
    def right_sides(self) -> tuple[Expr, ...]:
        """The right side of equations, where there are any."""
        return self.operands[1:]

    @property
    def brings(self) -> tuple[Axis, ...]:
        return self.axes

    def _sympystr(self, printer):
        of = ", ".join(map(printer._print, self.operands))
        return f"{type(self).__name__}({of}, {', '.join(axis.name for axis in self.axes)})"


class Unordered(MatrixNode):
    """A node with the same value for the transposed matrix, read along the same axes."""

    @classmethod
    def over(cls, matrix: Expr, axes: Iterable[Axis]) -> Expr:
        return super().over(matrix, ordered(axes))


@word("Inverse(A, I, J), with the axes of the rows and the columns", axes="carried")
class Inverse(Unordered):
    """``Inverse(A, I, J)``: the inverse matrix, its rows along ``I`` and its columns along ``J``.

    Source: ``torch.linalg.inv``.
    """

    word, usage, said = "inverse", "Inverse(A, I, J)", "inverse"
    reason = "by the inverse matrix on both sides, along {axes}"
    is_equivariant = True  # rows and columns have one size, and are renumbered together

    @staticmethod
    def of_rows(rows: Rows, right: Sequence, by: Calculates) -> Any:
        return inverse(rows, by)

    def adjoint(self, upstream: Expr) -> Gradients:
        # Y = A**-1  =>  dA = -Y^T*dY*Y^T
        rows, columns = self.axes
        other = spare_axis(self.axes, upstream, self)
        right = Sum.over(upstream * renamed(self, {rows: other}), [columns])  # (rows, other)
        right = renamed(right, {rows: other, other: columns})
        left = renamed(self, {rows: other, columns: rows})
        return [(self.matrix, -Sum.over(left * right, [other]))]


@word("LogDet(A, I, J), with the axes of the rows and the columns", axes="reduced")
class LogDet(Unordered):
    """``LogDet(A, I, J)``: log|det A|, also where the determinant is negative.

    Source: ``torch.linalg.slogdet``.
    """

    word, usage, said = "logdet", "LogDet(A, I, J)", "log|det|"
    reason = "by the transposed inverse along {axes}"
    is_equivariant = True

    @staticmethod
    def of_rows(rows: Rows, right: Sequence, by: Calculates) -> Any:
        square = by.power(determinant(rows, by), by.number(Integer(2)))
        return by.multiply([by.number(Rational(1, 2)), by.apply(log, [square])])

    def adjoint(self, upstream: Expr) -> Gradients:
        # y = log|det A|  =>  dA = dy*(A**-1)^T
        inverted = Inverse.over(self.matrix, self.axes)
        return [(self.matrix, upstream * transposed(inverted, self.axes))]

    @property
    def binds(self) -> tuple[Axis, ...]:
        return self.axes

    @property
    def brings(self) -> tuple[Axis, ...]:
        return ()


@word("Cholesky(A, I, J), with the axes of the rows and the columns", axes="carried")
class Cholesky(MatrixNode):
    """``Cholesky(A, I, J)``: the lower triangular factor of a positive definite matrix; that of
    (A + A^T)/2 where ``A`` is not symmetric.

    Source: ``torch.linalg.cholesky``, which reads the lower triangle.
    """

    word, usage, said = "cholesky", "Cholesky(A, I, J)", "cholesky"
    reason = "the transposed factor solved twice along {axes}"

    @staticmethod
    def of_rows(rows: Rows, right: Sequence, by: Calculates) -> Any:
        return factor(rows, by)

    def adjoint(self, upstream: Expr) -> Gradients:
        # A = L*L^T  =>  L^T*dA*L = P/2, P symmetric with the lower triangle of L^T*dL
        rows, columns = self.axes
        other = spare_axis(self.axes, upstream, self)
        product = Sum.over(self * renamed(upstream, {columns: other}), [rows])  # (columns, other)
        row, column = (Position.over(Integer(0), [axis]) for axis in (columns, other))
        mirrored = transposed(product, (columns, other))
        both = Piecewise((product, column <= row), (mirrored, True)) / 2
        left = Solve.over(self, both, (columns, rows))  # (rows, other)
        lower = renamed(self, {rows: columns, columns: other})
        return [(self.matrix, Solve.over(lower, left, (other, columns)))]


@word("Solve(A, b, I, J): the solution lies along J, where b lies along I", axes="solved")
class Solve(MatrixNode):
    """``Solve(A, b, I, J)``: the ``x`` along ``J`` with Sum(A*x, J) = b, for ``b`` along ``I``.

    Source: ``torch.linalg.solve``.
    """

    word, usage, said = "solution", "Solve(A, b, I, J)", "solve"
    reason = "the transposed equations solved along {axes}"
    is_equivariant = True

    @staticmethod
    def of_rows(rows: Rows, right: Sequence, by: Calculates) -> Any:
        return [
            by.add([by.multiply(pair) for pair in zip(row, right, strict=True)])
            for row in inverse(rows, by)
        ]

    def adjoint(self, upstream: Expr) -> Gradients:
        # A*x = b  =>  A^T*db = dx, dA = -db*x^T
        rows, columns = self.axes
        back = Solve.over(self.matrix, upstream, (columns, rows))
        return [(self.right, back), (self.matrix, -back * self)]

    def __new__(cls, matrix: Expr | float, right: Expr | float, *axes: Axis) -> Expr:
        if axes and isinstance(axes[0], Along):
            return cls.over(matrix, right, axes[0].axes)
        matrix = checked_matrix(cls, matrix, axes)
        right = checked_operand(cls.__name__, right, axes, lambda e, axes: f"write {cls.usage}")
        rows, columns = axes
        check_carried("Solve", right, [rows], f"Solve({matrix}, {right}, {rows}, {columns})")
        if columns in axes_of(right):
            raise NotationError(
                f"Solve({matrix}, {right}, {rows}, {columns}): {right} lies along {columns}, which "
                "is the axis of the solution",
                f"rename it: Rename({right}, {columns}, K)",
            )
        return cls.over(matrix, right, axes)

    @classmethod
    def over(cls, matrix: Expr, right: Expr, axes: Iterable[Axis]) -> Expr:
        return right if right == 0 else Expr.__new__(cls, matrix, right, Along(axes))

    @property
    def right(self) -> Expr:
        """The right side of the equations."""
        return self.args[1]

    @property
    def operands(self) -> tuple[Expr, ...]:
        return self.args[:2]

    @property
    def subject(self) -> Expr:
        return self.right

    @property
    def axes(self) -> tuple[Axis, ...]:
        return self.args[2].axes

    @property
    def binds(self) -> tuple[Axis, ...]:
        return self.axes[:1]

    @property
    def brings(self) -> tuple[Axis, ...]:
        return self.axes[1:]

    @property
    def free_axes(self) -> frozenset[Axis]:
        return (self.inside - {self.axes[0]}) | {self.axes[1]}

    @property
    def inside(self) -> frozenset[Axis]:
        return axes_of(self.matrix) | axes_of(self.right)

    def around(self, operand: Expr) -> frozenset[Axis]:
        return self.inside - {self.axes[1]} if operand == self.right else self.inside


def transposed(e: Expr, axes: tuple[Axis, Axis]) -> Expr:
    """``e`` read along two axes in the other order."""
    first, second = axes
    return renamed(e, {first: second, second: first})


def spare_axes(axes: Iterable[Axis]) -> list[Axis]:
    """Further axes of the same length as those of a matrix, for products of matrices."""
    first = ordered(axes)[0]
    name = re.sub(r"_\d+$", "", first.name)
    return [Axis(f"{name}_{number}", first.length) for number in SPARE]


def spare_axis(axes: Iterable[Axis], *among: Expr) -> Axis:
    """One of `spare_axes` that no expression in ``among`` has. Raises `NotationError`."""
    axes = tuple(axes)
    taken = frozenset(axes).union(*map(axes_of, among))
    free = [axis for axis in spare_axes(axes) if axis not in taken]
    if not free:
        raise NotationError(
            f"a product of matrices along {' and '.join(map(str, axes))} has too many axes",
            "name parts of the statement on lines of their own",
        )
    return free[0]


def checked_matrix(node: type[MatrixNode], matrix: Expr | float, axes: tuple[object, ...]) -> Expr:
    """A matrix that a user wrote. Raises `NotationError`."""
    matrix = checked_operand(node.__name__, matrix, axes, lambda e, axes: f"write {node.usage}")
    if len(axes) != 2:
        raise NotationError(
            f"{node.__name__} takes the axis of the rows and that of the columns",
            f"write {node.usage}",
        )
    if isinstance(matrix, Tensor) and matrix.role == "label":
        raise NotationError(f"{node.__name__} of {matrix}: that is a label", "pass a number")
    for axis in axes:
        check_single(node.__name__, axis)
    rows, columns = axes
    check_carried(node.__name__, matrix, axes, f"{node.__name__} of {matrix} along {columns}")
    if rows.length != columns.length:
        own, other = (rows, columns) if rows.length is None else (columns, rows)
        raise NotationError(
            f"{node.__name__} of {matrix}: {rows} and {columns} have to be of one length",
            f'say it: {own} = Axis("{own}", {other.length})',
        )
    return matrix
