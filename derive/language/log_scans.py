"""The logarithm of a cumulative sum of exponentials, which replaces a cumulative sum that may
overflow. Users write ``log(CumSum(exp(x), T))``.
"""

from __future__ import annotations

from typing import Any

from sympy import Expr, S, exp, log

from derive.language.array_node import Gradients
from derive.language.entries import EntryReader, Places
from derive.language.scans import KINDS, GoneAlong


class LogCumSumExp(GoneAlong):
    """``log(CumSum(exp(e), T))`` without the exponentials: it never decreases along ``T``.

    Source: ``torch.logcumsumexp``.
    """

    word = "logcumsumexp"
    reason = "shares of what is summed along {axes}"

    def entry(self, by: EntryReader, at: Places) -> Any:
        return by.at(self.in_full, at)

    def adjoint(self, upstream: Expr) -> Gradients:
        # y[t] = log(sum_{s<=t} exp(x[s]))  =>  dx[s] = exp(x[s])*sum_{t>=s} dy[t]*exp(-y[t])
        back = KINDS[not self.reverse, False]
        total = back.over(upstream * exp(-self), S.One, S.Zero, self.axes)
        return [(self.operand, exp(self.operand) * total)]

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
