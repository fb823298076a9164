"""The same derivative on explicit scalars: the forward written out for a small batch, SymPy's own
``diff``.

In: a `Definition` and a size for every axis. Out: SymPy scalars. Nothing here knows the chain, its
rules or the identities: a sum is written out term by term, and the derivative is SymPy's. An
unknown label is a row of indicators (each 0 or 1, one of them 1); so is an unknown arg max, so one
check covers every label and every order of the entries.

The notation cannot name an entry: renumbering the places along an axis, everywhere at once, changes
neither the forward nor a closed form. So what holds in one entry, whatever the scalars are, holds
in every entry that it can be renumbered to, and `representatives` gives one of each kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from sympy import Add, Expr, Integer, Mul, Symbol, log

from derive.language.choices import with_args, written_in
from derive.language.cofactors import OfScalars, determinant, factor, inverse
from derive.language.nodes import (
    ArgMax,
    ArrayNode,
    Cholesky,
    Flatten,
    GoneAlong,
    Inverse,
    LargestSoFar,
    LogCumSumExp,
    LogDet,
    MatrixNode,
    Max,
    NewMax,
    OneHot,
    Peak,
    Position,
    Recurrence,
    Reshaping,
    Solve,
    Sum,
    Unflatten,
)
from derive.language.notation.definition import Definition
from derive.language.reading_at import At
from derive.language.symbols import Axis, Tensor, axes_of, ordered
from derive.language.traversal import parts_of
from derive.proof.proving.largest_of import LargestOf as LargestOf
from derive.proof.proving.largest_of import indicators as indicators
from derive.proof.proving.largest_of import selectors as selectors
from derive.proof.proving.total_derivative import TotalDerivative as TotalDerivative
from derive.proof.zero.indicator import Indicator

Index = tuple[int, ...]
Entries = dict[Index, Expr]

# The nodes that treat all places along an axis alike. A node that does not, such as a shift or a
# cumulative sum, stays out of this table, and every entry of what holds it is checked.
INDIFFERENT = (
    *(Sum, Max, Peak, ArgMax, OneHot, Flatten, Unflatten),
    *(Inverse, LogDet, Solve),  # rows and columns have one size, and are renumbered together
)


def with_definitions(e: Expr, definitions: Mapping[Expr, Expr]) -> Expr:
    """Replace scalars in ``e`` by the values they are computed from: the largest of the scalars is
    the largest of those values.
    """
    selected = {}
    for indicator in {part for part in parts_of(e) if isinstance(part, Indicator)}:
        values = tuple(with_definitions(value, definitions) for value in indicator.values)
        if values != indicator.values:
            place = indicators(indicator.group, len(values), indicator.values).index(indicator)
            selected[indicator] = selectors(values)[place]
    return written_in(e, {**definitions, **selected})


def _entry_name(name: str, i: Index) -> str:
    """``x[1,2]``: no tensor's name has brackets, so entries cannot clash with it."""
    return f"{name}[{','.join(str(k + 1) for k in i)}]" if i else name


class SmallBatch:
    """A forward on explicit scalars.

    ``sizes`` gives every axis a number. Tensors named in ``free`` are independent scalars for
    whatever reads them, instead of being computed: `entries` gives their scalars, `computed` their
    definitions.
    """

    def __init__(
        self, definition: Definition, sizes: Mapping[Axis, int], free: frozenset[str] = frozenset()
    ):
        self.definition, self.free = definition, free
        self.sizes = definition.sizes_from({axis: int(size) for axis, size in sizes.items()})
        self._entries: dict[str, Entries] = {}
        self._computed: dict[str, Entries] = {}
        self._scalars: dict[tuple[Expr, tuple[int, ...]], Expr] = {}

    def indices(self, axes) -> Iterator[Index]:
        return product(*(range(self.sizes[axis]) for axis in axes))

    def symbols(self, tensor: Tensor) -> Entries:
        """Independent scalars for the entries of ``tensor``, numbered from 1 as in a book."""
        signs = {"positive": True} if tensor.is_positive else {}
        return {
            i: Symbol(_entry_name(tensor.name, i), real=True, **signs)
            for i in self.indices(tensor.home)
        }

    def entries(self, tensor: Tensor) -> Entries:
        """The scalars that a statement sees when it reads ``tensor``."""
        name = tensor.name
        if name not in self._entries:
            computed = name in self.definition.by_name and name not in self.free
            self._entries[name] = self.computed(name) if computed else self.symbols(tensor)
        return self._entries[name]

    def computed(self, name: str) -> Entries:
        """The definition of a statement, written out."""
        if name not in self._computed:
            statement = self.definition.by_name[name]
            self._computed[name] = self.written_out(statement.expression, statement.tensor.home)
        return self._computed[name]

    def written_out(self, e: Expr, axes, values: Mapping[str, Entries] | None = None) -> Entries:
        """``e`` entry by entry along ``axes``; ``values`` holds tensors that are none of the
        forward.
        """
        axes = tuple(axes)
        return {i: self.scalar(e, axes, i, values) for i in self.indices(axes)}

    def scalar(self, e: Expr, axes, i: Index, values: Mapping[str, Entries] | None = None) -> Expr:
        """The entry ``i`` of ``e`` along ``axes``."""
        return self._scalar(e, dict(zip(axes, i, strict=True)), values or {})

    def representatives(self, axes, claim: Expr) -> list[Index]:
        """Entries along ``axes`` of which every other is a renumbering, for the forward and
        ``claim``.
        """
        axes = tuple(axes)
        formulas = [claim, *(s.expression for s in self.definition.statements)]
        if not all(map(self._treats_places_alike, formulas)):
            return list(self.indices(axes))
        return [i for i in self.indices(axes) if self._is_numbered_first(axes, i)]

    def _treats_places_alike(self, e: Expr) -> bool:
        """Whether no place along an axis of open size is singled out."""
        return all(
            type(node) in INDIFFERENT
            and (not isinstance(node, Reshaping) or self._is_counted_as_declared(node))
            for node in e.atoms(ArrayNode)
        )

    def _is_counted_as_declared(self, node: Reshaping) -> bool:
        """An axis that is flattened in two orders has no renumbering that suits both."""
        parts = node.binds if isinstance(node, Flatten) else node.brings
        declared = dict(self.definition.flattened).get(self.definition.size(node.flat))
        return tuple(map(self.definition.size, parts)) == declared

    def _is_numbered_first(self, axes: tuple[Axis, ...], i: Index) -> bool:
        """Whether the places along each axis are met in the order 0, 1, 2, ...

        Axes of one size (a renamed axis, the parts of a flattened one) are renumbered together.
        """
        met: dict[Axis, int] = {}
        for axis, place in zip(axes, i, strict=True):
            for part, inner in self._places(axis, place):
                if part.length is not None:
                    continue  # its places may be named one by one: OneHot(0, Gate)
                if inner > met.get(part, 0):
                    return False
                met[part] = max(met.get(part, 0), inner + 1)
        return True

    def _places(self, axis: Axis, place: int) -> list[tuple[Axis, int]]:
        """The axes that ``axis`` was flattened from, each with its place; itself, if it was not."""
        axis, found = self.definition.size(axis), []
        for part in reversed(dict(self.definition.flattened).get(axis, ())):
            place, inner = divmod(place, self.sizes[part])
            found = self._places(part, inner) + found
        return found or [(axis, place)]

    def _scalar(self, e: Expr, at: dict[Axis, int], values: Mapping[str, Entries]) -> Expr:
        """The entry of ``e`` at ``at``, written out once however often it is read."""
        if values or not e.args or isinstance(e, Tensor):
            return self._written_out(e, at, values)
        place = e, tuple(at[axis] for axis in ordered(axes_of(e)))
        if place not in self._scalars:
            self._scalars[place] = self._written_out(e, at, values)
        return self._scalars[place]

    def _written_out(self, e: Expr, at: dict[Axis, int], values: Mapping[str, Entries]) -> Expr:
        if isinstance(e, Tensor):
            entries = values[e.name] if e.name in values else self.entries(e)
            return entries[tuple(at[axis] for axis in e.axes)]
        if isinstance(e, Axis):
            return Integer(self.sizes[e])
        if isinstance(e, Sum):
            return Add(
                *(
                    self._scalar(e.operand, {**at, **dict(zip(e.axes, i, strict=True))}, values)
                    for i in self.indices(e.axes)
                )
            )
        if isinstance(e, Reshaping):
            return self._scalar(e.operand, at | self._counted(e, at), values)
        if isinstance(e, At):
            return self._read(e, at, values)
        if isinstance(e, Max):
            return LargestOf(*self._row(e, at, values))
        if isinstance(e, Position):
            return Integer(at[e.axis])
        if isinstance(e, OneHot):
            return self._one_hot(e, at, values)
        if isinstance(e, GoneAlong):
            return self._state(e, at, values)
        if isinstance(e, MatrixNode):
            return self._of_matrix(e, at, values)
        return with_args(e, [self._scalar(arg, at, values) for arg in e.args]) if e.args else e

    def _counted(self, e: Reshaping, at: dict[Axis, int]) -> dict[Axis, int]:
        """Place of the entry ``at`` in the operand: the same place in the row of all."""
        place = 0
        for axis in e.brings:
            place = place * self.sizes[axis] + at[axis]
        inside = {}
        for axis in reversed(e.binds):
            place, inside[axis] = divmod(place, self.sizes[axis])
        return inside

    def _read(self, e: At, at: dict[Axis, int], values) -> Expr:
        """The entry at the index; the fill where that is none."""
        place = self._scalar(e.index, at, values)
        if not place.is_Integer or not 0 <= place < self.sizes[e.axis]:
            return e.fill
        return self._scalar(e.operand, {**at, e.axis: int(place)}, values)

    def _row(self, e, at, values) -> tuple[Expr, ...]:
        (axis,) = e.axes
        return tuple(
            self._scalar(e.operand, {**at, axis: k}, values) for k in range(self.sizes[axis])
        )

    def _of_matrix(self, e: MatrixNode, at, values) -> Expr:
        """A function of a matrix from its entries: by minors, or by its factor's entries."""
        rows, columns = e.axes
        places, by = range(self.sizes[rows]), OfScalars()
        matrix = [
            [self._scalar(e.matrix, {**at, rows: i, columns: j}, values) for j in places]
            for i in places
        ]
        if isinstance(e, LogDet):
            return log(determinant(matrix, by) ** 2) / 2
        if isinstance(e, Cholesky):
            return factor(matrix, by)[at[rows]][at[columns]]
        if isinstance(e, Inverse):
            return inverse(matrix, by)[at[rows]][at[columns]]
        row = inverse(matrix, by)[at[columns]]
        right = [self._scalar(e.right, {**at, rows: i}, values) for i in places]
        return Add(*map(Mul, row, right))

    def _state(self, e: GoneAlong, at, values) -> Expr:
        """Recurrence: the state from the one before, or from the next where it goes back."""
        if isinstance(e, LogCumSumExp):
            return self._scalar(e.in_full, at, values)
        if not isinstance(e, Recurrence):
            return self._largest_so_far(e, at, values)
        step = -1 if e.reverse else 1
        before = {**at, e.axis: at[e.axis] - step}
        is_first = before[e.axis] not in range(self.sizes[e.axis])
        if is_first and (e.exclusive or e.reverse):
            return self._scalar(e.initial if e.exclusive else e.operand, at, values)
        term = self._scalar(e.operand, before if e.exclusive else at, values)
        factor = self._scalar(e.factor, before if e.exclusive or e.reverse else at, values)
        state = self._scalar(e.initial if is_first else e, before, values)
        return factor * state + term

    def _largest_so_far(self, e: LargestSoFar | NewMax, at, values) -> Expr:
        """The larger of the maximum before and the entry; or whether that is the entry."""
        whole, here = isinstance(e, LargestSoFar), self._scalar(e.operand, at, values)
        if at[e.axis] == 0:
            return here if whole else Integer(1)
        largest = LargestSoFar.over(e.operand, e.axes)
        both = here, self._scalar(largest, {**at, e.axis: at[e.axis] - 1}, values)
        return LargestOf(*both) if whole else selectors(both)[0]  # of equal ones the last

    def _one_hot(self, e: OneHot, at, values) -> Expr:
        if e.operand.is_integer and not isinstance(e.operand, (Tensor, ArgMax)):
            return Integer(int(self._scalar(e.operand, at, values) == at[e.axis]))
        if isinstance(e.operand, ArgMax):
            return selectors(self._row(e.operand, at, values))[at[e.axis]]
        place = ", ".join(str(at[axis] + 1) for axis in e.operand.axes)
        group = f"{e.operand.name}[{place}] of {self.definition.size(e.axis)}"
        return indicators(group, self.sizes[e.axis])[at[e.axis]]
