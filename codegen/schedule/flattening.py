"""A function of a Program as a list of nodes: loops over named axes, and operations on whole
arrays.

Views become index arithmetic, every reduction gets a node of its own, and a name is bound once. A
flattened axis is replaced by its parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from itertools import count
from types import MappingProxyType

from codegen.program import NUMBERS, Function, Parameter, Program
from codegen.program import arrays as array_values
from codegen.program import steps as step_kinds
from codegen.program.loops import Looped
from codegen.program.parts import is_number, values_in, with_replaced
from codegen.program.values import Apply, Load, Value
from codegen.schedule import entries as entries  # fills the table of rules
from codegen.schedule import views as views
from codegen.schedule.elements import (
    ZERO,
    Axes,
    Element,
    call,
    choose,
    compare,
    decided,
    entry,
    index,
    minus,
    number,
    plus,
    size,
)
from codegen.schedule.entry_rules import Indices, rules
from codegen.schedule.library import FUNCTIONS, LIBRARY, PLACES
from codegen.schedule.nodes import Array, Flat, LibraryNode, Node
from derive.language.errors import QuestionError
from derive.language.notation.layout import Layout

# Kinds of reductions of a Program: that of a node, and its rule for an infinite peak.
REDUCTIONS = {
    "sum": ("sum", ""),
    "max": ("max", ""),
    "peak": ("max", "added again"),
    "subtracted peak": ("max", "subtracted"),
}


def flat(
    program: Program, function: Function, known: Mapping[str, Element] = MappingProxyType({})
) -> Flat:
    """The nodes of a function; ``known`` are names in it that stand for numbers.

    Raises `QuestionError` for operations that no loop computes.
    """
    return Flattening(program, function, known).flat()


def parts_of_axes(program: Program) -> dict[str, tuple[str, ...]]:
    """The parts of each flattened axis, by its name. A Program has their lengths; which of several
    axes of one length is meant is seen where they are merged or split.

    Raises `QuestionError` where that differs from place to place.
    """
    seen: dict[str, set[tuple[str, ...]]] = {}
    steps = (*program.forward.steps, *program.backward.steps)
    for value in (value for step in steps for value in values_in(step)):
        if isinstance(value, array_values.Merge):
            inner = value.operand.dims[value.first : value.first + value.count]
            whole = value.dims[value.first].axis.name
            seen.setdefault(whole, set()).add(tuple(dim.axis.name for dim in inner))
        elif isinstance(value, array_values.Split):
            whole = value.operand.dims[value.along].axis.name
            seen.setdefault(whole, set()).add(tuple(value.into))
    of_code = {code: axis for axis, code in program.sizes}
    codes = [code for _, code in program.sizes]
    parts: dict[str, tuple[str, ...]] = {}
    for whole, lengths in program.flattened:
        axis = of_code.get(whole, whole)
        parts[axis] = tuple(of_code.get(length, length) for length in lengths)
        if any(codes.count(length) > 1 for length in lengths):
            if len(seen.get(axis, ())) != 1:
                raise QuestionError(
                    f"{program.name}: it is ambiguous which axes are flattened into {axis}, since"
                    " some have the same length",
                    "leave the target out, or do not rename an axis that is flattened",
                )
            (parts[axis],) = seen[axis]
    return parts


class Flattening:
    """The nodes of one function, step by step."""

    def __init__(self, program: Program, function: Function, known: Mapping[str, Element]):
        self.function = function
        codes = dict(program.sizes)
        self.codes = codes
        self.parts = parts_of_axes(program)
        self.numbers = {p.name for p in function.parameters if p.role in NUMBERS}
        self.nodes: list[Node | LibraryNode] = []
        self.arrays: dict[str, Array] = {}
        self.places: set[str] = set()  # the names of whole numbers that are computed
        self.made: dict[str, str] = {}  # by the name in the function: that of its node or array
        self.layouts: dict[str, Layout] = {}
        self.picks: dict[tuple[str, str], None] = {}
        self.counter = count(1)
        self.named = {step.name for step in function.steps}
        self.known: dict[str, Element] = dict(known)
        self.rounded = frozenset((*program.outputs, *program.backward.results))
        for p in function.tensors:
            self.arrays[p.name] = Array(p.name, self.axes(p.layout), p.layout, self.entries(p))
            self.layouts[p.name] = p.layout

    def flat(self) -> Flat:
        for step in self.function.steps:
            run = getattr(self, f"_{type(step).__name__}", None)
            if run is None:
                raise self.unknown(step)
            run(step)
        results = []
        for name in self.function.results:
            made = self.made.get(name, name)
            results.append((name, made))
        return Flat(
            tuple(self.arrays.values()),
            tuple(sorted(self.numbers)),
            tuple(self.nodes),
            self.layouts,
            tuple(results),
            tuple(self.picks),
            {axis: self.unflattened(axis) for axis in self.parts},
            self.rounded.intersection(self.function.results),
        )

    def entries(self, p: Parameter) -> str:
        """The dtype of a parameter; values made for the backward alone are never rounded."""
        if p.role == "label":
            return "whole"
        exact = p.role == "kept" or (p.role == "statement" and p.name not in self.rounded)
        return "exact" if exact else "real"

    def unknown(self, node: object) -> QuestionError:
        return QuestionError(
            f"{self.function.name}: kernels do not support {type(node).__name__}",
            "to add it, extend codegen/schedule/flattening.py",
        )

    # -- steps ----------------------------------------------------------------

    def _Assign(self, step: step_kinds.Assign):
        value = step.value
        if isinstance(value, Load) and value.name in self.made | self.arrays:
            self.made[step.name] = self.made.get(value.name, value.name)
            self.layouts.setdefault(step.name, value.dims)
            return
        self.layouts[step.name] = value.dims
        if is_number(value, self.numbers | self.known.keys()):
            self.known[step.name] = self.entry(value, {})
            return
        self.bind(step.name, value)

    def bind(self, name: str, value: Value) -> None:
        whole = self.whole(value, name)
        if whole is not None:
            self.made[name] = whole
            return
        if isinstance(value, array_values.Reduce):
            self.made[name] = self.reduced(value, name)
            return
        element = self.entry(value, self.indices(value.dims))
        self.made[name] = self.add(Node(self.free(name), self.axes(value.dims), element))

    def add(self, node: Node | LibraryNode) -> str:
        """Add a node. Raises `QuestionError` for nested loops over one axis, with one index."""
        if isinstance(node, Node) and len({*node.space}) < len(node.space):
            twice = next(axis for axis in node.space if node.space.count(axis) > 1)
            raise QuestionError(
                f"{self.function.name}: {node.name} runs along {twice} and along an axis into which"
                " it was flattened, which kernels do not support",
                f"give one of the two another name: Rename(..., {twice}, ...)",
            )
        if isinstance(node, Node):
            node = replace(node, value=decided(node.value))
        self.nodes.append(node)
        return node.name

    def free(self, name: str) -> str:
        """A free name for a step of this name, or for a value with a fresh one."""
        taken = {node.name for node in self.nodes} | self.arrays.keys() | self.numbers
        while name in taken:
            name = f"{name}_"
        return name

    def fresh(self, name: str) -> str:
        """A fresh name for a value other than a step: layouts are by the names of steps, too."""
        while name in self.named or name != self.free(name):
            name = f"{name}_"
        return name

    def numbered(self, name: str) -> str:
        return self.fresh(f"{name}_{next(self.counter)}")

    def _Fill(self, step: step_kinds.Fill):
        """Do nothing: the argument is filled before the loops."""

    _Default = _NotZero = _SplitLabelDone = _Fill

    def _SplitLabel(self, step: step_kinds.SplitLabel):
        """Add the array of the mask: labels are split before the loops, too."""
        self.arrays[step.kept] = Array(step.kept, self.axes(step.dims), step.dims, "exact")
        self.layouts[step.kept] = step.dims

    def _AddAt(self, step: step_kinds.AddAt):
        layout = self.layouts[step.name]
        at = self.indices(layout)
        along = layout[step.along].axis.name
        rest = {axis: i for axis, i in at.items() if axis != along}
        place = self.place(step.index, rest, along)
        here = self.unpacked(along, place)
        same = [compare(i, "==", j) for i, j in zip(at[along], here, strict=True)]
        condition = same[0] if len(same) == 1 else Element("and", tuple(same))
        before = self.loaded(step.name, layout, at)
        value = self.entry(step.value, rest)
        added = plus(before, choose(condition, value, ZERO))
        self.made[step.name] = self.add(Node(self.free(step.name), self.axes(layout), added))

    # -- reductions ------------------------------------------

    def reduced(self, value: array_values.Reduce, name: str) -> str:
        operand = value.operand
        along = self.axes(tuple(operand.dims[i] for i in value.along))
        element = self.entry(operand, self.indices(operand.dims))
        axes = self.axes(value.dims)
        if value.kind not in REDUCTIONS:
            raise QuestionError(
                f"{self.function.name}: kernels do not support the reduction {value.kind!r}",
                "to add it, extend codegen/schedule/flattening.py",
            )
        kind, shift = REDUCTIONS[value.kind]
        raw = self.fresh(f"{name}_raw") if shift else self.free(name)
        self.add(Node(raw, axes, element, kind, along))
        if not shift:
            return raw
        peak = finite(entry(raw, *map(index, axes)), shift == "added again")
        return self.add(Node(self.free(name), axes, peak))

    def reduced_apart(self, value: array_values.Reduce) -> str:
        """The node of a reduction without a name of its own."""
        return self.reduced(value, self.numbered(value.kind.split()[-1]))

    # -- entries --------------------------------------------------------------

    def axes(self, layout: Layout) -> Axes:
        """The axes of a layout, with flattened ones as their parts."""
        return tuple(a for dim in layout if not dim.one for a in self.unflattened(dim.axis.name))

    def unflattened(self, axis: str) -> Axes:
        if axis not in self.parts:
            return (axis,)
        return tuple(a for part in self.parts[axis] for a in self.unflattened(part))

    def indices(self, layout: Layout) -> dict[str, tuple[Element, ...]]:
        """For every dimension that is not of size 1 the index of its own loops."""
        return {
            dim.axis.name: tuple(map(index, self.unflattened(dim.axis.name)))
            for dim in layout
            if not dim.one
        }

    def place(self, value: Value, at: Indices, along: str) -> Element:
        """An index along an axis, by a label or a number."""
        place = self.entry(value, at)
        for part in place.parts():
            if part.kind == "label" and part.name in self.arrays:
                self.picks[part.name, along] = None
        return place

    def unpacked(self, axis: str, place: Element) -> tuple[Element, ...]:
        """An index of a flattened axis as those of its parts."""
        parts = self.unflattened(axis)
        found = []
        for part in reversed(parts):
            found.append(place if part == parts[0] else Element("remainder", (place, size(part))))
            place = Element("floor divide", (place, size(part)))
        return tuple(reversed(found))

    def entry(self, value: Value, at: Indices) -> Element:
        """The entry of ``value`` at the indices ``at`` of its dimensions, by their axes."""
        if self.is_of_library(value):
            return self.of_library(value, at)
        rule = rules.get(type(value))
        if rule is None:
            raise self.unknown(value)
        return rule(self, value, at)

    def load(self, name: str, dims: Layout, at: Indices) -> Element:
        """An entry of what has a name: a number, or an array."""
        if name in self.numbers:
            return Element("scalar", name=name)
        if name in self.known:
            return self.known[name]
        return self.loaded(name, dims, at)

    def loaded(self, name: str, dims: Layout, at: Indices) -> Element:
        made = self.made.get(name, name)
        indices = [i for dim in dims if not dim.one for i in at[dim.axis.name]]
        given = made in self.arrays and self.arrays[made].entries == "whole"
        kind = "label" if given or made in self.places else "entry"
        return Element(kind, tuple(indices), made)

    # -- library operations ---------------------------------------------------

    def is_of_library(self, value: Value) -> bool:
        """True if a library computes it; never for numbers, which no line makes arrays of."""
        if isinstance(value, Apply) and value.function in FUNCTIONS:
            return not is_number(value, self.numbers | self.known.keys())
        return type(value) in LIBRARY

    def of_library(self, value: Value, at: Indices) -> Element:
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


def finite(peak: Element, added_again: bool) -> Element:
    """The shift of a row: 0 where its peak is -oo, and where it is +oo and the peak is added again;
    NaN stays NaN.
    """
    measure = call("Abs", peak) if added_again else minus(peak)
    return choose(compare(measure, "==", number(float("inf"))), ZERO, peak)
