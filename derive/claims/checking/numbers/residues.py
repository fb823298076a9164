"""Exact arithmetic modulo large primes, alongside fifty digits: two different formulas differ here,
except with probability about 2**-60 over the random data.

Rational operations are those of the field (``fields.py``). A root is one, and so is an exponential:
a power whose exponent is counted modulo another prime. A logarithm, and every other function, is a
random number for each argument, so it keeps no relation but those that are written down here:

    exp(a + b) = exp(a)*exp(b)    log(a*b) = log(a) + log(b)    exp(log(a)) = a    log(exp(a)) = a
    hyperbolic functions in exponentials, sin and cos on the circle, odd functions

All of these hold for real numbers. So equal residues at random data are equal formulas, and unequal
ones may be a relation that is missing: that is for the fifty digits to say, which each number has
with it. They also decide every comparison.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from math import prod

import sympy
from sympy import Expr, Integer, Rational, factorint

from derive.claims.checking.numbers import fields
from derive.claims.checking.numbers.arithmetic import (
    CONTEXT,
    Arithmetic,
    Floating,
    Undefined,
    Unevaluable,
)
from derive.claims.checking.numbers.exact_numbers import IN_EXPONENTIALS, LARGEST_FACTORED
from derive.claims.checking.numbers.fields import LEVELS, PRIMES, Element, NoRoot
from derive.claims.checking.numbers.operand import Operand
from derive.language.functions import TABLE

TOLD_APART = CONTEXT.mpf(10) ** -40  # relative; smaller differences are not visible in fifty digits
LARGEST_DEGREE = 10**4  # of a root, which is taken modulo every prime
SHORT_POWER = 20  # of a short number that is kept exact
ODD = {row.function for row in TABLE if row.odd}
ON_THE_CIRCLE = {  # by t, the tangent of half the angle
    sympy.sin: lambda t: 2 * t / (1 + t**2),
    sympy.cos: lambda t: (1 - t**2) / (1 + t**2),
    sympy.tan: lambda t: 2 * t / (1 - t**2),
    sympy.cot: lambda t: (1 - t**2) / (2 * t),
    sympy.sec: lambda t: (1 + t**2) / (1 - t**2),
    sympy.csc: lambda t: (1 + t**2) / (2 * t),
}
Parts = tuple[Element, ...]
Shares = dict[Element, Fraction]  # of numbers by their keys


class Residue:
    """A number: ``parts`` modulo each prime, ``real`` in fifty digits, and how it was ``made``."""

    __slots__ = ("form", "made", "parts", "real", "terms")

    def __init__(self, parts: Parts, real, made: tuple = ()):
        self.parts, self.real, self.made = parts, real, made
        self.form = self.terms = None

    def __eq__(self, other) -> bool:
        if isinstance(other, int):  # a label
            return self.rational == other
        return isinstance(other, Residue) and self.key == other.key

    __hash__ = None

    @property
    def key(self) -> Element:
        """A key shared by equal numbers: the first residue. Exponentials are unrelated modulo the
        last prime, and nested exponentials modulo the last two.
        """
        return self.parts[0]

    @property
    def rational(self) -> Fraction | None:
        """The exact value of a short number, from a formula or sizes; None for data."""
        return self.made[1] if self.made and self.made[0] == "number" else None


class Residues(Arithmetic):
    """The arithmetic. ``seed`` draws the random values of functions."""

    def __init__(self, seed: int = 0):
        self.floating = Floating()
        self.draw = random.Random(seed)
        self.drawn: dict[object, Parts] = {}
        self.atoms: dict[Element, Residue] = {}
        self.one = self._fraction(Fraction(1))

    # Rational operations

    def number(self, e: Expr) -> Residue:
        if e.is_Rational:
            return self._fraction(Fraction(int(e.p), int(e.q)))
        if e.is_Float:
            return self.number(Rational(str(e)))
        return Residue(self._random(str(e)), self.floating.number(e))

    def _fraction(self, value: Fraction) -> Residue:
        try:
            parts = tuple((value.numerator * pow(value.denominator, -1, p) % p, 0) for p in PRIMES)
        except ValueError:
            raise Unevaluable("a denominator that is a multiple of the prime") from None
        real = self.floating.number(Rational(value.numerator, value.denominator))
        short = max(abs(value.numerator), value.denominator) < LARGEST_FACTORED
        return Residue(parts, real, ("number", value) if short else ())

    def add(self, values: Sequence[Residue]) -> Residue:
        numbers = [v.rational for v in values]
        if None not in numbers:
            return self._fraction(sum(numbers, Fraction(0)))
        values = [v for v, number in zip(values, numbers, strict=True) if number != 0]
        if len(values) == 1:  # and its factors
            return values[0]
        parts = tuple(
            (
                sum(v.parts[k][0] for v in values) % PRIMES[k],
                sum(v.parts[k][1] for v in values) % PRIMES[k],
            )
            for k in LEVELS
        )
        return Residue(parts, self.floating.add([v.real for v in values]), ("sum", *values))

    def multiply(self, values: Sequence[Residue]) -> Residue:
        first, *others = values
        numbers = [v.rational for v in values]
        if None not in numbers:
            return self._fraction(prod(numbers, start=Fraction(1)))
        parts, real = first.parts, self.floating.multiply([v.real for v in values])
        for other in others:
            pairs = zip(parts, other.parts, PRIMES, strict=True)
            parts = tuple(fields.multiplied(a, b, p) for a, b, p in pairs)
        return Residue(parts, real, ("product", *values)) if others else first

    def power(self, base: Residue, exponent: Residue) -> Residue:
        share = exponent.rational
        if share is None:
            return self._general_power(base, exponent)
        real = self.floating.power(base.real, exponent.real)
        if share.denominator > LARGEST_DEGREE:
            raise Unevaluable("a root of too high a degree")
        if share.denominator == 1:
            try:
                pairs = zip(base.parts, PRIMES, strict=True)
                parts = tuple(fields.power(a, share.numerator, p) for a, p in pairs)
            except ZeroDivisionError:
                raise Undefined("division by zero") from None
            number = base.rational
            if number is not None and abs(share) < SHORT_POWER:
                return self._fraction(number**share.numerator)
            return Residue(parts, real, ("power", base, share))
        if base.real == 0:
            return self._fraction(Fraction(0))
        return self._product_of(self._scaled(self._form(base), share), real)

    def _general_power(self, base: Residue, exponent: Residue) -> Residue:
        self.floating.power(base.real, exponent.real)  # raises if there is no real value
        if base.real == 0:
            return self._fraction(Fraction(0))
        if base.real < 0:
            raise Undefined("a power of a negative number")
        logarithm = self.apply(sympy.log, [base])
        return self.apply(sympy.exp, [self.multiply([exponent, logarithm])])

    # Functions

    def apply(self, function: type, values: Sequence[Residue]) -> Residue:
        chosen = self.chosen(function, values)
        if chosen is not None:
            return chosen
        real = self.floating.apply(function, [v.real for v in values])
        value = values[0]
        if function is sympy.exp:
            rest, shares = self._terms(value)
            return self._product_of((rest, shares), real)
        if function is sympy.log:
            rest, shares = self._form(value)
            logarithms = [self._random(("log", key), share) for key, share in shares.items()]
            parts = self.add([rest, *(Residue(p, 0) for p in logarithms)]).parts
            return Residue(parts, real, ("log", rest, shares))
        if function in IN_EXPONENTIALS:
            times, in_exponential = IN_EXPONENTIALS[function]
            scaled = value if times == 1 else self.multiply([self.number(Integer(times)), value])
            exponential = Operand(self, self.apply(sympy.exp, [scaled]))
            return Residue(in_exponential(exponential).value.parts, real)
        if function in ON_THE_CIRCLE:
            half = Operand(self, self._odd("circle", value))
            return Residue(ON_THE_CIRCLE[function](half).value.parts, real)
        if function in ODD:
            return Residue(self._odd(function.__name__, value).parts, real)
        return Residue(self._random((function.__name__, *(v.key for v in values))), real)

    def _odd(self, name: str, value: Residue) -> Residue:
        """An odd function: f(-x) = -f(x)."""
        size = self._without_sign(value)
        drawn = Residue(self._random((name, size.key)), abs(value.real))
        return drawn if size is value else self._negative(drawn)

    def _random(self, what, share: Fraction = Fraction(1)) -> Parts:
        """A random number for every ``what``, times ``share``."""
        if what not in self.drawn:
            self.drawn[what] = tuple((self.draw.randrange(1, p), 0) for p in PRIMES)
        if share == 1:
            return self.drawn[what]
        pairs = zip(self.drawn[what], self._fraction(share).parts, PRIMES, strict=True)
        return tuple(fields.multiplied(a, b, p) for a, b, p in pairs)

    # Decomposition

    def _form(self, value: Residue) -> tuple[Residue, Shares]:
        """The absolute value as ``exp(rest)`` times powers of atomic numbers."""
        if value.form is None:
            value.form = self._found_form(value)
        return value.form

    def _found_form(self, value: Residue) -> tuple[Residue, Shares]:
        made, *of = value.made or ("",)
        if self._without_sign(value) == self.one:
            return self._fraction(Fraction(0)), {}
        if made == "product":
            rests, shares = zip(*map(self._form, of), strict=True)
            return self._total(rests), _combined(shares)
        if made == "power":
            return self._scaled(self._form(of[0]), of[1])
        if made == "exponential":
            return of[0], of[1]
        nothing = self._fraction(Fraction(0))
        if made == "number":
            shares: Shares = {}
            for number, sign in ((abs(of[0].numerator), 1), (of[0].denominator, -1)):
                for prime, count in factorint(number).items():
                    if prime != 1:
                        atom = self._atom(self._fraction(Fraction(int(prime))))
                        shares[atom] = shares.get(atom, Fraction(0)) + sign * count
            return nothing, shares
        return nothing, {self._atom(self._without_sign(value)): Fraction(1)}

    def _atom(self, value: Residue) -> Element:
        return self.atoms.setdefault(value.key, value).key

    def _terms(self, value: Residue) -> tuple[Residue, Shares]:
        """Decompose a value into a number plus shares of logarithms."""
        if value.terms is None:
            value.terms = self._found_terms(value)
        return value.terms

    def _found_terms(self, value: Residue) -> tuple[Residue, Shares]:
        made, *of = value.made or ("",)
        if made == "log":
            rest, shares = self._terms(of[0])
            return rest, _combined([shares, of[1]])
        if made == "sum":
            rests, shares = zip(*map(self._terms, of), strict=True)
            return self._total(rests), _combined(shares)
        if made == "product":
            numbers = [v for v in of if v.rational is not None]
            others = [v for v in of if v.rational is None]
            if len(others) == 1 and self._terms(others[0])[1]:
                rest, shares = self._terms(others[0])
                share = Fraction(1)
                for number in numbers:
                    share *= number.rational
                return self._scaled((rest, shares), share)
        return value, {}

    def _total(self, values: Sequence[Residue]) -> Residue:
        return values[0] if len(values) == 1 else self.add(values)

    def _scaled(self, form: tuple[Residue, Shares], share: Fraction) -> tuple[Residue, Shares]:
        rest, shares = form
        scaled = self.multiply([self._fraction(share), rest])
        return scaled, {key: count * share for key, count in shares.items()}

    def _product_of(self, form: tuple[Residue, Shares], real) -> Residue:
        """``exp(rest)`` times the powers."""
        rest, shares = form
        lowest = self.drawn_exponential(rest)
        parts = [*(fields.exponential(k, rest.parts[k + 1]) for k in LEVELS[:-1]), lowest]
        for key, count in shares.items():
            for k in LEVELS:
                try:
                    base = fields.root(self.atoms[key].parts[k], count.denominator, PRIMES[k])
                    factor = fields.power(base, count.numerator, PRIMES[k])
                except (NoRoot, ZeroDivisionError):
                    raise Unevaluable("a root that is not in the field") from None
                parts[k] = fields.multiplied(parts[k], factor, PRIMES[k])
        return Residue(tuple(parts), real, ("exponential", rest, shares))

    def drawn_exponential(self, rest: Residue) -> Element:
        """A random number per exponent: for the last prime there is no next one."""
        if not any(map(any, rest.parts)):
            return 1, 0
        return self._random(("exp", rest.key))[-1]

    # Signs

    def _without_sign(self, value: Residue) -> Residue:
        return self._negative(value) if value.real < 0 else value

    def _negative(self, value: Residue) -> Residue:
        parts = tuple((-a % p, -b % p) for (a, b), p in zip(value.parts, PRIMES, strict=True))
        return Residue(parts, -value.real)

    def compare(self, a: Residue, b: Residue) -> int:
        if a == b:
            return 0
        difference = a.real - b.real
        if abs(difference) <= TOLD_APART * max(abs(a.real), abs(b.real)):
            raise Unevaluable("two numbers that are too near to be told apart")
        return 1 if difference > 0 else -1

    def sympy(self, value: Residue) -> Expr:
        return self.floating.sympy(value.real)


def _combined(shares: Sequence[Shares]) -> Shares:
    total: Shares = {}
    for some in shares:
        for key, share in some.items():
            total[key] = total.get(key, Fraction(0)) + share
    return {key: share for key, share in total.items() if share}
