"""Exact arithmetic: rationals, logarithms, and optionally other real numbers.

`Exact` supports rationals, their combinations with logarithms of primes, ``2/3 + log(2)``, and,
optionally, other real numbers as SymPy expressions. 1 and the logarithms of primes are linearly
independent over the rationals, so such combinations are equal only if their coefficients are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import sympy
from sympy import Expr, Float, Rational, factorint, integer_nthroot, preorder_traversal

from derive.claims.checking.numbers.arithmetic import (
    CONTEXT,
    DIGITS,
    FUNCTIONS,
    LARGEST_EXPONENT,
    Arithmetic,
    Floating,
    Undefined,
    Unevaluable,
)

LARGEST_BITS = 20000  # of the numerator and the denominator of a rational
LARGEST_FACTORED = 10**12  # of a rational whose logarithm is factored into primes
LONGEST = 120  # numbers and operations of an irrational number
LONGEST_MADE = 4 * LONGEST  # before SymPy simplifies it
LARGEST_KNOWN = 20  # an argument passed to SymPy; gamma(20) has 18 digits
LOST = 10  # digits in which two equal numbers may differ

# Rational functions of exponentials, with E = exp(n*x).
IN_EXPONENTIALS: dict[type, tuple[int, Callable[[Fraction], Fraction]]] = {
    sympy.exp: (1, lambda E: E),
    sympy.sinh: (1, lambda E: (E - 1 / E) / 2),
    sympy.cosh: (1, lambda E: (E + 1 / E) / 2),
    sympy.tanh: (2, lambda E: (E - 1) / (E + 1)),
    sympy.coth: (2, lambda E: (E + 1) / (E - 1)),
    sympy.sech: (1, lambda E: 2 * E / (E**2 + 1)),
    sympy.csch: (1, lambda E: 2 * E / (E**2 - 1)),
}


@dataclass(frozen=True)
class Logarithms:
    """``rational + sum of share*log(prime)``, with ascending primes and nonzero shares."""

    rational: Fraction
    shares: tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True)
class Irrational:
    """Any other real number as a SymPy expression, with fifty digits."""

    expression: Expr
    value: object
    length: int


class Exact(Arithmetic):
    """Exact numbers: `Fraction`, `Logarithms` and, where ``irrational``, `Irrational`."""

    def __init__(self, irrational: bool = False):
        self.irrational, self.floating = irrational, Floating()

    def number(self, e: Expr):
        if e.is_Rational:
            return Fraction(int(e.p), int(e.q))
        if isinstance(e, Float):
            return self.number(Rational(str(e)))
        if e.is_NumberSymbol:
            return self._irrational(lambda: e, lambda: self.floating.number(e), [])
        raise Undefined(f"{e} is not a real number")

    def add(self, values: Sequence):
        if all(type(v) is Fraction for v in values):
            return _short(sum(values))
        if any(isinstance(v, Irrational) for v in values):
            return self._by_sympy(sympy.Add, lambda *v: self.floating.add(v), values)
        rational, shares = Fraction(0), {}
        for value in values:
            rational += value if type(value) is Fraction else value.rational
            for prime, share in getattr(value, "shares", ()):
                shares[prime] = shares.get(prime, 0) + share
        return _combination(rational, shares)

    def multiply(self, values: Sequence):
        product = Fraction(1)
        for value in values:
            if type(value) is Fraction:
                product = _short(product * value)
        others = [v for v in values if type(v) is not Fraction]
        if not others or product == 0:
            return product
        if len(others) == 1 and isinstance(others[0], Logarithms):
            shares = {prime: product * share for prime, share in others[0].shares}
            return _combination(product * others[0].rational, shares)
        values = [product, *others]
        return self._by_sympy(sympy.Mul, lambda *v: self.floating.multiply(v), values)

    def power(self, base, exponent):
        if exponent in (0, 1) or base == 1:
            return base if exponent == 1 else Fraction(1)
        if base == 0:
            return self._power_of_zero(exponent)
        if type(base) is Fraction and type(exponent) is Fraction:
            if base < 0 and exponent.denominator != 1:
                raise Undefined("a root of a negative number")
            root = _root(base, exponent.denominator)
            if root is not None:
                return _rational_power(root, exponent.numerator)
        return self._by_sympy(sympy.Pow, self.floating.power, [base, exponent])

    def _power_of_zero(self, exponent):
        if self.compare(exponent, Fraction(0)) < 0:
            raise Undefined("division by zero")
        return Fraction(0)

    def apply(self, function: type, values: Sequence):
        chosen = self.chosen(function, values)
        if chosen is not None:
            return chosen
        if function not in FUNCTIONS:
            raise Unevaluable(f"{function.__name__} has no numbers here")
        found = self._rational_value(function, values)
        if found is not None:
            return found
        return self._by_sympy(function, lambda *v: self.floating.apply(function, v), values)

    def _rational_value(self, function: type, values: Sequence):
        """The value where it is rational, or a combination of logarithms; else None."""
        value = values[0]
        if function is sympy.log and type(value) is Fraction:
            if value <= 0:
                raise Undefined("log of a number that is not positive")
            return _logarithm(value)
        if function in IN_EXPONENTIALS and not isinstance(value, Irrational):
            times, in_exponential = IN_EXPONENTIALS[function]
            exponential = _exponential(self.multiply([Fraction(times), value]))
            if exponential is None:
                return None
            if exponential == 1 and function in (sympy.coth, sympy.csch):
                raise Undefined(f"{function.__name__} has a pole here")
            return _short(in_exponential(exponential))
        if function in (sympy.floor, sympy.ceiling) and type(value) is Fraction:
            return Fraction(value // 1 if function is sympy.floor else -(-value // 1))
        # values such as sin(0), erf(0), asin(0), gamma(3), which SymPy knows to be rational
        if all(type(v) is Fraction and abs(v) <= LARGEST_KNOWN for v in values):
            known = function(*map(self.sympy, values))
            return self.number(known) if known.is_Rational else None
        return None

    def _by_sympy(self, build, numeric, values):
        """An irrational number, if these are enabled."""
        return self._irrational(
            lambda: build(*map(self.sympy, values)),
            lambda: numeric(*map(self.value, values)),
            values,
        )

    def _irrational(self, build, numeric, values):
        length = sum(v.length if isinstance(v, Irrational) else 1 for v in values)
        if not self.irrational or length > LONGEST_MADE:
            raise Unevaluable("an irrational number")
        value = numeric()  # first: refuses a tower of exponentials
        expression = build()
        if expression.is_Rational:
            return self.number(expression)
        length = sum(1 for _ in preorder_traversal(expression))
        if length > LONGEST:
            raise Unevaluable("an irrational number that is too long")
        return Irrational(expression, value, length)

    def compare(self, a, b) -> int:
        if type(a) is Fraction and type(b) is Fraction:
            return (a > b) - (a < b)
        if a == b:
            return 0
        difference = self.value(a) - self.value(b)
        if abs(difference) < CONTEXT.mpf(10) ** (LOST - DIGITS):
            if isinstance(a, Irrational) or isinstance(b, Irrational):
                return 0  # equal, in two forms
            raise Unevaluable("two logarithms that are too near to be told apart")
        return 1 if difference > 0 else -1

    def value(self, number):
        """The number to fifty digits."""
        if type(number) is Fraction:
            return CONTEXT.mpf(number.numerator) / number.denominator
        if isinstance(number, Irrational):
            return number.value
        logarithms = (self.value(share) * CONTEXT.ln(prime) for prime, share in number.shares)
        return self.value(number.rational) + CONTEXT.fsum(logarithms)

    def sympy(self, number) -> Expr:
        if type(number) is Fraction:
            return Rational(number.numerator, number.denominator)
        if isinstance(number, Irrational):
            return number.expression
        terms = (self.sympy(share) * sympy.log(prime) for prime, share in number.shares)
        return sympy.Add(self.sympy(number.rational), *terms)


def _short(value) -> Fraction:
    value = Fraction(value)
    if value.numerator.bit_length() + value.denominator.bit_length() > LARGEST_BITS:
        raise Unevaluable("a rational of too many digits")
    return value


def _combination(rational: Fraction, shares: dict[int, Fraction]):
    kept = tuple(sorted((prime, share) for prime, share in shares.items() if share))
    return Logarithms(rational, kept) if kept else rational


def _rational_power(base: Fraction, exponent: int) -> Fraction:
    bits = base.numerator.bit_length() + base.denominator.bit_length()
    if bits * abs(exponent) > LARGEST_BITS:
        raise Unevaluable("a power is too large")
    return base**exponent


def _root(base: Fraction, degree: int) -> Fraction | None:
    """The rational root of ``base``, or None if it is irrational."""
    if degree == 1:
        return base
    if degree > LARGEST_EXPONENT:
        raise Unevaluable("a root of too high a degree")
    above, is_above = integer_nthroot(base.numerator, degree)
    below, is_below = integer_nthroot(base.denominator, degree)
    return Fraction(int(above), int(below)) if is_above and is_below else None


@functools.lru_cache(maxsize=4096)
def _logarithm(value: Fraction):
    """log(a/b): the sum of the logarithms of the primes of a, less those of b."""
    if max(value.numerator, value.denominator) > LARGEST_FACTORED:
        raise Unevaluable("a logarithm of too many digits")
    shares = {int(p): Fraction(k) for p, k in factorint(value.numerator).items() if p != 1}
    for prime, count in factorint(value.denominator).items():
        shares[int(prime)] = shares.get(int(prime), Fraction(0)) - count
    return _combination(Fraction(0), shares)


def _exponential(value) -> Fraction | None:
    """exp(sum of k*log(p)) = product of p**k, for whole k; else None."""
    if type(value) is Fraction:
        return Fraction(1) if value == 0 else None
    if value.rational or any(share.denominator != 1 for _, share in value.shares):
        return None
    powers = (_rational_power(Fraction(prime), int(share)) for prime, share in value.shares)
    return _short(functools.reduce(lambda a, b: a * b, powers))
