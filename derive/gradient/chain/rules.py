"""The adjoints of the array nodes: the only derivatives that SymPy does not know.

The contract of a rule. It receives the node and the upstream gradient, an expression along the axes
of the node (at most: what it lacks, it broadcasts). It returns the operands that the gradient flows
to, each with its gradient *before* anything is summed: the driver in ``chain.py`` sums over the
axes that an operand lacks, because whatever was broadcast is summed. A node without an entry here
is refused by name.

To add a node: its class in ``nodes.py``, its line here, one printer line for each target.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sympy import Expr, S, exp

from derive.gradient.chain.matrix_rules import (
    through_cholesky,
    through_inverse,
    through_log_det,
    through_solve,
)
from derive.language.diagonals import Identity
from derive.language.nodes import (
    ArgMax,
    ArrayNode,
    Cholesky,
    Flatten,
    Inverse,
    LargestSoFar,
    LogCumSumExp,
    LogCumSumExpBack,
    LogDet,
    Max,
    NewMax,
    OneHot,
    Peak,
    Position,
    Recurrence,
    RecurrenceBefore,
    Solve,
    SubtractedPeak,
    Sum,
    Transposed,
    TransposedBefore,
    Unflatten,
)
from derive.language.reading_at import At, back
from derive.language.scans import KINDS

Pullback = Callable[[ArrayNode, Expr], list[tuple[Expr, Expr]]]


@dataclass(frozen=True)
class Rule:
    """How a gradient passes a node, and the few words that say so."""

    pullback: Pullback
    reason: str


def _through_sum(node: Sum, upstream: Expr):
    # y = sum_i e_i  =>  de_i = dy for every i
    return [(node.operand, upstream)]


def _through_max(node: Max, upstream: Expr):
    # y = e_k with k the first arg max  =>  de_i = dy if i = k, else 0
    (axis,) = node.axes
    return [(node.operand, upstream * OneHot.over(ArgMax.over(node.operand, [axis]), [axis]))]


def _through_flatten(node: Flatten, upstream: Expr):
    # y[t*E + e] = x[t, e]  =>  dx[t, e] = dy[t*E + e]
    return [(node.operand, Unflatten.over(upstream, node.into, node.axes))]


def _through_unflatten(node: Unflatten, upstream: Expr):
    # y[t, e] = x[t*E + e]  =>  dx[t*E + e] = dy[t, e]
    return [(node.operand, Flatten.over(upstream, node.into, node.axes))]


def _through_recurrence(node: Recurrence, upstream: Expr):
    # h[t] = a[t]*h[t-1] + b[t]
    # =>  db[s] = dh[s] + a[s+1]*db[s+1], da[s] = db[s]*h[s-1], dinitial = sum_t dh[t]*a[0]*...*a[t]
    factor, axes = node.factor, node.axes
    back = KINDS[True, node.exclusive].over(upstream, factor, S.Zero, axes)
    before = RecurrenceBefore.over(node.operand, factor, node.initial, axes)
    product = type(node).over(S.Zero, factor, S.One, axes)
    return [
        (node.operand, back),
        (factor, back * before),
        (node.initial, upstream * product),
    ]


def _through_transposed(node: Transposed, upstream: Expr):
    # g[s] = b[s] + a[s+1]*g[s+1]  =>  db[t] = dg[t] + a[t]*db[t-1], da[t] = g[t]*db[t-1]
    factor, axes = node.factor, node.axes
    onward = KINDS[False, node.exclusive].over(upstream, factor, S.Zero, axes)
    before = RecurrenceBefore.over(upstream, factor, S.Zero, axes)
    return [(node.operand, onward), (factor, node * before)]


def _through_log_sum(node: LogCumSumExp, upstream: Expr):
    # y[t] = log(sum_{s<=t} exp(x[s]))  =>  dx[s] = exp(x[s])*sum_{t>=s} dy[t]*exp(-y[t])
    back = KINDS[not node.reverse, False]
    total = back.over(upstream * exp(-node), S.One, S.Zero, node.axes)
    return [(node.operand, exp(node.operand) * total)]


def _through_reading(node: At, upstream: Expr):
    # y[p] = x[a*p + b]  =>  dx[t] = dy[(t - b)/a], and 0 where that is the index of no entry
    return [(node.operand, back(node, upstream))]


def _through_largest_so_far(node: LargestSoFar, upstream: Expr):
    # y[t] = max(y[t-1], x[t])  =>  dx[s] = new[s]*g[s] with g[s] = dy[s] + (1 - new[s+1])*g[s+1]
    new = NewMax.over(node.operand, node.axes)
    return [(node.operand, new * Transposed.over(upstream, 1 - new, S.Zero, node.axes))]


def _nowhere(node: ArrayNode, upstream: Expr):
    # an index is piecewise constant in everything, and a peak cancels: no gradient passes
    return []


rules: dict[type[ArrayNode], Rule] = {
    Sum: Rule(_through_sum, "broadcast over {axes}, because it was summed there"),
    Max: Rule(_through_max, "routed to the arg max along {axes}"),
    Peak: Rule(_nowhere, "any value would do: it cancels"),
    SubtractedPeak: Rule(_nowhere, "any value would do: it cancels"),
    Flatten: Rule(_through_flatten, "unflattened into {axes}, because they were flattened there"),
    Unflatten: Rule(_through_unflatten, "{axes} flattened again"),
    Recurrence: Rule(
        _through_recurrence, "from the end along {axes}, where it came from the start"
    ),
    RecurrenceBefore: Rule(
        _through_recurrence, "from the end along {axes}, where it came from the start"
    ),
    Transposed: Rule(
        _through_transposed, "from the start along {axes}, where it came from the end"
    ),
    TransposedBefore: Rule(
        _through_transposed, "from the start along {axes}, where it came from the end"
    ),
    LogCumSumExp: Rule(_through_log_sum, "shares of what is summed along {axes}"),
    LogCumSumExpBack: Rule(_through_log_sum, "shares of what is summed along {axes}"),
    At: Rule(_through_reading, "summed over the places that read the entry along {axes}"),
    LargestSoFar: Rule(_through_largest_so_far, "routed to the largest so far along {axes}"),
    NewMax: Rule(_nowhere, "an index has no gradient"),
    Inverse: Rule(through_inverse, "by the inverse matrix on both sides, along {axes}"),
    LogDet: Rule(through_log_det, "by the transposed inverse along {axes}"),
    Solve: Rule(through_solve, "the transposed equations solved along {axes}"),
    Cholesky: Rule(through_cholesky, "the transposed factor solved twice along {axes}"),
    OneHot: Rule(_nowhere, "an index has no gradient"),
    Identity: Rule(_nowhere, "it is constant"),
    ArgMax: Rule(_nowhere, "an index has no gradient"),
    Position: Rule(_nowhere, "an index has no gradient"),
}
