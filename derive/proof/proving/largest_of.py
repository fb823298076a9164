"""The largest of several scalars, and which of them that is: a row of indicators."""

from __future__ import annotations

from sympy import Add, Expr, Function, Integer

from derive.proof.zero.indicator import Indicator


class LargestOf(Function):
    """The largest of its arguments.

    Where they differ, its derivative by the k-th is 1 if that is the largest.
    """

    is_real = True

    def fdiff(self, argindex=1):
        return selectors(self.args)[argindex - 1]


def selectors(entries: tuple[Expr, ...]) -> list[Expr]:
    """For each entry: 1 if it is the first largest one, else 0."""
    return indicators(f"largest of {entries}", len(entries), entries)


def indicators(group: str, count: int, values: tuple[Expr, ...] = ()) -> list[Expr]:
    """0/1 symbols of which exactly one is 1: the last is written as 1 minus the others."""
    free = [Indicator(k, group, values) for k in range(count - 1)]
    return [*free, Integer(1) - Add(*free)]
