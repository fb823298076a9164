"""An entry of a Program's value, by the indices of its dimensions: views only change indices."""

from __future__ import annotations

from functools import partial, reduce

from codegen.program import arrays, values
from codegen.schedule.elements import (
    ONE,
    ZERO,
    Element,
    call,
    choose,
    compare,
    entry,
    less,
    minus,
    number,
    over,
    plus,
    size,
    times,
)
from codegen.schedule.entry_rules import Entries, Indices, rule
from codegen.schedule.reads import flat_index

BUILT = {  # of functions that are made of others: of their arguments
    "sigmoid": lambda u: over(ONE, plus(ONE, call("exp", minus(u)))),
    "logsigmoid": lambda u: less(_smaller(u, ZERO), _log_of_tail(u)),
    "softplus": lambda u: plus(_larger(u, ZERO), _log_of_tail(u)),
    "Mod": lambda u, v: less(u, times(v, call("floor", over(u, v)))),
}


@rule(values.Number)
def _number(f: Entries, value, at: Indices) -> Element:
    return number(value.value)


@rule(values.Constant)
def _constant(f: Entries, value, at: Indices) -> Element:
    return number(value.value)


@rule(values.SizeOf)
def _size_of(f: Entries, value, at: Indices) -> Element:
    return reduce(times, map(size, f.unflattened(value.name)))


@rule(values.LengthOf)
def _length_of(f: Entries, value, at: Indices) -> Element:
    dim = f.layouts[value.tensor][value.along]
    return ONE if dim.one else reduce(times, map(size, f.unflattened(dim.axis.name)))


@rule(values.Load)
def _load(f: Entries, value, at: Indices) -> Element:
    return f.load(value.name, value.dims, at)


@rule(values.Plus)
def _plus(f: Entries, value, at: Indices) -> Element:
    (first, negative), *others = value.terms
    total = f.entry(first, at)
    total = minus(total) if negative else total
    for term, subtracted in others:
        total = (less if subtracted else plus)(total, f.entry(term, at))
    return total


@rule(values.Times)
def _times(f: Entries, value, at: Indices) -> Element:
    (first, _), *others = value.factors
    product = f.entry(first, at)
    for factor, divides in others:
        product = (over if divides else times)(product, f.entry(factor, at))
    return product


@rule(values.MulAdd)
def _mul_add(f: Entries, value, at: Indices) -> Element:
    product = times(f.entry(value.left, at), f.entry(value.right, at))
    return (less if value.negative else plus)(f.entry(value.addend, at), product)


@rule(values.Power)
def _power(f: Entries, value, at: Indices) -> Element:
    return Element("power", (f.entry(value.base, at), f.entry(value.exponent, at)))


@rule(values.Apply)
def _apply(f: Entries, value, at: Indices) -> Element:
    operands = [f.entry(v, at) for v in (value.operand, *value.others)]
    if value.function in BUILT:
        return BUILT[value.function](*operands)
    return call(value.function, *operands)


@rule(arrays.Detached)
def _detached(f: Entries, value, at: Indices) -> Element:
    return f.entry(value.operand, at)


@rule(values.Pullback)
def _pullback(f: Entries, value, at: Indices) -> Element:
    return times(f.entry(value.upstream, at), f.entry(value.derivative, at))


@rule(values.Compare)
def _compare(f: Entries, value, at: Indices) -> Element:
    return compare(f.entry(value.left, at), value.relation, f.entry(value.right, at))


@rule(values.Combine)
def _combine(f: Entries, value, at: Indices) -> Element:
    return Element(value.operator, tuple(f.entry(v, at) for v in value.operands))


@rule(values.Choose)
def _choose(f: Entries, value, at: Indices) -> Element:
    return choose(*(f.entry(v, at) for v in (value.condition, value.yes, value.no)))


@rule(values.Extreme)
def _extreme(f: Entries, value, at: Indices) -> Element:
    left, right = f.entry(value.left, at), f.entry(value.right, at)
    return call("larger" if value.largest else "smaller", left, right)


@rule(values.Clamp)
def _clamp(f: Entries, value, at: Indices) -> Element:
    result = f.entry(value.operand, at)
    if value.low is not None:
        result = _larger(result, f.entry(value.low, at))
    if value.high is not None:
        result = _smaller(result, f.entry(value.high, at))
    return result


@rule(values.Gate)
def _gate(f: Entries, value, at: Indices) -> Element:
    measure, threshold = f.entry(value.measure, at), f.entry(value.threshold, at)
    return choose(compare(measure, "<=", threshold), ZERO, f.entry(value.value, at))


@rule(values.Bend)
def _bend(f: Entries, value, at: Indices) -> Element:
    kept, above = f.entry(value.value, at), compare(f.entry(value.measure, at), ">", ZERO)
    return choose(above, kept, times(kept, f.entry(value.slope, at)))


@rule(values.Slope)
def _slope(f: Entries, value, at: Indices) -> Element:
    kept, measure = f.entry(value.value, at), f.entry(value.measure, at)
    below = times(times(kept, f.entry(value.scale, at)), call("exp", measure))
    return choose(compare(measure, ">", ZERO), kept, below)  # so that a NaN stays one


@rule(arrays.Reduce)
def _reduce(f: Entries, value, at: Indices) -> Element:
    name = f.reduced_apart(value)
    indices = [i for dim in value.dims if not dim.one for i in at[dim.axis.name]]
    return entry(name, *indices)


@rule(arrays.ContractAdd)
def _contract_add(f: Entries, value, at: Indices) -> Element:
    product = f.entry(value.product, at)
    product = times(f.entry(value.factor, at), product)
    return (less if value.negative else plus)(f.entry(value.addend, at), product)


@rule(arrays.Pick)
def _pick(f: Entries, value, at: Indices) -> Element:
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
    if isinstance(value.index, values.Number):
        place = number(value.index.value)
    else:
        pairs = zip(value.index.dims, of_index, strict=True)
        place = f.place(
            value.index, {i.axis.name: at[d.axis.name] for i, d in pairs if not i.one}, along
        )
    inside[along] = f.unpacked(along, place)
    return f.entry(operand, inside)


@rule(arrays.Positions)
def _positions(f: Entries, value, at: Indices) -> Element:
    return reduce(flat_index, zip(at[value.size], f.unflattened(value.size), strict=True), ZERO)


@rule(arrays.AsNumber)
def _as_number(f: Entries, value, at: Indices) -> Element:
    return Element("real", (f.entry(value.operand, at),))


@rule(arrays.OneHotOf)
def _one_hot_of(f: Entries, value, at: Indices) -> Element:
    *rest, last = value.dims
    place = f.entry(value.index, {d.axis.name: at[d.axis.name] for d in rest if not d.one})
    pairs = zip(at[last.axis.name], f.unflattened(last.axis.name), strict=True)
    here = reduce(flat_index, pairs, ZERO)
    return choose(compare(here, "==", place), ONE, ZERO)


@rule(arrays.Zeros)
def _zeros(f: Entries, value, at: Indices) -> Element:
    return ZERO


_larger, _smaller = partial(call, "larger"), partial(call, "smaller")


def _log_of_tail(u: Element) -> Element:
    """log(1 + exp(-|u|))"""
    return call("log1p", call("exp", minus(call("Abs", u))))
