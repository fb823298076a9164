"""Values of a chunk as those of the whole axis, of which a kernel sees all tiles."""

from __future__ import annotations

from codegen.program.arrays import OneHotOf, Pick, Positions
from codegen.program.parts import with_replaced
from codegen.program.shards import (
    OwnAddAt,
    OwnGathered,
    OwnOneHot,
    OwnPart,
    OwnPick,
    OwnPositions,
    OwnSize,
    Ratio,
)
from codegen.program.steps import AddAt, Step
from codegen.program.values import Value
from codegen.sharding.values import values_of
from derive.language.errors import QuestionError

CUT = (OwnGathered, OwnPart, OwnSize, Ratio)  # know the length of a chunk


def whole(item, layouts):
    """A value or a step of the whole axis. Raises `QuestionError` for what only chunks have."""
    if isinstance(item, OwnAddAt):
        dims = layouts[item.name]
        step = AddAt(item.name, whole(item.index, layouts), item.along, item.value, len(dims))
        return whole(step, layouts)
    found = with_replaced(item, _whole)
    parts = values_of(found) if isinstance(found, Step) else [found]
    for part in parts:
        if isinstance(part, CUT):
            raise QuestionError(
                f"tiles have no {type(part).__name__}", "leave --target triton out, for torch code"
            )
    return found


def _whole(value: Value) -> Value | None:
    if isinstance(value, OwnPositions):
        return Positions(value.group, dims=value.dims)
    if isinstance(value, OwnPick):
        operand, index = (with_replaced(v, _whole) for v in (value.operand, value.index))
        return Pick(operand, value.along, index, value.rowwise, dims=value.dims)
    if isinstance(value, OwnOneHot):
        return OneHotOf(with_replaced(value.index, _whole), value.group, dims=value.dims)
    return None
