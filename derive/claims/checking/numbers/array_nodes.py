"""The entries of array nodes in the numbers of an arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Protocol

from sympy import Expr, Integer

from derive.claims.checking.numbers.arithmetic import Arithmetic, Undefined
from derive.claims.checking.numbers.tables import BELOW, UNDEFINED, Index, Table
from derive.language.array_node import ArrayNode
from derive.language.entries import Places
from derive.language.finite import Finite
from derive.language.matrices import MatrixNode
from derive.language.symbols import Axis, axes_of, ordered


class Evaluating(Protocol):
    """Interface of `Evaluation` that the entries of nodes use."""

    arithmetic: Arithmetic
    operations: int
    at_kink: bool

    def table(self, e: Expr) -> Table:
        """The entries of an operand."""

    def size(self, axis: Axis) -> int:
        """The size of an axis."""

    def indices(self, axes: Iterable[Axis]) -> Iterator[Index]:
        """All indices along some axes, the last one fastest."""

    def or_undefined(self, compute: Callable, *values):
        """The result of ``compute``, counted and bounded; undefined if one of the values is."""

    def side(self, a, b) -> int:
        """-1, 0 or 1: which of two is larger; -oo is less than every number."""


def entries_of(evaluation: Evaluating, e: ArrayNode) -> Table:
    """The entries of a node, from the tables of its operands."""
    axes, reader = tuple(ordered(axes_of(e))), NumberReader(evaluation, e)
    indices = list(evaluation.indices(axes))
    for i in reversed(indices) if reader.goes_back else indices:  # each state is known to the next
        reader.at(e, dict(zip(axes, i, strict=True)))
    return Table(axes, {i: reader.known[i] for i in indices})


class NumberReader(Finite):
    """Reads the entries of one node, whose operands have tables; a recurrence reads its own."""

    def __init__(self, evaluation: Evaluating, e: ArrayNode):
        self.evaluation, self.node, self.axes = evaluation, e, tuple(ordered(axes_of(e)))
        self.known: dict[Index, object] = {}
        self.made: dict[Index, object] = {}  # from each matrix of a batch
        self.size, self.arithmetic = evaluation.size, evaluation.arithmetic
        self.zero, self.one = (self.arithmetic.number(Integer(n)) for n in (0, 1))

    @property
    def goes_back(self) -> bool:
        return getattr(self.node, "reverse", False)

    def at(self, e: Expr, places: Places):
        if e is not self.node:
            table = self.evaluation.table(e)
            return table.entries[tuple([places[axis] for axis in table.axes])]
        index = tuple([places[axis] for axis in self.axes])
        if index not in self.known:
            self.known[index] = e.entry(self, places)
        return self.known[index]

    def number(self, n: int):
        return self.arithmetic.number(Integer(n))

    def added(self, terms: Sequence):
        return self.evaluation.or_undefined(self._total, *terms)

    def _total(self, *terms):
        self.evaluation.operations += len(terms)
        return BELOW if any(t is BELOW for t in terms) else self.arithmetic.add(terms)

    def times(self, one, other):
        return self.evaluation.or_undefined(lambda *f: self.arithmetic.multiply(f), one, other)

    def largest_of(self, row: Sequence):
        return self.evaluation.or_undefined(lambda *row: row[self._first(row)], *row)

    def chosen(self, row: Sequence) -> list:
        first = self.evaluation.or_undefined(lambda *row: self._first(row), *row)
        undefined = first is UNDEFINED
        return [UNDEFINED if undefined else self._truth(k == first) for k in range(len(row))]

    def _first(self, row: Sequence) -> int:
        best = 0
        for k, value in enumerate(row):
            side = self.evaluation.side(value, row[best])
            self.evaluation.at_kink |= side == 0 and k != best and value is not BELOW
            best = k if side > 0 else best
        return best

    def larger(self, before, here) -> tuple:
        side = self.evaluation.or_undefined(self.evaluation.side, here, before)
        if side is UNDEFINED:
            return UNDEFINED, UNDEFINED
        self.evaluation.at_kink |= side == 0
        return (here, self.one) if side >= 0 else (before, self.zero)

    def is_label(self, label: Expr, axis: Axis, places: Places):
        value = self.at(label, places)
        return UNDEFINED if value is UNDEFINED else self._truth(value == places[axis])

    def of_matrix(self, e: MatrixNode, places: Places):
        batch = tuple([places[axis] for axis in self.axes if axis not in e.axes])
        if batch not in self.made:
            rows, right = self.rows_of(e, places)
            self.made[batch] = self.evaluation.or_undefined(self._made, *chain(*rows), *right)
        made = self.made[batch]
        return UNDEFINED if made is UNDEFINED else self.entry_of(e, places, made)

    def _made(self, *values):
        if any(value is BELOW for value in values):
            raise Undefined(f"{self.node} of an infinite entry")
        size = self.size(self.node.axes[0])
        rows = [values[size * k : size * (k + 1)] for k in range(size)]
        return self.node.of_rows(rows, values[size**2 :], self.arithmetic)

    def _truth(self, holds: bool):
        return self.one if holds else self.zero
