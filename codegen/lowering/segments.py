"""Segment maxima: over all entries with the same label, without a one-hot of full size."""

from __future__ import annotations

from sympy import Expr, Piecewise

from codegen.lowering.context import Context
from codegen.lowering.frames import Frame, arranged, fitted
from codegen.lowering.picks import NOTHING_PICKED, Picked, axes_at
from codegen.program.arrays import SegmentArgMax, SegmentMax
from codegen.program.values import Value
from derive.language.nodes import ArgMax, Max, OneHot
from derive.language.notation.layout import Dim, plain
from derive.language.symbols import MINUS_INFINITY, axes_of


def by_segment(e: Max | ArgMax, picked: Picked) -> tuple[OneHot, Expr] | None:
    """The one-hot and the entries, if ``e`` is their maximum, or its position, for each label:
    entries outside of the segment are minus infinity.
    """
    if not isinstance(e.operand, Piecewise) or len(e.operand.args) != 2:
        return None
    (entries, condition), (other, _) = e.operand.args
    hots = condition.atoms(OneHot)
    hot = next(iter(hots)) if len(hots) == 1 else None
    if hot is None or condition != (hot > 0) or other != MINUS_INFINITY:
        return None
    alone = hot.axis not in {*picked, *axes_of(entries)} and axes_of(hot.operand) == {*e.axes}
    return (hot, entries) if alone and not {*e.axes} & {*picked} else None


def largest_of_segments(
    lowering: Context, e: Max, kind: str, frame: Frame, picked: Picked
) -> Value | None:
    """``e`` by the labels of its entries; None if it is no segment maximum."""
    found = by_segment(e, picked)
    if found is None:
        return None
    at, source, dims = _rows(lowering, *found, picked)
    return arranged(SegmentMax(kind, at, source, found[0].axis.name, dims=dims), frame)


def place_in_segments(lowering: Context, e: ArgMax) -> Value | None:
    """The index of the first largest entry of each segment; None where there are none."""
    found = by_segment(e, NOTHING_PICKED)
    if found is None:
        return None
    at, source, dims = _rows(lowering, *found, NOTHING_PICKED)
    return SegmentArgMax(at, source, found[0].axis.name, dims=dims)


def _rows(lowering: Context, hot: OneHot, entries: Expr, picked: Picked):
    """The labels, the entries with the label's dimension first, and the result's dimensions."""
    along = tuple(a for a in lowering.order if a in axes_of(hot.operand))
    rows = axes_at(entries, picked) - {*along}
    others = tuple(a for a in lowering.order if a in rows)
    source = fitted(lowering.value(entries, along + others, picked), plain(along + others))
    at = lowering.tensor(hot.operand, along, {})
    return at, source, (Dim(hot.axis), *plain(others))
