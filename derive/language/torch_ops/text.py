"""Trees as text of the notation, as written to the imported file."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import sympy
from sympy import Expr, factor_terms
from sympy.printing.str import StrPrinter

from derive.language.torch_ops.reads import at_text
from derive.language.torch_ops.trees import Tree, pairs_of

# Operator precedence; higher binds tighter.
COMPARISON, SUM, PRODUCT, MINUS, POWER, WHOLE = 2, 3, 4, 5, 6, 9
HOLDS = {
    "compared": COMPARISON,
    "sum_of": SUM,
    "difference": SUM,
    "product": PRODUCT,
    "quotient": PRODUCT,
    "minus": PRODUCT,
    "power": POWER,
}
SIGNS = {"sum_of": "+", "difference": "-", "product": "*", "quotient": "/"}
RELATIONS = {"==": "Eq", "!=": "Ne"}  # Python would evaluate these at once
CALLED = {"and": "And", "or": "Or", "not": "Not", "sum": "Sum", "max": "Max", "min": "Min"}
CALLED |= {"kept": "Kept"}
CALLED |= {"one hot": "OneHot", "position": "Position", "broadcast": "Broadcast"}

Spare = Callable[[str], str]  # returns an unused axis of the same size


class _Exact(StrPrinter):
    """Prints numbers that Python would round: 1/4 would become a decimal."""

    def _print_Rational(self, e):
        decimal = repr(float(e))
        return decimal if sympy.Rational(decimal) == e else f"Rational({e.p}, {e.q})"

    _print_Half = _print_Rational


def number_text(e: Expr) -> str:
    return _Exact().doprint(e)


def length_text(size: Expr) -> str:
    """The length of an axis; fractions are written as one quotient."""
    return number_text(factor_terms(size))


def text(e: Tree, spare: Spare) -> str:
    """The text of a tree; ``spare`` supplies an axis for swapping two others."""
    return _TextWriter(spare).text(e)


class _TextWriter:
    def __init__(self, spare: Spare):
        self.spare = spare

    def text(self, e: Tree, outer: int = 0) -> str:
        """The text, in brackets if it binds less tightly than its context."""
        written, holds = self.written(e)
        return f"({written})" if holds < outer else written

    def written(self, e: Tree) -> tuple[str, int]:
        """The text and its precedence."""
        kind, args = e.kind, e.args
        if kind == "number":
            return number_text(args[0]), _holds(args[0])
        if kind in SIGNS:
            holds = HOLDS[kind]
            left, right = self.text(args[0], holds), self.text(args[1], holds + 1)
            return f"{left} {SIGNS[kind]} {right}", holds
        if kind == "typed":  # (text, precedence)
            return args
        if kind == "minus" and (least := _least(args[0])):
            return self.whole(least), WHOLE
        if kind == "minus":
            return f"-{self.text(args[0], PRODUCT)}", PRODUCT
        if kind == "power":
            return f"{self.text(args[0], POWER + 1)}**{self.text(args[1], POWER)}", POWER
        if kind == "compared" and args[0] not in RELATIONS:
            left, right = self.text(args[1], SUM), self.text(args[2], SUM)
            return f"{left} {args[0]} {right}", COMPARISON
        return self.whole(e), WHOLE

    def whole(self, e: Tree) -> str:
        """The text of an operand that needs no brackets."""
        kind, args = e.kind, e.args
        if kind in ("tensor", "truth"):
            return str(args[0])
        if kind == "compared":
            return self.called(RELATIONS[args[0]], *args[1:])
        if kind == "call":
            return self.called(*args)
        if kind == "choice":
            pairs, otherwise = pairs_of(e)
            written = [f"({self.text(v)}, {self.text(c)})" for v, c in pairs]
            return f"Piecewise({', '.join(written)}, ({self.text(otherwise)}, True))"
        if kind == "flatten":
            return f"Flatten({self.text(args[0])}, {', '.join(args[1])}, into={args[2][0]})"
        if kind == "unflatten":
            return f"Unflatten({self.text(args[0])}, {args[1][0]}, into=({', '.join(args[2])}))"
        if kind == "at":
            return at_text(e, self.text, number_text)
        if kind == "scan":
            return f"{args[0]}({self.text(args[1])}, {args[2][0]}{args[3]})"
        if kind == "rename":
            return self.renamed(self.text(args[0]), dict(args[1]), args[0].free)
        return self.called(CALLED[kind], *args)

    def called(self, function: str, *args: Tree | str | tuple[str, ...]) -> str:
        words = []
        for arg in args:
            if isinstance(arg, Tree):
                words.append(self.text(arg))
            else:
                words += [arg] if isinstance(arg, str) else arg
        return f"{function}({', '.join(words)})"

    def renamed(self, inner: str, to: Mapping[str, str], axes: frozenset[str]) -> str:
        """Rename axes one at a time, never into a name still in use."""
        todo, there = dict(to), set(axes)
        while todo:
            old = next((o for o, new in todo.items() if new not in there), None)
            if old is None:  # a cycle
                old = next(iter(todo))
                aside = self.spare(old)
                todo[aside] = todo[old]
                todo[old] = aside
            new = todo.pop(old)
            inner = f"Rename({inner}, {old}, {new})"
            there = (there - {old}) | {new}
        return inner


def _least(e: Tree) -> Tree | None:
    """The smallest entries if ``e`` is the negative of Max(-x, N)."""
    if e.kind != "max":
        return None
    inner = e.args[0].args[0] if e.args[0].kind == "minus" else _least(e.args[0])
    return Tree("min", (inner, e.args[1]), e.free) if inner else None


def _holds(e: Expr) -> int:
    written = number_text(e)
    if e.is_Add:
        return SUM
    if e.is_Mul or written.startswith("-"):
        return PRODUCT
    return POWER if e.is_Pow and "**" in written else PRODUCT if "/" in written else WHOLE
