"""Entries read at an affine index: a load at another place, with a bounds check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from functools import reduce

from codegen.program import arrays
from codegen.program.reads import IndexStep, Joined, Overlapped, Read
from codegen.program.values import Number, Plus, Value
from codegen.schedule.elements import (
    ONE,
    ZERO,
    Axes,
    Element,
    compare,
    guarded,
    less,
    minus,
    number,
    plus,
    size,
    times,
)
from derive.language.notation.layout import Dim

Indices = Mapping[str, tuple[Element, ...]]
NOTHING, UNIT = Number(Fraction(0)), Number(Fraction(1))


class Reads:
    """One method for each class of values that are read at an index."""

    def entry(self, value: Value, at: Indices) -> Element:
        raise NotImplementedError

    def unflattened(self, axis: str) -> Axes:
        raise NotImplementedError

    def unpacked(self, axis: str, place: Element) -> tuple[Element, ...]:
        raise NotImplementedError

    def _at_Read(self, value: Read, at: Indices) -> Element:
        place = self._place(value, at)
        divisor = self.entry(value.divisor, {})
        length = reduce(times, map(size, self.unflattened(value.read)))
        tests = [compare(place, ">=", ZERO), compare(place, "<", times(length, divisor))]
        if divisor != ONE:
            rest = Element("remainder", (place, divisor))
            tests.append(compare(rest, "==", ZERO))
            place = Element("floor divide", (place, divisor))
        kept = [dim for i, dim in enumerate(value.operand.dims) if i != value.along]
        inside = {dim.axis.name: at[dim.axis.name] for dim in kept if not dim.one}
        inside[value.read] = self.unpacked(value.read, place)
        found = self.entry(value.operand, inside)
        if value.fits and divisor == ONE:
            return found
        condition = reduce(lambda one, other: Element("and", (one, other)), tests)
        return guarded(condition, found, self.entry(value.fill, {}))

    def _at_Stepped(self, value: arrays.Stepped, at: Indices) -> Element:
        axis = value.operand.dims[value.along].axis.name
        here = reduce(flat_index, zip(at[axis], self.unflattened(axis), strict=True), ZERO)
        place, there = less(here, ONE), compare(here, ">", ZERO)
        if value.reverse:
            length = reduce(times, map(size, self.unflattened(axis)))
            place = plus(here, ONE)
            there = compare(place, "<", length)
        found = self.entry(value.operand, {**at, axis: self.unpacked(axis, place)})
        end = ZERO if value.initial is None else self.entry(value.initial, at)
        return guarded(there, found, end)

    def _place(self, value: Read, at: Indices) -> Element:
        offset = self.entry(value.offset, {})
        if offset.kind == "number" and offset.number < 0:
            offset = minus(number(-offset.number))
        place = ZERO
        for step in sorted(value.steps, key=lambda step: step.backward):
            if step.backward and place == ZERO:
                place, offset = offset, ZERO
            pairs = zip(at[step.axis], self.unflattened(step.axis), strict=True)
            own = reduce(flat_index, pairs, ZERO)
            own = times(self.entry(step.step, {}), own)
            place = less(place, own) if step.backward else plus(place, own)
        return less(place, offset.args[0]) if offset.kind == "negate" else plus(place, offset)

    def _at_Joined(self, value: Joined, at: Indices) -> Element:
        """The sum of the parts, each of which is 0 outside of its range."""
        total = ZERO
        for part, negative in value.parts:
            own = self.entry(_checked(part), at)
            total = plus(total, minus(own) if negative else own)
        return total

    def _at_Overlapped(self, value: Overlapped, at: Indices) -> Element:
        """The sum over the entries of windows, read where they lie."""
        *_, last = value.operand.dims
        place = value.dims[value.along]
        steps = (
            IndexStep(place.axis.name, UNIT, False),
            IndexStep(last.axis.name, value.spacing, True),
        )
        read = value.operand.dims[value.along].axis.name
        offset = Plus(((value.offset, True),))
        ends = (NOTHING, NOTHING, NOTHING)
        dims = (*value.dims, Dim(last.axis))
        operand, step = value.operand, value.step
        made = Read(
            operand, value.along, read, steps, offset, step, NOTHING, *ends, False, False, dims=dims
        )
        along = (len(dims) - 1,)
        return self.entry(arrays.Reduce("sum", made, along, False, dims=value.dims), at)


def _checked(part: Value) -> Value:
    """A part that is 0 out of its range: a check replaces cutting."""
    if isinstance(part, Read):
        return replace(part, fits=False)
    factors = tuple((_checked(f), divides) for f, divides in getattr(part, "factors", ()))
    return replace(part, factors=factors) if factors else part


def flat_index(before: Element, pair: tuple[Element, str]) -> Element:
    at, axis = pair
    return at if before == ZERO else plus(times(before, size(axis)), at)
