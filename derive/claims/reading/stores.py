"""Writes into a part of a tensor: ``x[index] = value``, ``x[index] += value``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace

from sympy import Integer

from derive.claims.reading.blocks import OWN_BLOCK, block_taken, is_block, of_whole, sum_of_blocks
from derive.claims.reading.broadcasting import negated
from derive.claims.reading.expressions import ExpressionReader
from derive.claims.reading.indexing import advanced, from_front, items_of, rank_of, to_front
from derive.claims.reading.loops import (
    ADDS,
    OWN,
    LoopContext,
    axis_of,
    is_place,
    taken_at,
    written_at,
)
from derive.claims.reading.memory import Cell
from derive.claims.reading.operations.choosing import where
from derive.claims.reading.operations.dtypes import converted, in_place
from derive.claims.reading.operations.functions import plus, subtracted
from derive.claims.reading.operations.picking import picked, written
from derive.claims.reading.operations.shaping import expanded
from derive.claims.reading.parts import by_dimension, put, taken
from derive.claims.reading.refusals import Mismatch, Refusal
from derive.claims.reading.values import MASK, PLACE, Space, TextValue, entries


@dataclass(frozen=True)
class Store:
    """The kind of write: an assignment, or ``combined`` of old and new value."""

    operate: Callable | None = None
    combined: Callable[[TextValue], TextValue] | None = None


def stored(
    expressions: ExpressionReader,
    index: ast.AST,
    x: TextValue,
    value: Callable[[], TextValue],
    write: Store,
) -> TextValue:
    """``x`` after ``value`` was written into ``x[index]``."""
    space, combined = expressions.space, write.combined
    items = items_of(expressions, index)
    if all(item == ":" or item is Ellipsis for item in items):
        if combined is not None:
            return combined(x)
        return expanded(space, converted(space, value(), x.dtype), x.dims, "what is written")
    if len(items) == 1 and isinstance(items[0], TextValue) and items[0].kind == MASK:
        if value().axes:
            raise Mismatch(
                f"a mask selects a flat list of entries, which the shape {value().shape} does not "
                "fit",
                "write torch.where(mask, new, old)",
            )
        new = combined(x) if combined else converted(space, value(), x.dtype)
        return where(space, items[0], new, x)
    if not any(isinstance(item, TextValue) for item in items):
        return _in_part(space, items, x, value, write)
    at, place = advanced(items, x)
    moved, rank = to_front(x, at, len(place)), rank_of(place)
    if write.operate is None:
        new, adds = value(), False
    elif write.operate in (plus, subtracted):
        new, adds = _added(space, x, value(), write), True
    else:
        before = from_front(picked(space, moved, place), at, rank)
        new, adds = entries(combined(before), x.dtype), False
    if at and new.dims:
        missing = rank + len(x.dims) - len(place) - len(new.dims)
        new = to_front(replace(new, dims=(*(None,) * missing, *new.dims)), at, rank)
    return from_front(written(space, moved, place, new, adds), at, len(place))


def _in_part(
    space: Space, items: list, x: TextValue, value: Callable[[], TextValue], write: Store
) -> TextValue:
    """``x[:, 1:] = value``, ``x[:, 1:] += value``"""
    if write.combined is None:
        return put(space, x, items, value(), False)
    if write.operate in (plus, subtracted):
        return put(space, x, items, _added(space, x, value(), write), True)
    new = write.combined(taken(space, x, items))
    return put(space, x, items, entries(new, x.dtype), False)


def _added(space: Space, x: TextValue, more: TextValue, write: Store) -> TextValue:
    """Add a value to a part of ``x``."""
    in_place(x, write.operate(space, _entry(x), _entry(more)))
    return entries(more if write.operate is plus else negated(space, more), x.dtype)


def _entry(x: TextValue) -> TextValue:
    """A generic entry of a tensor, enough to check torch's dtype rules."""
    return replace(x, expression=Integer(1), dims=())


def stored_in_blocks(
    expressions: ExpressionReader,
    loops: LoopContext,
    index: ast.AST,
    x: TextValue,
    value: TextValue,
    operate: Callable | None,
    cell: Cell,
) -> TextValue:
    """``x`` after all rounds of loops over blocks have written their blocks.

    Long: the value, the target, the kind of write, and the loops.
    """
    space, adds = loops.space, operate in (plus, subtracted)
    items = by_dimension(x, items_of(expressions, index))
    own = {item.axes[0] for item in items if is_block(item)}
    others = [axis for axis in loops.outside(cell.loops) if axis not in own]
    if loops.guards or (others and not adds) or not own:
        raise Refusal("every iteration of the loop overwrites the one before", OWN_BLOCK)
    loops.note(cell.serial, ADDS if others else OWN)
    if operate is not None:
        before = block_taken(space, x, items)
        changed = in_place(before, operate(space, before, value))
        value = changed if not adds else value if operate is plus else negated(space, value)
    in_place(x, value)
    for block in others:
        if block in value.axes:
            raise Mismatch(f"{value.shape} is added in every iteration", "sum it first")
        value = replace(value, expression=sum_of_blocks(space, value.expression, block))
    value = of_whole(space, x, items, entries(value, x.dtype))
    return put(space, x, [":" if is_block(item) else item for item in items], value, adds)


def stored_in_loop(
    expressions: ExpressionReader,
    loops: LoopContext,
    index: ast.AST,
    x: TextValue,
    value: TextValue,
    operate: Callable | None,
    cell: Cell,
) -> TextValue:
    """``x`` after all rounds of the enclosing loops have written their parts.

    Long: the value, the target, the kind of write, and the loops.
    """
    items = items_of(expressions, index)
    places = {axis_of(item) for item in items if is_place(item) and item.kind == PLACE}
    outside, adds = loops.outside(cell.loops), operate in (plus, subtracted)
    if outside and not {*outside} <= places:
        loops.note(cell.serial, ADDS)
    elif outside and not adds:
        loops.note(cell.serial, OWN)
    if operate is not None and not adds:
        before = taken_at(expressions.space, x, items)
        value = in_place(before, operate(expressions.space, before, value))
    elif operate is subtracted:
        value = negated(expressions.space, value)
    in_place(x, value)
    return written_at(loops, x, items, value, cell.loops, adds)
