"""An interpreter of a forward's statements on torch tensors, without any printed code.

The oracle of the last gate: it reads the `Definition`, not the Program, so a mistake of layout,
lowering or printing cannot hide in it. Every value has one dimension for each axis of the forward,
of size 1 where it does not vary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from math import prod

import sympy
import torch
from sympy import Add, Expr, Mul, Piecewise
from sympy.core.relational import Relational
from torch import Tensor

from codegen.targets.torch.place_by_place import StatementValues, format_of, run_all
from derive.language.choices import Branches, Compared
from derive.language.detached import Detach
from derive.language.formulas.order import differences_and_rest
from derive.language.functions import TABLE
from derive.language.nodes import (
    ArgMax,
    Cholesky,
    GoneAlong,
    LargestSoFar,
    LogCumSumExp,
    LogDet,
    MatrixNode,
    Max,
    OneHot,
    Position,
    Recurrence,
    Reindexing,
    Reshaping,
    Solve,
    Sum,
    Whole,
)
from derive.language.notation.definition import Definition, Statement
from derive.language.reading_at import At, affine
from derive.language.symbols import Axis, MinusInfinity
from derive.language.symbols import Tensor as Symbolic

RELATIONS = {
    "<": torch.lt,
    "<=": torch.le,
    ">": torch.gt,
    ">=": torch.ge,
    "==": torch.eq,
    "!=": torch.ne,
}


@cache
def torch_function(name: str) -> Callable | None:
    """Torch's function for one of SymPy's; None where there is none. Printers have their own table,
    so that a wrong name is found there and here.
    """
    row = next((row for row in TABLE if row.name == name and row.in_torch), None)
    if row is None:
        return None
    of_torch = getattr(torch, row.in_torch[0], None)
    found = of_torch or getattr(torch.special, row.in_torch[0])

    def with_orders(*values):
        orders = (int(torch.as_tensor(v).flatten()[0]) for v in values[: row.orders])
        return found(*orders, *values[row.orders :])

    return with_orders if row.orders else found


def interpreted(definition: Definition, arguments: Mapping[str, Tensor | float]) -> StatementValues:
    """Every statement's value, with exactly its axes as dimensions; differentiable by autograd."""
    return Interpreter(definition, arguments).run()


class Interpreter:
    """Runs the statements in order, in the dtype of the arguments."""

    def __init__(self, definition: Definition, arguments: Mapping[str, Tensor | float]):
        self.definition = definition
        self.sizes: dict[Axis, int] = {}
        self.values: dict[str, Tensor] = {}
        self.dtype = format_of(arguments)
        given = [t for t in definition.inputs if arguments.get(t.name) is not None]
        ignoring = {i.label.name: i for i in definition.ignoring}
        for t in given:
            self.values[t.name] = arguments[t.name]
            if t.name in ignoring:
                kept = arguments[t.name] != ignoring[t.name].default
                self.values[t.name] = torch.where(kept, arguments[t.name], 0)
                self.values[ignoring[t.name].kept.name] = kept.to(self.dtype)
            for axis, size in zip(t.home, arguments[t.name].shape, strict=True):
                self.sizes[definition.size(axis)] = size
        self.sizes |= {axis: arguments[name] for name, axis in definition.size_arguments}
        self.sizes = definition.sizes_from(self.sizes)
        for t, default in definition.optional:
            if t not in given:
                shape = [self.size(axis) for axis in t.home]
                self.values[t.name] = torch.full(shape, float(default), dtype=self.dtype)
        for t, default in definition.scalars:
            number = arguments.get(t.name, definition.default_at(default, self.sizes))
            self.values[t.name] = torch.tensor(float(number), dtype=self.dtype)

    def run(self) -> StatementValues:
        lengths = {axis: self.size(axis) for axis in self.definition.axes}
        return run_all(self.definition, self.values, lengths, self.stated)

    def stated(self, statement: Statement) -> Tensor:
        """The value of one statement, with exactly its axes as dimensions."""
        home = statement.tensor.home
        whole = self.value(statement.expression).broadcast_to(
            [self.size(a) if a in home else 1 for a in self.definition.axes]
        )
        flat = whole.reshape([self.size(a) for a in self.definition.axes if a in home])
        order = [a for a in self.definition.axes if a in home]
        return flat.permute([order.index(a) for a in home])

    def size(self, axis: Axis) -> int:
        return self.sizes[self.definition.size(axis)]

    def place(self, axis: Axis) -> int:
        return self.definition.axes.index(axis)

    def value(self, e: Expr) -> Tensor:
        if isinstance(e, Symbolic):
            return self.spread(self.values[e.name], e.axes)
        if isinstance(e, (Axis, MinusInfinity)) or e.is_number:
            return self.spread(torch.tensor(self.number(e), dtype=self.dtype), ())
        if isinstance(e, Sum):
            whole = self.value(e.operand)
            shape = [
                self.size(a) if a in e.axes else n
                for a, n in zip(self.definition.axes, whole.shape, strict=True)
            ]
            return whole.broadcast_to(shape).sum([self.place(a) for a in e.axes], keepdim=True)
        if isinstance(e, Reindexing):
            return self.read(e) if isinstance(e, At) else self.reshaped(e)
        if isinstance(e, Whole):
            return self.of_matrix(e) if isinstance(e, MatrixNode) else self.gone_along(e)
        if isinstance(e, (Max, ArgMax)):
            (axis,) = e.axes
            values, indices = self.value(e.operand).max(self.place(axis), keepdim=True)
            return values if isinstance(e, Max) else indices
        if isinstance(e, (OneHot, Position)):
            entries = self.spread(torch.arange(self.size(e.axis)).to(self.dtype), (e.axis,))
            one_hot = isinstance(e, OneHot)
            return (self.value(e.operand) == entries).to(self.dtype) if one_hot else entries
        if isinstance(e, Piecewise):
            result = self.value(e.args[-1].expr)
            for chosen, condition in reversed(e.args[:-1]):
                result = torch.where(self.holds(condition), self.value(chosen), result)
            return result
        if isinstance(e, (Branches, Compared)):
            return self.value(e.choice)
        if e.is_Mul:
            return self.product(e)
        if e.is_Add:
            return self.added(e)
        parts = [self.value(arg) for arg in e.args]
        if e.is_Pow:
            return parts[0] ** (parts[1] if not e.exp.is_Rational else float(e.exp))
        function = torch_function(type(e).__name__)
        return parts[0].detach() if isinstance(e, Detach) else function(*parts)

    def added(self, e: Add) -> Tensor:
        """A sum; terms that nearly cancel come first, before rounding would lose them."""
        pairs, rest = _terms(e)
        differences = [self.value(one) + self.value(other) for one, other in pairs]
        first, *others = [*differences, *map(self.value, rest)]
        return sum(others, first)

    def product(self, e: Mul) -> Tensor:
        """A product; 0 of a one-hot is 0 whatever the rest is, such as minus infinity."""
        rest = prod(self.value(arg) for arg in e.args if not isinstance(arg, OneHot))
        for hot in (arg for arg in e.args if isinstance(arg, OneHot)):
            rest = torch.where(self.value(hot) > 0, rest, 0.0)
        return rest

    def number(self, e: Expr) -> float:
        if isinstance(e, MinusInfinity):
            return -torch.inf
        return float(self.size(e) if isinstance(e, Axis) else e)

    def read(self, e: At) -> Tensor:
        """Entry by entry, with the fill where the index is out of range."""
        whole, place = self.value(e.operand), self.place(e.axis)
        divisor, length = affine(e.index).divisor, self.size(e.axis)
        above, below = (self.value(n).round() for n in ((e.index * divisor).expand(), divisor))
        index = (above / below).round()
        shape = list(whole.shape)
        shape[place] = length
        row = whole.broadcast_to(shape).movedim(place, -1).unsqueeze(place)
        there = (above == index * below) & (index >= 0) & (index < length)
        entries = torch.where(there, index, 0).long()
        both = torch.broadcast_shapes(row.shape[:-1], entries.shape)
        found = row.broadcast_to([*both, length]).gather(-1, entries.broadcast_to(both)[..., None])
        return torch.where(there, found[..., 0], self.value(e.fill))

    def reshaped(self, e: Reshaping) -> Tensor:
        """Move the reshaped axes to the end, reshape them, and put them in their places."""
        whole, count = self.value(e.operand), len(self.definition.axes)
        inside = [self.place(axis) for axis in e.binds]
        sizes = list(whole.shape)
        for i in inside:
            sizes[i] = self.size(self.definition.axes[i])
        others = [i for i in range(count) if i not in inside]
        rows = whole.broadcast_to(sizes).permute(others + inside).flatten(len(others))
        rows = rows.reshape([*rows.shape[:-1], *map(self.size, e.brings)])
        outside = [self.place(axis) for axis in e.brings]
        missing = [i for i in range(count) if i not in others and i not in outside]
        kept = [i for i in others if i not in outside]  # of size 1 where an axis is brought
        rows = rows.squeeze([others.index(i) for i in others if i in outside])
        order = [*kept, *outside, *missing]
        rows = rows.reshape([*rows.shape, *[1 for _ in missing]])
        return rows.permute([order.index(i) for i in range(count)])

    def of_matrix(self, e: MatrixNode) -> Tensor:
        """Move the axes of the matrix to the end, and back."""
        rows, columns = map(self.place, e.axes)
        size = self.size(e.axes[0])
        whole = self.value(e.matrix)
        shape = [size if i in (rows, columns) else n for i, n in enumerate(whole.shape)]
        matrix = whole.broadcast_to(shape).movedim((rows, columns), (-2, -1))
        if isinstance(e, LogDet):
            return (
                torch.linalg.slogdet(matrix)
                .logabsdet[..., None, None]
                .movedim((-2, -1), (rows, columns))
            )
        if isinstance(e, Solve):
            right = self.value(e.right)
            shape = [size if i == rows else n for i, n in enumerate(right.shape)]
            right = right.broadcast_to(shape).movedim((rows, columns), (-2, -1))
            solved = torch.linalg.solve(matrix, right)
            return solved.movedim((-2, -1), (columns, rows))
        if isinstance(e, Cholesky):
            made = torch.linalg.cholesky((matrix + matrix.mT) / 2)
        else:
            made = torch.linalg.inv(matrix)
        return made.movedim((-2, -1), (rows, columns))

    def gone_along(self, e: GoneAlong) -> Tensor:
        """A cumulative node; of equal entries the last is the largest so far."""
        if isinstance(e, Recurrence):
            return self.recurrent(e)
        if isinstance(e, LogCumSumExp):
            return self.value(e.in_full)
        value, along = self.value(e.operand), self.place(e.axis)
        largest = value.cummax(along).values
        return largest if isinstance(e, LargestSoFar) else (value >= largest).to(self.dtype)

    def recurrent(self, e: Recurrence) -> Tensor:
        """A recurrence, one place after the other."""
        along, count = self.place(e.axis), self.size(e.axis)
        term, factor, state = map(self.value, e.operands)
        shape = list(torch.broadcast_shapes(term.shape, factor.shape, state.shape))
        shape[along] = count
        terms, factors = (t.broadcast_to(shape).unbind(along) for t in (term, factor))
        shape[along] = 1
        state = state.broadcast_to(shape).squeeze(along)
        states, places = [], range(count)
        for place in reversed(places) if e.reverse else places:
            ahead = (place + 1) % count if e.reverse and not e.exclusive else place
            before, state = state, factors[ahead] * state + terms[place]
            states.append(before if e.exclusive else state)
        return torch.stack(states[::-1] if e.reverse else states, along)

    def holds(self, c) -> Tensor:
        if isinstance(c, Relational):
            return RELATIONS[c.rel_op](self.value(c.lhs), self.value(c.rhs))
        if c in (True, False):
            return torch.tensor(bool(c))
        if isinstance(c, sympy.ITE):
            return torch.where(*map(self.holds, c.args))
        if isinstance(c, sympy.Not):
            return ~self.holds(c.args[0])
        parts = [self.holds(arg) for arg in c.args]
        combine = torch.logical_and if isinstance(c, sympy.And) else torch.logical_or
        result = parts[0]
        for part in parts[1:]:
            result = combine(result, part)
        return result

    def spread(self, tensor: Tensor, axes) -> Tensor:
        """``tensor`` along ``axes`` with a dimension for every axis of the forward."""
        order = sorted(range(len(axes)), key=lambda i: self.place(axes[i]))
        tensor = tensor.permute(order)
        there = {axes[i] for i in order}
        return tensor.reshape([self.size(a) if a in there else 1 for a in self.definition.axes])


@lru_cache(maxsize=1024)  # statements are run again and again
def _terms(e: Add) -> tuple[list[tuple[Expr, Expr]], list[Expr]]:
    return differences_and_rest(e.args)
