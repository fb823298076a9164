"""Dimensions that meet: which axis they are then, and what is renamed.

No axes are merged. Where two dimensions meet, equal names are left, different ones of one size are
renamed, and an axis that would stand twice in a result gets a sibling of the same size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sympy import Expr, Mul, floor

from codegen.importing.made import Floats
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
)
from derive.language.torch_ops import trees
from derive.language.torch_ops.trees import Tree

MARK = "?"  # how no tensor is called
BEGUN = "begin with torch.zeros_like(x), or write every part of it first"
AS_INDEX = "use it as an index, or in one_hot"


class AxisMeeting:
    """``sizes`` knows all axes; ``guessed`` are those of parameters, for which nobody gave a name,
    and ``met`` what each of them was found to be.
    """

    def __init__(self, sizes: Sizes, floats: Floats):
        self.sizes, self.meant = sizes, floats.meant
        self.floats = floats
        self.guessed: set[str] = set()
        self.met: list[tuple[str, str]] = []
        self.indices: dict[str, set[str]] = {}  # labels, and the axes that they index
        self.compared: set[str] = set()  # and those that are met as numbers

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

    def between_windows(self, v: TreeValue, to: dict[str, str]) -> TreeValue:
        """``v`` along other axes; the windows of one axis are shifted where they meet."""
        return v.of(trees.renamed(v.tree, to))

    def single(self, v: TreeValue, i: int) -> TreeValue:
        """The same with one axis in dimension i."""
        raise NotImplementedError

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
                v.kind != LABEL or not {*dim} & self.not_siblings,  # no label can be shifted
                len(dim) != 1,
                *(bool({*dim} & own) for own in (self.not_siblings, used, self.guessed)),
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
        return self.sizes.axis_of(self.sizes.of_axis[axis], {axis, *used, *self.not_siblings})

    @property
    def not_siblings(self) -> set[str]:
        """Axes that are no plain axes."""
        return set()

    # What rules are made of

    def pointwise(self, f: Callable[..., Tree], *values: object) -> TreeValue:
        """``f`` of expressions that are aligned; one that it writes down twice has a name first."""
        aligned, dims = self.aligned(*map(self.as_number, values))
        marks = [trees.tensor(f"{MARK}{i}", v.tree.free) for i, v in enumerate(aligned)]
        counts = trees.counts_of(f(*marks))
        named = [
            self.let(self.called(v), v) if counts.get(f"{MARK}{i}", 0) > 1 else v
            for i, v in enumerate(aligned)
        ]
        return TreeValue(f(*(v.tree for v in named)), dims)

    def called(self, value: TreeValue) -> str:
        """What a value is called that needs a name."""
        raise NotImplementedError

    def let(self, name: str, value: TreeValue) -> TreeValue:
        """A statement of that name, and the value as what it is called from then on."""
        raise NotImplementedError

    def sum_like(self, f: Callable[[Tree, Tree], Tree], a: object, b: object) -> TreeValue:
        """a + b or a - b: one side has the axes of the other, or `Broadcast` says so."""

        def both(x: Tree, y: Tree) -> Tree:
            if x.free - y.free and y.free - x.free:
                x = trees.broadcast(x, sorted(y.free - x.free))
            return f(x, y)

        return self.pointwise(both, a, b)

    def chosen(self, condition: object, yes: object, no: object) -> TreeValue:
        found = self.as_condition(condition), self.as_number(yes), self.as_number(no)
        (c, a, b), dims = self.aligned(*found)
        return TreeValue(trees.choice((a.tree, c.tree), otherwise=b.tree), dims)

    def positions(self, v: TreeValue, dims) -> list[int]:
        """Which dimensions are meant: all, where none is named."""
        if dims is None or (not isinstance(dims, int) and not list(dims)):
            return list(range(v.rank))
        named = [dims] if isinstance(dims, int) else dims
        return [d % v.rank for d in named] if v.rank else []

    def dropped(
        self, v: TreeValue, tree: Tree, positions: Sequence[int], keepdim: bool
    ) -> TreeValue:
        kept = (i for i in range(v.rank) if keepdim or i not in positions)
        return TreeValue(tree, tuple(() if i in positions else v.dims[i] for i in kept))

    def sum(self, value: object, dims=None, keepdim: bool = False) -> TreeValue:
        v = self.as_number(value)
        positions = self.positions(v, dims)
        axes = [axis for i in positions for axis in v.dims[i]]
        tree = self.counted(v.tree, axes)
        times = Mul(*(self.sizes.of_axis[axis] for axis in axes if axis not in tree.free))
        summed = trees.total(tree, [axis for axis in axes if axis in tree.free])
        return self.dropped(v, trees.product(trees.number(times), summed), positions, keepdim)

    def counted(self, tree: Tree, axes: Iterable[str]) -> Tree:
        """What is summed along the axes: 0 outside of the windows among them."""
        return tree

    def count(self, v: TreeValue, dims=None) -> Expr:
        return Mul(*(self.sizes.of(v.dims[i]) for i in self.positions(v, dims)))

    def mean(self, v: TreeValue, dims=None, keepdim: bool = False) -> TreeValue:
        summed = self.sum(v, dims, keepdim)
        return summed.of(trees.quotient(summed.tree, trees.number(self.count(v, dims))))

    def largest(self, value: object, dims=None, keepdim: bool = False) -> TreeValue:
        v = self.as_number(value)
        positions, tree = self.positions(v, dims), v.tree
        for axis in (axis for i in positions for axis in v.dims[i]):
            tree = trees.largest(tree, axis) if axis in tree.free else tree
        return self.dropped(v, tree, positions, keepdim)

    def contracted(self, inputs: Sequence[str], output: str, values: Sequence[object]) -> TreeValue:
        """A sum of products, as einsum writes it: a letter for each dimension."""
        letters = "".join(dict.fromkeys(output + "".join(inputs)))
        found = [
            v.along(v.dims[spec.index(c)] if c in spec else () for c in letters)
            for spec, v in zip(inputs, map(self.as_number, values), strict=True)
        ]
        whole = self.pointwise(_product_of_all, *found)
        gone = [i for i, c in enumerate(letters) if c not in output]
        return self.sum(whole, gone) if gone else whole


def _product_of_all(*factors: Tree) -> Tree:
    result = factors[0]
    for factor in factors[1:]:
        result = trees.product(result, factor)
    return result


def name_of(tree: Tree) -> str:
    """The tensor that a label is, under whatever axes."""
    while tree.kind != "tensor":
        tree = tree.args[0]
    return tree.args[0]


def words(dim: Dim) -> str:
    return "*".join(dim) or "1"
