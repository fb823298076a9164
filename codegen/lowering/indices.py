"""Labels as indices: which entry a one-hot picks, and where one stands among the terms of a sum."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sympy import Add, Expr, Integer, Mul

from codegen.lowering.frames import (
    NOTHING_PICKED,
    Frame,
    Picked,
    arranged,
    axes_at,
    broadcast,
    fitted,
    widened,
)
from codegen.program import (
    ArgMaxOf,
    Arrange,
    Choose,
    Compare,
    Expand,
    Number,
    OneHotOf,
    Pick,
    Value,
)
from derive.layout import Dim, plain
from derive.nodes import ArgMax, OneHot
from derive.symbols import Axis, axes_of

if TYPE_CHECKING:
    from codegen.lowering.expressions import Lowering


def index_of(
    lowering: Lowering, label: Expr, frame: Frame, picked: Picked = NOTHING_PICKED
) -> Value:
    """The index that a label, a number, or the arg max of an expression, stands for."""
    if label.is_Integer:
        return Number(Fraction(int(label)))
    if not isinstance(label, ArgMax):
        return lowering.tensor(label, frame, picked)
    (axis,) = label.axes
    own = tuple(a for a in lowering.order if a in axes_of(label))
    inner = widened(own, {axis}, lowering.order)
    operand = fitted(lowering.value(label.operand, inner), plain(inner))
    along = inner.index(axis)
    index: Value = ArgMaxOf(operand, along, dims=plain(own))
    for at in [a for a in own if a in picked]:  # the arg max of the picked row
        index = picked_entry(lowering, index, at, picked[at])
    return arranged(index, frame)


def repeated(lowering: Lowering, value: Value, along: int, axes: tuple[Axis, ...]) -> Value:
    """``value`` repeated along ``axes``, which it lacks, with dimension ``along`` as the last."""
    place = {dim.axis: i for i, dim in enumerate(value.dims)}
    last = value.dims[along]
    kept = [a for a in lowering.order if a in (place.keys() | set(axes)) - {last.axis}]
    order = (*map(place.get, kept), along)
    ones = tuple(value.dims[place[a]] if a in place else Dim(a, one=True) for a in kept)
    whole = tuple(value.dims[place[a]] if a in place else Dim(a) for a in kept)
    in_place = Arrange(value, order, dims=(*ones, last))
    return Expand(in_place, dims=(*whole, last))


def picked_entry(lowering: Lowering, value: Value, axis: Axis, label: Expr) -> Value:
    """``value`` read along ``axis`` at the entry that ``label`` means."""
    dims = value.dims
    along = [dim.axis for dim in dims].index(axis)
    others = dims[:along] + dims[along + 1 :]
    if label.is_Integer:
        return Pick(value, along, index_of(lowering, label, ()), True, dims=others)
    label_axes = tuple(a for a in lowering.order if a in axes_of(label))
    whole = {dim.axis for dim in others if not dim.one}
    if set(label_axes) & whole:
        missing = tuple(a for a in label_axes if a not in {d.axis for d in others})
        if missing:
            return picked_entry(lowering, repeated(lowering, value, along, missing), axis, label)
        index = index_of(lowering, label, tuple(dim.axis for dim in others))
        return Pick(value, along, fitted(index, others), True, dims=others)
    others = tuple(dim for dim in others if not dim.one)
    if along or len(dims) != len(others) + 1:
        kept = [i for i, dim in enumerate(dims) if dim in others]
        value = Arrange(value, (along, *kept), dims=(dims[along], *others))
    return Pick(
        value, 0, index_of(lowering, label, label_axes), False, dims=plain(label_axes) + others
    )


def whole_one_hot(lowering: Lowering, e: OneHot, frame: Frame, picked: Picked) -> Value:
    """A one-hot as a tensor: a comparison where its axis is read at an index, else of full size."""
    if e.axis in picked:
        left = index_of(lowering, e.operand, frame, picked)
        right = index_of(lowering, picked[e.axis], frame)
        test = Compare(left, "==", right, dims=broadcast([left.dims, right.dims]))
        return Choose(test, Number(Fraction(1)), Number(Fraction(0)), dims=test.dims)
    label_axes = tuple(a for a in lowering.order if a in axes_at(e.operand, picked))
    index = index_of(lowering, e.operand, label_axes, picked)
    return arranged(OneHotOf(index, e.axis.name, dims=(*index.dims, Dim(e.axis))), frame)


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
