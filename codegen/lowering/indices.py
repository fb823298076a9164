"""Labels as indices: entries picked by a one-hot, and one-hots among the terms of a sum."""

from __future__ import annotations

from fractions import Fraction

from sympy import Add, Expr, Integer, Mul

from codegen.lowering.context import Context
from codegen.lowering.frames import Frame, arranged, broadcast, fitted, widened, without_ones
from codegen.lowering.picks import Index, Picked, met
from codegen.lowering.segments import place_in_segments
from codegen.program.arrays import ArgMaxOf, Arrange, Expand, OneHotOf, Pick, Positions
from codegen.program.values import Choose, Compare, Number, Value
from derive.language.diagonals import Identity
from derive.language.nodes import ArgMax, OneHot, Position
from derive.language.notation.layout import Dim, plain
from derive.language.symbols import Axis, axes_of


def index_of(lowering: Context, index: Index, frame: Frame) -> Value:
    """The index of an entry: a label, a number, or the arg max of an expression."""
    label = index.label
    if label.is_Integer:
        return Number(Fraction(int(label)))
    if isinstance(label, Position):
        at = index.picked.get(label.axis)
        return index_of(lowering, at, frame) if at else positions(label.axis, frame)
    if not isinstance(label, ArgMax):
        return lowering.tensor(label, frame, index.picked)
    value = place_in_segments(lowering, label)
    if value is None:
        (axis,) = label.axes
        own = tuple(a for a in lowering.order if a in axes_of(label))
        inner = widened(own, {axis}, lowering.order)
        operand = fitted(lowering.value(label.operand, inner), plain(inner))
        value = ArgMaxOf(operand, inner.index(axis), dims=plain(own))
    for at, picked in index.picked.items():  # the arg max of the picked row
        value = picked_entry(lowering, value, at, picked)
    return arranged(value, frame)


def repeated(lowering: Context, value: Value, along: int, axes: tuple[Axis, ...]) -> Value:
    """``value`` repeated along ``axes``, which it lacks, with dimension ``along`` as the last."""
    place = {dim.axis: i for i, dim in enumerate(value.dims)}
    last = value.dims[along]
    kept = [a for a in lowering.order if a in (place.keys() | set(axes)) - {last.axis}]
    order = (*map(place.get, kept), along)
    ones = tuple(value.dims[place[a]] if a in place else Dim(a, one=True) for a in kept)
    whole = tuple(value.dims[place[a]] if a in place else Dim(a) for a in kept)
    in_place = Arrange(value, order, dims=(*ones, last))
    return Expand(in_place, dims=(*whole, last))


def picked_entry(lowering: Context, value: Value, axis: Axis, index: Index) -> Value:
    """``value`` read along ``axis`` at the entry that ``index`` means."""
    value = without_ones(value, index.axes)
    dims = value.dims
    along = [dim.axis for dim in dims].index(axis)
    others = dims[:along] + dims[along + 1 :]
    if index.label.is_Integer:
        return Pick(value, along, index_of(lowering, index, ()), True, dims=others)
    label_axes = tuple(a for a in lowering.order if a in index.axes)
    whole = {dim.axis for dim in others if not dim.one}
    if (
        isinstance(index.label, Position)
        and label_axes == (index.label.axis,)
        and not (whole & {*label_axes})
    ):  # every entry at its own place
        here = [i for i, dim in enumerate(dims) if dim.axis not in label_axes]
        own = (Dim(*label_axes) if i == along else dims[i] for i in here)
        return Arrange(value, tuple(here), dims=tuple(own))
    if set(label_axes) & whole:
        missing = tuple(a for a in label_axes if a not in whole)
        if missing:
            return picked_entry(lowering, repeated(lowering, value, along, missing), axis, index)
        at = index_of(lowering, index, tuple(dim.axis for dim in others))
        return Pick(value, along, fitted(at, others), True, dims=others)
    others = tuple(dim for dim in others if not dim.one)
    if along or len(dims) != len(others) + 1:
        kept = [i for i, dim in enumerate(dims) if dim in others]
        value = Arrange(value, (along, *kept), dims=(dims[along], *others))
    at = index_of(lowering, index, label_axes)
    return Pick(value, 0, at, False, dims=plain(label_axes) + others)


def whole_one_hot(lowering: Context, e: OneHot, frame: Frame, picked: Picked) -> Value:
    """A one-hot as a tensor: a comparison where its axis is read at an index, or the label lies
    along it; else of full size.
    """
    if isinstance(e, Identity) and not {*e.pair} & {*picked}:  # symmetric: nothing is transposed
        e = e.towards([max(e.pair, key=lowering.order.index)])
    index = met(e.operand, picked)
    if e.axis in picked or e.axis in index.axes:
        at = picked.get(e.axis)
        if at == index:
            return Number(Fraction(1))
        left = index_of(lowering, index, frame)
        right = index_of(lowering, at, frame) if at else positions(e.axis, frame)
        if isinstance(left, Number) and isinstance(right, Number):
            return Number(Fraction(0))  # two entries, and not the same one
        test = Compare(left, "==", right, dims=broadcast([left.dims, right.dims]))
        return Choose(test, Number(Fraction(1)), Number(Fraction(0)), dims=test.dims)
    label_axes = tuple(a for a in lowering.order if a in index.axes)
    value = index_of(lowering, index, label_axes)
    return arranged(OneHotOf(value, e.axis.name, dims=(*value.dims, Dim(e.axis))), frame)


def positions(axis: Axis, frame: Frame) -> Value:
    """0, 1, 2, ... along ``axis``."""
    return arranged(Positions(axis.name, dims=(Dim(axis),)), frame)


def split_one_hots(e: Expr) -> tuple[Expr, list[tuple[OneHot, Expr]]]:
    """``e`` as a rest and one-hots with their factors: e = rest + factor*OneHot + ...

    A one-hot that does not stand linearly among the terms stays in the rest.
    """
    rest, hots = [], []
    for term in Add.make_args(e):
        factors = list(Mul.make_args(term))
        hot = next((f for f in factors if isinstance(f, OneHot)), None)
        bracket = next(
            (f for f in factors if isinstance(f, Add) and any(map(_has_one_hot, f.args))), None
        )
        if hot is not None:
            factors.remove(hot)
            hots.append((hot, Mul(*factors)))
        elif bracket is not None:
            factors.remove(bracket)
            inner, found = split_one_hots(bracket)
            rest.append(Mul(*factors, inner))
            hots += [(hot, Mul(*factors, factor)) for hot, factor in found]
        else:
            rest.append(term)
    merged: dict[OneHot, Expr] = {}
    for hot, factor in hots:
        merged[hot] = merged.get(hot, Integer(0)) + factor
    return Add(*rest), list(merged.items())


def _has_one_hot(term: Expr) -> bool:
    return any(
        isinstance(f, OneHot) or (isinstance(f, Add) and any(map(_has_one_hot, f.args)))
        for f in Mul.make_args(term)
    )
