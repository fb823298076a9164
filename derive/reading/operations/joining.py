"""Torch's operations that lay tensors side by side, and that take one apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sympy import Add, Eq, Expr, Integer, Piecewise, S

from derive.language.nodes import OneHot, Position
from derive.language.symbols import Axis
from derive.reading.broadcasting import matched
from derive.reading.operations.along import whole_number
from derive.reading.operations.entries import Operation, entry, integer, position, tensor
from derive.reading.parts import Entry, reread, run_of, taken
from derive.reading.refusals import Mismatch, Refusal
from derive.reading.values import Space, Value, held_as, number, promoted, sum_of

joining: dict[str, Operation] = {}


def _tensors(tensors, what: str) -> list[Value]:
    if not isinstance(tensors, tuple) or not tensors:
        raise Refusal(f"{what} takes several tensors", f"write torch.{what}((a, b), 0)")
    return [tensor(x) for x in tensors]


def _place(space: Space, x: Value, dim) -> int:
    return position(space, x, number(0) if dim is None else dim)


@entry(joining, "cat", "concat", "concatenate", forms="torch")
def cat(space: Space, tensors, dim=None):
    values = _tensors(tensors, "cat")
    place = _place(space, values[0], dim)
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


def _same_elsewhere(space: Space, values: Sequence[Value], places, what: str) -> None:
    for x in values[1:]:
        if any(space.size(x.dims[i]) != space.size(values[0].dims[i]) for i in places):
            shapes = " and ".join(v.shape for v in (values[0], x))
            raise Mismatch(f"{what} of the shapes {shapes}", "all other dimensions must be equal")


def _laid_at(space: Space, e: Expr, own: Axis | None, axis: Axis, before: Expr) -> Expr:
    """A part where its entries stand among all, and 0 elsewhere."""
    if own is None:
        return Piecewise((e, Eq(Position(axis), before)), (0, True))
    return space.read_at(e, own, Position(axis) - before)


@entry(joining, "stack", forms="torch")
def stack(space: Space, tensors, dim=None):
    values = _tensors(tensors, "stack")
    place = 0 if dim is None else position(space, values[0], dim, extra=1)
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


@entry(joining, "unbind")
def _unbind(space: Space, input: Value, dim=None):
    place = _place(space, input, dim)
    count = space.fixed_size(input.dims[place])
    if count is None:
        raise Refusal(f"unbind along {input.dims[place]}, of any size", "index it: x[:, 0]")
    items = [":"] * place
    return tuple(taken(space, input, [*items, Entry(Integer(k))]) for k in range(count))


@entry(joining, "chunk")
def _chunk(space: Space, input: Value, chunks: Value, dim=None):
    place = _place(space, input, dim)
    count, size = integer(chunks, "chunks"), space.size(input.dims[place])
    width = space.whole(size / Integer(max(count, 1)))
    if count < 1 or width is None:
        raise Refusal(
            f"{size} is not known to be a multiple of {count}",
            f"slice it: x[..., : {size} // {count}]",
        )
    return _in_parts(space, input, place, [width] * count)


@entry(joining, "split")
def _split(space: Space, input: Value, split_size_or_sections, dim=None):
    place = _place(space, input, dim)
    size, sections = space.size(input.dims[place]), split_size_or_sections
    if isinstance(sections, tuple):
        widths = [whole_number(width, "a size") for width in sections]
        if not space.same(sum(widths, S.Zero), size):
            raise Mismatch(f"split of {size} into {widths}", "the sizes must add up to it")
        return _in_parts(space, input, place, widths)
    width = whole_number(sections, "the size")
    count = space.whole(size / width)
    if count is None or not count.is_Integer:
        raise Refusal(f"how often {width} goes into {size} is not known", "slice it: x[:, 1:]")
    return _in_parts(space, input, place, [width] * int(count))


def _in_parts(space: Space, x: Value, place: int, widths: Sequence[Expr]) -> tuple[Value, ...]:
    found, before = [], S.Zero
    for width in widths:
        end = before + width
        run = run_of(space, x.dims[place], (before, end, 1), {*x.axes} - {x.dims[place]})
        found.append(replace(reread(space, x, place, run.axis, run.index), storage=x.storage))
        before = end
    return tuple(found)
