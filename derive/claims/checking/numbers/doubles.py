"""float64 arithmetic, for trying many guesses before one is examined closely."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from sympy import Expr, Float
from sympy.core.function import UndefinedFunction

from derive.claims.checking.numbers.arithmetic import FUNCTIONS, Arithmetic, Undefined, Unevaluable
from derive.language.functions import TABLE

QUICK: dict[type, Callable] = {
    row.function: getattr(math, row.name) for row in TABLE if hasattr(math, row.name)
}


class Doubles(Arithmetic):
    """float64 numbers; a named line evaluates to its value."""

    def number(self, e: Expr):
        try:
            return float(e)
        except (TypeError, OverflowError):
            raise Undefined(f"{e} is not a float64 number") from None

    def add(self, values: Sequence):
        return math.fsum(values)

    def multiply(self, values: Sequence):
        return math.prod(values)

    def power(self, base, exponent):
        if base == 0 and exponent < 0:
            raise Undefined("division by zero")
        try:
            found = base**exponent
        except OverflowError:
            raise Undefined("out of range") from None
        if isinstance(found, complex):
            raise Undefined("no real number")
        return found

    def apply(self, function: type, values: Sequence):
        if isinstance(function, UndefinedFunction):
            return values[0]
        chosen = self.chosen(function, values)
        if chosen is not None:
            return chosen
        known = QUICK.get(function) or FUNCTIONS.get(function)
        if known is None:
            raise Unevaluable(f"{function.__name__} has no numbers here")
        try:
            return float(known(*values))
        except (ValueError, ZeroDivisionError, OverflowError, TypeError):
            raise Undefined(f"{function.__name__} has no number here") from None

    def compare(self, a, b) -> int:
        return (a > b) - (a < b)

    def sympy(self, value) -> Expr:
        return Float(value)
