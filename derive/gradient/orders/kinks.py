"""Smooth functions that are computed by parts with a kink, as they are differentiated again.

A closed form computes ``log(exp(a) + exp(b))`` as ``M + log(1 + exp(-|a - b|))``, M the larger of
the two. Both parts have a kink where a = b; the sum has none. Who differentiates them one by one
takes a side of each there, and has to take the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sympy import Abs, Dummy, Expr, Piecewise, exp, expand, log

from derive.gradient.range.exponents import is_extreme


def made_smooth(expressions: Sequence[Expr], beside: Iterable[Expr] = ()) -> list[Expr]:
    """The expressions, with ``log(w + w*exp(-|a - b|))`` as ``log(w*exp(a) + w*exp(b)) - M``, and
    ``exp(-|a - b|)`` elsewhere as ``exp(a + b - 2*M)``, and every larger or smaller of a and b by
    the one M, which may stand in those ``beside``.

    A magnitude beside which there is no such choice is left as it is: it has a kink of its own.
    """
    choices = _Choices(expressions, beside)
    return [choices.by_one(choices.in_logarithms(e)) for e in expressions]


@dataclass(frozen=True)
class _Extreme:
    """``choice`` is the larger of ``a`` and ``b`` or, where not ``largest``, the smaller."""

    choice: Expr
    a: Expr
    b: Expr
    largest: bool

    def is_apart_by(self, difference: Expr) -> bool:
        return any(expand(self.a - self.b - sign * difference) == 0 for sign in (1, -1))

    def by(self, other: _Extreme) -> Expr:
        """The same choice, made as ``other`` makes it between values that are as far apart."""
        larger = other.choice if other.largest else other.a + other.b - other.choice
        larger += (self.a + self.b - other.a - other.b) / 2
        return expand(larger if self.largest else self.a + self.b - larger)

    @property
    def outer(self) -> tuple[Expr, Expr, Expr]:
        """a, b and the larger of them; with their signs changed where ``choice`` is the smaller."""
        return (self.a, self.b, self.choice) if self.largest else (-self.a, -self.b, -self.choice)


class _Choices:
    """The choices in some expressions and in those ``beside``, one for each pair of values whose
    distance is damped.
    """

    def __init__(self, expressions: Iterable[Expr], beside: Iterable[Expr]):
        expressions = list(expressions)
        self.extremes = _extremes([*expressions, *beside])
        damped = _in_order(d for e in expressions for d in e.atoms(exp) if _is_damped(d))
        self.by_pair: dict[Expr, Expr] = {}
        for pair in filter(None, map(self.between, damped)):
            for other in self.extremes:
                if isinstance(other.choice, Piecewise) and other.is_apart_by(pair.a - pair.b):
                    self.by_pair[other.choice] = other.by(pair)

    def between(self, damped: Expr) -> _Extreme | None:
        """The choice by which the two values of ``exp(-|a - b|)`` are told apart."""
        factor, magnitude = (-damped.args[0]).as_coeff_Mul()
        difference = factor * magnitude.args[0]
        return next((e for e in self.extremes if e.is_apart_by(difference)), None)

    def in_logarithms(self, e: Expr) -> Expr:
        return e.replace(lambda term: isinstance(term, log), self._smooth)

    def by_one(self, e: Expr) -> Expr:
        return e.xreplace(self.by_pair).replace(_is_damped, self._decided)

    def _smooth(self, term: Expr) -> Expr:
        for damped in _in_order(filter(_is_damped, term.atoms(exp))):
            extreme, place = self.between(damped), Dummy()
            argument = expand(term.args[0].xreplace({damped: place}))
            weight = argument.coeff(place, 0)
            if extreme is not None and expand(argument - weight * (1 + place)) == 0:
                a, b, larger = extreme.outer
                return log(weight * exp(a) + weight * exp(b)) - larger
        return term

    def _decided(self, damped: Expr) -> Expr:
        extreme = self.between(damped)
        if extreme is None or isinstance(extreme.choice, Abs):
            return damped
        a, b, larger = extreme.outer
        return exp(a + b - 2 * larger)


def _extremes(expressions: Iterable[Expr]) -> list[_Extreme]:
    """Choices first: these decide, rather than a magnitude."""
    choices: dict[Expr, _Extreme] = {}
    magnitudes: dict[Expr, _Extreme] = {}
    for e in expressions:
        for choice in _in_order(e.atoms(Piecewise)):
            for largest in (True, False):
                if len(choice.args) == 2 and is_extreme(choice, largest):
                    (a, _), (b, _) = choice.args
                    choices.setdefault(choice, _Extreme(choice, a, b, largest))
        for m in _in_order(e.atoms(Abs)):
            magnitudes.setdefault(m, _Extreme(m, m.args[0], -m.args[0], True))
    return [*choices.values(), *magnitudes.values()]


def _is_damped(e: Expr) -> bool:
    """Whether it is the exponential of a magnitude times a negative number."""
    if not isinstance(e, exp):
        return False
    factor, magnitude = (-e.args[0]).as_coeff_Mul()
    return factor.is_positive and isinstance(magnitude, Abs)


def _in_order(expressions: Iterable[Expr]) -> list[Expr]:
    return sorted({*expressions}, key=lambda e: e.sort_key())
