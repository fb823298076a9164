"""Subscripts: new dimensions, picked entries, shapes and pairs."""

from __future__ import annotations

import ast
from dataclasses import replace

from sympy import Expr

from derive.claims.reading.blocks import block_taken, is_block
from derive.claims.reading.loops import is_place, taken_at
from derive.claims.reading.operations.entries import Extremes, integer
from derive.claims.reading.operations.picking import picked
from derive.claims.reading.operations.shaping import relaid
from derive.claims.reading.parts import EntryIndex, WrittenSlice, by_dimension, taken
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.values import (
    BLOCK,
    COUNT,
    INDEX,
    INT,
    MASK,
    NUMBER,
    PLACE,
    Space,
    TextValue,
)
from derive.language.symbols import Axis, Tensor, is_number_or_size

REMEDY = "supported are x[:, None], x[:, 1:], x[range(n), labels], table[labels] and x.shape[0]"


def indexed(reader, node: ast.Subscript):
    """``x[...]``, read by ``reader``."""
    x = reader.read(node.value)
    if isinstance(x, Extremes):
        x = (x.values, x.indices)
    if isinstance(x, tuple):
        return _of_tuple(reader, x, node.slice)
    if not isinstance(x, TextValue) or x.kind == NUMBER:
        raise Refusal("this cannot be indexed", REMEDY)
    axes = _axes(reader, x, node.slice)
    if axes is not None:
        met = x.expression.along(axes)
        return TextValue(met, axes, by_name=True, storage=x.storage)
    items = items_of(reader, node.slice)
    if any(map(is_block, items)):
        return block_taken(reader.space, x, items)
    if any(map(is_place, items)):
        return taken_at(reader.space, x, items)
    if any(isinstance(item, TextValue) for item in items):
        at, index = advanced(items, x)
        return from_front(
            picked(reader.space, to_front(x, at, len(index)), index), at, rank_of(index)
        )
    if any(isinstance(item, (WrittenSlice, EntryIndex)) for item in items):
        return taken(reader.space, x, items)
    return relaid(x, spread(reader.space, x, items))


def _of_tuple(reader, items: tuple, index: ast.AST):
    if isinstance(index, ast.Slice):
        ends = [
            None if end is None else integer(reader.read(end), "the index")
            for end in (index.lower, index.upper)
        ]
        if index.step is None:
            return items[slice(*ends)]
    place = integer(reader.read(index), "the index")
    if not -len(items) <= place < len(items):
        raise Refusal(
            f"index {place} is out of range for {len(items)} values", "count from 0, or from -1"
        )
    return items[place]


def _axes(reader, x: TextValue, index: ast.AST) -> tuple[Axis, ...] | None:
    """The axes of ``x[M, D]``, the notation for a tensor read along other axes."""
    names = index.elts if isinstance(index, ast.Tuple) else [index]
    if not isinstance(x.expression, Tensor) or len(names) != len(x.expression.home):
        return None
    if not all(isinstance(name, ast.Name) and reader.local(name.id) is None for name in names):
        return None
    made = {axis.name: axis for axis in reader.space.definition.axes}
    axes = tuple(made.get(name.id) for name in names)
    if not axes or None in axes or any(n.id in reader.names.tensors for n in names):
        return None
    sizes = zip(axes, x.expression.home, strict=True)
    if len(set(axes)) != len(axes) or any(
        reader.space.size(a) != reader.space.size(home) for a, home in sizes
    ):
        raise Refusal("the axes in brackets have different sizes", "use axes of the same sizes")
    return axes


def items_of(reader, index: ast.AST) -> list:
    """The items of a subscript, one per dimension: ':', None, ..., a slice, an integer or
    an index.
    """
    items: list = []
    for node in index.elts if isinstance(index, ast.Tuple) else [index]:
        if isinstance(node, ast.Slice):
            ends = [_end(reader, end) for end in (node.lower, node.upper, node.step)]
            items.append(":" if ends == [None] * 3 else WrittenSlice(*ends))
            continue
        item = reader.read(node)
        kind = item.kind if isinstance(item, TextValue) else None
        if item is None or item is Ellipsis or kind in (INDEX, COUNT, MASK, PLACE, BLOCK):
            items.append(item)
        elif kind == NUMBER and item.dtype == INT:
            items.append(EntryIndex(item.expression))
        else:
            raise Refusal("this is not a supported index", REMEDY, node)
    return items


def _end(reader, node: ast.AST | None) -> Expr | None:
    """An end or the step of a slice: an integer or an expression in sizes."""
    found = None if node is None else reader.read(node)
    if found is None:
        return None
    is_number = isinstance(found, TextValue) and found.kind == NUMBER and found.dtype == INT
    if is_number and is_number_or_size(found.expression):
        return found.expression
    raise Refusal("the end of a slice must be an integer or a size", REMEDY, node)


def advanced(items: list, x: TextValue) -> tuple[int, list[TextValue]]:
    """The position of the first index tensor, and the adjacent index tensors; all other dimensions
    are whole.
    """
    kinds = [isinstance(item, TextValue) for item in items]
    at = kinds.index(True)
    count = kinds[at:].index(False) if False in kinds[at:] else len(items) - at
    rest = [*items[:at], *items[at + count :]]
    if any(isinstance(item, TextValue) or item not in (":", Ellipsis) for item in rest):
        raise Refusal("index tensors must be adjacent, and all other dimensions whole", REMEDY)
    if len(items) - rest.count(Ellipsis) > len(x.dims) or rest.count(Ellipsis) > 1:
        raise Refusal(f"the shape {x.shape} has fewer dimensions", REMEDY)
    more = len(x.dims) - len(items) if Ellipsis in rest[:at] else 0
    return at + more, items[at : at + count]


def rank_of(index: list[TextValue]) -> int:
    """The number of dimensions that the index tensors produce together."""
    return max(len(i.dims) for i in index)


def to_front(x: TextValue, at: int, count: int) -> TextValue:
    """Move ``count`` dimensions at a place to the front."""
    return replace(x, dims=(*x.dims[at : at + count], *x.dims[:at], *x.dims[at + count :]))


def from_front(x: TextValue, at: int, count: int) -> TextValue:
    """Move the first ``count`` dimensions back to their place."""
    return replace(x, dims=(*x.dims[count : count + at], *x.dims[:count], *x.dims[count + at :]))


def spread(space: Space, x: TextValue, items: list) -> list[Axis | None]:
    """The dimensions of ``x[:, None]``: None is a new one, of size 1."""
    space.by_position = True
    dims = iter(x.dims)
    return [None if item is None else next(dims) for item in by_dimension(x, items)]
