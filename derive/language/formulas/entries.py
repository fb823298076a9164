"""Single entries of tensors in a formula, and what a label or an arg max decides of them."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Function, Symbol


class Chosen(Function):
    """1 where the first argument is the second, else 0: a one-hot in entries."""

    is_real = True


class ArgMaxOfEntries(Function):
    """The place of the largest of its arguments, counted from 1; of equals the first."""

    is_real = True


def entry(name: str, index: Iterable[int]) -> Symbol:
    """The symbol of an entry, numbered from 1 as in a book.

    No tensor has a bracket in its name, so that a printer can tell the two apart.
    """
    places = ", ".join(str(k + 1) for k in index)
    return Symbol(f"{name}[{places}]" if places else name, real=True)


def entry_of(symbol: Symbol) -> tuple[str, list[str]]:
    """The name of a tensor, and the numbers of an entry of it."""
    name, _, places = symbol.name.partition("[")
    return name, places.rstrip("]").split(", ") if places else []
