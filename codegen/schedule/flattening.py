"""A function of a Program as a list of nodes: loops over named axes, and operations on whole
arrays.

Views become index arithmetic, every reduction gets a node of its own, and a name is bound once. A
flattened axis is replaced by its parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from types import MappingProxyType

from codegen.program import NUMBERS, Function, Parameter, Program
from codegen.program import arrays as array_values
from codegen.program import steps as step_kinds
from codegen.program import values as entry_values
from codegen.program.parts import is_number, values_in
from codegen.program.values import Value
from codegen.schedule.elements import (
    ZERO,
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
)
from codegen.schedule.entries import Entries
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


class Flattening(Entries):
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
            getattr(self, f"_{type(step).__name__}", self._unknown)(step)
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

    def _unknown(self, node):
        raise QuestionError(
            f"{self.function.name}: kernels do not support {type(node).__name__}",
            "to add it, extend codegen/schedule/flattening.py",
        )

    # -- steps ----------------------------------------------------------------

    def _Assign(self, step: step_kinds.Assign):
        value = step.value
        if isinstance(value, entry_values.Load) and value.name in self.made | self.arrays:
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

    # -- reductions and whole arrays ------------------------------------------

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
        peak = _finite(entry(raw, *map(index, axes)), shift == "added again")
        return self.add(Node(self.free(name), axes, peak))


def _finite(peak: Element, added_again: bool) -> Element:
    """The shift of a row: 0 where its peak is -oo, and where it is +oo and the peak is added again;
    NaN stays NaN.
    """
    measure = call("Abs", peak) if added_again else minus(peak)
    return choose(compare(measure, "==", number(float("inf"))), ZERO, peak)
