"""The same derivative on explicit scalars: the forward written out for a small batch, SymPy's own
``diff``.

In: a `Definition` and a size for every axis. Out: SymPy scalars. Nothing here knows the chain, its
rules or the identities: a sum is written out term by term, and the derivative is SymPy's. An
unknown label is a row of indicators (each 0 or 1, one of them 1); so is an unknown arg max, so one
check covers every label and every order of the entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from sympy import Add, Expr, Function, Integer, Symbol

from derive.definition import Definition
from derive.exact import Indicator
from derive.nodes import ArgMax, Max, OneHot, Reshaping, Sum
from derive.symbols import Axis, Tensor

Index = tuple[int, ...]
Entries = dict[Index, Expr]


class LargestOf(Function):
    """The largest of its arguments.

    Where they differ, its derivative by the k-th is 1 if that is the largest.
    """

    is_real = True

    def fdiff(self, argindex=1):
        return selectors(self.args)[argindex - 1]


def selectors(entries: tuple[Expr, ...]) -> list[Expr]:
    """For each entry: 1 if it is the first largest one, else 0."""
    return indicators(f"largest of {entries}", len(entries))


def indicators(group: str, count: int) -> list[Expr]:
    """0/1 symbols of which exactly one is 1: the last is written as 1 minus the others."""
    free = [Indicator(f"{group}, {k}", group) for k in range(count - 1)]
    return [*free, Integer(1) - Add(*free)]


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

    def indices(self, axes) -> Iterator[Index]:
        return product(*(range(self.sizes[axis]) for axis in axes))

    def symbols(self, tensor: Tensor) -> Entries:
        """Independent scalars for the entries of ``tensor``, numbered from 1 as in a book."""
        signs = {"positive": True} if tensor.is_positive else {}
        return {
            i: Symbol("_".join([tensor.name, *(str(k + 1) for k in i)]), real=True, **signs)
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
        return {
            i: self._scalar(e, dict(zip(axes, i, strict=True)), values or {})
            for i in self.indices(axes)
        }

    def _scalar(self, e: Expr, at: dict[Axis, int], values: Mapping[str, Entries]) -> Expr:
        if isinstance(e, Tensor):
            entries = values[e.name] if e.name in values else self.entries(e.at_home)
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
        if isinstance(e, Max):
            return LargestOf(*self._row(e, at, values))
        if isinstance(e, OneHot):
            return self._one_hot(e, at, values)
        return e.func(*(self._scalar(arg, at, values) for arg in e.args)) if e.args else e

    def _counted(self, e: Reshaping, at: dict[Axis, int]) -> dict[Axis, int]:
        """Where the entry ``at`` stands in the operand: the same place in the row of all."""
        place = 0
        for axis in e.brings:
            place = place * self.sizes[axis] + at[axis]
        inside = {}
        for axis in reversed(e.binds):
            place, inside[axis] = divmod(place, self.sizes[axis])
        return inside

    def _row(self, e, at, values) -> tuple[Expr, ...]:
        (axis,) = e.axes
        return tuple(
            self._scalar(e.operand, {**at, axis: k}, values) for k in range(self.sizes[axis])
        )

    def _one_hot(self, e: OneHot, at, values) -> Expr:
        if isinstance(e.operand, ArgMax):
            return selectors(self._row(e.operand, at, values))[at[e.axis]]
        place = ", ".join(str(at[axis] + 1) for axis in e.operand.axes)
        return indicators(f"{e.operand.name}[{place}] of {e.axis}", self.sizes[e.axis])[at[e.axis]]
