"""The operations that rows of `derive.language.torch_ops` need, on trees with named axes: mostly a
`Reader`'s own; and conversion of ATen's arguments in the graph to the kinds a row asks for.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import sympy
from sympy import Expr

from codegen.importing.examples import IGNORED
from codegen.importing.operations import along, joining, picking, reducing
from codegen.importing.operations import table as own
from codegen.importing.operations.creating import constant, like
from codegen.importing.values import CONDITION, LABEL, OUTSIDE, Refused, TreeValue
from derive.language.torch_ops import trees
from derive.language.torch_ops.numbers import exact
from derive.language.torch_ops.table import Op, table
from derive.language.torch_ops.trees import Tree

REDUCTIONS = ("none", "mean", "sum")  # by torch's enum values
DEFAULTS = ("Dim", "Size", "NewDim", "Dims", "Sizes")  # kinds whose defaults are converted too
SUMS = ("sum_of", "difference")


def spread(e: Tree, parts: Sequence[Tree]) -> Tree:
    """Add `Broadcast` if both sides of a sum have axes that the other lacks."""
    if e in parts or not any(
        arg.kind in SUMS or arg.args for arg in e.args if isinstance(arg, Tree)
    ):
        return e
    args = tuple(spread(a, parts) if isinstance(a, Tree) else a for a in e.args)
    if e.kind in SUMS and args[0].free - args[1].free and args[1].free - args[0].free:
        args = (trees.broadcast(args[0], sorted(args[1].free - args[0].free)), args[1])
    return Tree(e.kind, args, e.free)


class NamedArrays:
    """Implements `Arrays` on a reader's values."""

    def __init__(self, r):
        self.r = r

    def each(self, formula: Callable, *values) -> TreeValue:
        def whole(*parts: Tree) -> Tree:
            return spread(formula(*parts), parts)

        return self.r.pointwise(whole, *values)

    def exponentials(self, x: TreeValue) -> TreeValue:
        return reducing.exponentials(self.r, x)[1]

    def is_condition(self, x: TreeValue) -> bool:
        return x.kind == CONDITION

    def chosen(self, condition: TreeValue, yes, no) -> TreeValue:
        yes, no = (
            x if isinstance(x, TreeValue) else TreeValue(trees.as_tree(x)) for x in (yes, no)
        )
        return self.r.shapes.chosen(condition, yes, no)

    def is_zero(self, x) -> bool:
        return self.r.shapes.number(x) == trees.ZERO

    def let(self, name: str, x: TreeValue) -> TreeValue:
        return self.r.let(name, self.r.shapes.as_number(x))

    def places(self, x: TreeValue, dims) -> list[int]:
        return reducing.positions(x, dims)

    def sum(self, x: TreeValue, dims=None, keepdim: bool = False) -> TreeValue:
        return reducing.total(self.r, x, dims, keepdim)

    def largest(self, x: TreeValue, dims=None, keepdim: bool = False) -> TreeValue:
        return reducing.largest(self.r, x, dims, keepdim)

    def index_of_largest(self, x: TreeValue, dim: int, keepdim: bool = False) -> TreeValue:
        return reducing.hits(self.r, x, dim, keepdim)

    def count(self, x: TreeValue, dims=None) -> Expr:
        return sympy.Mul(*(self.r.sizes.of(x.dims[i]) for i in self.places(x, dims)))

    def contracted(
        self, inputs: Sequence[str], output: str, values: Sequence[TreeValue]
    ) -> TreeValue:
        return reducing.contracted(self.r, inputs, output, values)

    def scan(self, word: str, x: TreeValue, dim: int) -> TreeValue:
        return along.scanned(self.r, x, dim, word)

    def permuted(self, x: TreeValue, places: Sequence[int]) -> TreeValue:
        return x.along(x.dims[i] for i in places)

    def unsqueezed(self, x: TreeValue, place: int) -> TreeValue:
        return x.along((*x.dims[:place], (), *x.dims[place:]))

    def apart(self, x: TreeValue, dim: int, count: Expr) -> TreeValue:
        r, x = self.r, self.r.shapes.single(self.r.shapes.as_number(x), dim)
        (axis,) = x.dims[dim]
        into = r.shapes.split(axis, count, {*x.axes})
        tree = r.shapes.unflattened(x, axis, into) if axis in x.tree.free else x.tree
        return x.of(tree).along((*x.dims[:dim], *((a,) for a in into), *x.dims[dim + 1 :]))

    def together(self, x: TreeValue, dim: int) -> TreeValue:
        whole = (*x.dims[dim], *x.dims[dim + 1])
        return self.r.shapes.single(x.along((*x.dims[:dim], whole, *x.dims[dim + 2 :])), dim)

    def squeezed(self, x: TreeValue, places: Sequence[int]) -> TreeValue:
        return x.along(d for i, d in enumerate(x.dims) if d or i not in places)

    def part(self, x: TreeValue, dim: int, start, stop, step: int = 1) -> TreeValue:
        if set(x.dims[dim]) & self.r.shapes.windows.keys():
            x = self.r.shapes.plain(x, dim)
        size = self.r.sizes.of(x.dims[dim])
        stop = size if stop is None else stop
        if step == 1 or not x.dims[dim]:
            return self.r.shapes.sliced(x, dim, start, stop)
        ends = (self.r.shapes.bound(end, size) for end in (start, stop))
        return along.strided(self.r, x, dim, (*ends, step))

    def entry(self, x: TreeValue, dim: int, index: Expr) -> TreeValue:
        return self.r.shapes.entry(x, dim, index)

    def windows(self, x: TreeValue, dim: int, sizes: tuple, index: tuple, fill=0) -> TreeValue:
        fill = trees.value_of(trees.as_tree(fill))
        return along.windows(self.r, self.r.shapes.as_number(x), dim, sizes, index, fill)

    def flipped(self, x: TreeValue, dim: int) -> TreeValue:
        x = self.r.shapes.plain(x, dim)
        if not x.dims[dim] or x.dims[dim][0] not in x.tree.free:
            return x
        return x.of(along.reversed_along(x.tree, x.dims[dim][0], along.size_of(self.r, x, dim)))

    def stacked(self, values: Sequence[TreeValue], dim: int) -> TreeValue:
        return joining.stack(self.r, values, dim)

    def joined(self, values: Sequence[TreeValue], dim: int) -> TreeValue:
        return joining.cat(self.r, values, dim)

    def picked(self, x: TreeValue, dim: int, index: TreeValue) -> TreeValue:
        return picking.gathered(self.r, x, dim, index)

    def selected(self, x: TreeValue, dim: int, index: TreeValue) -> TreeValue:
        return picking._index(self.r, x, [None] * dim + [index])

    def counted(
        self, labels: TreeValue, ignored, losses: TreeValue
    ) -> tuple[TreeValue | None, TreeValue]:
        """Losses of ignored labels are already 0."""
        if labels.kind != LABEL or not (self.r.ignoring or ignored != IGNORED):
            return None, losses
        self.r.ignore(labels, ignored)
        return TreeValue(trees.kept(labels.tree), labels.dims), losses

    def hots(self, index: TreeValue, x: TreeValue, dim: int) -> TreeValue:
        (axis,) = self.r.shapes.single(x, dim).dims[dim] or ("",)
        if not axis:
            raise Refused("an index into a dimension of size 1", "leave it out")
        if axis in index.axes:
            axis = self.r.shapes.sibling(axis, index.axes)
        return TreeValue(picking.hot(self.r, index, axis), (*index.dims, (axis,)))

    def source(self, x: TreeValue, value):
        return value

    def identity(self, x: TreeValue, one: int, other: int) -> TreeValue:
        return self.each(
            lambda i, j: trees.indicator(trees.compared("==", i, j)),
            *(self.position(x, dim) for dim in (one, other)),
        )

    def written(self, x: TreeValue, dim: int, part: tuple, values: TreeValue) -> TreeValue:
        raise Refused("writing a part of a dimension", "combine parts with torch.cat")

    def compared(self, relation: str, x, y) -> TreeValue:
        found = self.each(lambda p, q: trees.compared(relation, p, q), x, y)
        return TreeValue(found.tree, found.dims, CONDITION)

    def extremes(self, values: TreeValue, indices: TreeValue | None) -> tuple:
        return values, OUTSIDE if indices is None else indices

    def on_diagonal(self, x: TreeValue) -> TreeValue:
        """The second axis has the length of the first; the entries determine it."""
        i = x.rank - 1
        x = self.r.shapes.plain(x, i)
        (a,) = x.dims[i] or ("",)
        if not a:
            return x.along((*x.dims, ()))
        b = self.r.shapes.sibling(a, x.axes)
        here = trees.compared("==", trees.position(a), trees.position(b))
        tree = trees.choice((trees.renamed(x.tree, {a: b}), here), otherwise=trees.ZERO)
        return TreeValue(tree, (*x.dims, (b,)))

    def shape(self, x: TreeValue) -> list[Expr]:
        return [self.r.sizes.of(dim) for dim in x.dims]

    def same(self, one: Expr, other: Expr) -> bool:
        return self.r.sizes.same(one, other)

    def known(self, size: Expr) -> int | None:
        sizes = self.r.sizes
        fixed = str(size) in sizes.fixed.values() or sympy.sympify(size, strict=True).is_Integer
        return sizes.hint(size) if fixed else None

    def divided(self, size: Expr, by: Expr) -> Expr:
        """A quotient that is an integer in the example is assumed to be one at all sizes."""
        sizes = self.r.sizes
        if sizes.hint(size) % sizes.hint(by):
            raise Refused(f"{size} is not a multiple of {by}", "slice it")
        return sympy.simplify(size / by)

    def divided_up(self, size: Expr, by: Expr) -> Expr:
        return self.r.sizes.plain(self.r.node.meta["val"].shape[0])

    def need(self, length: Expr, least: int) -> None:
        """Nothing to check: the trace has run."""

    def reshaped(self, x: TreeValue, sizes: Sequence[Expr]) -> TreeValue:
        known = [size for size in sizes if size != -1]
        rest = sympy.cancel(sympy.Mul(*self.shape(x)) / sympy.Mul(*known))
        return self.r.shapes.reshaped(x, [rest if size == -1 else size for size in sizes])

    def expanded(self, x: TreeValue, sizes: Sequence[Expr]) -> TreeValue:
        dims = [()] * (len(sizes) - x.rank) + list(x.dims)
        for i, size in enumerate(sizes):
            if not dims[i] and self.r.sizes.hint(size) not in (1, -1):
                used = {axis for dim in dims for axis in dim}
                dims[i] = (self.r.sizes.axis_of(size, {*used, *self.r.shapes.windows}),)
        return x.along(dims)

    def copied(self, x: TreeValue) -> TreeValue:
        return x

    def read(self, x: TreeValue, dim: int, length: Expr, step, offset, fill=0) -> TreeValue:
        return along.read(self.r, x, dim, (length, step, offset), fill)

    def position(self, x: TreeValue, dim: int) -> TreeValue:
        if not x.dims[dim]:
            return TreeValue(trees.ZERO)
        (axis,) = self.r.shapes.single(x, dim).dims[dim]
        return TreeValue(trees.position(axis), ((axis,), *((),) * (x.rank - dim - 1)))

    def counting(self, size: Expr) -> TreeValue:
        if size == 1:
            return TreeValue(trees.ZERO, ((),))
        axis = self.r.sizes.formed(size, along.floor_text(size))
        return TreeValue(trees.position(axis), ((axis,),))

    def filled(self, shape: Sequence[Expr], value: Any) -> TreeValue:
        return constant(self.r, value, shape)

    def like(self, x: TreeValue, value: Any) -> TreeValue:
        return like(self.r, x, value)

    def expect(self, x: TreeValue, dims: Sequence[int], sizes: Sequence[Expr]) -> None:
        """Nothing to check: the trace has run."""

    def changed(self, *values: TreeValue | None) -> None:
        """Nothing to note: the trace is functional."""

    def refuse(self, problem: str, remedy: str):
        raise Refused(problem, remedy)

    misfit = refuse


# Arguments


def _number(r, value) -> Expr:
    return exact(value) if isinstance(value, (int, float)) else r.sizes.plain(value)


def _of_kind(r, x: TreeValue | None, kind: str, value) -> Any:
    if value is None:
        return None
    if kind == "DimOrTensor" and isinstance(value, TreeValue):
        return value
    if kind == "Parts" and not isinstance(value, (list, tuple)):
        return r.sizes.plain(value)
    kind = {"DimOrTensor": "Dim", "Parts": "Sizes"}.get(kind, kind)
    if kind == "Dim":
        return value % max(x.rank, 1)
    if kind == "NewDim":
        return value % (x.rank + 1)
    if kind == "Dims":
        dims = [value] if isinstance(value, int) else list(value)
        return tuple(d % max(x.rank, 1) for d in dims) or None
    if kind == "Size":
        return r.sizes.plain(value)
    if kind == "Sizes":
        values = value if isinstance(value, (list, tuple)) else [value]
        return tuple(map(r.sizes.plain, values))
    if kind == "Numbers":
        values = value if isinstance(value, (list, tuple)) else [value]
        return value if isinstance(value, str) else [_number(r, v) for v in values]
    if kind == "Reduction":
        return REDUCTIONS[value]
    return value


def _given(r, parameters: dict[str, inspect.Parameter], values: dict) -> tuple[list, dict]:
    """The arguments converted to the kinds of the row, with the row's defaults where ATen omits
    them.
    """
    met = (v[0] if isinstance(v, (list, tuple)) and v else v for v in values.values())
    x = next((v for v in met if isinstance(v, TreeValue)), None)
    place: list[Any] = []
    keywords: dict[str, Any] = {}
    for name, parameter in parameters.items():
        kind, _, optional = parameter.annotation.partition(" | ")
        needed = parameter.default is parameter.empty
        value = values.get(name)
        if value is None and not optional and not needed:
            value = parameter.default
        if value is not parameter.default or kind in DEFAULTS:
            value = _of_kind(r, x, kind, value)
        if parameter.kind is parameter.VAR_POSITIONAL:
            place += value or ()
        elif parameter.kind is parameter.KEYWORD_ONLY:
            keywords[parameter.name] = value
        else:
            place.append(value)
    return place, keywords


def _results(r, found) -> Any:
    """As many results as ATen's operation returns."""
    found = list(found) if isinstance(found, tuple) else [found]
    if str(getattr(r.node.meta["val"], "dtype", "")) == "torch.bool":
        found = [r.shapes.as_condition(found[0])]
    more = len(r.node.target._schema.returns) - len(found)
    return found[0] if len(found) == 1 and more < 1 else [*found, *[OUTSIDE] * more]


def rule_of(row: Op) -> Callable[..., Any]:
    """The row as a rule in the reader's table."""
    taken = [p for p in row.arguments if p.annotation != "Default"]  # given_to refuses the others
    names = {"x" if p.name == "input" else p.name: p for p in taken}
    also = dict(row.aten)  # ATen's argument name: ours

    def rule(r, **given):
        own = {also.get(name, name): value for name, value in given.items()}
        own = {"x" if name == "input" else name: value for name, value in own.items()}
        place, keywords = _given(r, names, own)
        return _results(r, row.meaning(NamedArrays(r), *place, **keywords))

    parameters = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY) for n in (*names, *also)]
    rule.__signature__ = inspect.Signature(parameters)
    rule.__name__ = row.meaning.__name__
    return rule


def enter() -> None:
    for name, row in table.items():
        if name not in own.before:
            own.rules[name] = rule_of(row)
        if row.called:
            own.names[name] = row.called


enter()
