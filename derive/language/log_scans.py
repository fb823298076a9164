"""The logarithm of a cumulative sum of exponentials, which replaces a cumulative sum that may
overflow. Users write ``log(CumSum(exp(x), T))``.
"""

from __future__ import annotations

from sympy import Expr, S, exp, log

from derive.language.scans import KINDS, GoneAlong


class LogCumSumExp(GoneAlong):
    """``log(CumSum(exp(e), T))`` without the exponentials: it never decreases along ``T``.

    Source: ``torch.logcumsumexp``.
    """

    word = "logcumsumexp"

    @property
    def in_full(self) -> Expr:
        """The node written out with `exp`, a cumulative sum and `log`."""
        sums = KINDS[self.reverse, False]
        return log(sums.over(exp(self.operand), S.One, S.Zero, self.axes))

    def _sympystr(self, printer):
        return printer._print(self.in_full)


class LogCumSumExpBack(LogCumSumExp):
    """The same from the end: it never increases along ``T``."""

    reverse = True
