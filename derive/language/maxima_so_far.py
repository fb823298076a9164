"""The largest entry up to each along an axis.

Users write `CumMax`; `NewMax` occurs in derivatives.
"""

from __future__ import annotations

from sympy import Expr

from derive.language.array_node import check_carried
from derive.language.scans import GoneAlong, checked_along
from derive.language.symbols import Axis


class LargestSoFar(GoneAlong):
    """``CumMax(e, T)``: the last of equal entries counts, as in ``torch.cummax``."""

    word, written_as = "cummax", "CumMax"

    def _eval_is_positive(self):
        return self.operand.is_positive

    def _eval_is_nonnegative(self):
        return self.operand.is_nonnegative


class NewMax(GoneAlong):
    """``NewMax(e, T)``: 1 where an entry is the largest up to itself, else 0."""

    word, written_as = "newmax", "NewMax"
    is_integer = True
    is_nonnegative = True


def CumMax(x: Expr, axis: Axis) -> Expr:
    """``CumMax(x, T)``: the largest of ``x`` up to and including each entry along ``T``.

    Source: ``torch.cummax``.
    """
    x = checked_along("CumMax", x, axis)
    check_carried("CumMax", x, [axis])
    return LargestSoFar.over(x, [axis])
