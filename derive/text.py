"""Formulas as plain text, in the order in which a person writes them.

``gain*inv_std*(dy - dbias/N - xhat*dgain/(N - 1))``: what is added comes before what is subtracted, small factors
before large ones. The text can be pasted back into a forward.
"""

from __future__ import annotations

from sympy import Add, Expr, Integer, Mul, Pow
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from derive.notation import Reduction, Tensor, axes_of, is_number_or_size, tensors_in


def formula(e: Expr) -> str:
    """``e`` as a person would type it."""
    return _Formula({"order": "none"}).doprint(e)


def term_order(term: Expr) -> tuple:
    """Added before subtracted, plain before involved."""
    negative = term.could_extract_minus_sign()
    scalar = all(t.role == "scalar" for t in tensors_in(term))
    return (negative, len(Mul.make_args(term)) > 3, scalar, -len(axes_of(term)), term.count_ops(), str(term))


def ordered_terms(e: Add) -> list[Expr]:
    return sorted(e.args, key=term_order)


def ordered_factors(factors) -> list[Expr]:
    """Numbers and sizes first, then by the number of axes, sums and brackets last of their kind."""

    def key(factor):
        constant = is_number_or_size(factor)
        bracket = isinstance(factor, Add)
        upstream = isinstance(factor, Tensor) and factor.role == "adjoint"
        reduction = isinstance(factor, Reduction)
        return (not constant, bracket, len(axes_of(factor)), reduction, not upstream, str(factor))

    return sorted(factors, key=key)


def numerator_and_denominator(e: Expr) -> tuple[list[Expr], list[Expr]]:
    """The factors above and below the line, without the sign."""
    above, below = [], []
    for factor in Mul.make_args(e):
        if factor.is_Rational and factor != 1:
            if factor.p != 1:
                above.append(Integer(factor.p))
            if factor.q != 1:
                below.append(Integer(factor.q))
        elif isinstance(factor, Pow) and factor.exp.is_Rational and factor.exp.is_negative:
            below.append(factor.base ** (-factor.exp))
        elif factor != 1:
            above.append(factor)
    return above, below


class _Formula(StrPrinter):
    def _print_Add(self, e, order=None):  # noqa: N802 - SymPy's naming
        text = ""
        for term in ordered_terms(e):
            negative = term.could_extract_minus_sign() and not isinstance(term, Add)
            shown = self.parenthesize(-term if negative else term, PRECEDENCE["Add"])
            text += (" - " if negative else " + ") + shown if text else ("-" if negative else "") + shown
        return text

    def _print_Mul(self, e):  # noqa: N802
        if e.as_coeff_Mul()[0].is_negative:
            positive = -e
            return f"-{self.parenthesize(positive, PRECEDENCE['Add'] + 1)}"
        above, below = numerator_and_denominator(e)
        top = "*".join(self.parenthesize(f, PRECEDENCE["Mul"]) for f in ordered_factors(above)) or "1"
        if not below:
            return top
        bottom = [self.parenthesize(f, PRECEDENCE["Pow"]) for f in ordered_factors(below)]
        return f"{top}/{bottom[0]}" if len(bottom) == 1 else f"{top}/({'*'.join(bottom)})"

    def _print_Sum(self, e):  # noqa: N802
        return f"Sum({self._print(e.operand)}, {self._print(e.args[1])})"
