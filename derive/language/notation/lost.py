"""Parts of a line of a class body that SymPy's expression of it loses."""

from __future__ import annotations

from dataclasses import dataclass

from sympy import Expr

from derive.language.errors import Place


@dataclass(frozen=True)
class Vanished:
    """The names that the statement ``name`` is written with, and does not depend on."""

    name: str
    of: tuple[str, ...]
    place: Place


@dataclass(frozen=True)
class Widened:
    """The statement ``name`` has numbers where its line has none: that needs the ``conditions``."""

    name: str
    value: Expr
    conditions: tuple[str, ...]
    place: Place
