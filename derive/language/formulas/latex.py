r"""Formulas in LaTeX, in the notation of a paper; ``paper.py`` makes documents of them.

``\frac{1}{N}\,\sum_{N} \mathrm{d}y``: tensors by their names, sums over their index. A formula uses
only what LaTeX, KaTeX and MathJax all know. No text of a user reaches one unescaped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from sympy import Add, Expr, Function, Pow, Symbol
from sympy.printing.latex import LatexPrinter, accepted_latex_functions
from sympy.printing.precedence import PRECEDENCE

from derive.language.formulas.entries import ArgMaxOfEntries, Chosen, entry_of
from derive.language.formulas.latex_names import (
    gradient_name,
    latex_name,
    named,
    told_apart,
    with_index,
)
from derive.language.formulas.text import (
    LARGEST_DIVISOR,
    OfChoices,
    decimal,
    numerator_and_denominator,
    ordered_factors,
    signed_terms,
)
from derive.language.nodes import ArrayNode, GoneAlong, MatrixNode, Reduction
from derive.language.scans import said
from derive.language.symbols import Axis, Tensor

SIGNS = {
    "Sum": r"\sum",
    "Max": r"\max",
    "Peak": r"\max",
    "SubtractedPeak": r"\max",
    "ArgMax": r"\arg\max",
}

OPERATORS = frozenset({"exp", *accepted_latex_functions})
WORD = r"\\mathrm\{\w[\w\\][^{}]*\}"
WORD_AT_END = re.compile(rf"{WORD}([_^]\{{[^{{}}]*\}})?$")
WORD_AT_START = re.compile(rf"(\\mathrm\{{d\}})?{WORD}")


def latex_formula(e: Expr) -> str:
    """``e`` in LaTeX's mathematics, on one line and without dollars."""
    return FormulaPrinter({"order": "none"}).doprint(e)


@told_apart()
def latex_statements(equations: Iterable[tuple[Tensor, Expr]]) -> str:
    """Statements as one aligned display."""
    lines = [f"{latex_formula(left)} &= {latex_formula(right)}" for left, right in equations]
    inside = " \\\\\n".join(lines)
    return f"$$\n\\begin{{aligned}}\n{inside}\n\\end{{aligned}}\n$$"


class FormulaPrinter(OfChoices, LatexPrinter):
    """SymPy's printer with our tensors and nodes, and the order of ``text.py``."""

    printmethod = "_latex_of_a_derivation"  # no node prints itself here

    def _print_Add(self, e, order=None):
        text = ""
        for sign, term in signed_terms(e):
            shown = self.parenthesize(term, PRECEDENCE["Add"])
            text += f" {sign} {shown}" if text else f"{sign if sign == '-' else ''}{shown}"
        return text

    def _print_Mul(self, e):
        if e.as_coeff_Mul()[0].is_negative:
            return f"-{self.parenthesize(-e, PRECEDENCE['Add'])}"
        fraction, factors = parts_of_product(e)
        texts = [self.fraction(*fraction)] if fraction else []
        return joined([*texts, *self.factors(factors)])

    def fraction(self, above, below) -> str:
        top, bottom = (
            self._print(parts[0]) if len(parts) == 1 else joined(self.factors(parts)) or "1"
            for parts in (above, below)
        )
        return rf"\frac{{{top}}}{{{bottom}}}"

    def factors(self, factors: list[Expr]) -> list[str]:
        """Factors that can stand beside each other; only the last may reach to the right."""
        return [self.factor(f, f is factors[-1]) for f in factors]

    def factor(self, factor: Expr, last: bool) -> str:
        if isinstance(factor, Reduction):
            text = self._print(factor)
            return text if last else self._add_parens(text)
        if factor.is_Rational and factor.is_positive:
            return self._print(factor)
        return self.parenthesize(factor, PRECEDENCE["Mul"])

    def _print_Rational(self, e):
        short = decimal(Fraction(int(e.p), int(e.q))) if e.q > LARGEST_DIVISOR else None
        if short:
            return re.sub(r"e([+-])0*(\d+)", r" \\cdot 10^{\1\2}", short).replace("{+", "{")
        return super()._print_Rational(e)

    def _print_Pow(self, e: Pow):
        if e.exp.is_Rational and e.exp.is_negative:
            return self.fraction([], [e.base**-e.exp])
        if e.exp.is_Rational and e.exp.p == 1:
            return super()._print_Pow(e)
        base = self._print(e.base)
        if isinstance(e.base, ArrayNode | Function) or not e.base.is_Atom or "^" in base:
            base = self._add_parens(base)
        return f"{base}^{{{self._print(e.exp)}}}"

    def _print_ExpBase(self, e, exp=None):
        return self._print_Function(e, exp)

    def _hprint_Function(self, func: str) -> str:
        return rf"\{func}" if func in OPERATORS else named(func)

    def _print_LargestOf(self, e: Function, exp=None) -> str:
        return rf"\max\left({', '.join(map(self._print, e.args))}\right)"

    def _print_Reduction(self, e: Reduction) -> str:
        along = ", ".join(map(self._print, e.axes))
        return rf"{SIGNS[type(e).__name__]}_{{{along}}} {self.summand(e.operand)}"

    _print_Sum = _print_ArgMax = _print_Reduction  # before those of SymPy

    def _print_Max(self, e, exp=None):
        return self._print_Reduction(e) if isinstance(e, Reduction) else super()._print_Max(e, exp)

    def summand(self, e: Expr) -> str:
        if e.is_Mul and not e.could_extract_minus_sign():
            return self._print(e)
        return self.parenthesize(e, PRECEDENCE["Mul"])

    def _print_MinusInfinity(self, e: Symbol) -> str:
        return r"-\infty"

    def _print_Position(self, e: ArrayNode) -> str:
        return rf"\mathrm{{index}}_{{{self._print(e.axis)}}}"

    def _kept(self, label: str) -> str:
        return rf"\mathbf{{1}}[\,{self._is_kept(label)}\,]"

    def _is_kept(self, label: str) -> str:
        return rf"{label}\text{{ is kept}}"

    def _choice(self, e) -> str:
        return LatexPrinter._print_Piecewise(self, e)

    def _print_OneHot(self, e: ArrayNode) -> str:
        return rf"\mathbf{{1}}[\,{self._print(e.operand)} = {self._print(e.axis)}\,]"

    def _print_Identity(self, e: ArrayNode) -> str:
        return rf"\mathbf{{1}}[\,{' = '.join(map(self._print, e.pair))}\,]"

    def _print_Broadcast(self, e: ArrayNode) -> str:
        return self._applied("broadcast", self._along(e.axes), e.operand)

    def _print_Flatten(self, e: ArrayNode) -> str:
        return self._applied("flat", f"{self._along(e.axes)} \\to {self._print(e.flat)}", e.operand)

    def _print_Unflatten(self, e: ArrayNode) -> str:
        return self._applied(
            "unflat", f"{self._print(e.flat)} \\to {self._along(e.into)}", e.operand
        )

    def _print_GoneAlong(self, e: GoneAlong) -> str:
        name, operands, notes = said(e)
        words = "".join(rf",\,\text{{{note}}}" for note in notes)
        inside = ", ".join(map(self._print, operands))
        return rf"\mathrm{{{name}}}_{{{self._print(e.axis)}{words}}}\left({inside}\right)"

    def _print_MatrixNode(self, e: MatrixNode) -> str:
        along = ", ".join(map(self._print, e.axes))
        inside = ", ".join(map(self._print, e.operands))
        return rf"\mathrm{{{e.said}}}_{{{along}}}\left({inside}\right)"

    def _print_At(self, e: ArrayNode) -> str:
        plain = isinstance(e.operand, Tensor) and e.operand.axes == e.operand.home
        operand = self._print(e.operand) if plain else rf"\left({self._print(e.operand)}\right)"
        fill = "" if e.fill == 0 else rf",\ \text{{else }} {self._print(e.fill)}"
        return rf"{operand}_{{{self._print(e.axis)} = {self._print(e.index)}{fill}}}"

    def _print_ArrayNode(self, e: ArrayNode) -> str:
        raise TypeError(f"{type(e).__name__} has no LaTeX: add _print_{type(e).__name__}")

    def _along(self, axes: Iterable[Axis]) -> str:
        return r" \cdot ".join(map(self._print, axes))

    def _applied(self, function: str, along: str, e: Expr) -> str:
        return rf"\mathrm{{{function}}}_{{{along}}}\left({self._print(e)}\right)"

    def _print_Tensor(self, e: Tensor) -> str:
        name = gradient_name(e.name) if e.role == "adjoint" else latex_name(e.name)
        return name if e.axes == e.home else with_index(name, ", ".join(map(self._print, e.axes)))

    def _print_Symbol(self, e: Symbol) -> str:
        """A size, or an entry of a tensor."""
        name, index = entry_of(e)
        shown = latex_name(name) if isinstance(e, Axis) else gradient_name(name)
        return with_index(shown, ",".join(index)) if index else shown

    def _print_Chosen(self, e: Chosen) -> str:
        place, number = map(self._print, e.args)
        return rf"\mathbf{{1}}[\,{place} = {number}\,]"

    def _print_ArgMaxOfEntries(self, e: ArgMaxOfEntries) -> str:
        return rf"\arg\max\left({', '.join(map(self._print, e.args))}\right)"


def parts_of_product(e: Expr):
    """Split a product into a fraction, or None, and the factors beside it: sums and brackets stay
    out of the numerator, unless a bracket is all there is.
    """
    above, below = map(ordered_factors, numerator_and_denominator(e))
    if not below:
        return None, above
    tall = [f for f in above if isinstance(f, Add | Reduction)]
    if len(above) == 1 and isinstance(above[0], Add):
        return (above, below), []
    return ([f for f in above if f not in tall], below), tall


def joined(factors: list[str]) -> str:
    """A product: words are set apart from their neighbours by a dot."""
    text = ""
    for factor in factors:
        text += (separator(text, factor) if text else "") + factor
    return text


def separator(left: str, right: str) -> str:
    if right.startswith(r"\sum"):
        return r"\,"
    word = WORD_AT_END.search(left) or WORD_AT_START.match(right)
    return r" \cdot " if word or right[:1].isdigit() else r"\,"
