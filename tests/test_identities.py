"""Every identity is true: both sides are evaluated on random rationals and are equal, exactly where
they are rational.
"""

import pytest
from evaluate import Numbers, close
from sympy import Eq, Integer, Ne, Piecewise, cosh, exp, log, sinh, tanh

from derive.gradient.closing.facts import Facts
from derive.gradient.closing.identities import elimination, identities, inversion
from derive.gradient.values.relations import relations_of
from derive.language.choices import Compared
from derive.language.declarations import Input, Label, Scalar
from derive.language.diagonals import Identity
from derive.language.nodes import (
    Flatten,
    OneHot,
    Position,
    Recurrence,
    Rename,
    Sum,
    Unflatten,
)
from derive.language.notation.forward import Forward
from derive.language.reading_at import At
from derive.language.scans import KINDS, CumProd, CumSum, Scan
from derive.language.symbols import Axis, axes_of

N, C, K, F, M = Axis("N"), Axis("C"), Axis("K"), Axis("F"), Axis("M")
SIZES = {N: 3, C: 4, K: 2, F: 12, M: 3}


class Example(Forward):
    a = Input(N, C)
    b = Input(N, C)
    c = Input(C)
    k = Input(K)
    i = Label(N)
    f = Input(F)
    q = Input(N)
    s = Scalar(2.0)

    total = Sum(a, N) / (N - 1)
    mean = Sum(b, N) / N
    centred = b - mean
    positive = c**2 + 1
    scaled = centred * positive ** Integer(-1)
    squashed = 2 * tanh(a) + 1
    gate = 1 / (1 + exp(-b))
    picked = Sum(OneHot(i, C) * a, C)
    columns = Sum(OneHot(i, C) * a, N)
    read = Sum(OneHot(i, C) * c, C)
    spread = Sum(centred**2, N)
    weight = q**2 + 1
    weights = Sum(OneHot(i, C) * weight, N)
    share = weight / Sum(OneHot(i, C) * weights, C)
    pairs = Sum(b * Rename(b, N, M), C)
    out = (
        Sum(scaled * total + squashed * gate, C, N)
        + Sum(picked * read, N)
        + Sum(columns + spread, C)
        + s * Sum(k, K)
        + Sum(f, F)
        + Sum(share, N)
        + Sum(pairs, N, M)
    )


D = Example.definition
a, b, c, k, i, f, q = D.inputs
s = D.scalars[0][0]
centred, scaled, total, positive, picked, columns, spread, read, share = (
    D.by_name[name].tensor
    for name in (
        *("centred", "scaled", "total", "positive", "picked", "columns", "spread", "read"),
        "share",
    )
)
hot = OneHot(i, C)
n = Sum.over(hot, [N])
COUNTED = Piecewise((s, Eq(n, 0)), (k / n, True))
same, at_m = Identity(N, M), Rename(b, N, M)
TAKEN = Piecewise((a, a > 0), (0, True))
facts = Facts(relations_of(D))

# For every identity, expressions on which it must act.
EXAMPLES = {
    "distribute": [a * (b + c), (a + b) ** 2, (a + 1) * (b + c) * k],
    "cancelled divisor": [
        positive * (a / positive + b),
        positive * a * (c * (b / positive + 1) + k),
    ],
    "proper fraction": [(positive - 1) / positive, a * (3 - 2 * positive) / positive],
    "one choice": [a * Piecewise((b, a > 1), (c, True)) * Piecewise((k, a > 1), (2, True))],
    "constant of a choice": [
        Piecewise((s * log(2) * a, a > 1), (s * b, c > 1), (0, True)),
        Piecewise((3 * b, a > 1), (0, True)),
        Piecewise((centred * b / spread, spread > 1), (0, True)),
    ],
    "fewer conditions": [
        Piecewise((Piecewise((b, a > 0), (0, True)), Compared(TAKEN) <= 2), (0, True)),
        Piecewise((b, s * a >= (s - 1) * a), (c, True)),
        Piecewise((b, exp(c) * a < 0), (c, True)),
        Piecewise((b, (a > 2) | (a < -2)), (0, True)),
        Piecewise((b, (a <= 1) & (a >= -1)), (c, True)),
    ],
    "divisor in a choice": [
        positive * Piecewise((a / positive, a > 1), (0, True)),
        b * positive * Piecewise((a / positive**2, a > 1), (0, b > 1), (1 / positive, True)),
    ],
    "one of the choices": [
        2 * a * Piecewise((b, a > 1), (0, True)) - a * c * Piecewise((0, a > 1), (k, True)),
        Piecewise((k, a > 1), (0, True)) + b * Piecewise((0, a > 1), (2, c > 1), (3, True)),
    ],
    "opposite exponents": [exp(a - b) * exp(b - a), c * exp(a * b - c) * exp(c - 2 * a * b)],
    "hyperbolic quotient": [sinh(a) / cosh(a), a * sinh(b) / (c * cosh(b))],
    "function from its value": [tanh(a), exp(-b)],
    "linear": [Sum.over(a + 2 * b, [N]), Sum.over(a + c, [N]), Sum.over(a * b + c + 1, [N, C])],
    "constant factor": [Sum.over(3 * c * a, [N]), Sum.over(c, [N]), Sum.over(k**2, [N, C])],
    "nested sums": [Sum.over(Sum.over(a * b, [C]), [N])],
    "total of a one-hot": [Sum.over(hot, [C]), Sum.over(hot, [N, C])],
    "power of a one-hot": [hot**2, hot**3],
    "choice by a one-hot": [Piecewise((k, hot > 0), (0, True)) for k in (1, -2)],
    "read back": [Sum.over(hot * Sum.over(hot * b / read**2, [N]), [C])],
    "filled segments": [
        Sum.over(hot * q, [N]) * Sum.over(hot * share, [N]),
        k * columns * Sum.over(hot * share, [N]),
    ],
    "counted segments": [c * n * Sum.over(hot * q, [N]) * COUNTED, n * columns / COUNTED**-1],
    "picked factor": [
        Sum.over(hot * a * read, [N]),
        Sum.over(hot * k * Sum.over(hot * c, [C]) ** 2, [N]),
        Sum.over(hot * a / Sum.over(hot * positive, [C]), [N]),
        Sum.over(hot * b * c, [C]),
        Sum.over(hot * a**2, [C]),
    ],
    "product with an identity": [
        Sum.over(same * a * at_m, [M]),
        Sum.over(same * b, [N]),
        Sum.over(same * (at_m + exp(b)), [N, M]),
    ],
    "read on the diagonal": [same * at_m, c * same * exp(at_m) * k],
    "where a one-hot is 1": [
        same * exp(b * (2 * same - 1)) * at_m,
        hot * (1 + hot * c) ** 2,
        same * Piecewise((b, same.condition), (k, True)) * c,
        same * Piecewise((k, Ne(*same.condition.args)), (b, a > 0), (0, True)),
    ],
    "on the diagonal and beside it": [
        (2 * same - 1) / (exp(b * (2 * same - 1)) + 1),
        same - c / (exp(-same) + 1) - c / (exp(same) + 1),
    ],
    "one-hot picks": [
        hot * Sum.over(hot * a, [C]),
        c * hot * Sum.over(hot * a * b, [C]),
        hot * a / picked,
        -c * hot * a * b / picked**2,
    ],
    "reshaped back": [
        Unflatten.over(Flatten(a * c, N, C, into=F), [F], [N, C]),
        Flatten.over(Unflatten.over(f, [F], [N, C]), [N, C], [F]),
    ],
    "reshaping a product": [
        Flatten(2 * k * a, N, C, into=F),
        Unflatten.over(s * k * f, [F], [N, C]),
    ],
    "reading a product": [
        At.over(a * c, N, 2 * Position(F) - 1),
        At.over(a * c * s, N, Position(N) + Position(K) - 1),
        At.over(a * k, N, N - 1 - Position(N)),
    ],
    "reading a sum": [
        At.over(Sum(a * b, C), N, Position(F) / 2),
        At.over(Sum(a * k, K), N, 2 - Position(N)),
    ],
    "total of a reshaped tensor": [
        Sum.over(Flatten(a, C, N, into=F), [F]),
        Sum.over(Flatten(a * k, N, C, into=F), [F, K]),
        Sum.over(Unflatten.over(f**2, [F], [N, C]), [N, C]),
    ],
    "constant of a scan": [
        CumSum(k * c * a, N, exclusive=True),
        Scan(exp(c) * a, k * b, N, transposed=True),
    ],
    "count": [
        KINDS[back, before].over(Integer(1), Integer(1), Integer(0), [N])
        for back in (False, True)
        for before in (False, True)
    ],
    "definition": [Sum.over(a, [N]), Sum.over(b, [N])],
    "fact": [Sum.over(centred, [N]), Sum.over(scaled, [N])],
    "nearer the output": [centred],
}

# What is like that and something else.
OTHERS = {
    "cancelled divisor": [(a / positive + b) / positive, positive * (a / positive**2 + b)],
    "proper fraction": [(b - 1) / positive],
    "one choice": [Piecewise((b, a > 1), (c, True)) * Piecewise((k, a > 2), (2, True))],
    "constant of a choice": [
        Piecewise((b / s, a > 1), (0, True)),  # s may be 0 where it is not chosen
        Piecewise((b * log(s), s > 0), (0, True)),
        Piecewise((2 * b, a > 1), (c, True)),
        Piecewise((k * b, a > 1), (0, True)),
        Piecewise((centred * b, total > 1), (0, True)),  # it may be hidden
        Piecewise((centred * b, centred > 1), (0, True)),
        Piecewise((b * k, spread > 1), (0, True)),
    ],
    "fewer conditions": [
        Piecewise((b, a > 1), (0, True)),
        Piecewise((b, (a > 1) | (c > 1)), (0, True)),
        Piecewise((b, (a > 2) | (a < -1)), (0, True)),
        Piecewise((Piecewise((b, a > 0), (0, True)), c <= 2), (0, True)),
        Piecewise((Piecewise((b, a > 0), (c, True)), Compared(TAKEN) <= 2), (0, True)),
        Piecewise((b, k * a >= a), (c, True)),
        Piecewise((Piecewise((b, a > 0), (0, True)), a <= 100), (0, True)),  # no point is above
    ],
    "divisor in a choice": [
        positive * Piecewise((a / positive, a > 1), (b, True)),
        total * Piecewise((a / positive, a > 1), (0, True)),
    ],
    "one of the choices": [
        Piecewise((b, a > 1), (0, True)) + Piecewise((0, a > 2), (k, True)),
        Piecewise((b, a > 1), (c, True)) + Piecewise((k, a > 1), (0, True)),
    ],
    "hyperbolic quotient": [sinh(a) / cosh(b), sinh(a) * cosh(a)],
    "constant factor": [Sum.over(c * a, [N, C])],
    "total of a one-hot": [Sum.over(hot, [N])],
    "power of a one-hot": [hot ** Integer(-1), hot**-s, a**2],
    "choice by a one-hot": [
        Piecewise((a, hot > 0), (0, True)),
        Piecewise((0, hot > 0), (1, True)),
        Piecewise((1, hot > 0), (1 / a, True)),
    ],
    "read back": [Sum.over(hot * Sum.over(hot * b * picked, [N]), [C])],
    "filled segments": [
        Sum.over(a, [N]) * Sum.over(hot * share, [N]),
        Sum.over(hot * q, [N]) * Sum.over(hot * a, [N]),
        c * Sum.over(hot * share, [N]),
    ],
    "counted segments": [
        Sum.over(hot * q, [N]) * COUNTED,  # 0/0 where a segment is empty
        n * Sum.over(a, [N]) * COUNTED,
        n * Sum.over(hot * q, [N]) * Piecewise((s, Eq(n, 1)), (k / n, True)),
    ],
    "picked factor": [
        Sum.over(hot * a / read, [N]),
        Sum.over(hot * a * picked, [N]),
        Sum.over(hot * a, [C]),
        Sum.over(hot * b, [C]),
    ],
    "one-hot picks": [
        hot * Sum.over(hot * a, [N]),
        hot * Sum.over(a, [C]),
        hot * b / picked,
        a / picked,
        hot * a / columns,
        hot * a * picked,
    ],
    "reshaped back": [Unflatten.over(Flatten(a, N, C, into=F), [F], [C, N])],
    "reshaping a product": [
        Flatten(c * a, N, C, into=F),
        Unflatten.over(a * f, [F], [N, C]),  # an N of a is another one
    ],
    "reading a product": [At.over(a * b, N, Position(F)), At.over(c, N, Position(F))],
    "reading a sum": [
        At.over(Sum(a * b, C), N, Position(C)),  # that C is another one
        At.over(a, N, Position(F)),
    ],
    "total of a reshaped tensor": [Sum.over(Flatten(a * k, N, C, into=F), [K])],
    "constant of a scan": [CumSum(a * b, N), Scan(k, k * a, N, initial=k), CumProd(k * a, N)],
    "count": [CumSum(a, N), Recurrence.over(Integer(1), k, Integer(0), [N])],
    "definition": [Sum.over(a, [C]), Sum.over(a**2, [N])],
    "fact": [Sum.over(centred, [C]), Sum.over(centred**3, [N])],
    "function from its value": [tanh(b), exp(b)],
    "nearer the output": [c, total],
}


def test_every_identity_has_an_example():
    assert set(EXAMPLES) == {identity.name for identity in (*identities, elimination, inversion)}


@pytest.mark.parametrize(
    "identity", (*identities, elimination, inversion), ids=lambda identity: identity.name
)
def test_both_sides_are_equal(identity):
    for before in EXAMPLES[identity.name]:
        after = identity.rewrite(before, facts)
        assert after is not None and after != before, f"{identity.name} does not act on {before}"
        axes = D.in_order(axes_of(before))
        for seed in range(5):
            numbers = Numbers(SIZES, seed, facts.relations.values, {"i": C})
            sides = numbers.entries(before, axes), numbers.entries(after, axes)
            assert all(map(close, *sides)), (before, after)


@pytest.mark.parametrize("identity", identities, ids=lambda identity: identity.name)
def test_identities_leave_other_things_alone(identity):
    merged, split = Flatten(a, N, C, into=F), Unflatten.over(f, [F], [N, C])
    for e in (a, c, Sum.over(a * b, [N]), hot * a, merged, split, Sum.over(split, [N])):
        assert identity.rewrite(e, facts) is None


@pytest.mark.parametrize(
    "identity", (*identities, elimination, inversion), ids=lambda identity: identity.name
)
def test_what_does_not_fulfil_the_condition_is_left_alone(identity):
    for e in OTHERS.get(identity.name, []):
        assert identity.rewrite(e, facts) is None, e


def test_only_what_may_sum_to_zero_is_searched_for_a_fact(monkeypatch):
    class Sums(Forward):
        x = Input(N, C)
        weight = Input(C, K)
        bias = Input(C)
        own = Input(K)
        centred = x - Sum(x, N) / N
        biased = Sum(x * bias, C) * x + bias  # the bias is read elsewhere too
        linear = Sum(x * weight, C) + own
        above = 1 + x**2
        y = centred * biased * above * Sum(linear, K)

    looked, search = [], Facts.fact
    monkeypatch.setattr(Facts, "fact", lambda own, node: looked.append(node) or search(own, node))
    definition = Sums.definition
    known = Facts(relations_of(definition))
    found = {s.name: known.centred_along(s.tensor) for s in definition.statements}
    assert [name for name, axes in found.items() if axes] == ["centred"]
    assert {str(node.operand) for node in looked} >= {"centred", "biased"}
    assert {str(node.operand) for node in looked}.isdisjoint({"linear", "above"})
