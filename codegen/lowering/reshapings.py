"""Reshapes: axes that become one, and one that becomes several."""

from __future__ import annotations

from codegen.lowering.context import Context
from codegen.lowering.frames import Frame, arranged, fitted
from codegen.lowering.picks import Picked, axes_at
from codegen.program.arrays import Merge, Split
from codegen.program.values import Value
from derive.language.nodes import Flatten, Reshaping
from derive.language.notation.layout import plain


def reshaped(lowering: Context, e: Reshaping, frame: Frame, picked: Picked) -> Value:
    """The operand with its reshaped axes last and in order, merged or split there."""
    others = tuple(
        axis for axis in lowering.order if axis in axes_at(e.operand, picked) - set(e.binds)
    )
    at = _place(lowering, e, others)
    operand = fitted(
        lowering.value(e.operand, others[:at] + e.binds + others[at:], picked),
        plain(others[:at] + e.binds + others[at:]),
    )
    dims = plain(others[:at] + e.brings + others[at:])
    if isinstance(e, Flatten):
        value: Value = Merge(operand, at, len(e.binds), dims=dims)
    else:
        value = Split(operand, at, tuple(axis.name for axis in e.into), dims=dims)
    return arranged(value, frame)


def _place(lowering: Context, e: Reshaping, others: Frame) -> int:
    """The place before the first dimension that comes after the new ones."""
    new = min(lowering.order.index(axis) for axis in e.brings)
    return sum(lowering.order.index(axis) < new for axis in others)
