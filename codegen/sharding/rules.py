"""Rules for values computed from parts: one function for each kind of value, and their table."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

from codegen.program import arrays, shards, values
from codegen.program.parts import operands
from codegen.program.values import Load, Number, SizeOf, Value
from codegen.sharding.groups import Split
from codegen.sharding.picked import pushed
from codegen.sharding.placing import Placing, SplitValue, met, split_along
from codegen.sharding.shares import divided_later, of_logarithms
from codegen.sharding.values import MAXIMA, in_place, stripped, with_operands


def load(placing: Placing, value: Load) -> SplitValue:
    return SplitValue(value, placing.splits.get(value.name, ("",) * len(value.dims)))


def size(placing: Placing, value: SizeOf) -> SplitValue:
    return SplitValue(placing.lengths.of_axis(value.name))


def arranged(placing: Placing, value: arrays.Arrange) -> SplitValue:
    inner = placing.placed(value.operand)
    split = tuple("" if i is None else inner.split[i] for i in value.order)
    return SplitValue(with_operands(value, [inner.value]), split)


def merged(placing: Placing, value: arrays.Merge) -> SplitValue:
    inner, first = placing.placed(value.operand), value.first
    for along in range(first + 1, first + value.count):
        inner = placing.whole(inner, along)
    split = inner.split[: first + 1] + inner.split[first + value.count :]
    return SplitValue(with_operands(value, [inner.value]), split)


def taken_apart(placing: Placing, value: arrays.Split) -> SplitValue:
    inner, at = placing.placed(value.operand), value.along
    parts = (inner.split[at], *[""] * (len(value.into) - 1))
    split = (*inner.split[:at], *parts, *inner.split[at + 1 :])
    return SplitValue(with_operands(value, [inner.value]), split)


def reduced(placing: Placing, value: arrays.Reduce) -> SplitValue:
    inner = placing.placed(value.operand)
    groups = dict.fromkeys(inner.split[i] for i in value.along if inner.split[i])
    apart = of_logarithms(value, placing.defined) if groups else None
    if apart is not None:
        placing.rewritten.add("logarithm")
        return placing.placed(apart)
    core = stripped(value) if groups and isinstance(value.operand, arrays.Arrange) else None
    if core is not None:  # so that nothing is sent twice
        found = placing.placed(core)
        placed = in_place(found.value, value.dims)
        return SplitValue(placed, split_along(value.dims, placing.axes_split([found], set())))
    kept = [("" if i in value.along else s) for i, s in enumerate(inner.split)]
    split = tuple(s for i, s in enumerate(kept) if value.keep or i not in value.along)
    if value.kind not in MAXIMA:
        made = with_operands(value, [inner.value])
        return SplitValue(together(placing, "sum", groups, made), split)
    if not groups:
        return SplitValue(with_operands(value, [inner.value]), split)
    made = shards.OwnLargest(inner.value, value.along, value.keep, dims=value.dims)
    found = together(placing, "largest", groups, made)
    shift = value.kind != "max"
    return SplitValue(
        shards.Unshifted(value.kind, found, dims=value.dims) if shift else found, split
    )


def together(placing: Placing, kind: str, groups: Iterable[str], value: Value) -> Value:
    """Ranks tell each other what all chunks together have."""
    for group in sorted(groups, key=lambda group: group != placing.groups.chunked):
        value = placing.exchange(kind, group, value, 0, value.dims)
    return value


def contracted(placing: Placing, value: arrays.Contract) -> SplitValue:
    summed = {*value.summed} & placing.groups.of.keys()
    later = divided_later(value, placing.defined) if summed else None
    if later is not None:
        placing.rewritten.add("share")
        return placing.placed(later)
    kept = {dim.axis.name for dim in value.dims}
    both = placing.aligned([placing.placed(value.left), placing.placed(value.right)], kept)
    groups = dict.fromkeys(p.at(axis) for axis in value.summed for p in both if p.at(axis))
    split = tuple(both[0].at(d.axis.name) or both[1].at(d.axis.name) for d in value.dims)
    made = with_operands(value, [p.value for p in both])
    return SplitValue(together(placing, "sum", groups, made), split)


def contracted_add(placing: Placing, value: arrays.ContractAdd) -> SplitValue:
    """The product becomes a value of its own: it may have to be summed over the ranks."""
    one = value.factor == Number(Fraction(1))
    factors = ((value.factor, False),) * (not one) + ((value.product, False),)
    scaled = values.Times(factors, dims=value.product.dims)
    terms = ((value.addend, False), (value.product if one else scaled, value.negative))
    return placing.placed(values.Plus(terms, dims=value.dims))


def first_largest(placing: Placing, value: arrays.ArgMaxOf) -> SplitValue:
    inner, at = placing.placed(value.operand), value.along
    split = inner.split[:at] + inner.split[at + 1 :]
    if not inner.split[at]:
        return SplitValue(with_operands(value, [inner.value]), split)
    placing.counted(value.operand.dims[at].axis.name, inner.split[at])
    found = placing.exchange("first", inner.split[at], inner.value, at, value.dims)
    return SplitValue(found, split)


def picked(placing: Placing, value: arrays.Pick) -> SplitValue:
    inner, at = placing.placed(value.operand), value.along
    group = inner.split[at]
    if group and value.rowwise:
        further = pushed(value, placing.defined)
        if further is not None:
            return placing.placed(further)
    index = placing.placed(value.index)
    if group and group in index.split:  # the label is split then
        inner, group = placing.whole(inner, at), ""
    if value.rowwise:
        rest = SplitValue(_without(inner.value, at), _cut(inner.split, at))
        axes = placing.axes_split([rest, index], set())
        split = split_along(rest.value.dims, axes)
        inner = placing.fitted(inner, _put(split, at, group))
        index = placing.fitted(index, split_along(index.value.dims, axes))
        split = met(value.dims, [replace(rest, split=split), index])
    else:
        split = index.split + _cut(inner.split, at)
    if not group:
        return SplitValue(with_operands(value, [inner.value, index.value]), split)
    placing.counted(value.operand.dims[at].axis.name, group)
    own = shards.OwnPick(inner.value, at, index.value, value.rowwise, group, dims=value.dims)
    return SplitValue(together(placing, "sum", [group], own), split)


def positions(placing: Placing, value: arrays.Positions) -> SplitValue:
    group = placing.counted(value.size, placing.groups.of.get(value.size, ""))
    if not group:
        return SplitValue(value, ("",))
    return SplitValue(shards.OwnPositions(group, dims=value.dims), (group,))


def one_hot(placing: Placing, value: arrays.OneHotOf) -> SplitValue:
    group = placing.counted(value.size, placing.groups.of.get(value.size, ""))
    index = placing.placed(value.index)
    if group and group not in index.split:
        own = shards.OwnOneHot(index.value, group, dims=value.dims)
        return SplitValue(own, (*index.split, group))
    if group:
        whole = shards.WholeOneHot(index.value, value.size, group, dims=value.dims)
        return SplitValue(whole, (*index.split, ""))
    return SplitValue(with_operands(value, [index.value]), (*index.split, ""))


def rows_added(placing: Placing, value: arrays.Gathered) -> SplitValue:
    index, source = placing.placed(value.index), placing.placed(value.source)
    rank = len(value.index.dims)
    if source.value.dims == value.index.dims + value.dims[1:]:
        index, source = placing.aligned([index, source])
        rest = source.split[rank:]
    else:  # its entries are put into other dimensions, those of a part into those of a part
        count = min(len(index.split), len(source.split))
        behind = (*index.split[count:], *source.split[count:])
        if index.split[:count] != source.split[:count] or any(behind):
            raise placing.refusal("adding rows")
        rest = ("",) * (len(value.dims) - 1)
    groups = dict.fromkeys(s for s in index.split if s)
    axis = value.dims[0].axis.name
    over = placing.counted(axis, placing.groups.of.get(axis, ""))
    group = "" if over in groups or over in rest else over
    split = (group, *rest)
    if group:
        made: Value = shards.OwnGathered(index.value, source.value, group, dims=value.dims)
    elif over:
        made = shards.WholeGathered(index.value, source.value, over, dims=value.dims)
    else:
        made = with_operands(value, [index.value, source.value])
    return SplitValue(together(placing, "sum", groups, made), split)


def expanded(placing: Placing, value: arrays.Expand) -> SplitValue:
    inner = placing.placed(value.operand)
    inner = placing.canonical(inner)
    split = placing.groups.split(value.dims)
    return SplitValue(with_operands(value, [inner.value]), split)


def zeros(placing: Placing, value: arrays.Zeros) -> SplitValue:
    return SplitValue(value, placing.groups.split(value.dims))


def _cut(split: Split, along: int) -> Split:
    return split[:along] + split[along + 1 :]


def _put(split: Split, along: int, group: str) -> Split:
    return (*split[:along], group, *split[along:])


def _without(value: Value, along: int) -> Value:
    """A value with the dimensions of ``value`` but one: only these matter."""
    return replace(value, dims=value.dims[:along] + value.dims[along + 1 :])


def gone_along(
    placing: Placing, value: arrays.Cumulate | arrays.Scanned | arrays.Stepped
) -> SplitValue:
    """Each rank scans whole rows."""
    axis = value.dims[value.along].axis.name
    parts = []
    for operand in operands(value):
        placed = placing.placed(operand)
        for along, dim in enumerate(operand.dims):
            if dim.axis.name == axis:
                placed = placing.whole(placed, along)
        parts.append(placed)
    parts = placing.aligned(parts)
    return SplitValue(with_operands(value, [p.value for p in parts]), met(value.dims, parts))


def of_matrix(placing: Placing, value: arrays.OfMatrix | arrays.Solved) -> SplitValue:
    """Each rank has whole matrices, and its part of a batch or of the right sides."""
    first, *_ = operands(value)
    square = {dim.axis.name for dim in first.dims[-2:]}
    parts = []
    for operand in operands(value):
        placed = placing.placed(operand)
        for along, dim in enumerate(operand.dims):
            if dim.axis.name in square:
                placed = placing.whole(placed, along)
        parts.append(placed)
    parts = placing.aligned(parts)
    split = tuple("".join({p.at(dim.axis.name) for p in parts}) for dim in value.dims)
    return SplitValue(with_operands(value, [p.value for p in parts]), split)


RULES: dict[type[Value], Callable[[Placing, Value], SplitValue]] = {
    Load: load,
    SizeOf: size,
    arrays.Arrange: arranged,
    arrays.Merge: merged,
    arrays.Split: taken_apart,
    arrays.Cumulate: gone_along,
    arrays.Scanned: gone_along,
    arrays.Stepped: gone_along,
    arrays.OfMatrix: of_matrix,
    arrays.Solved: of_matrix,
    arrays.Reduce: reduced,
    arrays.Contract: contracted,
    arrays.ContractAdd: contracted_add,
    arrays.ArgMaxOf: first_largest,
    arrays.Pick: picked,
    arrays.Positions: positions,
    arrays.OneHotOf: one_hot,
    arrays.Gathered: rows_added,
    arrays.Expand: expanded,
    arrays.Zeros: zeros,
}
