"""Overlap-add: sums over window entries that are put back where they were read, where they overlap.
Of a maximum one entry of each window is put back, at its index.
"""

from __future__ import annotations

from sympy import Expr, Mul

from codegen.lowering.context import Context
from codegen.lowering.frames import Frame, arranged, fitted
from codegen.lowering.indices import index_of
from codegen.lowering.picks import Picked, axes_at, met
from codegen.program.parts import is_number
from codegen.program.reads import Overlapped, Placed, Placement
from codegen.program.values import Value
from derive.language.nodes import OneHot, Sum, Unflatten
from derive.language.notation.layout import plain
from derive.language.reading_at import Affine, At, affine
from derive.language.symbols import Axis, axes_of


def overlapped(lowering: Context, e: Sum, frame: Frame, picked: Picked) -> Value | None:
    """Overlap-add for a sum over an axis of both window entries and their index; else None."""
    factors = Mul.make_args(e.operand)
    for read in (f for f in factors if isinstance(f, At) and f.fill == 0):
        index = affine(read.index)
        own = axes_of(read.operand)
        inside = [axis for axis in e.axes if axis in index.axes and axis in own]
        places = [axis for axis in index.axes if axis not in own or axis == read.axis]
        rest = [f for f in factors if f is not read]
        if len(inside) != 1 or len(places) != 1 or len(index.axes) != 2 or read.axis not in own:
            continue
        moved = {*places, read.axis}
        if any(axes_of(f) & moved for f in rest) or moved & {*picked, *e.axes}:
            continue
        if index.of(places[0]) == 1 and inside[0] not in picked:
            whole = Mul(read.operand, *rest)
            left = [axis for axis in e.axes if axis != inside[0]]
            whole = Sum.over(whole, left) if left else whole
            made = _back(lowering, At.over(whole, read.axis, read.index), inside[0], picked)
            return arranged(made, frame)
    return None


def _back(lowering: Context, read: At, entry: Axis, picked: Picked) -> Value:
    index = affine(read.index)
    (place,) = (axis for axis in index.axes if axis != entry)
    others = tuple(a for a in lowering.order if a in axes_at(read.operand, picked) - {entry})
    at = others.index(read.axis)
    dims = plain((*others[:at], place, *others[at + 1 :]))
    numbers = [lowering.value(n, ()) for n in _line(index, entry)]
    whole = plain((*others, entry))
    value = fitted(lowering.value(read.operand, (*others, entry), picked), whole)
    return Overlapped(value, at, *numbers, place.name, dims=dims)


def placed(lowering: Context, e: Sum, frame: Frame, picked: Picked) -> Value | None:
    """The same for windows of which a one-hot picks one entry: it is put back at its index."""
    base, entries, places = e.operand, {}, {}
    while isinstance(base, At) and base.fill == 0:
        index = affine(base.index)
        inside = [a for a in index.axes if a in e.axes]
        rest = [a for a in index.axes if a not in e.axes]
        if len(inside) != 1 or len(rest) != 1 or index.of(rest[0]) != 1:
            return None
        entries[inside[0]], places[base.axis] = (base.axis, index), rest[0]
        base = base.operand
    chosen = _chosen(base)
    if picked or not entries or {*entries} != {*e.axes} or chosen is None:
        return None
    label, along, rest = chosen
    if {*along} != {*entries} or axes_of(rest) & {*along}:
        return None
    own = axes_of(rest) | axes_of(label) | places.keys()
    others = tuple(a for a in lowering.order if a in own)
    lines = []
    for entry in along:
        read, index = entries[entry]
        numbers = (lowering.value(n, ()) for n in _line(index, entry))
        lines.append(Placement(others.index(read), entry.name, *numbers, places[read].name))
    value = fitted(lowering.value(rest, others), plain(others))
    if is_number(value, lowering.scalars):
        return None
    at = fitted(index_of(lowering, met(label), others), plain(others))
    dims = plain(tuple(places.get(axis, axis) for axis in others))
    return arranged(Placed(value, at, tuple(lines), dims=dims), frame)


def _chosen(e: Expr) -> tuple[Expr, tuple[Axis, ...], Expr] | None:
    """The label of a one-hot in a product, the axes of its entries, and the other factors."""
    factors = Mul.make_args(e)
    for factor in factors:
        rest = Mul(*(f for f in factors if f is not factor))
        if isinstance(factor, OneHot):
            return factor.operand, (factor.axis,), rest
        if isinstance(factor, Unflatten) and (found := _chosen(factor.operand)) is not None:
            label, along, inside = found
            if along == (factor.flat,) and factor.flat not in axes_of(inside):
                return label, factor.into, rest * inside
    return None


def _line(index: Affine, entry: Axis) -> tuple[Expr, Expr, Expr]:
    """From (t - d*k - p)/s: where entry k of row n lies, s*n + d*k + p, as s, d and p."""
    return index.divisor, -index.of(entry), -index.offset
