"""Numbers along named axes: values of the names in a class body that runs with numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from sympy import Basic, Integer
from sympy.logic.boolalg import Boolean
from torch import Tensor

from derive.language.symbols import Axis, MinusInfinity


class Unreadable(Exception):
    """A step of a class body that cannot be run with numbers here."""


@dataclass(eq=False)
class NumberEntries:
    """A tensor with a dimension for each of ``axes``; ``ignored`` is the label that is ignored."""

    value: Tensor
    axes: tuple[Axis, ...]
    sizes: Mapping[Axis, int]
    ignored: int | None = None

    def along(self, axes: Sequence[Axis]) -> Tensor:
        """The tensor with its dimensions along ``axes``, of size 1 where it has none."""
        order = [self.axes.index(axis) for axis in axes if axis in self.axes]
        value = self.value.permute(order)
        return value[tuple(slice(None) if axis in self.axes else None for axis in axes)]

    def wide(self, axes: Sequence[Axis]) -> Tensor:
        """The same, expanded to the size of each of ``axes``."""
        value = self.along(axes)
        lengths = zip(axes, value.shape, strict=True)
        return value.expand([n if axis in self.axes else self.size(axis) for axis, n in lengths])

    def size(self, axis: Axis) -> int:
        return self.value.shape[self.axes.index(axis)] if axis in self.axes else self.sizes[axis]

    def on(self, value: Tensor, axes: Iterable[Axis] | None = None) -> NumberEntries:
        return NumberEntries(value, self.axes if axes is None else tuple(axes), self.sizes)

    def of(self, value: object) -> NumberEntries:
        return entries_of(value, self.sizes)

    def __bool__(self):
        raise Unreadable("Python decides by a tensor")

    def __neg__(self):
        return self.on(-self.value)

    def __pos__(self):
        return self

    def __abs__(self):
        return self.on(self.value.abs())

    def __invert__(self):
        return self.on(~self.value)

    __hash__ = object.__hash__


def entries_of(value: object, sizes: Mapping[Axis, int]) -> NumberEntries:
    """A number, a size or a comparison of sizes, as a tensor without axes."""
    if isinstance(value, NumberEntries):
        return value
    if isinstance(value, bool | Boolean) and not isinstance(value, Axis):
        known = value if isinstance(value, bool) else _in_numbers(value, sizes)
        return NumberEntries(torch.tensor(bool(known)), (), sizes)
    return NumberEntries(torch.tensor(number_of(value, sizes), dtype=torch.float64), (), sizes)


def number_of(value: object, sizes: Mapping[Axis, int]) -> float:
    """The value of a Python number or an expression in sizes."""
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, MinusInfinity):
        return -torch.inf
    if not isinstance(value, Basic):
        raise Unreadable(f"{type(value).__name__} is not a number")
    return float(_in_numbers(value, sizes))


def whole_of(value: object, sizes: Mapping[Axis, int]) -> int:
    found = number_of(value, sizes)
    if found != int(found):
        raise Unreadable(f"{value} is not an integer")
    return int(found)


def _in_numbers(value: Basic, sizes: Mapping[Axis, int]) -> Basic:
    return value.xreplace({axis: Integer(sizes[axis]) for axis in value.atoms(Axis)})


def together(function: Callable[..., Tensor], *values: object, sizes: Mapping) -> NumberEntries:
    """A function of entries, on values that are broadcast by the names of their axes."""
    parts = [entries_of(value, sizes) for value in values]
    axes = tuple(dict.fromkeys(axis for part in parts for axis in part.axes))
    aligned = torch.broadcast_tensors(*(part.along(axes) for part in parts))
    return NumberEntries(function(*aligned), axes, sizes)


def _operator(function: Callable, swapped: bool) -> Callable:
    def applied(self: NumberEntries, other: object) -> NumberEntries:
        if not isinstance(other, NumberEntries | int | float | Basic):
            return NotImplemented
        both = (other, self) if swapped else (self, other)
        return together(function, *both, sizes=self.sizes)

    return applied


for _name in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv"):
    _function = torch.remainder if _name == "mod" else getattr(operator, _name)
    setattr(NumberEntries, f"__{_name}__", _operator(_function, False))
    setattr(NumberEntries, f"__r{_name}__", _operator(_function, True))
for _name in ("lt", "le", "gt", "ge", "and_", "or_", "xor"):
    _word = f"__{_name.rstrip('_')}__"
    setattr(NumberEntries, _word, _operator(getattr(operator, _name), False))
    if _name in ("and_", "or_", "xor"):
        setattr(
            NumberEntries, f"__r{_name.rstrip('_')}__", _operator(getattr(operator, _name), True)
        )
