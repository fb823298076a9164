"""Points where some entries are exactly on an edge: 0, equal, or the number in a condition.

Random numbers are never there, and there a magnitude has its kink, ``0*log(0)`` is NaN and a choice
has its two sides. A sum can be 0 only where a whole row is. And points so far out that a branch
which is not taken overflows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from sympy import Piecewise
from sympy.core.relational import Relational
from torch import Tensor

from derive.language.notation.definition import Definition

EQUAL = 0.75  # the value of equal inputs: in range of every draw, and unlikely to be a threshold


@dataclass(frozen=True)
class Edge:
    """An edge: some entries are these ``numbers``; ``said`` in words."""

    said: str
    numbers: tuple[float, ...]
    together: bool = False  # in all inputs at the same places

    def __str__(self) -> str:
        return self.said


FAR = Edge("where a branch is not taken", (1e4, -1e4))  # beyond the ends of its exponentials


def edges_of(definition: Definition) -> Iterator[Edge]:
    yield Edge("where an entry is 0", (0.0,))
    yield Edge("where entries are equal", (EQUAL,), together=True)
    if any(s.expression.has(Piecewise) for s in definition.statements):
        yield FAR
    tests = [t for s in definition.statements for t in s.expression.atoms(Relational)]
    sides = {side for test in tests for side in test.args if side.is_number and side.is_finite}
    numbers = sorted({sign * float(side) for side in sides if side != 0 for sign in (1, -1)})
    if numbers:
        words = ", ".join(f"{n:g}" for n in numbers)
        yield Edge(f"where an entry is on the boundary of a condition ({words})", tuple(numbers))


def on_edge(edge: Edge, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The ``inputs`` with every other entry on the edge, or in turn for several numbers, and a
    whole row; a single number stays as it is beside others.
    """
    several = len(inputs) > 1
    found = {}
    for place, (name, value) in enumerate(inputs.items()):
        if value.dim() == 0 and several:
            continue
        turn = len(inputs) + 1
        places = torch.arange(value.numel()).reshape(value.shape)
        chosen = (places % turn == 0) | (places % turn == (0 if edge.together else place + 1))
        if value.dim() > 1:
            chosen[0] = True
        numbers = torch.tensor(edge.numbers, dtype=value.dtype)
        entries = numbers[places // turn % len(numbers)]
        found[name] = torch.where(chosen, entries, value)
    return found
