"""Windows along the chunked axis: what reads rows near its own gets them from the whole.

A window that moves by one row with each place reads, for the rows of a part, as many more before
and behind it, whatever the part: its halo. What it reads is computed on these rows too, as far as
that is entry by entry; any other value is collected. Beyond the ends of the axis it has the fill.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from codegen.program.arrays import Arrange
from codegen.program.parts import operands, values_in
from codegen.program.reads import Convolve, Overlapped, Read
from codegen.program.shards import Filled, Near
from codegen.program.values import Load, Number, Plus, SizeOf, Times, Value
from codegen.sharding.placing import Placing, SplitValue
from codegen.sharding.values import POINTWISE, with_operands

ZERO, ONE = Number(Fraction(0)), Number(Fraction(1))


@dataclass(frozen=True)
class Halo:
    """The rows before and behind those of a part."""

    before: Value = ZERO
    after: Value = ZERO

    def __add__(self, other: Halo) -> Halo:
        return Halo(added(self.before, other.before), added(self.after, other.after))


def windows_read(placing: Placing, value: Read) -> SplitValue | None:
    """A read that moves along the axis by one row with each of its places; None for another one."""
    axis = placing.groups.chunked
    if value.read != axis or not _moves_by_one(value, axis):
        return None
    split = tuple(axis if d.axis.name == axis else "" for d in value.dims)
    return SplitValue(_of_rows(placing, value, Halo()), split)


def windows_added(placing: Placing, value: Overlapped) -> SplitValue | None:
    """The sum of all entries of windows at each row: those of the windows near it."""
    axis = placing.groups.chunked
    rows, entries = value.operand.dims[value.along], value.operand.dims[-1]
    plain = value.step == ONE and isinstance(value.spacing, Number)
    if value.length != axis or rows.axis.name != axis or entries.axis.name == axis or not plain:
        return None
    far = times(value.spacing, added(SizeOf(entries.axis.name), Number(Fraction(-1))))
    low, high = (ZERO, far) if value.spacing.value > 0 else (far, ZERO)
    halo = Halo(added(value.offset, high), negative(added(value.offset, low)))
    operand = filled(placing, value.operand, value.along, halo)
    split = tuple(axis if i == value.along else "" for i, _ in enumerate(value.dims))
    return SplitValue(replace(value, operand=operand, offset=negative(high)), split)


def windows_multiplied(
    placing: Placing, value: Convolve, together: Callable[[Value], Value]
) -> SplitValue | None:
    """A convolution along the axis that moves by one row with each of its places; ``together`` adds
    up the weights that each part makes.
    """
    axis = placing.groups.chunked
    own = next((g for g in value.geometry if g.input == axis), None)
    of_weight = {"output": value.second, "input": value.first, "weight": value}[value.made]
    others = [v for v in (value, value.first, value.second) if v is not of_weight]
    if own is None or own.stride != ONE or not all(axis in _names(v) for v in others):
        return None
    far = times(own.dilation, added(SizeOf(own.entry), Number(Fraction(-1))))
    if value.made == "input":  # from all places that meet a row
        halo, ends = Halo(added(far, negative(own.before)), own.before), far
        wide = filled(placing, value.second, _names(value.second).index(axis), halo)
        pair = placing.placed(value.first).value, wide
    else:
        halo, ends = Halo(own.before, own.after), ZERO
        wide = filled(placing, value.first, _names(value.first).index(axis), halo)
        pair = wide, placing.placed(value.second).value
    mine = replace(own, before=ends, after=ends, same=True, grows=True)
    geometry = tuple(mine if g is own else g for g in value.geometry)
    made = replace(value, first=pair[0], second=pair[1], geometry=geometry)
    split = tuple(axis if name == axis else "" for name in _names(value))
    return SplitValue(together(made) if value.made == "weight" else made, split)


def _names(value: Value) -> list[str]:
    return [dim.axis.name for dim in value.dims]


def filled(placing: Placing, value: Value, along: int, halo: Halo, around=Halo(), fill=ZERO):
    """The value on the rows ``around`` those of the part, and on their ``halo``."""
    inner = near(placing, value, around + halo)
    sizes = (around.before, around.after, halo.before, halo.after)
    return Filled(inner, along, *sizes, fill, dims=value.dims)


def near(placing: Placing, value: Value, halo: Halo) -> Value:
    """The value on the rows of the part and those of its halo that the whole has."""
    if isinstance(value, (*POINTWISE, Arrange)):
        return with_operands(value, [near(placing, v, halo) for v in operands(value)])
    if isinstance(value, Read) and _moves_by_one(value, placing.groups.chunked):
        return _of_rows(placing, value, halo)
    if isinstance(value, Load):
        inner = placing.defined.get(value.name)
        if isinstance(inner, (*POINTWISE, Arrange)):
            return near(placing, inner, halo)
        if isinstance(inner, Read) and _moves_by_one(inner, placing.groups.chunked):
            return _of_rows(placing, inner, halo)
    placed = placing.canonical(placing.placed(value))
    along = next((i for i, group in enumerate(placed.split) if group), None)
    if along is None:
        return placed.value
    whole = placed if _is_argument(placing, value) else placing.whole(placed, along)
    return Near(whole.value, along, halo.before, halo.after, dims=value.dims)


def _of_rows(placing: Placing, value: Read, halo: Halo) -> Value:
    own = Halo(value.before, value.after)
    operand = filled(placing, value.operand, value.along, own, halo, value.fill)
    there = {"before": ZERO, "after": ZERO, "offset": ZERO, "stop": ZERO}
    return replace(value, operand=operand, fits=True, grows=True, **there)


def _moves_by_one(value: Read, axis: str) -> bool:
    if not value.steps or value.shared or value.divisor != ONE:
        return False
    first, *others = value.steps
    by_one = first.axis == axis and first.step == ONE and not first.backward
    numbers = values_in(replace(value, operand=ZERO))
    counts = any(isinstance(v, SizeOf) and v.name == axis for v in numbers)
    return by_one and all(step.axis != axis for step in others) and not counts


def _is_argument(placing: Placing, value: Value) -> bool:
    return isinstance(value, Load) and value.name in placing.arguments


# -- numbers ---------------------------------------------------------------------------


def added(left: Value, right: Value) -> Value:
    if isinstance(left, Number) and isinstance(right, Number):
        return Number(left.value + right.value)
    terms = [(v, False) for v in (left, right) if v != ZERO]
    return terms[0][0] if len(terms) == 1 else Plus(tuple(terms))


def times(left: Value, right: Value) -> Value:
    if left == ONE:
        return right
    if isinstance(left, Number) and isinstance(right, Number):
        return Number(left.value * right.value)
    return Times(((left, False), (right, False)))


def negative(value: Value) -> Value:
    if isinstance(value, Number):
        return Number(-value.value)
    return Plus(((value, True),))
