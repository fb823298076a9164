"""The second route to the same derivative, for every size at once: SymPy's own derivative of
indexed sums.

In: the forward as SymPy's `Indexed` and `Sum` with symbolic bounds. SymPy differentiates; that
gives Kronecker deltas under sums, which are contracted. The closed form is written in the same
language, and the difference must vanish (``contraction.py``). Nothing of the chain, its rules or
the identities of the closed form is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from sympy import (
    Dummy,
    Expr,
    Indexed,
    IndexedBase,
    Integer,
    KroneckerDelta,
    Mul,
    Symbol,
    exp,
)

from derive.language.array_node import ArrayNode
from derive.language.choices import with_args
from derive.language.entries import Places, Row
from derive.language.matrices import Inverse, MatrixNode, Solve
from derive.language.notation.definition import Definition
from derive.language.reading_at import At
from derive.language.reshaping import Reshaping
from derive.language.scans import Recurrence
from derive.language.symbols import Axis, Tensor
from derive.proof.proving.index_nodes import IndexOfLargest, LargestAlong, Zero
from derive.proof.proving.indexed_sum import IndexedSum
from derive.proof.proving.largest_up_to import IsNewLargest, LargestUpTo
from derive.proof.proving.matrix_entries import COLUMN, ENTRIES, ROW
from derive.proof.proving.products_between import ProductBetween, telescoped

Index = tuple[Expr, ...]  # one for each of the axes that an axis was flattened from


class NotShown(Exception):
    """The statement has no form in indexed sums."""


@lru_cache(maxsize=8192)
def _entry(name: str, indices: Index, signs: tuple[tuple[str, bool], ...]) -> Expr:
    symbol = Symbol(name, real=True, **dict(signs))
    return IndexedBase(symbol)[indices] if indices else symbol


@dataclass(frozen=True)
class IndexedForward:
    """A forward with symbolic sizes in SymPy's own indexed notation; tensors in ``free`` are
    independent.
    """

    definition: Definition
    free: frozenset[str] = frozenset()

    @property
    def flattened(self) -> dict[Axis, tuple[Axis, ...]]:
        return dict(self.definition.flattened)

    def parts(self, axis: Axis) -> tuple[Axis, ...]:
        """The axes that ``axis`` was flattened from; itself, where it was not."""
        axis = self.definition.size(axis)
        found = self.flattened.get(axis, ())
        return tuple(inner for part in found for inner in self.parts(part)) or (axis,)

    def sizes(self, axis: Axis) -> tuple[Symbol, ...]:
        return tuple(
            Symbol(f"size_{part}", integer=True, positive=True) for part in self.parts(axis)
        )

    def index(self, axis: Axis, name: str = "i") -> Index:
        """An index along ``axis``: one symbol for each of its parts."""
        parts = self.parts(axis)
        ends = [""] if len(parts) == 1 else [f"_{k}" for k in range(len(parts))]
        return tuple(Symbol(f"{name}_{axis.name}{end}", integer=True) for end in ends)

    def bound_index(self, axis: Axis) -> Index:
        return tuple(Dummy(symbol.name, integer=True) for symbol in self.index(axis, "j"))

    def limits(self, axis: Axis, index: Index) -> list[tuple[Symbol, int, Symbol]]:
        return [(i, 1, size) for i, size in zip(index, self.sizes(axis), strict=True)]

    def entry(self, tensor: Tensor, at: Mapping[Axis, Index], part: str = "") -> Expr:
        indices = tuple(i for axis in tensor.axes for i in at[axis])
        signs = (("positive", True),) if tensor.is_positive else ()
        return _entry(f"{tensor.name}{part}", indices, signs)

    def computed(self, name: str, at: Mapping[Axis, Index]) -> Expr:
        return self.written(self.definition.by_name[name].expression, at)

    def written(
        self, e: Expr, at: Mapping[Axis, Index], values: Mapping[str, Expr] | None = None
    ) -> Expr:
        """``e`` at the indices ``at``; a statement is written by its definition unless it is
        free.
        """
        values = values or {}
        if isinstance(e, Tensor):
            if e.name in values:
                inner = dict(zip(e.home, (at[axis] for axis in e.axes), strict=True))
                return self.written(values[e.name], inner, values)
            if (
                e.role == "statement"
                and e.name not in self.free
                and e.name in self.definition.by_name
            ):
                return self.computed(
                    e.name, dict(zip(e.home, (at[axis] for axis in e.axes), strict=True))
                )
            return self.entry(e, at)
        if isinstance(e, Axis):
            length = self.definition.derived.get(e)
            return Mul(*self.sizes(e)) if length is None else self.written(length, at, values)
        if isinstance(e, ArrayNode):
            return e.entry(IndexReader(self, values), at)
        return with_args(e, [self.written(arg, at, values) for arg in e.args]) if e.args else e

    def unfolded(self, e: Expr, name: str) -> Expr:
        """``e`` with the free tensor ``name`` replaced by its definition."""
        home = self.definition.by_name[name].tensor.home

        def is_entry(node) -> bool:
            return (isinstance(node, Indexed) and str(node.base.label) == name) or (
                not home and node.is_Symbol and node.name == name
            )

        def definition(node) -> Expr:
            indices, at = list(node.indices if home else ()), {}
            for axis in home:
                count = len(self.parts(axis))
                at[axis], indices = tuple(indices[:count]), indices[count:]
            return self.computed(name, at)

        return e.replace(is_entry, definition)

    def total(self, e: Expr, axes, at: Mapping[Axis, Index]) -> Expr:
        """``e`` summed over all entries along ``axes``."""
        limits = [limit for axis in axes for limit in self.limits(axis, at[axis])]
        return IndexedSum(e, *limits) if limits else e


@dataclass(frozen=True)
class IndexReader:
    """Entries in indexed notation; ``values`` holds tensors that are none of the forward."""

    forward: IndexedForward
    values: Mapping[str, Expr]

    def at(self, e: Expr, places: Places) -> Expr:
        return self.forward.written(e, places, self.values)

    def total(self, axes: Iterable[Axis], row: Row) -> Expr:
        bound = {axis: self.forward.bound_index(axis) for axis in axes}
        return self.forward.total(row(bound), axes, bound)

    def times(self, one: Expr, other: Expr) -> Expr:
        return one * other

    def largest(self, axis: Axis, row: Row, places: Places) -> Expr:
        return LargestAlong(*self._row(axis, row, places))

    def is_largest(self, axis: Axis, row: Row, places: Places, place: Index) -> Expr:
        entries = self._row(axis, row, places)
        first = [IndexOfLargest(Integer(k), *entries) for k in range(len(place))]
        return self.is_same(first, place)

    def _row(self, axis: Axis, row: Row, places: Places) -> tuple[Expr, ...]:
        """The entry at bound indices, and these."""
        bound = self.forward.index(axis, self._level(places, "m"))
        return row({axis: bound}), *bound

    def largest_so_far(self, axis: Axis, row: Row, places: Places) -> Expr:
        (place,) = self.forward.index(axis, self._level(places, "p"))
        return LargestUpTo(*self._up_to(axis, row, places), place)

    def is_new_largest(self, axis: Axis, row: Row, places: Places) -> Expr:
        return IsNewLargest(*self._up_to(axis, row, places))

    def _up_to(self, axis: Axis, row: Row, places: Places) -> tuple[Expr, ...]:
        """The place, the size, the entry at a bound index, and that."""
        here, size = self._single(axis, places)
        return here, size, *self._row(axis, row, places)

    def _single(self, axis: Axis, places: Places) -> tuple[Expr, Expr]:
        """The one index along an axis, and its size."""
        if len(places[axis]) > 1:
            raise NotShown(f"{axis} is gone along, and made of several")
        return *places[axis], *self.forward.sizes(axis)

    def position(self, axis: Axis, places: Places) -> Expr:
        """The index as a number from 0; along a flattened axis the last part runs fastest."""
        place: Expr = Integer(0)
        for i, size in zip(places[axis], self.forward.sizes(axis), strict=True):
            place = place * size + i - 1
        return place

    def is_same(self, one: Iterable[Expr], other: Iterable[Expr]) -> Expr:
        return Mul(*map(KroneckerDelta, one, other))

    def is_label(self, label: Expr, axis: Axis, places: Places) -> Expr:
        """A delta; the label of a flattened axis names an index for each of its parts."""
        indices = places[axis]
        if label.is_Integer:
            return self.is_same([label + 1], indices)  # indices are counted from 1 here
        ends = [""] if len(indices) == 1 else [f"_{k}" for k in range(len(indices))]
        return self.is_same([self.forward.entry(label, places, end) for end in ends], indices)

    def reshaped(self, e: Reshaping, places: Places) -> dict[Axis, Index]:
        """Flattened indices are the indices of the parts, one after the other."""
        size, parts = self.forward.definition.size, e.parts
        if tuple(map(size, parts)) != self.forward.flattened.get(size(e.flat), parts):
            raise NotShown(f"{e.flat} is counted in two orders")
        indices = [i for axis in e.brings for i in places[axis]]
        inside = {}
        for axis in e.binds:
            count = len(self.forward.parts(axis))
            inside[axis], indices = tuple(indices[:count]), indices[count:]
        return inside

    def recurrence(self, e: Recurrence, places: Places) -> Expr:
        """sum over s of P(t, s)*b[s], with P the product of the factors between s and t, times that
        at t, and b[t] itself, where the place itself counts; the other way round where transposed.
        """
        here, size = self._single(e.axis, places)
        (bound,) = self.forward.bound_index(e.axis)
        start = self.at(e.initial, places)
        product = self._product(e, places)

        def term(place: Expr) -> Expr:
            return self.at(e.operand, {**places, e.axis: (place,)})

        ends = (bound, here) if e.reverse else (here, bound)
        total = IndexedSum(product(*ends) * term(bound), (bound, 1, size))
        if start != 0:
            total += product(here, Integer(0)) * start
        return total if e.exclusive else total + term(here)

    def _product(self, e: Recurrence, places: Places) -> Callable[[Expr, Expr], Expr]:
        """The product of the factors between two places, and at the later one unless that is left
        out. That of exp(w[r-1] - w[r]) is exp(w[s] - w[t]).
        """
        (index,) = self.forward.index(e.axis, self._level(places, "p"))
        (size,) = self.forward.sizes(e.axis)

        def there(of: Expr, place: Expr) -> Expr:
            return self.at(of, {**places, e.axis: (place,)})

        falls = None if e.exclusive or e.initial != 0 else telescoped(e)
        factor = Integer(1) if falls is not None else there(e.factor, index)

        def product(last: Expr, first: Expr) -> Expr:
            between = ProductBetween(factor, index, size, last, first)
            if falls is not None:
                return between * exp(there(falls, first) - there(falls, last))
            return between if e.exclusive else between * between.at(last)

        return product

    def of_matrix(self, e: MatrixNode, places: Places) -> Expr:
        """By the entry of the matrix at two indices of its own."""
        if any(len(self.forward.parts(axis)) > 1 for axis in e.axes):
            raise NotShown(f"an axis of {e} is made of several")
        rows, columns = e.axes
        own = [Dummy(kind, integer=True) for kind in (ROW, COLUMN)]
        inside = dict(zip(e.axes, ((index,) for index in own), strict=True))
        matrix = self.at(e.matrix, {**places, **inside}), *own, *self.forward.sizes(rows)
        if not isinstance(e, Solve):
            return ENTRIES[type(e)](*matrix, *(i for axis in e.brings for i in places[axis]))
        bound = self.forward.bound_index(rows)
        right = self.at(e.right, {**places, rows: bound})
        entry = ENTRIES[Inverse](*matrix, *places[columns], *bound)
        return self.forward.total(entry * right, (rows,), {rows: bound})

    def _level(self, places: Places, kind: str) -> str:
        """A name for a bound index that is free around it."""
        return f"{kind}{sum(str(i).startswith(kind) for index in places.values() for i in index)}"

    def read(self, e: At, places: Places) -> Expr:
        """The sum of all entries, each times the 0 or 1 of its being the one that is read; and
        the fill, where none is.
        """
        own = {e.axis: self.forward.bound_index(e.axis)}
        is_read = Zero(self.position(e.axis, own) - self.at(e.index, places))
        inside = self.at(e.operand, {**places, **own})
        found = self.forward.total(is_read * inside, (e.axis,), own)
        if e.fill == 0:
            return found
        return found + e.fill * (1 - self.forward.total(is_read, (e.axis,), own))
