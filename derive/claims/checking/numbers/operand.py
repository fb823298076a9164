"""Numbers of an arithmetic with Python's operators, for formulas written in them."""

from __future__ import annotations

from sympy import Integer

from derive.claims.checking.numbers.arithmetic import Arithmetic


class Operand:
    """A number of an arithmetic."""

    def __init__(self, arithmetic: Arithmetic, value):
        self.arithmetic, self.value = arithmetic, value

    def _meant(self, other):
        return other.value if isinstance(other, Operand) else self.arithmetic.number(Integer(other))

    def _made(self, value) -> Operand:
        return Operand(self.arithmetic, value)

    def __add__(self, other):
        return self._made(self.arithmetic.add([self.value, self._meant(other)]))

    __radd__ = __add__

    def __mul__(self, other):
        return self._made(self.arithmetic.multiply([self.value, self._meant(other)]))

    __rmul__ = __mul__

    def __sub__(self, other):
        return self + -1 * self._made(self._meant(other))

    def __rsub__(self, other):
        return self._made(self._meant(other)) - self

    def __pow__(self, count: int):
        return self._made(self.arithmetic.power(self.value, self._meant(count)))

    def __truediv__(self, other):
        return self * self._made(self._meant(other)) ** -1

    def __rtruediv__(self, other):
        return self._made(self._meant(other)) / self
