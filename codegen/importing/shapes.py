"""Which axes the dimensions of values are: where they meet, are split, flattened and cut.

No axes are merged. Where two dimensions meet, equal names are left, different ones of one size are
renamed, and an axis that would stand twice in a result gets a sibling of the same size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import sympy
import torch
from sympy import Expr, Integer, Symbol, floor

from codegen.importing.sizes import Sizes
from codegen.importing.values import (
    ARGMAX,
    CONDITION,
    LABEL,
    Dim,
    Dims,
    OutsideAxis,
    Refused,
    TreeValue,
    WrittenPart,
)
from derive.language.torch_ops import reads, trees
from derive.language.torch_ops.text import length_text, number_text
from derive.language.torch_ops.trees import Tree

MOST_PARTS = 16  # that a slice is taken to be one of
MOST_TYPED = 16  # numbers in a tensor that a function makes of them
WINDOW_REMEDY = "slice tensors that belong together the same way"
BEGUN = "begin with torch.zeros_like(x), or write every part of it first"
AS_INDEX = "use it as an index, or in one_hot"


class NamedShapes:
    """The axes of one trace's values, and the operations that move values between them.

    ``sizes`` knows all axes; ``guessed`` are those of parameters, for which nobody gave a name, and
    ``met`` what each of them was found to be. ``splits`` are the axes into which an axis was split,
    by the axis and the first of their sizes: what is split twice alike has the same axes.
    ``windows`` are axes that run along all of another one, and count between two of its entries
    alone: (that axis, first, one past the last).
    """

    def __init__(self, sizes: Sizes, meant: Callable[[object], object]):
        self.sizes, self.meant = sizes, meant
        self.guessed: set[str] = set()
        self.met: list[tuple[str, str]] = []
        self.indices: dict[str, set[str]] = {}  # labels, and the axes that they index
        self.compared: set[str] = set()  # and those that are met as numbers
        self.splits: dict[tuple[str, Expr], tuple[str, str]] = {}
        self.repeats: dict[tuple[str, Expr], str] = {}
        self.windows: dict[str, tuple[str, Expr, Expr]] = {}

    # Numbers and conditions

    def number(self, value: object) -> Tree:
        """A number of the graph, or a size."""
        if isinstance(value, TreeValue):
            return self.as_number(value).tree
        if isinstance(value, OutsideAxis):
            return value.tree
        if isinstance(value, bool):
            return trees.number(int(value))
        if isinstance(value, int) and value in self.sizes.fixed:
            return trees.number(self.sizes.fixed[value])
        if isinstance(value, (int, float)):
            return trees.number(value)
        return trees.number(self.sizes.plain(value))

    def value(self, value: object) -> TreeValue:
        return value if isinstance(value, TreeValue) else TreeValue(self.number(value))

    def as_number(self, value: object) -> TreeValue:
        v = self.value(value)
        if v.parts is not None:
            raise Refused("this is read before it is completely written", BEGUN)
        if v.kind == CONDITION:
            return TreeValue(trees.indicator(v.tree), v.dims)
        if v.kind == ARGMAX:
            raise Refused("the index of the largest entry is used as a number", AS_INDEX)
        if v.kind == LABEL:
            self.compared |= {name_of(v.tree)}
            return TreeValue(v.tree, v.dims)
        return v

    def as_condition(self, value: object) -> TreeValue:
        v = self.value(value)
        if v.kind == CONDITION:
            return v
        known = trees.condition_of(v.tree)
        tree = known or trees.compared("!=", self.as_number(v).tree, trees.ZERO)
        return TreeValue(tree, v.dims, CONDITION)

    # Alignment

    def moved(self, v: TreeValue, target: Sequence[Dim]) -> TreeValue:
        """The same with the dimensions of ``target`` where it has any."""
        for i, (dim, wanted) in enumerate(zip(v.dims, target, strict=True)):
            if not dim or dim == wanted:
                continue
            alike = len(dim) == len(wanted) and all(map(self.sizes.alike, dim, wanted))
            if not alike:
                v = self.single(v, i)
                if len(wanted) != 1 or not self.sizes.alike(v.dims[i][0], wanted[0]):
                    raise Refused(
                        f"dimensions of different sizes meet: {words(dim)} and {words(wanted)}",
                        "give axes of the same size the same name",
                    )
        to: dict[str, str] = {}
        for dim, wanted in zip(v.dims, target, strict=True):
            if dim:
                to |= {a: b for a, b in zip(dim, wanted, strict=True) if a != b}
        for a, b in to.items():
            self.note(a, b)
            if self.sizes.of_axis[a].has(floor) or self.sizes.of_axis[b].has(floor):
                self.sizes.assume(self.sizes.of_axis[a], self.sizes.of_axis[b])
        v = self.between_windows(v, to)
        return v.along(wanted if dim else dim for dim, wanted in zip(v.dims, target, strict=True))

    def note(self, a: str, b: str) -> None:
        """Two axes met: if one of them was guessed, it is the other."""
        if {a, b} & self.guessed:
            self.met.append((a, b))

    def aligned(self, *values: TreeValue) -> tuple[list[TreeValue], Dims]:
        """Values of equal rank, with equal dimensions where they are not of size 1."""
        rank = max(v.rank for v in values)
        spread = [v.along(((),) * (rank - v.rank) + v.dims) for v in values]
        target: list[Dim] = []
        for i in range(rank):
            at = [v for v in spread if v.dims[i]]
            chosen = self._chosen(at, i, {a for dim in target for a in dim}) if at else ()
            target.append(tuple(self._free(a, target, spread) for a in chosen))
        return [self.moved(v, target) for v in spread], tuple(target)

    def _chosen(self, at: Sequence[TreeValue], i: int, used: set[str]) -> Dim:
        """Which of the dimensions that meet the others become: a part of labels, a single axis, one
        that is not met yet, one whose name is the user's, one along which something varies.
        """

        def rank(v: TreeValue) -> tuple[bool, ...]:
            dim = v.dims[i]
            varies = bool(set(dim) & v.tree.free)
            return (
                v.kind != LABEL or not {*dim} & self.windows.keys(),  # no label can be shifted
                len(dim) != 1,
                *(bool({*dim} & own) for own in (self.windows.keys(), used, self.guessed)),
                not varies,
            )

        if len({len(v.dims[i]) for v in at}) > 1 and not any(len(v.dims[i]) == 1 for v in at):
            shown = " and ".join(words(v.dims[i]) for v in at)
            raise Refused(
                f"axes flattened in different ways meet: {shown}", "flatten them the same way"
            )
        alike = len({len(v.dims[i]) for v in at}) == 1
        key = rank if not alike else lambda v: (rank(v)[0], *rank(v)[2:])
        return min(at, key=key).dims[i]

    def _free(self, axis: str, target: Iterable[Dim], values: Iterable[TreeValue]) -> str:
        used = {a for dim in target for a in dim}
        if axis not in used:
            return axis
        return self.sibling(axis, used | {a for v in values for a in v.axes})

    def sibling(self, axis: str, used: Iterable[str]) -> str:
        """An axis of the same size that is not used."""
        return self.sizes.axis_of(self.sizes.of_axis[axis], {axis, *used, *self.windows})

    def chosen(self, condition: object, yes: object, no: object) -> TreeValue:
        found = self.as_condition(condition), self.as_number(yes), self.as_number(no)
        (c, a, b), dims = self.aligned(*found)
        return TreeValue(trees.choice((a.tree, c.tree), otherwise=b.tree), dims)

    @property
    def formulas(self) -> dict[str, str]:
        """How the user's axes are declared that are made of others, and are not split into them."""
        split = {axis for axis, _ in self.splits}
        pairs = [(Symbol(axis), part) for (axis, _), own in self.splits.items() for part in own]
        split |= {p for axis, p in pairs if axis in self.sizes.of_axis[p].free_symbols}
        of_user = {a: self.sizes.of_axis.get(a, Symbol(a)) for a in self.sizes.hints}
        return {
            axis: length_text(size)
            for axis, size in of_user.items()
            if axis not in split and size != Symbol(axis) and not size.is_Integer
        }

    # One axis of several, several of one

    def single(self, v: TreeValue, i: int) -> TreeValue:
        dim = v.dims[i]
        if len(dim) <= 1:
            return v
        flat = self.whole_of(dim, but=v.axes)
        if not set(dim) & v.tree.free:
            return v.with_dim(i, (flat,))
        if v.kind == LABEL:
            raise Refused(
                f"labels along {words(dim)} as one axis", "view scores and labels the same way"
            )
        tree = trees.flatten(trees.broadcast(v.tree, dim), dim, flat)
        for part in dim:  # of which the flat one is made, not the other way round
            size = self.sizes.of_axis[part]
            if Symbol(flat) in size.free_symbols:
                for own in [a for a in self.sizes.formulas if self.sizes.of_axis[a] == size]:
                    del self.sizes.formulas[own]
        return v.with_dim(i, (flat,)).of(tree)

    def whole_of(self, dim: Dim, but: Iterable[str]) -> str:
        """The axis that several are together: the one that was split into them, or one of that
        size.
        """
        unwanted = {*but, *self.windows}
        for (axis, _), into in self.splits.items():
            if into == dim and axis not in unwanted:
                return axis
        return self.sizes.axis_of(self.sizes.of(dim), unwanted)

    def reshaped(self, v: TreeValue, shape: Sequence[object]) -> TreeValue:
        """``view``: axes are taken from the left until their sizes multiply up to a dimension's."""
        todo, dims, tree = v.axes, [], v.tree
        for size in map(self.sizes.plain, shape):
            got: list[str] = []
            have: Expr = Integer(1)
            while self.sizes.hint(have) != self.sizes.hint(size):
                if not todo:
                    raise self._untaken(v, shape)
                fills = self._fills(have, todo, size)
                axis = todo.pop(0)
                if fills or self._is_part(have * self.sizes.of_axis[axis], size):
                    got.append(axis)
                    have = have * self.sizes.of_axis[axis]
                    continue
                self._refuse_remainder(v, axis, size / have, shape)
                first, rest = self.split(axis, sympy.simplify(size / have), {*v.axes})
                if axis in tree.free:
                    tree = self.unflattened(v.of(tree), axis, (first, rest))
                got.append(first)
                todo.insert(0, rest)
                have = size
            self.sizes.assume(have, size)
            dims.append(tuple(got))
        left = [axis for axis in todo if self.sizes.hint(self.sizes.of_axis[axis]) != 1]
        if left:
            raise self._untaken(v, shape)
        return v.along(dims).of(tree)

    def _refuse_remainder(
        self, v: TreeValue, axis: str, first: Expr, shape: Sequence[object]
    ) -> None:
        """An axis is split into equal parts, or not at all."""
        size, part = self.sizes.hint(self.sizes.of_axis[axis]), self.sizes.hint(first)
        if part < 1 or size % part:
            raise self._untaken(v, shape)

    def _untaken(self, v: TreeValue, shape: Sequence[object]) -> Refused:
        wanted = ", ".join(str(self.sizes.plain(size)) for size in shape)
        own = ", ".join(words(dim) for dim in v.dims)
        return Refused(
            f"a view of ({own}) as ({wanted}), which neither joins neighbours nor splits an axis "
            "into equal parts",
            "use permute or transpose to change the order of dimensions, and view to join "
            "neighbours or to split one; or give an axis that is split a size with these parts: "
            f'--sizes "{v.axes[-1] if v.axes else "N"}: 64"',
        )

    def unflattened(self, v: TreeValue, axis: str, into: tuple[str, str]) -> Tree:
        if v.kind == LABEL:
            raise Refused("splitting the dimension of labels", "pass them with separate dimensions")
        return trees.unflatten(v.tree, axis, into)

    def _fills(self, have: Expr, todo: Sequence[str], size: Expr) -> bool:
        """Whether some of the next axes, as they are, make this size up."""
        for axis in todo:
            have = have * self.sizes.of_axis[axis]
            if self.sizes.hint(have) >= self.sizes.hint(size):
                return self.sizes.hint(have) == self.sizes.hint(size)
        return False

    def _is_part(self, have: Expr, size: Expr) -> bool:
        """Whether ``have`` times further axes may be ``size``."""
        hint, wanted = self.sizes.hint(have), self.sizes.hint(size)
        if hint == wanted:
            return True
        return wanted % hint == 0 and sympy.denom(sympy.together(size / have)).is_Integer

    def split(self, axis: str, first: Expr, used: set[str]) -> tuple[str, str]:
        """The axes of an axis whose slower one has this size."""
        known = self.splits.get((axis, first))
        if known and not set(known) & used:
            return known
        rest = sympy.simplify(self.sizes.of_axis[axis] / first)
        unwanted = {*used, *self.windows}
        slow = self._part_axis(first, unwanted)
        fast = self._part_axis(rest, {*unwanted, slow})
        self.splits[axis, first] = slow, fast
        return slow, fast

    def _part_axis(self, size: Expr, but: set[str]) -> str:
        known = self.sizes.found(size, but)
        return self.sizes.new(size) if known is None else known

    def repeated(self, axis: str, times: Expr) -> str:
        """The axis along which an axis is repeated, the same for all that are repeated alike."""
        if (axis, times) not in self.repeats:
            self.repeats[axis, times] = self.sizes.new(times)
        return self.repeats[axis, times]

    def by_size(self, shape: Iterable[object]) -> tuple[Dim, ...]:
        """Axes for what is made of nothing: those of these sizes that there are, or new ones."""
        dims: list[Dim] = []
        for size in map(self.sizes.plain, shape):
            used = {axis for dim in dims for axis in dim}
            one = self.sizes.hint(size) == 1
            dims.append(() if one else (self.sizes.made(size, {*used, *self.windows}),))
        return tuple(dims)

    def typed(self, constant: torch.Tensor) -> Iterator[TreeValue]:
        """A number, range(n), or a few numbers that somebody typed, each at its place."""
        if constant.numel() == 1:
            yield TreeValue(self.number(self.meant(constant.item())), ((),) * constant.ndim)
        elif constant.ndim == 1 and constant.is_floating_point() and len(constant) <= MOST_TYPED:
            axis = self.sizes.axis_of(Integer(len(constant)), self.windows)
            tree = trees.ZERO
            for k, number in enumerate(constant.tolist()):
                here = trees.one_hot(trees.number(k), axis)
                tree = trees.sum_of(tree, trees.product(trees.number(self.meant(number)), here))
            yield TreeValue(tree, ((axis,),))
        elif constant.ndim == 1 and constant.tolist() == list(range(len(constant))):
            axis = self.sizes.fixed.get(len(constant))
            if axis is not None:
                yield TreeValue(trees.position(axis), ((axis,),))

    # Parts of an axis

    def stepped(self, length: Expr, step: int, but: Iterable[str]) -> str:
        """An axis for every ``step``-th of so many entries."""
        span = sympy.expand(length + step - 1)
        text = number_text(span) if span.is_Symbol else f"({number_text(span)})"
        return self.sizes.formed(floor(span / step), f"{text} // {step}", but)

    def part(self, v: TreeValue, i: int, parts: int, index: int) -> TreeValue:
        """One of several equal parts of a dimension."""
        v = self.single(v, i)
        (axis,) = v.dims[i]
        count, rest = self.split(axis, Integer(parts), {*v.axes})
        tree = v.tree
        if axis in tree.free:
            picked = trees.one_hot(trees.number(index), count)
            tree = trees.product(picked, self.unflattened(v, axis, (count, rest)))
            tree = trees.total(tree, [count])
        return v.with_dim(i, (rest,)).of(tree)

    def entry(self, v: TreeValue, i: int, index: object) -> TreeValue:
        """``select``: one entry of a dimension, which goes."""
        if v.parts is not None:
            at = self.bound(index, self.sizes.of(v.dims[i]))
            return self.begun(v, WrittenPart(i, at, at + 1), lambda v: self.entry(v, i, index))
        v = self.single(v, i)
        if v.dims[i] == () or v.dims[i][0] not in v.tree.free:
            return v.without(i)
        (axis,) = v.dims[i]
        if v.kind == LABEL:
            raise Refused(f"a single entry of labels along {axis}", "pass that label on its own")
        size, tree = self.sizes.of_axis[axis], self.as_number(v).tree
        at = self.bound(index, size)
        if size.is_Integer:
            picked = trees.product(trees.one_hot(trees.number(at), axis), tree)
        else:
            _, low, _ = self.windows.get(axis, (axis, Integer(0), size))
            here = trees.compared("==", trees.position(axis), trees.number(low + at))
            picked = trees.choice((tree, here), otherwise=trees.ZERO)
        return TreeValue(trees.total(picked, [axis]), v.dims).without(i)

    def sliced(self, v: TreeValue, i: int, start: object, stop: object) -> TreeValue:
        size = self.sizes.of(v.dims[i])
        low, high = self.bound(start, size), self.bound(stop, size)
        width = sympy.expand(high - low)
        if width == size:
            return v
        if self.sizes.hint(width) < 1:
            raise Refused("an empty slice")
        if v.parts is not None:
            return self.begun(v, WrittenPart(i, low, high), lambda v: self.sliced(v, i, low, high))
        v = self.single(v, i)
        if self.sizes.hint(width) == 1:
            entry = self.entry(v, i, low)
            return entry.along((*entry.dims[:i], (), *entry.dims[i:]))
        parts, before = sympy.simplify(size / width), sympy.simplify(low / width)
        if parts.is_Integer and before.is_Integer and parts <= MOST_PARTS and v.kind != LABEL:
            return self.part(v, i, int(parts), int(before))
        if v.dims[i][0] in self.windows:
            raise Refused("a slice of a slice", "slice once")
        return self.window(v, i, low, high)

    def begun(
        self, v: TreeValue, part: WrittenPart, read: Callable[[TreeValue], TreeValue]
    ) -> TreeValue:
        """A part as it is read: nothing is known of what is not written yet."""
        found = read(replace(v, parts=None))
        if v.parts is None or any(self._is_in(part, other) for other in v.parts):
            return found
        return replace(found, tree=trees.ZERO, parts=())

    def _is_in(self, part: WrittenPart, other: WrittenPart) -> bool:
        if part == other or (part.i, other.step) != (other.i, 1):
            return part == other
        at_most = self.sizes.at_most
        return at_most(other.low, part.low) and at_most(part.high, other.high)

    def bounded(self, v: TreeValue, i: int, start: object, stop: object, step: int) -> WrittenPart:
        size = self.sizes.of(v.dims[i])
        ends = (0 if start is None else start, size if stop is None else stop)
        low, high = (self.bound(end, size) for end in ends)
        return WrittenPart(i, low, high, step)

    def bound(self, bound: object, size: Expr) -> Expr:
        """Counted from the beginning; one past the end, however far beyond it."""
        at = self.sizes.plain(bound)
        hint, length = self.sizes.hint(at), self.sizes.hint(size)
        if hint >= length:
            return size
        return at + size if hint < 0 else at

    def window(self, v: TreeValue, i: int, low: Expr, high: Expr) -> TreeValue:
        """A part of an axis, as an axis that runs along all of it."""
        (axis,) = v.dims[i]
        own = (axis, low, high)
        known = (w for w, bounds in self.windows.items() if bounds == own and w not in v.axes)
        key = next(known, None)
        if key is None:
            key = self.sizes.like(axis)
            self.sizes.of_axis[key] = high - low
            self.sizes.parts.add(key)
            self.windows[key] = own
        return v.with_dim(i, (key,)).of(trees.renamed(v.tree, {axis: key}))

    def plain(self, x: TreeValue, i: int) -> TreeValue:
        """x with one axis of its own in dimension i: of a slice one that has its entries alone."""
        x = self.single(self.as_number(x), i)
        if x.dims[i] == () or x.dims[i][0] not in self.windows:
            return x
        (key,) = x.dims[i]
        _, low, high = self.windows[key]
        size = sympy.expand(high - low)
        own = self.sizes.formed(size, length_text(size), x.axes)
        return x.with_dim(i, (own,)).of(self._cut(x, key, own))

    def _cut(self, v: TreeValue, key: str, own: str) -> Tree:
        """The entries of a slice, along an axis that has as many."""
        axis, low, _ = self.windows[key]
        if key not in v.tree.free:
            return v.tree
        if axis in v.tree.free or v.kind == LABEL:
            what = "labels" if v.kind == LABEL else "a tensor that is met whole there, too"
            raise Refused(
                f"a slice of {axis} of {what}, along {own}",
                f"pass the slice as an argument of its own, along {own}",
            )
        return reads.at(trees.renamed(v.tree, {key: axis}), axis, ((own, 1),), low)

    def counted(self, tree: Tree, axes: Iterable[str]) -> Tree:
        for key in axes:
            if key not in self.windows or key not in tree.free:
                continue
            axis, low, high = self.windows[key]
            here = trees.position(key)
            if low != 0:
                condition = trees.compared(">=", here, trees.number(low))
                tree = trees.choice((tree, condition), otherwise=trees.ZERO)
            if high != self.sizes.of_axis[axis]:
                condition = trees.compared("<", here, trees.number(high))
                tree = trees.choice((tree, condition), otherwise=trees.ZERO)
        return tree

    def between_windows(self, v: TreeValue, to: dict[str, str]) -> TreeValue:
        plain = {}
        for old, new in to.items():
            if old not in self.windows and new not in self.windows:
                plain[old] = new
            elif old in self.windows and new in self.windows:
                v = v.of(self._shifted(v, old, new))
            elif old in self.windows:
                size = sympy.expand(self.sizes.of_axis[old])
                self.sizes.equate(new, size)
                v = v.of(self._cut(v, old, new))
            elif old in v.tree.free:
                axis = self.windows[new][0]
                raise Refused(
                    f"a slice of {axis} meets all of {old}",
                    f"pass the slice as an argument of its own, along {old}",
                )
        return v.of(trees.renamed(v.tree, plain))

    def _shifted(self, v: TreeValue, old: str, new: str) -> Tree:
        """Along another window of the same axis, entry by entry."""
        (axis, low, _), (other, start, _) = self.windows[old], self.windows[new]
        if axis != other:
            raise Refused("slices of different axes meet", WINDOW_REMEDY)
        if low == start or old not in v.tree.free:
            return trees.renamed(v.tree, {old: new})
        if v.kind == LABEL:
            raise Refused("shifted labels", "slice the labels last, not the scores")
        there = trees.sum_of(trees.position(new), trees.number(low - start))
        here = trees.compared("==", trees.position(old), there)
        return trees.total(trees.choice((v.tree, here), otherwise=trees.ZERO), [old])


def name_of(tree: Tree) -> str:
    """The tensor that a label is, under whatever axes."""
    while tree.kind != "tensor":
        tree = tree.args[0]
    return tree.args[0]


def words(dim: Dim) -> str:
    return "*".join(dim) or "1"
