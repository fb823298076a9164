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

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from sympy import Add, Expr, Integer, Symbol

from derive.language.array_node import ArrayNode
from derive.language.choices import with_args, written_in
from derive.language.cofactors import OfScalars
from derive.language.entries import Places
from derive.language.finite import Finite
from derive.language.matrices import MatrixNode
from derive.language.notation.definition import Definition
from derive.language.reshaping import Reshaping
from derive.language.symbols import Axis, Tensor, axes_of, ordered
from derive.language.traversal import parts_of
from derive.proof.proving.largest_of import LargestOf as LargestOf
from derive.proof.proving.largest_of import indicators as indicators
from derive.proof.proving.largest_of import selectors as selectors
from derive.proof.proving.total_derivative import TotalDerivative as TotalDerivative
from derive.proof.zero.indicator import Indicator

Index = tuple[int, ...]
Entries = dict[Index, Expr]


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
        self.scalars: dict[tuple[Expr, tuple[int, ...]], Expr] = {}

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
        return ScalarReader(self, values or {}).at(e, dict(zip(axes, i, strict=True)))

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
            node.is_equivariant
            and (not isinstance(node, Reshaping) or self._is_counted_as_declared(node))
            for node in e.atoms(ArrayNode)
        )

    def _is_counted_as_declared(self, node: Reshaping) -> bool:
        """An axis that is flattened in two orders has no renumbering that suits both."""
        declared = dict(self.definition.flattened).get(self.definition.size(node.flat))
        return tuple(map(self.definition.size, node.parts)) == declared

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


class ScalarReader(Finite):
    """Entries as SymPy scalars; ``values`` holds tensors that are none of the forward."""

    def __init__(self, batch: SmallBatch, values: Mapping[str, Entries]):
        self.batch, self.values = batch, values

    def at(self, e: Expr, places: Places) -> Expr:
        """The entry of ``e`` at ``places``, written out once however often it is read."""
        if self.values or not e.args or isinstance(e, Tensor):
            return self._written_out(e, places)
        scalars, place = (
            self.batch.scalars,
            (e, tuple(places[axis] for axis in ordered(axes_of(e)))),
        )
        if place not in scalars:
            scalars[place] = self._written_out(e, places)
        return scalars[place]

    def _written_out(self, e: Expr, places: Places) -> Expr:
        if isinstance(e, Tensor):
            entries = self.values[e.name] if e.name in self.values else self.batch.entries(e)
            return entries[tuple(places[axis] for axis in e.axes)]
        if isinstance(e, Axis):
            return Integer(self.size(e))
        if isinstance(e, ArrayNode):
            return e.entry(self, places)
        return with_args(e, [self.at(arg, places) for arg in e.args]) if e.args else e

    def size(self, axis: Axis) -> int:
        return self.batch.sizes[axis]

    def number(self, n: int) -> Expr:
        return Integer(n)

    def added(self, terms: Sequence[Expr]) -> Expr:
        return Add(*terms)

    def times(self, one: Expr, other: Expr) -> Expr:
        return one * other

    def largest_of(self, row: Sequence[Expr]) -> Expr:
        return LargestOf(*row)

    def chosen(self, row: Sequence[Expr]) -> list[Expr]:
        return selectors(tuple(row))

    def larger(self, before: Expr, here: Expr) -> tuple[Expr, Expr]:
        return LargestOf(here, before), selectors((here, before))[0]

    def is_label(self, label: Expr, axis: Axis, places: Places) -> Expr:
        """One of a row of indicators, where the label is unknown."""
        if not isinstance(label, Tensor):
            return Integer(int(self.at(label, places) == places[axis]))
        place = ", ".join(str(places[own] + 1) for own in label.axes)
        group = f"{label.name}[{place}] of {self.batch.definition.size(axis)}"
        return indicators(group, self.size(axis))[places[axis]]

    def of_matrix(self, e: MatrixNode, places: Places) -> Expr:
        made = e.of_rows(*self.rows_of(e, places), OfScalars())
        return self.entry_of(e, places, made)
