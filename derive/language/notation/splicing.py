"""Axes instead of an `Axes`: the nodes of a callee where the caller has several axes, or none.

``bound`` gives every axis of the callee those of the caller that it stands for: one for an `Axis`,
any number (even none) for an `Axes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sympy import Expr, Mul

from derive.language.diagonals import Identity
from derive.language.errors import NotationError
from derive.language.nodes import (
    ArrayNode,
    GoneAlong,
    MatrixNode,
    Max,
    OneHot,
    Reshaping,
    Sum,
    Unflatten,
    summed,
)
from derive.language.notation.definition import Definition
from derive.language.reading_at import At
from derive.language.symbols import Axis, axes_of, ordered

Bound = Mapping[Axis, tuple[Axis, ...]]


def spliced(axes: Iterable[Axis], bound: Bound) -> tuple[Axis, ...]:
    """The caller's axes for those of the callee, in order."""
    return tuple(new for axis in axes for new in bound[axis])


def the_one(axis: Axis, bound: Bound, why: str) -> Axis:
    """The one axis that ``axis`` stands for. Raises `NotationError` where it is another number."""
    if len(bound[axis]) != 1:
        given = ", ".join(map(str, bound[axis])) or "no axis"
        raise NotationError(
            f"{axis} is {given} here, but {why}",
            f"pass a tensor with one axis in place of {axis}; Flatten makes one of several",
        )
    return bound[axis][0]


def read_along(node: At, operand: Expr, index: Expr, bound: Bound) -> Expr:
    """``node`` on ``operand``, read along the caller's axes at the ``index`` there."""
    axis = the_one(node.axis, bound, f"entries are read along it in {node}")
    return At.over(operand, axis, index, node.fill)


def derived_along(definition: Definition, bound: Bound) -> dict[Axis, tuple[Axis, ...]]:
    """The axes of a callee that have their sizes from those of others, as they are here."""
    found = dict(bound)
    for axis, formula in definition.derived.items():
        if axis not in found and formula.atoms(Axis) <= found.keys():
            here = formula.xreplace({a: Mul(*found[a]) for a in formula.atoms(Axis)})
            of = "_".join(a.name for a in ordered(here.atoms(Axis)))
            found[axis] = (axis if here == formula else Axis(f"{axis.name}_{of}", here),)
    return {axis: own for axis, own in found.items() if axis not in bound}


def taken_along(node: ArrayNode, operands: Sequence[Expr], bound: Bound) -> Expr:
    """``node`` on ``operands``, taken along the caller's axes.

    Along none a reduction is its operand, and so is the maximum of what is the same everywhere; the
    sum of that is a multiple. The maximum along several axes is that along the last of those along
    the others, whose first largest entry is the first of them all.
    """
    operand, axes = operands[0], spliced(node.axes, bound)
    if isinstance(node, GoneAlong):
        return type(node).over(*operands, (the_one(node.axis, bound, f"{node} goes along it"),))
    if isinstance(node, MatrixNode):
        why = f"{node} is of a matrix"
        return type(node).over(*operands, [the_one(axis, bound, why) for axis in node.axes])
    if isinstance(node, Identity):
        why = f"{node} is between two"
        return Identity.between(*(the_one(axis, bound, why) for axis in node.pair))
    if isinstance(node, OneHot):
        return OneHot.over(operand, (the_one(node.axis, bound, f"a label indexes it in {node}"),))
    if isinstance(node, Max):
        for axis in reversed([axis for axis in axes if axis in axes_of(operand)]):
            operand = Max.over(operand, (axis,))
        return operand
    if isinstance(node, Sum) and not axes_of(operand) >= set(axes):
        return summed(operand, axes)
    if isinstance(node, Unflatten):
        flat = the_one(node.flat, bound, f"it is split in {node}")
        return Unflatten.over(operand, (flat,), spliced(node.into, bound))
    if isinstance(node, Reshaping):
        if len(axes) < 2:
            raise NotationError(
                f"{node} makes one axis of several, and there is only one here",
                "pass a tensor with more axes, or rename the one with Rename",
            )
        return type(node).over(operand, axes, spliced(node.into, bound))
    return type(node).over(operand, axes) if axes else operand
