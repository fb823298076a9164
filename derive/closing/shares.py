"""The other share of a whole: ``1 - 1/(1 + exp(u))`` is ``1/(1 + exp(-u))``, and keeps its digits.

Where the one share is nearly all, the difference is rounding error alone. So are gradients of a
loss that is nearly met, such as those of ``log(1 + exp(-x))``.
"""

from __future__ import annotations

from sympy import Add, Expr

from derive.closing.steps import Pairs, Record
from derive.language.nodes import along
from derive.language.symbols import Tensor, tensors_in
from derive.language.traversal import everywhere
from derive.values.relations import Relations

WHY = "the remainder is computed directly, not as a difference"


def with_other_shares(pairs: Pairs, relations: Relations, record: Record) -> Pairs:
    """``pairs`` with ``c - c*a/v = c/(1 + a*exp(-u))`` used, where the forward defines v = a +
    exp(u), and ``c - c*a*s`` the same, where it defines s = 1/v and nothing else reads s.
    """
    for difference, (remainder, value) in relations.solved["remainder"].items():
        share, trial = 1 - difference, Record()
        turned = [
            (t, trial.add(t, "other share", e, _turned(e, value.tensor, share, remainder), WHY))
            for t, e in pairs
        ]
        if isinstance(value.expression, Add) or not any(_reads(e, value.tensor) for _, e in turned):
            record.steps.extend(trial.steps)
            pairs = turned
    return pairs


def _turned(e: Expr, value: Tensor, share: Expr, remainder: Expr) -> Expr:
    """``e`` with what remains besides ``share``, which is of ``value``, written as such."""

    def turned(node: Expr) -> Expr | None:
        for part in node.args if isinstance(node, Add) else ():
            for met in (t for t in tensors_in(part) if t.at_home == value):
                whole = -part / along(share, met)
                if whole in node.args:
                    return node - whole - part + whole * along(remainder, met)
        return None

    return everywhere(e, turned) if _reads(e, value) else e


def _reads(e: Expr, value: Tensor) -> bool:
    return any(t.at_home == value for t in tensors_in(e))
