"""What differs at random numbers is not tried to be proved; what is equal is tried."""

import pytest
from sympy import Abs, Eq, Ne, Piecewise, exp, log, sign, sqrt, symbols, tanh

import derive
from derive import Axis, Input, Sum
from derive.proof.proving.claim import Batch, Equality, proved_on
from derive.proof.proving.random_point import RandomPoint, RandomPoints
from derive.proof.proving.small_batch import LargestOf, selectors

a, b, c, t = symbols("a b c t", real=True)
p, q = symbols("p q", positive=True)
N, C, K = Axis("N"), Axis("C"), Axis("K")
POINTS = range(6)
NOTHING = p * (a + b + c) - p * a - p * b - p * c  # but for what is rounded off

EQUAL = {
    "a sum": (a + b) ** 2 - a**2 - 2 * a * b - b**2,
    "a quotient": 1 / (1 + exp(-a)) - exp(a) / (1 + exp(a)),
    "far out": (1 - tanh(13 * a) ** 2) - 4 * exp(26 * a) / (exp(26 * a) + 1) ** 2,
    "a root": sqrt(p * q) - sqrt(p) * sqrt(q),
    "a logarithm": log(p * q) - log(p) - log(q),
    "a bar": Abs(a) - a * Piecewise((1, a > 0), (-1, True)),
    "the largest": LargestOf(a, b) - a * selectors((a, b))[0] - b * selectors((a, b))[1],
    "0 times what is chosen": Piecewise((t * a, Ne(t, 0)), (0, True)) - t * a,
    "a choice between equals": Piecewise((a, Eq(t, 1)), (b, True))
    - Piecewise((b, Ne(t, 1)), (a, True)),
    "the sign of nothing": sign(NOTHING),
    "a choice by nothing": Piecewise((a, NOTHING > 0), (b, NOTHING < 0), (0, True)),
    "a choice at nothing": Piecewise((0, Eq(NOTHING, 0)), (a, True)),
}


def nested(u, depth=40):
    return tanh(nested(u, depth - 1)) + u if depth else u


DIFFERENT = {
    "a number": a * (1 + 1e-6) - a,
    "a number, after many operations": nested(a * (1 + 1e-6)) - nested(a),
    "a sign": Abs(a) - a,
    "the sign of little": sign(NOTHING + p / 10**9),
    "a choice by little": Piecewise((a, NOTHING + p / 10**9 > 0), (0, True)),
    "roots of negative numbers": sqrt(a * b) - sqrt(a) * sqrt(b),
    "where a scalar is a number": Piecewise((a, Eq(t, 1)), (0, True)),
    "where it is not": Piecewise((0, Eq(t, 1)), (a, True)),
    "everywhere but at a number": a - Piecewise((a, Ne(t, 1)), (0, True)),
    "another of the largest": LargestOf(a, b, c) - a * selectors((a, b, c))[0],
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_may_vanish_everywhere(name):
    assert all(RandomPoint(seed, {}).may_vanish(EQUAL[name]) for seed in POINTS)


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_seen_somewhere(name):
    assert not all(RandomPoint(seed, {}).may_vanish(DIFFERENT[name]) for seed in POINTS)


def test_a_point_that_is_kept_says_what_a_new_one_says():
    expressions = [*DIFFERENT.values(), *EQUAL.values(), t - 1, *DIFFERENT.values()]

    def said(point, e):
        return point.may_vanish(e), point.number(e), point.number(t)

    for seed in POINTS:
        kept = RandomPoint(seed, {})
        for e in expressions:
            assert said(kept, e) == said(RandomPoint(seed, {}), e)


def test_points_are_apart_by_what_is_computed_there():
    points = RandomPoints(lambda names: {a: b + 1} if names else {})
    assert not points.at(0, []).may_vanish(a - b - 1)
    assert points.at(0, ["a"]).may_vanish(a - b - 1)
    assert not points.at(0, []).may_vanish(a - b - 1)


def test_what_has_no_value_may_vanish():
    assert RandomPoint(0, {}).may_vanish(1 / (a - a * Piecewise((1, p > 0), (0, True))))


class Norm(derive.Forward):
    """Values in a row, of which an equality needs some."""

    x = Input(N, C)
    scale = Input(N)
    twice = 2 * x
    square = x * twice / 2
    length = Sum(square, C)
    unit = x / length
    scaled = scale * unit
    y = Sum(scaled, C)


def needed(left, right, home=(N, C)):
    claim = Equality(Norm.definition, home, left, right)
    return proved_on(claim, Batch(Norm.definition, {N: 2, C: 3}))


def test_an_equality_names_the_definitions_that_it_needs():
    x, unit, length = Norm.x, Norm.unit, Norm.length
    assert needed(x, x) == set()
    assert needed(unit * length, x) == {"unit"}
    assert needed(Norm.scaled * length, Norm.scale * x) == {"scaled", "unit"}
    assert needed(Sum(x**2, C), length, (N,)) == {"square", "length", "twice"}
    assert needed(unit * Sum(Norm.square, C), unit * length) == {"length"}
    assert needed(sign(Norm.twice) * unit, sign(x) * unit) == {"twice"}
    assert needed(unit, x) is None


class Pairs(derive.Forward):
    """Distances in pairs, of means that nobody named."""

    x = Input(N, C)
    y = Input(N, C)
    mean = (x + y) / 2
    apart = derive.Max(mean - derive.Rename(mean, C, K), 0)
    loss = Sum(Abs(mean - derive.Rename(mean, C, K)) + apart, N, C, K)


def test_what_is_equal_up_to_rounding_has_no_sign():
    assert derive.derive(Pairs).every_size
