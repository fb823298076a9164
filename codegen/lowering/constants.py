"""Irrational numbers by their formulas: readers know sqrt(2/pi), and not 0.797884..."""

from __future__ import annotations

from sympy import Expr, Mul, Pow, S

from codegen.program.values import Constant
from derive.language.errors import QuestionError
from derive.language.float_range import IN_LOGARITHMS, unheld_number


def constant(number: Expr) -> Constant:
    """A number by its formula, with its roots combined: sqrt(2/pi) is sqrt(2)/sqrt(pi)."""
    roots = [f for f in Mul.make_args(number) if isinstance(f, Pow) and abs(f.exp) == S.Half]
    if len(roots) < 2:
        return Constant(str(number), float(number))
    inside = Mul(*(root.base ** (2 * root.exp) for root in roots))
    rest = Mul(*(f for f in Mul.make_args(number) if f not in roots))
    factor, divisor = rest.as_numer_denom()
    before = "" if factor == 1 else "-" if factor == -1 else f"{factor}*"
    after = "" if divisor == 1 else f"/{divisor}" if divisor.is_Atom else f"/({divisor})"
    return Constant(f"{before}sqrt({inside}){after}", float(number))


def check_held(number: Expr) -> None:
    """Raise `QuestionError` if a number of the derivation cannot be computed with."""
    problem = unheld_number(number)
    if problem:
        raise QuestionError(f"the forward or its gradient has {problem}", IN_LOGARITHMS)
