"""Signs that follow from how a value is made: the proofs of ``signs`` in ``Grad.v``, once more.

In: a `Definition`. Out: `Signs`, "positive" or "nonnegative" for the statements that surely are.
"""

from __future__ import annotations

from collections.abc import Callable

from sympy import Add, Expr, Mul, Number, NumberSymbol, Piecewise, Pow, cosh, exp

from derive.language.nodes import Sum
from derive.language.notation.definition import Definition
from derive.language.symbols import Axis, Tensor

POSITIVE, NONNEGATIVE = "positive", "nonnegative"


class Signs:
    """``named`` has the signs of scalars and statements."""

    def __init__(self, definition: Definition):
        self.needs = tuple(need.gts - need.lts for need in definition.needs)
        self.named: dict[str, str] = {}
        for tensor, _ in definition.scalars:
            if tensor.is_positive or tensor.is_nonnegative:
                self.named[tensor.name] = POSITIVE if tensor.is_positive else NONNEGATIVE
        for statement in definition.statements:
            sign = self.of(statement.expression)
            if sign:
                self.named[statement.name] = sign

    def of(self, e: Expr) -> str:
        """The sign that ``e`` surely has, or ''."""
        if e in self.needs:
            return POSITIVE
        rule = next((RULES[kind] for kind in type(e).__mro__ if kind in RULES), None)
        return rule(self, e) if rule else ""


def _weakest(signs: list[str]) -> str:
    return "" if "" in signs else POSITIVE if set(signs) == {POSITIVE} else NONNEGATIVE


def _of_sum(known: Signs, e: Expr) -> str:
    signs = [known.of(a) for a in e.args]
    return POSITIVE if _weakest(signs) and POSITIVE in signs else _weakest(signs)


def _of_power(known: Signs, e: Expr) -> str:
    if not e.exp.is_number:
        return ""
    base = known.of(e.base)
    if base == POSITIVE:
        return POSITIVE
    return NONNEGATIVE if e.exp > 0 and (base or e.exp.is_even) else ""


def _of_number(known: Signs, e: Expr) -> str:
    return POSITIVE if e > 0 else NONNEGATIVE if e == 0 else ""


def _surely(known: Signs, e: Expr) -> str:
    return POSITIVE


RULES: dict[type, Callable[[Signs, Expr], str]] = {
    Tensor: lambda known, e: known.named.get(e.name, ""),
    Axis: _surely,
    exp: _surely,
    cosh: _surely,
    Number: _of_number,
    NumberSymbol: _of_number,
    Sum: lambda known, e: known.of(e.operand),
    Pow: _of_power,
    Add: _of_sum,
    Mul: lambda known, e: _weakest([known.of(a) for a in e.args]),
    Piecewise: lambda known, e: _weakest([known.of(value) for value, _ in e.args]),
}
