"""Tensors of torch with named axes, and what the notation says in them.

A second meaning of the notation, for the tests alone: nothing of `derive` or `codegen` is used, and
SymPy is not. Every name that a file of forwards imports is here a function on `Named` values, so a
line of a class body is computed by Python itself; autograd differentiates it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import torch

DOUBLE = torch.float64
ROUNDING = 1e-11

# The sizes of the axes while a forward is evaluated: an axis stands for its own size.
sizes: dict[str, int] = {}
# For every axis that was made of others, the one after which it stands among the dimensions.
made_after: dict[str, str] = {}
# Whether the largest of some entries is the largest by a rounding alone, for each maximum taken.
decided_by_rounding: list[bool] = []
# Whether an absolute value was taken of nothing negative that is 0 in places: there its gradient is
# that from above, as of the value itself, or 0, as torch has it.
at_an_end: list[bool] = []


class Named:
    """A tensor and the name of each of its dimensions."""

    def __init__(self, data: torch.Tensor, axes: Iterable[str] = ()):
        self.data, self.axes = data, tuple(axes)
        assert self.data.dim() == len(self.axes), (self.data.shape, self.axes)

    def along(self, axes: Iterable[str]) -> torch.Tensor:
        """The data with exactly the dimensions ``axes``; repeated along those it lacks."""
        axes = tuple(axes)
        own = [axis for axis in axes if axis in self.axes]
        assert len(own) == len(self.axes), (self.axes, axes)
        data = self.data.permute([self.axes.index(axis) for axis in own])
        shape = [data.shape[own.index(a)] if a in own else 1 for a in axes]
        return data.reshape(shape).expand([sizes[axis] for axis in axes])

    def __add__(self, other):
        return pointwise(torch.add, self, other)

    def __sub__(self, other):
        return pointwise(torch.sub, self, other)

    def __mul__(self, other):
        return pointwise(torch.mul, self, other)

    def __truediv__(self, other):
        return pointwise(torch.div, self, other)

    def __pow__(self, other):
        if isinstance(other, (int, float, Fraction)):
            return pointwise(lambda base: base ** float(other), self)
        return pointwise(torch.pow, self, other)

    def __radd__(self, other):
        return pointwise(torch.add, other, self)

    def __rsub__(self, other):
        return pointwise(torch.sub, other, self)

    def __rmul__(self, other):
        return pointwise(torch.mul, other, self)

    def __rtruediv__(self, other):
        return pointwise(torch.div, other, self)

    def __rpow__(self, other):
        return pointwise(torch.pow, other, self)

    def __neg__(self):
        return pointwise(torch.neg, self)

    def __lt__(self, other):
        return pointwise(torch.lt, self, other)

    def __le__(self, other):
        return pointwise(torch.le, self, other)

    def __gt__(self, other):
        return pointwise(torch.gt, self, other)

    def __ge__(self, other):
        return pointwise(torch.ge, self, other)

    def __and__(self, other):
        return pointwise(torch.logical_and, self, other)

    def __or__(self, other):
        return pointwise(torch.logical_or, self, other)

    def __invert__(self):
        return pointwise(torch.logical_not, self)


class Axis(Named):
    """An axis, which is also its size as a number."""

    several = False

    def __init__(self, name: str, length: int | None = None):
        self.name, self.length, self.axes = name, length, ()

    @property
    def data(self) -> torch.Tensor:
        return torch.tensor(float(size_of(self)), dtype=DOUBLE)


class Axes(Axis):
    """Any number of dimensions, which are one here."""

    several = True


def size_of(axis: Axis) -> int:
    if axis.length is not None:
        sizes[axis.name] = axis.length
    return sizes[axis.name]


def value_of(value) -> Named:
    """A number as a tensor without dimensions."""
    if isinstance(value, Named):
        return value
    if isinstance(value, bool):
        return Named(torch.tensor(value))
    return Named(torch.tensor(float(value), dtype=DOUBLE))


def union(values: Iterable[Named]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(axis for value in values for axis in value.axes))


def pointwise(function, *arguments) -> Named:
    """``function`` of each entry, broadcast by the names of the axes."""
    values = [value_of(argument) for argument in arguments]
    axes = union(values)
    return Named(function(*(value.along(axes) for value in values)), axes)


def of_one(function):
    return lambda argument: pointwise(function, argument)


def of_several(function):
    def folded(first, *others):
        for other in others:
            first = pointwise(function, first, other)
        return first

    return folded


def larger(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    _told_apart(a, b)
    return torch.where(a >= b, a, b)


def _told_apart(a: torch.Tensor, b: torch.Tensor) -> None:
    """Of two equals SymPy's order decides which one the gradient goes to."""
    decided_by_rounding.append(bool(((a - b).abs() <= ROUNDING * (1 + a.abs())).any()))


def smaller(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    _told_apart(a, b)
    return torch.where(a <= b, a, b)


def absolute(a: torch.Tensor) -> torch.Tensor:
    at_an_end.append(bool((a >= 0).all() and (a == 0).any()))
    decided_by_rounding.append(bool(((a.abs() <= ROUNDING) & (a != 0)).any()))  # its sign is
    return a.abs()


def Rational(numerator, denominator=1) -> float:
    return float(Fraction(numerator) / Fraction(denominator))


def Piecewise(*branches) -> Named:
    """The value beside the first condition that holds."""
    result = value_of(branches[-1][0])
    for chosen, condition in reversed(branches[:-1]):
        result = pointwise(torch.where, condition, chosen, result)
    return result


def Sum(operand, *axes: Axis) -> Named:
    names = [axis.name for axis in axes]
    rest = [name for name in operand.axes if name not in names]
    return Named(
        operand.along([*rest, *names]).sum(list(range(len(rest), len(rest + names)))), rest
    )


def Max(operand, axis: Axis) -> Named:
    """Of equals the first counts."""
    rest = [name for name in operand.axes if name != axis.name]
    data = operand.along([*rest, axis.name])
    top = data.amax(-1, keepdim=True)
    close = (top - data <= ROUNDING * (1 + top.abs())) & (data != top)
    decided_by_rounding.append(bool(close.any()))
    first = (data == top).long().argmax(-1, keepdim=True)
    return Named(data.gather(-1, first).squeeze(-1), rest)


def Reduced(losses, **divisors) -> Named:
    """As the first of the words says; their sum where there is none."""
    total = Named(losses.along([*losses.axes]).sum(), [])
    return total / next(iter(divisors.values())) if divisors else total


def OneHot(label, axis: Axis) -> Named:
    entries = torch.arange(size_of(axis))
    if not isinstance(label, Named):
        return Named((entries == label).to(DOUBLE), [axis.name])
    hits = label.data.unsqueeze(-1) == entries  # an ignored label is -1 here and hits nothing
    return Named(hits.to(DOUBLE), [*label.axes, axis.name])


def Kept(label: Named) -> Named:
    return Named((label.data >= 0).to(DOUBLE), label.axes)


def Position(axis: Axis) -> Named:
    return Named(torch.arange(size_of(axis), dtype=DOUBLE), [axis.name])


def Broadcast(operand: Named, *axes: Axis) -> Named:
    wider = (*operand.axes, *(axis.name for axis in axes if axis.name not in operand.axes))
    return Named(operand.along(wider), wider)


def Rename(operand: Named, old: Axis, new: Axis) -> Named:
    sizes[new.name] = sizes[old.name]
    made_after.setdefault(new.name, old.name)
    return Named(operand.data, [new.name if name == old.name else name for name in operand.axes])


def Flatten(operand: Named, *axes: Axis, into: Axis) -> Named:
    names = [axis.name for axis in axes]
    sizes[into.name] = math.prod(sizes[name] for name in names)
    made_after.setdefault(into.name, names[-1])
    rest = [name for name in operand.axes if name not in names]
    return Named(operand.along([*rest, *names]).flatten(len(rest)), [*rest, into.name])


def Unflatten(operand: Named, axis: Axis, into: tuple[Axis, ...]) -> Named:
    names = [part.name for part in into]
    for part in into:
        if part.length is not None:
            size_of(part)
    known = math.prod(sizes[name] for name in names if name in sizes)
    for i, name in enumerate(names):
        if name not in sizes:
            sizes[name] = sizes[axis.name] // known
        made_after.setdefault(name, names[i - 1] if i else axis.name)
    rest = [name for name in operand.axes if name != axis.name]
    data = operand.along([*rest, axis.name])
    data = data.reshape([*data.shape[:-1], *(sizes[name] for name in names)])
    return Named(data, [*rest, *names])


def _along(function, operand: Named, axis: Axis) -> Named:
    """A function of the entries along the last dimension, which is that of ``axis``."""
    rest = [name for name in operand.axes if name != axis.name]
    return Named(function(operand.along([*rest, axis.name])), [*rest, axis.name])


def Shift(operand: Named, axis: Axis, by: int = 1) -> Named:
    def shifted(data: torch.Tensor) -> torch.Tensor:
        none = torch.zeros_like(data[..., : abs(by)])
        whole = [none, data] if by > 0 else [data, none]
        both = torch.cat(whole, -1)
        return (
            both[..., : data.shape[-1]] if by > 0 else both[..., both.shape[-1] - data.shape[-1] :]
        )

    return _along(shifted, operand, axis)


def Flip(operand: Named, axis: Axis) -> Named:
    return _along(lambda data: data.flip(-1), operand, axis)


def CumSum(operand: Named, axis: Axis) -> Named:
    return _along(lambda data: data.cumsum(-1), operand, axis)


def Gather(operand: Named, label: Named, axis: Axis) -> Named:
    return Sum(pointwise(torch.mul, OneHot(label, axis), operand), axis)


SYMPY = {
    "Max": of_several(larger),
    "Min": of_several(smaller),
    "Rational": Rational,
    "Integer": int,
    "oo": math.inf,
    "pi": math.pi,
    "Piecewise": Piecewise,
    "And": of_several(torch.logical_and),
    "Or": of_several(torch.logical_or),
    "Not": of_one(torch.logical_not),
    "Eq": of_several(torch.eq),
    "Ne": of_several(torch.ne),
    "Abs": of_one(absolute),
    "sigmoid": of_one(torch.sigmoid),
    **{
        name: of_one(getattr(torch, name))
        for name in ("exp", "log", "tanh", "sqrt", "sin", "cos", "atan", "erf", "sinh", "cosh")
    },
}
NODES = (
    Axis,
    Axes,
    Sum,
    Max,
    Reduced,
    OneHot,
    Kept,
    Position,
    Broadcast,
    Rename,
    Flatten,
    Unflatten,
    Shift,
    Flip,
    CumSum,
    Gather,
)
DERIVE = {node.__name__: node for node in NODES}
