"""The closed forms of textbook forwards are as good as the best written by hand: counted.

The forwards are a user's own: nothing of them stands outside of this file.
"""

from functools import cache

import pytest
import torch
from generating import module_from
from sympy import Abs, Piecewise, Rational, cosh, erf, exp, log, sqrt, tanh

from codegen.driver.lean import generate
from derive import Axis, Forward, Input, Label, Max, OneHot, Scalar, Sum
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.gradient.closing.cost import outermost_reductions
from derive.gradient.closing.factoring import factored
from derive.gradient.closing.risks import divisors
from derive.language.operations import is_contraction
from derive.language.symbols import Tensor, axes_of, tensors_in

N, C, K, H, D = Axis("N"), Axis("C"), Axis("K"), Axis("H"), Axis("D")


class Softmax(Forward):
    x = Input(N, C)
    e = exp(x - Max(x, C))
    p = e / Sum(e, C)


class LogSoftmax(Forward):
    x = Input(N, C)
    z = x - Max(x, C)
    y = z - log(Sum(exp(z), C))


class LogSumExp(Forward):
    x = Input(N, C)
    m = Max(x, C)
    y = m + log(Sum(exp(x - m), C))


class FromProbabilities(Forward):
    logits = Input(N, C)
    labels = Label(N)
    e = exp(logits - Max(logits, C))
    probs = e / Sum(e, C)
    loss = -Sum(OneHot(labels, C) * log(probs), N, C) / N


class FromLogits(Forward):
    logits = Input(N, C)
    labels = Label(N)
    zloss = Scalar(1e-4)
    m = Max(logits, C)
    lse = m + log(Sum(exp(logits - m), C))
    loss = Sum(lse - Sum(OneHot(labels, C) * logits, C) + zloss * lse**2, N) / N


class Full(Forward):
    logits = Input(N, C)
    labels = Label(N)
    weight = Input(C)
    smoothing = Scalar(0.1)
    cap = Scalar(30)
    zloss = Scalar(1e-4)
    z = cap * tanh(logits / cap)
    m = Max(z, C)
    lse = m + log(Sum(exp(z - m), C))
    target = (1 - smoothing) * OneHot(labels, C) + smoothing / C
    row = -Sum(weight * target * (z - lse), C)
    total = Sum(OneHot(labels, C) * weight, N, C)
    loss = Sum(row, N) / total + zloss * Sum(lse**2, N) / N


class LayerNorm(Forward):
    x = Input(N, C)
    gain = Input(C)
    bias = Input(C)
    eps = Scalar(1e-5)
    mean = Sum(x, C) / C
    inv_std = 1 / sqrt(Sum((x - mean) ** 2, C) / C + eps)
    xhat = (x - mean) * inv_std
    y = gain * xhat + bias


class RMSNorm(Forward):
    x = Input(N, C)
    gain = Input(C)
    eps = Scalar(1e-5)
    inv_rms = 1 / sqrt(Sum(x**2, C) / C + eps)
    xhat = x * inv_rms
    y = gain * xhat


class InstanceNorm(Forward):
    """Over the axis D, with a gain for every entry of C: what both sums need is summed once."""

    x = Input(N, C, D)
    gain = Input(C)
    bias = Input(C)
    mean = Sum(x, D) / D
    diff = x - mean
    inv_std = 1 / sqrt(Sum(diff**2, D) / D + Rational(1, 10**5))
    xhat = diff * inv_std
    y = gain * xhat + bias


class WeightNorm(Forward):
    v = Input(N, C)
    g = Input(N)
    w = g * v / sqrt(Sum(v**2, C))


class Sigmoid(Forward):
    x = Input(N)
    y = 1 / (1 + exp(-x))


class Softplus(Forward):
    x = Input(N)
    y = log(1 + exp(x))


class Silu(Forward):
    x = Input(N)
    y = x / (1 + exp(-x))


class SwiGLU(Forward):
    a = Input(N)
    b = Input(N)
    gate = a / (1 + exp(-a))
    y = gate * b


class GeluErf(Forward):
    x = Input(N)
    y = x * (1 + erf(x / sqrt(2))) / 2


class MSE(Forward):
    x = Input(N)
    t = Input(N)
    loss = Sum((x - t) ** 2, N) / N


class SmoothL1(Forward):
    x = Input(N)
    t = Input(N)
    beta = Scalar(1.0)
    r = x - t
    each = Piecewise((r**2 / (2 * beta), Abs(r) < beta), (Abs(r) - beta / 2, True))
    loss = Sum(each, N) / N


class LogCosh(Forward):
    x = Input(N)
    t = Input(N)
    loss = Sum(log(cosh(x - t)), N) / N


class FromLogProbabilities(Forward):
    logits = Input(N, C)
    labels = Label(N)
    z = logits - Max(logits, C)
    logprobs = z - log(Sum(exp(z), C))
    loss = -Sum(OneHot(labels, C) * logprobs, N, C) / N


class Clamped(Forward):
    x = Input(N)
    t = Input(N)
    most = Scalar(4)
    miss = x - t
    error = miss**2
    loss = Sum(Piecewise((error, error <= most), (most, True)), N) / N


class JSDiv(Forward):
    p = Input(N, C)
    q = Input(N, C)
    m = (p + q) / 2
    loss = Sum(p * log(p / m) + q * log(q / m), N, C) / (2 * N)


class Cosine(Forward):
    a = Input(N, C)
    b = Input(N, C)
    t = Input(N)
    margin = Scalar(0.1)
    eps = Scalar(1e-8)
    cos = Sum(a * b, C) / sqrt((Sum(a**2, C) + eps) * (Sum(b**2, C) + eps))
    each = Piecewise((1 - cos, t > 0), (cos - margin, cos > margin), (0, True))
    loss = Sum(each, N) / N


class Normalized(Forward):
    x = Input(N, C)
    eps = Scalar(1e-12)
    norm = sqrt(Sum(x**2, C))
    y = x / Piecewise((norm, norm > eps), (eps, True))


class Gate(Forward):
    x = Input(N, K)
    h = Input(N, D)
    W = Input(K, H)
    U = Input(D, H)
    b = Input(H)
    g = 1 / (1 + exp(-(Sum(x * W, K) + Sum(h * U, D) + b)))
    y = g * tanh(g)


FORWARDS = {
    f.__name__: f for f in list(vars().values()) if isinstance(f, type) and f is not Forward
}
FORWARDS = {name: f for name, f in FORWARDS.items() if issubclass(f, Forward)}


@pytest.fixture(scope="module")
def made():
    """What is generated of a forward above, by its name."""
    return cache(lambda name: generate(FORWARDS[name]))


@pytest.fixture(scope="module")
def form():
    known = {}

    def closed(name):
        if name not in known:
            known[name] = close(derive_chain(FORWARDS[name].definition))
        return known[name]

    return closed


EXACT = {
    "Softmax": ["dx = p*(dp - Sum(dp*p, C))"],
    "LogSoftmax": ["dx = dy - exp(y)*Sum(dy, C)"],
    "LogSumExp": ["dx = dy*exp(x - y)"],
    "FromProbabilities": ["dlogits = dloss*(probs - OneHot(labels, C))/N"],
    "FromLogits": [
        "dlse = dloss*(2*lse*zloss + 1)/N",
        "dlogits = dlse*exp(logits - lse) - dloss*OneHot(labels, C)/N",
    ],
    "LayerNorm": [
        "dgain = Sum(dy*xhat, N)",
        "dbias = Sum(dy, N)",
        "dxhat = dy*gain",
        "dx = inv_std*(dxhat - xhat*Sum(dxhat*xhat, C)/C - Sum(dxhat, C)/C)",
    ],
    "RMSNorm": [
        "dgain = Sum(dy*inv_rms*x, N)",
        "dxhat = dy*gain",
        "dx = inv_rms*(dxhat - inv_rms**2*x*Sum(dxhat*x, C)/C)",
    ],
    "Sigmoid": ["dx = dy*y*(1 - y)"],
    "Softplus": ["dx = dy/(1 + exp(-x))"],
    "Silu": [
        "sigmoid_x = 1/(1 + exp(-x))",
        "dx = dy*sigmoid_x*(x*(1 - sigmoid_x) + 1)",
    ],
    "MSE": ["dx = 2*dloss*(-t + x)/N", "dt = -dx"],
    "LogCosh": ["dt = dloss*tanh(t - x)/N", "dx = -dt"],
    "JSDiv": [
        "dp = dloss*log(2*p/(p + q))/(2*N)",
        "dq = dloss*log(2*q/(p + q))/(2*N)",
    ],
}


@pytest.mark.parametrize("name", EXACT)
def test_the_closed_form_is_the_textbooks(name, form):
    assert sorted(str(form(name)).split("\n")) == sorted(EXACT[name])


def full_size(form):
    """How many axes the largest tensor has."""
    return max(len(t.home) for t in form.definition.differentiable)


def largest_read(form):
    """The tensors of full size that the backward reads of the forward, the labels apart."""
    return {t.name for t in form.saved if len(t.home) == full_size(form) and t.role != "label"}


def largest_saved(form):
    """Those of them that the forward writes for the backward: no input, and not the output."""
    free = {t.name for t in form.definition.inputs} | {form.definition.output.name}
    return largest_read(form) - free


def reductions(form):
    """How many sums and maxima are taken of what is as large as the largest tensor."""
    found = {n for s in form.statements for n in outermost_reductions(s.expression)}
    return sum(len(axes_of(n.operand)) >= full_size(form) for n in found)


#                      read, saved, reductions: not more than by the best known formula
COUNTS = {
    "Softmax": (1, 0, 1),
    "LogSoftmax": (1, 0, 1),
    "LogSumExp": (1, 0, 0),
    "FromProbabilities": (1, 1, 0),
    "FromLogits": (1, 0, 0),
    "FromLogProbabilities": (1, 0, 0),
    "Clamped": (2, 0, 0),
    "Full": (1, 1, 3),
    "LayerNorm": (1, 1, 4),
    "RMSNorm": (1, 0, 2),
    "WeightNorm": (1, 0, 1),
    "InstanceNorm": (1, 1, 2),
    "Sigmoid": (1, 0, 0),
    "Softplus": (1, 0, 0),
    "Silu": (2, 0, 0),
    "SwiGLU": (2, 0, 0),
    "GeluErf": (1, 0, 0),
    "MSE": (2, 0, 0),
    "SmoothL1": (2, 0, 0),
    "LogCosh": (2, 0, 0),
    "JSDiv": (2, 0, 0),
    "Cosine": (2, 0, 0),
}


@pytest.mark.parametrize("name", COUNTS)
def test_no_more_is_read_saved_and_summed_than_by_hand(name, form):
    read, saved, sums = COUNTS[name]
    assert len(largest_read(form(name))) <= read, form(name)
    assert len(largest_saved(form(name))) <= saved, form(name)
    assert reductions(form(name)) <= sums, form(name)


@pytest.mark.parametrize("name", FORWARDS)
def test_every_closed_form_is_proved_for_every_size(name, made):
    assert made(name).proved.every_size


@pytest.mark.parametrize("name", [name for name in FORWARDS if name != "Normalized"])
def test_nothing_new_is_divided_by(name, form):
    """But what is at least 1: one and an exponential."""
    relations, closed = form(name).relations, form(name)
    again = {t: closed.by_name[t.name].expression for t in closed.again}
    for statement in closed.statements:
        new = (d for d in divisors(statement.expression) if not (d - 1).is_positive)
        found = {relations.with_values(d.xreplace(again)).primitive()[1] for d in new}
        assert found <= relations.divisors, statement


def test_a_choice_is_made_once(form):
    for name in ("SmoothL1", "Cosine"):
        choices = [n for s in form(name).statements for n in s.expression.atoms(Piecewise)]
        assert len(choices) == 1, form(name)


def test_what_follows_from_an_argument_is_not_saved(form):
    """The sigmoid of the gate is computed once, from the gate."""
    assert {t.name for t in form("SwiGLU").saved} == {"a", "b"}
    assert str(form("SwiGLU")).count("exp(") == 1


def test_what_several_matrix_products_read_is_computed_once(form):
    statements = {s.tensor.name: s.expression for s in form("Gate").statements}
    assert "dterms_in_g" in statements
    products = [n for e in statements.values() for n in e.atoms(Sum) if is_contraction(n)]
    assert len(products) == 4
    for node in products:
        assert len(node.operand.args) == 2
        assert {t.name for t in tensors_in(node)} & {"dterms_in_g"}


def test_what_is_large_is_multiplied_once():
    """Although more terms have w in common than p."""
    p, w, t = (Tensor(name, axes) for name, axes in (("p", (N, C)), ("w", (N,)), ("t", (N,))))
    a, k = Tensor("a", (), role="scalar"), Tensor("k", (C,))
    sum_of_products = w * p - a * w * p + a * t * p - w * k + a * w * k
    assert factored(sum_of_products) == p * (w * (1 - a) + a * t) - w * k + a * w * k


def test_a_centred_difference_is_not_computed_again(form):
    """x - mean costs less to read, and is off by the rounding of the mean."""
    assert "xhat" in {t.name for t in form("LayerNorm").saved}


def test_a_value_that_may_overflow_is_not_read(form):
    for name in ("Softplus", "Silu", "SwiGLU", "Sigmoid"):
        assert not any(map(form(name).relations.scales.overflows, form(name).saved))


def run(result, folder, value):
    """Output and gradients of the generated function in float32, with every input ``value``."""
    function = getattr(module_from(result.text, folder, result.program.name), result.program.name)
    inputs = [
        torch.zeros([3] * len(t.home), dtype=torch.int64)
        if t.role == "label"
        else torch.full([3] * len(t.home), value).requires_grad_()
        for t in result.proved.definition.inputs
    ]
    output = function(*inputs)
    return output, torch.autograd.grad(output.sum(), [t for t in inputs if t.requires_grad])


@pytest.mark.parametrize("value", [0.0, 200.0, -200.0])
@pytest.mark.parametrize("name", FORWARDS)
def test_where_the_forward_is_finite_so_are_the_gradients(name, value, made, tmp_path):
    output, gradients = run(made(name), tmp_path, value)
    assert not output.isfinite().all() or all(g.isfinite().all() for g in gradients)


def test_where_a_choice_is_zero_nothing_is_divided(form):
    (dx,) = form("Normalized").statements
    assert "Piecewise((-1/norm**3, eps < norm), (0, True))" in str(dx)
