"""Rewrites of recurrences: constant factors move out, and ones are counted.

The identities that these are, with the conditions under which they hold, stand in the table of
``identities.py``, which also says what a rewrite receives and returns.
"""

from __future__ import annotations

from sympy import Mul, S

from derive.language.nodes import Position, Recurrence
from derive.language.symbols import axes_of


def constant_of_scan(node, knowledge):
    if not isinstance(node, Recurrence) or node.initial != 0:
        return None
    factors = Mul.make_args(node.operand)
    outside = [f for f in factors if node.axis not in axes_of(f)]
    if not outside or node.operand == 1:
        return None
    inside = Mul(*(f for f in factors if f not in outside))
    return Mul(*outside) * node.on(inside)


def counted(node, knowledge):
    if not isinstance(node, Recurrence) or not node.is_sum or node.operand != 1:
        return None
    before = Position.over(S.Zero, node.axes)
    own = 0 if node.exclusive else 1
    if node.reverse:
        return knowledge.relations.size(node.axis) - 1 + own - before
    return before + own
