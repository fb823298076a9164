"""Evaluate expressions in named axes at a point: sizes, and a number for each entry of the data.

In: a `Chain`, a `Point` and an arithmetic (``arithmetic.py``). Out: entries. Statements and
adjoints are computed from their definitions, and each expression once, along its own axes only. An
entry without a real value is `UNDEFINED`, and so is everything computed from it, except a
`Piecewise` that does not choose it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from sympy import Add, Expr, Integer, Mul, Piecewise, Pow, exp
from sympy import Max as PointwiseMax
from sympy import Min as PointwiseMin
from sympy.core.relational import Relational
from sympy.logic.boolalg import And, BooleanFalse, BooleanTrue, Not, Or

from derive.claims.checking.numbers.arithmetic import Arithmetic, Undefined, Unevaluable
from derive.claims.checking.numbers.array_nodes import entries_of
from derive.claims.checking.numbers.tables import BELOW, UNDEFINED, Index, Table, projection
from derive.gradient.chain.chain import Chain
from derive.language.array_node import ArrayNode
from derive.language.choices import Branches, Compared
from derive.language.functions import KINKED
from derive.language.nodes import Broadcast
from derive.language.notation.made_axes import twins_in
from derive.language.symbols import Axis, MinusInfinity, Tensor, is_number_or_size, tensors_in

MOST_OPERATIONS = 10**7  # default bound for one evaluation


@dataclass(frozen=True)
class Point:
    """Sizes and data: what a forward and its upstream gradients are evaluated at.

    ``sizes`` are those of the independent axes. ``values`` has the entries of the inputs, labels
    (integers from 0), scalars and the upstream gradients, in this order, as exact SymPy numbers.
    """

    sizes: tuple[tuple[str, int], ...]
    values: Mapping[str, Mapping[Index, Expr]]


class Evaluation:
    """A forward and its chain at a point, in one arithmetic.

    ``operations`` counts computed entries; ``at_kink`` tells whether a choice was made between
    equal values, where a derivative is a convention. ``ties`` counts equalities in conditions, some
    of which hold for all data: ``Eq(x, Max(x, C))``.
    """

    def __init__(
        self, chain: Chain, point: Point, arithmetic: Arithmetic, limit: int = MOST_OPERATIONS
    ):
        self.chain, self.point, self.arithmetic = chain, point, arithmetic
        definition = chain.definition
        chosen = dict(point.sizes)
        self.sizes = definition.sizes_from({a: chosen[a.name] for a in definition.independent_axes})
        self.operations, self.limit, self.at_kink, self.ties = 0, limit, False, 0
        self._tables: dict[Expr, Table] = {}
        self._named: dict[tuple[str, bool], Table] = {}
        tensors = [*(s.tensor for s in definition.statements), *(a.tensor for a in chain.adjoints)]
        self._order = {_key(t): place for place, t in enumerate(tensors)}

    def entries(self, e: Expr, axes: Sequence[Axis]) -> dict[Index, Any]:
        """The entries of ``e`` along ``axes``. Raises `Undefined` if one has no value."""
        found = self.entries_or_undefined(e, axes)
        if any(value is UNDEFINED for value in found.values()):
            raise Undefined(f"{e} is not a real number here")
        return found

    def entries_or_undefined(self, e: Expr, axes: Sequence[Axis]) -> dict[Index, Any]:
        """The same, with `UNDEFINED` for entries without a value."""
        for twin, original in twins_in([e]).items():
            self.sizes.setdefault(twin, self.size(original))
        table = self.table(e)
        if set(table.axes) - set(axes):
            raise Unevaluable(f"{e} has axes that {axes} has not")
        project = projection(tuple(axes), table.axes)
        return {i: table.entries[project(i)] for i in self.indices(axes)}

    def give(self, t: Tensor, number: Expr) -> None:
        """Set the value of a scalar tensor that the point does not include."""
        self._named[_key(t)] = self._constant(self.arithmetic.number(number))

    @property
    def largest(self):
        """The largest absolute value among all computed tensors; 1 if they are zero."""
        entries = (v for table in self._named.values() for v in table.entries.values())
        sizes = (
            abs(getattr(v, "real", v)) for v in entries if v is not UNDEFINED and v is not BELOW
        )
        return max(sizes, default=1) or 1

    def table(self, e: Expr) -> Table:
        """The entries of ``e`` along the axes it varies along."""
        if e not in self._tables:
            self._tables[e] = self._computed(e)
        return self._tables[e]

    def _computed(self, e: Expr) -> Table:
        if isinstance(e, Tensor):
            return Table(e.axes, self._tensor(e).entries)
        if isinstance(e, Axis):
            return self._constant(self.arithmetic.number(Integer(self.size(e))))
        if isinstance(e, MinusInfinity):
            return self._constant(BELOW)
        if isinstance(e, (BooleanTrue, BooleanFalse)):
            return self._constant(bool(e))
        if isinstance(e, Broadcast):
            return self.table(e.operand)
        if isinstance(e, ArrayNode):
            return entries_of(self, e)
        if e.args:
            return self._pointwise(e)
        if not e.is_number:
            raise Unevaluable(f"{e} has no value")
        return self._constant(self.or_undefined(self.arithmetic.number, e))

    def _constant(self, value) -> Table:
        return Table((), {(): value})

    def size(self, axis: Axis) -> int:
        if axis not in self.sizes:
            raise Unevaluable(f"the size of {axis} is unknown")
        return self.sizes[axis]

    def indices(self, axes) -> Iterator[Index]:
        return product(*(range(self.size(axis)) for axis in axes))

    def _tensor(self, t: Tensor) -> Table:
        """The table of a tensor; its dependencies are computed first, in order, so that a long
        network does not recurse deeply.
        """
        if _key(t) not in self._named:
            for needed in self._needed(t):
                self._named[_key(needed)] = self._given(needed) or self._defined(needed)
        return self._named[_key(t)]

    def _needed(self, t: Tensor) -> list[Tensor]:
        """The tensors to compute for ``t``: statements from the first on, adjoints from
        the last.
        """
        found, unread = {}, [t.at_home]
        while unread:
            t = unread.pop()
            if _key(t) in found or _key(t) in self._named:
                continue
            found[_key(t)] = t
            definitions = self._definitions(t)
            if t.name in definitions and t.name not in self.point.values:
                unread += [s.at_home for s in tensors_in(definitions[t.name].expression)]
        return sorted(found.values(), key=lambda t: self._order.get(_key(t), -1))

    def _definitions(self, t: Tensor) -> Mapping[str, Any]:
        return self.chain.by_name if t.role == "adjoint" else self.chain.definition.by_name

    def _given(self, t: Tensor) -> Table | None:
        given = self.point.values.get(t.name)
        if given is None:
            return None
        return Table(t.home, {i: self.table(given[i]).entries[()] for i in self.indices(t.home)})

    def _defined(self, t: Tensor) -> Table:
        definitions = self._definitions(t)
        if t.name not in definitions:
            raise Unevaluable(f"{t} has no value")
        return Table(t.home, self.entries_or_undefined(definitions[t.name].expression, t.home))

    def or_undefined(self, compute: Callable, *values):
        """The result of ``compute``, counted and bounded; undefined if one of the values is."""
        self.operations += 1
        if self.operations > self.limit:
            raise Unevaluable("too many operations")
        if any(value is UNDEFINED for value in values):
            return UNDEFINED
        try:
            return compute(*values)
        except Undefined:
            return UNDEFINED

    def _pointwise(self, e: Expr) -> Table:
        if isinstance(e, (Branches, Compared)):
            return self.table(e.choice)
        if isinstance(e, Piecewise):
            return self._choice(e)
        return self._entrywise(self._operation(e), e.args)

    def _entrywise(self, compute: Callable, args, strict: bool = True) -> Table:
        """``compute`` of the entries of ``args``, broadcast by name."""
        tables = [self.table(arg) for arg in args]
        axes = tuple(dict.fromkeys(axis for table in tables for axis in table.axes))
        read = [(table.entries, projection(axes, table.axes)) for table in tables]
        entries = {}
        for i in self.indices(axes):
            values = [entries_of[project(i)] for entries_of, project in read]
            entries[i] = self.or_undefined(compute, *values) if strict else compute(*values)
        return Table(axes, entries)

    def _operation(self, e: Expr) -> Callable:
        operation = self._operation_on_numbers(e)

        def compute(*values):
            if any(value is BELOW for value in values):
                return self._in_the_limit(e, values)
            return operation(*values)

        if is_number_or_size(e):  # comparing sizes is not a kink
            return lambda *values: self._beside_kinks(compute, values)
        return compute

    def _beside_kinks(self, operation: Callable, values):
        at_kink, ties = self.at_kink, self.ties
        value = operation(*values)
        self.at_kink, self.ties = at_kink, ties
        return value

    def _in_the_limit(self, e: Expr, values):
        """An operation with an operand of -oo."""
        if isinstance(e, Relational):
            return self._holds(e.rel_op, *values)
        if isinstance(e, exp):
            return self.arithmetic.number(Integer(0))
        if isinstance(e, Add):
            return BELOW
        if isinstance(e, Mul):
            zero = self.arithmetic.number(Integer(0))
            numbers = [value for value in values if value is not BELOW]
            if len(numbers) + 1 == len(values) and all(self.side(n, zero) > 0 for n in numbers):
                return BELOW
        raise Undefined(f"{e} at -oo")

    def side(self, a, b) -> int:
        """The sign of ``a - b``: -1, 0 or 1; -oo is below every number."""
        if a is BELOW or b is BELOW:
            return (a is not BELOW) - (b is not BELOW)
        return self.arithmetic.compare(a, b)

    def _operation_on_numbers(self, e: Expr) -> Callable:
        if isinstance(e, Add):
            return lambda *values: self.arithmetic.add(values)
        if isinstance(e, Mul):
            return lambda *values: self.arithmetic.multiply(values)
        if isinstance(e, Pow):
            return self.arithmetic.power
        if isinstance(e, Relational):
            return lambda a, b: self._holds(e.rel_op, a, b)
        for kind, decided in LOGIC.items():
            if isinstance(e, kind):
                return decided
        return lambda *values: self._applied(e.func, values)

    def _applied(self, function: type, values):
        if function in KINKED:
            zero = self.arithmetic.number(Integer(0))
            self.at_kink |= self.arithmetic.compare(values[0], zero) == 0
        if function in (PointwiseMax, PointwiseMin) and len(values) > 1:
            best = self.arithmetic.chosen(function, values)
            self.at_kink |= [self.arithmetic.compare(v, best) for v in values].count(0) > 1
        return self.arithmetic.apply(function, values)

    def _holds(self, relation: str, a, b) -> bool:
        side = self.side(a, b)
        self.ties += side == 0 and a is not BELOW
        return side in RELATIONS[relation]

    def _choice(self, e: Piecewise) -> Table:
        """The first value whose condition holds; the others may be undefined."""

        def compute(*values):
            for value, condition in zip(values[::2], values[1::2], strict=True):
                if condition is UNDEFINED or condition:
                    return UNDEFINED if condition is UNDEFINED else value
            return UNDEFINED

        return self._entrywise(compute, [part for pair in e.args for part in pair], strict=False)


RELATIONS = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (0, 1), "==": (0,), "!=": (-1, 1)}
LOGIC: dict[type, Callable] = {
    And: lambda *values: all(values),
    Or: lambda *values: any(values),
    Not: lambda value: not value,
}


def _key(t: Tensor) -> tuple[str, bool]:
    return t.name, t.role == "adjoint"
