"""Formulas as plain text, in the order in which a person writes them.

``gain*inv_std*(dy - dbias/N - xhat*dgain/(N - 1))``: what is added comes before what is subtracted,
small factors before large ones. The text can be pasted back into a forward.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from sympy import Add, Expr, Integer, Mul, Pow, Rational
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.printer import Printer
from sympy.printing.str import StrPrinter

from derive.language.formulas.order import is_subtracted, ordered_terms
from derive.language.kept_labels import kept_label, label_asked_of
from derive.language.nodes import GoneAlong, LogCumSumExp, MatrixNode, Reduction
from derive.language.scans import written
from derive.language.symbols import Tensor, axes_of, is_number_or_size

RELATIONS = {"<=": "\u2264", ">=": "\u2265", "==": "=", "!=": "\u2260"}  # in the signs of a book
LONGEST_DECIMAL = 12  # characters; a longer one is clearer as a fraction
LARGEST_DIVISOR = 64  # 3*x/4 is clearer than 0.75*x, but 0.134145*x than 26829*x/200000


def formula(e: Expr) -> str:
    """Write ``e`` as a person would type it."""
    return Formula({"order": "none"}).doprint(e)


def decimal(n: Fraction) -> str | None:
    """A fraction as a decimal, where that is exact, and short or at least not longer."""
    text = repr(float(n))
    longest = max(LONGEST_DECIMAL, len(f"{n.numerator}/{n.denominator}"))
    return text if Fraction(text) == n and len(text) <= longest else None


def over_decimal(n: Fraction) -> tuple[int, Fraction] | None:
    """A fraction as a whole number over a decimal, as in ``1/1.4142135623730951``, where that is
    exact and shorter.
    """
    above, scale = n.numerator, 1
    while above % 10 == 0:
        above, scale = above // 10, scale * 10
    for whole, below in ((1, 1 / n), (above, Fraction(n.denominator, scale))):
        text = decimal(below) if scale > 1 and below.denominator > 1 else None
        if text and len(f"{whole}{text}") <= len(f"{n.numerator}{n.denominator}"):
            return whole, below
    return None


def signed_terms(e: Add) -> Iterator[tuple[str, Expr]]:
    """The terms in the order in which they are written, each with the sign before it."""
    for term in ordered_terms(e):
        yield ("-", -term) if is_subtracted(term) else ("+", term)


def ordered_factors(factors) -> list[Expr]:
    """Numbers and sizes first, then by the number of axes, sums and brackets last of their kind."""

    def key(factor):
        constant = is_number_or_size(factor)
        bracket = isinstance(factor, Add)
        upstream = isinstance(factor, Tensor) and factor.role == "adjoint"
        reduction = isinstance(factor, Reduction)
        return (not constant, bracket, reduction, len(axes_of(factor)), not upstream, str(factor))

    return sorted(factors, key=key)


def numerator_and_denominator(e: Expr) -> tuple[list[Expr], list[Expr]]:
    """The factors above and below the line, without the sign."""
    above, below = [], []
    for factor in Mul.make_args(e):
        if factor.is_Rational and factor.q > LARGEST_DIVISOR:
            parts = over_decimal(Fraction(int(factor.p), int(factor.q))) or (factor, 1)
            above += [Rational(parts[0])] * (parts[0] != 1)
            below += [Rational(parts[1])] * (parts[1] != 1)
        elif factor.is_Rational and factor != 1:
            if factor.p != 1:
                above.append(Integer(factor.p))
            if factor.q != 1:
                below.append(Integer(factor.q))
        elif isinstance(factor, Pow) and factor.exp.is_Rational and factor.exp.is_negative:
            below.append(factor.base ** (-factor.exp))
        elif factor != 1:
            above.append(factor)
    return above, below


class OfChoices(Printer):
    """Base of the printers: choices. A subclass has `_kept`, `_is_kept` and `_choice`."""

    def _print_Piecewise(self, e):
        label = kept_label(e)
        return self._choice(e) if label is None else self._kept(self._print(label))

    def _print_Unequality(self, e):
        label = label_asked_of(e)
        return self._print_Relational(e) if label is None else self._is_kept(self._print(label))

    def _print_Compared(self, e):
        return self._print(e.choice)

    _print_Branches = _print_Compared


class Formula(OfChoices, StrPrinter):
    """Prints formulas; ``times`` and ``minus`` are its signs."""

    times, minus = "*", "-"

    def _print_Add(self, e, order=None):
        text = ""
        for sign, term in signed_terms(e):
            sign = self.minus if sign == "-" else sign
            shown = self.parenthesize(term, PRECEDENCE["Add"])
            text += f" {sign} {shown}" if text else f"{sign.strip('+')}{shown}"
        return text

    def _print_Mul(self, e):
        if e.as_coeff_Mul()[0].is_negative:
            positive = -e
            return f"{self.minus}{self.parenthesize(positive, PRECEDENCE['Add'] + 1)}"
        above, below = numerator_and_denominator(e)
        top = self.times.join(map(self._factor, ordered_factors(above))) or "1"
        if not below:
            return top
        bottom = [
            self._print(f)
            if f.is_Rational
            else self.parenthesize(f, PRECEDENCE["Pow"], strict=True)
            for f in ordered_factors(below)
        ]
        return f"{top}/{bottom[0]}" if len(bottom) == 1 else f"{top}/({self.times.join(bottom)})"

    def _factor(self, factor):
        number = factor.is_Rational and factor.is_positive
        return self._print(factor) if number else self.parenthesize(factor, PRECEDENCE["Mul"])

    def _print_floor(self, e):
        above, below = e.args[0].together().as_numer_denom()
        above = self.parenthesize(above, PRECEDENCE["Mul"])
        return f"{above}//{self.parenthesize(below, PRECEDENCE['Pow'])}"

    def _print_At(self, e):
        operand, axis, index = map(self._print, e.args[:3])
        fill = "" if e.fill == 0 else f", fill={self._print(e.fill)}"
        return f"At({operand}, {axis}, {index}{fill})"

    def _print_Rational(self, e):
        n = Fraction(int(e.p), int(e.q))
        if (text := decimal(n)) is None and (parts := over_decimal(n)) is not None:
            text = f"{parts[0]}/{decimal(parts[1])}"
        return text or f"{e.p}/{e.q}"

    def _kept(self, label):
        return f"Kept({label})"

    def _is_kept(self, label):
        return f"Ne({self._kept(label)}, 0)"

    def _choice(self, e):
        return self._print_Function(e)

    def _print_Sum(self, e):
        return f"Sum({self._print(e.operand)}, {self._print(e.args[1])})"

    def _print_LogCumSumExp(self, e: LogCumSumExp) -> str:
        return self._print(e.in_full)

    def _print_MatrixNode(self, e: MatrixNode) -> str:
        of = ", ".join([*map(self._print, e.operands), *(axis.name for axis in e.axes)])
        return f"{type(e).__name__}({of})"

    def _print_GoneAlong(self, e: GoneAlong) -> str:
        return written(e, self._print)
