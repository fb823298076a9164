"""Numbers that floats can represent: those written in a formula, and those that it computes.

Everything is computed in float64 at most: a larger number than its range would become infinite, and
a smaller one 0, so neither would be what the user wrote.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator

from sympy import Add, Expr, Float, Integer, Mul, Pow, Rational

from derive.language.errors import NotationError

BITS, DIGITS = 53, 15  # of a number of float64: those it has, and those it always keeps

LARGEST, SMALLEST = Rational(sys.float_info.max), Rational(sys.float_info.min)
MOST_BITS = 4096  # of a numerator or a denominator: Python divides both exactly, and prints them
IN_LOGARITHMS = "write the mathematics in other units, or with the logarithm of what is so large"


def unheld_number(e: Expr) -> str | None:
    """The problem with a number in ``e`` outside the range of float64; None where all are inside.

    Adjacent numbers are checked alone and as the number that they combine to.
    """
    for number in _numbers(e):
        if problem := _problem(number):
            return problem
    return None


def check_numbers(e: Expr, what: str) -> None:
    """Raise `NotationError` where ``e``, called ``what``, has a number outside the range of
    float64.
    """
    problem = unheld_number(e)
    if problem:
        raise NotationError(f"{what} has {problem}", IN_LOGARITHMS)


def exact_number(value: float | Float) -> Rational:
    """The number that a user wrote: 0.1 is 1/10. Raises `NotationError` where it is infinite."""
    if isinstance(value, int):
        return Integer(value)
    if isinstance(value, Float) and (value._prec != BITS or not SMALLEST <= abs(value) <= LARGEST):
        return Rational(str(value))  # SymPy's own, of more digits or another size
    number = float(value)
    if not math.isfinite(number):
        raise NotationError(f"{number} is not a finite number", "write a number that float64 holds")
    short = f"{number:.15g}"  # what arithmetic with decimals meant, such as 0.1*3
    return Rational(short if abs(float(short) - number) <= math.ulp(number) else repr(number))


def _numbers(e) -> Iterator[Expr]:
    """The numbers in an expression or a condition, adjacent ones combined."""
    if not e.args or getattr(e, "is_number", False):
        if getattr(e, "is_number", False):
            yield e
        return
    numbers = [arg for arg in e.args if getattr(arg, "is_number", False)]
    if len(numbers) > 1 and isinstance(e, (Add, Mul)):
        yield e.func(*numbers, evaluate=False)
    for arg in e.args:
        yield from _numbers(arg)


def _problem(number: Expr) -> str | None:
    if number.is_Rational:
        large = max(int(number.p).bit_length(), int(number.q).bit_length()) > MOST_BITS
        size = abs(number)
        if size > LARGEST:
            return "a number that is larger than float64 holds (about 1.8e308)"
        if 0 < size < SMALLEST:
            return "a number that is smaller than float64 holds (about 2.2e-308)"
        return "a fraction of too many digits" if large else None
    if isinstance(number, (Add, Mul, Pow)) or number.is_Function or number.is_NumberSymbol:
        size = abs(number.evalf(DIGITS))
        if isinstance(size, Float):
            return _problem(Rational(size))
    return None
