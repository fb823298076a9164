"""A check says "right" only for what is right at every size that was tried, exactly."""

from __future__ import annotations

from itertools import pairwise

import pytest
from sympy import exp, isprime, log, sqrt

import derive
from derive import Axis, Forward, Input, Label, OneHot, Scalar, Sum
from derive.claims.checking import judging as checking
from derive.claims.checking.check import _target
from derive.claims.checking.ground import ground_of
from derive.claims.checking.numbers.comparison import GradientQuestion
from derive.claims.checking.numbers.fields import PRIMES
from derive.claims.checking.numbers.further import ExactAgreement, agreement
from derive.claims.reading import read

N, C = Axis("N"), Axis("C")


class Squares(Forward):
    x = Input(N, C)

    y = x**2


class Fit(Forward):
    """The mean of a square, of a product and of an exponential."""

    x = Input(N, C)
    t = Input(N, C)

    loss = Sum((x - t) ** 2, N, C) / (N * C)


class Scaled(Forward):
    """Rows divided by their length."""

    x = Input(N, C)
    eps = Scalar(1e-5)

    length = sqrt(Sum(x**2, C) + eps)
    y = x / length


class Likelihood(Forward):
    logits = Input(N, C)
    labels = Label(N)

    probs = exp(logits) / Sum(exp(logits), C)
    loss = -Sum(OneHot(labels, C) * log(probs), N, C) / N


class Normalised(Forward):
    """A softmax by way of its logarithm."""

    x = Input(N, C)

    total = log(Sum(exp(x), C))
    y = exp(x - total)


RIGHT = {
    Squares: "2*x*dy",
    Fit: "2*dloss*(x - t)/(N*C)",
    Scaled: "(dy - y*(dy*y).sum(1, keepdim=True))/length",
    Likelihood: "dloss*(probs - F.one_hot(labels, C))/N",
}
# Factors that are 1 at the sizes 2, 3 and 4, or for some data, or on some of the diagonals.
HIDDEN = {
    Squares: [
        "(1 + (N-2)*(N-3)*(N-4)*(C-2)*(C-3)*(C-4))",
        "(1 + (N-2)*(N-3)*(N-4))",
        "(1 + (C-2)*(C-3)*(C-4)/1000000)",
        "(1 + (N-1)*(N-2)*(N-3)*(N-4)*(N-5)*(N-6)*(N-7)*(N-8)*(N-9)*(N-10)*(N-11)*(N-12))",
        "(1 + (N-2)*(N-3)*(N-4)*(N-C))",
        "(N < 50)",
        "(N <= 50)",
        "(C < 37)",
        "(N > 1)",
        "(C >= 2)",
        "(N != C)",
        "(1 - 0**((N - C)**2))",
        "(N != 7)",
        "(N != 60)",
        "(N*C < 200)",
        "(N + C < 90)",
        "(N**2 < 2500)",
        "(N < C + 30)",
        "torch.where(N < 64, 1, 2)",
        "torch.sign(51 - N)",
        "(51 - N)/abs(51 - N)",
        "(1 + F.relu(N - 40))",
        "torch.where((N - 20)*(N - 30) > 0, 1, 0)",
        "torch.where((N > 5) & (C > 5), 2, 1)",
        "torch.where(x < 0, 3, 1)",
        "(1 + 1e-30)",
        "(N < 2*C + 3)",
    ],
    Fit: ["(N < 50)", "(1 + (N-2)*(N-3)*(N-4))", "(N*C)/(N*C + (N-2)*(N-3)*(N-4)*(C-2))"],
    Scaled: ["(N < 20)", "(1 + (C-2)*(C-3)*(C-4))"],
    Likelihood: ["(N < 50)", "(1 + (N-2)*(N-3)*(N-4)*(C-2))"],
}
CASES = [(forward, factor) for forward, factors in HIDDEN.items() for factor in factors]


@pytest.mark.parametrize(("forward", "factor"), CASES, ids=str)
def test_what_is_wrong_in_a_hidden_way_is_refuted(forward, factor):
    verdict = derive.check(forward, f"({RIGHT[forward]})*{factor}")
    assert verdict.right is False and verdict.status == 1, verdict
    assert verdict.first_wrong.refutation.counterexample is not None


@pytest.mark.parametrize("term", ["(N-2)*(N-3)*(N-4)", "torch.where(N == 77, 1, 0)"])
def test_a_term_that_is_zero_for_three_batches(term):
    verdict = derive.check(Squares, f"2*x*dy + {term}")
    assert verdict.right is False, verdict


def test_what_differs_for_data_that_nobody_draws_is_not_right():
    assert derive.check(Squares, "2*x*dy*torch.where(x > -40, 1, 2)").right is not True


def test_the_counterexample_stands_where_the_comparison_changes():
    verdict = derive.check(Squares, "2*x*dy*(N < 50)")
    found = verdict.first_wrong.refutation.counterexample
    assert dict(found.point.sizes)["N"] == 50 and (found.expected, found.got) == (2, 0)
    assert "but not at N = 50, C = 1" in str(verdict) and "(49 times)" in str(verdict)


def test_a_size_that_is_too_large_to_try_leaves_it_undecided():
    verdict = derive.check(Squares, "2*x*dy*(N < 10**7)")
    assert verdict.right is None and verdict.status == 1
    assert "agrees at three small batches" in str(verdict) and "too large to try" in str(verdict)


@pytest.fixture
def without_the_proof_for_every_size(monkeypatch):
    monkeypatch.setattr("derive.proof.proving.claim.holds_for_every_size", lambda *_: False)


@pytest.mark.parametrize("forward", [Squares, Fit, Likelihood], ids=str)
def test_what_agrees_exactly_at_further_sizes_is_right_and_says_so(
    forward, without_the_proof_for_every_size
):
    verdict = derive.check(forward, RIGHT[forward])
    (answer,) = verdict.answers
    assert verdict.right and verdict.status == 0 and not answer.proved.every_size
    for axis in "NC":
        tried = {dict(sizes)[axis] for sizes in answer.agreement.sizes}
        assert {1, *range(5, 13)} <= tried and max(tried) > 40
    assert "agrees exactly at sizes NxC = 1x1" in str(verdict)
    assert "not proved for every size" in str(verdict)
    assert verdict.as_json()["gradients"][0]["further"]["exact"] is True


def test_without_an_exact_agreement_three_batches_are_no_answer(
    without_the_proof_for_every_size, monkeypatch
):
    unknown = ExactAgreement((), None, "N = 5: a root that is not in the field")
    monkeypatch.setattr(checking, "agreement", lambda *_: unknown)
    verdict = derive.check(Squares, "2*x*dy")
    assert verdict.right is None and verdict.status == 1
    assert "undecided" in str(verdict) and "agrees at three small batches" in str(verdict)
    assert "not in the field" in str(verdict)


# Exact arithmetic modulo primes: formulas that are equal are, and others are not.

EQUAL = [
    (Normalised, "x.softmax(1)*(dy - (dy*x.softmax(1)).sum(1, True))"),
    (Likelihood, "dloss*(logits.softmax(1) - F.one_hot(labels, C))/N"),
    (Likelihood, "dloss*(F.log_softmax(logits, 1).exp() - F.one_hot(labels, C))/N"),
    (Likelihood, "dloss*((logits - logits.logsumexp(1, True)).exp() - F.one_hot(labels, C))/N"),
    (Likelihood, "dloss*((logits - logits.amax(1, True)).softmax(1) - F.one_hot(labels, C))/N"),
    (Scaled, "(dy - x*(dy*x).sum(1, True)/length**2)*((x**2).sum(1, True) + eps)**-0.5"),
    (Scaled, "dy/length - x*(dy*x).sum(1, True)*(4*length**2)**-1.5*8"),
    (Squares, "dy*torch.sqrt(4*x**2)*torch.sign(x)"),
    (Squares, "x*dy*(torch.sin(x)**2 + torch.cos(x)**2)*2"),
    (Squares, "x*dy*(1 + torch.tanh(x))*(1 + torch.exp(-2*x))"),
    (Squares, "x*dy*(torch.cosh(x)**2 - torch.sinh(x)**2)*2"),
    (Squares, "2*x*dy*torch.log(2*x.exp())/(x + torch.log(1 + 0*x + 1))"),
]
UNEQUAL = [
    (Normalised, "x.softmax(1)*(dy - (dy*x.softmax(0)).sum(1, True))"),
    (Squares, "2*dy*torch.sqrt(x**2)"),
    (Squares, "2*x*dy*(1 + 1e-45)"),
    (Squares, "x*dy*(torch.sin(x)**2 + torch.cos(2*x)**2)*2"),
    (Likelihood, "dloss*((2*logits).softmax(1) - F.one_hot(labels, C))/N"),
]


def compared(forward, text: str) -> ExactAgreement:
    definition = forward.definition
    reading = read(text, definition, _target(definition, None))
    (claim,) = reading.claims
    return agreement(GradientQuestion(ground_of(reading.definition).chain, claim.of, claim.actual))


@pytest.mark.parametrize(("forward", "text"), EQUAL, ids=str)
def test_equal_formulas_agree_exactly(forward, text, monkeypatch):
    few(monkeypatch)
    assert compared(forward, text).is_exact, compared(forward, text)


@pytest.mark.parametrize(("forward", "text"), UNEQUAL, ids=str)
def test_unequal_formulas_do_not(forward, text, monkeypatch):
    few(monkeypatch)
    assert not compared(forward, text).is_exact


def few(monkeypatch) -> None:
    monkeypatch.setattr("derive.claims.checking.numbers.further.UNLIKE", (1, 5))
    monkeypatch.setattr("derive.claims.checking.numbers.further.LARGE", ((7, 9),))


def test_the_primes_are_prime_and_each_is_twice_the_next_and_one():
    assert all(map(isprime, PRIMES))
    assert all(p == 2 * q + 1 for p, q in pairwise(PRIMES))
    assert PRIMES[0] > 2**60 and all(p % 4 == 3 for p in PRIMES)
