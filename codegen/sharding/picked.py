"""Moves picks before operations: the entry of a difference is the difference of the entries. So
picks of split values need not wait for a collective.
"""

from __future__ import annotations

from collections.abc import Mapping

from codegen.program.arrays import Arrange, Pick
from codegen.program.parts import operands
from codegen.program.values import Load, Value
from codegen.sharding.values import POINTWISE, with_operands
from derive.language.notation.layout import Layout


def pushed(pick: Pick, defined: Mapping[str, Value]) -> Value | None:
    """The pick moved inside of the operation that computes its operand, ``defined`` by name, where
    a single operand of that has the axis; None if there is no such operation.
    """
    inner = pick.operand
    if isinstance(inner, Load):
        inner = defined.get(inner.name, inner)
    if not isinstance(inner, POINTWISE) or inner.dims != pick.operand.dims:
        return None
    axis = inner.dims[pick.along].axis
    parts = operands(inner)
    having = [part for part in parts if any(d.axis == axis and not d.one for d in part.dims)]
    if len(having) != 1 or len(having[0].dims) != len(inner.dims):
        return None
    if any(d.one for d in having[0].dims):
        return None
    changed = [
        Pick(part, pick.along, pick.index, True, dims=pick.dims)
        if part is having[0]
        else _without(part, len(inner.dims) - pick.along)
        for part in parts
    ]
    return with_operands(inner, changed, pick.dims)


def _without(value: Value, back: int) -> Value:
    """``value`` without the dimension of size 1 that stands ``back`` from the end, if it has it."""
    dims: Layout = value.dims
    if len(dims) < back:
        return value
    at = len(dims) - back
    order = tuple(i for i in range(len(dims)) if i != at)
    return Arrange(value, order, dims=tuple(dims[i] for i in order))
