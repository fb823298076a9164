"""Lengths of axes that follow from those of others: ``Axis("To", (T - K) // 2 + 1)``."""

from __future__ import annotations

from sympy import Expr

from derive.language.errors import NotationError, shortened


def checked_length(name: str, length: Expr) -> Expr:
    """A length as an expression in the sizes of other axes. Raises `NotationError`."""
    sizes = length.free_symbols
    of_sizes = all(hasattr(symbol, "dims") for symbol in sizes)  # of axes, and not of tensors
    plain = all(atom.is_Symbol or atom.is_Number for atom in length.atoms())
    if sizes and of_sizes and plain:
        return length
    raise NotationError(
        f"Axis({name!r}, {shortened(length)}): the length is not made of the sizes of other axes",
        f"write Axis({name!r}, 4), Axis({name!r}, T - 1), or Axis({name!r}) where it is open",
    )
