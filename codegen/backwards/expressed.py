"""Gradients that a backward returns, as expressions over the statements of its forward."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from decimal import Decimal

import sympy
from sympy import Expr, Integer

from codegen.backwards.turn import BACKWARD
from codegen.importing.nodes import mathematics
from codegen.importing.reader import Reader
from codegen.importing.values import Refused, TracedStatement
from derive.claims.reading import TextLine
from derive.gradient.chain.chain import adjoint_of
from derive.language.notation.definition import Definition
from derive.language.notation.statements import without_marks
from derive.language.symbols import Axis
from derive.language.torch_ops import trees


class Expressed:
    """Expressions for trees over the statements of a definition, with the axes that they need."""

    def __init__(
        self,
        reader: Reader,
        definition: Definition,
        statements: Sequence[TracedStatement],
        times_upstream: bool,
    ):
        self.reader, self.definition = reader, definition
        self.axes: dict[str, Axis] = {axis.name: axis for axis in definition.axes}
        known = [*definition.inputs, *(t for t, _ in definition.scalars)]
        known += [*(s.tensor for s in definition.statements)]
        self.tensors: dict[str, Expr] = {t.name: t for t in known}
        upstream = adjoint_of(definition.output)
        self.tensors[upstream.name] = upstream
        self.numbers: Mapping[Expr, Expr] = {}
        self.factor = upstream if times_upstream else Integer(1)
        self.unread = {s.name: s for s in statements if s.name not in self.tensors}

    def gradient(self, tree: trees.Tree) -> Expr:
        """The gradient of the loss, or of several outputs joined, for any upstream gradient."""
        return self.factor * self(tree)

    def lines(self, file: str) -> Iterator[TextLine]:
        """Named values of the backward, in the order of its lines."""
        for statement in self.unread.values():
            name = self.reader.theirs.get(statement.name)
            if name and statement.name.startswith(BACKWARD) and statement.name in self.tensors:
                source = linecache.getline(file, statement.line).strip()
                yield TextLine(name, statement.line, source, self.tensors[statement.name])

    def typed_in(self, tree: trees.Tree) -> dict[str, Expr]:
        """Decimals in ``tree`` and its operands, as typed."""
        found = {typed: e for e in _numbers_in(tree) if (typed := _typed(e))}
        for name in trees.tensors_in(tree) & {*self.unread}:
            found |= self.typed_in(self.unread[name].tree)
        return found

    def with_numbers(self, tree: trees.Tree, others: Mapping[Expr, Expr]) -> Expr:
        """The gradient with some numbers replaced."""
        again = copy(self)
        again.numbers = {**others, **{-a: -b for a, b in others.items()}}
        again.tensors = {n: e for n, e in self.tensors.items() if n not in self.unread}
        return again.gradient(tree)

    def __call__(self, tree: trees.Tree) -> Expr:
        tree = _with(tree, self.numbers)
        for name in sorted(_axes_in(tree) - {*self.axes}):
            self._add_axis(name)
        for name in trees.tensors_in(tree):
            if name not in self.tensors:
                statement = self.unread[name]
                self.tensors[name] = self(statement.tree)
        return without_marks(mathematics(tree, self.tensors, self.axes))

    def _add_axis(self, name: str) -> None:
        """Add an axis that only the backward has: another one of a size that the forward has."""
        size = self.reader.sizes.of_axis[name]
        for other, own in self.reader.sizes.of_axis.items():
            if other in self.axes and self.reader.sizes.same(own, size):
                original = self.definition.size(self.axes[other])
                axis = Axis(name)
                place = self.definition.axes.index(original) + 1
                axes = self.definition.axes
                self.definition = replace(
                    self.definition,
                    axes=(*axes[:place], axis, *axes[place:]),
                    twins=(*self.definition.twins, (axis, original)),
                )
                self.axes[name] = axis
                return
        raise Refused(
            f"the backward has a dimension of size {size}, which no tensor of the forward has",
            "use only dimensions of the forward",
        )


def with_told(definition: Definition, reader: Reader) -> Definition:
    """The definition with sizes that follow from an axis named by an expression: sizes at which one
    of them is not an integer never occur.
    """
    known = {axis.name: axis for axis in definition.axes}
    told = []
    for name in {n for e in reader.sizes.said.values() for n in map(str, e.free_symbols)} - {
        *known
    }:
        size = reader.sizes.of_axis.get(name)
        sizes = {s: known.get(str(s)) for s in size.free_symbols} if size is not None else {}
        if sizes and all(sizes.values()):
            told.append(Axis(name, size.xreplace(sizes)))
    return replace(definition, axes=(*definition.axes, *told))


def _numbers_in(tree: trees.Tree) -> set[Expr]:
    if tree.kind == "number":
        return {abs(tree.args[0])} if tree.args[0].is_Rational else set()
    return {e for a in tree.args if isinstance(a, trees.Tree) for e in _numbers_in(a)}


def _with(tree: trees.Tree, numbers: Mapping[Expr, Expr]) -> trees.Tree:
    """The same tree with numbers replaced."""
    if not numbers:
        return tree
    if tree.kind == "number":
        return trees.number(numbers.get(tree.args[0], tree.args[0]))
    args = tuple(_with(a, numbers) if isinstance(a, trees.Tree) else a for a in tree.args)
    return replace(tree, args=args)


def _typed(number: Expr) -> str:
    """A decimal as it is typed; empty for any other number."""
    text = repr(float(number))
    plain = f"{Decimal(text):f}"
    return plain if "." in plain and sympy.Rational(text) == number else ""


def _axes_in(tree: trees.Tree) -> set[str]:
    found = set(tree.free)
    for a in tree.args:
        if isinstance(a, trees.Tree):
            found |= _axes_in(a)
    if tree.kind in (*trees.REDUCTIONS, *trees.RESHAPINGS, "broadcast"):
        found |= {axis for own in tree.args[1:] for axis in own}
    if tree.kind == "number":
        found |= {s.name for s in tree.args[0].free_symbols if isinstance(s, sympy.Symbol)}
    if tree.kind == "rename":
        found |= {axis for pair in tree.args[1] for axis in pair}
    return found
