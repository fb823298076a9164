r"""Formulas in LaTeX, in the notation of a paper; ``paper.py`` makes documents of them.

``\frac{1}{N}\,\sum_{N} \mathrm{d}y``: tensors by their names, sums over their index. A formula uses
only what LaTeX, KaTeX and MathJax all know. No text of a user reaches one unescaped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from fractions import Fraction

from sympy import Add, Expr, Function, Mul, Pow, Symbol
from sympy.core.alphabets import greeks
from sympy.printing.latex import LatexPrinter, accepted_latex_functions
from sympy.printing.precedence import PRECEDENCE

from derive.formulas.entries import ArgMaxOf, Chosen, entry_of
from derive.formulas.text import (
    LARGEST_DIVISOR,
    OfChoices,
    decimal,
    numerator_and_denominator,
    ordered_factors,
    signed_terms,
)
from derive.language.nodes import ArrayNode, Reduction
from derive.language.symbols import Axis, Tensor

SIGNS = {"Sum": r"\sum", "Max": r"\max", "Peak": r"\max", "ArgMax": r"\arg\max"}
CAPITALS = ("Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi")
GREEK = {name: f"\\{name}" for name in (*greeks, *CAPITALS, "Omega") if name != "omicron"}
GREEK |= {"eps": r"\varepsilon", "lamda": r"\lambda"}  # Unicode and SymPy write lamda
ACCENTS = {"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"'}
ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"$|$",
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
}

OPERATORS = frozenset({"exp", *accepted_latex_functions})
FUNCTIONS = {f"\\{name}" for name in ("exp", "log", "tanh", "min", "max", "arg")}
WORD = r"\\mathrm\{\w[\w\\][^{}]*\}"
WORD_AT_END = re.compile(rf"{WORD}([_^]\{{[^{{}}]*\}})?$")
WORD_AT_START = re.compile(rf"(\\mathrm\{{d\}})?{WORD}")
INVISIBLE = {"mathrm", "mathbf", "left", "right", "bigl", "bigr", "frac", "displaystyle", "text"}
INVISIBLE |= {"sqrt", "hat", "begin", "end", "cases", "small", "footnotesize"}


def latex_formula(e: Expr) -> str:
    """``e`` in LaTeX's mathematics, on one line and without dollars."""
    return _Latex({"order": "none"}).doprint(e)


def latex_statements(equations: Iterable[tuple[Tensor, Expr]]) -> str:
    """Statements as one aligned display."""
    lines = [f"{latex_formula(left)} &= {latex_formula(right)}" for left, right in equations]
    inside = " \\\\\n".join(lines)
    return f"$$\n\\begin{{aligned}}\n{inside}\n\\end{{aligned}}\n$$"


def latex_text(text: str) -> str:
    """Words, of which nothing is a command any more."""
    return "".join(map(_character, re.sub(r"\s+", " ", text)))


def _character(character: str) -> str:
    if character.isascii():
        return ESCAPES.get(character, character if character.isprintable() else " ")
    greek = _greek(character)
    if greek:
        return f"${greek}$"
    plain, *marks = unicodedata.normalize("NFKD", character)
    if plain.isascii() and plain.isprintable() and set(marks) <= set(ACCENTS):
        accents = "".join(f"\\{ACCENTS[mark]}{{" for mark in marks)
        return f"{accents}{ESCAPES.get(plain, plain)}{'}' * len(marks)}"
    return rf"\texttt{{U+{ord(character):04X}}}"


def _greek(character: str) -> str | None:
    size, _, letter = unicodedata.name(character, "").removeprefix("GREEK ").partition(" LETTER ")
    name = letter.lower()
    return GREEK.get(name if size == "SMALL" else name.capitalize())


def latex_name(name: str) -> str:
    r"""A name as one symbol: ``x``, ``\hat{x}``, ``W^{(1)}``, ``\alpha``, ``\mathrm{inv\_std}``."""
    if not name.isascii():
        runs = re.findall(r"[\x00-\x7f]+|.", name)
        return "".join(
            rf"\mathrm{{{latex_text(run)}}}" if run.isascii() else _sign(run) for run in runs
        )
    if len(name) == 1:
        return name
    if name in GREEK:
        return GREEK[name]
    if re.fullmatch("[A-Za-z]hat", name):
        return rf"\hat{{{name[0]}}}"
    layer = re.fullmatch(r"([A-Za-z])(\d+)", name)
    if layer:
        return rf"{layer[1]}^{{({layer[2]})}}"
    return rf"\mathrm{{{latex_text(name)}}}"


def gradient_name(name: str) -> str:
    r"""``\mathrm{d}x`` for ``dx``; of a longer word the letters stay together."""
    split = name.startswith("d") and len(name) > 1
    return rf"\mathrm{{d}}{latex_name(name[1:])}" if split else latex_name(name)


class _Latex(OfChoices, LatexPrinter):
    """SymPy's printer with our tensors and nodes, and the order of `derive.formulas.text`."""

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
        return rf"\mathbf{{1}}[\,{label}\text{{ is kept}}\,]"

    def _choice(self, e) -> str:
        return LatexPrinter._print_Piecewise(self, e)

    def _print_OneHot(self, e: ArrayNode) -> str:
        return rf"\mathbf{{1}}[\,{self._print(e.operand)} = {self._print(e.axis)}\,]"

    def _print_Broadcast(self, e: ArrayNode) -> str:
        return self._applied("broadcast", self._along(e.axes), e.operand)

    def _print_Flatten(self, e: ArrayNode) -> str:
        return self._applied("flat", f"{self._along(e.axes)} \\to {self._print(e.flat)}", e.operand)

    def _print_Unflatten(self, e: ArrayNode) -> str:
        return self._applied(
            "unflat", f"{self._print(e.flat)} \\to {self._along(e.into)}", e.operand
        )

    def _print_ArrayNode(self, e: ArrayNode) -> str:
        raise TypeError(f"{type(e).__name__} has no LaTeX: add _print_{type(e).__name__}")

    def _along(self, axes: Iterable[Axis]) -> str:
        return r" \cdot ".join(map(self._print, axes))

    def _applied(self, function: str, along: str, e: Expr) -> str:
        return rf"\mathrm{{{function}}}_{{{along}}}\left({self._print(e)}\right)"

    def _print_Tensor(self, e: Tensor) -> str:
        name = gradient_name(e.name) if e.role == "adjoint" else latex_name(e.name)
        return name if e.axes == e.home else f"{name}_{{{', '.join(map(self._print, e.axes))}}}"

    def _print_Symbol(self, e: Symbol) -> str:
        """A size, or an entry of a tensor."""
        name, index = entry_of(e)
        shown = latex_name(name) if isinstance(e, Axis) else gradient_name(name)
        return shown + (f"_{{{','.join(index)}}}" if index else "")

    def _print_Chosen(self, e: Chosen) -> str:
        place, number = map(self._print, e.args)
        return rf"\mathbf{{1}}[\,{place} = {number}\,]"

    def _print_ArgMaxOf(self, e: ArgMaxOf) -> str:
        return rf"\arg\max\left({', '.join(map(self._print, e.args))}\right)"


def named(function: str) -> str:
    return rf"\mathrm{{{latex_text(function)}}}"


def text_in_formula(text: str) -> str:
    r"""Words inside of a formula; what is not a plain character stands outside of ``\text``, where
    LaTeX, KaTeX and MathJax agree on how it is written.
    """
    signs = {"_": r"\_", "*": r"{\ast}", "<": "<", ">": ">", "\\": r"\backslash ", "|": r"\vert "}
    parts = re.split(r"([^A-Za-z0-9 ,.;:()=+/'?!\[\]-])", re.sub(r"\s+", " ", text))
    return "".join(
        rf"\text{{{part}}}" if i % 2 == 0 else signs.get(part) or _sign(part)
        for i, part in enumerate(parts)
        if part
    )


def _sign(sign: str) -> str:
    if sign == "$":
        return r"\text{\textdollar}"  # Markdown would end the formula at a dollar
    if sign.isascii():
        return f"\\{sign}" if sign in "{}&#%" else r"\cdot "
    return _greek(sign) or rf"\text{{{_character(sign)}}}"


def parts_of_product(e: Expr):
    """What stands in a fraction, or None, and the factors beside it: sums and brackets do not
    stand above the line, unless a bracket is all there is.
    """
    above, below = map(ordered_factors, numerator_and_denominator(e))
    if not below:
        return None, above
    tall = [f for f in above if isinstance(f, Add | Reduction)]
    if len(above) == 1 and isinstance(above[0], Add):
        return (above, below), []
    return ([f for f in above if f not in tall], below), tall


def joined(factors: list[str]) -> str:
    """A product: words are set apart from what stands beside them by a dot."""
    text = ""
    for factor in factors:
        text += (separator(text, factor) if text else "") + factor
    return text


def separator(left: str, right: str) -> str:
    if right.startswith(r"\sum"):
        return r"\,"
    word = WORD_AT_END.search(left) or WORD_AT_START.match(right)
    return r" \cdot " if word or right[:1].isdigit() else r"\,"


def width(tex: str) -> int:
    """About how many letters wide a formula is."""
    letters = 0
    while (start := tex.find(r"\frac{")) >= 0:
        above, rest = _group(tex, start + 5)
        below, rest = _group(tex, rest)
        letters += max(width(above), width(below))
        tex = tex[:start] + tex[rest:]
    for token in re.findall(r"\\[A-Za-z]+|\\.|[^{}_^&\s\\]", tex):
        if token[0] != "\\":
            letters += 2 if token in "+-=" else 1
        elif token[1:] not in INVISIBLE:
            letters += len(token) - 1 if token in FUNCTIONS else 1
    return letters


def _group(tex: str, start: int) -> tuple[str, int]:
    """What stands between the brace at ``start`` and its partner, and where it ends."""
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
    """What ``e`` is broken into, signs included."""
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
        inner = _bracket(e.operand, room)
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
    printer = _Latex({"order": "none"})
    groups: list[list[str]] = []
    if fraction and not factors:  # a bracket over something
        above, below = fraction
        if isinstance(above[0], Add):
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
