"""Entries read at an index: slices, strides, flips, shifts, padding, windows, halves of an axis.

One node covers all of it: `At`, whose index is affine in positions. Outside the axis, or between
two entries, it has a fill value. So its adjoint is that node again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sympy import Add, Dummy, Eq, Expr, Integer, Piecewise, S, floor, fraction, oo, together

from derive.language.array_node import (
    Gradients,
    check_carried,
    check_single,
    checked_operand,
    expression_of,
)
from derive.language.entries import EntryReader, Places
from derive.language.errors import NotationError
from derive.language.nodes import Position, Sum, renamed
from derive.language.reshaping import Reindexing
from derive.language.symbols import (
    MINUS_INFINITY,
    Along,
    Axis,
    Tensor,
    axes_of,
    is_number_or_size,
    ordered,
)
from derive.language.words import word

USAGE = "At(x, T, 2*Position(To) + Position(K) - 1)"


@dataclass(frozen=True)
class Affine:
    """An affine index: ``offset`` plus each coefficient times the position along its axis, over
    ``divisor``. These are numbers and sizes; the divisor is positive.
    """

    coefficients: tuple[tuple[Axis, Expr], ...]
    offset: Expr
    divisor: Expr

    @property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(axis for axis, _ in self.coefficients)

    def of(self, axis: Axis) -> Expr:
        return dict(self.coefficients).get(axis, Integer(0))


@lru_cache(maxsize=8192)
def affine(index: Expr) -> Affine | None:
    """An index as an affine function of positions; None where it is not affine."""
    places = {node: Dummy(integer=True) for node in index.atoms(Position)}
    e, divisor = fraction(together(index.xreplace(places)))
    if divisor.could_extract_minus_sign():
        e, divisor = -e, -divisor
    e = e.expand()
    found = {node.axis: e.coeff(place) for node, place in places.items()}
    offset = e.xreplace(dict.fromkeys(places.values(), Integer(0)))
    whole = Add(offset, *(found[node.axis] * place for node, place in places.items()))
    parts = [offset, divisor, *found.values()]
    if (e - whole).expand() != 0 or any(p.has(Dummy) or not is_number_or_size(p) for p in parts):
        return None
    pairs = ((axis, found[axis]) for axis in ordered(found) if found[axis] != 0)
    return Affine(tuple(pairs), offset, divisor)


@word("At(x, T, 2*Position(To) + Position(K) - 1)", "fill", axes="read")
class At(Reindexing):
    """``At(x, T, index, fill=0)``: the entry of ``x`` along ``T`` at an index that is affine in
    positions; ``fill`` where no entry has that index.

    ``At(x, T, 2*Position(To) + Position(K) - 1)`` are windows, ``At(x, T, T - 1 - Position(T))`` is
    ``x`` in reverse. The node binds the axis ``T`` and brings the axes of the index.
    """

    reason = "summed over the places that read the entry along {axes}"

    def __new__(cls, *args: Expr, fill: Expr | float = 0, **other: object) -> Expr:
        if len(args) > 1 and isinstance(args[1], Along):  # SymPy rebuilds a node from its args
            return cls.over(args[0], args[1].axes[0], *args[2:])
        if other or len(args) != 3:
            raise NotationError(
                f"At({', '.join(map(str, args))}) is not an entry", f"write {USAGE}"
            )
        operand, axis, index = expression_of(args[0], "At"), args[1], expression_of(args[2], "At")
        checked_operand("At", operand, [axis])
        written = f"At({operand}, {axis}, {index})"
        check_carried("At", operand, [axis], written)
        if isinstance(operand, Tensor) and operand.role == "label":
            raise NotationError(f"{written}: {operand} is a label", "read what was picked with it")
        for new in (axis, *axes_of(index)):
            check_single("At", new)
        found = affine(index)
        if found is None:
            raise NotationError(
                f"{written}: the index is not affine in positions",
                "write whole numbers or sizes times positions, and what is added: "
                "2*Position(To) + Position(K) - 1",
            )
        return cls.over(operand, axis, index, _filled(written, fill))

    @classmethod
    def over(cls, operand: Expr, axis: Axis, index: Expr, fill: Expr = S.Zero) -> Expr:
        index = index.expand()
        if axis in axes_of(operand) and index == Position(axis):
            return operand
        if operand == fill:
            return fill
        return Expr.__new__(cls, operand, Along((axis,)), index, fill)

    @property
    def axis(self) -> Axis:
        """The axis that is read."""
        return self.axes[0]

    @property
    def index(self) -> Expr:
        return self.args[2]

    @property
    def fill(self) -> Expr:
        return self.args[3]

    @property
    def brings(self) -> tuple[Axis, ...]:
        return tuple(ordered(axes_of(self.index)))

    def through(
        self,
        change: Callable[[Expr], Expr],
        names: Mapping[Axis, Axis] | None = None,
        brought: Mapping[Axis, Axis] | None = None,
    ) -> Expr:
        names = names or {}
        index = renamed(self.index, names if brought is None else brought)
        axis = names.get(self.axis, self.axis)
        return type(self).over(change(self.operand), axis, index, self.fill)

    def entry(self, by: EntryReader, at: Places) -> Any:
        return by.read(self, at)

    def adjoint(self, upstream: Expr) -> Gradients:
        # y[p] = x[a*p + b]  =>  dx[t] = dy[(t - b)/a], and 0 where that is the index of no entry
        return [(self.operand, back(self, upstream))]

    @property
    def chooses_from(self) -> tuple[Expr, ...]:
        return self.operand, self.fill

    def _sympystr(self, printer):
        operand, axis, index = map(printer._print, self.args[:3])
        fill = f", fill={printer._print(self.fill)}" if self.fill != 0 else ""
        return f"At({operand}, {axis}, {index}{fill})"


def back(node: At, upstream: Expr) -> Expr:
    """The gradient of each entry that ``node`` reads, from ``upstream``, that of ``node``: a sum
    over the positions that read it, found by solving the index for one of its axes.
    """
    index, place = affine(node.index), Position(node.axis)
    kept = axes_of(node.operand) - {node.axis}
    ends = [axis for axis in index.axes if axis not in kept]
    if not ends:  # one entry is read, whatever the places
        there = Eq(place, node.index)
        return Piecewise((upstream, there), (Integer(0), True))
    solved = min(ends, key=lambda axis: _rank(axis, node, index))
    others = [axis for axis in ends if axis != solved]
    rest = node.index - Position(solved) * index.of(solved) / index.divisor
    inverse = (place - rest) * index.divisor / index.of(solved)
    read = At.over(upstream, solved, inverse)
    return Sum.over(read, others) if others else read


def _rank(axis: Axis, node: At, index: Affine) -> tuple:
    """A sort key: the longest axis first, as far as declarations tell: for windows, the output
    axis.
    """
    short = not is_long(axis, node.axis)
    return (short, axis.length is not None, abs(index.of(axis)) != 1, axis.name)


def is_long(axis: Axis, other: Axis) -> bool:
    """Whether an axis is about as long as another along which entries are read, as far as their
    declarations tell: the same, or with a length proportional to that of the other.
    """
    if axis == other or axis.formula is not None:
        return True
    rounded = other.formula.replace(floor, lambda e: e) if other.formula is not None else S.Zero
    return rounded.expand().coeff(axis).is_positive is True


def _filled(written: str, fill) -> Expr:
    value = expression_of(-oo if fill == -math.inf else fill, "fill")
    if value == -oo:
        return MINUS_INFINITY
    if value == MINUS_INFINITY or (value.is_number and value.is_real and value.is_finite):
        return value
    raise NotationError(
        f"{written}: the fill {fill} is not a number", "write fill=0, or fill=-oo for a maximum"
    )
