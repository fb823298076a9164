"""Simpler forms of a choice by one value: the larger of two, a clamp, a function that bends at 0.

The contract of an entry of the table. It receives a `Choice` by the range of one value, and returns
an equal form, or None. Both sides are equal for all finite numbers, with the edges between the
pieces, and at infinities where the left side has a value. For a NaN that decides, the left side is
the last branch, which need not be NaN; the right side is NaN, or that branch. Where an entry needs
a scalar to be positive and the declarations do not say so, the code asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sympy import Add, Dummy, Expr, Function, Mul, Piecewise, S, exp, expand

from codegen.lowering.by_value import Choice, divided, equal, is_scalar, lowest_at_edge
from derive.language.symbols import is_constant


class larger(Function):
    """The larger of two; NaN where one of them is."""


class smaller(Function):
    """The smaller of two; NaN where one of them is."""


class bent(Function):
    """``bent(g, u, s)`` is g where u > 0, and else s*g."""


class sloping(Function):
    """``sloping(g, u, s)`` is s*exp(u)*g where u <= 0, and else g."""


@dataclass(frozen=True)
class Piece:
    """``statement`` is the equation, ``holds`` its condition."""

    statement: str
    holds: str
    rewrite: Callable[[Choice], Expr | None]


def _held(choice: Choice) -> Expr | None:
    """A clamp: the inner piece, or the one that is not constant, of u held between the bounds."""
    if len(choice.bounds) == 2:
        f, (low, high) = choice.inside(1), choice.bounds
        if f is None:
            return None
        held = smaller(larger(choice.u, low), high)
        outside = [_rest(choice, i, f(b), b) for i, b in ((0, low), (2, high))]
        if outside[0] is None or outside[0] != outside[1]:
            return None
        return f(held) + outside[0] * (choice.u - held)
    for i, bound in ((0, smaller), (1, larger)):
        f, (b,) = choice.inside(i), choice.bounds
        if f is not None and equal(f(b), choice.pieces[1 - i]):
            return f(bound(choice.u, b))
    return None


def _rest(choice: Choice, i: int, at_bound: Expr, bound: Expr) -> Expr | None:
    """The number s for which piece ``i`` is ``at_bound + s*(u - bound)``."""
    f, place = choice.inside(i), Dummy("u", real=True)
    if f is None:
        return None
    slope = expand(f(place)).diff(place)
    straight = slope.is_number and equal(f(place), at_bound + slope * (place - bound))
    return slope if straight else None


def _joined(choice: Choice) -> Expr | None:
    """f(u) below the bound plus g(u) above it, both 0 there, term by term."""
    if len(choice.bounds) != 1:
        return None
    (b,), (f, g) = choice.bounds, (choice.inside(0), choice.inside(1))
    if f is None or g is None or b != 0:
        return None
    place = Dummy("u", real=True)
    terms = [t for h in (f, g) for t in Add.make_args(h(place))]
    if any(t.xreplace({place: b}) != 0 for t in terms):
        return None
    return f(smaller(choice.u, b)) + g(larger(choice.u, b))


def as_bent(choice: Choice) -> Expr | None:
    """g above 0 and s*g below."""
    if choice.bounds != (0,) or not lowest_at_edge(choice):
        return None
    below, above = choice.pieces
    slope = S.Zero if above == 0 else below / above
    if above in (0, 1) or slope == 0 or not is_scalar(slope) or divided(slope):
        return None
    return bent(above, choice.u, slope)


def _eased(choice: Choice) -> Expr | None:
    """An exponential that is 1 at the bound, of the clamped value; it is the last branch, which NaN
    takes.
    """
    if len(choice.bounds) != 1:
        return None
    (b,), place, last = choice.bounds, Dummy("u", real=True), choice.whole.args[-1].expr
    for i, bound in ((0, smaller), (1, larger)):
        f, other = choice.inside(i), choice.pieces[1 - i]
        if f is None or not is_scalar(other) or choice.pieces[i] != last:
            continue
        for factor in Mul.make_args(f(place)):
            if isinstance(factor, exp) and factor.xreplace({place: b}) == 1:
                left = f(place) / factor
                if left.has(place):
                    continue
                rest = {last: left}
                pairs = [(rest.get(v, v), c) for v, c in choice.whole.args]
                eased = factor.xreplace({place: bound(choice.u, b)})
                return eased * Piecewise(*pairs, evaluate=False)
    return None


def as_sloping(choice: Choice) -> Expr | None:
    """g above 0 and s*exp(u)*g below; g for NaN."""
    if choice.bounds != (0,) or not lowest_at_edge(choice):
        return None
    below, above = choice.pieces
    if is_constant(above) or above != choice.whole.args[-1].expr:
        return None
    slope = below / above / exp(choice.u)
    if slope == 0 or divided(slope):
        return None
    return sloping(above, choice.u, slope) if is_scalar(slope) else None


pieces: tuple[Piece, ...] = (
    Piece(
        "Piecewise((f(a), u < a), (f(b), u > b), (f(u), True)) = f(min(max(u, a), b)), and"
        " + s*(u - min(max(u, a), b)) where the outer pieces rise with the slope s",
        "a <= b; f(u) is made of u and scalars alone",
        _held,
    ),
    Piece(
        "Piecewise((g, u > 0), (s*g, True)) = bent(g, u, s)",
        "s is a number or made of scalars, and not 0",
        as_bent,
    ),
    Piece(
        "Piecewise((f(u), u < 0), (g(u), True)) = f(min(u, 0)) + g(max(u, 0))",
        "every term of f(0) and g(0) is 0; both are made of u and scalars alone",
        _joined,
    ),
    Piece(
        "Piecewise((c*exp(h(u)), u < b), (d, True)) ="
        " exp(h(min(u, b)))*Piecewise((c, u < b), (d, True))",
        "h(b) = 0; c, d and h(u) are made of u and scalars alone",
        _eased,
    ),
    Piece(
        "Piecewise((s*exp(u)*g, u <= 0), (g, True)) = sloping(g, u, s)",
        "s is a number or made of scalars",
        as_sloping,
    ),
)
