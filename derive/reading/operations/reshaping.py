"""Torch's operations that count the entries again: dimensions joined and taken apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sympy import Expr, Mul

from derive.language.nodes import Flatten, Unflatten
from derive.language.symbols import Axis
from derive.reading.operations.entries import Operation, entry, position
from derive.reading.operations.shaping import (
    REST,
    axis_of_size,
    expanded,
    flat,
    is_rest,
    relaid,
    shape_of,
)
from derive.reading.refusals import Mismatch, Refusal
from derive.reading.values import NUMBER, Space, Value, number

reshaping: dict[str, Operation] = {}


def _parts(space: Space, x: Value, sizes: Sequence[Expr | None]) -> Value:
    """``x`` with a flat axis taken apart where ``sizes`` lacks it and has parts of it."""
    for axis in x.axes:
        parts = space.parts_of(axis)
        if not parts or space.size(axis) in sizes or not {space.size(p) for p in parts} & {*sizes}:
            continue
        apart: list[Axis] = []
        for part in parts:
            apart.append(space.twin(part, [*x.axes, *apart]))
        place = x.dims.index(axis)
        e = Unflatten.over(x.expression, [axis], apart)
        x = relaid(x, (*x.dims[:place], *apart, *x.dims[place + 1 :]))
        x = replace(x, expression=e, extent=x.extent.inside())
    return x


def reshaped(space: Space, x: Value, sizes: Sequence, what: str) -> Value:
    """The entries of ``x`` in their order, with other sizes: of the same axes, or of several as one
    where the mathematics flattens those.
    """
    space.by_position = True
    wanted: list[Expr | None] = []
    for size in flat(sizes):
        if not isinstance(size, Value) or size.kind != NUMBER:
            raise Refusal(f"{what}: a size is a number", "write x.shape[0], or N")
        axis = None if is_rest(size) else axis_of_size(space, size, ())
        wanted.append(None if is_rest(size) else space.size(axis))
    if wanted.count(None) > 1:
        raise Refusal(f"{what}: only one size can be -1", "write the others out")
    x = _parts(space, x, wanted)
    left, dims, e = list(x.axes), [], x.expression
    for place, size in enumerate(wanted):
        if size == 1:
            dims.append(None)
            continue
        count = _taken(space, left, size, [s for s in wanted[place + 1 :] if s != 1])
        if count is None:
            raise _no_view(space, x, wanted, what)
        group, left = left[:count], left[count:]
        axis = group[0] if group else None
        if len(group) > 1:
            axis = space.twin(space.flat_of(group), [*filter(None, dims), *left])
            e = Flatten.over(e, group, [axis])
        dims.append(axis)
    if left:
        raise _no_view(space, x, wanted, what)
    return relaid(replace(x, expression=e, extent=x.extent.inside()), dims)


def _no_view(
    space: Space, x: Value, wanted: Sequence[Expr | None], what: str
) -> Refusal | Mismatch:
    """Entries that are too many or too few; else a view that torch has and that is not read."""
    shape = ", ".join("-1" if size is None else str(size) for size in wanted)

    def entries(sizes: Iterable[Expr]) -> Expr:
        flat = {axis: Mul(*parts) for axis, parts in space.definition.flattened}
        return Mul(*sizes).xreplace(flat)

    if None not in wanted and entries(wanted) != entries(map(space.size, x.dims)):
        problem = f"{what}: the shapes {x.shape} and ({shape}) have different numbers of entries"
        return Mismatch(problem, "the number of entries must stay the same")
    return Refusal(
        f"{what}: {x.shape} as ({shape}) is not supported",
        "axes are joined as the mathematics joins them; a view does not transpose: .T does",
    )


def _taken(space: Space, left: list[Axis], size: Expr | None, later: list) -> int | None:
    """How many of the axes that are ``left`` become one dimension of ``size``."""
    if size is None:
        behind = 0
        for wanted in reversed(later):
            count = next(
                (
                    n
                    for n in range(1, len(left) - behind + 1)
                    if _size_of(space, left[len(left) - behind - n : len(left) - behind]) == wanted
                ),
                None,
            )
            if count is None:
                return None
            behind += count
        count = len(left) - behind
        return count if count < 2 or _size_of(space, left[:count]) is not None else None
    fits = (n for n in range(1, len(left) + 1) if _size_of(space, left[:n]) == size)
    return next(fits, None)


def _size_of(space: Space, axes: Sequence[Axis]) -> Expr | None:
    """The size of several axes as one, where the mathematics knows it."""
    if len(axes) == 1:
        return space.size(axes[0])
    flat = space.flat_of(axes)
    return None if flat is None else space.size(flat)


@entry(reshaping, "view", forms="method")
@entry(reshaping, "reshape")
def _view(space: Space, input: Value, *shape):
    return reshaped(space, input, shape, "view")


@entry(reshaping, "view_as", "reshape_as", forms="method")
def _view_as(space: Space, input: Value, other: Value):
    result = reshaped(space, input, shape_of(space, other), "view_as")
    return expanded(space, result, other.dims, "view_as")


@entry(reshaping, "flatten")
def _flatten(space: Space, input: Value, start_dim=None, end_dim=None):
    first = 0 if start_dim is None else position(space, input, start_dim)
    last = len(input.dims) - 1 if end_dim is None else position(space, input, end_dim)
    shape = shape_of(space, input)
    return reshaped(space, input, [*shape[:first], number(REST), *shape[last + 1 :]], "flatten")


@entry(reshaping, "unflatten")
def _unflatten(space: Space, input: Value, dim: Value, sizes):
    place, shape = position(space, input, dim), shape_of(space, input)
    return reshaped(
        space, input, [*shape[:place], *flat((sizes,)), *shape[place + 1 :]], "unflatten"
    )
