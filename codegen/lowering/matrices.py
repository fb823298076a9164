"""Square matrices: in the last two dimensions, after those of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from codegen.lowering.context import Context
from codegen.lowering.frames import Frame, arranged, fitted
from codegen.lowering.picks import Picked, axes_at
from codegen.program.arrays import Arrange, OfMatrix, Solved
from codegen.program.parts import with_replaced
from codegen.program.steps import Step
from codegen.program.values import Load, Value
from derive.language.matrices import MatrixNode as Node
from derive.language.matrices import Solve, Unordered
from derive.language.notation.layout import Dim, plain
from derive.language.symbols import Axis, Tensor


def of_matrix(lowering: Context, e: Node, frame: Frame, picked: Picked, kind: str) -> Value:
    """The value of a node, its dimensions in the order of ``frame``."""
    batch = _in_order(lowering, axes_at(e.matrix, picked) - {*e.axes})
    whole = (*batch, *_rows_and_columns(lowering, e))
    matrix = fitted(lowering.value(e.matrix, whole, picked), plain(whole))
    dims = plain(whole if e.brings else batch)
    return arranged(OfMatrix(kind, matrix, dims=dims), frame)


def _rows_and_columns(lowering: Context, e: Node) -> Frame:
    """Rows and columns; in the order of the tensor, where either order will do."""
    if not isinstance(e, Unordered):
        return e.axes
    if isinstance(e.matrix, Tensor):
        return tuple(axis for axis in e.matrix.axes if axis in e.axes)
    return _in_order(lowering, e.axes)


def solved(lowering: Context, e: Solve, frame: Frame, picked: Picked) -> Value:
    """A solution: one right side for each matrix of a batch, or columns along the last of the other
    axes of the right side.
    """
    rows, columns = e.axes
    own, right = (axes_at(of, picked) for of in (e.matrix, e.right))
    own, other = own - {rows, columns}, right - {rows}
    sides = _in_order(lowering, other - own)[-1:]
    batch = tuple(axis for axis in _in_order(lowering, own | other) if axis not in sides)
    from_the_right = _in_order(lowering, {*sides, *e.axes})[:1] == sides
    square = (columns, rows) if from_the_right else (rows, columns)
    layout = tuple(Dim(axis, axis in other - own) for axis in batch) + plain(square)
    matrix = fitted(lowering.value(e.matrix, (*batch, *square), picked), layout)
    behind, made = (
        (*batch, *sides, axis) if from_the_right else (*batch, axis, *sides) for axis in e.axes
    )
    value = fitted(lowering.value(e.right, behind, picked), plain(behind))
    solution = Solved(matrix, value, not sides, from_the_right, dims=plain(made))
    return arranged(solution, frame)


def with_triangles(step: Step, factors: Mapping[str, bool]) -> Step:
    """``step`` with its solutions marked as triangular: of the ``factors``, by name, True where the
    rows lie before the columns.
    """

    def change(value: Value) -> Value | None:
        if not isinstance(value, Solved):
            return None
        right = with_replaced(value.right, change)
        return replace(value, right=right, triangle=_triangle(value.matrix, factors))

    return with_replaced(step, change)


def _triangle(matrix: Value, factors: Mapping[str, bool]) -> str:
    turned = False
    if isinstance(matrix, Arrange):
        last = matrix.order[-2:]
        matrix, turned = matrix.operand, None not in last and last[0] > last[1]
    if not isinstance(matrix, Load) or matrix.name not in factors:
        return ""
    return "lower" if factors[matrix.name] != turned else "upper"


def _in_order(lowering: Context, axes: Iterable[Axis]) -> Frame:
    found = {*axes}
    return tuple(axis for axis in lowering.order if axis in found)
