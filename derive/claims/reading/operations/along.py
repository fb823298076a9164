"""Torch's operations along a dimension: scans, flips, shifts."""

from __future__ import annotations

from sympy import Expr, S

from derive.claims.reading.refusals import Refusal
from derive.claims.reading.values import INT, NUMBER, TextValue
from derive.language.nodes import Position
from derive.language.scans import KINDS
from derive.language.symbols import Axis, axes_of, is_number_or_size


def so_far(e: Expr, axis: Axis) -> Expr:
    if axis not in axes_of(e):  # constant along it
        return e * (Position(axis) + 1)
    return KINDS[False, False].over(e, S.One, S.Zero, [axis])


def product_so_far(e: Expr, axis: Axis) -> Expr:
    return KINDS[False, False].over(S.Zero, e, S.One, [axis])


def whole_number(value, what: str) -> Expr:
    """An integer or a size."""
    found = value if isinstance(value, TextValue) and value.kind == NUMBER else None
    if found is not None and found.dtype == INT and is_number_or_size(found.expression):
        return found.expression
    raise Refusal(f"{what} is not an integer", "write a number, or x.shape[0]")
