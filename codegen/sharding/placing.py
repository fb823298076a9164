"""Where each value of a function is split, and what the ranks have to tell each other for it.

Every dimension of a value is *whole* on each rank, or *split*: the rank has its own part. A value
is split over a group along one dimension at most. What is computed entry by entry, or along a
whole dimension, stays as it was; a sum along a split one is the sum of the parts' sums; what is
split along one axis and is met along another (the same tensor under another name) is gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from codegen.program import arrays, shards, values
from codegen.program.parts import operands, values_in
from codegen.program.values import Load, Number, SizeOf, Value
from codegen.sharding.groups import Groups, Split
from codegen.sharding.picked import pushed
from codegen.sharding.shares import divided_later
from codegen.sharding.values import POINTWISE, with_operands
from derive.language.errors import QuestionError
from derive.notation.layout import Dim, Layout

MAXIMA = ("max", "peak", "subtracted peak")


@dataclass(frozen=True)
class Placed:
    """A value as this rank computes it, and where it is split."""

    value: Value
    split: Split = ()

    def at(self, axis: str) -> str:
        """The group that it is split over along an axis."""
        pairs = zip(self.value.dims, self.split, strict=True)
        return next((s for dim, s in pairs if s and dim.axis.name == axis), "")


class Placing:
    """Places the values of one function. ``splits`` says how its named tensors are split,
    ``defined`` by what they are computed, ``exchange`` takes what the ranks have to tell each other
    and gives it a name.
    """

    def __init__(self, name: str, groups: Groups, sizes: dict[str, str], flattened: dict):
        self.name, self.groups, self.sizes, self.flattened = name, groups, sizes, flattened
        self.splits: dict[str, Split] = {}
        self.defined: dict[str, Value] = {}
        self.shares = False  # whether a divisor was moved behind a sum
        self.exchange: Callable[[str, str, Value, int, Layout], Value]

    def placed(self, value: Value) -> Placed:
        rule = RULES.get(type(value))
        if rule is not None:
            return rule(self, value)
        if isinstance(value, POINTWISE):
            return self.entrywise(value)
        if any(isinstance(v, Load | SizeOf) and v.dims for v in values_in(value)):
            raise self.refusal(type(value).__name__)
        return Placed(value, ("",) * len(value.dims))

    def refusal(self, what: str) -> QuestionError:
        axes = ", ".join(self.groups.axes)
        return QuestionError(
            f"{self.name} cannot be split along {axes}: {what} crosses the parts, and no collective"
            " computes it",
            "split another axis",
        )

    # -- splitting and gathering ------------------------------------------------

    def whole(self, placed: Placed, along: int) -> Placed:
        """Put together along one dimension."""
        group = placed.split[along]
        if not group:
            return placed
        dims = placed.value.dims
        value = self.exchange("gathered", group, placed.value, along, dims)
        return Placed(value, _set(placed.split, along, ""))

    def part(self, placed: Placed, along: int, group: str) -> Placed:
        """This rank's part along one dimension."""
        if placed.split[along] or placed.value.dims[along].one:
            return placed
        value = shards.OwnPart(placed.value, along, group, dims=placed.value.dims)
        return Placed(value, _set(placed.split, along, group))

    def fitted(self, placed: Placed, wanted: Split) -> Placed:
        """Split where ``wanted`` says, and nowhere else."""
        for along, group in enumerate(wanted):
            if placed.split[along] and placed.split[along] != group:
                placed = self.whole(placed, along)
        for along, group in enumerate(wanted):
            placed = self.part(placed, along, group) if group else placed
        return placed

    def canonical(self, placed: Placed) -> Placed:
        """Split as a tensor of its layout is, under a name."""
        return self.fitted(placed, self.groups.split(placed.value.dims))

    def aligned(self, met: Sequence[Placed], kept: Iterable[str] = ()) -> list[Placed]:
        """Operands that meet, each axis split in all of them or in none."""
        axes = self.axes_split(met, {*kept})
        return [self.fitted(placed, _split_along(placed.value.dims, axes)) for placed in met]

    def axes_split(self, met: Sequence[Placed], kept: set[str]) -> dict[str, str]:
        """The axes along which values that meet are split, with the group of each: over a group
        one axis is, of several the one that is ``kept``, and has the group's name.
        """
        found: dict[str, dict[str, tuple[bool, bool]]] = {}
        for placed in met:
            for dim, group in zip(placed.value.dims, placed.split, strict=True):
                if group:
                    axis = dim.axis.name
                    rank = (axis in kept, self.groups.of.get(axis) == group)
                    found.setdefault(group, {})[axis] = rank
        return {max(axes, key=axes.__getitem__): group for group, axes in found.items()}

    def entrywise(self, value: Value) -> Placed:
        parts = self.aligned([self.placed(v) for v in operands(value)])
        made = with_operands(value, [p.value for p in parts])
        return Placed(made, _met(value.dims, parts))

    # -- one rule for each kind of value ----------------------------------------

    def load(self, value: Load) -> Placed:
        return Placed(value, self.splits.get(value.name, ("",) * len(value.dims)))

    def size(self, value: SizeOf) -> Placed:
        return Placed(self.whole_size(value.name))

    def whole_size(self, axis: str) -> Value:
        """The length of an axis on all ranks together."""
        codes = {self.sizes[a]: self.groups.of[a] for a in self.groups.of if a in self.sizes}
        group = self.groups.of.get(axis) or codes.get(self.sizes.get(axis, ""))
        if not group:
            return SizeOf(axis)
        if self.sizes[axis] == self.sizes[group]:
            return shards.WholeSize(group)
        parts = self.flattened.get(axis)
        if parts and parts[0] == group:  # as long as its parts together
            lengths = [self.whole_size(part) for part in parts]
            return values.Times(tuple((length, False) for length in lengths))
        parts = self.flattened.get(group, ())
        if axis in parts:
            others = [self.whole_size(part) for part in parts if part != axis]
            pairs = ((shards.WholeSize(group), False), *((other, True) for other in others))
            return values.Times(pairs)
        raise self.refusal(f"the length of {axis}")

    def arranged(self, value: arrays.Arrange) -> Placed:
        inner = self.placed(value.operand)
        split = tuple("" if i is None else inner.split[i] for i in value.order)
        return Placed(with_operands(value, [inner.value]), split)

    def merged(self, value: arrays.Merge) -> Placed:
        inner, first = self.placed(value.operand), value.first
        for along in range(first + 1, first + value.count):
            inner = self.whole(inner, along)
        split = inner.split[: first + 1] + inner.split[first + value.count :]
        return Placed(with_operands(value, [inner.value]), split)

    def taken_apart(self, value: arrays.Split) -> Placed:
        inner, at = self.placed(value.operand), value.along
        parts = (inner.split[at], *[""] * (len(value.into) - 1))
        split = (*inner.split[:at], *parts, *inner.split[at + 1 :])
        return Placed(with_operands(value, [inner.value]), split)

    def reduced(self, value: arrays.Reduce) -> Placed:
        inner = self.placed(value.operand)
        groups = dict.fromkeys(inner.split[i] for i in value.along if inner.split[i])
        kept = [("" if i in value.along else s) for i, s in enumerate(inner.split)]
        split = tuple(s for i, s in enumerate(kept) if value.keep or i not in value.along)
        if value.kind not in MAXIMA:
            made = with_operands(value, [inner.value])
            return Placed(self.together("sum", groups, made), split)
        if not groups:
            return Placed(with_operands(value, [inner.value]), split)
        made = shards.OwnLargest(inner.value, value.along, value.keep, dims=value.dims)
        found = self.together("largest", groups, made)
        shift = value.kind != "max"
        return Placed(
            shards.Unshifted(value.kind, found, dims=value.dims) if shift else found, split
        )

    def together(self, kind: str, groups: Iterable[str], value: Value) -> Value:
        for group in groups:
            value = self.exchange(kind, group, value, 0, value.dims)
        return value

    def contracted(self, value: arrays.Contract) -> Placed:
        summed = {*value.summed} & self.groups.of.keys()
        later = divided_later(value, self.defined) if summed else None
        if later is not None:
            self.shares = True
            return self.placed(later)
        kept = {dim.axis.name for dim in value.dims}
        both = self.aligned([self.placed(value.left), self.placed(value.right)], kept)
        groups = dict.fromkeys(p.at(axis) for axis in value.summed for p in both if p.at(axis))
        split = tuple(both[0].at(d.axis.name) or both[1].at(d.axis.name) for d in value.dims)
        made = with_operands(value, [p.value for p in both])
        return Placed(self.together("sum", groups, made), split)

    def contracted_add(self, value: arrays.ContractAdd) -> Placed:
        """The product is a value of its own: it may have to be added up over the ranks."""
        one = value.factor == Number(Fraction(1))
        factors = ((value.factor, False),) * (not one) + ((value.product, False),)
        scaled = values.Times(factors, dims=value.product.dims)
        terms = ((value.addend, False), (value.product if one else scaled, value.negative))
        return self.placed(values.Plus(terms, dims=value.dims))

    def first_largest(self, value: arrays.ArgMaxOf) -> Placed:
        inner, at = self.placed(value.operand), value.along
        split = inner.split[:at] + inner.split[at + 1 :]
        if not inner.split[at]:
            return Placed(with_operands(value, [inner.value]), split)
        found = self.exchange("first", inner.split[at], inner.value, at, value.dims)
        return Placed(found, split)

    def picked(self, value: arrays.Pick) -> Placed:
        inner, at = self.placed(value.operand), value.along
        group = inner.split[at]
        if group and value.rowwise:
            further = pushed(value, self.defined)
            if further is not None:
                return self.placed(further)
        index = self.placed(value.index)
        if group and group in index.split:  # what is split is the label then
            inner, group = self.whole(inner, at), ""
        if value.rowwise:
            rest = Placed(_without(inner.value, at), _cut(inner.split, at))
            axes = self.axes_split([rest, index], set())
            split = _split_along(rest.value.dims, axes)
            inner = self.fitted(inner, _put(split, at, group))
            index = self.fitted(index, _split_along(index.value.dims, axes))
            split = _met(value.dims, [replace(rest, split=split), index])
        else:
            split = index.split + _cut(inner.split, at)
        if not group:
            return Placed(with_operands(value, [inner.value, index.value]), split)
        own = shards.OwnPick(
            inner.value, at, index.value, value.rowwise, group, dims=value.dims
        )
        return Placed(self.together("sum", [group], own), split)

    def positions(self, value: arrays.Positions) -> Placed:
        group = self.groups.of.get(value.size, "")
        if not group:
            return Placed(value, ("",))
        return Placed(shards.OwnPositions(group, dims=value.dims), (group,))

    def one_hot(self, value: arrays.OneHotOf) -> Placed:
        index, group = self.placed(value.index), self.groups.of.get(value.size, "")
        if group and group not in index.split:
            own = shards.OwnOneHot(index.value, group, dims=value.dims)
            return Placed(own, (*index.split, group))
        return Placed(with_operands(value, [index.value]), (*index.split, ""))

    def rows_added(self, value: arrays.Gathered) -> Placed:
        index, source = self.placed(value.index), self.placed(value.source)
        rank = len(value.index.dims)
        if source.value.dims == value.index.dims + value.dims[1:]:
            index, source = self.aligned([index, source])
            rest = source.split[rank:]
        else:  # its entries are put into other dimensions, those of a part into those of a part
            count = min(len(index.split), len(source.split))
            behind = (*index.split[count:], *source.split[count:])
            if index.split[:count] != source.split[:count] or any(behind):
                raise self.refusal("adding rows")
            rest = ("",) * (len(value.dims) - 1)
        groups = dict.fromkeys(s for s in index.split if s)
        group = self.groups.of.get(value.dims[0].axis.name, "")
        group = "" if group in groups or group in rest else group
        split = (group, *rest)
        if group:
            made: Value = shards.OwnGathered(index.value, source.value, group, dims=value.dims)
        else:
            made = with_operands(value, [index.value, source.value])
        return Placed(self.together("sum", groups, made), split)

    def expanded(self, value: arrays.Expand) -> Placed:
        inner = self.placed(value.operand)
        inner = self.canonical(inner)
        split = self.groups.split(value.dims)
        return Placed(with_operands(value, [inner.value]), split)

    def zeros(self, value: arrays.Zeros) -> Placed:
        return Placed(value, self.groups.split(value.dims))


def _split_along(dims: Layout, axes: dict[str, str]) -> Split:
    return tuple("" if dim.one else axes.get(dim.axis.name, "") for dim in dims)


def _set(split: Split, along: int, group: str) -> Split:
    return (*split[:along], group, *split[along + 1 :])


def _cut(split: Split, along: int) -> Split:
    return split[:along] + split[along + 1 :]


def _put(split: Split, along: int, group: str) -> Split:
    return (*split[:along], group, *split[along:])


def _without(value: Value, along: int) -> Value:
    """Something with the dimensions of ``value`` but one: only these are looked at."""
    return replace(value, dims=value.dims[:along] + value.dims[along + 1 :])


def _met(dims: Sequence[Dim], parts: Sequence[Placed]) -> Split:
    """How a value is split that is computed entry by entry from ``parts``."""
    found = [""] * len(dims)
    for placed in parts:
        for back in range(1, len(placed.split) + 1):
            found[-back] = found[-back] or placed.split[-back]
    return tuple(found)


RULES: dict[type[Value], Callable[[Placing, Value], Placed]] = {
    Load: Placing.load,
    SizeOf: Placing.size,
    arrays.Arrange: Placing.arranged,
    arrays.Merge: Placing.merged,
    arrays.Split: Placing.taken_apart,
    arrays.Reduce: Placing.reduced,
    arrays.Contract: Placing.contracted,
    arrays.ContractAdd: Placing.contracted_add,
    arrays.ArgMaxOf: Placing.first_largest,
    arrays.Pick: Placing.picked,
    arrays.Positions: Placing.positions,
    arrays.OneHotOf: Placing.one_hot,
    arrays.Gathered: Placing.rows_added,
    arrays.Expand: Placing.expanded,
    arrays.Zeros: Placing.zeros,
}
