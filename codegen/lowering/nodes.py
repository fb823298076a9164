"""Array nodes: the only way to lower them, which keeps picks from outside apart from the node's own
axes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sympy import Expr

from codegen.lowering.context import Context
from codegen.lowering.frames import Frame, arranged, axes_in
from codegen.lowering.indices import index_of, picked_entry, positions, whole_one_hot
from codegen.lowering.matrices import of_matrix, solved
from codegen.lowering.picks import Picked, axes_at, under
from codegen.lowering.reads import lowered_read
from codegen.lowering.reshapings import reshaped
from codegen.lowering.scans import cumulated, new_largest, recurrent
from codegen.lowering.segments import largest_of_segments
from codegen.lowering.sums import lowered_sum, reduced
from codegen.program.arrays import AsNumber
from codegen.program.values import Value
from derive.language.array_node import ArrayNode
from derive.language.errors import QuestionError
from derive.language.nodes import (
    Cholesky,
    Inverse,
    LargestSoFar,
    LogCumSumExp,
    LogDet,
    Max,
    NewMax,
    OneHot,
    Peak,
    Position,
    Recurrence,
    Reshaping,
    Solve,
    SubtractedPeak,
    Sum,
)
from derive.language.reading_at import At


class Counted(Position):
    """An integer position, compared as such: in a condition."""


def counted(e: Expr) -> Expr:
    """``e`` with its positions as integers, if it is an integer itself."""
    if not e.is_integer:
        return e
    return e.replace(
        lambda node: isinstance(node, Position), lambda node: Counted.over(node.operand, node.axes)
    )


def lowered_node(lowering: Context, e: ArrayNode, frame: Frame, picked: Picked) -> Value:
    """``e`` aligned with ``frame``, at the picked entries of some axes."""
    row = row_of(type(e))
    if row is None:
        raise QuestionError(
            f"{type(e).__name__} in {e} is not supported",
            "to add it, write a row of codegen/lowering/nodes.py",
        )
    if isinstance(e, (OneHot, Position)):  # the index that is picked is compared, or is the entry
        return row(lowering, e, frame, picked)
    inside, after = under(e, picked)
    if not after:
        return row(lowering, e, frame, inside)
    whole = tuple(axis for axis in lowering.order if axis in axes_at(e, inside))
    value = row(lowering, e, whole, inside)
    for axis, index in after.items():
        if axis in axes_in(value):  # a sum over a one-hot is the same at every label
            value = picked_entry(lowering, value, axis, index)
    return arranged(value, frame)


def _position(lowering: Context, e: Position, frame: Frame, picked: Picked) -> Value:
    at = picked.get(e.axis)
    value = index_of(lowering, at, frame) if at else positions(e.axis, frame)
    return value if isinstance(e, Counted) else AsNumber(value, dims=value.dims)


def _largest(lowering: Context, e: Max, frame: Frame, picked: Picked, kind: str) -> Value:
    segments = largest_of_segments(lowering, e, kind, frame, picked)
    if segments is not None:
        return segments
    return reduced(lowering, kind, e.operand, e.axes, frame, picked)


# For a node, or all nodes of a class, its value with dimensions in the order of a frame, at the
# picked entries of some axes.
rows: dict[type[ArrayNode], Callable[[Context, Any, Frame, Picked], Value]] = {
    OneHot: whole_one_hot,
    Position: _position,
    Sum: lowered_sum,
    Max: partial(_largest, kind="max"),
    Peak: partial(_largest, kind="peak"),
    SubtractedPeak: partial(_largest, kind="subtracted peak"),
    At: lowered_read,
    Reshaping: reshaped,
    Recurrence: recurrent,
    LogCumSumExp: partial(cumulated, kind="logarithm"),
    LargestSoFar: partial(cumulated, kind="max"),
    NewMax: new_largest,
    Inverse: partial(of_matrix, kind="inverse"),
    LogDet: partial(of_matrix, kind="logdet"),
    Cholesky: partial(of_matrix, kind="cholesky"),
    Solve: solved,
}


def row_of(kind: type[ArrayNode]) -> Callable[[Context, Any, Frame, Picked], Value] | None:
    """The row of the nearest class; None where there is none."""
    return next((rows[base] for base in kind.__mro__ if base in rows), None)
