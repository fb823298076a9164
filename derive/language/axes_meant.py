"""Axes that a user names as text, as numbers, in a tuple or as symbols."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Symbol, Tuple

from derive.language.symbols import Axis, Tensor


def names_meant(axes: Iterable[object]) -> list[str] | None:
    """The names of axes given as ``"N"``, as SymPy symbols or in a tuple; None where one has no
    name, such as a number.
    """
    names: list[str] = []
    for axis in axes:
        if isinstance(axis, (tuple, list, Tuple)):
            inner = names_meant(axis)
        elif isinstance(axis, (str, Symbol)) and not isinstance(axis, Tensor):
            inner = str(axis).replace(",", " ").split()
        else:
            inner = None
        if not inner or not all(name.isidentifier() for name in inner):
            return None
        names += inner
    return names


def unknown(names: Iterable[str], known: Iterable[Axis]) -> str:
    """Declarations for those of ``names`` that are not ``known``, appended to a remedy."""
    new = [name for name in names if name not in {axis.name for axis in known}]
    return f", with {declared(new)}" if new else ""


def declared(names: Iterable[str]) -> str:
    """``N, C = Axis("N"), Axis("C")``."""
    names = list(dict.fromkeys(names))
    made = ", ".join(f'Axis("{name}")' for name in names)
    return f"{', '.join(names)} = {made}"
