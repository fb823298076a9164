"""The largest entry up to each along an axis.

Users write `CumMax`; `NewMax` occurs in derivatives.
"""

from __future__ import annotations

from typing import Any

from sympy import Expr, S

from derive.language.array_node import Gradients, check_carried, nowhere
from derive.language.entries import EntryReader, Places
from derive.language.scans import GoneAlong, Transposed, checked_along
from derive.language.symbols import Axis
from derive.language.words import word


class LargestSoFar(GoneAlong):
    """``CumMax(e, T)``: the last of equal entries counts, as in ``torch.cummax``."""

    word, written_as = "cummax", "CumMax"
    reason = "routed to the largest so far along {axes}"

    def entry(self, by: EntryReader, at: Places) -> Any:
        return by.largest_so_far(self.axis, self.row(by, at), at)

    def adjoint(self, upstream: Expr) -> Gradients:
        # y[t] = max(y[t-1], x[t])  =>  dx[s] = new[s]*g[s], g[s] = dy[s] + (1 - new[s+1])*g[s+1]
        new = NewMax.over(self.operand, self.axes)
        return [(self.operand, new * Transposed.over(upstream, 1 - new, S.Zero, self.axes))]

    @property
    def chooses_from(self) -> tuple[Expr, ...]:
        return self.operands


@word("NewMax(x, T)", runs_along=True, is_public=False)
class NewMax(GoneAlong):
    """``NewMax(e, T)``: 1 where an entry is the largest up to itself, else 0."""

    word, written_as = "newmax", "NewMax"
    is_integer = True
    is_nonnegative = True
    image = (0, 1)
    reason, adjoint = "an index has no gradient", nowhere

    def entry(self, by: EntryReader, at: Places) -> Any:
        return by.is_new_largest(self.axis, self.row(by, at), at)


@word("CumMax(x, T)", axes="carried", runs_along=True)
def CumMax(x: Expr, axis: Axis) -> Expr:
    """``CumMax(x, T)``: the largest of ``x`` up to and including each entry along ``T``.

    Source: ``torch.cummax``.
    """
    x = checked_along("CumMax", x, axis)
    check_carried("CumMax", x, [axis])
    return LargestSoFar.over(x, [axis])
