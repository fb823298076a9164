"""The split of each value of a function over ranks, and the communication that this needs.

Every dimension of a value is *whole* on each rank, or *split*: the rank has its own part. A value
is split over a group along one dimension at most. A pointwise operation, or one along a whole
dimension, keeps the split; a sum along a split one is the sum of the parts' sums; a value split
along one axis and met along another (the same tensor under another name) is gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from codegen.program import shards
from codegen.program.parts import operands, values_in
from codegen.program.values import Load, Value
from codegen.sharding.groups import Groups, Split
from codegen.sharding.lengths import Lengths
from codegen.sharding.values import POINTWISE, with_operands
from derive.language.errors import QuestionError
from derive.language.notation.layout import Dim, Layout


@dataclass(frozen=True)
class SplitValue:
    """A value as this rank computes it, with its split."""

    value: Value
    split: Split = ()

    def at(self, axis: str) -> str:
        """The group that splits it along an axis."""
        pairs = zip(self.value.dims, self.split, strict=True)
        return next((s for dim, s in pairs if s and dim.axis.name == axis), "")


# A collective: the kind of collective, the group, its own value, the dimension that is put
# together, and the dimensions of the result.
Tells = Callable[[str, str, Value, int, Layout], Value]


class Placing:
    """Places the values of one function, by the ``rules`` for each kind. ``exchange`` adds a
    collective, and names its result. ``splits`` has the splits of named tensors, ``defined`` their
    values.
    """

    def __init__(self, name: str, groups: Groups, lengths: Lengths, rules: Rules, exchange: Tells):
        self.name, self.groups, self.lengths = name, groups, lengths
        self.rules, self.exchange = rules, exchange
        self.splits: dict[str, Split] = {}
        self.defined: dict[str, Value] = {}
        self.rewritten: set[str] = set()  # by which identities
        self.arguments: set[str] = set()  # that are there as a whole

    def placed(self, value: Value) -> SplitValue:
        rule = self.rules.get(type(value))
        if rule is not None:
            return rule(self, value)
        if isinstance(value, POINTWISE):
            return self.entrywise(value)
        if any(isinstance(v, Load) and v.dims for v in values_in(value)):
            raise self.refusal(type(value).__name__)
        return SplitValue(value, ("",) * len(value.dims))

    def refusal(self, what: str) -> QuestionError:
        axes = ", ".join(self.groups.axes)
        if self.groups.chunked:
            ranks = ", ".join(axis for axis in self.groups.axes if axis != self.groups.chunked)
            split = f" with {ranks} over ranks" * bool(ranks)
            return QuestionError(
                f"{self.name} cannot be computed in chunks of {self.groups.chunked}{split}: {what} "
                f"meets entries of several {'parts' if ranks else 'chunks'}",
                "compute in chunks of another axis",
            )
        return QuestionError(
            f"{self.name} cannot be split along {axes}: {what} would cross the parts, which no"
            " collective supports",
            "split another axis",
        )

    def counted(self, axis: str, group: str) -> str:
        """The group, if an index along ``axis`` counts in the split axis.

        Raises `QuestionError` where it counts in another one: of the parts of an axis, the ranks
        know their share of the requested one.
        """
        sizes = self.lengths.sizes
        if group and sizes[axis] != sizes[group]:
            raise self.refusal(f"an index along {axis}")
        return group

    # -- splitting and gathering ------------------------------------------------

    def whole(self, placed: SplitValue, along: int) -> SplitValue:
        """Gathered along one dimension."""
        group = placed.split[along]
        if not group:
            return placed
        dims = placed.value.dims
        self.counted(dims[along].axis.name, group)
        value = self.exchange("gathered", group, placed.value, along, dims)
        return SplitValue(value, _set(placed.split, along, ""))

    def part(self, placed: SplitValue, along: int, group: str) -> SplitValue:
        """This rank's part along one dimension."""
        if placed.split[along] or placed.value.dims[along].one:
            return placed
        value = shards.OwnPart(placed.value, along, group, dims=placed.value.dims)
        return SplitValue(value, _set(placed.split, along, group))

    def fitted(self, placed: SplitValue, wanted: Split) -> SplitValue:
        """Split as in ``wanted``, and nowhere else."""
        for along, group in enumerate(wanted):
            if placed.split[along] and placed.split[along] != group:
                placed = self.whole(placed, along)
        for along, group in enumerate(wanted):
            placed = self.part(placed, along, group) if group else placed
        return placed

    def canonical(self, placed: SplitValue) -> SplitValue:
        """Split like a named tensor of its layout."""
        return self.fitted(placed, self.groups.split(placed.value.dims))

    def aligned(self, met: Sequence[SplitValue], kept: Iterable[str] = ()) -> list[SplitValue]:
        """Operands of one operation, each axis split in all of them or in none."""
        axes = self.axes_split(met, {*kept})
        return [self.fitted(placed, split_along(placed.value.dims, axes)) for placed in met]

    def axes_split(self, met: Sequence[SplitValue], kept: set[str]) -> dict[str, str]:
        """The axes along which the operands of an operation are split, with the group of each: a
        group splits one axis, of several the one that is ``kept``, and has the group's name.
        """
        found: dict[str, dict[str, tuple[bool, bool]]] = {}
        for placed in met:
            for dim, group in zip(placed.value.dims, placed.split, strict=True):
                if group:
                    axis = dim.axis.name
                    rank = (axis in kept, self.groups.of.get(axis) == group)
                    found.setdefault(group, {})[axis] = rank
        return {max(axes, key=axes.__getitem__): group for group, axes in found.items()}

    def entrywise(self, value: Value) -> SplitValue:
        parts = self.aligned([self.placed(v) for v in operands(value)])
        made = with_operands(value, [p.value for p in parts])
        return SplitValue(made, met(value.dims, parts))


def split_along(dims: Layout, axes: dict[str, str]) -> Split:
    return tuple("" if dim.one else axes.get(dim.axis.name, "") for dim in dims)


def _set(split: Split, along: int, group: str) -> Split:
    return (*split[:along], group, *split[along + 1 :])


def met(dims: Sequence[Dim], parts: Sequence[SplitValue]) -> Split:
    """The split of a pointwise result of ``parts``."""
    found = [""] * len(dims)
    for placed in parts:
        for back in range(1, len(placed.split) + 1):
            found[-back] = found[-back] or placed.split[-back]
    return tuple(found)


Rules = Mapping[type[Value], Callable[[Placing, Value], SplitValue]]
