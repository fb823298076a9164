"""Look up expressions by value among the values of a forward.

In: an `Evaluation`, and expressions. Out: for given entries, the expressions that have them up to a
factor. Matches are guesses, made in float64 at one point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from operator import mul, truediv

from sympy import Expr, S, exp, log, sqrt, tanh

from derive.claims.checking.numbers.arithmetic import Unevaluable
from derive.claims.checking.numbers.evaluation import Evaluation
from derive.claims.checking.numbers.tables import BELOW, UNDEFINED, Index, Table, projection
from derive.language.symbols import Axis

CLOSE = 1e-8  # relative; of numbers of 16 digits
FAR = 1e100  # beyond this a power may overflow
MOST_IN_PAIRS = 24  # values
DECIMALS = 6  # of an entry, when looked up

# Common forms in which a formula uses a value.
FORMS: tuple[Callable[[Expr], Expr], ...] = (
    lambda e: e,
    lambda e: 1 / e,
    lambda e: e**2,
    lambda e: e**-2,
    lambda e: sqrt(e),
    lambda e: 1 / sqrt(e),
    lambda e: 1 - e,
    lambda e: 1 + e,
    lambda e: 1 / (1 - e),
    lambda e: 1 / (1 + e),
    lambda e: 1 - e**2,
    lambda e: e * (1 - e),
    lambda e: e**3,
    lambda e: e**-3,
    lambda e: exp(e),
    lambda e: exp(-e),
    lambda e: 1 / (1 + exp(-e)),
    lambda e: tanh(e),
    lambda e: log(e),
)


@dataclass(frozen=True)
class Multiple:
    """``number`` times ``e``."""

    number: float
    e: Expr


def varying(table: Table) -> Table:
    """The table reduced to the axes along which it varies."""
    for axis in table.axes:
        left = tuple(a for a in table.axes if a != axis)
        project = projection(table.axes, left)
        entries: dict[Index, float] = {}
        if all(close(v, entries.setdefault(project(i), v)) for i, v in table.entries.items()):
            return varying(Table(left, entries))
    return table


def close(a: float, b: float, scale: float = 0) -> bool:
    return abs(a - b) <= CLOSE * max(abs(a), abs(b), scale)


def numbers(table: Table) -> bool:
    """Whether all entries are numbers."""
    return all(v is not UNDEFINED and v is not BELOW for v in table.entries.values())


class KnownValues:
    """The values of ``base`` and their common forms, indexed by entries."""

    def __init__(self, at: Evaluation, base: Iterable[Expr]):
        self.at = at
        self.tables: dict[Expr, Table] = {}
        self.singles: list[tuple[Expr, Table]] = []
        self._forms: dict[tuple, list[Multiple]] = {}
        for e in base:
            table = self.table(e)
            if table is not None:
                self.tables[e] = table
        for form in FORMS:
            for e in self.tables:
                table = self.table(form(e))
                if table is not None:
                    self.singles.append((form(e), table))
                    self._add(self._forms, form(e), table)

    def table(self, e: Expr) -> Table | None:
        try:
            table = self.at.table(e)
        except (Unevaluable, ArithmeticError):
            return None
        if not numbers(table) or isinstance(next(iter(table.entries.values()), None), bool):
            return None
        return varying(table)

    def _add(self, where: dict[tuple, list[Multiple]], e: Expr, table: Table | None) -> None:
        key = table and _key(table)
        if key:
            where.setdefault(key[0], []).append(Multiple(key[1], e))

    def multiples(self, table: Table) -> Iterator[Multiple]:
        """Known expressions with these entries up to a factor."""
        if not table.axes:
            yield Multiple(table.entries[()], S.One)
        key = _key(table)
        if key is not None:
            for known in self._forms.get(key[0], ()):
                yield Multiple(key[1] / known.number, known.e)

    def of_two(self, table: Table) -> Iterator[Multiple]:
        """Products and quotients of two values that have these entries."""
        key = _key(table)
        for number, a, b in self._of_two.get(key[0], ()) if key else ():
            yield Multiple(key[1] / number, a * b)

    @cached_property
    def _of_two(self) -> Mapping[tuple, list[tuple[float, Expr, Expr]]]:
        found: dict[tuple, list[tuple[float, Expr, Expr]]] = {}
        several = list(self.tables.items())[:MOST_IN_PAIRS]
        for (a, x), (b, y) in combinations(several, 2):
            for p, q, table in (
                (a, b, joined(x, y, mul)),
                (a, 1 / b, joined(x, y, truediv)),
                (1 / a, b, joined(y, x, truediv)),
            ):
                key = table and _key(table)
                if key:
                    found.setdefault(key[0], []).append((key[1], p, q))
        return found


def joined(x: Table, y: Table, operation: Callable) -> Table | None:
    """A binary operation on two tables, broadcast by axis name."""
    axes = tuple(dict.fromkeys((*x.axes, *y.axes)))
    sizes: dict[Axis, int] = {}
    for table in (x, y):
        for i in table.entries:
            for axis, place in zip(table.axes, i, strict=True):
                sizes[axis] = max(sizes.get(axis, 0), place + 1)
    of_x, of_y = projection(axes, x.axes), projection(axes, y.axes)
    entries = {}
    for i in _indices([sizes[a] for a in axes]):
        try:
            entries[i] = operation(x.entries[of_x(i)], y.entries[of_y(i)])
        except ZeroDivisionError:
            return None
    return varying(Table(axes, entries))


def _indices(sizes: list[int]) -> Iterator[Index]:
    if not sizes:
        yield ()
        return
    for i in range(sizes[0]):
        yield from ((i, *rest) for rest in _indices(sizes[1:]))


def _key(table: Table) -> tuple[tuple, float] | None:
    """A key shared by all multiples of a table, and the multiple; None without a usable scale."""
    order = tuple(sorted(table.axes, key=lambda axis: axis.name))
    places = [table.axes.index(axis) for axis in order]
    inside = sorted((tuple(i[p] for p in places), v) for i, v in table.entries.items())
    scale = max((v for _, v in inside), key=abs, default=0)
    if not scale or abs(scale) > FAR:
        return None
    pattern = tuple(round(v / scale, DECIMALS) + 0 for _, v in inside)
    return (order, pattern), scale
