"""Sums, computed in one of four ways."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations

from sympy import Expr, Mul

from codegen.lowering.context import Context
from codegen.lowering.convolutions import convolved
from codegen.lowering.frames import Frame, arranged, axes_in, fitted, widened, without_ones
from codegen.lowering.indices import index_of
from codegen.lowering.overlaps import overlapped, placed
from codegen.lowering.picks import Picked, axes_at, met
from codegen.program.arrays import Contract, Gathered, Reduce, Scattered, Split
from codegen.program.values import Number, SizeOf, Times, Value
from derive.language.nodes import OneHot, Sum
from derive.language.notation.layout import Dim, plain
from derive.language.operations import is_contraction
from derive.language.symbols import Axis, Tensor, axes_of


def lowered_sum(lowering: Context, e: Sum, frame: Frame, picked: Picked) -> Value:
    """A sum as a picked entry, rows added at an index, a matrix product, or a reduction."""
    for recognised in (convolved, placed, overlapped):
        if (value := recognised(lowering, e, frame, picked)) is not None:
            return value
    factors = Mul.make_args(e.operand)
    hots = [f for f in factors if isinstance(f, OneHot)]
    for factor in hots:
        rest = Mul(*(f for f in factors if f is not factor))
        hot = factor.towards(e.axes) or factor
        others = [axis for axis in e.axes if axis != hot.axis]
        index = met(hot.operand, picked)
        if hot.axis in index.axes:
            continue
        if hot.axis in e.axes:
            return reduced(lowering, "sum", rest, others, frame, {**picked, hot.axis: index})
        if any(hot.axis in (axis, *read.axes) for axis, read in picked.items()):
            continue  # the source would vary along the axis that it is added at
        if index.axes and index.axes <= set(e.axes):
            extra = [axis for axis in others if axis not in index.axes]
            return _gathered(lowering, hot.axis, rest, extra, frame, {**picked, hot.axis: index})
        ends = [axis for axis in others if axis in index.axes]
        if len(ends) == 1 and hot.axis not in axes_at(rest, picked):
            return _scattered(lowering, hot.axis, rest, (ends[0], e.axes), frame, (index, picked))
    if is_contraction(e) and not hots:
        return _contraction(lowering, e, frame, picked)
    return reduced(lowering, "sum", e.operand, e.axes, frame, picked)


def reduced(
    lowering: Context, kind: str, operand: Expr, axes: Sequence[Axis], frame, picked
) -> Value:
    """A reduction along dimensions; along an axis that the operand lacks, its sum is multiplied by
    the size, and its maximum is itself.
    """
    carried = axes_at(operand, picked)
    inner = widened(frame, carried, lowering.order) if carried & set(axes) else frame
    value = without_ones(lowering.value(operand, inner, picked), axes)
    along = tuple(i for i, dim in enumerate(value.dims) if dim.axis in axes)
    whole = {value.dims[i].axis for i in along}
    if along:
        keep = any(axis in frame for axis in axes)
        if keep:
            dims = tuple(Dim(d.axis, d.one or i in along) for i, d in enumerate(value.dims))
        else:
            dims = tuple(d for d in value.dims if d.axis not in axes)
        value = Reduce(kind, value, along, keep, dims=dims)
    value = arranged(value, frame)
    counted = tuple((SizeOf(axis.name), False) for axis in axes if axis not in whole)
    if kind != "sum" or not counted:
        return value
    factors = counted if value == Number(Fraction(1)) else (*counted, (value, False))
    return Times(factors, dims=value.dims)


def _gathered(
    lowering: Context,
    axis: Axis,
    rest: Expr,
    extra: list[Axis],
    frame: Frame,
    inside: Picked,
) -> Value:
    """A sum over the label's positions: rows are added where the label says, along ``axis``, which
    is picked ``inside``.
    """
    index = inside[axis]
    label_axes = tuple(a for a in lowering.order if a in index.axes)
    others = tuple(
        a for a in lowering.order if a in axes_at(rest, inside) - set(label_axes) - set(extra)
    )
    source_frame = label_axes + others
    source = reduced(lowering, "sum", rest, extra, source_frame, inside)
    source = fitted(source, plain(source_frame))
    if isinstance(source, Split):  # only to be merged in another way
        source = source.operand
    at = index_of(lowering, index, label_axes)
    return arranged(Gathered(at, source, dims=(Dim(axis), *plain(others))), frame)


def _scattered(lowering: Context, axis: Axis, rest: Expr, ends, frame: Frame, at) -> Value:
    """Sum over one of several axes of a label: each entry is added where the label says, along
    ``axis``, in its own row.
    """
    (end, summed), (index, picked) = ends, at
    rows = (axes_at(rest, picked) | index.axes) - {*summed}
    whole = tuple(a for a in lowering.order if a in rows | {axis})
    source_frame = tuple(end if a == axis else a for a in whole)
    extra = [a for a in summed if a != end]
    source = fitted(
        reduced(lowering, "sum", rest, extra, source_frame, picked), plain(source_frame)
    )
    place = fitted(index_of(lowering, index, source_frame), plain(source_frame))
    found = Scattered(place, source, whole.index(axis), dims=plain(whole))
    return arranged(found, frame)


def _contraction(lowering: Context, e: Sum, frame, picked) -> Value:
    constants = [f for f in Mul.make_args(e.operand) if not axes_at(f, picked)]
    factors = [f for f in Mul.make_args(e.operand) if axes_at(f, picked)]
    groups = _merged(factors, picked)
    if len(groups) < 2:
        return reduced(lowering, "sum", e.operand, e.axes, frame, picked)
    operands = [_operand(lowering, group, picked) for group in groups]
    pending = set(e.axes)
    while len(operands) > 1:
        left, right = _smallest_product(operands, pending)
        others = [operand for operand in operands if operand is not left and operand is not right]
        elsewhere = set().union(*map(axes_in, others)) if others else set()
        both = axes_in(left) | axes_in(right)
        summed = {axis for axis in pending & both if axis not in elsewhere}
        pending -= summed
        result = [a for a in widened(frame, both, lowering.order) if a in both - summed]
        names = tuple(sorted(axis.name for axis in summed))
        operands = [Contract(left, right, names, dims=plain(result)), *others]
    value = arranged(operands[0], frame)
    if not constants:
        return value
    factor = lowering.value(Mul(*constants), frame, picked)
    return Times(((factor, False), (value, False)), dims=value.dims)


def _smallest_product(operands: list[Value], pending: set[Axis]) -> tuple[Value, Value]:
    """The pair whose product has the fewest axes: a.T @ dy first, not an outer product."""

    def size(pair):
        left, right = pair
        others = [operand for operand in operands if operand is not left and operand is not right]
        elsewhere = set().union(*map(axes_in, others)) if others else set()
        both = axes_in(left) | axes_in(right)
        return len(both - (pending - elsewhere)), -len(axes_in(left) & axes_in(right) & pending)

    return min(combinations(operands, 2), key=size)


def _operand(lowering: Context, e: Expr, picked) -> Value:
    """An operand of a matrix product: with exactly its axes; a tensor as it is stored."""
    axes = axes_at(e, picked)
    if isinstance(e, Tensor) and not axes_of(e) & set(picked):
        value = lowering.tensor(e, tuple(e.axes), picked)
        stored = [dim.axis for dim in value.dims]
        return value if set(stored) == axes else arranged(value, tuple(e.axes))
    frame = tuple(axis for axis in lowering.order if axis in axes)
    return fitted(lowering.value(e, frame, picked), plain(frame))


def _merged(factors: list[Expr], picked) -> list[Expr]:
    """Factors; those with fewer axes are multiplied into one that has them all."""
    groups: list[Expr] = []
    for factor in sorted(factors, key=lambda f: (-len(axes_at(f, picked)), f.sort_key())):
        home = next(
            (i for i, g in enumerate(groups) if axes_at(factor, picked) <= axes_at(g, picked)),
            None,
        )
        if home is None:
            groups.append(factor)
        else:
            groups[home] = groups[home] * factor
    return groups
