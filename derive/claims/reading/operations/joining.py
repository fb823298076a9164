"""Torch's operations that concatenate, stack and split tensors."""

from __future__ import annotations

from collections.abc import Sequence

from sympy import Add, Eq, Expr, Integer, Piecewise, S

from derive.claims.reading.broadcasting import matched
from derive.claims.reading.refusals import Mismatch
from derive.claims.reading.values import Space, TextValue, held_as, promoted, sum_of
from derive.language.nodes import OneHot, Position
from derive.language.symbols import Axis


def cat(space: Space, values: Sequence[TextValue], place: int) -> TextValue:
    """Concatenate along a dimension."""
    if len({len(x.dims) for x in values}) > 1:
        raise Mismatch("cat of tensors with different numbers of dimensions", "unsqueeze one")
    rest = [i for i in range(len(values[0].dims)) if i != place]
    _same_elsewhere(space, values, rest, "cat")
    operands = [
        (x, [("own", k) if i == place else i for i in range(len(x.dims))])
        for k, x in enumerate(values)
    ]
    expressions, chosen = matched(space, operands, rest)
    length = sum((space.size(x.dims[place]) for x in values), S.Zero)
    others = {chosen[i] for i in rest} - {None}
    axis = space.axis_of(length, others)
    before, terms = S.Zero, []
    for k, (x, e) in enumerate(zip(values, expressions, strict=True)):
        terms.append(_laid_at(space, e, chosen[("own", k)], axis, before))
        before += space.size(x.dims[place])
    dims = tuple(axis if i == place else chosen[i] for i in range(len(values[0].dims)))
    extent = sum_of(x.extent.inside() for x in values)
    return space.made(Add(*terms), dims, extent, **held_as(promoted(values)))


def _same_elsewhere(space: Space, values: Sequence[TextValue], places, what: str) -> None:
    for x in values[1:]:
        if not all(space.meets(*(space.size(v.dims[i]) for v in (x, values[0]))) for i in places):
            shapes = " and ".join(v.shape for v in (values[0], x))
            raise Mismatch(f"{what} of the shapes {shapes}", "all other dimensions must be equal")


def _laid_at(space: Space, e: Expr, own: Axis | None, axis: Axis, before: Expr) -> Expr:
    """One part at its offset in the concatenation, and 0 elsewhere."""
    if own is None:
        return Piecewise((e, Eq(Position(axis), before)), (0, True))
    return space.read_at(e, own, Position(axis) - before)


def stack(space: Space, values: Sequence[TextValue], place: int) -> TextValue:
    """Stack along a new dimension."""
    if len({len(x.dims) for x in values}) > 1:
        raise Mismatch("stack of tensors with different numbers of dimensions", "unsqueeze one")
    places = range(len(values[0].dims))
    _same_elsewhere(space, values, places, "stack")
    expressions, chosen = matched(space, [(x, places) for x in values], places)
    dims = [chosen[i] for i in places]
    axis = space.axis_of(Integer(len(values)), {*dims} - {None})
    if axis is not None:
        expressions = [OneHot.over(Integer(k), [axis]) * e for k, e in enumerate(expressions)]
    dims.insert(place, axis)
    extent = sum_of(x.extent.inside() for x in values)
    return space.made(Add(*expressions), tuple(dims), extent, **held_as(promoted(values)))
