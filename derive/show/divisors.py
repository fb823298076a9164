"""Explain the sizes that a closed form divides by.

A student meets ``n/(n - 1)`` in a published gradient and asks. The answer is in the forward: a
statement that divides by ``n - 1``. With ``1/n`` taken out of the bracket the closed form reads as
it is published.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sympy import Add, Expr, Mul

from derive.gradient.closing.closed_form import ClosedStatement
from derive.language.divisors import size_divisors
from derive.language.formulas.words import Words, joined
from derive.language.notation.definition import Definition
from derive.language.symbols import Axis
from derive.show.document import Block, Equation, Equations, Prose


def divisors_explained(
    definition: Definition, statements: Iterable[ClosedStatement]
) -> Iterator[Block]:
    """Explain every bracket whose terms stand over different sizes: the line of the forward that
    divides by them, and the same with the plain size taken out.
    """
    for statement in statements:
        for bracket in statement.expression.atoms(Add):
            plain, others = _divisors(bracket)
            if len(plain) == 1 and others:
                (size,) = plain
                reasons = joined((_source(definition, size, d) for d in others), "; ")
                outside = (1 / size, " stands outside of the bracket:")
                yield Prose(("As it is often published, ", *reasons, "; ", *outside))
                published = taken_out(statement.expression, bracket, size)
                yield Equations((Equation(statement.tensor, published),), steps=True)


def taken_out(e: Expr, bracket: Add, size: Axis) -> Expr:
    """``e`` with ``1/size`` in front of its factor ``bracket``."""
    inside = Add(*(size * term for term in bracket.args))
    return e.xreplace({bracket: Mul(1 / size, inside, evaluate=False)})


def _divisors(bracket: Add) -> tuple[list[Expr], list[Expr]]:
    """The sizes that its terms stand over, and what else they divide by."""
    divisors = {d for term in bracket.args for d in size_divisors(term)}
    found = sorted(divisors, key=str)
    return [d for d in found if isinstance(d, Axis)], [d for d in found if not isinstance(d, Axis)]


def _source(definition: Definition, size: Axis, divisor: Expr) -> Words:
    """The lines of the forward that divide by it."""
    lines = [s.tensor for s in definition.statements if divisor in size_divisors(s.expression)]
    verb = " divides" if len(lines) == 1 else " divide"
    return ("with ", size / divisor, " because ", *joined(lines, " and "), f"{verb} by ", divisor)
