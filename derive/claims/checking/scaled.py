"""Intermediate gradients that are a constant multiple of the true ones, by the author's convention.

In: a verdict on a function, and its reading. Out: candidate factors of intermediate gradients. ``dZ
= A - Y`` is M times the gradient of a mean over M, and ``dW = dZ @ X.T/m`` compensates: then ``dZ``
is not wrong, and a later error is not blamed on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod

from sympy import Expr, Integer, Rational

from derive.claims.checking.answers import Answers
from derive.claims.checking.ground import EQUAL, Ground, for_any_upstream
from derive.claims.checking.judging import RIGHT, given_upstream
from derive.claims.checking.numbers.arithmetic import Unevaluable
from derive.claims.checking.numbers.comparison import difference_at
from derive.claims.reading import Claim, Reading

CONSTANTS = (Integer(1), Integer(2), Rational(1, 2), Integer(-1))  # times powers of sizes
MOST_AXES = 3  # powers of up to this many sizes are tried


def scaled_on_the_way(
    verdict: Answers, reading: Reading, ground: Ground
) -> Iterator[Mapping[str, Expr]]:
    """Factors by name: for a gradient found to be scaled, and for those that follow from it."""
    right = {a.of.name for a in verdict.answers if a.outcome in RIGHT and not a.inherits}
    inner = [
        c
        for c in reading.claims
        if c.misaligned is None and not {c.of.name, f"d{c.of.name}"} & {*right, *reading.returned}
    ]
    if not reading.returned or verdict.right:
        return
    found: dict[str, Expr] = {}
    for claim in inner:
        number = _number(claim, reading, ground)
        if number is not None:
            found[f"d{claim.of.name}"] = number
    rest = [f"d{c.of.name}" for c in inner if f"d{c.of.name}" not in found]
    if rest and len({*found.values()}) == 1:
        yield {**found, **dict.fromkeys(rest, *{*found.values()})}
    if found:
        yield found


def faults_in(verdict: Answers) -> tuple[int, int]:
    """The number of lines that are wrong on their own, and of those that are not right
    as written.
    """
    wrong = sum(a.outcome == "wrong" and not a.inherits for a in verdict.answers)
    return wrong, sum(a.inherits or a.outcome not in RIGHT for a in verdict.answers)


def _number(claim: Claim, reading: Reading, ground: Ground) -> Expr | None:
    """The constant multiple of the gradient that a claim is; None if it is 1 or none is found."""
    e, upstream = claim.actual, given_upstream(reading)
    if upstream is not None:
        e = for_any_upstream(e, ground.chain, upstream)
    sizes = ground.original.independent_axes[:MOST_AXES]
    evaluations = ground.names.evaluations
    for powers, constant in product(product((0, 1, -1), repeat=len(sizes)), CONSTANTS):
        number = constant * prod(n**p for n, p in zip(sizes, powers, strict=True))
        try:
            if difference_at(evaluations[:1], claim.of, e / number) < EQUAL and (
                difference_at(evaluations, claim.of, e / number) < EQUAL
            ):
                return number if number != 1 else None
        except (Unevaluable, KeyError):
            return None
    return None
