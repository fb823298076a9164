"""Broadcasting: how dimensions of several values line up, and sums and products of such values.

Two dimensions fit if their sizes are the same symbol; one axis is then renamed to the other, and an
axis that would appear twice (``x @ x.T``) gets a twin of the same size.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace

from sympy import Add, Expr, Integer, Mul, oo

from derive.claims.reading.composed import total
from derive.claims.reading.lengths import shown
from derive.claims.reading.literal import with_lost
from derive.claims.reading.refusals import Mismatch, Refusal
from derive.claims.reading.unwritten import check_written
from derive.claims.reading.values import (
    COUNT,
    IGNORED,
    INDEX,
    NUMBER,
    PLACE,
    TENSOR,
    Dims,
    Extent,
    Labels,
    Space,
    TextValue,
    held_as,
    number,
    product_of,
    promoted,
    sum_of,
)
from derive.language.nodes import OneHot, Position, renamed
from derive.language.notation.statements import misplaced_infinity
from derive.language.symbols import Axis


def placed(space: Space, e: Expr, mapping: Mapping[Axis, Axis]) -> Expr:
    """``e`` with its axes renamed simultaneously, so that axes may be swapped.

    Axes are renamed one at a time, each to a name that is free by then, so that an axis bound
    inside is renamed only on a real clash and keeps its size.
    """
    left = {old: new for old, new in mapping.items() if old != new}
    while left:
        old = next((old for old, new in left.items() if new not in left), None)
        if old is None:  # a cycle: move one axis to a temporary name
            old = next(iter(left))
            waiting = space.twin(old, {*left, *left.values()})
            left[waiting] = left.pop(old)
            e = renamed(e, {old: waiting})
        else:
            e = renamed(e, {old: left.pop(old)})
    return e


def matched(
    space: Space,
    operands: Sequence[tuple[TextValue, Labels]],
    order: Iterable[Hashable] | None = None,
) -> tuple[list[Expr], dict[Hashable, Axis | None]]:
    """Rename axes so that dimensions under one label share one axis.

    ``operands`` are values, each with a label for every dimension. Dimensions under one label have
    one size, or size 1. Returns the expressions, and the axis of every label, in ``order``; labels
    that come first keep their axes. Raises `Mismatch`.
    """
    met: dict[Hashable, list[Axis]] = {label: [] for label in order or ()}
    for value, labels in operands:
        for axis, label in zip(value.dims, labels, strict=True):
            met.setdefault(label, []).extend([] if axis is None else [axis])
    chosen: dict[Hashable, Axis | None] = {}
    for label, axes in met.items():
        for other in axes[1:]:
            sizes = space.size(other), space.size(axes[0])
            if sizes[0] != sizes[1] and not space.meets(*sizes):
                raise _mismatch(space, axes[0], other, [value for value, _ in operands])
        taken = set(filter(None, chosen.values()))
        free = [axis for axis in axes if axis not in taken]
        chosen[label] = free[0] if free else space.twin(axes[0], taken) if axes else None
    expressions = []
    for value, labels in operands:
        pairs = zip(value.dims, labels, strict=True)
        mapping = {axis: chosen[label] for axis, label in pairs if axis is not None}
        if any(old != new for old, new in mapping.items()):
            space.work += value.extent.length
        expressions.append(placed(space, value.expression, mapping))
    return expressions, chosen


def _mismatch(space: Space, one: Axis, other: Axis, values: Sequence[TextValue]) -> Mismatch:
    shapes = " and ".join(value.shape for value in values)
    problem = f"shapes {shapes} do not fit: {shown(one)} meets {shown(other)}"
    if not space.may_be(one, other):
        return Mismatch(problem, "the lengths differ: is a slice or a padding off by one?")
    problem += (
        f". torch raises here, and where {shown(space.size(one))} equals "
        f"{shown(space.size(other))} it takes the wrong entries silently"
    )
    return Mismatch(problem, _alignment_remedy(space, values))


def _alignment_remedy(space: Space, values: Sequence[TextValue]) -> str:
    """How to reshape the value of lower rank so that it broadcasts."""
    low, *_, high = sorted(values, key=lambda value: len(value.dims))
    lower, higher = ([space.size(axis) for axis in value.dims] for value in (low, high))
    if len(lower) == len(higher) == 2 and lower == higher[::-1]:
        return "one side is the transpose of the other: .T"
    missing = len(higher) - len(lower)
    for place in range(len(lower) + 1 if missing else 0):
        spread = [Integer(1)] * (missing - 1) + [*lower[:place], Integer(1), *lower[place:]]
        if all(1 in pair or pair[0] == pair[1] for pair in zip(spread, higher, strict=True)):
            index = ", ".join([":"] * place + ["None"] + [":"] * (len(lower) - place))
            return (
                f"give the side that is {low.shape} a dimension of size 1: keepdim=True where it "
                f"was reduced, or [{index}]"
            )
    return "torch aligns shapes from the right: the last dimensions meet, then those before"


def aligned(space: Space, values: Sequence[TextValue]) -> tuple[list[Expr], Dims]:
    """The values broadcast against each other, and the resulting dimensions."""
    if space.by_name or any(value.by_name for value in values):
        return [value.expression for value in values], _dims_by_name(space, values)
    rank = max(len(value.dims) for value in values)
    operands = [(value, range(rank - len(value.dims), rank)) for value in values]
    expressions, chosen = matched(space, operands, range(rank))
    return expressions, tuple(chosen.values())


def _dims_by_name(space: Space, values: Sequence[TextValue]) -> Dims:
    """The union of the axes: in positional order if they also align by position, else in their own
    order.
    """
    rank = max(len(value.dims) for value in values)
    found: list[set[Axis]] = [
        {v.dims[i - rank + len(v.dims)] for v in values if i >= rank - len(v.dims)} - {None}
        for i in range(rank)
    ]
    axes = [axis for column in found for axis in column]
    if all(len(column) < 2 for column in found) and len(set(axes)) == len(axes):
        return tuple(next(iter(column), None) for column in found)
    return space.definition.in_order(set(axes))


def places_of(count: TextValue) -> TextValue:
    """0, 1, 2, ... along its axis, as numbers instead of an index."""
    place = next((Position(axis) for axis in count.axes), Integer(0))
    return replace(count, expression=place, kind=TENSOR, whole=True)


def pointwise(
    space: Space,
    build: Callable[..., Expr],
    values: Sequence[TextValue],
    extent: Extent | None = None,
    dtype: str | None = None,
) -> TextValue:
    """Apply ``build`` entry by entry to the broadcast ``values``; the result has ``dtype``, or
    their promoted dtype.
    """
    values = [places_of(value) if value.kind == COUNT else value for value in values]
    for value in values if space.unwritten else ():
        check_written(value.expression)
    for value in values:
        if value.kind in (INDEX, IGNORED, PLACE):
            raise Refusal(
                "an index cannot be used as a number",
                _in_place_of_an_index(space, value),
            )
    expressions, dims = aligned(space, values)
    if extent is None:
        extent = sum_of(value.extent for value in values).inside()
    kind = NUMBER if all(value.kind == NUMBER for value in values) else TENSOR
    by_name = any(value.by_name for value in values)
    dtype = dtype or promoted([*values, *[number(1, False)] * by_name])  # the notation has no bools
    held = held_as(dtype, kind)
    e = build(*expressions)
    if space.infinite and (e.has(oo) or misplaced_infinity(e)):
        raise Refusal("inf is not a real number", "write torch.where(mask, x, -torch.inf)")
    if space.as_written:
        e = with_lost(e, expressions)
    return space.made(e, dims, extent, by_name=by_name, **held)


def _in_place_of_an_index(space: Space, index: TextValue) -> str:
    """The remedy, with the axis that the forward picks along."""
    hots = {hot for s in space.definition.statements for hot in s.expression.atoms(OneHot)}
    own = [hot for hot in hots if hot.operand == index.expression]
    (axis,) = own[0].axes if own else ("C",)
    name = own[0].operand if own else "labels"
    return f"write a one-hot, F.one_hot({name}, {axis}), or index with it: x[range(n), {name}]"


def added(space: Space, *values: TextValue) -> TextValue:
    return pointwise(space, Add, values, sum_of(v.extent for v in values))


def multiplied(space: Space, *values: TextValue) -> TextValue:
    return pointwise(space, Mul, values, product_of(v.extent for v in values))


def negated(space: Space, value: TextValue) -> TextValue:
    return multiplied(space, number(-1), value)


def contracted(
    space: Space,
    operands: Sequence[tuple[TextValue, Labels]],
    kept: Labels,
    dtype: str | None = None,
) -> TextValue:
    """The product of the operands, summed over every label that is not ``kept``: an einsum."""
    for value, _ in operands if space.unwritten else ():
        check_written(value.expression)
    expressions, chosen = matched(space, operands)
    gone = [axis for label, axis in chosen.items() if label not in kept and axis is not None]
    e = total(Mul(*expressions), gone, space.size)
    extent = product_of(value.extent for value, _ in operands).inside()
    held = held_as(dtype or promoted(value for value, _ in operands))
    return space.made(e, tuple(chosen[label] for label in kept), extent, **held)
