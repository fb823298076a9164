"""torch's arithmetic: 1/0 is infinite, 0/0 and log(-1) are NaN, and both propagate."""

from __future__ import annotations

import math
from collections.abc import Sequence

import sympy
from sympy import Expr

from derive.claims.checking.numbers.arithmetic import Arithmetic, Floating, Undefined, Unevaluable
from derive.claims.reading.literal import BesideCancelled

LARGEST_EXPONENT = 700  # exp(709.8) exceeds float64
DIGITS = 17  # enough to identify every float64

NOT_COMPARABLE = 2  # neither less, nor equal, nor greater


class Ieee(Arithmetic):
    """Python's floats, with the infinities and NaN of IEEE 754."""

    floating = Floating()

    def number(self, e: Expr) -> float:
        try:
            return float(e)
        except OverflowError:
            return math.copysign(math.inf, e)

    def add(self, values: Sequence[float]) -> float:
        return sum(values)

    def multiply(self, values: Sequence[float]) -> float:
        return math.prod(values)

    def power(self, base: float, exponent: float) -> float:
        if base == 0 and exponent < 0:
            is_odd = exponent % 2 == 1
            return math.copysign(math.inf, base) if is_odd else math.inf
        if base < 0 and math.isfinite(base) and exponent % 1:
            return math.nan
        try:
            return base**exponent
        except OverflowError:
            return math.inf if base > 0 or exponent % 2 == 0 else -math.inf

    def apply(self, function: type, values: Sequence[float]) -> float:
        if any(map(math.isnan, values)):
            return math.nan
        if function is BesideCancelled:
            return values[0] if math.isfinite(values[1]) else math.nan
        chosen = self.chosen(function, values)
        if chosen is not None:
            return chosen
        value = values[0]
        if function is sympy.log:
            return math.log(value) if value > 0 else -math.inf if value == 0 else math.nan
        if function is sympy.exp:
            return math.exp(value) if value < LARGEST_EXPONENT else math.inf
        if function in (sympy.tanh, sympy.erf) and math.isinf(value):
            return math.copysign(1.0, value)
        try:
            real = self.floating.apply(
                function, [self.floating.number(sympy.Float(v, DIGITS)) for v in values]
            )
        except (Undefined, Unevaluable):
            return math.nan
        return float(real)

    def compare(self, a: float, b: float) -> int:
        if math.isnan(a) or math.isnan(b):
            return NOT_COMPARABLE
        return (a > b) - (a < b)
