"""An entry of a Program's value, by the indices of its dimensions: views only change indices."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce

from codegen.program import values as entry_values
from codegen.program.values import Value
from codegen.schedule.elements import (
    ONE,
    ZERO,
    Axes,
    Element,
    call,
    choose,
    compare,
    entry,
    index,
    less,
    minus,
    number,
    over,
    plus,
    size,
    times,
)
from codegen.schedule.library import Library
from codegen.schedule.nodes import Array
from codegen.schedule.reads import Reads, flat_index
from codegen.schedule.views import Views
from derive.language.notation.layout import Layout

BUILT = {  # of functions that are made of others: of their arguments
    "sigmoid": lambda u: over(ONE, plus(ONE, call("exp", minus(u)))),
    "logsigmoid": lambda u: less(_smaller(u, ZERO), _log_of_tail(u)),
    "softplus": lambda u: plus(_larger(u, ZERO), _log_of_tail(u)),
    "Mod": lambda u, v: less(u, times(v, call("floor", over(u, v)))),
}


class Entries(Views, Reads, Library):
    """One method for each class of values. ``made`` maps every name of the function to its node or
    array, ``known`` those made of numbers alone; ``picks`` are (label, axis); ``places`` are the
    names of computed integers.
    """

    arrays: dict[str, Array]
    picks: dict[tuple[str, str], None]

    def reduced(self, value, name: str) -> str:
        """The name of the node of a reduction."""
        raise NotImplementedError

    # -- axes -----------------------------------------------------------------

    def axes(self, layout: Layout) -> Axes:
        """The axes of a layout, with flattened ones as their parts."""
        return tuple(a for dim in layout if not dim.one for a in self.unflattened(dim.axis.name))

    def indices(self, layout: Layout) -> dict[str, tuple[Element, ...]]:
        """For every dimension that is not of size 1 the index of its own loops."""
        return {
            dim.axis.name: tuple(map(index, self.unflattened(dim.axis.name)))
            for dim in layout
            if not dim.one
        }

    def place(self, value: Value, at, along: str) -> Element:
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

    # -- entries --------------------------------------------------------------

    def entry(self, value: Value, at: Mapping[str, tuple[Element, ...]]) -> Element:
        """The entry of ``value`` at the indices ``at`` of its dimensions, by their axes."""
        if self.is_of_library(value):
            return self.of_library(value, at)
        method = getattr(self, f"_at_{type(value).__name__}", None)
        return method(value, at) if method else self._unknown(value)

    def _at_Number(self, value, at):
        return number(value.value)

    def _at_Constant(self, value, at):
        return number(value.value)

    def _at_SizeOf(self, value, at):
        return reduce(times, map(size, self.unflattened(value.name)))

    def _at_LengthOf(self, value, at):
        dim = self.layouts[value.tensor][value.along]
        return ONE if dim.one else reduce(times, map(size, self.unflattened(dim.axis.name)))

    def _at_Load(self, value, at):
        if value.name in self.numbers:
            return Element("scalar", name=value.name)
        if value.name in self.known:
            return self.known[value.name]
        return self.loaded(value.name, value.dims, at)

    def loaded(self, name: str, dims: Layout, at) -> Element:
        made = self.made.get(name, name)
        indices = [i for dim in dims if not dim.one for i in at[dim.axis.name]]
        given = made in self.arrays and self.arrays[made].entries == "whole"
        kind = "label" if given or made in self.places else "entry"
        return Element(kind, tuple(indices), made)

    def _at_Plus(self, value, at):
        (first, negative), *others = value.terms
        total = self.entry(first, at)
        total = minus(total) if negative else total
        for term, subtracted in others:
            total = (less if subtracted else plus)(total, self.entry(term, at))
        return total

    def _at_Times(self, value, at):
        (first, _), *others = value.factors
        product = self.entry(first, at)
        for factor, divides in others:
            product = (over if divides else times)(product, self.entry(factor, at))
        return product

    def _at_MulAdd(self, value, at):
        product = times(self.entry(value.left, at), self.entry(value.right, at))
        return (less if value.negative else plus)(self.entry(value.addend, at), product)

    def _at_Power(self, value, at):
        return Element("power", (self.entry(value.base, at), self.entry(value.exponent, at)))

    def _at_Apply(self, value, at):
        operands = [self.entry(v, at) for v in (value.operand, *value.others)]
        if value.function in BUILT:
            return BUILT[value.function](*operands)
        return call(value.function, *operands)

    def _at_Detached(self, value, at):
        return self.entry(value.operand, at)

    def _at_Pullback(self, value, at):
        return times(self.entry(value.upstream, at), self.entry(value.derivative, at))

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
        return choose(above, kept, times(kept, self.entry(value.slope, at)))

    def _at_Slope(self, value, at):
        kept, measure = self.entry(value.value, at), self.entry(value.measure, at)
        below = times(times(kept, self.entry(value.scale, at)), call("exp", measure))
        return choose(compare(measure, ">", ZERO), kept, below)  # so that a NaN stays one

    # -- reductions and indices -----------------------------------------------

    def _at_Reduce(self, value, at):
        name = self.reduced(value, self.numbered(value.kind.split()[-1]))
        dims = value.dims
        indices = [i for dim in dims if not dim.one for i in at[dim.axis.name]]
        return entry(name, *indices)

    def _at_ContractAdd(self, value, at):
        product = self.entry(value.product, at)
        product = times(self.entry(value.factor, at), product)
        return (less if value.negative else plus)(self.entry(value.addend, at), product)

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
        return reduce(
            flat_index, zip(at[value.size], self.unflattened(value.size), strict=True), ZERO
        )

    def _at_AsNumber(self, value, at):
        return Element("real", (self.entry(value.operand, at),))

    def _at_OneHotOf(self, value, at):
        *rest, last = value.dims
        place = self.entry(value.index, {d.axis.name: at[d.axis.name] for d in rest if not d.one})
        pairs = zip(at[last.axis.name], self.unflattened(last.axis.name), strict=True)
        here = reduce(flat_index, pairs, ZERO)
        return choose(compare(here, "==", place), ONE, ZERO)

    def _at_Zeros(self, value, at):
        return ZERO


_larger, _smaller = partial(call, "larger"), partial(call, "smaller")


def _log_of_tail(u: Element) -> Element:
    """log(1 + exp(-|u|))"""
    return call("log1p", call("exp", minus(call("Abs", u))))
