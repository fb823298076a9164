"""A reader of entries whose places are numbers: sums are written out, recurrences go from place to
place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import product
from operator import getitem

from sympy import Expr, Integer

from derive.language.entries import Places, Row
from derive.language.matrices import MatrixNode
from derive.language.reading_at import At, affine
from derive.language.reshaping import Reshaping
from derive.language.scans import Recurrence
from derive.language.symbols import Axis


class Finite:
    """`EntryReader` in terms of ten methods that each arithmetic implements."""

    def size(self, axis: Axis) -> int:
        raise NotImplementedError

    def at(self, e: Expr, places: Places):
        raise NotImplementedError

    def number(self, n: int):
        raise NotImplementedError

    def added(self, terms: Sequence):
        """The sum of any number of terms."""
        raise NotImplementedError

    def times(self, one, other):
        raise NotImplementedError

    def largest_of(self, row: Sequence):
        raise NotImplementedError

    def chosen(self, row: Sequence) -> Sequence:
        """For each entry of a row: 1 if it is the first largest one, else 0."""
        raise NotImplementedError

    def larger(self, before, here) -> tuple:
        """The larger of two, and 1 if that is ``here``, as among equals, else 0."""
        raise NotImplementedError

    def is_label(self, label: Expr, axis: Axis, places: Places):
        raise NotImplementedError

    def of_matrix(self, e: MatrixNode, places: Places):
        raise NotImplementedError

    # in terms of these

    def indices(self, axes: Iterable[Axis]) -> Iterator[tuple[int, ...]]:
        """All indices along some axes, the last one fastest."""
        return product(*(range(self.size(axis)) for axis in axes))

    def total(self, axes: Iterable[Axis], row: Row):
        axes = tuple(axes)
        return self.added([row(dict(zip(axes, i, strict=True))) for i in self.indices(axes)])

    def largest(self, axis: Axis, row: Row, places: Places):
        return self.largest_of(self._row(axis, row, self.size(axis)))

    def is_largest(self, axis: Axis, row: Row, places: Places, place):
        return self.chosen(self._row(axis, row, self.size(axis)))[place]

    def largest_so_far(self, axis: Axis, row: Row, places: Places):
        return self._so_far(axis, row, places)[0]

    def is_new_largest(self, axis: Axis, row: Row, places: Places):
        return self._so_far(axis, row, places)[1]

    def _so_far(self, axis: Axis, row: Row, places: Places) -> tuple:
        first, *others = self._row(axis, row, places[axis] + 1)
        state = first, self.number(1)
        for here in others:
            state = self.larger(state[0], here)
        return state

    @staticmethod
    def _row(axis: Axis, row: Row, count: int) -> list:
        return [row({axis: k}) for k in range(count)]

    def position(self, axis: Axis, places: Places):
        return self.number(places[axis])

    def is_same(self, one: int, other: int):
        return self.number(int(one == other))

    def reshaped(self, e: Reshaping, places: Places) -> Places:
        """The same place in the row of all, the last axis fastest."""
        place, inside = 0, {}
        for axis in e.brings:
            place = place * self.size(axis) + places[axis]
        for axis in reversed(e.binds):
            place, inside[axis] = divmod(place, self.size(axis))
        return inside

    def read(self, e: At, places: Places):
        sizes = ((axis, self.size(axis)) for axis in _sizes_in(e.index))
        offset, divisor, steps = _in_numbers(e.index, tuple(sizes))
        place, rest = divmod(offset + sum(places[axis] * step for axis, step in steps), divisor)
        if rest or not 0 <= place < self.size(e.axis):
            return self.at(e.fill, places)
        return self.at(e.operand, {**places, e.axis: place})

    def recurrence(self, e: Recurrence, places: Places):
        """The state from the one before, or from the next where it goes back."""
        before = {**places, e.axis: places[e.axis] + (1 if e.reverse else -1)}
        is_first = before[e.axis] not in range(self.size(e.axis))
        if is_first and (e.exclusive or e.reverse):
            return self.at(e.initial if e.exclusive else e.operand, places)
        term = self.at(e.operand, before if e.exclusive else places)
        if e.is_step:
            return term
        factor = self.at(e.factor, before if e.exclusive or e.reverse else places)
        state = self.at(e.initial if is_first else e, before)
        return self.added([self.times(factor, state), term])

    def rows_of(self, e: MatrixNode, places: Places) -> tuple[list[list], list]:
        """The rows of a matrix, and the right side of equations if there is one."""
        rows, columns = e.axes
        count = range(self.size(rows))
        matrix = [
            [self.at(e.matrix, {**places, rows: i, columns: j}) for j in count] for i in count
        ]
        return matrix, [self.at(side, {**places, rows: i}) for side in e.right_sides for i in count]

    @staticmethod
    def entry_of(e: MatrixNode, places: Places, made):
        """An entry of all those that `MatrixNode.of_rows` made."""
        return reduce(getitem, (places[axis] for axis in e.brings), made)


@lru_cache(maxsize=8192)
def _sizes_in(index: Expr) -> tuple[Axis, ...]:
    found = affine(index)
    numbers = found.offset, found.divisor, *(step for _, step in found.coefficients)
    return tuple({axis for e in numbers for axis in e.atoms(Axis)})


@lru_cache(maxsize=8192)
def _in_numbers(
    index: Expr, sizes: tuple[tuple[Axis, int], ...]
) -> tuple[int, int, list[tuple[Axis, int]]]:
    """An index as its offset, its divisor and a step for each axis."""
    found, at = affine(index), {axis: Integer(n) for axis, n in sizes}

    def number(e: Expr) -> int:
        return int(e.xreplace(at))

    steps = [(axis, number(step)) for axis, step in found.coefficients]
    return number(found.offset), number(found.divisor), steps
