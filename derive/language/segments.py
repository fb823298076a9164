"""Gathers and segment reductions by label: a row for each label, and reductions over the entries
with the same label, a segment.

All are written in `OneHot`, which code computes as an index: no one-hot of full size is made.
"""

from __future__ import annotations

from collections.abc import Callable

from sympy import Eq, Expr, Mul, Piecewise, sympify

from derive.language.array_node import expression_of
from derive.language.errors import NotationError
from derive.language.nodes import Max, OneHot, Sum
from derive.language.reading_at import At
from derive.language.symbols import (
    MINUS_INFINITY,
    Axis,
    Tensor,
    axes_of,
    is_number_or_size,
    ordered,
)
from derive.language.words import word

Segment = tuple[OneHot, Expr]  # the one-hot of a label, and entries that have it


@word("Gather(x, labels, V), with the axis of the labels")
def Gather(e: Expr, labels: Tensor, axis: Axis) -> Expr:
    """``Gather(x, labels, V)``: the entry of ``x`` along ``V`` at each label, as
    ``torch.index_select`` and an embedding. One number or size is the index of one entry.
    """
    if isinstance(labels, int | Expr) and is_number_or_size(sympify(labels, strict=True)):
        OneHot(labels, axis)  # refuses what is the index of no entry
        return At(e, axis, labels)
    e, hot = _read("Gather", e, labels, axis)
    if axis not in axes_of(e):
        raise NotationError(
            f"Gather({e}, {labels}, {axis}): there is no axis {axis} in {e}",
            f"name the axis that {labels} is an index of",
        )
    return Sum.over(hot * e, [axis])


@word("SegmentSum(x, labels, V), with the axis of the labels")
def SegmentSum(e: Expr, labels: Tensor, axis: Axis) -> Expr:
    """``SegmentSum(x, labels, V)``: for each entry along ``V`` the sum of the entries with that
    label, 0 where there are none, as ``torch.index_add``.
    """
    e, hot = _read("SegmentSum", e, labels, axis, segments=True)
    return Sum.over(hot * e, labels.axes)


@word("SegmentMean(x, labels, V), with the axis of the labels")
def SegmentMean(e: Expr, labels: Tensor, axis: Axis) -> Expr:
    """``SegmentMean(x, labels, V)``: the mean of the entries with each label, 0 where there are
    none.
    """
    e, hot = _read("SegmentMean", e, labels, axis, segments=True)
    count = Sum.over(hot, labels.axes)
    return Sum.over(hot * e, labels.axes) / Piecewise((1, Eq(count, 0)), (count, True))


@word("SegmentMax(x, labels, V), with the axis of the labels")
def SegmentMax(e: Expr, labels: Tensor, axis: Axis) -> Expr:
    """``SegmentMax(x, labels, V)``: the largest entry with each label, the first of equal ones; -oo
    where there are none. ``labels`` lie along one axis.
    """
    e, hot = _read("SegmentMax", e, labels, axis, segments=True)
    if len(labels.axes) != 1:
        raise NotationError(
            f"SegmentMax({e}, {labels}, {axis}): {labels} lies along several axes",
            f"declare it along one: {labels} = Label(N)",
        )
    return Max.over(Piecewise((e, hot > 0), (MINUS_INFINITY, True)), labels.axes)


def picked_of(e: Expr) -> tuple[OneHot, Expr] | None:
    """The one-hot and the row, if ``e`` is the entry of a row that a label picks."""
    factors = Mul.make_args(e.operand) if isinstance(e, Sum) else ()
    hots = [f for f in factors if isinstance(f, OneHot) and (f.axis,) == e.axes]
    return (hots[0], Mul(*(f for f in factors if f not in hots))) if len(hots) == 1 else None


def own_segment_of(e: Expr, defined: Callable[[Expr], Expr] = lambda e: e) -> Segment | None:
    """If ``e`` is a segment sum, read back at the label of its entries: the one-hot and the
    summand, of which each entry is one term. ``defined`` gives the definition of a value.
    """
    picked = picked_of(e)
    if picked is None:
        return None
    hot, row = picked
    total = defined(row)
    factors = Mul.make_args(total.operand) if isinstance(total, Sum) else ()
    if hot not in factors or {*total.axes} != axes_of(hot.operand):
        return None
    return hot, Mul(*(f for f in factors if f != hot))


def _read(name: str, e, labels, axis, segments: bool = False) -> tuple[Expr, Expr]:
    """The operand and the one-hot, checked. Raises `NotationError`."""
    e = expression_of(e, name)
    hot = OneHot(labels, axis)
    written = f"{name}({e}, {labels}, {axis})"
    if not isinstance(labels, Tensor):
        raise NotationError(
            f"{written}: {labels} is not a label", f"declare it as integers: {labels} = Label(N)"
        )
    if not segments:
        return e, hot
    if axis in axes_of(e):
        raise NotationError(
            f"{written}: {e} lies along {axis}, which the labels are indices of",
            f"write Gather({e}, {labels}, {axis}) to read it at the labels",
        )
    if axes_of(e) and (missing := [a.name for a in ordered(labels.axes) if a not in axes_of(e)]):
        raise NotationError(
            f"{written}: {e} does not lie along {', '.join(missing)}, as {labels} does",
            f"repeat it: Broadcast({e}, {', '.join(missing)})",
        )
    return e, hot


SEGMENTS: dict[str, Callable[[Expr, Tensor, Axis], Expr]] = {
    function.__name__: function for function in (Gather, SegmentSum, SegmentMean, SegmentMax)
}
