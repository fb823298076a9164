"""Scalars as numbers drawn at random: a difference there refutes an equality without a proof.
Agreement is proved afterwards, exactly; no proof rests on a number.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, prod
from random import Random
from sys import float_info

from sympy import (
    Abs,
    Add,
    Basic,
    Eq,
    Expr,
    Float,
    Mul,
    Ne,
    Piecewise,
    Pow,
    S,
    Symbol,
    exp,
    log,
    sign,
    tanh,
)
from sympy.core.relational import Relational
from sympy.logic.boolalg import And, Not, Or

from derive.language.choices import Branches, Compared
from derive.language.symbols import MINUS_INFINITY
from derive.language.traversal import parts_of
from derive.proof.proving.small_batch import LargestOf
from derive.proof.zero.indicator import Indicator

IMAGINARY = 1e-9  # relative; less is rounding
MODERATE = (0.5, 1.5)  # sizes of numbers: none overflows, and none is lost beside another
ASKED = 0.6  # the share of the numbers that are what is asked
POSITIVE = (0.5, 0.9)  # that above 0, at every other point: what several conditions guard is met
PLACES = 3  # among which the 1 of a group of unknown size is: that of the small batches
MOST_POINTS = 30  # that are kept, each with all numbers that were computed there

ROUNDING = 4 * float_info.epsilon  # relative, of one operation
SAFE = 100  # times the bound of rounding: the functions are as good as their library

COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


@dataclass(frozen=True)
class Approximate:
    """A value, with a bound on its rounding error."""

    value: complex
    error: float


class RandomPoint:
    """A number for every scalar; ``definitions`` says which of them are computed from others."""

    def __init__(self, seed: int, definitions: Mapping[Symbol, Expr]):
        self.seed, self.definitions = seed, definitions
        self.known: dict[Expr, Approximate] = {}
        self.asked: dict[Symbol, list[float]] = {}

    def may_vanish(self, e: Expr) -> bool:
        """Whether ``e`` is zero here up to rounding, or has no value that can be told."""
        self._note_asked(e)
        found = self.number(e)
        return found is None or not abs(found.value) > SAFE * found.error

    def _note_asked(self, e: Expr) -> None:
        """Note the numbers that scalars in ``e`` are compared with: drawn at random, they would
        never be met. Where they differ from those noted before, all is drawn again.
        """
        asked = _asked_in(e)
        if asked != self.asked:
            self.asked, self.known = asked, {}

    def number(self, e: Expr) -> Approximate | None:
        """The value of ``e``, or None where it has none that can be told."""
        try:
            return self.value(e)
        except (ArithmeticError, AttributeError, ValueError, TypeError, RecursionError):
            return None

    def value(self, e: Expr) -> Approximate:
        """The value of ``e``. Raises an error of arithmetic where it has none."""
        if e not in self.known:
            self.known[e] = self._value(e)
        return self.known[e]

    def _value(self, e: Expr) -> Approximate:
        if isinstance(e, Indicator):
            return Approximate(float(e.place == self._place_of_one(e)), 0.0)
        if e == MINUS_INFINITY:
            return Approximate(-inf, 0.0)
        if e.is_Symbol:
            known = e in self.definitions
            return self.value(self.definitions[e]) if known else Approximate(self._drawn(e), 0.0)
        if e.is_number and not e.args:
            return Approximate(float(e), abs(float(e)) * ROUNDING)
        if isinstance(e, Piecewise):
            return self._first_that_holds(e.args)
        if isinstance(e, Branches):
            return self._first_that_holds(e.choice.args)
        operands = [self.value(arg) for arg in e.args]
        if isinstance(e, sign):
            operands = [_without_rounding(o) for o in operands]
        value = _computed(e, [o.value for o in operands])
        return Approximate(value, _error(e, value, operands))

    def _real(self, e: Expr) -> float:
        return _real(self.value(e).value)

    def _drawn(self, scalar: Symbol) -> float:
        """A number of moderate size, negative unless the scalar is known to be positive; at some
        points, one that it is asked to be.
        """
        generator = Random(f"{self.seed} {scalar.name}")
        if scalar in self.asked and generator.random() < ASKED:
            return generator.choice(self.asked[scalar])
        size = generator.uniform(*MODERATE)
        positive = generator.random() < POSITIVE[self.seed % len(POSITIVE)]
        return size if scalar.is_positive or positive else -size

    def _place_of_one(self, indicator: Indicator) -> int:
        """Place of the 1 in a group: of the first largest of its values, where it has some."""
        if not indicator.values:
            return Random(f"{self.seed} {indicator.group}").randrange(PLACES)
        values = [self._real(value) for value in indicator.values]
        return values.index(max(values))

    def _first_that_holds(self, pairs) -> Approximate:
        return next(self.value(value) for value, condition in pairs if self._holds(condition))

    def _holds(self, condition: Basic) -> bool:
        if condition in (S.true, S.false):
            return bool(condition)
        if isinstance(condition, Not):
            return not self._holds(condition.args[0])
        if isinstance(condition, (And, Or)):
            every = all if isinstance(condition, And) else any
            return every(map(self._holds, condition.args))
        if isinstance(condition, Relational):
            left, right = map(self.value, condition.args)
            gap = Approximate(left.value - right.value, left.error + right.error)
            if _without_rounding(gap).value == 0:
                left = right
            return COMPARED[condition.rel_op](_real(left.value), _real(right.value))
        raise ValueError(f"{condition} is no comparison")


class RandomPoints:
    """Points where some statements are computed, as ``defining`` says: an expression with a number
    at one keeps it.
    """

    def __init__(self, defining: Callable[[Collection[str]], Mapping[Symbol, Expr]]):
        self.defining = defining
        self.known: dict[tuple[int, frozenset[str]], RandomPoint] = {}

    def at(self, seed: int, names: Collection[str]) -> RandomPoint:
        """The point where the statements of these ``names`` are computed."""
        key = seed, frozenset(names)
        if key not in self.known:
            if len(self.known) == MOST_POINTS:
                self.known.clear()
            self.known[key] = RandomPoint(seed, self.defining(names))
        return self.known[key]


@lru_cache(maxsize=1)  # every point asks for the same
def _asked_in(e: Expr) -> dict[Symbol, list[float]]:
    asked: dict[Symbol, list[float]] = {}
    equalities = {node for node in parts_of(e) if isinstance(node, (Eq, Ne))}
    for node in sorted(equalities, key=lambda node: node.sort_key()):
        scalar, number = node.args if node.args[0].is_Symbol else node.args[::-1]
        if scalar.is_Symbol and number.is_number:
            asked.setdefault(scalar, []).append(float(number))
    return asked


def _computed(e: Expr, values: Sequence[complex]) -> complex:
    if isinstance(e, Add):
        return sum(values)
    if isinstance(e, Mul):
        return prod(values)
    if isinstance(e, Pow):
        return values[0] ** int(e.exp) if e.exp.is_Integer else complex(values[0]) ** values[1]
    if isinstance(e, exp):
        return cmath.exp(values[0])
    if isinstance(e, log):
        return cmath.log(values[0])
    if isinstance(e, tanh):
        return cmath.tanh(values[0])
    if isinstance(e, Compared):
        return values[0]
    if isinstance(e, LargestOf):
        return max(map(_real, values))
    if isinstance(e, Abs):
        return abs(_real(values[0]))
    if isinstance(e, sign):
        value = _real(values[0])
        return float((value > 0) - (value < 0))
    return complex(e.func(*(Float(_real(value)) for value in values)).evalf())


def _error(e: Expr, value: complex, operands: Sequence[Approximate]) -> float:
    """A bound of the rounding of ``value``, to first order."""
    own = ROUNDING * abs(value)
    if isinstance(e, Add):
        return sum(o.error + ROUNDING * abs(o.value) for o in operands)
    if isinstance(e, Mul):
        return own + abs(value) * sum(o.error / abs(o.value) for o in operands if o.value)
    if isinstance(e, Pow):
        base, power = operands
        if not base.value:
            return own
        by_base = abs(power.value) * base.error / abs(base.value)
        by_power = power.error * abs(cmath.log(base.value))
        return own + abs(value) * (by_base + by_power)
    if isinstance(e, exp):  # of -oo it is 0, however far off that may be
        return own + abs(value) * operands[0].error if value else own
    if isinstance(e, log):
        return own + operands[0].error / abs(operands[0].value)
    return own + sum(o.error for o in operands)  # at moderate numbers, slopes are about 1 at most


def _without_rounding(number: Approximate) -> Approximate:
    """0 for the rounding error left by equal numbers, whose sign means nothing."""
    rounded = abs(number.value) <= SAFE * number.error < inf
    return Approximate(0.0, 0.0) if rounded else number


def _real(value: complex) -> float:
    value = complex(value)
    if abs(value.imag) > IMAGINARY * abs(value):
        raise ValueError(f"{value} is not real")
    return value.real
