"""Likelihoods in the words of their papers, beside torch typed by hand, proved for every size."""

import math

import pytest
import torch
from generating import assert_same_gradients, draw, generated
from torch import lgamma

from derive.proof.proving.proof import Proved

HEAD = """
from sympy import Abs, Rational, beta, exp, factorial, gamma, log, loggamma, pi
from gradform import Axis, Forward, Given, Input, Max, Min, Scalar, Sum

N, C = Axis("N"), Axis("C")


class Likelihood(Forward):
    \"\"\"Minus the logarithm of one.\"\"\"

"""
EVIDENTIAL = """
    y = Given(N)
    gamma_ = Input(N)
    nu = Input(N)
    alpha = Input(N)
    beta_ = Input(N)
    weight = Scalar(0.01)
    omega = 2 * beta_ * (1 + nu)
    spread = (y - gamma_) ** 2 * nu + omega
    of_gamma = log(gamma(alpha)) - log(gamma(alpha + Rational(1, 2)))
    nll = log(pi / nu) / 2 - alpha * log(omega) + (alpha + Rational(1, 2)) * log(spread) + of_gamma
    evidence = Abs(y - gamma_) * (2 * nu + alpha)
    loss = Sum(nll + weight * evidence, N) / N
"""
STUDENT_T = """
    y = Given(N)
    mu = Input(N)
    sigma = Input(N)
    nu = Input(N)
    z = (y - mu) / sigma
    scale = log(gamma((nu + 1) / 2)) - log(gamma(nu / 2)) - log(nu * pi * sigma**2) / 2
    loss = -Sum(scale - (nu + 1) / 2 * log(1 + z**2 / nu), N)
"""
BETA = """
    p = Given(N)
    a = Input(N)
    b = Input(N)
    loss = -Sum((a - 1) * log(p) + (b - 1) * log(1 - p) - log(beta(a, b)), N)
"""
NEGATIVE_BINOMIAL = """
    k = Given(N)
    mu = Input(N)
    r = Input(N)
    chosen = log(gamma(k + r)) - log(factorial(k)) - log(gamma(r))
    loss = -Sum(chosen + r * log(r / (r + mu)) + k * log(mu / (r + mu)), N) / N
"""
POISSON = """
    k = Given(N)
    rate = Input(N)
    loss = Sum(rate - k * log(rate) + log(factorial(k)), N) / N
"""
DIRICHLET = """
    p = Given(N, C)
    alpha = Input(N, C)
    normalizer = Sum(loggamma(alpha), C) - loggamma(Sum(alpha, C))
    loss = -Sum(Sum((alpha - 1) * log(p), C) - normalizer, N) / N
"""
CLIPPED = """
    logp = Input(N)
    logp_old = Given(N)
    advantage = Given(N)
    clip = Scalar(0.2, above=0)
    weight = Scalar(0.1)
    ratio = exp(logp - logp_old)
    clipped = Min(Max(ratio, 1 - clip), 1 + clip)
    surrogate = Min(ratio * advantage, clipped * advantage)
    divergence = ratio - 1 - (logp - logp_old)
    loss = Sum(weight * divergence - surrogate, N) / N
"""


def evidential(y, mu, nu, alpha, beta):
    omega = 2 * beta * (1 + nu)
    nll = (math.pi / nu).log() / 2 - alpha * omega.log() + lgamma(alpha) - lgamma(alpha + 0.5)
    nll = nll + (alpha + 0.5) * ((y - mu) ** 2 * nu + omega).log()
    return (nll + 0.01 * (y - mu).abs() * (2 * nu + alpha)).mean()


def student_t(y, mu, sigma, nu):
    scale = lgamma((nu + 1) / 2) - lgamma(nu / 2) - nu.log() / 2 - math.log(math.pi) / 2
    tail = torch.log1p(((y - mu) / sigma) ** 2 / nu)
    return -(scale - sigma.log() - (nu + 1) / 2 * tail).sum()


def beta(p, a, b):
    normalizer = lgamma(a) + lgamma(b) - lgamma(a + b)
    return -((a - 1) * p.log() + (b - 1) * torch.log1p(-p) - normalizer).sum()


def negative_binomial(k, mu, r):
    chosen = lgamma(k + r) - lgamma(k + 1) - lgamma(r)
    return -(chosen + r * (r.log() - (r + mu).log()) + k * (mu.log() - (r + mu).log())).mean()


def poisson(k, rate):
    return (rate - k * rate.log() + lgamma(k + 1)).mean()


def dirichlet(p, alpha):
    normalizer = lgamma(alpha).sum(1) - lgamma(alpha.sum(1))
    return -(((alpha - 1) * p.log()).sum(1) - normalizer).mean()


def clipped(logp, old, advantage):
    ratio = (logp - old).exp()
    surrogate = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
    return -(surrogate - (ratio - 1 - (logp - old)) / 10).mean()


positive, counts = "positive", "counts"
LIKELIHOODS = {
    "evidential": (EVIDENTIAL, evidential, ["any", "any", positive, positive, positive]),
    "student t": (STUDENT_T, student_t, ["any", "any", positive, positive]),
    "beta": (BETA, beta, ["share", positive, positive]),
    "negative binomial": (NEGATIVE_BINOMIAL, negative_binomial, [counts, positive, positive]),
    "poisson": (POISSON, poisson, [counts, positive]),
    "dirichlet": (DIRICHLET, dirichlet, ["share", positive]),
    "clipped ratio": (CLIPPED, clipped, ["any", "any", "any"]),
}
DRAWN = {
    "any": lambda t: t,
    "positive": lambda t: t.abs() + 0.3,
    "share": lambda t: t.sigmoid(),
    "counts": lambda t: (3 * t.abs()).round(),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_a_likelihood_is_proved_for_every_size_and_is_torchs(name, tmp_path):
    lines, reference, kinds = LIKELIHOODS[name]
    file = tmp_path / "likelihood.py"
    file.write_text(HEAD + lines.strip("\n") + "\n")
    function, _, result = generated(file, tmp_path)
    assert isinstance(result.proved, Proved) and result.proved.every_size
    shape = (6, 3) if name == "dirichlet" else (6,)
    drawn = (draw(*shape, seed=i) for i in range(len(kinds)))
    tensors = [DRAWN[kind](t) for kind, t in zip(kinds, drawn, strict=True)]
    given = [
        t
        for t, kind in zip(tensors, result.proved.definition.inputs, strict=True)
        if kind.role == "given"
    ]

    def beside_given(function):
        """``function`` of the others alone; the reference needs no gradient of what is given."""
        return lambda *others: function(*placed(others))

    def placed(others):
        left, fixed = iter(others), iter(given)
        roles = (t.role for t in result.proved.definition.inputs)
        return [next(fixed if role == "given" else left) for role in roles]

    others = [t for t in tensors if not any(t is g for g in given)]
    assert_same_gradients(beside_given(function), beside_given(reference), *others)
