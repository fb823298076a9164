"""The written-out forward: one entry stands for all that it can be renumbered to, and derivatives
are SymPy's.
"""

from itertools import permutations

import pytest
from forwards import OWN, write
from sympy import Abs, Add, Piecewise, Symbol, exp, log, sqrt, tanh

from derive import Axis, Flatten, Forward, Input, Max, Rename, Sum, forward_from
from derive.proof.proving.small_batch import (
    LargestOf,
    SmallBatch,
    TotalDerivative,
    indicators,
    selectors,
)
from derive.proof.zero.exact import is_zero

N, T, E, C = Axis("N"), Axis("T"), Axis("E"), Axis("C")
SIZES = {"N": 3, "T": 2, "E": 3, "C": 2, "D": 2, "H": 2, "K": 3, "M": 3}


class Pairs(Forward):
    x = Input(N, C)
    w = Input(N)
    y = Sum((x - Rename(x, N, T)) ** 2, C) * w


class Vectors(Forward):
    K = Axis("K")
    x = Input(N, T, E)
    w = Input(K, C)
    y = Sum(Flatten(tanh(x), T, E, into=K) * w, K)


class Products(Forward):
    K = Axis("K")
    x = Input(T, E)
    w = Input(K)
    y = Rename(x, T, N) * Flatten(x, T, E, into=K) * w


class BothOrders(Forward):
    K = Axis("K")
    x = Input(T, E)
    z = Input(T, E)
    y = Flatten(x, T, E, into=K) * Flatten(z, E, T, into=K)


class Largest(Forward):
    x = Input(N, C)
    y = Max(x**2, C)


class Shifted(Sum):
    """A node that could tell one place from another."""


def batch_of(forward):
    definition = forward.definition
    return SmallBatch(definition, {a: SIZES[a.name] for a in definition.independent_axes})


def renumberings(batch):
    """Every way to renumber the places along the axes whose sizes can be chosen."""
    choices = [{}]
    for axis in batch.definition.independent_axes:
        orders = list(permutations(range(batch.sizes[axis])))
        choices = [{**c, axis: order} for c in choices for order in orders]
    return choices


def renumbered(batch, axes, i, orders):
    moved = []
    for axis, place in zip(axes, i, strict=True):
        parts, number = batch._places(axis, place), 0
        for part, inner in parts:
            number = number * batch.sizes[part] + orders[part][inner]
        moved.append(number)
    return tuple(moved)


@pytest.mark.parametrize("forward", [Pairs, Vectors, Products])
def test_every_entry_is_a_renumbering_of_a_representative(forward):
    batch = batch_of(forward)
    statement = batch.definition.statements[-1]
    axes, entries = statement.tensor.home, batch.computed(statement.name)
    chosen = batch.representatives(axes, statement.expression)
    assert len(chosen) < len(entries)
    met = set()
    for orders in renumberings(batch):
        moves = {
            symbol: batch.entries(t)[renumbered(batch, t.home, i, orders)]
            for t in batch.definition.inputs
            for i, symbol in batch.entries(t).items()
        }
        for i in chosen:
            there = renumbered(batch, axes, i, orders)
            assert entries[i].xreplace(moves) == entries[there]
            met.add(there)
    assert met == set(entries)


def test_what_can_tell_places_apart_is_checked_in_every_entry():
    batch = batch_of(Pairs)
    (x, _), (statement,) = batch.definition.inputs, batch.definition.statements[-1:]
    claim = Shifted.over(x, [C]) * statement.tensor
    assert len(batch.representatives((N,), x)) == 1
    assert len(batch.representatives((N,), claim)) == 3
    both = batch_of(BothOrders)
    home = both.definition.output.home
    assert len(both.representatives(home, both.definition.output)) == 6


def test_the_largest_is_that_of_all_entries_along_the_axis():
    batch = batch_of(Largest)
    x = batch.entries(batch.definition.inputs[0])
    for (i,), largest in batch.computed("y").items():
        assert set(largest.args) == {x[i, k] ** 2 for k in range(batch.sizes[C])}


X, Y, P = Symbol("x", real=True), Symbol("y", real=True), Symbol("p", positive=True)


def test_of_the_entries_of_a_one_hot_each_is_0_or_1_and_one_is_1():
    for entries in (indicators("a label", 3), selectors((X, Y, P))):
        assert is_zero(Add(*entries) - 1) and all(is_zero(e**2 - e) for e in entries)
        assert not any(map(is_zero, entries))


@pytest.mark.parametrize(
    "e",
    [
        X**3 * Y - 2 * X / (1 + X**2) ** 2,
        exp(-X * Y) * tanh(X + Y) / (1 + exp(X)),
        log(P * (1 + X**2)) * sqrt(1 + X**2) * X,
        P ** (X * Y) + (1 + X**2) ** Y,
        P**P * X**2,
        Abs(X * Y) * Piecewise((X**2, X > Y), (Y * X, True)),
        LargestOf(X * Y, X**2, Y) * X,
    ],
)
def test_the_total_derivative_is_sympys(e):
    for variable in (X, Y, P):
        assert is_zero(TotalDerivative(variable).of(e) - e.diff(variable))


@pytest.mark.parametrize("name", OWN)
def test_the_total_derivative_of_a_forward_is_sympys(name, tmp_path):
    definition = forward_from(write(tmp_path, name)).definition
    batch = SmallBatch(definition, dict.fromkeys(definition.independent_axes, 2))
    e = next(iter(batch.computed(definition.output.name).values()))
    for tensor in definition.differentiable:
        for variable in batch.entries(tensor).values():
            assert is_zero(TotalDerivative(variable).of(e) - e.diff(variable))
