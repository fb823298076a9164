"""Reshape a tensor: merge and split dimensions.

A merge that the forward writes as `Flatten` is read as one, and so is that of two dimensions of
variable size. If one of them is a number, the merge is written with reads alone, as for a stack of
halves: entries are concatenated or interleaved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sympy import Add, Expr, Integer, Mul, cancel, floor

from derive.claims.reading.lengths import in_sizes
from derive.claims.reading.operations.shaping import REST, relaid
from derive.claims.reading.parts import EntryIndex, taken
from derive.claims.reading.refusals import Mismatch, Refusal
from derive.claims.reading.values import Space, TextValue
from derive.language.nodes import Flatten, Position, Unflatten
from derive.language.symbols import Axis

MOST_ENTRIES = 16  # of a dimension that is split into its entries


def reshaped(space: Space, x: TextValue, sizes: Sequence[Expr], what: str) -> TextValue:
    space.by_position = True
    wanted = _known(space, x, sizes, what)
    dims = _Dims(space, x, what, wanted)
    if space.meets(dims.count, Mul(*wanted)):
        for size in wanted:
            dims.take(in_sizes(space.definition, size))
    if dims.left or len(dims.found) != len(wanted):
        raise dims.no_view()
    return relaid(dims.x, dims.found)


def _known(space: Space, x: TextValue, sizes: Sequence[Expr], what: str) -> list[Expr]:
    """The sizes, with -1 resolved."""
    if list(sizes).count(REST) > 1:
        raise Refusal(f"{what}: only one size can be -1", "write the others out")
    whole = _size_of(space, x.dims)
    others = Mul(*(s for s in sizes if s != REST))
    rest = cancel(whole / space.exactly(others)) if REST in sizes else REST
    return [rest if s == REST else s for s in sizes]


def _size_of(space: Space, axes: Sequence[Axis | None]) -> Expr:
    return in_sizes(space.definition, Mul(*map(space.size, axes)))


class _Dims:
    """Match the remaining dimensions of ``x`` (``left``) with the new ones (``found``), from the
    left.
    """

    def __init__(self, space: Space, x: TextValue, what: str, wanted: Sequence[Expr]):
        self.space, self.what, self.shape = space, what, x.shape
        self.x = relaid(x, x.axes)
        self.wanted, self.count = wanted, _size_of(space, x.dims)
        self.found: list[Axis | None] = []

    @property
    def done(self) -> int:
        return sum(axis is not None for axis in self.found)

    @property
    def left(self) -> tuple[Axis, ...]:
        return self.x.axes[self.done :]

    def take(self, size: Expr) -> None:
        """Produce the next dimension: an existing one, a merge, or a part of a split."""
        if self.space.same(size, Integer(1)):
            self.found.append(None)
            return
        left = self.left
        lengths = [_size_of(self.space, left[:n]) for n in range(1, len(left) + 1)]
        n = next((n for n, e in enumerate(lengths, 1) if self.space.same(e, size)), 0)
        if n > 1:
            self.join(n)
        elif not n and not self.split(size):
            raise self.no_view()
        self.found.append(self.x.axes[self.done])

    def join(self, n: int) -> None:
        """Merge the next ``n`` dimensions."""
        place, group = self.done, self.left[:n]
        flat, fixed = self.space.flat_of(group), self.space.fixed_size
        pairs = (i for i in range(n - 1) if fixed(group[i]) or fixed(group[i + 1]))
        i = next(pairs, None) if flat is None else None
        if i is not None:
            lay = _laid_in_order if fixed(group[i]) else _interleaved
            self.x = lay(self.space, self.x, place + i)
            return self.join(n - 1) if n > 2 else None
        flat = self.space.twin(flat or self.space.flattened(group), {*self.x.axes} - {*group})
        e = Flatten.over(self.x.expression, group, [flat])
        dims = (*self.x.dims[:place], flat, *self.x.dims[place + n :])
        self.x = replace(relaid(self.x, dims), expression=e, extent=self.x.extent.inside())

    def split(self, size: Expr) -> bool:
        """Split the next axis; False if it has no parts of this size."""
        if not self.left:
            return False
        space, x, place, axis = self.space, self.x, self.done, self.left[0]
        parts = space.parts_of(axis)
        if parts and any(space.same(_size_of(space, parts[:n]), size) for n in (1, len(parts) - 1)):
            apart: list[Axis] = []
            for part in parts:
                apart.append(space.twin(part, [*x.axes, *apart]))
            e = Unflatten.over(x.expression, [axis], apart)
            dims = (*x.dims[:place], *apart, *x.dims[place + 1 :])
            self.x = replace(relaid(x, dims), expression=e, extent=x.extent.inside())
            again = next(
                n for n in range(1, len(parts)) if space.same(_size_of(space, apart[:n]), size)
            )
            if again > 1:
                self.join(again)
            return True
        rest = space.whole(cancel(space.size(axis) / size))
        if rest is None:
            return False
        first = space.axis_of(size, {*x.axes} - {axis})
        second = space.axis_of(rest, {*x.axes, first} - {axis})
        index = rest * Position(first) + Position(second)
        e = space.read_at(x.expression, axis, index)
        dims = (*x.dims[:place], first, second, *x.dims[place + 1 :])
        self.x = space.seen(x, e, dims)
        return True

    def no_view(self) -> Refusal | Mismatch:
        """The error for a wrong number of entries, or for a view that is not supported."""
        shape = shape_text_of(self.wanted)
        known = not Mul(*self.wanted).has(floor)
        if known and not self.space.same(self.count, Mul(*self.wanted)):
            problem = f"{self.what}: the shapes {self.shape} and {shape}"
            return Mismatch(
                f"{problem} have different numbers of entries",
                "the number of entries must stay the same",
            )
        return Refusal(
            f"{self.what}: {self.shape} as {shape} is not supported",
            "neighbours are joined, and one is taken apart where its size is known to be a "
            "multiple; a view does not transpose: .T does",
        )


def shape_text_of(sizes: Sequence[Expr]) -> str:
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"


def _entries(space: Space, x: TextValue, place: int) -> list[TextValue]:
    count = space.fixed_size(x.dims[place])
    if count > MOST_ENTRIES:
        raise Refusal(f"{count} entries are merged", f"at most {MOST_ENTRIES} are supported")
    items = [":"] * place
    return [taken(space, x, [*items, EntryIndex(Integer(k))]) for k in range(count)]


def _laid_in_order(space: Space, x: TextValue, place: int) -> TextValue:
    """Merge two dimensions, the first of known length."""
    axis, count = x.dims[place + 1], space.fixed_size(x.dims[place])
    size = space.size(axis)
    return _together(space, x, place, lambda k, new: Position(new) - k * size, size * count)


def _interleaved(space: Space, x: TextValue, place: int) -> TextValue:
    """Merge two dimensions, the second of known length."""
    axis, count = x.dims[place], space.fixed_size(x.dims[place + 1])
    swapped = list(x.dims)
    swapped[place], swapped[place + 1] = swapped[place + 1], swapped[place]
    x, length = relaid(x, swapped), space.size(axis) * count
    return _together(space, x, place, lambda k, new: (Position(new) - k) / Integer(count), length)


def _together(space: Space, x: TextValue, place: int, index, length: Expr) -> TextValue:
    axis = x.dims[place + 1]
    others = {*x.axes} - {axis, x.dims[place]}
    new = space.axis_of(length, others)
    parts = [
        space.read_at(part.expression, axis, index(k, new))
        for k, part in enumerate(_entries(space, x, place))
    ]
    dims = (*x.dims[:place], new, *x.dims[place + 2 :])
    return space.seen(x, Add(*parts), dims)
