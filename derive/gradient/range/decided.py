"""Choices that always come out the same, by what is known of the range of values: ``y.clamp(0, 1)``
of a probability ``y`` is y, and a sum of squares is not below 0.

In: an expression, and the definitions of the names in it. Out: an expression that is equal to it
for all data.
"""

from __future__ import annotations

from sympy import (
    Abs,
    Add,
    Expr,
    Integer,
    Mul,
    Not,
    Or,
    Piecewise,
    Pow,
    Rational,
    S,
    exp,
    fraction,
    sign,
    together,
)
from sympy import Max as PointwiseMax
from sympy import Min as PointwiseMin
from sympy.core.relational import Relational

from derive.gradient.range.bounds import Ranges, bounds
from derive.language.nodes import ArgMax, Max, OneHot, Position, Sum
from derive.language.quotients import cancelled
from derive.language.symbols import Tensor

HOLDS = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "==": (0,), "!=": (-1, 1)}
CLEAR = 1e-9  # what is farther from 0 is not on its other side for being rounded
EXACT_BITS = 50  # of numbers that a float holds: with them an end of 0 is 0


def decided(e: Expr, ranges: Ranges) -> Expr:
    """``e`` with every choice made that the ranges of its values decide.

    A condition that can hold only as an equality, ``y <= 0`` of a y that is not negative, is left
    out too where both of its branches are equal then. What is positive goes out of the divisors of
    what is compared.
    """
    if not e.has(Piecewise, Abs, sign, PointwiseMax, PointwiseMin):
        return e
    if isinstance(e, Piecewise):
        return _choice(e, ranges)
    e = e.func(*(decided(arg, ranges) if isinstance(arg, Expr) else arg for arg in e.args))
    if isinstance(e, (Abs, sign)):
        sides = signs(e.args[0], ranges)
        sides = sides - {0} if isinstance(e, Abs) else sides
        if len(sides) == 1:
            (side,) = sides
            return side * e.args[0] if isinstance(e, Abs) else Integer(side)
    if isinstance(e, (PointwiseMax, PointwiseMin)):
        return _extreme(e, ranges)
    return e


def signs(e: Expr, ranges: Ranges) -> frozenset[int]:
    """The signs that ``e`` may have."""
    within = bounds(e, ranges)
    found = {-1, 0, 1}
    exact = _is_exact(e, ranges)
    if within.low > CLEAR or is_positive(e, ranges):
        return frozenset({1})
    if within.high < -CLEAR or is_positive(-e, ranges):
        return frozenset({-1})
    if within.low >= 0 and exact:
        found -= {-1}
    if within.high <= 0 and exact:
        found -= {1}
    return frozenset(found)


def _is_exact(e: Expr, ranges: Ranges) -> bool:
    """Whether floats hold the numbers that the ends of the range of ``e`` are made of."""
    seen, unread = set(), [e]
    while unread:
        e = unread.pop()
        for n in e.atoms(Rational):
            power_of_two = n.q & (n.q - 1) == 0
            if not power_of_two or max(abs(n.p), n.q).bit_length() > EXACT_BITS:
                return False
        for t in e.atoms(Tensor) - seen:
            seen.add(t)
            definition = ranges.definition_of(t)
            unread += [] if definition is None else [definition]
    return True


def is_positive(e: Expr, ranges: Ranges) -> bool:
    """Whether ``e`` is above 0, by its form and those of its values."""
    if isinstance(e, exp) or e.is_positive:
        return True
    if isinstance(e, Tensor):
        definition = ranges.definition_of(e)
        return definition is not None and is_positive(definition, ranges)
    if isinstance(e, (Position, OneHot, ArgMax)):
        return False
    if isinstance(e, (Sum, Max)):
        return is_positive(e.operand, ranges)
    if isinstance(e, Add):
        rest = [arg for arg in e.args if not is_positive(arg, ranges)]
        return len(rest) < len(e.args) and all(bounds(arg, ranges).low >= 0 for arg in rest)
    if isinstance(e, Mul):
        return all(is_positive(arg, ranges) for arg in e.args)
    if isinstance(e, Pow):
        return is_positive(e.base, ranges)
    if isinstance(e, Piecewise):
        return all(is_positive(value, ranges) for value, _ in e.args)
    return False


def _extreme(e: Expr, ranges: Ranges) -> Expr:
    """A larger or smaller of several without the arguments that never are."""
    turned = 1 if isinstance(e, PointwiseMax) else -1
    kept = list(e.args)
    for arg in e.args:
        others = [other for other in kept if other != arg]
        if any(-1 not in signs(turned * (other - arg), ranges) for other in others):
            kept = others
    return e.func(*kept)


def _choice(e: Piecewise, ranges: Ranges) -> Expr:
    branches: list[tuple[Expr, Expr]] = []
    if len(e.args) == 2 and _is_at_equality(Not(e.args[0].cond), ranges):
        (elsewhere, apart), (there, _) = e.args
        e = Piecewise((there, Not(apart)), (elsewhere, True))
    alternatives = (
        (value, one)
        for value, condition in reversed(e.args)
        for one in (condition.args if isinstance(condition, Or) else (condition,))
    )
    for value, condition in alternatives:
        value = decided(value, ranges)
        condition = condition.replace(
            lambda n: isinstance(n, Relational), lambda n: _relation(n, ranges)
        )
        if condition == S.false:
            continue
        if condition == S.true:
            branches = [(value, S.true)]
        elif not (branches and _is_continued(value, condition, branches, ranges)):
            branches.insert(0, (value, condition))
    return Piecewise(*branches)


def _relation(relation: Relational, ranges: Ranges):
    difference = relation.lhs - relation.rhs
    holds, sides = HOLDS[relation.rel_op], signs(difference, ranges)
    if sides <= {*holds}:
        return S.true
    if not sides & {*holds}:
        return S.false
    above, below = fraction(together(difference))
    is_quotient = below.free_symbols and signs(below, ranges) == {1}
    return relation.func(above, 0) if is_quotient else relation


def _is_at_equality(condition, ranges: Ranges) -> bool:
    """Whether a condition can hold only where its two sides are equal."""
    if not isinstance(condition, Relational):
        return False
    return signs(condition.lhs - condition.rhs, ranges) & {*HOLDS[condition.rel_op]} == {0}


def _is_continued(value: Expr, condition, branches, ranges: Ranges) -> bool:
    """Whether a branch holds only where two values are equal, and the next agrees there."""
    if not _is_at_equality(condition, ranges):
        return False
    for a, b in (condition.args, reversed(condition.args)):
        if isinstance(a, Tensor) and not b.has(a):
            there = Piecewise(*((v.xreplace({a: b}), c.xreplace({a: b})) for v, c in branches))
            return (there - value.xreplace({a: b})).is_zero is True
    (last, always), *others = branches
    ratio = cancelled((last - value) / (condition.lhs - condition.rhs))
    return not others and always == S.true and bool(ratio.is_number and ratio.is_finite)
