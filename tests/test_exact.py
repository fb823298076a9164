"""The zero test says True only for what is zero, and recognises what the proofs need."""

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st
from sympy import (
    Abs,
    Eq,
    IndexedBase,
    Piecewise,
    Rational,
    Sum,
    Symbol,
    exp,
    log,
    sign,
    sqrt,
    symbols,
    tanh,
)

from derive.proof.zero.exact import ZeroTest, is_zero
from derive.proof.zero.indicator import Indicator

x, y, z, a = sympy.symbols("x y z a", real=True)
p, q = sympy.symbols("p q", positive=True)
n = Symbol("n", integer=True)
i1, i2 = Indicator(0, "row"), Indicator(1, "row")
other = Indicator(0, "another row")


@pytest.mark.parametrize(
    "e",
    [
        sqrt(x**2 + 1) ** 3 - (x**2 + 1) * sqrt(x**2 + 1),
        ((x + y) ** 2 + 1) ** Rational(3, 2) - (x**2 + 2 * x * y + y**2 + 1) ** Rational(3, 2),
        (sqrt(x**2 + 1) + 1) * ((x**2 + 1) ** Rational(1, 3) + 1)
        - (x**2 + 1) ** Rational(5, 6)
        - sqrt(x**2 + 1)
        - (x**2 + 1) ** Rational(1, 3)
        - 1,
        sqrt(2) * sqrt(3) - sqrt(6),
        sqrt(2) / sqrt(x**2 + 2 * a + y**2) - 1 / sqrt((x**2 + y**2) / 2 + a),
        sqrt(6) / sqrt(x + 6 * a) - 1 / sqrt(x / 6 + a),
        (x / 3 + a) ** Rational(2, 3) * 9 ** Rational(1, 3) - (x + 3 * a) ** Rational(2, 3),
        sqrt(p) / sqrt(x**2 + p * a) - 1 / sqrt(x**2 / p + a),
        sum(  # as many cases as entries, each decided apart
            k * (Piecewise((u, u >= 0), (0, True)) - (u + Abs(u)) / 2)
            for k, u in zip(
                sympy.symbols("k:6", real=True), sympy.symbols("u:6", real=True), strict=True
            )
        ),
        Sum(IndexedBase("v")[n], (n, 1, p))
        - Sum(Abs(IndexedBase("v")[n]) * sign(IndexedBase("v")[n]), (n, 1, p)),
        log(i1 * p + i2 * q + 1 - i1 - i2) - i1 * log(p) - i2 * log(q),
        exp(x + y) - exp(x) * exp(y),
        10**x - exp(x * log(10)),
        exp(x * log(6)) - 2**x * exp(x * log(3)),
        log(12) - 2 * log(2) - log(3),
        log(2**x + 2**y) - log(1 + 2 ** (x - y)) - y * log(2),
        (exp(x / 2) + 1) ** 2 - exp(x) - 2 * exp(x / 2) - 1,
        (exp(x / 2) + 1) * (exp(x / 3) + 1) - exp(5 * x / 6) - exp(x / 2) - exp(x / 3) - 1,
        (sqrt(sqrt(x**2 + 1)) + 1) ** 2 - sqrt(x**2 + 1) - 2 * sqrt(sqrt(x**2 + 1)) - 1,
        exp(-x) / (1 + exp(-x)) - 1 / (1 + exp(x)),
        # A divisor met in two spellings, the second of which stands in terms of the first.
        y / (1 - 1 / (1 + exp(-x))) * (1 / (1 + exp(-x)) - exp(x) / ((1 + exp(-x)) * (exp(x) + 1)))
        - y / (1 + exp(-x)),
        tanh(x) - (exp(2 * x) - 1) / (exp(2 * x) + 1),
        tanh(x).diff(x) - (1 - tanh(x) ** 2),
        1 / (x * (x + 1)) - 1 / x + 1 / (x + 1),
        x**2 / (2 * x**2 + 2) + 1 / (2 * x**2 + 2) - Rational(1, 2),
        Abs(x - y) - (x - y) * sign(x - y),
        sign(x - y) + sign(y - x),
        x**a * x - x ** (a + 1),
        log(p * q) - log(p) - log(q),
        log(2 * exp(x) + 2 * exp(y)) - log(2) - log(exp(x) + exp(y)),
        log(exp(x) / (exp(x) + exp(y))) - x + log(exp(x) + exp(y)),
        y
        + log((Piecewise((x, x >= 0), (0, True)) + exp(-Abs(x))) * exp(-y) + exp(x - y))
        - log(Piecewise((x, x >= 0), (0, True)) + exp(-Abs(x)) + exp(x)),
        y  # what is left of the argument may be negative, as the argument then is
        + log((Piecewise((x, x <= 0), (0, True)) + exp(-Abs(x))) * exp(-y) + exp(x - y))
        - log(Piecewise((x, x <= 0), (0, True)) + exp(-Abs(x)) + exp(x)),
        log(a**2 * exp(x) + p * exp(y)) - log(a**2 + p * exp(y - x)) - x,
        # one argument that is written as two different quotients
        tanh(exp(x) / (1 + exp(x))) - tanh(1 / (1 + exp(-x))),
        exp(y * exp(x) / (1 + exp(x))) - exp(y / (1 + exp(-x))),
        log(2 + (x**2 - 1) / (x - 1)) - log(x + 3),
        exp(exp(x) / (1 + exp(x))) * exp(1 - 1 / (1 + exp(-x))) - exp(1),
        i1 * i2,
        i1**3 - i1,
        Piecewise((x, x < y), (y, True)) * Piecewise((y, x < y), (x, True)) - x * y,
        Piecewise((x * exp(y), sympy.Ne(x, 0)), (0, True)) - x * exp(y),
        log(1 + exp(x * y)) - Piecewise((x * y, x * y >= 0), (0, True)) - log(1 + exp(-Abs(x * y))),
        # one sign that is asked for in two spellings
        Piecewise((y, log(1 + exp(x)) <= 1), (0, True))
        - Piecewise((y, x + log(1 + exp(-x)) <= 1), (0, True)),
        sign(log(1 + exp(x)) - a) + sign(a - x - log(1 + exp(-x))),
        Piecewise((1, z < a - y + log(1 + exp(x))), (0, True))
        + Piecewise((1, a <= y + z - x - log(1 + exp(-x))), (0, True))
        - 1,
        Piecewise((1 / (1 + exp(-x)), log(1 + exp(x)) <= 1), (0, True))
        - Piecewise(
            (exp(x) / (1 + exp(x)), (x < 0) & (log(1 + exp(-Abs(x))) <= 1)),
            (1 / (1 + exp(-x)), (x >= 0) & (x + log(1 + exp(-Abs(x))) <= 1)),
            (0, True),
        ),
    ],
    ids=str,
)
def test_what_is_zero_is_recognised(e):
    assert is_zero(e)


@pytest.mark.parametrize(
    "e",
    [
        Piecewise((y, log(1 + exp(x)) <= 1), (0, True))
        - Piecewise((y, x + log(1 + exp(-x)) <= 2), (0, True)),
        Piecewise((y, log(1 + exp(x)) <= 1), (0, True))
        - Piecewise((y, x + log(1 + exp(-x)) >= 1), (0, True)),
        sqrt(x**2 + 1) - x,
        sqrt(x + 1) ** 3 - 2 * x * sqrt(x + 1) - 2 * sqrt(x + 1),
        sqrt(x**2) - x,
        sqrt(2) / sqrt(x + 2 * a) - 1 / sqrt(x / 3 + a),
        sqrt(z) / sqrt(x**2 + z * a) - 1 / sqrt(x**2 / z + a),  # z may be negative
        sqrt(-x - y) - sympy.I * sqrt(x + y),  # true for one sign of x + y alone
        exp(x + y) - exp(x) - exp(y),
        1 / (x * (x + 1)) - 1 / x,
        Abs(x) - x,
        Abs(x) * sign(x) - 4 * x,
        sign(x - y) - sign(y - x),
        Abs(x) * sign(x) - Abs(x),
        Piecewise((x, x < y), (y, True)) - Piecewise((x, x < y), (0, True)) - y,
        Piecewise((x, x < y), (y, True)) * Piecewise((y, x < y), (x, True)) - 4 * x * y,
        i1 * other,
        i1 - i2,
        log(x * y) - log(x) - log(y),  # x and y may be negative
        x ** (2 * a) - x**a,
        Piecewise((x, x < y), (y, True)) - x,
        Piecewise((x * exp(y), sympy.Ne(x, 0)), (1, True)) - x * exp(y),
        Piecewise((x * y, x * y >= 0), (0, True)) - x * y,
        sympy.zoo,
        sympy.nan,
        x / (x - x) if False else 1 / x - 1 / (x + Rational(1, 10**9)),
    ],
    ids=str,
)
def test_what_is_not_zero_is_not_called_zero(e):
    assert not is_zero(e)


atoms = st.sampled_from(
    [x, y, p, sympy.Integer(2), Rational(1, 3), exp(x), exp(-y), sqrt(p), sqrt(y**2 + 1)]
)
expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda ab: ab[0] + ab[1]),
        st.tuples(inner, inner).map(lambda ab: ab[0] * ab[1]),
        inner.map(lambda e: e**2),
        inner.map(lambda e: 1 / (e**2 + 1)),
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(expressions, expressions, expressions)
def test_rearranged_expressions_are_equal(e, f, g):
    assert is_zero(e * (f + g) - sympy.expand(e * f) - e * g)


@settings(max_examples=60, deadline=None)
@given(expressions, expressions)
def test_an_expression_that_differs_at_a_point_is_not_zero(e, f):
    at = {x: Rational(3, 7), y: Rational(-5, 3), p: Rational(11, 5)}
    if abs(sympy.N((e - f).subs(at), 30)) > 1e-15:
        assert not is_zero(e - f)


def _indicator(condition):
    return Piecewise((1, condition), (0, True))


def test_what_is_only_compared_for_equality_has_two_cases():
    """Four masks have 16, and would have 81 if a mask were positive, negative or zero."""
    masks, scores = sympy.symbols("m:4", real=True), sympy.symbols("z:4", real=True)

    def share(shift):
        pairs = zip(masks, scores, strict=True)
        counts = [_indicator(sympy.Ne(m, 0)) * sympy.exp(z - shift) for m, z in pairs]
        nothing = _indicator(sympy.And(*(Eq(m, 0) for m in masks)))
        return counts[0] / (sympy.Add(*counts) + nothing)

    assert is_zero(share(0) - share(y))
    assert not is_zero(share(0) - share(y) * sympy.exp(y))


def test_choices_case_by_case():
    assert is_zero(_indicator(x > 0) + _indicator(x <= 0) - 1)
    assert is_zero(Piecewise((x, x > 0), (0, True)) - (x + Abs(x)) / 2)
    assert is_zero(Piecewise((x, x > y), (y, True)) - (x + y + Abs(x - y)) / 2)
    for factor in (a, p, -q):  # the sign of a product is that of its factors
        u = factor * x
        largest = Piecewise((u, u >= 0), (0, True))
        assert is_zero((log(exp(u) + 1) - log(1 + exp(-Abs(u))) - largest) / factor)
        assert not is_zero((log(exp(u) + 1) - log(1 + exp(-Abs(u))) + largest) / factor)
    assert is_zero(_indicator(x * y > 0) * _indicator(x * z > 0) * _indicator(y * z < 0))
    assert is_zero(_indicator(x > p) * _indicator(x < 0))
    assert is_zero(_indicator(Eq(x, y)) * (x - y))
    assert not is_zero(_indicator(x > 0) + _indicator(x < 0) - 1)
    assert not is_zero(_indicator(x > p) * _indicator(x < y))
    assert not is_zero(_indicator(Eq(x, y)))
    assert not is_zero(_indicator(x > 0) / _indicator(x > 0) - 1)  # no number on one side
    assert not is_zero(x / (1 + sign(x)) - x / 2)
    assert not is_zero(_indicator(x - y < 0) - _indicator(y - x < 0))
    assert not is_zero(_indicator(x - y > z) - _indicator(y + z > x))
    assert not is_zero(_indicator(y - x > 0) * (sign(x - y) - 1))
    assert not is_zero(_indicator(Eq(x * y + x * z, 0)) * (y + z))  # or x is 0
    both = _indicator(Eq(a * y + x * z, 0)) * _indicator(Eq(y * exp(x) * exp(z), 0))
    assert not is_zero(both * a)  # where y is 0, a is anything


def test_a_choice_under_a_sum_is_made_for_each_of_its_terms():
    b, i = IndexedBase("b", real=True), Symbol("i", integer=True)
    n = Symbol("n", integer=True, positive=True)
    assert not is_zero(Sum(Abs(b[i]), (i, 1, n)) ** 2 - Sum(b[i], (i, 1, n)) ** 2)
    signs, sizes = Sum(sign(b[i]), (i, 1, n)), Sum(Abs(b[i]), (i, 1, n))
    assert not is_zero(sizes * signs - n * Sum(b[i] * sign(b[i]) ** 2, (i, 1, n)))
    total, chosen = Sum(b[i], (i, 1, n)), Sum(sign(b[i]) ** 2, (i, 1, n))
    assert not is_zero(sizes * signs - total * chosen)
    assert not is_zero(i * sizes - Sum(i * Abs(b[i]), (i, 1, n)))  # another i
    c, j = IndexedBase("c", real=True), Symbol("j", integer=True)
    every, same = Abs(b[i]) * c[j], Abs(b[j]) * c[j]
    assert not is_zero(Sum(every, (i, 1, n), (j, 1, n)) - Sum(same, (i, 1, n), (j, 1, n)))
    count = Sum(_indicator(b[i] > 0), (i, 1, n))
    assert not is_zero(count * (n - count))


def test_what_has_its_own_upstream_gradient_is_looked_into_by_itself(monkeypatch):
    """Else a sum over many rows is brought over one denominator, which takes minutes."""
    upstream = sympy.symbols("d:3", real=True)
    rows = sympy.symbols("r:3", real=True)
    e = sum(
        d * (r / (r**2 + 1) + 1 / (r**3 + r) - 1 / r) for d, r in zip(upstream, rows, strict=True)
    )
    in_full, met = ZeroTest._vanishes_in_full, []

    def noted(test, e):
        met.append(e.free_symbols & set(upstream))
        return in_full(test, e)

    monkeypatch.setattr(ZeroTest, "_vanishes_in_full", noted)
    assert is_zero(e) and max(map(len, met)) == 1


FUNCTIONS = [lambda u: u, tanh, sympy.atan, sympy.sin, sympy.erf, lambda u: u * y + a * u]


@pytest.mark.parametrize("function", FUNCTIONS, ids=range(len(FUNCTIONS)))
@pytest.mark.parametrize("power", [Rational(1, 2), Rational(-3, 2), Rational(1, 3)])
def test_an_exponential_comes_out_of_a_root(function, power):
    """The root of exp(t) + exp(s) is that of 1 + exp(-|t - s|) and half of the larger exponent."""
    t = function(x)
    plain, larger = (exp(t) + 2) ** power, exp(t * power) * (1 + 2 * exp(-t)) ** power
    assert is_zero(plain - larger)
    assert not is_zero(plain - larger * exp(t))
    stable = exp(Piecewise((t, t >= 0), (0, True)) * power) * (1 + exp(-Abs(t))) ** power
    assert is_zero((exp(t) + 1) ** power - stable)
    assert not is_zero((exp(t) + 1) ** power - stable * exp(Abs(t) / 3))
    one, other = exp(t) + 2, 1 + 2 * exp(-t)
    assert is_zero(sqrt(one) ** 3 * sqrt(other) - exp(t) * sqrt(one) * sqrt(other) ** 3)


@pytest.mark.parametrize(
    "u",
    [a * y + a * x * exp(z), a * tanh(x) + y * tanh(x), x**2 * y - y, p * x + a, tanh(x) * p + 1],
    ids=str,
)
def test_an_edge_is_where_what_is_compared_is_zero(u):
    """Whatever it is made of: a function, a product, what has no symbol to be solved for."""
    largest, smallest = Piecewise((u, u >= 0), (0, True)), Piecewise((u, u < 0), (0, True))
    assert is_zero(largest + smallest - u) and is_zero(largest - smallest - Abs(u))
    assert is_zero(log(1 + exp(u)) - largest - log(1 + exp(-Abs(u))))
    assert is_zero(_indicator(Eq(u, 0)) * (exp(u) - 1))
    assert not is_zero(_indicator(Eq(u, 0)) * (exp(u) - 2))
    assert not is_zero(log(1 + exp(u)) - largest - log(1 + exp(-Abs(2 * u))))
    assert not is_zero(largest - 2 * smallest - Abs(u))


def test_a_choice_that_goes_on_at_its_edge_needs_no_solution():
    u = a * sympy.sin(y) + x * z
    largest = Piecewise((u, u >= 0), (0, True))
    assert is_zero(log(1 + exp(u)) - largest - log(1 + exp(-Abs(u))))
    assert not is_zero(largest - Abs(u)) and not is_zero(_indicator(u >= 0) - _indicator(u > 0))


def test_a_power_of_what_is_positive_is_an_exponential():
    share = 1 / (1 + exp(-x))
    assert is_zero((1 - share) ** a - (1 + exp(x)) ** -a)
    assert is_zero(share ** (a - 1) - (1 + exp(-x)) * share**a)
    assert is_zero(2**x - exp(x * log(2))) and is_zero(4**x - 2 ** (x + 1) * 2 ** (x - 1))
    assert is_zero((y**2 + 1) ** a * sqrt(y**2 + 1) - (y**2 + 1) ** (a + Rational(1, 2)))
    assert is_zero(log(share**a) + a * log(1 + exp(-x)))
    assert not is_zero((1 - share) ** a - share**a)
    assert not is_zero(p**a - p**z) and not is_zero(x**a * y**a - (x * y) ** a)


def test_what_is_divided_by_stays_one_symbol(monkeypatch):
    """A definition is solved for something in it: g = v - 1 from v = 1 + g. Written out, the sums
    in the denominators take minutes.
    """
    monkeypatch.setattr(ZeroTest, "_vanishes_in_full", lambda test, e: False)
    monkeypatch.setattr(ZeroTest, "_vanishes_apart", lambda test, e: False)
    first, *others = sympy.symbols("s:5", real=True)
    shares = [1 / (1 + exp(-s * y)) for s in (first, *others)]
    total = sum(shares) + a
    weights = [s / total for s in shares]
    rest = exp(-first * y) / (1 + exp(-first * y))
    assert is_zero(shares[0] * (1 - shares[0]) / total - weights[0] * rest)
    assert is_zero(sum(weights) + a / total - 1)
    assert not is_zero(sum(weights) + a / total - 1 + weights[0])


def test_the_cases_of_one_entry_are_not_crossed_with_those_of_another():
    """Seven choices would have 128 cases, although every entry has its own symbols."""
    terms = []
    for s, u in zip(sympy.symbols("s:7", real=True), sympy.symbols("u:7", real=True), strict=True):
        w = s * (a + u * exp(y))
        stable = exp(-Piecewise((w, w >= 0), (0, True))) / (1 + exp(-Abs(w)))
        terms.append(s * u * stable - s * u / (1 + exp(w)))
    assert is_zero(a * sum(terms))
    assert not is_zero(a * (sum(terms) + terms[0].args[0]))


def test_the_cases_of_one_upstream_entry_are_not_crossed_with_those_of_another():
    """Neighbours share an entry, so it is the upstream gradients that tell the terms apart."""
    upstream, entry = (IndexedBase(name, real=True) for name in "dv")
    terms = []
    for k in range(6):
        u = entry[k] - entry[k + 1]
        terms.append(upstream[k] * (Piecewise((u, u >= 0), (0, True)) - (u + Abs(u)) / 2))
    assert is_zero(sum(terms))
    assert not is_zero(sum(terms) + upstream[0] * Abs(entry[0]))


@pytest.mark.parametrize("edge", [Rational(1, 5), 1, 3])
def test_beyond_an_edge_is_on_one_of_its_sides(edge):
    def chosen(condition):
        return Piecewise((0, condition), (y, True))

    assert is_zero(chosen(Abs(x) > edge) - chosen((x > edge) | (x < -edge)))
    assert not is_zero(chosen(Abs(x) > edge) - chosen((x > edge) | (x < -2 * edge)))


def test_equivalent_conditions_are_one():
    a, b, u, v = symbols("a b u v", real=True)
    later, not_later = Piecewise((u, a >= b), (v, True)), Piecewise((v, b > a), (u, True))
    assert is_zero(later - not_later)
    assert is_zero(Piecewise((u, a > b), (0, True)) * Piecewise((1, b > a), (0, True)))
    assert not is_zero(Piecewise((u, a >= b), (0, True)) * Piecewise((1, b >= a), (0, True)))


def test_nothing_is_solved_by_dividing_by_a_condition():
    a, b, t = symbols("a b t", real=True)
    test = ZeroTest()
    holds = test.met.rational(Piecewise((1, t > 0), (0, True)))
    assert test._solution(a, holds * b) == {}
