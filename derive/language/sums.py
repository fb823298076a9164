"""Sums along axes, and `Broadcast` along those that a side lacks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from sympy import Expr

from derive.language.array_node import ArrayNode, Gradients, Reduction
from derive.language.entries import EntryReader, Places
from derive.language.symbols import Axis, axes_of
from derive.language.words import word


@word("Sum(x, axis), with the names of the axes", axes="reduced")
class Sum(Reduction):
    """``Sum(e, *axes)``: the sum of ``e`` along the axes. Source: the sigma sign."""

    reason = "broadcast over {axes}, because it was summed there"
    is_equivariant = True

    def entry(self, by: EntryReader, at: Places) -> Any:
        return by.total(self.axes, self.row(by, at))

    def adjoint(self, upstream: Expr) -> Gradients:
        # y = sum_i e_i  =>  de_i = dy for every i
        return [(self.operand, upstream)]

    def _eval_is_positive(self):
        return self.operand.is_positive

    def _eval_is_nonnegative(self):
        return self.operand.is_nonnegative


@word("Broadcast(x, K)", axes="brought")
class Broadcast(ArrayNode):
    """``Broadcast(e, K)``: ``e`` repeated along ``K``, where two sides intentionally have
    different axes.

    It only documents that, and satisfies the check of sums: everything broadcasts by axis name.
    """

    def entry(self, by: EntryReader, at: Places) -> Any:
        return by.at(self.operand, at)

    @property
    def brings(self) -> tuple[Axis, ...]:
        return self.axes

    @property
    def chooses_from(self) -> tuple[Expr, ...]:
        return self.operands


@lru_cache(maxsize=8192)
def sums_in(e: Expr) -> tuple[Sum, ...]:
    """The sums in ``e``, in canonical order."""
    return tuple(sorted(e.atoms(Sum), key=lambda node: node.sort_key()))


def summed(e: Expr, axes: Iterable[Axis], size=lambda axis: axis) -> Expr:
    """``e`` summed along ``axes``; along an axis that ``e`` lacks, its multiple by the size."""
    axes = tuple(axes)
    carried = [axis for axis in axes if axis in axes_of(e)]
    for axis in axes:
        if axis not in carried:
            e = e * size(axis)
    coefficient, rest = e.as_coeff_Mul()
    return coefficient * Sum.over(rest, carried) if carried and e != 0 else e
