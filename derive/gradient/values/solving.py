"""The input and output of a way to solve a definition; ``equations.py`` has the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from sympy import Expr

from derive.gradient.values.naming import NamedValue
from derive.language.notation.definition import Definition
from derive.language.symbols import Tensor

Solution = tuple[Expr, Expr]  # a member, and what it equals


class Known(Protocol):
    """The forward, as a way of solving sees it."""

    definition: Definition
    by_name: dict[str, NamedValue]
    position: dict[str, int]

    def unfolded(self, tensor: Tensor) -> Expr:
        """The definition of a value, along the axes along which it is met."""


@dataclass(frozen=True)
class Solving:
    """``statement`` is the definition and what follows, ``holds`` the condition. ``once``: each
    definition is solved for one member alone, since those would be replaced by each other.
    """

    statement: str
    holds: str
    solve: Callable[[NamedValue, Known], Iterable[Solution]]
    once: bool = False

    def of(self, values: Iterable[NamedValue], known: Known) -> dict[Expr, tuple[Expr, NamedValue]]:
        """Every member that is solved for, with its equal and the value that defines it: the first
        of ``values`` that does.
        """
        found: dict[Expr, tuple[Expr, NamedValue]] = {}
        for value in values:
            new = [(m, equal) for m, equal in self.solve(value, known) if m not in found]
            found |= {member: (equal, value) for member, equal in new[: 1 if self.once else None]}
        return found
