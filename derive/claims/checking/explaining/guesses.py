"""Guess edits that make a claim right by looking up needed values among known ones.

In: the values a claim needs at one point (``needs.py``), and the values known there (``known.py``).
Out: `GuessedEdit` records, in phases, the likely and cheap ones first. There is no list of typical
mistakes: values are compared with values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from operator import mul, truediv

from sympy import Dummy, Expr, Float, Integer, Mul, Rational, S

from derive.claims.checking.explaining.known import KnownValues, Multiple, joined, varying
from derive.claims.checking.explaining.needs import SCALES, Needs
from derive.claims.checking.explaining.written import Spot, WrittenClaim
from derive.claims.checking.numbers.arithmetic import Unevaluable
from derive.claims.checking.numbers.tables import UNDEFINED, Table, projection
from derive.language.array_node import ArrayNode
from derive.language.nodes import Sum, renamed
from derive.language.notation.definition import Definition
from derive.language.symbols import axes_of, is_constant, is_number_or_size, tensors_in

MOST_GUESSES = 60_000  # divided by the length of the claim
MOST_FACTORS = 6  # of a product in which two factors may be replaced
CLOSE = 1e-8  # relative; of float64
DECIMALS = 9  # of a number that is the same
# Numbers tried as a factor before functions of sizes.
SIMPLE = (1, -1, 2, -2, Rational(1, 2), Rational(-1, 2), 3, Rational(1, 3))
FACTOR, TERM, PROJECTION, ANOTHER = "factor", "term", "projection", "another"
# The effort to understand each kind, beyond its expression.
EFFORT = {FACTOR: 1, PROJECTION: 1, TERM: 3, ANOTHER: 3}
ITSELF = Dummy("itself", real=True)


@dataclass(frozen=True)
class GuessedEdit:
    """An edit at ``spot``: ``number * rest`` is a missing 'factor', a missing 'term', the
    'projection' to subtract, or 'another' value in place of ``old``. In ``rest``, `ITSELF` stands
    for the value at the spot.
    """

    spot: Spot
    kind: str
    number: Expr
    rest: Expr
    old: Expr
    cost: int

    @property
    def key(self) -> tuple:
        """A key shared by edits that scale a product and edits that scale one of its factors."""
        spot, number = self.spot, round(float(self.number), DECIMALS)
        place = spot.holder if self.kind == FACTOR and spot.uses == 1 else spot
        old = None if self.kind == FACTOR else self.old
        return self.kind, place, number, self.rest, self.cost, old

    @property
    def by(self) -> Expr:
        return self.number * self.rest.xreplace({ITSELF: self.spot.node})

    @property
    def value(self) -> Expr:
        """The expression that replaces the one at the spot."""
        node = self.spot.node
        if self.kind == FACTOR:
            return node * self.by
        if self.kind == ANOTHER:
            return self.by if self.old == node else node / self.old * self.by
        return node + self.by


class Guesses:
    """Edits of one claim, guessed in float64."""

    def __init__(self, needs: Needs, known: KnownValues, definition: Definition):
        self.needs, self.known, self.definition = needs, known, definition
        self.written: WrittenClaim = needs.written
        self.home = needs.of.home
        self.spots: list[tuple[Spot, Table]] = []
        self.summed: list[Spot] = []  # spots whose needed value is unknown

    def phases(self) -> Iterator[Iterator[GuessedEdit]]:
        yield self._of_one_value()
        yield self._of_sums()
        yield self._one_by_one()
        yield self._of_two_values()

    # Spots whose needed entries are known

    def _of_one_value(self) -> Iterator[GuessedEdit]:
        """Edits of one value: a factor, a term or another value."""
        for spot in self.written.spots:
            if not axes_of(spot.node) and is_number_or_size(spot.node):
                continue
            factors, is_linear = self.needs.factors(spot)
            if factors is None:
                self.summed.append(spot)
                continue
            more = 0 if is_linear else 1
            if None in factors.values():
                yield from self._of_some(spot, factors)
                continue
            table = varying(Table(self.home, factors))
            self.spots.append((spot, table))
            if table.axes and self._is_summed(spot):
                self.summed.append(spot)
            for known in self.known.multiples(table):
                yield self._edit(spot, FACTOR, known, more)
            yield from self._values(spot, table, self.known.multiples, more)
            yield from self._two_factors(spot, table)

    def _is_summed(self, spot: Spot) -> bool:
        """Whether a reduction or a reindexing lies between the spot and the claim."""
        marked = self.written.with_other(spot, spot.node * SCALES[0])
        return any(node.has(SCALES[0]) for node in marked.atoms(ArrayNode))

    def _of_some(self, spot: Spot, factors) -> Iterator[GuessedEdit]:
        """Factors for spots on which some entries do not depend, as in a branch of a choice."""
        there = {i: v for i, v in factors.items() if v is not None}
        for e, table in ((S.One, Table((), {(): float(1)})), *self.known.singles):
            if set(table.axes) <= set(self.home):
                project = projection(self.home, table.axes)
                pairs = [(v, table.entries[project(i)]) for i, v in there.items()]
                number = pairs[0][0] / pairs[0][1] if pairs[0][1] else 0
                if number and all(abs(v - number * b) < CLOSE * abs(v) for v, b in pairs):
                    yield self._edit(spot, FACTOR, Multiple(number, e))

    def _values(
        self, spot: Spot, factors: Table, look: Callable, more: int = 0
    ) -> Iterator[GuessedEdit]:
        """Edits that replace the value at the spot, or add a term to it."""
        value = self._value(spot.node)
        if value is not None:
            wanted = joined(factors, value, mul)
            added = joined(factors, value, lambda f, v: (f - 1) * v)
            for kind, table in ((ANOTHER, wanted), (TERM, added)):
                for known in look(table) if table else ():
                    yield self._edit(spot, kind, known, more)

    def _two_factors(self, spot: Spot, factors: Table) -> Iterator[GuessedEdit]:
        """Edits that replace two factors of the product at the spot."""
        parts = [a for a in spot.node.args if axes_of(a)] if isinstance(spot.node, Mul) else []
        for a, b in combinations(parts[:MOST_FACTORS], 2):
            value = self._value(a * b)
            wanted = value and joined(factors, value, mul)
            for known in self.known.multiples(wanted) if wanted else ():
                yield self._edit(spot, ANOTHER, known, old=a * b)

    def _value(self, node: Expr) -> Table | None:
        return self.known.table(node) if axes_of(node) <= set(self.home) else None

    def _of_two_values(self) -> Iterator[GuessedEdit]:
        """Edits to a product or a quotient of two values."""
        for spot, factors in self.spots:
            for known in self.known.of_two(factors):
                yield self._edit(spot, FACTOR, known)
            yield from self._values(spot, factors, self.known.of_two)

    # Sums

    def _of_sums(self) -> Iterator[GuessedEdit]:
        """A sum along another axis, an added sum, and a transposed matrix."""
        for spot in self.written.spots:
            for other in (*_along_others(spot.node), *self._transposed(spot.node)):
                if other != spot.node and self._fits(spot, other):
                    yield self._edit(spot, ANOTHER, Multiple(1, other), -self._size(other))
        for spot, factors in self.spots:
            yield from self._less_a_sum(spot, factors)

    def _less_a_sum(self, spot: Spot, factors: Table) -> Iterator[GuessedEdit]:
        """``v + a*Sum(b*v)``: the projection that a normalization subtracts."""
        value = self._value(spot.node)
        if value is None or not any(t.role == "adjoint" for t in tensors_in(spot.node)):
            return
        added = joined(factors, value, lambda f, v: (f - 1) * v)
        along = [axis for axis in self.home if axis in axes_of(spot.node)]
        for over in [[a] for a in along] + ([along] if len(along) > 1 else []):
            for b in (S.One, *self.known.tables) if added else ():
                if not axes_of(b) <= set(self.home):
                    continue
                total = self.known.table(Sum.over(b * spot.node, over))
                ratio = total and joined(added, total, truediv)
                for known in self.known.multiples(ratio) if ratio else ():
                    by = known.e * Sum.over(b * ITSELF, over)
                    is_own = b == known.e or (is_constant(known.e) and is_constant(b))
                    kind = PROJECTION if is_own and known.number < 0 else TERM
                    less = 1 - self._size(by) + self._size(known.e) + self._size(b)
                    less = less if kind == PROJECTION else 2 * self._size(spot.node)  # twice
                    yield self._edit(spot, kind, Multiple(known.number, by), less)

    def _transposed(self, node: Expr) -> Iterator[Expr]:
        """A square matrix transposed."""
        size = self.definition.size
        for a, b in combinations(sorted(axes_of(node), key=str), 2):
            if size(a) == size(b):
                yield renamed(node, {a: b, b: a})

    # Guesses

    def _one_by_one(self) -> Iterator[GuessedEdit]:
        """Test factors and other values one by one, under a sum or in a function, where the needed
        value is unknown.
        """
        left = MOST_GUESSES / self._size(self.written.whole)
        for spot in self.summed:
            for e, table in self.known.tables.items():
                guesses = [(FACTOR, e)] + [(FACTOR, 1 / e)] * all(table.entries.values())
                guesses += [(ANOTHER, e)] * (axes_of(e) == axes_of(spot.node) and e != spot.node)
                for kind, guess in guesses:
                    edit = self._edit(spot, kind, Multiple(1, guess))
                    left -= 1
                    if left < 0:
                        return
                    if self._fits(spot, edit.value):
                        yield edit

    def _fits(self, spot: Spot, other: Expr) -> bool:
        new = self.written.with_other(spot, other)
        if not axes_of(new) <= set(self.home):
            return False
        try:
            got = self.needs.entries(new)
        except (Unevaluable, ArithmeticError):
            return False
        near = CLOSE * self.needs.scale
        return UNDEFINED not in got.values() and all(
            abs(got[i] - v) <= near for i, v in self.needs.right.items()
        )

    def _size(self, e: Expr) -> int:
        return self.written.size(e)

    def _edit(
        self, spot: Spot, kind: str, known: Multiple, more: int = 0, old: Expr | None = None
    ) -> GuessedEdit:
        number = _number(known.number)
        effort = EFFORT[kind] if spot.node.args else 1
        cost = effort + more + 2 * isinstance(number, Float) + spot.uses - 1 + self._size(known.e)
        return GuessedEdit(spot, kind, number, known.e, old or spot.node, cost)


def _number(number: float) -> Expr:
    """A simple number equal to ``number``, if there is one."""
    near = (simple for simple in SIMPLE if abs(number - simple) < CLOSE * abs(simple))
    found = next(near, None)
    return Float(number) if found is None else Integer(found) if isinstance(found, int) else found


def _along_others(node: Expr) -> Iterable[Expr]:
    """The same sum along other axes, or without summing."""
    if isinstance(node, Sum):
        axes = sorted(axes_of(node.operand), key=str)
        for chosen in (*([a] for a in axes), axes):
            yield Sum.over(node.operand, chosen)
        yield node.operand
