"""Bound axes: whatever they are called, lowering means what the loops mean.

Expressions at random, whose sums, maxima, one-hots and reshapings bind and bring a handful of axes
again and again, so that names collide in every way; each is lowered, printed and run, and compared
entry by entry with an evaluator that knows nothing but loops (``evaluate.py``).
"""

import random

import pytest
import torch
from evaluate import Numbers
from sympy import Eq, Integer, Le, Piecewise, Pow

from codegen.lowering import Lowering
from codegen.program.arrays import ArgMaxOf, Contract, Gathered, Merge, OneHotOf, Own, Pick, Split
from codegen.program.parts import values_in
from codegen.program.steps import AddAt, Assign
from codegen.program.values import Compare
from codegen.targets.torch import _helpers
from codegen.targets.torch.printer import Printer
from derive.language.nodes import ArgMax, Flatten, Max, OneHot, Position, Sum, Unflatten, renamed
from derive.language.notation.layout import plain
from derive.language.symbols import Axis, Tensor, axes_of, tensors_in

N, M, C, V, F = ORDER = tuple(map(Axis, "NMCVF"))
SIZES = {N: 3, M: 3, C: 2, V: 4, F: 6}  # M is N renamed, F is N x C or M x C
TWINS = ((N, M), (M, N))
MOST_AXES = 4  # along which anything in an expression varies: the loops take their time


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
        test = relation(*(Position.over(Integer(0), [a]) for a in (axis, other)))
        return Piecewise((e, test), (0, True))


KINDS = (
    *("product", "total", "sum", "sum", "picked", "picked"),
    *("added", "max", "renamed", "flattened", "chosen"),
)


def nested_axes(e) -> int:
    """The most axes along which something in ``e`` varies."""
    return max([len(axes_of(e)), *map(nested_axes, e.args)])


def drawn(seed: int):
    """(an expression, the axis that each label in it indexes), where the loops are short enough."""
    draw = Drawn(seed)
    e = draw.expression(draw.random.randint(2, 4))
    return (e, draw.labels) if tensors_in(e) and nested_axes(e) <= MOST_AXES else None


def steps_of(e) -> list:
    layouts = {t.name: plain(t.home) for t in tensors_in(e)}
    free = plain(axis for axis in ORDER if axis in axes_of(e))
    return Lowering(layouts, ORDER).statement("result", e, free, "like")


def computed(steps, tensors) -> torch.Tensor:
    """What the printed lines compute."""
    printer = Printer({axis.name: axis.name for axis in ORDER}, (), "like")
    names = {"torch": torch, "like": torch.zeros((), dtype=torch.float64)}
    names |= {axis.name: size for axis, size in SIZES.items()} | tensors
    lines = [printer.step(step) for step in steps]
    names["_runtime"] = _helpers
    for text in lines:
        exec(text, names)
    return names["result"]


def compared(e, labels, seed):
    """(what the lowered ``e`` computes, what the loops compute), on the same numbers"""
    numbers = Numbers(SIZES, seed=seed, indexed=labels)

    def entries(of, axes, kind=torch.float64):
        found = torch.tensor([float(v) for v in numbers.entries(of, axes)], dtype=torch.float64)
        return found.reshape([SIZES[axis] for axis in axes]).to(kind)

    tensors = {
        t.name: entries(t.at_home, t.home, torch.long if t.role == "label" else torch.float64)
        for t in tensors_in(e)
    }
    free = [axis for axis in ORDER if axis in axes_of(e)]
    return computed(steps_of(e), tensors), entries(e, free)


@pytest.mark.parametrize("first", range(0, 600, 100))
def test_what_is_lowered_is_what_the_loops_mean(first):
    for seed in range(first, first + 100):
        if (case := drawn(seed)) is not None:
            ours, loops = compared(*case, seed)
            assert ours.shape == loops.shape, (seed, case[0])
            torch.testing.assert_close(ours, loops, rtol=1e-9, atol=1e-9, msg=f"{seed}: {case[0]}")


def test_the_expressions_meet_every_way_of_lowering_a_label():
    """Else the test above would be about nothing."""
    kinds = {
        type(part)
        for seed in range(200)
        if (case := drawn(seed)) is not None
        for step in steps_of(case[0])
        for part in (step, *values_in(step))
    }
    assert {AddAt, Pick, Gathered, Compare, OneHotOf, ArgMaxOf, Merge, Split} <= kinds


LABEL = Tensor("lab", [N], role="label")
X = Tensor("x", [N, C])


@pytest.mark.parametrize(
    ("e", "line"),
    [
        (Sum.over(OneHot.over(LABEL, [C]) * Sum.over(X, [N]), [C]), "x.sum(0)[lab]"),
        (Sum.over(OneHot.over(LABEL, [C]) * Max.over(X, [N]), [C]), "x.amax(0)[lab]"),
    ],
)
def test_what_is_bound_is_computed_once_and_then_read_at_the_label(e, line):
    (step,) = steps_of(e)
    assert Printer({"N": "N", "C": "C"}, (), "x").step(step) == f"result = {line}"


Y = Tensor("y", [N, C])
T = Tensor("t", [N])
HOT = OneHot.over(LABEL, [C])


@pytest.mark.parametrize(
    ("e", "line"),
    [
        (-Sum.over(X - Y, [C]), "(y - x).sum(1)"),
        (-T * Sum.over(X * (X - Y), [C]), "t * (x * (y - x)).sum(1)"),
        (-Sum.over(X, [C]), "-x.sum(1)"),
        (-Sum.over(X + Y, [C]), "-(x + y).sum(1)"),
    ],
)
def test_a_sign_goes_into_a_difference_that_is_summed(e, line):
    (step,) = steps_of(e)
    assert Printer({"N": "N", "C": "C"}, (), "x").step(step) == f"result = {line}"


@pytest.mark.parametrize("e", [T * (X + HOT), (X + 2) * (Y + HOT), T * (Y + T * (X + HOT))])
def test_a_one_hot_in_a_bracket_is_added_at_its_entry(e):
    steps = steps_of(e)
    assert [type(step) for step in steps] == [Assign, AddAt]
    assert not any(isinstance(v, OneHotOf) for step in steps for v in values_in(step))


def test_a_factor_joins_one_that_has_its_axes_before_they_are_multiplied_as_matrices():
    a, b, g = Tensor("a", [N, V]), Tensor("b", [V, C]), Tensor("g", [V])
    (step,) = steps_of(Sum.over(a * b * g, [V]))
    assert sum(isinstance(v, Contract) for v in values_in(step)) == 1


def test_a_label_at_its_own_entry_is_no_comparison():
    nested = Sum.over(HOT * Sum.over(HOT * Tensor("e", [N]), [N]), [C])
    assert not any(isinstance(v, Compare) for step in steps_of(nested) for v in values_in(step))
    twice = Sum.over(HOT * Pow(HOT, 2, evaluate=False) * X, [C])
    assert not any(isinstance(v, Compare) for step in steps_of(twice) for v in values_in(step))


def test_what_is_the_users_is_copied_before_it_is_added_to_and_nothing_else_is():
    added = HOT * T
    for rest, copied in [(X, True), (2 * X, False), (renamed(X, {N: C, C: N}), True)]:
        values = [v for step in steps_of(rest + added) for v in values_in(step)]
        assert any(isinstance(v, Own) for v in values) == copied


def test_renaming_is_done_at_once_and_no_bound_axis_captures():
    # K becomes N while N becomes M, which is bound: M takes the name that nobody has any more
    K = Axis("K")
    a, b, c = (Tensor(name, [axis]) for name, axis in zip("abc", (M, N, K), strict=True))
    e = renamed(Sum.over(a * b * c, [M]), {N: M, K: N})
    assert e == Sum.over(a.along([K]) * b.along([M]) * c.along([N]), [K])
    swapped = renamed(Sum.over(a * b * c, [M]), {N: K, K: N})
    assert swapped == Sum.over(a * b.along([K]) * c.along([N]), [M])
    assert renamed(renamed(e, {M: N, N: M}), {M: N, N: M}) == e
