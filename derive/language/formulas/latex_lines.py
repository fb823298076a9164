"""A formula in LaTeX on as many lines as it needs: how wide it is, and where it can be broken."""

from __future__ import annotations

import re

from sympy import Add, Expr, Function, Mul, Pow

from derive.language.formulas.latex import (
    FormulaPrinter,
    latex_formula,
    parts_of_product,
    separator,
)
from derive.language.formulas.text import signed_terms
from derive.language.nodes import Reduction

FUNCTIONS = {f"\\{name}" for name in ("exp", "log", "tanh", "min", "max", "arg")}
INVISIBLE = {"mathrm", "mathbf", "left", "right", "bigl", "bigr", "frac", "displaystyle", "text"}
INVISIBLE |= {"sqrt", "hat", "small", "footnotesize"}
WIDE = {"+", "-", "=", r"\sum"}  # as two letters
CHOICE = re.compile(r"\\begin\{cases\}((?:(?!\\begin).)*?)\\end\{cases\}")  # with none inside


def width(tex: str) -> int:
    """About how many letters wide a formula is."""
    letters = 0
    while CHOICE.search(tex):
        tex = CHOICE.sub(lambda choice: "x" * _of_rows(choice[1]), tex)
    while (start := tex.find(r"\frac{")) >= 0:
        above, rest = _group(tex, start + len(r"\frac"))
        below, rest = _group(tex, rest)
        letters += max(width(above), width(below))
        tex = tex[:start] + tex[rest:]
    for token in re.findall(r"\\[A-Za-z]+|\\.|[^{}_^&\s\\]", tex):
        if token in WIDE:
            letters += 2
        elif token[0] != "\\":
            letters += 1
        elif token[1:] not in INVISIBLE:
            letters += len(token) - 1 if token in FUNCTIONS else 1
    return letters


def _of_rows(rows: str) -> int:
    """The width of a choice: of its brace, its widest row and the space between two columns."""
    return 4 + max(map(width, rows.split(r"\\")))


def _group(tex: str, start: int) -> tuple[str, int]:
    """The text between the brace at ``start`` and its partner, and the position after that."""
    depth = 0
    for brace in re.finditer(r"(?<!\\)[{}]", tex[start:]):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            end = start + brace.end()
            return tex[start + 1 : end - 1], end
    raise ValueError(f"unbalanced braces: {tex}")


def formula_lines(e: Expr, room: int) -> list[str]:
    """``e`` on as many lines as it needs to be no wider than ``room``, as far as it can be broken:
    at signs and between factors. Brackets that end on another line have a fixed size.
    """
    lines: list[str] = []
    for piece in _pieces(e, room):
        if lines and width(lines[-1]) + width(piece) <= room:
            lines[-1] += f" {piece}"
        else:
            lines.append(re.sub(r"^\\,", r"\\cdot ", piece) if lines else piece)
    return lines


def _pieces(e: Expr, room: int) -> list[str]:
    """Break ``e`` into pieces that fit the ``room``, signs included."""
    whole = latex_formula(e)
    if width(whole) <= room:
        return [whole]
    if isinstance(e, Add):
        return _terms(e, room)
    if e.is_Mul and e.as_coeff_Mul()[0].is_negative:
        inner = _pieces(-e, room) if not isinstance(-e, Add) else _bracket(-e, room)
        return [f"-{inner[0]}", *inner[1:]]
    if e.is_Mul:
        return _product(e, room)
    if isinstance(e, Reduction):
        sign = latex_formula(e).split("} ", 1)[0] + "}"
        bare = e.operand.is_Mul and not e.operand.could_extract_minus_sign()
        inner = (_pieces if bare else _bracket)(e.operand, room)
        return [f"{sign} {inner[0]}", *inner[1:]]
    if isinstance(e, Pow) and e.exp.is_Integer and e.exp.is_positive:
        *inner, last = _bracket(e.base, room)
        return [*inner, f"{last}^{{{e.exp}}}"]
    if isinstance(e, Function) and len(e.args) == 1 and "{\\left(" in whole:
        inner = _bracket(e.args[0], room)
        return [whole.split("{\\left(", 1)[0] + inner[0], *inner[1:]]
    return [whole]


def _terms(e: Add, room: int) -> list[str]:
    pieces: list[str] = []
    for sign, term in signed_terms(e):
        first, *rest = _pieces(term, room) if not isinstance(term, Add) else _bracket(term, room)
        shown = f"{sign} {first}" if pieces else f"{sign if sign == '-' else ''}{first}"
        pieces += [shown, *rest]
    return pieces


def _product(e: Mul, room: int) -> list[str]:
    fraction, factors = parts_of_product(e)
    printer = FormulaPrinter({"order": "none"})
    groups: list[list[str]] = []
    if fraction and not factors:  # a bracket over something
        above, below = fraction
        if above and isinstance(above[0], Add):
            fraction, factors = ([], below), above
    if fraction and width(printer.fraction(*fraction)) <= room:
        groups.append([printer.fraction(*fraction)])
    elif fraction:
        *inner, last = _bracket(Mul(*fraction[1]), room)
        groups += [[printer.factor(f, False)] for f in fraction[0]]
        groups.append([*inner, f"{last}^{{-1}}"])
    for factor in factors:
        last = factor is factors[-1]
        text = printer.factor(factor, last)
        if width(text) <= room:
            groups.append([text])
        elif isinstance(factor, Add) or (isinstance(factor, Reduction) and not last):
            groups.append(_bracket(factor, room))
        else:
            groups.append(_pieces(factor, room))
    pieces = groups[0]
    for group in groups[1:]:
        pieces += [f"{separator(pieces[-1], group[0])}{group[0]}", *group[1:]]
    return pieces


def _bracket(e: Expr, room: int) -> list[str]:
    first, *rest = _pieces(e, room)
    *rest, last = [rf"\bigl({first}", *rest]
    return [*rest, rf"{last}\bigr)"]
