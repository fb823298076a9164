"""Divisors that may be zero: a size in a branch whose conditions exclude that size, as in
``Piecewise((Sum(x, N)/(N - 1), N > 1), (0, True))``, is guarded.
"""

from __future__ import annotations

from collections.abc import Iterator

from sympy import And, Basic, Expr, Not, Piecewise, S

from derive.language.choices import Branches, Compared
from derive.language.divisors import size_divisors
from derive.language.symbols import Axis, is_number_or_size

Conditions = tuple[Basic, ...]


def unguarded_divisors(e: Basic) -> list[Expr]:
    """The divisors of ``e`` in sizes alone that may be zero where they are evaluated."""
    met = {d for d, conditions in _met(e, ()) if not _is_guarded(d, conditions)}
    return sorted(met, key=lambda d: d.sort_key())


def guarded_zeros(e: Basic) -> list[tuple[Axis, int]]:
    """Axes with the sizes at which a guarded divisor is zero."""
    open_ones = set(unguarded_divisors(e))
    zeros = [_zero(d) for d in size_divisors(e) if d not in open_ones]
    return [(a, int(n)) for a, n in filter(None, zeros) if n.is_Integer and n.is_positive]


def _met(e: Basic, conditions: Conditions) -> Iterator[tuple[Expr, Conditions]]:
    """Every divisor, with the conditions under which it is evaluated."""
    if isinstance(e, (Branches, Compared)):
        e = e.choice
    if not e.atoms(Piecewise, Branches):
        yield from ((d, conditions) for d in size_divisors(e))
        return
    if not isinstance(e, Piecewise):
        yield from ((d, conditions) for d in size_divisors(e) if _is_own(e, d))
        for arg in e.args:
            yield from _met(arg, conditions)
        return
    for value, condition in e.args:
        yield from _met(condition, conditions)
        yield from _met(value, (*conditions, condition))
        conditions = (*conditions, Not(condition))


def _is_own(e: Basic, divisor: Expr) -> bool:
    return e.is_Pow and e.base == divisor


def _zero(divisor: Expr) -> tuple[Axis, Expr] | None:
    """The axis of a divisor that is linear in one size, and the size at which it is zero."""
    axes = divisor.atoms(Axis)
    if len(axes) != 1 or not divisor.is_polynomial(*axes):
        return None
    (axis,) = axes
    slope = divisor.coeff(axis)
    rest = divisor - slope * axis
    return (axis, -rest / slope) if slope != 0 and not rest.has(axis) else None


def _is_guarded(divisor: Expr, conditions: Conditions) -> bool:
    zero = _zero(divisor)
    if zero is None:
        return False
    axis, size = zero
    known = (part for c in conditions for part in (c.args if isinstance(c, And) else (c,)))
    return any(c.subs(axis, size) == S.false for c in known if is_number_or_size(c))
