"""What an expression over named axes means, entry by entry, on numbers: the oracle of the symbolic
tests.

Rational inputs stay rational (`Fraction`), so that both sides of an identity can be compared
exactly; what is irrational has 40 digits, so that a difference of equals keeps those that are
compared. Nothing of the derivation is used: a sum is a loop.
"""

from __future__ import annotations

import math
import operator
import random
from fractions import Fraction
from itertools import product

import sympy
from mpmath import MPContext

from derive.language.choices import Branches, Compared
from derive.language.matrices import Inverse, LogDet, MatrixNode, Solve
from derive.language.nodes import (
    ArgMax,
    LargestSoFar,
    LogCumSumExp,
    Max,
    NewMax,
    OneHot,
    Position,
    Recurrence,
    Reshaping,
    Sum,
)
from derive.language.reading_at import At
from derive.language.symbols import Axis, MinusInfinity, Tensor

DIGITS = MPContext()
DIGITS.dps = 200  # for entries that nearly cancel, where exponentials of products stand by
FUNCTIONS = {
    "Abs": abs,
    "sign": lambda v: (v > 0) - (v < 0),
    **{
        name: lambda v, name=name: getattr(DIGITS, name)(irrational(v))
        for name in ("exp", "log", "tanh", "sinh", "cosh", "erf")
    },
}
COMPARISONS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


class Numbers:
    """Numbers for every tensor that occurs: given ones, definitions, or random rationals."""

    def __init__(self, sizes, seed=0, definitions=(), indexed=None):
        self.sizes = sizes
        self.random = random.Random(seed)
        self.definitions = {value.tensor.name: value.expression for value in definitions}
        self.indexed = indexed or {}
        self.known = {}

    def entry(self, tensor: Tensor, index):
        key = (tensor.name, index)
        if key not in self.known:
            if tensor.name in self.definitions:
                at = dict(zip(tensor.home, index, strict=True))
                self.known[key] = self.value(self.definitions[tensor.name], at)
            elif tensor.role == "label":
                self.known[key] = self.random.randrange(self.sizes[self.indexed[tensor.name]])
            else:
                number = Fraction(self.random.randint(1, 19), self.random.randint(1, 7))
                positive = tensor.is_positive or tensor.role == "scalar"
                self.known[key] = number if positive else number * self.random.choice((-1, 1))
        return self.known[key]

    def value(self, e, at):
        if isinstance(e, Tensor):
            return self.entry(e, tuple(at[axis] for axis in e.axes))
        if isinstance(e, Axis):
            return Fraction(self.sizes[e])
        if isinstance(e, MinusInfinity):  # what holds for every number holds in the limit
            return Fraction(-1000)
        if isinstance(e, Sum):
            return sum(
                self.value(e.operand, {**at, **dict(zip(e.axes, i, strict=True))})
                for i in product(*(range(self.sizes[axis]) for axis in e.axes))
            )
        if isinstance(e, Reshaping):
            return self.value(e.operand, at | self.counted(e, at))
        if isinstance(e, At):
            place, inside = self.value(e.index, at), range(self.sizes[e.axis])
            here = place.denominator == 1 and int(place) in inside
            return (
                self.value(e.operand, {**at, e.axis: int(place)})
                if here
                else self.value(e.fill, at)
            )
        if isinstance(e, (Max, ArgMax)):
            (axis,) = e.axes
            row = [self.value(e.operand, {**at, axis: k}) for k in range(self.sizes[axis])]
            return max(row) if isinstance(e, Max) else row.index(max(row))
        if isinstance(e, OneHot):
            return Fraction(int(self.value(e.operand, at) == at[e.axis]))
        if isinstance(e, Position):
            return Fraction(at[e.axis])
        if isinstance(e, Recurrence):
            return self.state(e, at)
        if isinstance(e, MatrixNode):
            return self.of_matrix(e, at)
        if isinstance(e, LogCumSumExp):
            return self.value(e.in_full, at)
        if isinstance(e, (LargestSoFar, NewMax)):
            row = [self.value(e.operand, {**at, e.axis: k}) for k in range(at[e.axis] + 1)]
            return max(row) if isinstance(e, LargestSoFar) else Fraction(row[-1] == max(row))
        if e.is_Rational:
            return Fraction(int(e.p), int(e.q))
        if e.is_number:
            return DIGITS.mpf(e.evalf(DIGITS.dps))
        if isinstance(e, (Branches, Compared)):
            return self.value(e.choice, at)
        if isinstance(e, sympy.Piecewise):
            return next(
                self.value(v, at) for v, c in e.args if c is sympy.true or self.holds(c, at)
            )
        if isinstance(e, sympy.Add):
            return sum(self.value(arg, at) for arg in e.args)
        if isinstance(e, sympy.Mul):
            return math.prod(self.value(arg, at) for arg in e.args)
        if isinstance(e, sympy.Pow):
            base, power = self.value(e.base, at), self.value(e.exp, at)
            whole = isinstance(power, Fraction) and power.denominator == 1
            return base ** int(power) if whole else irrational(base) ** irrational(power)
        return FUNCTIONS[type(e).__name__](self.value(e.args[0], at))

    def state(self, e, at):
        """A loop over the places up to this one, as the docstring of ``scans.py`` has each."""
        here, count = at[e.axis], self.sizes[e.axis]
        term, factor = (
            [self.value(operand, {**at, e.axis: k}) for k in range(count)]
            for operand in (e.operand, e.factor)
        )
        if e.reverse:
            total = 0
            for place in reversed(range(here + e.exclusive, count)):
                product = math.prod(factor[here + 1 : place + (not e.exclusive)])
                total += product * term[place]
            return total
        state = self.value(e.initial, at)
        for place in range(here + (not e.exclusive)):
            state = factor[place] * state + term[place]
        return state

    def of_matrix(self, e, at):
        rows, columns = e.axes
        places = range(self.sizes[rows])
        matrix = DIGITS.matrix(
            [
                [irrational(self.value(e.matrix, {**at, rows: i, columns: j})) for j in places]
                for i in places
            ]
        )
        if isinstance(e, LogDet):
            return DIGITS.log(abs(DIGITS.det(matrix)))
        if isinstance(e, Solve):
            right = [irrational(self.value(e.right, {**at, rows: i})) for i in places]
            return DIGITS.lu_solve(matrix, DIGITS.matrix(right))[at[columns]]
        symmetric = (matrix + matrix.T) / 2
        found = DIGITS.inverse(matrix) if isinstance(e, Inverse) else DIGITS.cholesky(symmetric)
        return found[at[rows], at[columns]]

    def counted(self, e, at):
        """The entry of the operand that has the same number, counted with the last axis fastest."""
        rows = [
            dict(zip(e.binds, i, strict=True))
            for i in product(*(range(self.sizes[a]) for a in e.binds))
        ]
        places = list(product(*(range(self.sizes[a]) for a in e.brings)))
        return rows[places.index(tuple(at[a] for a in e.brings))]

    def holds(self, c, at):
        if isinstance(c, (sympy.And, sympy.Or)):
            return (all if isinstance(c, sympy.And) else any)(self.holds(arg, at) for arg in c.args)
        if isinstance(c, sympy.Not):
            return not self.holds(c.args[0], at)
        left, right = self.value(c.lhs, at), self.value(c.rhs, at)
        return COMPARISONS[c.rel_op](irrational(left), irrational(right))

    def entries(self, e, axes):
        """All entries of ``e`` along ``axes``."""
        places = product(*(range(self.sizes[axis]) for axis in axes))
        return [self.value(e, dict(zip(axes, i, strict=True))) for i in places]


def irrational(number):
    """A rational number to the digits in which irrational ones are known."""
    if isinstance(number, (int, Fraction)):
        return DIGITS.mpf(number.numerator) / number.denominator
    return number


def close(a, b) -> bool:
    """Equal: exactly where both are rational, else to double precision. A logarithm of what is
    negative is complex, and may be compared.
    """
    if isinstance(a, (int, Fraction)) and isinstance(b, (int, Fraction)):
        return a == b
    a, b = irrational(a), irrational(b)
    return abs(a - b) <= 1e-9 * max(1, abs(a), abs(b))
