"""Sentences with formulas in them."""

from __future__ import annotations

from collections.abc import Iterable

from sympy import Basic, Expr

# A sentence: plain text, or parts of it with formulas between them.
Words = str | tuple[str | Basic, ...]
Side = Expr | Words


def parts_of(words: Side) -> tuple[str | Basic, ...]:
    """Text and formulas in the order in which they are read."""
    if isinstance(words, str):
        return (words,) if words else ()
    return words if isinstance(words, tuple) else (words,)


def joined(parts: Iterable[Side], between: str = ", ") -> tuple[str | Basic, ...]:
    """Several sentences or formulas as one sentence."""
    found: list[str | Basic] = []
    for i, part in enumerate(parts):
        found += [between] * bool(i) + list(parts_of(part))
    return tuple(found)
