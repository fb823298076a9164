"""Data for which a condition takes another value: on both sides of every threshold, at it, and far
beyond.

In: a `Question`, sizes, and which data may change. Out: data, each with claim and gradient.

A claim that adds ``relu(x - 50)``, or that asks for ``x > 1e-30`` in place of ``x > 0``, is the
gradient at all simple data and at all random ones. What is compared, in the forward, in its
gradients and in the claim, changes its sign somewhere, however: so the data are moved along lines,
one entry, or all of a tensor, by ``s`` or by the factor ``s``, and the places on a line are found
at which something compared is 0: exactly, where it is linear there. Between two neighbouring ones
every condition stays as it is, so that one number of each gap does, beside the places themselves.
Data in which a condition comes out as it never did are moved on from there: ``dy > 100`` may count
only where ``x > 3``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from sympy import Expr, Integer, Rational
from sympy import Max as PointwiseMax
from sympy import Min as PointwiseMin
from sympy.core.relational import Relational

from derive.claims.checking.numbers.arithmetic import (
    FAR_EXPONENT,
    Arithmetic,
    Floating,
    Unevaluable,
)
from derive.claims.checking.numbers.comparison import Comparison
from derive.claims.checking.numbers.evaluation import Evaluation
from derive.claims.checking.numbers.exact_numbers import IN_EXPONENTIALS, Exact
from derive.claims.checking.numbers.points import Values
from derive.claims.checking.numbers.roots import (
    between,
    beyond,
    is_zero,
    known,
    logarithm_beyond,
    narrowed,
)
from derive.claims.checking.numbers.search import DataSearch
from derive.claims.checking.numbers.tables import BELOW, UNDEFINED, Index
from derive.language.choices import as_choices
from derive.language.functions import KINKED
from derive.language.symbols import MINUS_INFINITY, Tensor, is_number_or_size

# How far along a line to look on both sides, and in between for sign changes that cancel.
STEPS = (
    *map(Integer, (1, 2, 3, 10, 100, 10**4, 10**8, 10**16, 10**33)),
    *(Rational(1, n) for n in (10, 10**3, 10**8, 10**33)),
)
GRID = tuple(sorted((*STEPS, Integer(0), *(-s for s in STEPS))))
MOST_ROOTS = 6  # along one line
MOST_DEPTH = 3  # conditions to satisfy jointly, each by another tensor

SET, SHIFT, SCALE = "set", "shift", "scale"
Place = tuple[int, Index]  # (compared expression, entry)


@dataclass(frozen=True)
class Ray:
    """A line of data: the entries ``places`` of a tensor are ``s``, increased by ``s``, or
    multiplied by ``s``.
    """

    base: Values
    tensor: Tensor
    places: tuple[Index, ...]
    kind: str

    def at(self, s: Expr) -> Values:
        entries = self.base[self.tensor.name]
        moved = {SET: lambda e: s, SHIFT: lambda e: e + s, SCALE: lambda e: e * s}[self.kind]
        changed = {i: moved(entries[i]) for i in self.places}
        return {**self.base, self.tensor.name: {**entries, **changed}}


@dataclass(frozen=True)
class Evaluated:
    """Data, with claim and gradient in an arithmetic."""

    values: Values
    arithmetic: Arithmetic
    comparison: Comparison


def compared(formulas: Iterable[Expr]) -> list[Expr]:
    """Expressions compared with 0: ``x - 3`` for ``x > 3``, ``x`` for ``Abs(x)``; none in sizes
    alone.
    """
    found: dict[Expr, None] = {}
    for e in formulas:
        nodes = as_choices(e).atoms(Relational, *KINKED, PointwiseMax, PointwiseMin)
        for node in sorted(nodes, key=str):
            if isinstance(node, Relational):
                sides = [] if node.has(MINUS_INFINITY) else [node.lhs - node.rhs]
            elif isinstance(node, (PointwiseMax, PointwiseMin)):
                sides = [a - b for i, a in enumerate(node.args) for b in node.args[:i]]
            else:
                sides = [node.args[0]]
            found |= dict.fromkeys(s for s in sides if not is_number_or_size(s))
    return list(found)


class Thresholds:
    """Searches for such data at some sizes; ``search`` has the sizes and the settled values."""

    def __init__(self, search: DataSearch):
        self.search, self.question = search, search.question
        self.compared = compared(self.question.formulas())
        sources = {t.name for t in self.question.read_by(self.compared)}
        self.moved = [
            t for t in search.free if t.name in sources and t.role not in ("label", "kept")
        ]
        self.is_exponential = any(e.has(*IN_EXPONENTIALS) for e in self.question.formulas())
        self.met: set[frozenset] = set()

    def around(self, bases: Sequence[Values]) -> Iterator[Evaluated]:
        """The data reached from each of ``bases``, with claim and gradient. Each base has an equal
        share of the budget.
        """
        budget = self.search.budget
        share = budget.left // (len(bases) + 1)
        open_bases = [(base, 1, budget.left - share * (k + 1)) for k, base in enumerate(bases)]
        while open_bases:
            base, depth, kept = open_bases.pop(0)
            for values in self._data(base, kept):
                found = self._compared_at(values) if self._is_allowed(values) else None
                if found is not None:
                    yield found
                    if depth < MOST_DEPTH and self._is_new(values):
                        open_bases.append((values, depth + 1, 0))

    def _data(self, base: Values, kept: int) -> Iterator[Values]:
        """Data at which conditions change, along lines through ``base``, until ``kept`` of the
        budget is left.
        """
        for line in self._lines(base):
            if self.search.budget.left < kept:
                return
            for values in map(line.at, self._numbers(line)):
                if self.search.budget.left < kept:
                    return
                yield values

    def _lines(self, base: Values) -> Iterator[Ray]:
        """Lines for each tensor that comparisons depend on: one entry, all entries, a factor."""
        for t in self.moved:
            yield Ray(base, t, tuple(self.search.places(t)[-1:]), SET)
        for t in self.moved:
            places = tuple(self.search.places(t))
            if len(places) > 1:
                yield Ray(base, t, places, SHIFT)
                yield Ray(base, t, places, SCALE)

    def _is_allowed(self, values: Values) -> bool:
        """Whether scalars are in their domains, and positive if their default is."""
        definition, sizes = self.search.definition, self.search.sizes
        scalars = {t.name: values[t.name][()] for t, _ in definition.scalars}
        defaults = definition.defaults_at(sizes)
        meant = all(scalars[name] > 0 for name, default in defaults.items() if default > 0)
        return meant and definition.permits(scalars, sizes)

    def _compared_at(self, values: Values) -> Evaluated | None:
        """Evaluated exactly if possible, so that a threshold itself is hit."""
        budget = self.search.budget
        for arithmetic in (Exact(), Floating(FAR_EXPONENT)):
            try:
                point = self.search.point(values)
                found = self.question.compared(point, arithmetic, max(budget.left, 0))
            except Unevaluable:
                budget.spend(0)
                continue
            budget.spend(found.operations)
            return Evaluated(values, arithmetic, found) if found.is_defined else None
        return None

    def _is_new(self, values: Values) -> bool:
        """Whether the conditions take a combination of values not seen before."""
        outcome = frozenset((place[0], side) for place, side in self._sides(values).items())
        is_new = outcome not in self.met
        self.met.add(outcome)
        return is_new

    # Along a line

    def _numbers(self, line: Ray) -> list[Expr]:
        """Numbers beyond the sign changes along a line, one in each gap between them, and the
        changes themselves.
        """
        roots = sorted(self._roots(line))
        if not roots:
            return []
        gaps = [between(a, b) for a, b in pairwise(roots)]
        around = [*beyond(roots[-1], 1), *gaps, *beyond(roots[0], -1), *roots]
        if self.is_exponential:  # 1 - tanh(100)**2 is 0 up to the 87th digit
            around += [*logarithm_beyond(roots[-1], 1), *logarithm_beyond(roots[0], -1)]
        return around

    def _roots(self, line: Ray) -> list[Expr]:
        """Roots of the compared expressions along a line: nearest to 0 first, one per expression
        before a second of any.
        """
        gaps = []
        for (low, before), (high, after) in pairwise((s, self._sides(line.at(s))) for s in GRID):
            for place in before.keys() & after.keys():
                if before[place] == 0 or before[place] * after[place] < 0:
                    gaps.append((min(abs(low), abs(high)), place, low, high))
        seen: Counter = Counter()
        ranked = []
        for near, place, low, high in sorted(gaps):
            ranked.append((seen[place[0]], near, place, low, high))
            seen[place[0]] += 1
        found: dict[Expr, None] = {}
        for _, _, place, low, high in sorted(ranked):
            if len(found) == MOST_ROOTS or self.search.budget.left < 0:
                break
            found[self._root(line, place, low, high)] = None
        return list(found)

    def _values(self, values: Values, arithmetic: Arithmetic, of: Sequence[int]) -> dict:
        """Entries of the compared expressions at some data, without undefined ones."""
        evaluation = Evaluation(self.question.chain, self.search.point(values), arithmetic)
        found = {}
        for k in of:
            with suppress(Unevaluable):
                for index, value in evaluation.table(self.compared[k]).entries.items():
                    if value is not UNDEFINED and value is not BELOW:
                        found[k, index] = value
        self.search.budget.spend(evaluation.operations)
        return found

    def _sides(self, values: Values) -> dict[Place, int]:
        floating = Floating()
        found = self._values(values, floating, range(len(self.compared)))
        return {place: (value > 0) - (value < 0) for place, value in found.items()}

    def _root(self, line: Ray, place: Place, low: Expr, high: Expr) -> Expr:
        """A root between two numbers on the line: exact if the expression is linear there or zero
        at a known number, else approximate.
        """

        def at(s: Expr, arithmetic: Arithmetic):
            return self._values(line.at(s), arithmetic, place[:1]).get(place)

        if at(low, Floating()) == 0:
            return low
        root = self._linear_root(lambda s: at(s, Exact()), low, high)
        if root is not None:
            return root
        low, high = narrowed(lambda s: at(s, Floating()), low, high)
        root = self._linear_root(lambda s: at(s, Exact()), low, high)
        if root is not None:
            return root
        irrational = Exact(irrational=True)
        return next((s for s in known(low, high) if is_zero(at(s, irrational))), low)

    def _linear_root(self, at: Callable, low: Expr, high: Expr) -> Expr | None:
        """The root of ``at``, if it is linear between the two numbers."""
        ends = [at(low), at(high)]
        if any(type(value) is not Fraction for value in ends) or ends[0] == ends[1]:
            return None
        first, last = (Rational(value.numerator, value.denominator) for value in ends)
        root = low - first * (high - low) / (last - first)
        return root if at(root) == 0 else None
