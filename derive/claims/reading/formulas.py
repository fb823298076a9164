"""Entrywise formulas as SymPy expressions, with bounds on their size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import add, mul, neg, sub, truediv

import sympy
from sympy import And, Basic, Eq, Expr, Ge, Gt, Le, Lt, Ne, Not, Or, Pow, Rational

from derive.claims.reading import literal
from derive.claims.reading.operations.choosing import chosen, related
from derive.claims.reading.refusals import Refusal
from derive.claims.reading.values import Extent, sum_of
from derive.language.functions import function_named, in_known_functions
from derive.language.symbols import MINUS_INFINITY
from derive.language.torch_ops.trees import Tree

RELATIONS = {"<": Lt, "<=": Le, ">": Gt, ">=": Ge, "==": Eq, "!=": Ne}
SIGNS: dict[str, Callable] = {"sum_of": add, "difference": sub, "product": mul, "minus": neg}
SIGNS |= {"quotient": truediv, "power": Pow, "and": And, "or": Or, "not": Not}
AS_WRITTEN = SIGNS | {"quotient": literal.divided, "power": literal.raised}


def in_sympy(e: Tree, known: Mapping[str, Expr], as_written: bool = False) -> Basic:
    if e.kind == "number":
        return MINUS_INFINITY if e.args[0] == -sympy.oo else e.args[0]
    if e.kind == "tensor":
        return known[e.args[0]]
    if e.kind == "truth":
        return sympy.true if e.args[0] else sympy.false
    if as_written and e.kind == "quotient" and e.args[1].kind == "call":
        function, *inner = e.args[1].args
        if function == "sqrt":  # one power, undefined at 0
            above, below = (in_sympy(part, known, True) for part in (e.args[0], *inner))
            return above * literal.raised(below, Rational(-1, 2))
    parts = [in_sympy(arg, known, as_written) for arg in e.args if isinstance(arg, Tree)]
    if e.kind == "compared":
        if any(part.is_comparable is False and part.is_number for part in parts):
            raise Refusal("it compares a value that is not a real number", "give it others")
        return related(RELATIONS[e.args[0]], *parts)
    if e.kind == "choice":
        return chosen(*zip(parts[:-1:2], parts[1::2], strict=True), (parts[-1], True))
    if e.kind == "call":
        if as_written and e.args[0] == "log":
            return literal.logarithm(*parts)
        if as_written and e.args[0] == "sqrt":
            return literal.raised(*parts, Rational(1, 2))
        return in_known_functions(function_named(e.args[0])(*parts))
    return (AS_WRITTEN if as_written else SIGNS)[e.kind](*parts)


def extent_of(e: Tree, known: Mapping[str, Extent]) -> Extent:
    if e.kind == "tensor":
        return known[e.args[0]]
    parts = [extent_of(arg, known) for arg in e.args if isinstance(arg, Tree)]
    if not parts:
        return Extent()
    if e.kind == "product":
        return parts[0] * parts[1]
    if e.kind == "quotient":
        return parts[0] * parts[1].inside()
    if e.kind == "power":
        power = e.args[1].args[0] if e.args[1].kind == "number" else None
        whole = power is not None and power.is_Integer and power.is_nonnegative
        return parts[0] ** int(power) if whole else sum_of(parts).inside()
    return sum_of(parts).inside() if e.kind != "minus" else parts[0]
