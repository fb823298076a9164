"""Runs a class body once more, with numbers instead of its tensors.

The meanings of names from outside are in ``meanings.py``.
"""

from __future__ import annotations

import builtins
import functools
import sys
from collections.abc import Mapping
from types import CellType, FunctionType

import torch
from sympy import Basic

from codegen.as_written.entries import NumberEntries, Unreadable, entries_of, number_of
from codegen.as_written.meanings import BUILTINS, Meanings
from codegen.as_written.words import Words
from derive import PUBLIC
from derive.language.declarations import Declaration, Scalar, Size
from derive.language.errors import NOTATION
from derive.language.extremes import SYMPYS
from derive.language.notation.call_arguments import bound, bound_axes
from derive.language.notation.definition import REDUCTION, Definition
from derive.language.notation.forward import Forward, reduced_forward
from derive.language.notation.ordered import Ordered
from derive.language.notation.outputs import Outputs
from derive.language.notation.reduced import Reduced, reduced
from derive.language.notation.splicing import derived_along
from derive.language.source.class_source import OutsideNames
from derive.language.symbols import Axis
from derive.language.symbols import Tensor as Symbolic

MOST_ROUNDS = 40  # of a recurrence, of which each makes one more place right

Given = Mapping[str, NumberEntries | float | None]


def outputs_of(
    forward: type[Forward], given: Given, sizes: Mapping[Axis, int]
) -> list[NumberEntries]:
    """The outputs of a class body at numbers for its arguments, by their names; None where one is
    left out. Raises `Unreadable` if it cannot be run so.
    """
    before: dict[str, NumberEntries] = {}
    for _ in range(MOST_ROUNDS):
        run = RunNamespace(forward, given, sizes, before)
        found = run.outputs()
        if not run.awaited or _are_the_same(run.stated, before, run.awaited):
            return found
        before = run.stated
    raise Unreadable("a recurrence goes on")


def _are_the_same(found: Mapping[str, NumberEntries], before: Mapping, names: set[str]) -> bool:
    def same(a: NumberEntries, b: NumberEntries | None) -> bool:
        known = b is not None and {*a.axes} == {*b.axes}
        return known and torch.allclose(a.value, b.along(a.axes), 0, 0, equal_nan=True)

    return all(same(found[name], before.get(name)) for name in names if name in found)


class RunNamespace(dict):
    """The namespace of a class body that runs with numbers; `before` has the values of its
    statements from the round before, for those that are read above their own line.
    """

    def __init__(self, forward, given: Given, sizes: Mapping[Axis, int], before: Mapping):
        super().__init__()
        self.definition: Definition = forward.definition
        self.names: OutsideNames | None = getattr(forward, "outside_names", None)
        if self.names is None:
            raise Unreadable("its source is not known")
        self.given, self.before, self.sizes = given, before, dict(sizes)
        self.words = Words(self.sizes)
        table = self.words.table()
        public = sys.modules[NOTATION]
        own = {getattr(public, name): word for name, word in table.items() if name in PUBLIC}
        own |= {sympys: own[word] for sympys, word in SYMPYS.items()}
        own |= {Outputs: _Outputs, Ordered: _Ordered, Reduced: _Reduced}
        self.translated = Meanings(own, self.called, self.sizes)
        self.stated: dict[str, NumberEntries] = {}
        self.awaited: set[str] = set()
        self.last: object = None

    def outputs(self) -> list[NumberEntries]:
        code = self.names.code
        names = {name: self.translated(value) for name, value in self.names.values.items()}
        cells = tuple(CellType(names.get(name)) for name in code.co_freevars)
        names |= {"__builtins__": BUILTINS, "__name__": "__body__"}
        body = FunctionType(code, names, code.co_name, None, cells or None)
        builtins.__build_class__(body, code.co_name, metaclass=_Namespace(self))
        last = self.last
        if isinstance(last, _Outputs):
            return [self.entries(value) for value in last.values]
        if isinstance(last, _Reduced):
            return [last.by(self.definition.reduction, self)]
        return [self.entries(last)]

    def entries(self, value: object) -> NumberEntries:
        return entries_of(value, self.sizes)

    def __getitem__(self, name):
        if name in self or name not in self.definition_names:
            return super().__getitem__(name)
        self.awaited.add(name)
        return self.before.get(name, 0.0)

    @functools.cached_property
    def definition_names(self) -> set[str]:
        """Names that a line may read before they are assigned."""
        states = {c.before.name for c in self.definition.carried}
        assigned = {*self.names.code.co_names} if states else set()
        return assigned - {*self.names.values} - {*dir(builtins)}

    def __setitem__(self, name, value):
        if name.startswith("__") or name == "_":
            return super().__setitem__(name, value)
        if isinstance(value, Declaration):
            return super().__setitem__(name, self.declared(name, value))
        if isinstance(value, _Ordered):
            value = value.value
        if isinstance(value, NumberEntries):
            value = self.stated[name] = self.in_order(name, value)
        elif not isinstance(value, _Outputs | _Reduced | tuple | int | float | Basic):
            value = self.translated(value)
        if isinstance(value, NumberEntries | _Outputs | _Reduced | Basic | float | int):
            self.last = value
        super().__setitem__(name, value)

    def in_order(self, name: str, value: NumberEntries) -> NumberEntries:
        """A value with its dimensions in the order of a call's."""
        statement = self.definition.by_name.get(name)
        home = statement.tensor.home if statement is not None else ()
        if {*home} != {*value.axes}:
            home = sorted(value.axes, key=lambda axis: axis.name)
        return NumberEntries(value.along(home), tuple(home), self.sizes, value.ignored)

    def declared(self, name: str, declaration: Declaration) -> object:
        if isinstance(declaration, Size):
            return declaration.axis
        value = self.given.get(name)
        if value is None and isinstance(declaration, Scalar):
            value = number_of(declaration.default, self.sizes)
        if value is None:
            if declaration.default is None:
                raise Unreadable(f"{name} is not given")
            value = self.words.Broadcast(float(declaration.default), *declaration.axes)
        value = self.entries(value)
        value.ignored = getattr(declaration, "ignored", None)
        return value

    def called(self, forward: type[Forward], *args: object, **kwargs: object) -> object:
        """The result of another forward on these numbers, along the axes that replace its own."""
        word = kwargs.pop(REDUCTION, None) if forward.definition.reductions else None
        definition = reduced(forward.definition, word)
        symbols: dict[str, NumberEntries] = {}

        def symbol(value: object) -> object:
            if not isinstance(value, NumberEntries):
                return value
            name = f"value_{len(symbols)}"
            symbols[name] = value
            role = "statement" if value.value.is_floating_point() else "label"
            return Symbolic(name, value.axes, role=role)

        args, kwargs = map(symbol, args), {n: symbol(v) for n, v in kwargs.items()}
        passed = bound(definition, tuple(args), kwargs)
        own = {axis: passed.pop(name) for name, axis in definition.size_arguments}
        axes = bound_axes(definition, passed, own)
        axes = axes | derived_along(definition, axes)
        lengths = {a: self._length(axes[a]) for a in axes}
        sizes = definition.sizes_from(lengths)
        given: dict[str, NumberEntries | float | None] = {}
        for t in (*definition.arguments, *(t for t, _ in definition.scalars)):
            value = symbols.get(getattr(passed[t.name], "name", ""))
            if value is None:
                left_out = t.role != "scalar" and t.name not in kwargs
                given[t.name] = None if left_out else number_of(passed[t.name], self.sizes)
                continue
            along = [one for axis in t.home for one in axes[axis]]
            shape = [lengths[axis] for axis in t.home]
            given[t.name] = NumberEntries(value.wide(along).reshape(shape), t.home, sizes)
        results = outputs_of(reduced_forward(forward, word), given, sizes)
        found = [self._returned(e, axes) for e in results]
        return found[0] if len(found) == 1 else tuple(found)

    def _length(self, axes: tuple[Axis, ...]) -> int:
        length = 1
        for axis in axes:
            length *= self.words.size(axis)
        return length

    def _returned(self, e: NumberEntries, axes: Mapping[Axis, tuple[Axis, ...]]) -> NumberEntries:
        along = [one for axis in e.axes for one in axes.get(axis, (axis,))]
        if len({*along}) != len(along):
            raise Unreadable("two axes of a result have one name")
        for axis in e.axes:
            if axis not in axes:
                self.sizes.setdefault(axis, e.size(axis))
        shape = [self.words.size(axis) for axis in along]
        return NumberEntries(e.value.reshape(shape), tuple(along), self.sizes)


class _Namespace:
    """A metaclass that runs a class body in a namespace and makes no class."""

    def __init__(self, namespace: RunNamespace):
        self.namespace = namespace

    def __prepare__(self, name: str, bases: tuple) -> RunNamespace:
        return self.namespace

    def __call__(self, name: str, bases: tuple, body: RunNamespace) -> None:
        return None


class _Outputs:
    def __init__(self, *values: object):
        self.values = values


class _Ordered:
    def __init__(self, value: object, *axes: Axis):
        self.value = value


class _Reduced:
    def __init__(self, losses: NumberEntries, **divisors: object):
        self.losses, self.divisors = losses, divisors

    def by(self, word: str, run: RunNamespace) -> NumberEntries:
        if word == "none":
            return self.losses
        total = run.words.Sum(self.losses, *self.losses.axes)
        return total / self.divisors[word] if word in self.divisors else total
