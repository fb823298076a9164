"""Bound axes: whatever they are called, lowering means what the loops mean.

Expressions at random, whose sums, maxima, one-hots and reshapings bind and bring a handful of axes
again and again, so that names collide in every way; each is lowered, printed and run, and compared
entry by entry with an evaluator that knows nothing but loops (``evaluate.py``).
"""

import random
from collections import Counter
from math import prod

import pytest
import torch
from evaluate import Numbers
from sympy import Add, Eq, Integer, Le, Piecewise

from codegen.lowering import Lowering
from codegen.program import AddAt, Compare, Gathered, Pick, operands, values_in
from codegen.targets.torch.printer import Printer
from derive.layout import Dim, plain
from derive.nodes import ArgMax, Flatten, Max, OneHot, Position, Sum, Unflatten, renamed
from derive.symbols import Axis, Tensor, axes_of, tensors_in

N, M, C, V, F = ORDER = tuple(map(Axis, "NMCVF"))
SIZES = {N: 3, M: 3, C: 2, V: 4, F: 6}  # M is N renamed, F is N x C or M x C
TWINS = ((N, M), (M, N))
LARGEST = 6  # axes along which an expression and what it binds may lie together


class Drawn:
    """Expressions drawn at random over few axes: `expression` gives one, free along any of them."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.labels: dict[str, Axis] = {}

    def some(self, axes, least=1, most=3):
        axes = list(axes)
        count = self.random.randint(least, max(least, min(most, len(axes))))
        return self.random.sample(axes, min(count, len(axes)))

    def tensor(self):
        axes = self.some(ORDER[:4])
        return Tensor(f"x{self.random.randrange(3)}_{''.join(map(str, axes))}", axes)

    def one_hot(self, axis: Axis):
        """A label that indexes ``axis`` and lies along others; a number; an arg max."""
        others = self.some([a for a in ORDER[:4] if a != axis], most=2)
        kind = self.random.random()
        if kind < 0.1:
            return OneHot.over(Integer(self.random.randrange(SIZES[axis])), [axis])
        if kind < 0.2:
            scores = Tensor(f"s_{axis}{''.join(map(str, others))}", [axis, *others])
            return OneHot.over(ArgMax.over(scores, [axis]), [axis])
        name = f"l{self.random.randrange(2)}_{axis}{''.join(map(str, others))}"
        self.labels[name] = axis
        return OneHot.over(Tensor(name, others, role="label"), [axis])

    def expression(self, depth: int):
        if depth == 0:
            return self.tensor()
        return getattr(self, self.random.choice(KINDS))(depth - 1)

    def product(self, depth):
        return self.expression(depth) * self.expression(self.random.randint(0, depth))

    def total(self, depth):
        return self.expression(depth) + self.expression(self.random.randint(0, depth))

    def sum(self, depth):
        e = self.expression(depth)
        return Sum.over(e, self.some(axes_of(e), most=2)) if axes_of(e) else e

    def picked(self, depth):
        """A sum over a one-hot, of what lies along its axis or not."""
        e = self.expression(depth)
        hot = self.one_hot(self.random.choice([*axes_of(e), V]))
        along = {hot.axis} if self.random.random() < 0.7 else set(axes_of(hot.operand))
        more = self.some(axes_of(e), least=0, most=1)
        along = (along or {hot.axis}).union(more) & axes_of(hot * e)
        return Sum.over(hot * e, along)

    def added(self, depth):
        """A one-hot among the terms."""
        return self.one_hot(self.random.choice(ORDER[:4])) * self.expression(depth)

    def max(self, depth):
        e = self.expression(depth)
        return Max.over(e, self.some(axes_of(e), most=1)) if axes_of(e) else e

    def renamed(self, depth):
        e = self.expression(depth)
        old, new = self.random.choice(TWINS)
        swapped = {old: new, new: old} if new in axes_of(e) else {old: new}
        return renamed(e, swapped)

    def flattened(self, depth):
        e = self.expression(depth)
        if F in axes_of(e):
            into = (self.random.choice([N, M]), C)
            return e if set(into) & axes_of(e) else Unflatten.over(e, [F], into)
        own = [axis for axis in (N, M) if axis in axes_of(e)]
        return Flatten.over(e, [own[0], C], [F]) if own and C in axes_of(e) else e

    def chosen(self, depth):
        e = self.expression(depth)
        axis, other = self.random.sample(ORDER[:4], 2)
        relation = self.random.choice([Le, Eq])
        return Piecewise((e, relation(Position.over(Integer(0), [axis]), Position.over(0, [other]))), (0, True))


KINDS = ("product", "total", "sum", "sum", "picked", "picked", "added", "max", "renamed", "flattened")


def nested_axes(e) -> int:
    """The most axes along which something in ``e`` varies."""
    return max([len(axes_of(e)), *map(nested_axes, e.args)])


def run(steps, names, like="like"):
    printer = Printer({axis.name: axis.name for axis in ORDER}, (), like)
    space = {"torch": torch, **{axis.name: n for axis, n in SIZES.items()}, **names}
    for step in steps:
        exec(printer.step(step), space)
    return space["result"]


def lowered(e, labels, seed):
    """(the steps of ``e``, what they compute, what the loops compute)"""
    numbers = Numbers(SIZES, seed=seed, indexed=labels)
    order = [axis for axis in ORDER if axis in axes_of(e)]
    tensors = {t.name: t for t in tensors_in(e)}
    names = {"like": torch.zeros((), dtype=torch.float64)}
    for t in tensors.values():
        kind = torch.long if t.role == "label" else torch.float64
        entries = [float(v) for v in numbers.entries(t.at_home, t.home)]
        shape = [SIZES[axis] for axis in t.home]
        names[t.name] = torch.tensor(entries).to(kind).reshape(shape)
        names[t.name] = torch.tensor(entries, dtype=torch.float64).to(kind).reshape(shape)
    lowering = Lowering({t.name: plain(t.home) for t in tensors.values()}, ORDER)
    steps = lowering.statement("result", e, plain(order), "like")
    expected = [float(v) for v in numbers.entries(e, order)]
    shape = [SIZES[axis] for axis in order]
    return steps, run(steps, names), torch.tensor(expected, dtype=torch.float64).reshape(shape)
