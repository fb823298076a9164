"""Compose nested reads into one, where no entry is lost in between.

``x[:, 1:]`` padded by one in front is ``x`` where the index is above 0. It becomes a single `At`,
as in the forward of a shift, so that the proof need not see through two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sympy import Add, Expr, Mul, S

from derive.claims.reading.lengths import is_at_least
from derive.language.nodes import Position, Recurrence, Sum, summed
from derive.language.notation.definition import Definition
from derive.language.reading_at import Affine, At, affine
from derive.language.scans import KINDS
from derive.language.symbols import Axis, axes_of


def read_at(definition: Definition, e: Expr, axis: Axis, index: Expr, fill: Expr = S.Zero) -> Expr:
    """The entry of ``e`` at ``index`` along ``axis``, and ``fill`` where the index is out
    of range.
    """
    if _is_back(index, axis):
        return reversed_along(e, axis)
    if fill != 0 or axis not in axes_of(e):
        return At.over(e, axis, index, fill)
    if e.is_Add:
        terms = e.args if all(axis in axes_of(term) for term in e.args) else ()
        if terms:
            return Add(*(read_at(definition, term, axis, index) for term in terms))
    if e.is_Mul:
        outside, inside = _apart(e, axis)
        one = _one_read(inside)
        if outside != 1 or one is not None:
            read = At.over(Mul(*inside), axis, index) if one is None else None
            return outside * (read or read_at(definition, one, axis, index))
    if isinstance(e, Sum) and not {*e.axes} & axes_of(index):
        return Sum.over(read_at(definition, e.operand, axis, index), e.axes)
    if isinstance(e, At) and e.fill == 0:
        whole = _composed(definition, e, axis, index)
        if whole is not None:
            return At.over(e.operand, e.axis, whole)
    return At.over(e, axis, index)


def _apart(e: Expr, axis: Axis) -> tuple[Expr, list[Expr]]:
    """The factors constant along the axis, and the others."""
    inside = [factor for factor in e.args if axis in axes_of(factor)]
    return Mul(*(factor for factor in e.args if factor not in inside)), inside


def _one_read(factors: Iterable[Expr]) -> Expr | None:
    """One read of a product, if all factors are read at the same index."""
    first, *rest = factors
    if not isinstance(first, At) or first.fill != 0:
        return None
    alike = all(isinstance(f, At) and f.args[1:] == first.args[1:] for f in rest)
    return At.over(Mul(first.operand, *(f.operand for f in rest)), *_read(first)) if alike else None


def _read(node: At) -> tuple[Axis, Expr]:
    return node.axis, node.index


def _composed(definition: Definition, e: At, axis: Axis, index: Expr) -> Expr | None:
    """The index into the operand of ``e``, if out-of-range indices of ``e`` are out of range there
    too.
    """
    inner, outer = affine(e.index), affine(index)
    if axis in axes_of(e.operand) - {e.axis} or inner.divisor != 1 or outer.divisor != 1:
        return None
    step, rest = inner.of(axis), e.index - inner.of(axis) * Position(axis)
    if not (step.is_Integer and step > 0):
        return None
    (lowest, highest), (least, most) = _ends(outer), _ends(affine(rest))
    before = is_at_least(definition, lowest, 0) or is_at_least(definition, step - 1 - most, 0)
    beyond = is_at_least(definition, axis - 1 - highest, 0)
    beyond = beyond or is_at_least(definition, step * axis + least - e.axis, 0)
    return (step * index + rest).expand() if before and beyond else None


def _ends(index: Affine) -> tuple[Expr, Expr]:
    """The minimum and maximum of an index."""
    lowest = highest = index.offset
    for axis, factor in index.coefficients:
        last = factor * (axis - 1)
        if factor.could_extract_minus_sign():
            lowest += last
        else:
            highest += last
    return lowest, highest


def _is_reversed(e: Expr, axis: Axis) -> bool:
    """Whether ``e`` is a reversed expression."""
    return isinstance(e, At) and e.axis == axis and _is_back(e.index, axis)


def _is_back(index: Expr, axis: Axis) -> bool:
    return (index - (axis - 1 - Position(axis))).expand() == 0


def reversed_along(e: Expr, axis: Axis) -> Expr:
    """The entries in reverse order; a reversed cumulative sum of reversed entries is the sum from
    the end.
    """
    if axis not in axes_of(e):
        return e
    if _is_reversed(e, axis):
        return e.operand
    back = axis - 1 - Position(axis)
    if isinstance(e, At) and axis not in axes_of(e.operand) - {e.axis}:
        return At.over(e.operand, e.axis, e.index.xreplace({Position(axis): back}), e.fill)
    number, node = e.as_coeff_Mul()
    if isinstance(node, Recurrence) and node.axis == axis and node.is_sum:
        kind = KINDS[not node.reverse, node.exclusive]
        return number * kind.over(reversed_along(node.operand, axis), S.One, S.Zero, [axis])
    return At.over(e, axis, back)


def total(e: Expr, axes: Iterable[Axis], size: Callable[[Axis], Expr]) -> Expr:
    """The sum along axes."""
    axes = [*axes]
    for axis in axes if e.has(At) else ():
        e = _in_order(e, axis)
    return summed(e, axes, size)


def _in_order(e: Expr, axis: Axis) -> Expr:
    """One term of a sum, reversed if one of its factors is."""
    factors = Mul.make_args(e)
    if not any(_is_reversed(factor, axis) for factor in factors):
        return e
    return Mul(*(reversed_along(factor, axis) for factor in factors))
