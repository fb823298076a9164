"""Formulas for a page: MathML as a browser draws it, in the order in which a person writes them.

A printer over SymPy's dispatch that builds elements, so that what it returns is closed and escaped
whatever a tensor is called. It keeps to MathML Core: no attribute that only one browser knows.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from xml.etree.ElementTree import Element

from sympy import Add, Basic, Expr, Function, Integer, Piecewise, Pow, Rational, Symbol, true
from sympy.core.relational import Relational
from sympy.printing.precedence import PRECEDENCE, precedence

from derive.language.formulas.entries import ArgMaxOfEntries, Chosen, entry_of
from derive.language.formulas.mathml_elements import (
    APPLY,
    ARROW,
    DOT,
    INVISIBLE_TIMES,
    MINUS,
    applied,
    brackets,
    closed,
    fraction,
    identifier,
    indicator,
    leaf,
    listed,
    operator,
    row,
    subscript,
    table,
    with_children,
)
from derive.language.formulas.mathml_reads import ReadAt
from derive.language.formulas.text import (
    LARGEST_DIVISOR,
    RELATIONS,
    OfChoices,
    decimal,
    numerator_and_denominator,
    ordered_factors,
    signed_terms,
)
from derive.language.formulas.words import Side, parts_of
from derive.language.nodes import ArrayNode, GoneAlong, OneHot, Reduction, Reshaping
from derive.language.scans import said
from derive.language.symbols import Along, Axis, Tensor

FUNCTIONS = {"sign": "sgn", "LargestOf": "max", "Min": "min", "Max": "max"}
EVERYTHING_BINDS_TIGHTER = PRECEDENCE["Lambda"]


def mathml(e: Side) -> str:
    """``e`` as a ``<math>`` element in display style; a string is taken for a name."""
    return closed([_element(e)])


def inline(e: Basic) -> str:
    """``e`` as a ``<math>`` element within a line of text."""
    return closed([_element(e)], display="inline")


def equation(left: Side, right: Side) -> str:
    """``left = right`` as one ``<math>`` element."""
    return closed([_element(left), operator("="), _element(right)])


def matrix(name: Side, rows: Iterable[Iterable[Expr]]) -> str:
    """``name`` and its entries between brackets."""
    entries = table([[_element(e) for e in row] for row in rows], displaystyle="true")
    bracketed = row(operator("["), entries, operator("]"))
    return closed([_element(name), operator("="), bracketed])


def _element(e: Side) -> Element:
    if isinstance(e, tuple):
        return row(*map(_part, parts_of(e)))
    return identifier(e) if isinstance(e, str) else _MathML().doprint(e)


def _part(part: str | Basic) -> Element:
    """The element of a part of words: text stands upright, with its spaces."""
    if not isinstance(part, str):
        return _element(part)
    return leaf("mtext", part.replace(" ", "\u00a0"))


def _without_zeros(number: str) -> str:
    """``0.4`` for 0.400."""
    digits, exponent, power = number.partition("e")
    digits = digits.rstrip("0").removesuffix(".") if "." in digits else digits
    return f"{digits}{exponent}{power}"


def _binds(e: Basic) -> int:
    """Precedence of ``e``: text to the right of a sum is read as part of it, and so is text to the
    right of a choice.
    """
    if isinstance(e, Piecewise):
        return EVERYTHING_BINDS_TIGHTER
    return PRECEDENCE["Mul"] if isinstance(e, Reduction) else precedence(e)


def _ends_in_a_sum(term: Expr) -> bool:
    """Whether factors behind ``term`` could be read as part of its sum."""
    above, below = numerator_and_denominator(term)
    return bool(above) and not below and isinstance(ordered_factors(above)[-1], Reduction)


class _MathML(OfChoices, ReadAt):
    printmethod = "_mathml_element"  # no node prints itself here
    emptyPrinter = staticmethod(lambda e: leaf("mtext", str(e)))

    def doprint(self, expr) -> Element:
        return self._print(expr)

    def _held(self, e: Basic, level: int) -> Element:
        """``e``, in brackets unless it binds more tightly than ``level``."""
        shown = self._print(e)
        return shown if _binds(e) > level else brackets(shown)

    # Atoms

    def _print_Symbol(self, e: Symbol) -> Element:
        """An entry of a tensor."""
        name, index = entry_of(e)
        if not index:
            return identifier(name)
        return subscript(identifier(name), listed(leaf("mn", number) for number in index))

    def _print_Chosen(self, e: Chosen) -> Element:
        place, number = map(self._print, e.args)
        return indicator(row(place, operator("="), number))

    def _print_ArgMaxOfEntries(self, e: ArgMaxOfEntries) -> Element:
        sign = leaf("mi", "arg\u2009max", mathvariant="normal")
        return row(sign, operator(APPLY), brackets(listed(map(self._print, e.args))))

    def _print_Tensor(self, e: Tensor) -> Element:
        if e.axes == e.home:
            return identifier(e.name)
        return subscript(identifier(e.name), listed(map(self._print, e.axes)))

    def _print_Axis(self, e: Axis) -> Element:
        return identifier(e.name)

    def _print_Along(self, e: Along) -> Element:
        return listed(map(self._print, e.axes))

    def _print_Integer(self, e: Integer) -> Element:
        number = leaf("mn", str(abs(int(e))))
        return row(operator(MINUS, form="prefix"), number) if e < 0 else number

    def _print_Rational(self, e: Rational) -> Element:
        if e.is_negative:
            return row(operator(MINUS, form="prefix"), self._print(-e))
        short = decimal(Fraction(int(e.p), int(e.q))) if e.q > LARGEST_DIVISOR else None
        if short:
            return leaf("mn", short)
        return fraction(leaf("mn", str(e.p)), leaf("mn", str(e.q)))

    def _print_Float(self, e) -> Element:
        number = leaf("mn", _without_zeros(str(abs(e))))
        return row(operator(MINUS, form="prefix"), number) if e < 0 else number

    def _print_Exp1(self, e) -> Element:
        return leaf("mi", "e")

    def _print_Pi(self, e) -> Element:
        return leaf("mi", "\u03c0")

    def _print_Infinity(self, e) -> Element:
        return leaf("mi", "\u221e")

    # Arithmetic

    def _print_Add(self, e: Add) -> Element:
        parts: list[Element] = []
        for i, (sign, term) in enumerate(signed_terms(e)):
            if parts:
                parts.append(operator(MINUS if sign == "-" else "+"))
            elif sign == "-":
                parts.append(operator(MINUS, form="prefix"))
            shown = self._held(term, PRECEDENCE["Add"])
            open_end = i < len(e.args) - 1 and _ends_in_a_sum(term)
            parts.append(brackets(shown) if open_end else shown)
        return row(*parts)

    def _print_Mul(self, e: Expr) -> Element:
        if e.as_coeff_Mul()[0].is_negative:
            return row(operator(MINUS, form="prefix"), self._held(-e, PRECEDENCE["Add"]))
        above, below = numerator_and_denominator(e)
        top = self._product(ordered_factors(above))
        return fraction(top, self._product(ordered_factors(below))) if below else top

    def _product(self, factors: list[Expr]) -> Element:
        if len(factors) < 2:
            return self._print(factors[0] if factors else Integer(1))
        parts: list[Element] = []
        for i, factor in enumerate(factors):
            sum_at_the_end = isinstance(factor, Reduction) and i == len(factors) - 1
            if parts:
                parts.append(operator(INVISIBLE_TIMES if sum_at_the_end else DOT))
            number = factor.is_Rational and factor.is_positive
            bare = sum_at_the_end or number
            parts.append(self._print(factor) if bare else self._held(factor, PRECEDENCE["Mul"]))
        return row(*parts)

    def _print_Pow(self, e: Pow) -> Element:
        if e.exp.is_Rational and e.exp.is_negative:
            return self._print_Mul(e)
        if e.exp.is_Rational and e.exp.p == 1 and e.exp.q == 2:
            return with_children(Element("msqrt"), [self._print(e.base)])
        if e.exp.is_Rational and e.exp.p == 1:
            return with_children(Element("mroot"), [self._print(e.base), leaf("mn", str(e.exp.q))])
        base = self._held(e.base, PRECEDENCE["Pow"])
        return with_children(Element("msup"), [base, self._print(e.exp)])

    # Functions and choices

    def _print_Function(self, e: Function) -> Element:
        name = type(e).__name__
        return applied(FUNCTIONS.get(name, name), map(self._print, e.args))

    _print_Min = _print_Max = _print_MinMaxBase = _print_Function  # those of SymPy

    def _print_Abs(self, e) -> Element:
        return brackets(self._print(e.args[0]), "|", "|")

    def _kept(self, label: Element) -> Element:
        return indicator(self._is_kept(label))

    def _is_kept(self, label: Element) -> Element:
        return row(label, leaf("mtext", "\u00a0is kept"))

    def _choice(self, e: Piecewise) -> Element:
        def case(value, condition):
            if condition is true:
                return [self._print(value), leaf("mtext", "otherwise")]
            return [self._print(value), row(leaf("mtext", "if\u00a0"), self._print(condition))]

        rows = table([case(*pair.args) for pair in e.args], **{"class": "cases"})
        return row(operator("{"), rows)

    def _print_Relational(self, e: Relational) -> Element:
        sign = RELATIONS.get(e.rel_op, e.rel_op)
        return row(self._print(e.lhs), operator(sign), self._print(e.rhs))

    def _print_And(self, e) -> Element:
        return listed(map(self._condition, e.args), "\u2227")

    def _print_Or(self, e) -> Element:
        return listed(map(self._condition, e.args), "\u2228")

    def _print_Not(self, e) -> Element:
        return row(operator("\u00ac"), self._held(e.args[0], PRECEDENCE["Not"]))

    def _condition(self, e: Basic) -> Element:
        return self._held(e, PRECEDENCE["And"])

    # Array nodes

    def _print_Sum(self, e: Reduction) -> Element:
        return self._reduced(e, operator("\u2211"))

    def _print_Max(self, e) -> Element:
        # SymPy's maximum of several arguments has the same class name as ours along an axis.
        if not isinstance(e, Reduction):
            return self._print_Function(e)
        return self._reduced(e, operator("max", movablelimits="true", form="prefix"))

    def _print_ArgMax(self, e: Reduction) -> Element:
        return self._reduced(e, operator("arg\u2009max", movablelimits="true", form="prefix"))

    def _reduced(self, e: Reduction, sign: Element) -> Element:
        under = with_children(Element("munder"), [sign, self._print(e.args[1])])
        return row(under, self._held(e.operand, PRECEDENCE["Add"]))

    def _print_MinusInfinity(self, e: Symbol) -> Element:
        return row(operator("\u2212"), leaf("mi", "\u221e"))

    def _print_OneHot(self, e: OneHot) -> Element:
        label = self._print(e.operand)
        return indicator(row(label, operator("="), self._print(e.axis)))

    def _print_Identity(self, e: OneHot) -> Element:
        one, other = map(self._print, e.pair)
        return indicator(row(one, operator("="), other))

    def _print_Flatten(self, e: Reshaping) -> Element:
        return self._counted(e, "flat")

    def _print_Unflatten(self, e: Reshaping) -> Element:
        return self._counted(e, "apart")

    def _counted(self, e: Reshaping, name: str) -> Element:
        before, after = (listed(map(self._print, axes), DOT) for axes in (e.axes, e.into))
        return applied(name, [self._print(e.operand)], row(before, operator(ARROW), after))

    def _print_GoneAlong(self, e: GoneAlong) -> Element:
        name, operands, notes = said(e)
        along = listed([self._print(e.axis), *(leaf("mtext", note) for note in notes)])
        return applied(name, map(self._print, operands), along)

    def _print_ArrayNode(self, e: ArrayNode) -> Element:
        return applied(type(e).__name__, map(self._print, e.args))
