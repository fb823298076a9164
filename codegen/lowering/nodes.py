"""Array nodes: the only way to lower them, which keeps picks from outside apart from the node's own
axes.
"""

from __future__ import annotations

from sympy import Expr

from codegen.lowering.context import Context
from codegen.lowering.frames import Frame, arranged, axes_in
from codegen.lowering.indices import index_of, picked_entry, positions, whole_one_hot
from codegen.lowering.matrices import of_matrix
from codegen.lowering.picks import Picked, axes_at, under
from codegen.lowering.reads import lowered_read
from codegen.lowering.reshapings import reshaped
from codegen.lowering.scans import recurrent
from codegen.lowering.segments import largest_of_segments
from codegen.lowering.sums import lowered_sum, reduced
from codegen.program.arrays import AsNumber
from codegen.program.values import Value
from derive.language.array_node import ArrayNode
from derive.language.errors import QuestionError
from derive.language.nodes import (
    GoneAlong,
    MatrixNode,
    Max,
    OneHot,
    Peak,
    Position,
    Reshaping,
    SubtractedPeak,
    Sum,
)
from derive.language.reading_at import At

KINDS = {Max: "max", Peak: "peak", SubtractedPeak: "subtracted peak"}


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
    if isinstance(e, OneHot):
        return whole_one_hot(lowering, e, frame, picked)
    if isinstance(e, Position):
        at = picked.get(e.axis)
        value = index_of(lowering, at, frame) if at else positions(e.axis, frame)
        return value if isinstance(e, Counted) else AsNumber(value, dims=value.dims)
    inside, after = under(e, picked)
    if not after:
        return _below(lowering, e, frame, inside)
    whole = tuple(axis for axis in lowering.order if axis in axes_at(e, inside))
    value = _below(lowering, e, whole, inside)
    for axis, index in after.items():
        if axis in axes_in(value):  # a sum over a one-hot is the same at every label
            value = picked_entry(lowering, value, axis, index)
    return arranged(value, frame)


def _below(lowering: Context, e: ArrayNode, frame: Frame, picked: Picked) -> Value:
    if isinstance(e, Sum):
        return lowered_sum(lowering, e, frame, picked)
    if isinstance(e, Max):
        segments = largest_of_segments(lowering, e, KINDS[type(e)], frame, picked)
        if segments is not None:
            return segments
        return reduced(lowering, KINDS[type(e)], e.operand, e.axes, frame, picked)
    if isinstance(e, At):
        return lowered_read(lowering, e, frame, picked)
    if isinstance(e, Reshaping):
        return reshaped(lowering, e, frame, picked)
    if isinstance(e, GoneAlong):
        return recurrent(lowering, e, frame, picked)
    if isinstance(e, MatrixNode):
        return of_matrix(lowering, e, frame, picked)
    raise QuestionError(
        f"{type(e).__name__} in {e} is not supported",
        "to add it, extend codegen/lowering/nodes.py",
    )
