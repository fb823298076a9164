"""Nodes that SymPy's indexed notation lacks: largest entries, and 0 or 1 by an index."""

from __future__ import annotations

from sympy import Expr, Function, Integer, expand, numer, together

from derive.proof.proving.indexed_sum import OverIndices


class LargestAlong(OverIndices, Expr):
    """The largest value of ``operand`` over the bound indices; differentiable where it is
    unique.
    """

    is_real = True
    is_commutative = True

    @property
    def bound_symbols(self):
        return list(self.args[1:])

    def _eval_derivative(self, variable):
        operand, *bound = self.args
        places = {index: IndexOfLargest(Integer(k), *self.args) for k, index in enumerate(bound)}
        return operand.diff(variable).xreplace(places)


class IndexOfLargest(OverIndices, Expr):
    """The k-th of the indices at which the operand is largest: its args are k, operand, indices.

    Where that is one place alone it stays there, so its derivative is 0.
    """

    is_integer = True
    is_commutative = True

    @property
    def bound_symbols(self):
        return list(self.args[2:])

    def _eval_derivative(self, variable):
        return Integer(0)


class Zero(Function):
    """1 where the argument, made of indices and sizes, is 0; else 0. It is never contracted, so
    that nothing is asked of where the indices end.
    """

    is_integer = True
    is_nonnegative = True

    @classmethod
    def eval(cls, e):
        plain = expand(numer(together(e)))
        if plain.is_number:
            return Integer(int(plain == 0))
        plain = plain.primitive()[1]
        plain = -plain if plain.could_extract_minus_sign() else plain
        return cls(plain) if plain != e else None

    def _eval_derivative(self, variable):
        return Integer(0)

    def _eval_power(self, exponent):
        return self if exponent.is_positive else None
