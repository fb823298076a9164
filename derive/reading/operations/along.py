"""Torch's operations that go along a dimension, or read entries of it in other places."""

from __future__ import annotations

from collections.abc import Callable

from sympy import Eq, Expr, Integer, Piecewise, S, floor

from derive.language.diagonals import Identity
from derive.language.nodes import Position, Sum
from derive.language.scans import KINDS
from derive.language.symbols import MINUS_INFINITY, Axis, axes_of, is_number_or_size
from derive.reading.operations.entries import Operation, entry, integer, position, positions
from derive.reading.operations.shaping import relaid
from derive.reading.parts import read_along, reread
from derive.reading.refusals import Mismatch, Refusal
from derive.reading.values import INT, NUMBER, Space, Value, held_as

along: dict[str, Operation] = {}


# Sums, products and maxima so far


def so_far(e: Expr, axis: Axis) -> Expr:
    if axis not in axes_of(e):  # the same at every place
        return e * (Position(axis) + 1)
    return KINDS[False, False].over(e, S.One, S.Zero, [axis])


def product_so_far(e: Expr, axis: Axis) -> Expr:
    return KINDS[False, False].over(S.Zero, e, S.One, [axis])


def _scan(space: Space, x: Value, dim, make: Callable[[Expr, Axis], Expr]) -> Value:
    return read_along(space, x, position(space, x, dim), make)


# Entries in other places


@entry(along, "roll")
def _roll(space: Space, input: Value, shifts, dims=None):
    x = input
    if dims is None and len(x.dims) != 1:
        raise Refusal("roll without a dimension", "name it: torch.roll(x, 1, 0)")
    places = [0] if dims is None else positions(space, x, dims)
    shifts = shifts if isinstance(shifts, tuple) else (shifts,)
    if len(shifts) != len(places):
        raise Refusal("roll: a shift for each dimension", "write torch.roll(x, 1, 0)")
    for place, shift in zip(places, shifts, strict=True):
        by = whole_number(shift, "the shift")
        x = read_along(space, x, place, lambda e, axis, by=by: rolled(space, e, axis, by))
    return x


def whole_number(value, what: str) -> Expr:
    """A whole number or a size."""
    found = value if isinstance(value, Value) and value.kind == NUMBER else None
    if found is not None and found.dtype == INT and is_number_or_size(found.expression):
        return found.expression
    raise Refusal(f"{what} is no whole number", "write a number, or x.shape[0]")


def rolled(space: Space, e: Expr, axis: Axis, by: Expr) -> Expr:
    """Every entry ``by`` places later; those that leave at one end come in at the other."""
    if axis not in axes_of(e) or by == 0:
        return e
    size, back = space.size(axis), by.could_extract_minus_sign()
    space.need(size - (-by if back else by), 0)
    here, wrapped = Position(axis) - by, Position(axis) - by + (-size if back else size)
    return space.read_at(e, axis, here) + space.read_at(e, axis, wrapped)


@entry(along, "diagonal")
def _diagonal(space: Space, input: Value, offset=None, dim1=None, dim2=None):
    if offset is not None and integer(offset, "the offset") != 0:
        raise Refusal("a diagonal other than the main one", "slice first: x[:, 1:].diagonal()")
    first, second = (
        default if dim is None else position(space, input, dim)
        for dim, default in ((dim1, 0), (dim2, 1))
    )
    if len(input.dims) < 2 or first == second:
        raise Refusal(f"the diagonal of the shape {input.shape}", "it takes two dimensions")
    one, other = input.dims[first], input.dims[second]
    if one is None or other is None or space.size(one) != space.size(other):
        raise Mismatch(
            f"the diagonal of the shape {input.shape}", "both dimensions must have one size"
        )
    e = Sum.over(Identity.between(one, other) * input.expression, [other])
    dims = [axis for i, axis in enumerate(input.dims) if i not in (first, second)]
    return space.seen(input, e, (*dims, one))


@entry(along, "diag_embed")
def _diag_embed(space: Space, input: Value):
    if not input.dims or input.dims[-1] is None:
        raise Refusal(
            f"a diagonal of the shape {input.shape}", "it takes a dimension along an axis"
        )
    one = input.dims[-1]
    other = space.twin(one, [axis for axis in input.dims if axis])
    e = Identity.between(one, other) * input.expression
    return space.made(e, (*input.dims, other), input.extent.inside(), **held_as(input.dtype))


@entry(along, "diagflat", forms="torch")
def _diagflat(space: Space, input: Value):
    axes = [axis for axis in input.dims if axis]
    return _diag_embed(space, relaid(input, axes) if len(axes) == 1 else input)


@entry(along, "diag")
def _diag(space: Space, input: Value):
    if len(input.dims) == 2:
        return _diagonal(space, input)
    if len(input.dims) != 1:
        raise Refusal(f"diag of the shape {input.shape}", "write .diag_embed() or .diagonal()")
    return _diag_embed(space, input)


@entry(along, "unfold", forms="method")
def _unfold(space: Space, input: Value, dimension: Value, size: Value, step: Value):
    place, wide = position(space, input, dimension), whole_number(size, "the size")
    by = integer(step, "the step")
    axis = input.dims[place]
    if axis is None or by < 1:
        raise Refusal(
            f"unfold of the shape {input.shape}", "it takes a dimension and a step above 0"
        )
    space.need(space.size(axis) - wide, 0)
    inside = space.axis_of(wide, input.axes)
    count = floor((space.size(axis) - wide) / Integer(by)) + 1
    at = space.axis_of(count, {*input.axes, inside} - {axis})
    index = sum((k * Position(a) for k, a in ((by, at), (1, inside)) if a is not None), S.Zero)
    x = reread(space, input, place, at, index)
    return space.seen(input, x.expression, (*x.dims, inside))


@entry(along, "pad", forms="F")
def _pad(space: Space, input: Value, pad, mode="constant", value: Value | None = None):
    if mode != "constant" or not isinstance(pad, tuple) or len(pad) % 2:
        raise Refusal("pad takes an even number of lengths, with constants", "F.pad(x, (1, 0))")
    if len(pad) > 2 * len(input.dims):
        raise Mismatch(f"pad of the shape {input.shape}", "it has fewer dimensions")
    fill = S.Zero if value is None else value.expression
    if not (fill.is_number or fill == MINUS_INFINITY):
        raise Refusal("what is padded with is no number", "write F.pad(x, (1, 0))")
    x = input
    for k, (before, behind) in enumerate(zip(pad[::2], pad[1::2], strict=True)):
        ends = whole_number(before, "a length"), whole_number(behind, "a length")
        x = padded(space, x, len(x.dims) - 1 - k, ends, fill)
    return x


def padded(space: Space, x: Value, place: int, ends: tuple[Expr, Expr], fill: Expr) -> Value:
    axis, (before, behind) = x.dims[place], ends
    if before == behind == 0:
        return x
    length = space.size(axis) + before + behind
    space.need(length, 1)
    new = space.axis_of(length, {*x.axes} - {axis})
    if axis is not None:
        index = (S.Zero if new is None else Position(new)) - before
        return reread(space, x, place, new, index, fill)
    e = Piecewise((x.expression, Eq(Position(new), before)), (fill, True))
    dims = (*x.dims[:place], new, *x.dims[place + 1 :])
    return space.made(e, dims, x.extent.inside(), **held_as(x.dtype))
