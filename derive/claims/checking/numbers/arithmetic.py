"""The arithmetic in which a forward is evaluated: fifty digits here, exact in ``exact_numbers.py``,
and modulo primes in ``residues.py``.

An arithmetic converts SymPy's numbers to its own and adds, multiplies, raises, compares and applies
functions. It raises `Undefined` where there is no real value (1/0, log(-1)), and `Unevaluable`
where there is one out of its reach: too large, or of an unknown function. Every operation is
bounded, so that a tower of exponentials is refused and not computed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import mpmath
import sympy
from sympy import Expr, Float, Integer

from derive.claims.reading.literal import BesideCancelled, Logarithm, WrittenPower, WrittenQuotient
from derive.language.detached import Detach
from derive.language.functions import TABLE

DIGITS = 50  # numbers that agree to all of them are equal in practice
LARGEST_EXPONENT = 10**4  # of e; beyond it a number has more than 4343 digits
FAR_EXPONENT = 10**12  # the same if no number is printed or passed to SymPy
MAGNITUDES = 4  # powers of 2 per power of e, at most two
GUARD = 10  # additional digits, lost in long sums


class Undefined(ArithmeticError):
    """Raised where an expression has no real value."""


class Unevaluable(Exception):
    """Raised where a value may exist, but this arithmetic does not reach it."""


CONTEXT = mpmath.MPContext()  # a private context: precision elsewhere is unchanged
CONTEXT.dps = DIGITS + GUARD

FUNCTIONS: dict[type, Callable] = {
    row.function: number for row in TABLE if (number := row.in_mpmath(CONTEXT))
}
# Functions that accept arguments of any size.
ANYWHERE = {row.function for row in TABLE if row.anywhere}


class Arithmetic:
    """Base of the arithmetics: functions that are decided by comparisons, in terms of `compare`."""

    def compare(self, a, b) -> int:
        raise NotImplementedError

    def chosen(self, function: type, values: Sequence):
        """The value of a function decided by comparisons, or of an unevaluated operation; None for
        any other.
        """
        if function is WrittenQuotient:
            return self.multiply([values[0], self.power(values[1], self.number(Integer(-1)))])
        if function is WrittenPower:
            return self.power(*values)
        if function is Logarithm:
            return self.apply(sympy.log, values)
        if function in (BesideCancelled, Detach):
            return values[0]
        if function in (sympy.Max, sympy.Min):
            wanted = 1 if function is sympy.Max else -1
            best = values[0]
            for value in values[1:]:
                best = value if self.compare(value, best) == wanted else best
            return best
        if not issubclass(function, (sympy.Abs, sympy.sign, sympy.Heaviside)):
            return None
        side = self.compare(values[0], self.number(Integer(0)))
        if issubclass(function, sympy.Abs):
            return self.multiply([self.number(Integer(-1)), values[0]]) if side < 0 else values[0]
        if issubclass(function, sympy.sign):
            return self.number(Integer(side))
        return self.number(Integer(side > 0)) if side else values[1]


class Floating(Arithmetic):
    """Real numbers of mpmath, to fifty digits and some to spare, up to exp(largest)."""

    def __init__(self, largest: int = LARGEST_EXPONENT):
        self.largest = largest

    def number(self, e: Expr):
        if e.is_Rational:
            return CONTEXT.mpf(int(e.p)) / int(e.q)
        if not (isinstance(e, Float) or e.is_NumberSymbol):
            raise Undefined(f"{e} is not a real number")
        return CONTEXT.mpf(e._to_mpmath(CONTEXT.prec))

    def add(self, values: Sequence):
        return CONTEXT.fsum(values)

    def multiply(self, values: Sequence):
        return self._bounded(functools.reduce(lambda a, b: a * b, values))

    def power(self, base, exponent):
        if base == 0:
            if exponent < 0:
                raise Undefined("division by zero")
            return CONTEXT.mpf(exponent == 0)
        if abs(exponent) * (abs(CONTEXT.mag(base)) + 1) > 2 * self.largest:
            raise Unevaluable("a power is too large")
        return self._real(base**exponent)

    def apply(self, function: type, values: Sequence):
        chosen = self.chosen(function, values)
        if chosen is not None:
            return chosen
        known = next((kind for kind in function.__mro__ if kind in FUNCTIONS), None)
        if known is None:
            raise Unevaluable(f"{function.__name__} has no numbers here")
        if function not in ANYWHERE and any(abs(v) > self.largest for v in values):
            raise Unevaluable(f"{function.__name__} of a number that is too large")
        try:
            return self._real(FUNCTIONS[known](*values))
        except (ValueError, ZeroDivisionError):
            raise Undefined(f"{function.__name__} has a pole here") from None

    def compare(self, a, b) -> int:
        return (a > b) - (a < b)

    def sympy(self, value) -> Expr:
        return Float(value, DIGITS)

    def _real(self, value):
        if isinstance(value, CONTEXT.mpc) or not CONTEXT.isfinite(value):
            raise Undefined("no real number")
        return self._bounded(value)

    def _bounded(self, value):
        if value and abs(CONTEXT.mag(value)) > MAGNITUDES * self.largest:
            raise Unevaluable("a number is too large, or too near to zero")
        return value
