"""The entries of array nodes from those of their operands: a table of the nodes.

The contract of an entry: it receives the current evaluation and the node, and returns the node's
`Table`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from sympy import Expr, Integer

from derive.claims.checking.numbers.arithmetic import Arithmetic
from derive.claims.checking.numbers.matrices import of_matrix
from derive.claims.checking.numbers.tables import BELOW, UNDEFINED, Index, Table, projection
from derive.language.diagonals import Identity
from derive.language.nodes import (
    ArgMax,
    LargestSoFar,
    LogCumSumExp,
    MatrixNode,
    Max,
    NewMax,
    OneHot,
    Position,
    Recurrence,
    Reshaping,
    Sum,
)
from derive.language.reading_at import At, affine
from derive.language.symbols import Axis


class Evaluating(Protocol):
    """Interface of `Evaluation` that the entries of a node may use."""

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


def _rows(at: Evaluating, e) -> tuple[tuple[Axis, ...], Iterator[tuple[Index, list]]]:
    """The axes that a reduction keeps, and for each index along them the reduced entries."""
    table = at.table(e.operand)
    bound = tuple(axis for axis in e.axes if axis in table.axes)
    left = tuple(axis for axis in table.axes if axis not in bound)
    project = projection(left + bound, table.axes)
    inside = list(at.indices(bound))
    rows = ((i, [table.entries[project(i + j)] for j in inside]) for i in at.indices(left))
    return left, rows


def _sum(at: Evaluating, e: Sum) -> Table:
    left, rows = _rows(at, e)
    repeated = Integer(1)
    for axis in set(e.axes) - set(at.table(e.operand).axes):
        repeated *= at.size(axis)
    number = at.arithmetic.number(repeated)

    def total(*values):
        at.operations += len(values)
        if any(value is BELOW for value in values):
            return BELOW
        summed = at.arithmetic.add(values)
        return summed if repeated == 1 else at.arithmetic.multiply([number, summed])

    return Table(left, {i: at.or_undefined(total, *row) for i, row in rows})


def _largest(at: Evaluating, e: Max | ArgMax) -> Table:
    left, rows = _rows(at, e)

    def first(*row):
        best = 0
        for k, value in enumerate(row):
            side = at.side(value, row[best])
            at.at_kink |= side == 0 and k != best and value is not BELOW
            best = k if side > 0 else best
        return row[best] if isinstance(e, Max) else at.arithmetic.number(Integer(best))

    return Table(left, {i: at.or_undefined(first, *row) for i, row in rows})


def _position(at: Evaluating, e: Position) -> Table:
    places = range(at.size(e.axis))
    return Table(e.axes, {(k,): at.arithmetic.number(Integer(k)) for k in places})


def _one_hot(at: Evaluating, e: OneHot) -> Table:
    labels = at.table(e.operand)
    zero, one = at.arithmetic.number(Integer(0)), at.arithmetic.number(Integer(1))
    entries = {
        (*i, k): UNDEFINED if label is UNDEFINED else one if label == k else zero
        for i, label in labels.entries.items()
        for k in range(at.size(e.axis))
    }
    return Table((*labels.axes, e.axis), entries)


def _identity(at: Evaluating, e: Identity) -> Table:
    zero, one = at.arithmetic.number(Integer(0)), at.arithmetic.number(Integer(1))
    return Table(e.pair, {(i, k): one if i == k else zero for i, k in at.indices(e.pair)})


def _reshaped(at: Evaluating, e: Reshaping) -> Table:
    """Copy entries in row-major order."""
    table = at.table(e.operand)
    left = tuple(axis for axis in table.axes if axis not in e.binds)
    project = projection(left + e.binds, table.axes)
    before, after = at.indices(e.binds), at.indices(e.brings)
    pairs = list(zip(after, before, strict=True))
    entries = {
        i + new: table.entries[project(i + old)] for i in at.indices(left) for new, old in pairs
    }
    return Table(left + e.brings, entries)


def _recurrent(at: Evaluating, e: Recurrence) -> Table:
    """The recurrence, index by index; from the end where it is transposed."""
    tables = [at.table(operand) for operand in e.operands]
    axes = tuple(dict.fromkeys(axis for table in tables for axis in table.axes if axis != e.axis))
    places, count = (*axes, e.axis), at.size(e.axis)
    term, factor, initial = (_reader(table, places) for table in tables)

    def step(a, state, b):
        return at.arithmetic.add([at.arithmetic.multiply([a, state]), b])

    entries = {}
    for i in at.indices(axes):
        state = initial((*i, 0))
        for place in reversed(range(count)) if e.reverse else range(count):
            ahead = (place + 1) % count if e.reverse and not e.exclusive else place
            before, there = state, (*i, place)
            state = at.or_undefined(step, factor((*i, ahead)), state, term(there))
            entries[there] = before if e.exclusive else state
    return Table(places, entries)


def _largest_so_far(at: Evaluating, e: LargestSoFar | NewMax) -> Table:
    """The running maximum, index by index; on ties the last entry."""
    table = at.table(e.operand)
    left = tuple(axis for axis in table.axes if axis != e.axis)
    read, entries = _reader(table, (*left, e.axis)), {}
    zero, one = at.arithmetic.number(Integer(0)), at.arithmetic.number(Integer(1))

    def largest(value, before):
        side = at.side(value, before)
        at.at_kink |= side == 0
        return (value, one) if side >= 0 else (before, zero)

    for i in at.indices(left):
        state = read((*i, 0)), one
        for place in range(at.size(e.axis)):
            if place and state is not UNDEFINED:
                state = at.or_undefined(largest, read((*i, place)), state[0])
            whole = isinstance(e, LargestSoFar)
            entries[*i, place] = UNDEFINED if state is UNDEFINED else state[0 if whole else 1]
    return Table((*left, e.axis), entries)


def _reader(table: Table, axes: tuple[Axis, ...]) -> Callable[[Index], object]:
    """The entries of a table at indices along more axes than it has."""
    project = projection(axes, table.axes)
    return lambda index: table.entries[project(index)]


def _read(at: Evaluating, e: At) -> Table:
    """The entry at the index, or the fill value if it is out of range."""
    table, index = at.table(e.operand), affine(e.index)
    places = {a: at.size(a) for c in (index.offset, index.divisor) for a in c.atoms(Axis)}
    places |= {a: at.size(a) for _, c in index.coefficients for a in c.atoms(Axis)}

    def number(size: Expr) -> int:
        return int(size.xreplace({a: Integer(n) for a, n in places.items()}))

    offset, divisor = number(index.offset), number(index.divisor)
    steps = [(axis, number(step)) for axis, step in index.coefficients]
    own = tuple(axis for axis in table.axes if axis != e.axis)
    axes = own + tuple(axis for axis in index.axes if axis not in own)
    fill = at.table(e.fill).entries[()]
    entries = {}
    for i in at.indices(axes):
        here = dict(zip(axes, i, strict=True))
        place, rest = divmod(offset + sum(here[a] * step for a, step in steps), divisor)
        inside = not rest and 0 <= place < at.size(e.axis)
        here[e.axis] = place
        entries[i] = table.entries[tuple(here[a] for a in table.axes)] if inside else fill
    return Table(axes, entries)


ARRAY_NODES: dict[type, Callable] = {
    Sum: _sum,
    Max: _largest,
    ArgMax: _largest,
    Position: _position,
    OneHot: _one_hot,
    Identity: _identity,
    Reshaping: _reshaped,
    Recurrence: _recurrent,
    LargestSoFar: _largest_so_far,
    NewMax: _largest_so_far,
    LogCumSumExp: lambda at, e: at.table(e.in_full),
    At: _read,
    MatrixNode: of_matrix,
}
