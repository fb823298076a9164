"""Parts of a line of a class body that SymPy's expression of it loses."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr

from derive.language.errors import Place


@dataclass(frozen=True)
class Vanished:
    """The names in the line of the statement ``name`` that its value does not depend on."""

    name: str
    of: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class Widened:
    """A statement with numbers where its line has none, unless the ``conditions`` hold."""

    name: str
    value: Expr
    conditions: tuple[str, ...]
    place: Place
