"""Formulas for a terminal: one line, in the signs of a book."""

from __future__ import annotations

from sympy import Expr, Integer, Piecewise, Pow, Symbol
from sympy.core.relational import Relational
from sympy.printing.precedence import PRECEDENCE

from derive.language.formulas.entries import ArgMaxOfEntries, Chosen, entry_of
from derive.language.formulas.text import RELATIONS, Formula
from derive.language.formulas.words import Side, parts_of
from derive.language.nodes import ArrayNode, GoneAlong, MatrixNode, Reduction
from derive.language.scans import said
from derive.language.symbols import Tensor

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
SIGNS = {"Sum": "Σ", "Max": "max", "Peak": "max", "SubtractedPeak": "max", "ArgMax": "argmax"}


def unicode_formula(e: Expr) -> str:
    """``e`` on one line."""
    return _Unicode({"order": "none"}).doprint(e)


def words_of(words: Side) -> str:
    """Text, with formulas in the signs of a book."""
    return "".join(
        part if isinstance(part, str) else unicode_formula(part) for part in parts_of(words)
    )


class _Unicode(Formula):
    printmethod = "_unicode"  # no node prints itself here
    times, minus = "·", "\N{MINUS SIGN}"

    def _print_Reduction(self, e: Reduction) -> str:
        axes = ", ".join(axis.name for axis in e.axes)
        plain = isinstance(e.operand, (Tensor, Integer))
        operand = self._print(e.operand)
        return f"{SIGNS[type(e).__name__]}[{axes}]" + (f" {operand}" if plain else f"({operand})")

    _print_Sum = _print_Max = _print_ArgMax = _print_Reduction  # before the one of Formula

    def _print_MinusInfinity(self, e: Symbol) -> str:
        return f"{self.minus}∞"

    def _print_Position(self, e: ArrayNode) -> str:
        return f"index[{e.axis.name}]"

    def _print_OneHot(self, e: ArrayNode) -> str:
        return f"1[{self._print(e.operand)} = {e.axis.name}]"

    def _print_Identity(self, e: ArrayNode) -> str:
        return f"1[{' = '.join(axis.name for axis in e.pair)}]"

    def _print_GoneAlong(self, e: GoneAlong) -> str:
        name, operands, notes = said(e)
        along = "; ".join([e.axis.name, *notes])
        return f"{name}[{along}]({', '.join(map(self._print, operands))})"

    def _print_MatrixNode(self, e: MatrixNode) -> str:
        along = ", ".join(axis.name for axis in e.axes)
        return f"{e.said}[{along}]({', '.join(map(self._print, e.operands))})"

    _print_Inverse = _print_MatrixNode  # before the one of SymPy

    def _print_Flatten(self, e: ArrayNode) -> str:
        return f"flat[{'·'.join(a.name for a in e.axes)} → {e.flat.name}]({self._print(e.operand)})"

    def _print_Unflatten(self, e: ArrayNode) -> str:
        return (
            f"apart[{e.flat.name} → {'·'.join(a.name for a in e.into)}]({self._print(e.operand)})"
        )

    def _print_At(self, e: ArrayNode) -> str:
        operand = self._print(e.operand)
        operand = operand if isinstance(e.operand, (Tensor, type(e))) else f"({operand})"
        fill = "" if e.fill == 0 else f", else {self._print(e.fill)}"
        return f"{operand}[{e.axis.name} = {self._print(e.index)}{fill}]"

    def _print_floor(self, e: Expr) -> str:
        return f"⌊{self._print(e.args[0])}⌋"

    def _print_Tensor(self, e: Tensor) -> str:
        along = ", ".join(axis.name for axis in e.axes)
        return e.name if e.axes == e.home else f"{e.name}[{along}]"

    def _kept(self, label: str) -> str:
        return f"kept[{label}]"

    def _is_kept(self, label: str) -> str:
        return f"{self._kept(label)} {RELATIONS['!=']} 0"

    def _choice(self, e: Piecewise) -> str:
        cases = [f"{self._print(value)} if {self._print(c)}" for value, c in e.args[:-1]]
        return f"({', '.join(cases)}, else {self._print(e.args[-1].expr)})"

    def _print_Relational(self, e: Relational) -> str:
        sign = RELATIONS.get(e.rel_op, e.rel_op)
        return f"{self._print(e.lhs)} {sign} {self._print(e.rhs)}"

    def _print_Integer(self, e: Integer) -> str:
        return str(e).replace("-", self.minus)

    def _print_Symbol(self, e: Symbol) -> str:
        """``dy₁₂`` for entry 1, 2 of dy."""
        name, index = entry_of(e)
        comma = "," if max(map(len, index), default=1) > 1 else ""
        return name + comma.join(index).translate(SUBSCRIPTS)

    def _print_Chosen(self, e: Chosen) -> str:
        place, number = e.args
        return f"[{self._print(place)} = {number}]"

    def _print_ArgMaxOfEntries(self, e: ArgMaxOfEntries) -> str:
        return f"argmax({', '.join(map(self._print, e.args))})"

    def _print_Pow(self, e: Pow, rational=False) -> str:
        if e.exp.is_Rational and e.exp.is_negative:
            return f"1/{self.parenthesize(1 / e, PRECEDENCE['Pow'], strict=True)}"
        if e.exp.is_Integer:
            base = self.parenthesize(e.base, PRECEDENCE["Pow"], strict=True)
            return f"{base}{str(e.exp).translate(SUPERSCRIPTS)}"
        if e.exp == Integer(1) / 2:
            plain = isinstance(e.base, Tensor)
            return f"√{self._print(e.base)}" if plain else f"√({self._print(e.base)})"
        return super()._print_Pow(e, rational)
