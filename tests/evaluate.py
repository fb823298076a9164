"""What an expression over named axes means, entry by entry, on numbers: the oracle of the symbolic
tests.

Rational inputs stay rational (`Fraction`), so that both sides of an identity can be compared
exactly. Nothing of the derivation is used: a sum is a loop.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import sympy

from derive.nodes import ArgMax, Max, OneHot, Reshaping, Sum
from derive.symbols import Axis, Tensor

FUNCTIONS = {
    "exp": math.exp,
    "log": math.log,
    "tanh": math.tanh,
    "Abs": abs,
    "sign": lambda v: (v > 0) - (v < 0),
    "sqrt": math.sqrt,
    "erf": math.erf,
    "sinh": math.sinh,
    "cosh": math.cosh,
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
        if isinstance(e, Sum):
            return sum(
                self.value(e.operand, {**at, **dict(zip(e.axes, i, strict=True))})
                for i in product(*(range(self.sizes[axis]) for axis in e.axes))
            )
        if isinstance(e, Reshaping):
            return self.value(e.operand, at | self.counted(e, at))
        if isinstance(e, (Max, ArgMax)):
            (axis,) = e.axes
            row = [self.value(e.operand, {**at, axis: k}) for k in range(self.sizes[axis])]
            return max(row) if isinstance(e, Max) else row.index(max(row))
        if isinstance(e, OneHot):
            return Fraction(int(self.value(e.operand, at) == at[e.axis]))
        if e.is_Rational:
            return Fraction(int(e.p), int(e.q))
        if e.is_number:
            return float(e)
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
            return base ** int(power) if whole else float(base) ** float(power)
        return FUNCTIONS[type(e).__name__](self.value(e.args[0], at))

    def counted(self, e, at):
        """The entry of the operand that has the same number, counted with the last axis fastest."""
        rows = [
            dict(zip(e.binds, i, strict=True))
            for i in product(*(range(self.sizes[a]) for a in e.binds))
        ]
        places = list(product(*(range(self.sizes[a]) for a in e.brings)))
        return rows[places.index(tuple(at[a] for a in e.brings))]

    def holds(self, c, at):
        left, right = self.value(c.lhs, at), self.value(c.rhs, at)
        return {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[
            c.rel_op
        ]

    def entries(self, e, axes):
        """All entries of ``e`` along ``axes``."""
        places = product(*(range(self.sizes[axis]) for axis in axes))
        return [self.value(e, dict(zip(axes, i, strict=True))) for i in places]


def close(a, b) -> bool:
    """Equal: exactly where both are rational, else to double precision."""
    if isinstance(a, (int, Fraction)) and isinstance(b, (int, Fraction)):
        return a == b
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
