"""The ties between the places of a recurrence, which the forward cuts open, and their backward.

    h_before[t] = h_after[t-1]      dh_after[t] = dh_before[t+1]
    h_before[0] = h_initial         dh_initial  = dh_before[0]

The second is the adjoint of the first: that of a step to the next place, and of the first entry.
"""

from __future__ import annotations

from sympy import Expr, S

from derive.gradient.chain.chain import adjoint_of
from derive.language.nodes import RecurrenceBefore, TransposedBefore
from derive.language.notation.definition import Definition
from derive.language.reading_at import At
from derive.language.symbols import Tensor

Tie = tuple[Tensor, Expr]


def ties_forward(definition: Definition) -> list[Tie]:
    """The state before each place."""
    return [
        (c.before, RecurrenceBefore.over(c.after, S.Zero, c.initial, [c.axis]))
        for c in definition.carried
    ]


def ties_backward(definition: Definition) -> list[Tie]:
    """Ties of the backward: from each place to the one before, and to the initial state."""
    found = []
    for c in definition.carried:
        back = adjoint_of(c.before)
        found.append((adjoint_of(c.after), TransposedBefore.over(back, S.Zero, S.Zero, [c.axis])))
        if c.initial in definition.outputs:
            found.append((adjoint_of(c.initial), At(back, c.axis, 0)))
    return found
