"""An entry of a value inside a kernel, by the rules of every kernel: `Element`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from codegen.program import shards, steps
from codegen.program.values import Value
from codegen.schedule import flattening as flattening  # fills the table of rules
from codegen.schedule.elements import (
    ONE,
    ZERO,
    Axes,
    Element,
    choose,
    compare,
    decided,
    index,
    plus,
    size,
)
from codegen.schedule.entry_rules import Indices, rules
from codegen.schedule.flattening import REDUCTIONS, finite
from derive.language.errors import QuestionError
from derive.language.notation.layout import Layout

REMEDY = "leave --target triton out: torch code computes in chunks"


class TileEntries:
    """``numbers`` are the arguments that are numbers, ``labels`` those of integers; ``inlined`` are
    the values that stand where they are read.
    """

    def __init__(self, numbers: Collection[str], labels: Collection[str]):
        self.numbers, self.labels = numbers, labels
        self.layouts: dict[str, Layout] = {}
        self.inlined: dict[str, Value] = {}

    def of_step(self, step: steps.Step, dims: Layout) -> Element:
        """An entry of the value that a step makes."""
        at = indices(dims)
        if isinstance(step, steps.Assign):
            return self.of(step.value, at)
        if not isinstance(step, steps.AddAt):
            raise self.unknown(step)
        along = dims[step.along].axis.name
        rest = {axis: i for axis, i in at.items() if axis != along}
        here = compare(index(along), "==", self.of(step.index, rest))
        before = self.load(step.name, dims, at)
        return plus(before, choose(here, self.of(step.value, rest), ZERO))

    def of(self, value: Value, at: Indices) -> Element:
        return simple(self.entry(value, at))

    def entry(self, value: Value, at: Indices) -> Element:
        if isinstance(value, shards.Unshifted):
            _, shift = REDUCTIONS[value.kind]
            inner = self.entry(value.operand, at)
            return finite(inner, shift == "added again") if shift else inner
        if isinstance(value, shards.WholeSize):
            return size(value.group)
        rule = rules.get(type(value))
        if rule is None:
            raise self.unknown(value)
        return rule(self, value, at)

    def load(self, name: str, dims: Layout, at: Indices) -> Element:
        if name in self.numbers:
            return Element("scalar", name=name)
        if name in self.inlined:
            return self.entry(self.inlined[name], at)
        places = tuple(i for dim in dims if not dim.one for i in at[dim.axis.name])
        return Element("label" if name in self.labels else "entry", places, name)

    def place(self, value: Value, at: Indices, along: str) -> Element:
        return self.entry(value, at)

    def unflattened(self, axis: str) -> Axes:
        return (axis,)

    def unpacked(self, axis: str, place: Element) -> tuple[Element, ...]:
        return (place,)

    def reduced_apart(self, value: Value) -> str:
        raise self.unknown(value)

    def unknown(self, node: object) -> QuestionError:
        return QuestionError(f"tiles have no {type(node).__name__}", REMEDY)


def indices(dims: Layout) -> Mapping[str, tuple[Element, ...]]:
    return {dim.axis.name: (index(dim.axis.name),) for dim in dims if not dim.one}


def simple(e: Element) -> Element:
    """Without tests of what chose 1 or 0."""
    args = tuple(map(simple, e.args))
    e = e if args == e.args else Element(e.kind, args, e.name, e.number)
    if e.kind == "compare" and e.name in ("!=", "==") and ZERO in args:
        (other,) = [arg for arg in args if arg != ZERO] or [ZERO]
        if other.kind == "choose" and other.args[1:] == (ONE, ZERO):
            test = other.args[0]
            return test if e.name == "!=" else Element("not", (test,))
    return e


def where_it_holds(e: Element, conditions: Collection[Element]) -> Element:
    """The entry where all these conditions hold."""
    return decided(e.replaced(lambda part: ONE if part in conditions else None))
