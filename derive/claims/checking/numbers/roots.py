"""Roots along a line, and numbers between and beyond them.

In: a function of one number, or known positions. Out: exact numbers, short ones if possible.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from sympy import Expr, Integer, Rational, ceiling, exp, floor, log, sqrt

from derive.claims.checking.numbers.arithmetic import CONTEXT, DIGITS
from derive.claims.checking.numbers.exact_numbers import Exact

MOST_STEPS, NARROW = 24, Rational(1, 10**14)  # until the bracket of a sign change is small
ALIKE = 1000  # largest ratio of two values between which a curve is treated as linear
SEARCHED_DIGITS = 20  # of a position on the line: two more than float64
SHORT = 1000  # the largest denominator of a number written as a fraction
LARGEST_EXPONENT = 100  # of exponentials that are considered
FAR = 10**6  # above it, "beyond" means twice as far instead of one more
MOST_DOUBLINGS = 1000  # approximate, for a rational exponential


def narrowed(at: Callable, low: Expr, high: Expr) -> tuple[Expr, Expr]:
    """Shrink a bracket in which ``at`` changes sign: by the secant method if the end values are of
    similar size, halving the one that stays (Illinois), else by bisection.
    """
    at_low, at_high = at(low), at(high)
    for _ in range(MOST_STEPS):
        if (
            None in (at_low, at_high)
            or at_low * at_high >= 0
            or abs(high - low) <= NARROW * max(abs(low), abs(high))
        ):
            break
        if abs(at_low) < ALIKE * abs(at_high) and abs(at_high) < ALIKE * abs(at_low):
            share = _short(at_low / (at_low - at_high))
            middle = low + share * (high - low)
        else:
            middle = _middle(low, high)
        value = at(middle)
        if value is None or value == 0:
            return middle, middle
        if (value > 0) == (at_low > 0):
            low, at_low, at_high = middle, value, at_high / 2
        else:
            high, at_high, at_low = middle, value, at_low / 2
    return low, high


def _short(value) -> Expr:
    """A number with as many digits as the search needs."""
    return Rational(str(CONTEXT.nstr(value, SEARCHED_DIGITS)))


def is_zero(value) -> bool:
    return value is not None and Exact(irrational=True).compare(value, Fraction(0)) == 0


def known(low: Expr, high: Expr) -> list[Expr]:
    """Numbers that a person would write, near a small bracket."""
    near = Rational((low + high) / 2)
    found = [_fraction(near)]
    if near > 0:
        found.append(sqrt(_fraction(near**2)))
    if abs(near) < LARGEST_EXPONENT:
        for n in (1, 2):  # for which exponentials and hyperbolic tangents are rational
            found.append(log(_fraction(Rational(str(exp(n * near.evalf(DIGITS)))))) / n)
    return found


def _fraction(e: Expr) -> Expr:
    """A short fraction near a number, or for a small number the reciprocal of one."""
    if 0 < abs(e) < 1:
        return 1 / _fraction(1 / e)
    return Rational(Fraction(int(e.p), int(e.q)).limit_denominator(SHORT))


def _middle(low: Expr, high: Expr) -> Expr:
    """The midpoint; for numbers of different magnitude the geometric mean, to save halvings."""
    for turned in (1, -1):
        a, b = sorted((turned * low, turned * high))
        if a > 0 and b > 4 * a:
            return turned * Rational(str(sqrt(a * b).evalf(SEARCHED_DIGITS)))
    return (low + high) / 2


def between(a: Expr, b: Expr) -> Expr:
    """A number between two others, a short one if possible."""
    middle = _fraction((a + b) / 2) if a.is_Rational and b.is_Rational else (a + b) / 2
    return middle if a < middle < b else (a + b) / 2


def beyond(root: Expr, side: int) -> list[Expr]:
    """Integers beyond ``root`` and, if it is large, far beyond; also one with the sign
    of ``root``.
    """
    if abs(root) > FAR:
        whole = 2 * root if root * side > 0 else Integer(0)
    else:
        whole = floor(root) + 1 if side > 0 else ceiling(root) - 1
    return [whole] if root * whole > 0 or root == 0 else [whole, root / 2]


def logarithm_beyond(root: Expr, side: int) -> list[Expr]:
    """A logarithm beyond ``root``, whose exponentials are rational."""
    if abs(root) > MOST_DOUBLINGS:
        return []
    return [(floor(root / log(2)) + 1 if side > 0 else ceiling(root / log(2)) - 1) * log(2)]
