"""The second route to the same derivative, for every size at once: SymPy's own derivative of
indexed sums.

In: the forward as SymPy's `Indexed` and `Sum` with symbolic bounds. SymPy differentiates; that
gives Kronecker deltas under sums, which are contracted. The closed form is written in the same
language, and the difference must vanish (``contraction.py``). Nothing of the chain, its rules or
the identities of the closed form is used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

from derive.language.choices import with_args
from derive.language.nodes import (
    ArgMax,
    Flatten,
    Inverse,
    LargestSoFar,
    LogCumSumExp,
    MatrixNode,
    Max,
    NewMax,
    OneHot,
    Position,
    Recurrence,
    Reshaping,
    Solve,
    Sum,
)
from derive.language.notation.definition import Definition
from derive.language.reading_at import At
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
        if isinstance(e, Sum):
            bound = {axis: self.bound_index(axis) for axis in e.axes}
            return self.total(self.written(e.operand, {**at, **bound}, values), e.axes, bound)
        if isinstance(e, Reshaping):
            return self.written(e.operand, {**at, **self._recounted(e, at)}, values)
        if isinstance(e, (At, MatrixNode)):
            return (self._read if isinstance(e, At) else self._of_matrix)(e, at, values)
        if isinstance(e, Max):
            return LargestAlong(*self._row(e, at, values))
        if isinstance(e, Position):
            return self._position(e.axis, at)
        if isinstance(e, OneHot):
            return self._one_hot(e, at, values)
        if isinstance(e, Recurrence):
            return self._recurrence(e, at, values)
        if isinstance(e, (LargestSoFar, NewMax)):
            return self._largest_so_far(e, at, values)
        if isinstance(e, LogCumSumExp):
            return self.written(e.in_full, at, values)
        return with_args(e, [self.written(arg, at, values) for arg in e.args]) if e.args else e

    def _recounted(self, e: Reshaping, at: Mapping[Axis, Index]) -> dict[Axis, Index]:
        """Flattened indices are the indices of the parts, one after the other."""
        flat, parts = (e.flat, e.binds if isinstance(e, Flatten) else e.brings)
        if tuple(map(self.definition.size, parts)) != self.flattened.get(
            self.definition.size(flat), parts
        ):
            raise NotShown(f"{flat} is counted in two orders")
        indices = [i for axis in e.brings for i in at[axis]]
        inside = {}
        for axis in e.binds:
            count = len(self.parts(axis))
            inside[axis], indices = tuple(indices[:count]), indices[count:]
        return inside

    def _recurrence(self, e: Recurrence, at: Mapping[Axis, Index], values) -> Expr:
        """sum over s of P(t, s)*b[s], with P the product of the factors between s and t, times that
        at t, and b[t] itself, where the place itself counts; the other way round where transposed.
        """
        if len(at[e.axis]) > 1:
            raise NotShown(f"{e.axis} is gone along, and made of several")
        (here,), (bound,), (size,) = at[e.axis], self.bound_index(e.axis), self.sizes(e.axis)
        start = self.written(e.initial, at, values)
        product = self._product(e, at, values)

        def term(place: Expr) -> Expr:
            return self.written(e.operand, {**at, e.axis: (place,)}, values)

        ends = (bound, here) if e.reverse else (here, bound)
        total = IndexedSum(product(*ends) * term(bound), (bound, 1, size))
        if start != 0:
            total += product(here, Integer(0)) * start
        return total if e.exclusive else total + term(here)

    def _product(self, e: Recurrence, at, values) -> Callable[[Expr, Expr], Expr]:
        """The product of the factors between two places, and at the later one unless that is left
        out. That of exp(w[r-1] - w[r]) is exp(w[s] - w[t]).
        """
        (index,), (size,) = self.index(e.axis, self._level(at, "p")), self.sizes(e.axis)

        def there(of: Expr, place: Expr) -> Expr:
            return self.written(of, {**at, e.axis: (place,)}, values)

        falls = None if e.exclusive or e.initial != 0 else telescoped(e)
        factor = Integer(1) if falls is not None else there(e.factor, index)

        def product(last: Expr, first: Expr) -> Expr:
            between = ProductBetween(factor, index, size, last, first)
            if falls is not None:
                return between * exp(there(falls, first) - there(falls, last))
            return between if e.exclusive else between * between.at(last)

        return product

    def _largest_so_far(self, e: LargestSoFar | NewMax, at, values) -> Expr:
        """The largest up to a place, or whether that is the entry there."""
        if len(at[e.axis]) > 1:
            raise NotShown(f"{e.axis} is gone along, and made of several")
        (here,), (size,) = at[e.axis], self.sizes(e.axis)
        (bound,), (place,) = (self.index(e.axis, self._level(at, kind)) for kind in "mp")
        operand = self.written(e.operand, {**at, e.axis: (bound,)}, values)
        if isinstance(e, NewMax):
            return IsNewLargest(here, size, operand, bound)
        return LargestUpTo(here, size, operand, bound, place)

    def _of_matrix(self, e: MatrixNode, at: Mapping[Axis, Index], values) -> Expr:
        """By the entry of the matrix at two indices of its own."""
        if any(len(self.parts(axis)) > 1 for axis in e.axes):
            raise NotShown(f"an axis of {e} is made of several")
        rows, columns = e.axes
        own = [Dummy(kind, integer=True) for kind in (ROW, COLUMN)]
        inside = dict(zip(e.axes, ((index,) for index in own), strict=True))
        matrix = self.written(e.matrix, {**at, **inside}, values), *own, *self.sizes(rows)
        if not isinstance(e, Solve):
            return ENTRIES[type(e)](*matrix, *(index for axis in e.brings for index in at[axis]))
        bound = self.bound_index(rows)
        right = self.written(e.right, {**at, rows: bound}, values)
        entry = ENTRIES[Inverse](*matrix, *at[columns], *bound)
        return self.total(entry * right, (rows,), {rows: bound})

    def _level(self, at: Mapping[Axis, Index], kind: str) -> str:
        """A name for a bound index that is free around it."""
        return f"{kind}{sum(str(i).startswith(kind) for index in at.values() for i in index)}"

    def _read(self, e: At, at: Mapping[Axis, Index], values) -> Expr:
        """The sum of all entries, each times the 0 or 1 of its being the one that is read; and
        the fill, where none is.
        """
        own = self.bound_index(e.axis)
        place = self._position(e.axis, {e.axis: own})
        is_read = Zero(place - self.written(e.index, at, values))
        inside = self.written(e.operand, {**at, e.axis: own}, values)
        bound = {e.axis: own}
        outside = e.fill * (1 - self.total(is_read, (e.axis,), bound)) if e.fill != 0 else e.fill
        return self.total(is_read * inside, (e.axis,), bound) + outside

    def _row(self, e: Max | ArgMax, at: Mapping[Axis, Index], values) -> tuple[Expr, ...]:
        """The operand along the axis of a maximum, and the indices that it is taken over."""
        (axis,) = e.axes
        bound = self.index(axis, self._level(at, "m"))
        return self.written(e.operand, {**at, axis: bound}, values), *bound

    def _position(self, axis: Axis, at: Mapping[Axis, Index]) -> Expr:
        """The index as a number from 0; along a flattened axis the last part runs fastest."""
        place: Expr = Integer(0)
        for i, size in zip(at[axis], self.sizes(axis), strict=True):
            place = place * size + i - 1
        return place

    def _one_hot(self, e: OneHot, at: Mapping[Axis, Index], values) -> Expr:
        """A delta; the label of a flattened axis names an index for each of its parts."""
        indices = at[e.axis]
        if isinstance(e.operand, ArgMax):
            row = self._row(e.operand, at, values)
            labels = [IndexOfLargest(Integer(k), *row) for k in range(len(indices))]
        elif e.operand.is_Integer:
            labels = [e.operand + 1]  # indices are counted from 1 here
        elif isinstance(e.operand, Position):
            labels = [*at[e.operand.axis]]
        else:
            ends = [""] if len(indices) == 1 else [f"_{k}" for k in range(len(indices))]
            labels = [self.entry(e.operand, at, end) for end in ends]
        return Mul(*map(KroneckerDelta, labels, indices))

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
