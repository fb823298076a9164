"""Forwards that once came out wrong, refused or fragile; each with a reference typed by hand."""

import time

import pytest
import sympy
import torch
import torch.nn.functional as F
from generating import assert_same_gradients, draw, forward_file, generated
from long_forwards import LONG, chain
from sampling import every
from sympy import Dummy, IndexedBase, Symbol, tanh

from derive import forward_from
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.proof.proving.contraction import vanishes
from derive.proof.proving.proof import prove


def huber(x, t):
    return F.huber_loss(x, t)


def dice_of_classes(z, i):
    p, t = z.softmax(1), F.one_hot(i, z.shape[1]).mT
    return 1 - (2 * (p * t).sum(2) / (p + t).sum(2)).mean()


def sigmoid_loss(x, z):
    sign = 2 * torch.eye(len(x), dtype=x.dtype) - 1
    return -F.logsigmoid(sign * (2 * x @ z.mT - 1)).sum() / len(x)


def weighted_batch_norm(x, w, gain, bias):
    p = (w / w.sum())[:, None]
    diff = x - (p * x).sum(0)
    var = (p * diff**2).sum(0) / (1 - (p**2).sum())
    return gain * diff / (var + 0.1).sqrt() + bias


def student_t(z, mu, t):
    q = (1 + (z[:, None] - mu).square().sum(2) / 3) ** -2
    return (t * (t / (q / q.sum(1, keepdim=True))).log()).sum()


def focal_tversky(x, t):
    p = x.softmax(1)
    hit, missed, wrong = (p * t).sum(0), ((1 - p) * t).sum(0), (p * (1 - t)).sum(0)
    return ((1 - (hit + 1) / (hit + 0.7 * missed + 0.3 * wrong + 1)) ** 0.75).mean()


def sinkhorn(x):
    y = x.exp()
    for _ in range(3):
        y = y / y.sum(1, keepdim=True)
        y = y / y.sum(0)
    return y


def gate(x, z):
    return torch.tanh(x) * torch.softmax(z, 1)


CASES = {
    "NegativeHalfPower": (
        "    x = Input(N, C)\n    p = Scalar(0.5)\n    y = x * (C + 1) ** (-p / 2)\n",
        lambda x: x * (x.shape[1] + 1) ** (-0.25),
        [draw(4, 3)],
    ),
    "LeakyRelu": (
        "    x = Input(N)\n    slope = Scalar(0.01)\n"
        "    y = Piecewise((x, x >= 0), (slope * x, True))\n",
        lambda x: F.leaky_relu(x, 0.01),
        [draw(9)],
    ),
    "HuberLoss": (
        "    x = Input(N)\n    t = Input(N)\n    delta = Scalar(1.0)\n    d = x - t\n"
        "    a = Abs(d)\n"
        "    y = Sum(Piecewise((d**2 / 2, a <= delta), (delta * (a - delta / 2), True)), N) / N\n",
        huber,
        [2 * draw(9), draw(9, seed=5)],
    ),
    "Mask": (
        "    x = Input(N)\n    w = Input(N)\n    m = Piecewise((1, x > 0), (0, True))\n"
        "    y = w * m\n",
        lambda x, w: w * (x > 0) + 0 * x,
        [draw(9), draw(9, seed=5)],
    ),
    "Clip": (
        "    from sympy import Max as Larger\n    x = Input(N)\n"
        "    y = Min(Larger(x, 0), Rational(1, 2))\n",
        lambda x: x.clamp(0, 0.5),
        [draw(9)],
    ),
    "DiceOfClasses": (  # a label with an axis more than what it picks from
        "    z = Input(N, C, K)\n    i = Label(N, K)\n    p = exp(z) / Sum(exp(z), C)\n"
        "    overlap = Sum(p * OneHot(i, C), K)\n    size = Sum(p + OneHot(i, C), K)\n"
        "    loss = 1 - Sum(2 * overlap / size, N, C) / (N * C)\n",
        dice_of_classes,
        [draw(3, 4, 2), torch.tensor([[0, 3], [1, 1], [2, 0]])],
    ),
    "NestedMax": (
        "    x = Input(N, H, K)\n    y = Max(Max(x, K), H)\n",
        lambda x: x.flatten(1).max(1).values,
        [draw(4, 3, 5)],
    ),
    "StandardDeviation": (
        "    x = Input(N, C)\n    gain = Input(C)\n    mean = Sum(x, N) / N\n    diff = x - mean\n"
        "    std = sqrt(Sum(diff**2, N) / (N - 1) + Rational(1, 10))\n    xhat = diff / std\n"
        "    y = gain * xhat\n",
        lambda x, g: g * (x - x.mean(0)) / (x.var(0) + 0.1).sqrt(),
        [draw(6, 4), draw(4, seed=5)],
    ),
    "ThreeMatrices": (
        "    a = Input(N, C)\n    b = Input(C, D)\n    c = Input(D, K)\n"
        "    y = Sum(a * b * c, C, D)\n",
        lambda a, b, c: a @ b @ c,
        [draw(4, 3), draw(3, 5, seed=5), draw(5, 2, seed=6)],
    ),
    "Images": (
        "    x = Input(N, C, H)\n    gain = Input(C)\n    n = N * H\n"
        "    mean = Sum(x, N, H) / n\n    diff = x - mean\n    var = Sum(diff**2, N, H) / n\n"
        "    xhat = diff / sqrt(var + Rational(1, 100))\n    y = xhat\n",
        lambda x, gain: F.batch_norm(x, None, None, training=True, eps=0.01) + 0 * gain.sum(),
        [draw(3, 2, 4), draw(2, seed=5)],
    ),
    "UnusedLabel": (
        "    a = Input(N)\n    i = Label(N)\n    y = Sum(a**2, N)\n",
        lambda a, i: (a**2).sum(),
        [draw(5), torch.tensor([0, 1, 2, 0, 1])],
    ),
    "SigmoidLoss": (  # Zhai et al. 2023; the sign is a choice in an exponent
        "    x = Input(N, D)\n    z = Input(N, D)\n    t = Scalar(2.0)\n"
        "    logits = t * Sum(x * Rename(z, N, K), D) - 1\n"
        "    sign = Piecewise((1, Eq(Position(N), Position(K))), (-1, True))\n"
        "    loss = -Sum(log(1 / (1 + exp(-sign * logits))), N, K) / N\n",
        sigmoid_loss,
        [draw(4, 3), draw(4, 3, seed=5)],
    ),
    "SigmoidLossInline": (
        "    x = Input(N, D)\n    z = Input(N, D)\n"
        "    logits = 2 * Sum(x * Rename(z, N, K), D) - 1\n"
        "    loss = Sum(log(1 + exp(-logits * Piecewise((1, Eq(Position(N), Position(K))),\n"
        "        (-1, True)))), N, K) / N\n",
        sigmoid_loss,
        [draw(4, 3), draw(4, 3, seed=5)],
    ),
    "RootOfAFunction": (
        "    x = Input(N, C)\n    y = sqrt(exp(tanh(Max(x, N))) + 1)\n",
        lambda x: (x.max(0).values.tanh().exp() + 1).sqrt(),
        [draw(4, 3)],
    ),
    "MaximumMetTwice": (  # one value, not two of which one has no definition
        "    x = Input(N, C)\n    y = exp(Abs(Max(x, C))) / (1 + exp(Abs(Max(x, C))))\n",
        lambda x: x.max(1).values.abs().sigmoid(),
        [draw(4, 3)],
    ),
    "SignedPower": (  # a sign has the gradient 0, as torch's
        "    from sympy import sign\n    x = Input(N)\n    y = Abs(x)**2*sign(x) + sign(x)*x\n",
        lambda x: x.abs() ** 2 * x.sign() + x.sign() * x,
        [draw(9)],
    ),
    "ThreeChoicesInAnExponent": (
        "    x = Input(N)\n    y = exp(Piecewise((x, x > 0), (x**2, x < -1), (-x, True)))\n",
        lambda x: torch.where(x > 0, x, torch.where(x < -1, x**2, -x)).exp(),
        [2 * draw(9)],
    ),
    "PowerOverAScalar": (
        "    x = Input(N, C)\n    t = Scalar(0.5)\n    w = 1 + x**2\n"
        "    y = w ** (1 / t) / Sum(w ** (1 / t), C)\n",
        lambda x: (1 + x**2) ** 2 / ((1 + x**2) ** 2).sum(1, keepdim=True),
        [draw(4, 3)],
    ),
}

# What no proof of the whole at once ends for, or none for every size.
LARGE = {
    "WeightedBatchNorm": (
        "    x = Input(N, C)\n    w = Input(N)\n    gain = Input(C)\n    bias = Input(C)\n"
        "    p = w / Sum(w, N)\n    mean = Sum(p * x, N)\n"
        "    var = Sum(p * (x - mean)**2, N) / (1 - Sum(p**2, N))\n"
        "    xhat = (x - mean) / sqrt(var + Rational(1, 10))\n    y = gain * xhat + bias\n",
        weighted_batch_norm,
        [draw(5, 3), draw(5, seed=2).abs() + 1, draw(3, seed=3), draw(3, seed=4)],
    ),
    "StudentT": (  # Xie, Girshick and Farhadi 2016: a soft assignment and what it should be
        "    z = Input(N, D)\n    mu = Input(K, D)\n    t = Input(N, K)\n"
        "    nu = Scalar(3.0, above=0)\n"
        "    squares = Sum((Broadcast(z, K) - Broadcast(mu, N))**2, D)\n"
        "    q = (1 + squares / nu) ** (-(nu + 1) / 2)\n    s = q / Sum(q, K)\n"
        "    loss = Sum(t * log(t / s), N, K)\n",
        student_t,
        [draw(5, 3), draw(4, 3, seed=2), draw(5, 4, seed=3).softmax(1)],
    ),
    "FocalTversky": (  # Abraham and Khan 2019
        "    x = Input(N, C)\n    t = Input(N, C)\n    a = Scalar(0.7, above=0)\n"
        "    b = Scalar(0.3, above=0)\n    g = Scalar(0.75, above=0)\n    e = exp(x)\n"
        "    p = e / Sum(e, C)\n    hit = Sum(p * t, N)\n    missed = Sum((1 - p) * t, N)\n"
        "    wrong = Sum(p * (1 - t), N)\n    index = (hit + 1) / (hit + a*missed + b*wrong + 1)\n"
        "    loss = Sum((1 - index) ** g, C) / C\n",
        focal_tversky,
        [draw(5, 3), draw(5, 3, seed=2).softmax(1)],
    ),
    "Sinkhorn": (  # Cuturi 2013, three steps
        LONG["Sinkhorn3"],
        sinkhorn,
        [draw(5, 3)],
    ),
    "CausalInOneLine": (  # the exponentials of the backward are those of what is masked
        "    x = Input(N, C)\n    v = Input(C, D)\n"
        "    y = Sum(v * Piecewise((exp(x), Position(C) <= Position(N)), (0, True))"
        " / Sum(Piecewise((exp(x), Position(C) <= Position(N)), (0, True)), C), C)\n",
        lambda x, v: x.masked_fill(torch.ones(5, 3).tril() == 0, -torch.inf).softmax(1) @ v,
        [draw(5, 3), draw(3, 2, seed=2)],
    ),
    "WeightedLogSumExp": (  # the weights are not known to be positive
        "    x = Input(N, C)\n    w = Input(C)\n    y = log(Sum(w**2 * exp(x), C))\n",
        lambda x, w: torch.log((w**2 * x.exp()).sum(1)),
        [draw(5, 3), draw(3, seed=2)],
    ),
}


@pytest.mark.parametrize("name", every(3, LARGE))
def test_large_ones_are_proved_statement_by_statement(name, tmp_path):
    body, reference, inputs = LARGE[name]
    function, _, result = generated(forward_file(tmp_path, name, body), tmp_path)
    assert result.proved.every_size
    assert_same_gradients(function, reference, *inputs)


def seconds_of_proving_a_chain(folder, length):
    """The time in which functions of functions, once they are derived, are proved."""
    file = forward_file(folder, f"Chain{length}", chain(length))
    form = close(derive_chain(forward_from(file).definition))
    begin = time.process_time()
    assert prove(form).every_size
    return time.process_time() - begin


def test_twice_the_length_is_proved_in_about_twice_the_time(tmp_path):
    """Nothing in it is written out to the inputs, which would double with each link: 8 times. In
    a long suite, a collection of garbage makes 3 times of 2.
    """
    short, long = (seconds_of_proving_a_chain(tmp_path, length) for length in (7, 14))
    assert long < 4 * short


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradients(name, tmp_path):
    body, reference, inputs = CASES[name]
    function, _, _ = generated(forward_file(tmp_path, name, body), tmp_path)
    assert_same_gradients(function, reference, *inputs)


def test_a_choice_in_an_exponent_does_not_overflow(tmp_path):
    body, reference, inputs = CASES["SigmoidLossInline"]
    function, _, _ = generated(forward_file(tmp_path, "Far", body), tmp_path)
    far = [1e3 * x for x in inputs]
    torch.testing.assert_close(function(*far), reference(*far))


def test_an_exponent_with_a_given_sign_and_named_values(tmp_path):
    body = """
    x = Input(N, C)
    a = Input()
    b = Input()
    sign = Given(N, C)
    logits = exp(a) * x + b
    loss = Sum(log(1 + exp(-sign * logits)), N, C)
"""
    function, _, _ = generated(forward_file(tmp_path, "GivenSign", body), tmp_path)
    sign = draw(4, 3, seed=5).sign()
    assert_same_gradients(
        lambda x, a, b: function(x, a, b, sign),
        lambda x, a, b: F.softplus(-sign * (a.exp() * x + b)).sum(),
        *(draw(4, 3), draw(1)[0], draw(2)[1]),
    )


def test_a_standard_deviation_gives_the_closed_form_of_its_inverse(tmp_path):
    body, *_ = CASES["StandardDeviation"]
    _, _, result = generated(forward_file(tmp_path, "StandardDeviation", body), tmp_path)
    assert {t.name for t in result.proved.closed_form.saved} == {"gain", "std", "xhat"}


def test_three_matrices_make_no_tensor_of_four_axes(tmp_path):
    body, *_ = CASES["ThreeMatrices"]
    _, _, result = generated(forward_file(tmp_path, "ThreeMatrices", body), tmp_path)
    assert "einsum" not in result.text and " @ " in result.text


GATE = (
    "    x = Input(N, C)\n    z = Input(N, C)\n    a = tanh(x)\n    e = exp(z - Max(z, C))\n"
    "    p = e / Sum(e, C)\n    y = a * p\n"
)


def test_nothing_is_divided_by_what_underflows(tmp_path):
    """The probability of -120 is zero in float32, and the gradient there is finite."""
    function, _, _ = generated(forward_file(tmp_path, "Gate", GATE), tmp_path)
    assert_same_gradients(function, gate, draw(4, 3), draw(4, 3, seed=5))
    x, z = torch.tensor([[0.3, -0.2, 0.9]]), torch.tensor([[0.0, -120.0, 1.0]])
    leaves = [x.requires_grad_(), z.requires_grad_()]
    function(*leaves).sum().backward()
    assert all(leaf.grad.isfinite().all() for leaf in leaves)


def test_a_power_of_zero_has_a_gradient(tmp_path):
    body = "    x = Input(N)\n    n = Scalar(3)\n    y = x**n\n"
    function, _, _ = generated(forward_file(tmp_path, "Powered", body), tmp_path)
    x = torch.tensor([0.0, 2.0], dtype=torch.float64, requires_grad=True)
    function(x).sum().backward()
    assert torch.equal(x.grad, torch.tensor([0.0, 12.0], dtype=torch.float64))


def test_the_second_route_tells_row_sums_from_column_sums():
    """A bound index inside of a function must not be taken for the one around it."""
    a, n = IndexedBase("A"), Symbol("size_N", integer=True, positive=True)
    i, j = Dummy("i", integer=True), Dummy("j", integer=True)
    rows = sympy.Sum(tanh(sympy.Sum(a[i, j], (j, 1, n))), (i, 1, n))
    columns = sympy.Sum(tanh(sympy.Sum(a[j, i], (j, 1, n))), (i, 1, n))
    assert vanishes(rows - rows) and not vanishes(rows - columns)
