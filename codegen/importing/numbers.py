"""Numbers of a trace: what Python rounded is taken for what was meant.

Python computes ``3 * 0.044715`` as 0.13414500000000001 and ``math.sqrt(2 / math.pi)`` as
0.7978845608028654. Taken as they stand they would be other numbers than the mathematics has: a
derived gradient would hold fractions of sixteen digits, and a right backward would be refuted. So a
number of many digits is looked for among short ones, their roots, pi, logarithms and exponentials; a
number that somebody typed with few digits stays what it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import sympy
from sympy import Expr, Integer, Rational

MANY_DIGITS = 14  # nobody types so many, arithmetic leaves 16
NEAR = 4  # units in the last place: what a few roundings amount to
SHORT = "%.12g"  # a decimal of 12 digits, such as 3 * 0.044715
LARGEST_DENOMINATOR = 1000  # of a fraction that a person means
SHORT_EXPONENT = "%.6g"  # of exp(-2.5), typed
LARGEST_EXPONENT = 50  # of an exponential that a person means
# What a root is taken of, and what is multiplied.
UNDER_ROOTS = (sympy.S.One, sympy.pi, 1 / sympy.pi, sympy.log(2), 1 / sympy.log(2))
FACTORS = (
    *(sympy.pi, 1 / sympy.pi, sympy.log(2), 1 / sympy.log(2), sympy.log(2 * sympy.pi)),
    *(sympy.log(sympy.pi), sympy.log(10), 1 / sympy.log(10), sympy.E),
)


def exact(value: float) -> Expr:
    """The number that was meant: an integer, a fraction, or one with roots, pi, logarithms."""
    if isinstance(value, (bool, int)):
        return Integer(int(value))
    if math.isinf(value):
        return sympy.oo if value > 0 else -sympy.oo
    if value == int(value) and abs(value) < 1 / math.ulp(1):
        return Integer(int(value))
    if _digits(value) < MANY_DIGITS:
        return Rational(repr(value))
    found = next((e for e in _candidates(abs(value)) if _near(e, abs(value))), None)
    if found is None:
        return Rational(repr(value))
    return found if value > 0 else -found


def _digits(value: float) -> int:
    return len(repr(abs(value)).partition("e")[0].replace(".", "").strip("0"))


def _near(e: Expr, value: float) -> bool:
    return abs(float(e) - value) <= NEAR * math.ulp(value)


def _candidates(value: float) -> Iterator[Expr]:
    """Simple ones first."""
    yield Rational(SHORT % value)
    yield _fraction(value)
    for inside in UNDER_ROOTS:
        yield sympy.sqrt(_fraction(value**2 / float(inside)) * inside)
    for factor in FACTORS:
        yield _fraction(value / float(factor)) * factor
    if value < 1:
        for inverse, function in ((math.acos, sympy.cos), (math.asin, sympy.sin)):
            yield function(Rational(SHORT_EXPONENT % inverse(value)))
    if abs(math.log(value)) < LARGEST_EXPONENT:
        yield sympy.exp(Rational(SHORT_EXPONENT % math.log(value)))


def _fraction(value: float) -> Rational:
    found = Fraction(value).limit_denominator(LARGEST_DENOMINATOR)
    return Rational(found.numerator, found.denominator)
