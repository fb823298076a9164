"""Entries read at an affine index: a load at another place, with a bounds check."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import reduce

from codegen.program import arrays
from codegen.program.reads import IndexStep, Joined, Overlapped, Read
from codegen.program.values import Number, Plus, Value
from codegen.schedule.elements import (
    ONE,
    ZERO,
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
from codegen.schedule.entry_rules import Entries, Indices, rule
from derive.language.notation.layout import Dim

NOTHING, UNIT = Number(Fraction(0)), Number(Fraction(1))


@rule(Read)
def _read(f: Entries, value: Read, at: Indices) -> Element:
    place = _place(f, value, at)
    divisor = f.entry(value.divisor, {})
    length = reduce(times, map(size, f.unflattened(value.read)))
    tests = [compare(place, ">=", ZERO), compare(place, "<", times(length, divisor))]
    if divisor != ONE:
        rest = Element("remainder", (place, divisor))
        tests.append(compare(rest, "==", ZERO))
        place = Element("floor divide", (place, divisor))
    kept = [dim for i, dim in enumerate(value.operand.dims) if i != value.along]
    inside = {dim.axis.name: at[dim.axis.name] for dim in kept if not dim.one}
    inside[value.read] = f.unpacked(value.read, place)
    found = f.entry(value.operand, inside)
    if value.fits and divisor == ONE:
        return found
    condition = reduce(lambda one, other: Element("and", (one, other)), tests)
    return guarded(condition, found, f.entry(value.fill, {}))


@rule(arrays.Stepped)
def _stepped(f: Entries, value: arrays.Stepped, at: Indices) -> Element:
    axis = value.operand.dims[value.along].axis.name
    here = reduce(flat_index, zip(at[axis], f.unflattened(axis), strict=True), ZERO)
    place, there = less(here, ONE), compare(here, ">", ZERO)
    if value.reverse:
        length = reduce(times, map(size, f.unflattened(axis)))
        place = plus(here, ONE)
        there = compare(place, "<", length)
    found = f.entry(value.operand, {**at, axis: f.unpacked(axis, place)})
    end = ZERO if value.initial is None else f.entry(value.initial, at)
    return guarded(there, found, end)


def _place(f: Entries, value: Read, at: Indices) -> Element:
    offset = f.entry(value.offset, {})
    if offset.kind == "number" and offset.number < 0:
        offset = minus(number(-offset.number))
    place = ZERO
    for step in sorted(value.steps, key=lambda step: step.backward):
        if step.backward and place == ZERO:
            place, offset = offset, ZERO
        pairs = zip(at[step.axis], f.unflattened(step.axis), strict=True)
        own = reduce(flat_index, pairs, ZERO)
        own = times(f.entry(step.step, {}), own)
        place = less(place, own) if step.backward else plus(place, own)
    return less(place, offset.args[0]) if offset.kind == "negate" else plus(place, offset)


@rule(Joined)
def _joined(f: Entries, value: Joined, at: Indices) -> Element:
    """The sum of the parts, each of which is 0 outside of its range."""
    total = ZERO
    for part, negative in value.parts:
        own = f.entry(_checked(part), at)
        total = plus(total, minus(own) if negative else own)
    return total


@rule(Overlapped)
def _overlapped(f: Entries, value: Overlapped, at: Indices) -> Element:
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
    return f.entry(arrays.Reduce("sum", made, along, False, dims=value.dims), at)


def _checked(part: Value) -> Value:
    """A part that is 0 out of its range: a check replaces cutting."""
    if isinstance(part, Read):
        return replace(part, fits=False)
    factors = tuple((_checked(f), divides) for f, divides in getattr(part, "factors", ()))
    return replace(part, factors=factors) if factors else part


def flat_index(before: Element, pair: tuple[Element, str]) -> Element:
    at, axis = pair
    return at if before == ZERO else plus(times(before, size(axis)), at)
