"""Operations on whole arrays that a library computes, between the loops of all else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace

from codegen.program import arrays
from codegen.program.loops import Collected, Looped
from codegen.program.parts import is_number, values_in, with_replaced
from codegen.program.reads import Convolve, Placed
from codegen.program.values import Apply, Load, Value
from codegen.schedule.elements import Axes, Element
from codegen.schedule.nodes import Array, LibraryNode, Node
from codegen.targets.functions import IN_TARGETS
from derive.language.notation.layout import Layout

# Products and additions by index, of which libraries have better loops; what goes along an axis
# from place to place; what is made of matrices; with what they are called where they have no name.
LIBRARY: dict[type[Value], str] = {
    arrays.Contract: "product",
    arrays.Gathered: "added",
    arrays.Scattered: "added",
    arrays.SegmentMax: "largest",
    arrays.SegmentArgMax: "place",
    arrays.ArgMaxOf: "place",
    arrays.Cumulate: "cumulated",
    arrays.Scanned: "scanned",
    arrays.OfMatrix: "of_matrix",
    arrays.Solved: "solved",
    Convolve: "product",
    Placed: "placed",
    Looped: "places",
    Collected: "collected",
}
# Functions that C++ and CUDA lack.
FUNCTIONS = {name for name, row in IN_TARGETS.items() if row.cpp is None}
PLACES = (arrays.ArgMaxOf, arrays.SegmentArgMax)  # whole numbers


class Library:
    """Stores the operands of library operations, and names them."""

    arrays: dict[str, Array]
    numbers: set[str]
    known: dict[str, Element]
    made: dict[str, str]
    places: set[str]
    layouts: dict[str, Layout]

    def axes(self, layout: Layout) -> Axes:
        raise NotImplementedError

    def add(self, node: Node | LibraryNode) -> str:
        raise NotImplementedError

    def bind(self, name: str, value: Value) -> None:
        raise NotImplementedError

    def free(self, name: str) -> str:
        raise NotImplementedError

    def fresh(self, name: str) -> str:
        raise NotImplementedError

    def numbered(self, name: str) -> str:
        raise NotImplementedError

    def loaded(self, name: str, dims: Layout, at: Mapping) -> Element:
        raise NotImplementedError

    def is_of_library(self, value: Value) -> bool:
        """True if a library computes it; never for numbers, which no line makes arrays of."""
        if isinstance(value, Apply) and value.function in FUNCTIONS:
            return not is_number(value, self.numbers | self.known.keys())
        return type(value) in LIBRARY

    def of_library(self, value: Value, at: Mapping[str, tuple[Element, ...]]) -> Element:
        """An entry of a library result without a name of its own."""
        word = value.function if isinstance(value, Apply) else LIBRARY[type(value)]
        fresh = self.numbered(word)
        self.layouts[fresh] = value.dims
        self.made[fresh] = self.whole(value, fresh)
        return self.loaded(fresh, value.dims, at)

    def is_whole(self, name: str) -> bool:
        """True if an array has integer entries, which loops do not store."""
        array = self.arrays.get(name)
        return name in self.places or (array is not None and array.entries == "whole")

    def whole(self, value: Value, name: str) -> str | None:
        """The name of a library's result for ``value``; None where a loop computes it."""
        if not self.is_of_library(value):
            return None
        value = self._of_arrays(value, name)
        reads = self._read(value)
        entries = "whole" if isinstance(value, PLACES) else "exact"
        found = LibraryNode(self.free(name), self.axes(value.dims), value, reads, entries)
        self.places |= {found.name} if entries == "whole" else set()
        return self.add(found)

    def _of_arrays(self, value: Value, name: str) -> Value:
        if isinstance(value, Looped):
            starts = (self.stored(p.initial, f"{p.before}_first") for p in value.passed)
            wholes = (self.stored(g.whole, f"{g.name}_whole") for g in value.given)
            passed = (replace(p, initial=v) for p, v in zip(value.passed, starts, strict=True))
            given = (replace(g, whole=v) for g, v in zip(value.given, wholes, strict=True))
            return replace(value, passed=tuple(passed), given=tuple(given))
        parts = {field.name: getattr(value, field.name) for field in fields(value)}
        values = {part: own for part, own in parts.items() if isinstance(own, Value)}
        return replace(value, **{p: self.stored(v, f"{name}_{p}") for p, v in values.items()})

    def _read(self, value: Value) -> frozenset[str]:
        loads = {v.name for v in (value, *values_in(value)) if isinstance(v, Load)}
        return frozenset(loads - self.numbers - self.known.keys())

    def stored(self, value: Value, name: str) -> Value:
        """The value as an array in memory; values made of no array, or of integers alone, as they
        are.
        """

        def named(e: Value) -> Value | None:
            is_made = isinstance(e, Load) and e.name in self.made
            return replace(e, name=self.made[e.name]) if is_made else None

        def placed(e: Value) -> Value | None:
            if not isinstance(e, PLACES):
                return None
            fresh = self.numbered(LIBRARY[type(e)])
            self.made[fresh], self.layouts[fresh] = self.whole(e, fresh), e.dims
            return Load(fresh, dims=e.dims)

        value = with_replaced(value, placed)
        names = (self.made.get(name, name) for name in self._read(value))
        if isinstance(value, Load) or all(map(self.is_whole, names)):
            return with_replaced(value, named)
        fresh = self.fresh(name)
        self.layouts[fresh] = value.dims
        self.bind(fresh, value)
        return Load(self.made[fresh], dims=value.dims)
