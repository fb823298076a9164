"""Undefined names: used too early, misspelled, not imported, or from another library."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy

from derive.language.errors import NotationError, Place
from derive.language.source.spellings import (
    DECLARATIONS,
    HAS,
    NODES,
    closest,
    in_the_notation,
    is_pointwise,
)

MODULES = {"sympy": "sympy", "sp": "sympy", "math": "math", "derive": "gradform"}
SIMILAR_OWN = 0.6  # among the user's few own names, so a looser match is safe


def unknown_name(
    name: str, place: Place, assigned: Mapping[str, int], known: Iterable[str] = ()
) -> NotationError:
    """The error for an undefined ``name`` at ``place``; ``assigned`` are the lines on which the
    class body assigns names, ``known`` the imported names.
    """
    problem, remedy = _said(name, place.line, assigned, [*known])
    return NotationError(problem, remedy, place)


def _said(name: str, line: int, assigned: Mapping[str, int], known: list[str]) -> tuple[str, str]:
    where = assigned.get(name)
    if where is not None and where > line:
        return (
            f"{name} is used here, but defined only on line {where}",
            "a statement sees what stands above it: move one of the two lines",
        )
    if where == line:
        return (
            f"{name} is used in its own definition",
            f"use the tensors above it, or {name} at the place before: Previous({name}, T)",
        )
    if where is not None:
        return (
            f"{name} is not seen by a function or a comprehension inside of a class body",
            "write the statement out, or pass the tensor as an argument",
        )
    is_axis = len(name) == 1 and name.isupper()
    same = [each for each in (*assigned, *known) if each.lower() == name.lower()]
    if same:
        axis = f'; an axis is declared: {name} = Axis("{name}")' if is_axis else ""
        return f"{name} is unknown", f"did you mean {same[0]}?{axis}"
    if is_axis:
        return f"{name} is unknown", f'declare the axis: {name} = Axis("{name}")'
    own = closest(name, assigned, cutoff=SIMILAR_OWN)
    if own:
        return f"{name} is unknown", f"did you mean {own}?"
    if elsewhere := _elsewhere(name):
        return elsewhere
    other = closest(name, [*NODES, *DECLARATIONS, *known])
    if other:
        return f"{name} is unknown", f"did you mean {other}?"
    if name[:1].isupper():
        return f"{name} is unknown here, and not part of the notation", HAS
    return f"{name} is unknown", "define it on a line above, as an Input or a statement"


def _elsewhere(name: str) -> tuple[str, str] | None:
    """Problem and remedy for a name of a module's, the notation's, SymPy's, torch's."""
    if name in MODULES:
        module = MODULES.get(name, name)
        renamed = f" as {name}" if name != module else ""
        return f"{name} is unknown here", f"import it: import {module}{renamed}"
    if name in (*NODES, *DECLARATIONS):
        return f"{name} is unknown here", f"import it: from gradform import {name}"
    if in_the_notation(name) != HAS and not is_pointwise(name):
        remedy = f"define it on a line above; or, as a function, {in_the_notation(name)}"
        return f"{name} is unknown here, and not part of the notation", remedy
    lower = name.lower()
    if is_pointwise(lower) and not hasattr(sympy, name):
        return f"{name} is unknown here", f"did you mean {lower}? from sympy import {lower}"
    if hasattr(sympy, name):
        return f"{name} is unknown here", f"import it: from sympy import {name}"
    return None
