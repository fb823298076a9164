"""Divisors in expressions."""

from __future__ import annotations

from sympy import Basic, Expr, Pow

from derive.language.symbols import Axis, is_number_or_size


def divisors_in(e: Basic) -> set[Expr]:
    """The bases of all powers in ``e`` with a negative exponent."""
    return {power.base for power in e.atoms(Pow) if power.exp.could_extract_minus_sign()}


def size_divisors(e: Basic) -> list[Expr]:
    """The divisors of ``e`` in sizes alone."""
    found = (d for d in divisors_in(e) if is_number_or_size(d) and d.atoms(Axis))
    return sorted(found, key=lambda e: e.sort_key())
