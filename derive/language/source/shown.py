"""Lines of the notation for rows of `derive.language.torch_ops`, built from the typed text of the
operands and named axes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter
from typing import Any

import sympy
from sympy import Expr

from derive.language.torch_ops import reads, trees
from derive.language.torch_ops.table import Op, table
from derive.language.torch_ops.text import COMPARISON, POWER, PRODUCT, SUM, WHOLE, text
from derive.language.torch_ops.trees import Tree

HOLDS = {ast.Add: SUM, ast.Sub: SUM, ast.Mult: PRODUCT, ast.Div: PRODUCT, ast.Pow: POWER}
ALONE = (ast.Name, ast.Call, ast.Attribute, ast.Subscript)
CORRECTIONS = ("correction", "unbiased", "ddof")


class Unclear(Exception):
    """No line can be suggested; the message says why."""


class NotExpressible(Exception):
    """No line can express it: it moves dimensions, and axes have names."""


# Names in numpy, Python and elsewhere for rows of `derive.language.torch_ops`.
ROWS = {
    "sum": "nansum reduce_sum fsum total Sum",
    "mean": "nanmean average avg reduce_mean fmean",
    "var": "variance nanvar reduce_variance",
    "std": "stdev nanstd reduce_std",
    "norm": "vector_norm",
    "amax": "max nanmax reduce_max Max",
    "amin": "min nanmin reduce_min Min",
    "logsumexp": "reduce_logsumexp",
    "cumsum": "cumulative_sum",
    "cumprod": "cumulative_prod",
    "gather": "take_along_dim take_along_axis",
}
ROWS = {other: name for name, others in ROWS.items() for other in others.split()}
KINDS = ("Dim", "Dims")  # kinds of the dimension argument of a row
OF_TWO = {"max": "Max", "min": "Min"}  # also defined for two tensors
NOTES = {"argmax": "which entries are the largest", "argmin": "which entries are the smallest"}
SIZES = ("size", "numel", "nelement", "len")


@dataclass(frozen=True)
class Typed:
    """A part of a line, and the axes of its dimensions; '' for size 1."""

    tree: Tree
    dims: tuple[str, ...] = ()

    @property
    def rank(self) -> int:
        return len(self.dims)


def typed(node: ast.AST, axes: Sequence[str] = ()) -> Typed:
    """The text and precedence of a node; a number keeps its value."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        value = None
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Typed(trees.number(value))
    holds = WHOLE if isinstance(node, ALONE) else COMPARISON
    if isinstance(node, (ast.BinOp, ast.UnaryOp)):
        holds = HOLDS.get(type(node.op), PRODUCT if isinstance(node, ast.UnaryOp) else COMPARISON)
    return Typed(Tree("typed", (ast.unparse(node), holds), frozenset(axes)), tuple(axes))


class Hints:
    """Implements `Arrays` on typed text, as far as named axes allow."""

    def value(self, x: Any) -> Typed:
        return x if isinstance(x, Typed) else Typed(trees.as_tree(x))

    def each(self, formula: Callable[..., Tree], *values) -> Typed:
        found = [self.value(x) for x in values]
        longest = max((x.dims for x in found), key=len, default=())
        return Typed(formula(*(x.tree for x in found)), longest)

    def exponentials(self, x: Typed) -> Typed:
        return self.each(lambda e: trees.call("exp", e), x)

    def let(self, name: str, x: Typed) -> Typed:
        return x

    def places(self, x: Typed, dims) -> list[int]:
        return list(range(x.rank)) if dims is None else [dims] if isinstance(dims, int) else [*dims]

    def _reduced(self, x: Typed, tree: Tree, dims) -> Typed:
        gone = self.places(x, dims)
        return Typed(tree, tuple("" if i in gone else a for i, a in enumerate(x.dims)))

    def sum(self, x: Typed, dims=None, keepdim: bool = False) -> Typed:
        axes = [x.dims[i] for i in self.places(x, dims) if x.dims[i]]
        return self._reduced(x, trees.total(x.tree, axes), dims)

    def largest(self, x: Typed, dims=None, keepdim: bool = False) -> Typed:
        tree = x.tree
        for i in self.places(x, dims):
            tree = trees.largest(tree, x.dims[i])
        return self._reduced(x, tree, dims)

    def index_of_largest(self, x: Typed, dim: int, keepdim: bool = False) -> Typed:
        largest = trees.largest(x.tree, x.dims[dim])
        return Typed(trees.indicator(trees.compared("==", x.tree, largest)), x.dims)

    def count(self, x: Typed, dims=None) -> Expr:
        return sympy.prod(sympy.Symbol(x.dims[i]) for i in self.places(x, dims) if x.dims[i])

    def scan(self, word: str, x: Typed, dim: int) -> Typed:
        return replace(x, tree=Tree("scan", (word, x.tree, (x.dims[dim],), ""), x.tree.free))

    def picked(self, x: Typed, dim: int, index: Typed) -> Typed:
        axis = x.dims[dim]
        hot = trees.one_hot(index.tree, axis)
        return self._reduced(x, trees.total(trees.product(hot, x.tree), [axis]), dim)

    selected = picked

    def squeezed(self, x: Typed, places: Sequence[int]) -> Typed:
        return x

    def shape(self, x: Typed) -> list[Expr]:
        return [sympy.Symbol(axis) if axis else sympy.S.One for axis in x.dims]

    def entry(self, x: Typed, dim: int, index: Expr) -> Typed:
        read = reads.at(x.tree, x.dims[dim], (), index)
        return Typed(read, (*x.dims[:dim], *x.dims[dim + 1 :]))

    def unsqueezed(self, x: Typed, place: int) -> Typed:
        return Typed(x.tree, (*x.dims[:place], "", *x.dims[place:]))

    def compared(self, relation: str, x, y) -> Typed:
        return self.each(lambda a, b: trees.compared(relation, a, b), x, y)

    def chosen(self, condition: Typed, yes, no) -> Typed:
        return self.each(lambda c, a, b: trees.choice((a, c), otherwise=b), condition, yes, no)

    def position(self, x: Typed, dim: int) -> Typed:
        return Typed(trees.position(x.dims[dim]), (x.dims[dim],))

    def like(self, x: Typed, value: Any) -> Typed:
        return self.value(value)

    def refuse(self, problem: str, remedy: str):
        raise Unclear(f"{problem}: {remedy}")

    def __getattr__(self, name: str):
        raise NotExpressible(name)


def line(row: Op, given: Mapping[str, Any]) -> str:
    """The line of a row with its arguments by name. Raises `Unclear`."""
    names = [p.name for p in row.arguments]
    needed = [p.name for p in row.arguments if p.default is Parameter.empty]
    if not set(needed) <= given.keys() <= set(names):
        raise NotExpressible(f"{row.names[0]} takes {', '.join(names)}")
    found = row.meaning(Hints(), **given)
    found = found[0] if isinstance(found, tuple) else found
    return text(found.tree, lambda axis: f"{axis}2")


def goes_along(name: str) -> bool:
    """Whether a name is a size, or a row that reduces dimensions of one tensor."""
    return name in SIZES or kind_of(name) in KINDS


def kind_of(name: str) -> str:
    """The kind of its dimension argument; '' if it has none."""
    row = table.get(ROWS.get(name, name))
    kinds = [str(p.annotation).partition(" ")[0] for p in row.arguments] if row else []
    others = [p.name for p in row.arguments[1:] if "Tensor" in str(p.annotation)] if row else []
    return next((kind for kind in kinds if kind in KINDS), "") if others in ([], ["index"]) else ""


def in_order(name: str, rest: list[ast.AST]) -> tuple[str, ...]:
    """The names of positional arguments; the argument of ``x.var(False)`` is the correction."""
    row = table.get(ROWS.get(name, name))
    names = tuple(p.name for p in row.arguments[1:]) if row else ("dim",)
    first = getattr(rest[0], "value", None) if rest else None
    return names[1:] if isinstance(first, bool) and "unbiased" in names else names


def along(name: str, x: ast.AST, axes: Sequence[str], dims: Sequence[str], given, torchs: bool):
    """The line of a row along the given axes. Raises `Unclear`."""
    row = table[ROWS.get(name, name)]
    found: dict[str, Any] = {}
    for parameter in row.arguments:
        kind = str(parameter.annotation).partition(" ")[0]
        node = given.get(parameter.name)
        if kind == "Tensor":
            found[parameter.name] = _label(node) if found else typed(x, axes)
        elif kind in ("Dim", "Dims"):
            places = [axes.index(axis) for axis in dims]
            if kind == "Dim" and len(places) != 1:
                raise Unclear("it goes along one axis, which has to be named")
            found[parameter.name] = places[0] if kind == "Dim" else places
        elif node is not None and parameter.name not in ("keepdim", *CORRECTIONS):
            found[parameter.name] = _number(node) if kind == "Order" else typed(node)
    if "correction" in (p.name for p in row.arguments):
        found["correction"] = _correction(given, torchs)
    return line(row, found)


def _label(node: ast.AST | None) -> Typed:
    return typed(node if isinstance(node, ast.Name) else ast.Name("labels"))


def _number(node: ast.AST) -> int | float:
    value = getattr(node, "value", None)
    if value in ("fro", None):
        return 2
    if not isinstance(value, (int, float)):
        raise Unclear(f"{ast.unparse(node)} is not the order of a norm")
    return value


def _correction(given: Mapping[str, ast.AST], torchs: bool) -> Any:
    node = next((given[name] for name in CORRECTIONS if name in given), None)
    if node is None:
        return int(torchs)
    value = getattr(node, "value", None)
    return int(value) if isinstance(value, bool) else typed(node)
