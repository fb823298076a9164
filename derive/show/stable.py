"""The forward as the code computes it, where that is not as it is written: a last step, behind the
mathematics. An exponential is taken of a difference to the largest entry, a difference is centred
once more, a logarithm is split; every line was proved equal (``proving/forward_plan.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

from derive.language.errors import UnprovedError
from derive.language.formulas.words import Words, joined
from derive.language.nodes import Peak
from derive.proof.proving.forward_plan import forward_plan
from derive.proof.proving.line_proof import PROVED, WRITTEN, ForwardLine
from derive.proof.proving.proved import Proved
from derive.show.document import Block, Equation, Equations, Prose

SAID = (
    "The same mathematics, in an order in which numbers neither overflow nor lose their digits. "
    "Each line that differs from the forward was proved equal to it."
)


def computed_forward(proved: Proved) -> Iterator[Block]:
    """The lines that differ, and the parts that they are made of; nothing where none does."""
    try:
        lines = forward_plan(proved.closed_form)
    except UnprovedError:  # which refuses the code, and no derivation
        return
    if any(line.how == PROVED for line in lines):
        yield Prose(SAID)
        changed = (line for line in lines if line.how != WRITTEN)
        yield Equations(tuple(Equation(c.tensor, c.expression, _why(c)) for c in changed))


def _why(line: ForwardLine) -> Words:
    """The reason for subtracting a maximum, or for a line that equals the forward's."""
    peaks = sorted(line.expression.atoms(Peak), key=str)
    if line.expression in peaks:
        return ("the largest entry along ", *line.expression.axes)
    if peaks and line.how != PROVED:
        return (*joined(peaks), " is subtracted: no exponential overflows")
    return "equal to the line of the forward" if line.how == PROVED else ""
