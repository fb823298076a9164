"""Quick refutation by numbers: two expressions that differ modulo a prime are not equal."""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from math import prod

from sympy import Add, Expr, Mul, Pow, Symbol

from derive.proof.zero.indicator import Indicator

PRIME = 2**61 - 1  # so large that unlike numbers are never equal modulo it by chance


class Fingerprints:
    """Of expressions in indeterminates: ``definitions`` has those that stand for a value; of
    ``signs`` and ``conditions`` more is known, and those that are 1 unless a number is 0 are
    ``ones``.
    """

    def __init__(
        self,
        definitions: Mapping[Symbol, Expr],
        signs: Collection[Symbol],
        conditions: Collection[Symbol],
        ones: Collection[Symbol] = (),
    ):
        self.definitions, self.signs, self.conditions = definitions, signs, conditions
        self.ones = ones
        self.marks: dict[Expr, int | None] = {}
        self.picked: dict[str, int] = {}  # the place of the indicator that is 1
        self.random = random.Random(0)

    @staticmethod
    def may_be_equal(mark: tuple, other: tuple) -> bool:
        """Whether no number tells two lists of arguments apart."""
        pairs = zip(mark, other, strict=False)
        return len(mark) == len(other) and all(a is None or b is None or a == b for a, b in pairs)

    def of(self, e) -> int | None:
        """The value modulo a prime, with a random number for every symbol, one that it may have:
        equal for what is equal. None where that cannot be said.

        With roots unlike things may be equal, but what is met here is written in one way; at worst
        two symbols stand for one thing, and a proof fails that could have succeeded.
        """
        if not isinstance(e, Expr):
            return None
        if e not in self.marks:
            self.marks[e] = self._marked(e)
        return self.marks[e]

    def _marked(self, e: Expr) -> int | None:
        if e.is_Rational:
            return e.p * pow(e.q, -1, PRIME) % PRIME if e.q % PRIME else None
        if e in self.definitions:
            return self.of(self.definitions[e])
        if e.is_Symbol:
            return self._drawn(e)
        if not isinstance(e, (Add, Mul, Pow)):
            return None
        if isinstance(e, Pow):
            base = self.of(e.base)
            return None if not base or not e.exp.is_Integer else pow(base, int(e.exp), PRIME)
        parts = [self.of(arg) for arg in e.args]
        if None in parts:
            return None
        result = sum(parts) if isinstance(e, Add) else prod(parts)
        return result % PRIME

    def _drawn(self, symbol: Symbol) -> int:
        """A number that ``symbol`` may stand for: of the indicators of a group one is 1 at most."""
        if symbol in self.signs:
            return self.random.choice((1, PRIME - 1))
        if symbol in self.ones:
            return 1
        if isinstance(symbol, Indicator):
            return int(self.picked.setdefault(symbol.group, symbol.place) == symbol.place)
        return self.random.randrange(2 if symbol in self.conditions else PRIME)
