"""A function of a Program as a list of nodes: loops over named axes, and what is done to whole
arrays.

Views vanish into indices, every reduction gets a node of its own, and a name is bound once. An axis
into which others were flattened is met as those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial, reduce
from itertools import count

from codegen.program import NUMBERS, Function, Program
from codegen.program import arrays as array_values
from codegen.program import steps as step_kinds
from codegen.program import values as entry_values
from codegen.program.values import Value
from codegen.schedule.elements import (
    Axes,
    Element,
    axes_in,
    call,
    choose,
    compare,
    entry,
    index,
    is_number,
    number,
    size,
    with_indices,
)
from derive.language.errors import QuestionError
from derive.notation.layout import Layout

ZERO, ONE = number(Fraction(0)), number(Fraction(1))
FUNCTIONS = {"Abs": "abs"}
BUILT = {  # of functions that are made of others: of their argument
    "sigmoid": lambda u: _over(ONE, _plus(ONE, call("exp", _minus(u)))),
    "logsigmoid": lambda u: _less(_smaller(u, ZERO), _log_of_tail(u)),
    "softplus": lambda u: _plus(_larger(u, ZERO), _log_of_tail(u)),
}


@dataclass(frozen=True)
class Node:
    """``value`` at every index of ``axes``; with a ``kind`` ('sum', 'max') the reduction of it over
    ``along`` as well.
    """

    name: str
    axes: Axes
    value: Element
    kind: str = ""
    along: Axes = ()

    @property
    def space(self) -> Axes:
        """The axes that its loops run over."""
        return (*self.axes, *self.along)

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(e.name for e in self.value.entries)


@dataclass(frozen=True)
class Whole:
    """``value`` as an operation on whole arrays, which a library does: a product of matrices, an
    addition by index. It stands under ``name``, and ``reads`` these arrays.
    """

    name: str
    axes: Axes
    value: Value
    reads: frozenset[str]


@dataclass(frozen=True)
class Array:
    """Something in memory, along ``axes``; its entries are 'real', or 'whole' numbers."""

    name: str
    axes: Axes
    layout: Layout
    entries: str = "real"


@dataclass(frozen=True)
class Flat:
    """The nodes of a function in an order in which they can be computed. ``results`` says for each
    result what it is: the name of a node, an array, or a number.

    ``arrays`` are the arguments; ``picks`` are (label, axis) for what is picked by a label;
    ``parts`` are those of axes into which others were flattened.
    """

    arrays: tuple[Array, ...]
    scalars: tuple[str, ...]
    nodes: tuple[Node | Whole, ...]
    layouts: Mapping[str, Layout]
    results: tuple[tuple[str, str], ...]
    picks: tuple[tuple[str, str], ...]
    parts: Mapping[str, tuple[str, ...]]


def flat(program: Program, function: Function) -> Flat:
    """The nodes of a function. Raises `QuestionError` for what no loop computes."""
    return _Flattening(program, function).flat()


class _Flattening:
    """``at_hand`` says for every name of the function what an entry of it is, and of which axes."""

    def __init__(self, program: Program, function: Function):
        self.function = function
        codes = dict(program.sizes)
        self.codes = codes
        of_code = {code: axis for axis, code in program.sizes}
        self.parts = {
            of_code.get(whole, whole): tuple(of_code.get(part, part) for part in parts)
            for whole, parts in program.flattened
        }
        self.numbers = {p.name for p in function.parameters if p.role in NUMBERS}
        self.nodes: list[Node | Whole] = []
        self.arrays: dict[str, Array] = {}
        self.made: dict[str, str] = {}  # by the name in the function: that of its node or array
        self.layouts: dict[str, Layout] = {}
        self.picks: dict[tuple[str, str], None] = {}
        self.fresh = count(1)
        for p in function.tensors:
            whole = "whole" if p.role == "label" else "real"
            self.arrays[p.name] = Array(p.name, self.axes(p.layout), p.layout, whole)
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
        )

    def _unknown(self, node):
        raise QuestionError(
            f"{self.function.name}: no loop computes {type(node).__name__}",
            "its rule belongs into codegen/schedule/flattening.py",
        )

    # -- axes -----------------------------------------------------------------

    def axes(self, layout: Layout) -> Axes:
        """Those that it has, each that others were flattened into as those."""
        return tuple(a for dim in layout if not dim.one for a in self.unflattened(dim.axis.name))

    def unflattened(self, axis: str) -> Axes:
        if axis not in self.parts:
            return (axis,)
        return tuple(a for part in self.parts[axis] for a in self.unflattened(part))

    def indices(self, layout: Layout) -> dict[str, tuple[Element, ...]]:
        """For every dimension that is not of size 1 where it is read: at its own loops."""
        return {
            dim.axis.name: tuple(map(index, self.unflattened(dim.axis.name)))
            for dim in layout
            if not dim.one
        }

    # -- steps ----------------------------------------------------------------

    def _Assign(self, step: step_kinds.Assign):
        value = step.value
        if isinstance(value, entry_values.Load) and value.name in self.made | self.arrays:
            self.made[step.name] = self.made.get(value.name, value.name)
            self.layouts.setdefault(step.name, value.dims)
            return
        self.layouts[step.name] = value.dims
        if self.is_number(value):
            raise QuestionError(f"{self.function.name}: {step.name} is a number", "name a tensor")
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

    def add(self, node: Node | Whole) -> str:
        self.nodes.append(node)
        return node.name

    def free(self, name: str) -> str:
        taken = {node.name for node in self.nodes} | self.arrays.keys() | self.numbers
        while name in taken:
            name = f"{name}_"
        return name

    def _Fill(self, step: step_kinds.Fill):
        """Done before the loops: the argument is a tensor from here on."""

    _Default = _NotZero = _SplitLabelDone = _Fill

    def _SplitLabel(self, step: step_kinds.SplitLabel):
        """Done before the loops too; there is one array more."""
        self.arrays[step.kept] = Array(step.kept, self.axes(step.dims), step.dims)
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
        added = _plus(before, choose(condition, value, ZERO))
        self.made[step.name] = self.add(Node(self.free(step.name), self.axes(layout), added))

    def place(self, value: Value, at, along: str) -> Element:
        """An index along an axis, by a label or a number."""
        place = self.entry(value, at)
        for part in place.parts():
            if part.kind == "label":
                self.picks[part.name, along] = None
        return place

    def unpacked(self, axis: str, place: Element) -> tuple[Element, ...]:
        """An index of an axis as those of what was flattened into it."""
        parts = self.unflattened(axis)
        found = []
        for part in reversed(parts):
            found.append(place if part == parts[0] else Element("remainder", (place, size(part))))
            place = Element("floor divide", (place, size(part)))
        return tuple(reversed(found))

    # -- whole arrays ---------------------------------------------------------

    def whole(self, value: Value, name: str) -> str | None:
        """The name of what a library makes of ``value``; None where a loop computes it."""
        if isinstance(value, array_values.Contract):
            parts = ("left", "right")
        elif isinstance(value, array_values.Gathered):
            parts = ("index", "source")
        else:
            return None
        named = {part: self.stored(getattr(value, part), f"{name}_{part}") for part in parts}
        reads = frozenset(load.name for load in named.values())
        return self.add(Whole(self.free(name), self.axes(value.dims), replace(value, **named), reads))

    def stored(self, value: Value, name: str) -> entry_values.Load:
        """The value as an array in memory."""
        if isinstance(value, entry_values.Load):
            made = self.made.get(value.name, value.name)
            return entry_values.Load(made, dims=value.dims)
        fresh = self.free(name)
        self.layouts[fresh] = value.dims
        self.bind(fresh, value)
        return entry_values.Load(self.made[fresh], dims=value.dims)

    # -- entries --------------------------------------------------------------

    def is_number(self, value: Value) -> bool:
        from codegen.program.parts import is_number as made_of_numbers

        return made_of_numbers(value, self.numbers)

    def entry(self, value: Value, at: Mapping[str, tuple[Element, ...]]) -> Element:
        """The entry of ``value`` at the indices ``at`` of its dimensions, by their axes."""
        method = getattr(self, f"_at_{type(value).__name__}", None)
        return method(value, at) if method else self._unknown(value)

    def _at_Number(self, value, at):
        return number(value.value)

    def _at_Constant(self, value, at):
        return number(value.value)

    def _at_SizeOf(self, value, at):
        return reduce(_times, map(size, self.unflattened(value.name)))

    def _at_LengthOf(self, value, at):
        dim = self.layouts[value.tensor][value.along]
        return ONE if dim.one else reduce(_times, map(size, self.unflattened(dim.axis.name)))

    def _at_Load(self, value, at):
        if value.name in self.numbers:
            return Element("scalar", name=value.name)
        return self.loaded(value.name, value.dims, at)

    def loaded(self, name: str, dims: Layout, at) -> Element:
        made = self.made.get(name, name)
        indices = [i for dim in dims if not dim.one for i in at[dim.axis.name]]
        kind = "label" if made in self.arrays and self.arrays[made].entries == "whole" else "entry"
        return Element(kind, tuple(indices), made)

    def _at_Plus(self, value, at):
        (first, negative), *others = value.terms
        total = self.entry(first, at)
        total = _minus(total) if negative else total
        for term, subtracted in others:
            total = (_less if subtracted else _plus)(total, self.entry(term, at))
        return total

    def _at_Times(self, value, at):
        (first, _), *others = value.factors
        product = self.entry(first, at)
        for factor, divides in others:
            product = (_over if divides else _times)(product, self.entry(factor, at))
        return product

    def _at_MulAdd(self, value, at):
        product = _times(self.entry(value.left, at), self.entry(value.right, at))
        return (_less if value.negative else _plus)(self.entry(value.addend, at), product)

    def _at_Power(self, value, at):
        return Element("power", (self.entry(value.base, at), self.entry(value.exponent, at)))

    def _at_Apply(self, value, at):
        operand = self.entry(value.operand, at)
        if value.function in BUILT:
            return BUILT[value.function](operand)
        return call(FUNCTIONS.get(value.function, value.function), operand)

    def _at_Pullback(self, value, at):
        return _times(self.entry(value.upstream, at), self.entry(value.derivative, at))

    def _at_Compare(self, value, at):
        return compare(self.entry(value.left, at), value.relation, self.entry(value.right, at))

    def _at_Combine(self, value, at):
        return Element(value.operator, tuple(self.entry(v, at) for v in value.operands))

    def _at_Choose(self, value, at):
        return choose(*(self.entry(v, at) for v in (value.condition, value.yes, value.no)))

    def _at_Extreme(self, value, at):
        left, right = self.entry(value.left, at), self.entry(value.right, at)
        return call("larger" if value.largest else "smaller", left, right)

    def _at_Clamp(self, value, at):
        result = self.entry(value.operand, at)
        if value.low is not None:
            result = _larger(result, self.entry(value.low, at))
        if value.high is not None:
            result = _smaller(result, self.entry(value.high, at))
        return result

    def _at_Gate(self, value, at):
        measure, threshold = self.entry(value.measure, at), self.entry(value.threshold, at)
        return choose(compare(measure, "<=", threshold), ZERO, self.entry(value.value, at))

    def _at_Bend(self, value, at):
        kept, above = self.entry(value.value, at), compare(self.entry(value.measure, at), ">", ZERO)
        return choose(above, kept, _times(kept, self.entry(value.slope, at)))

    def _at_Slope(self, value, at):
        kept, measure = self.entry(value.value, at), self.entry(value.measure, at)
        below = _times(_times(kept, self.entry(value.scale, at)), call("exp", measure))
        return choose(compare(measure, "<=", ZERO), below, kept)

    # -- views ----------------------------------------------------------------

    def _at_Arrange(self, value, at):
        inside = {}
        for dim, source in zip(value.dims, value.order, strict=True):
            if source is not None and not value.operand.dims[source].one:
                inside[value.operand.dims[source].axis.name] = at[dim.axis.name]
        return self.entry(value.operand, inside)

    def _at_Expand(self, value, at):
        dims, inner = value.dims, value.operand.dims
        pairs = zip(dims[len(dims) - len(inner) :], inner, strict=True)
        return self.entry(
            value.operand, {i.axis.name: at[o.axis.name] for o, i in pairs if not i.one}
        )

    def _at_Own(self, value, at):
        return self.entry(value.operand, at)

    def _at_Merge(self, value, at):
        merged = value.dims[value.first].axis.name
        inner = value.operand.dims[value.first : value.first + value.count]
        inside, indices = dict(at), list(at[merged])
        for dim in inner:
            if not dim.one:
                taken = len(self.unflattened(dim.axis.name))
                inside[dim.axis.name], indices = tuple(indices[:taken]), indices[taken:]
        if indices:
            self._unknown(value)
        return self.entry(value.operand, inside)

    def _at_Split(self, value, at):
        flat_axis = value.operand.dims[value.along].axis.name
        together = tuple(i for axis in value.into for i in at[axis])
        if len(together) != len(self.unflattened(flat_axis)):
            self._unknown(value)
        return self.entry(value.operand, {**at, flat_axis: together})

    # -- reductions and indices -----------------------------------------------

    def _at_Reduce(self, value, at):
        name = self.reduced(value, self.free(f"{value.kind.split()[-1]}_{next(self.fresh)}"))
        dims = value.dims
        indices = [i for dim in dims if not dim.one for i in at[dim.axis.name]]
        return entry(name, *indices)

    def reduced(self, value: array_values.Reduce, name: str) -> str:
        operand = value.operand
        along = self.axes(tuple(operand.dims[i] for i in value.along))
        element = self.entry(operand, self.indices(operand.dims))
        axes = self.axes(value.dims)
        kind = "sum" if value.kind == "sum" else "max"
        shift = {"peak": ("==", True), "subtracted peak": ("==", False)}.get(value.kind)
        raw = self.free(f"{name}_raw" if shift else name)
        self.add(Node(raw, axes, element, kind, along))
        if shift is None:
            return raw
        return self.add(Node(self.free(name), axes, _finite(entry(raw, *map(index, axes)), shift[1])))

    def _at_Contract(self, value, at):
        fresh = self.free(f"product_{next(self.fresh)}")
        self.layouts[fresh] = value.dims
        name = self.whole(value, fresh)
        return entry(name, *(i for dim in value.dims if not dim.one for i in at[dim.axis.name]))

    _at_Gathered = _at_Contract

    def _at_ContractAdd(self, value, at):
        product = self.entry(value.product, at)
        product = _times(self.entry(value.factor, at), product)
        return (_less if value.negative else _plus)(self.entry(value.addend, at), product)

    def _at_Pick(self, value, at):
        operand = value.operand
        along = operand.dims[value.along].axis.name
        others = [dim for i, dim in enumerate(operand.dims) if i != value.along]
        count_of_index = 0 if value.rowwise else len(value.index.dims)
        outer = value.dims[len(value.dims) - len(others) :] if not value.rowwise else value.dims
        inside = {
            inner.axis.name: at[dim.axis.name]
            for inner, dim in zip(others, outer, strict=True)
            if not inner.one
        }
        of_index = value.dims if value.rowwise else value.dims[:count_of_index]
        if isinstance(value.index, entry_values.Number):
            place = number(value.index.value)
        else:
            pairs = zip(value.index.dims, of_index, strict=True)
            place = self.place(
                value.index, {i.axis.name: at[d.axis.name] for i, d in pairs if not i.one}, along
            )
        inside[along] = self.unpacked(along, place)
        return self.entry(operand, inside)

    def _at_Positions(self, value, at):
        return reduce(_flat_index, zip(at[value.size], self.unflattened(value.size), strict=True), ZERO)

    def _at_AsNumber(self, value, at):
        return Element("real", (self.entry(value.operand, at),))

    def _at_OneHotOf(self, value, at):
        *rest, last = value.dims
        place = self.entry(value.index, {d.axis.name: at[d.axis.name] for d in rest if not d.one})
        here = reduce(_flat_index, zip(at[last.axis.name], self.unflattened(last.axis.name)), ZERO)
        return choose(compare(here, "==", place), ONE, ZERO)

    def _at_Zeros(self, value, at):
        return ZERO


def _plus(a: Element, b: Element) -> Element:
    return b if a == ZERO else a if b == ZERO else Element("add", (a, b))


def _less(a: Element, b: Element) -> Element:
    return a if b == ZERO else Element("subtract", (a, b))


def _times(a: Element, b: Element) -> Element:
    return b if a == ONE else a if b == ONE else Element("multiply", (a, b))


def _over(a: Element, b: Element) -> Element:
    return Element("divide", (a, b))


def _minus(a: Element) -> Element:
    return Element("negate", (a,))


_larger, _smaller = partial(call, "larger"), partial(call, "smaller")


def _log_of_tail(u: Element) -> Element:
    """log(1 + exp(-|u|))"""
    return call("log1p", call("exp", _minus(call("abs", u))))


def _finite(peak: Element, added_again: bool) -> Element:
    """What a row is shifted by: 0 where its peak is -oo, and where it is +oo and the peak is added
    again; what is no number stays none.
    """
    measure = call("abs", peak) if added_again else _minus(peak)
    return choose(compare(measure, "==", number(float("inf"))), ZERO, peak)


def _flat_index(before: Element, pair: tuple[Element, str]) -> Element:
    at, axis = pair
    return at if before == ZERO else _plus(_times(before, size(axis)), at)


__all__ = ["Array", "Flat", "Node", "Whole", "axes_in", "flat", "is_number", "with_indices"]
