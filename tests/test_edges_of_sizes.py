"""Sizes and labels at the edge: where the mathematics is undefined, the proof looks elsewhere."""

import pytest
import torch
import torch.nn.functional as F
from forwards import HEAD
from generating import assert_same_gradients, draw, forward_file, generated

from derive import forward_from
from derive.proof.proving.batch_sizes import batches_of

BODIES = {
    "N - 2": (
        "    x = Input(N)\n    mean = Sum(x, N) / N\n    y = Sum((x - mean) ** 2, N) / (N - 2)\n"
    ),
    "N - 3": "    x = Input(N, C)\n    y = x / (N - 3) / (C - 1)\n",
    "N - 5": "    x = Input(N)\n    y = N * x / ((N - 1) * (N - 5))\n",
}


@pytest.mark.parametrize("divisor", BODIES)
def test_sizes_at_which_a_divisor_is_not_positive_are_left_out(divisor, tmp_path):
    file = forward_file(tmp_path, "Residual", BODIES[divisor])
    definition = forward_from(file).definition
    (n,) = [axis for axis in definition.axes if axis.name == "N"]
    undefined = int(divisor.split()[-1])
    assert min(batch[n] for batch in batches_of(definition)) > undefined
    function, _, result = generated(file, tmp_path)
    assert result.proved.every_size
    shape = [undefined] * len(definition.inputs[0].axes)
    with pytest.raises(ValueError, match=f"{divisor} is 0"):
        function(torch.randn(*shape))


def test_a_size_itself_may_be_divided_by(tmp_path):
    """A mean of nothing is NaN, as torch's."""
    body = "    x = Input(N, C)\n    y = Sum(x**2, N) / N / (C - 1)\n"
    function, _, result = generated(forward_file(tmp_path, "Mean", body), tmp_path)
    assert "NaN if N is 0" in result.text
    for shape in ((0, 3), (0, 2), (4, 0)):
        ours, theirs = (torch.zeros(shape, requires_grad=True) for _ in range(2))
        y, expected = function(ours), (theirs**2).mean(0) / (shape[1] - 1)
        torch.testing.assert_close(y, expected, equal_nan=True)
        for value in (y, expected):
            value.backward(torch.ones_like(value))
        assert torch.equal(ours.grad, theirs.grad)
    with pytest.raises(ValueError, match="C - 1 is 0"):
        function(torch.zeros(0, 1))


SHARES = {
    "shares": "    y = exp(x) / Sum(exp(x), C)\n",
    "by the logarithm": "    s = log(Sum(exp(x), C))\n    y = exp(x - s)\n",
    "masked": "    z = Piecewise((x, x > -9), (-oo, True))\n    y = exp(z) / Sum(exp(z), C)\n",
}
LOGARITHMS = {
    "logarithm": "    y = log(Sum(exp(x), C))\n",
    "in powers of two": "    y = log(Sum(2**(x / log(2)), C))\n",
}


@pytest.mark.parametrize("name", [*SHARES, *LOGARITHMS])
def test_exponentials_are_shifted_by_the_largest_of_nothing(name, tmp_path):
    body = "    x = Input(N, C)\n" + (SHARES | LOGARITHMS)[name]
    function, _, _ = generated(forward_file(tmp_path, "Own", body), tmp_path)
    reference = torch.softmax if name in SHARES else torch.logsumexp
    for shape in ((2, 0), (0, 3), (0, 0)):
        x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
        y = function(x)
        assert torch.equal(y, reference(x, 1))
        assert torch.autograd.grad(y.sum(), x)[0].shape == shape
        assert torch.func.jvp(function, (x,), (x,))[1].shape == y.shape


def test_the_largest_of_nothing_that_is_written_is_refused(tmp_path):
    body = "    x = Input(N, C)\n    m = Max(x, C)\n    y = m + log(Sum(exp(x - m), C))\n"
    function, _, _ = generated(forward_file(tmp_path, "Own", body), tmp_path)
    with pytest.raises(ValueError, match="takes a maximum along it, but C is 0"):
        function(torch.zeros(2, 0))


def test_residual_variance(tmp_path):
    function, _, _ = generated(forward_file(tmp_path, "Residual", BODIES["N - 2"]), tmp_path)
    assert_same_gradients(function, lambda x: ((x - x.mean()) ** 2).sum() / (len(x) - 2), draw(9))


def test_a_label_may_index_two_axes(tmp_path):
    body = (
        "    x = Input(N, C)\n    w = Input(N, D)\n    i = Label(N)\n"
        "    y = Sum(OneHot(i, C) * x, C) + Sum(OneHot(i, D) * w, D)\n"
    )
    function, _, result = generated(forward_file(tmp_path, "Picked", body), tmp_path)
    index = torch.tensor([2, 0, 1, 2])
    rows = torch.arange(4)
    x, w = draw(4, 5), draw(4, 3, seed=8)
    assert_same_gradients(function, lambda x, w, i: x[rows, i] + w[rows, i], x, w, index)
    assert "one_hot" not in result.text
    with pytest.raises(IndexError, match=r"holds 3, not in 0 \.\. 2"):
        function(x, w, torch.tensor([0, 0, 0, 3]))


def test_nested_roots_are_proved_in_good_time(tmp_path):
    """This took half a minute once: the zero test must not multiply everything out."""
    body = (
        "    x = Input(N, C)\n    mean = Sum(x, C) / C\n    fourth = Sum((x - mean) ** 4, C) / C\n"
        "    y = (x - mean) / sqrt(sqrt(fourth) + 1)\n"
    )
    function, _, result = generated(forward_file(tmp_path, "Nested", body), tmp_path)
    assert result.proved.every_size

    def nested(x):
        diff = x - x.mean(1, keepdim=True)
        return diff / ((diff**4).mean(1, keepdim=True).sqrt() + 1).sqrt()

    assert_same_gradients(function, nested, draw(5, 4))


def test_a_chain_of_functions_is_proved_in_good_time(tmp_path):
    lines = "".join(f"    h{i} = tanh(h{i - 1})\n" for i in range(1, 7))
    body = f"    x = Input(N)\n    h0 = 2 * x\n{lines}"
    function, _, result = generated(forward_file(tmp_path, "Chained", body), tmp_path)
    assert result.proved.every_size
    assert {t.name for t in result.proved.closed_form.saved} == {"x", "h6"}

    def chained(x):
        h = 2 * x
        for _ in range(6):
            h = torch.tanh(h)
        return h

    assert_same_gradients(function, chained, draw(5))


def test_a_file_sees_the_module_beside_it_as_it_is_now(tmp_path):
    body = "class Scaled(Forward):\n    x = Input(N)\n    y = k * x\n"
    text = f"{HEAD}\nfrom beside import k\n\n\n{body}"
    for folder, factor in (("a", 2), ("b", 3), ("a", 5)):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "beside.py").write_text(f"k = {factor}\n")
        (tmp_path / folder / "scaled.py").write_text(text)
        definition = forward_from(tmp_path / folder / "scaled.py").definition
        assert str(definition.statements[0].expression) == f"{factor}*x"
        assert not (tmp_path / folder / "__pycache__").exists()


def test_the_label_smoothing_of_torch(tmp_path):
    body = (
        "    z = Input(N, C)\n    i = Label(N)\n    e = exp(z - Max(z, C))\n    p = e / Sum(e, C)\n"
        "    t = Rational(4, 5) * OneHot(i, C) + Rational(1, 5) / C\n"
        "    y = -Sum(t * log(p), C)\n"
    )
    function, _, _ = generated(forward_file(tmp_path, "Smoothed", body), tmp_path)
    target = torch.tensor([1, 0, 2, 1, 1])

    def smoothed(z, i):
        return F.cross_entropy(z, i, label_smoothing=0.2, reduction="none")

    assert_same_gradients(function, smoothed, draw(5, 4), target)


VANISHING = {
    "Solved": (  # z = (C - 3)*e is not solved for e, which has a gradient also where C is 3
        "    x = Input(N, C)\n    w = Input(N, C)\n    e = exp(w) * x\n    z = (C - 3) * e\n"
        "    y = z * w + z**2 + e**2\n",
        lambda x, w, zero: zero * w.exp() * x * w + (zero**2 + 1) * (w.exp() * x) ** 2,
    ),
    "Recognised": (  # nor is the sum in s = (C - 3)*Sum(x*w) read from s
        "    x = Input(N, C)\n    w = Input(N, C)\n    a = Input(N)\n"
        "    s = (C - 3) * Sum(x * w, C)\n    y = Sum(a * x * w, C) + s**2\n",
        lambda x, w, a, zero: (a[:, None] * x * w).sum(1) + (zero * (x * w).sum(1)) ** 2,
    ),
}


@pytest.mark.parametrize("columns", [3, 4])
@pytest.mark.parametrize("name", VANISHING)
def test_a_factor_that_may_vanish_is_not_divided_by(name, columns, tmp_path):
    body, reference = VANISHING[name]
    function, _, _ = generated(forward_file(tmp_path, name, body), tmp_path)
    inputs = [draw(2, columns), draw(2, columns, seed=5), draw(2, seed=6)][: body.count("Input")]
    assert_same_gradients(function, lambda *given: reference(*given, columns - 3), *inputs)
