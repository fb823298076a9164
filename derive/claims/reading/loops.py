"""Loops over the positions along an axis, read as sums and entries: ``for i in range(N):``.

Inside a loop, ``x[i]`` is x at one position: the loop index becomes an axis of its own that no
dimension has. What is added to an outer tensor is summed over that axis; what is written at ``[i]``
is written along the dimension. This equals running the rounds in order as long as no round reads
what another wrote; a loop in which one does, or in which a round overwrites another's result, is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sympy import Expr, Integer, Mul

from derive.claims.reading.blocks import sum_of_blocks
from derive.claims.reading.broadcasting import matched
from derive.claims.reading.operations.dtypes import converted
from derive.claims.reading.operations.picking import hot
from derive.claims.reading.refusals import Mismatch, Refusal
from derive.claims.reading.values import (
    BLOCK,
    COUNT,
    INDEX,
    PLACE,
    Space,
    TextValue,
    entries,
    held_as,
)
from derive.language.nodes import Position, renamed, summed
from derive.language.symbols import Axis

WHOLE = "write it with whole tensors instead of a loop"
ANTI_DIAGONALS = (
    "write a forward that goes along one axis, from anti-diagonal to anti-diagonal: "
    "docs/notation.md#recurrences"
)
ADDS, OWN = "adds to all", "writes at its own place"


@dataclass
class LoopContext:
    """The loops around a line: their axes, the names written inside, and the conditions under which
    the line runs. ``ways`` records how each outer tensor is written.
    """

    space: Space
    written: list[set[str]] = field(default_factory=list)
    guards: list[Expr] = field(default_factory=list)
    ways: dict[int, str] = field(default_factory=dict)

    @property
    def axes(self) -> list[Axis]:
        return self.space.looped

    def enter(self, count, names: set[str]) -> TextValue:
        """Enter a loop and return its index."""
        if self.space.blocks:
            raise Refusal("a loop over positions inside a loop over blocks", WHOLE)
        if not isinstance(count, TextValue) or count.kind != COUNT:
            raise Refusal("only loops over an axis are supported: range(N)", WHOLE)
        (axis,) = count.axes
        inside = self.space.twin(axis, {*self.space.definition.axes})
        self.axes.append(inside)
        self.written.append(names)
        return TextValue(Position.over(Integer(0), [inside]), (), PLACE)

    def enter_blocks(self, stop: TextValue, names: set[str]) -> TextValue:
        """Enter a loop over blocks and return its block."""
        along = self.space.axis_of(stop.expression, known=True)
        if along is None or self.guards or len(self.axes) > len(self.space.blocks):
            raise Refusal("blocks of this are not supported", WHOLE)
        block = Axis(f"{along.name}_block_{len(self.axes)}")
        self.axes.append(block)
        self.space.blocks[block] = along
        self.written.append(names)
        return TextValue(Integer(0), (block,), BLOCK)

    def leave(self) -> None:
        self.space.blocks.pop(self.axes.pop(), None)
        self.written.pop()
        if not self.axes:
            self.ways.clear()

    def check_read(self, name: str, made_in: Sequence[Axis]) -> None:
        """Raise `Refusal` if a round would read what another one wrote."""
        for axis, names in zip(self.axes, self.written, strict=True):
            if name in names and axis not in made_in:
                way = WHOLE if len(self.axes) == 1 else f"{WHOLE}, or {ANTI_DIAGONALS}"
                raise Refusal("an iteration of the loop reads what another one wrote", way)

    def outside(self, made_in: Sequence[Axis]) -> list[Axis]:
        """The axes of loops inside which a tensor was not created."""
        return [axis for axis in self.axes if axis not in made_in]

    def note(self, serial: int, way: str) -> None:
        if self.ways.setdefault(serial, way) != way:
            raise Refusal("an iteration of the loop overwrites what another one wrote", WHOLE)

    def guarded(self, value: TextValue) -> TextValue:
        """``value`` where the conditions of the line hold, else 0."""
        if not self.guards:
            return value
        e = Mul(value.expression, *self.guards)
        return self.space.made(e, value.dims, value.extent.inside(), **held_as(value.dtype))

    def total(self, value: TextValue, made_in: Sequence[Axis]) -> TextValue:
        """The total that all rounds add to a tensor."""
        value = self.guarded(entries(value, value.dtype))
        e = value.expression
        for axis in self.outside(made_in):
            in_blocks = axis in self.space.blocks
            e = (
                sum_of_blocks(self.space, e, axis)
                if in_blocks
                else summed(e, [axis], self.space.size)
            )
        kept = {**held_as(value.dtype, value.kind)}
        return self.space.made(e, value.dims, value.extent.inside(), **kept)


def is_place(item) -> bool:
    """Whether an item indexes one position: a loop index or a label."""
    return isinstance(item, TextValue) and (
        item.kind == PLACE or (item.kind == INDEX and not item.dims)
    )


def axis_of(place: TextValue) -> Axis:
    return place.expression.axes[0]


def same_place(index: TextValue, place: TextValue) -> Expr:
    """``j == y[i]``"""
    return hot(index.expression, axis_of(place))


def _by_dimension(x: TextValue, items: list) -> list:
    """An item for every dimension."""
    met = len([item for item in items if item is not Ellipsis])
    if met > len(x.dims) or any(not (i in (":", Ellipsis) or is_place(i)) for i in _plain(items)):
        raise Refusal(f"this index of the shape {x.shape} is not supported in a loop", WHOLE)
    place = items.index(Ellipsis) if Ellipsis in _plain(items) else len(items)
    rest = [":"] * (len(x.dims) - met)
    return [*items[:place], *rest, *items[place + 1 :]]


def _plain(items: Iterable) -> list:
    return [item if not isinstance(item, TextValue) or is_place(item) else None for item in items]


def _place_in(space: Space, axis: Axis | None, item: TextValue) -> Axis:
    if axis is None:
        raise Mismatch("a dimension of size 1 is indexed", "index an axis")
    if item.kind == PLACE and space.size(axis) != space.size(axis_of(item)):
        raise Mismatch(
            f"the loop goes along {space.size(axis_of(item))}, and the dimension is {axis}",
            "index the dimension that the loop goes along",
        )
    return axis


def taken_at(space: Space, x: TextValue, items: list) -> TextValue:
    """``x[i]``, ``x[i, :, j]``, ``p[y[i]]``, read."""
    space.by_position = True
    e, dims = x.expression, []
    for axis, item in zip(x.dims, _by_dimension(x, items), strict=True):
        if isinstance(item, str):
            dims.append(axis)
            continue
        own = _place_in(space, axis, item)
        if item.kind == PLACE:
            e = renamed(e, {own: axis_of(item)})
        else:
            e = summed(e * hot(item.expression, own), [own], space.size)
    found = space.seen(x, e, tuple(dims))
    return replace(found, kind=INDEX) if x.kind == INDEX else found


def written_at(
    loops: LoopContext,
    x: TextValue,
    items: list,
    value: TextValue,
    made_in: Sequence[Axis],
    adds: bool,
) -> TextValue:
    """``x`` after all rounds have written or added ``value`` at ``x[items]``."""
    space = loops.space
    space.by_position = True
    items, own = _by_dimension(x, items), list(range(len(x.dims)))
    kept = [label for label, item in zip(own, items, strict=True) if isinstance(item, str)]
    if len(value.dims) > len(kept):
        raise Mismatch(
            f"the shape {value.shape} does not match the selected entries", "broadcast it"
        )
    value = converted(space, value, x.dtype)
    labels = kept[len(kept) - len(value.dims) :]
    (e, new), chosen = matched(space, [(x, own), (value, labels)])
    left, where, placed = loops.outside(made_in), Mul(*loops.guards), {}
    for label, item in zip(own, items, strict=True):
        if isinstance(item, str):
            if x.dims[label] is None and chosen[label] is not None:
                raise Mismatch(f"{value.shape} cannot be written into {x.shape}", "sum it first")
            continue
        axis = _place_in(space, chosen[label], item)
        if item.kind == INDEX:
            where *= hot(item.expression, axis)
        elif axis_of(item) in left and axis_of(item) not in placed:
            placed[axis_of(item)] = axis
        else:
            raise Refusal("this index is not supported", WHOLE)
    new, where = renamed(new, placed), renamed(where, placed)
    left = [axis for axis in left if axis not in placed]
    if left and not adds:
        raise Refusal("every iteration of the loop overwrites the one before", WHOLE)
    more = summed(where * new, left, space.size)
    result = e + more if adds else e * (1 - where) + more
    extent = x.extent + value.extent.inside()
    return space.made(result, tuple(chosen[label] for label in own), extent, **held_as(x.dtype))
