"""A user's own mathematics, in a file outside the repository, gets the same quality as ours.

Each is compared with a reference typed by hand in plain torch.
"""

import pytest
import torch
import torch.nn.functional as F
from forwards import HEAD, write
from generating import (
    assert_same_gradients,
    draw,
    forward_file,
    generated,
    labels,
    module_from,
    stated,
)

from codegen.driver.lean import generate
from derive.language.nodes import Max, Sum
from derive.language.notation.library import forwards_from
from derive.language.symbols import tensors_in


def moments(x, dim, power=2.0):
    middle = x.mean(dim, keepdim=True)
    return x - middle, ((x - middle).abs() ** power).mean(dim, keepdim=True)


def layer_norm(x, gain, bias):
    return F.layer_norm(x, x.shape[1:], gain, bias, 1e-5)


def layer_norm_no_bias(x, gain):
    return F.layer_norm(x, x.shape[1:], gain, None, 1e-5)


def cube_root_norm(x, gain, bias):
    return gain * (x - x.mean(0)) * (x.var(0) + 1e-3) ** (-1 / 3) + bias


def absolute_fourth(x, gain):
    diff, spread = moments(x, 0, 1)
    _, fourth = moments(x, 0, 4)
    return gain * diff * (spread**2 + fourth + 1e-2) ** -0.25


def attention(q, k, v):
    return F.scaled_dot_product_attention(q[None], k[None], v[None])[0]


def embedding(index, table):
    return torch.tanh(F.embedding(index, table))


def pair_distances(x):
    return torch.exp(-((x[:, None] - x[None]) ** 2).sum(-1)).sum(1)


def weighted(logits, weight, target):
    picked = F.log_softmax(logits, 1)[torch.arange(len(target)), target]
    return -(weight[target] * picked).sum() / weight[target].sum()


def clamped(logits, target):
    return F.cross_entropy(logits, target, reduction="none").clamp(max=2).mean()


X, GAIN, BIAS, TARGET = draw(6, 4), draw(4, seed=3), draw(4, seed=4), labels(6, 4)
CASES = {
    "LayerNorm": (layer_norm, X, GAIN, BIAS),
    "LayerNormInOneLine": (layer_norm_no_bias, X, GAIN),
    "CubeRootNorm": (cube_root_norm, X, GAIN, BIAS),
    "SmoothedNLL": (lambda z, t: F.cross_entropy(z, t, label_smoothing=0.1), X, TARGET),
    "WeightedNLL": (weighted, X, GAIN.abs() + 0.1, TARGET),
    "AbsoluteFourthNorm": (absolute_fourth, X, GAIN),
    "Attention": (attention, draw(5, 3), draw(4, 3, seed=5), draw(4, 2, seed=6)),
    "Embedding": (embedding, torch.tensor([2, 0, 2, 2, 3]), draw(4, 3)),
    "PairDistances": (pair_distances, draw(5, 3)),
    "Swish": (F.silu, draw(7)),
    "ClampedNLL": (clamped, 2 * X, TARGET),
}


@pytest.mark.parametrize("name", CASES)
def test_value_and_gradients_are_those_of_the_reference(name, tmp_path):
    reference, *inputs = CASES[name]
    function, _, result = generated(write(tmp_path, name), tmp_path)
    assert_same_gradients(function, reference, *inputs)
    assert result.proved.gradients


def reductions(result):
    nodes = [n for s in result.proved.closed_form.statements for n in s.expression.atoms(Sum, Max)]
    return len(nodes)


def test_layer_norm_has_two_reductions_along_the_row_and_two_over_the_batch(tmp_path):
    _, _, result = generated(write(tmp_path, "LayerNorm"), tmp_path)
    assert reductions(result) == 4
    assert {t.name for t in result.proved.closed_form.saved} == {"gain", "inv_std", "xhat"}
    assert result.proved.every_size


def test_unnamed_parts_are_not_multiplied_out(tmp_path):
    """Sum(dy*(x - mean)) must not become Sum(dy*x) - mean*Sum(dy), which cancels."""
    _, _, result = generated(write(tmp_path, "LayerNormInOneLine"), tmp_path)
    form = result.proved.closed_form
    used = {t.name for t in form.saved}
    parts = {v.tensor.name: v.expression for v in form.relations.parts}
    assert "x_minus_mean" in {
        t.name for name in used & parts.keys() for t in tensors_in(parts[name])
    }
    assert not {"x", "mean"} & used


def test_attention_keeps_its_matrix_products(tmp_path):
    _, _, result = generated(write(tmp_path, "Attention"), tmp_path)
    assert "einsum" not in result.text
    assert result.text.count(" @ ") >= 6  # two forward, four backward
    assert {t.name for t in result.proved.closed_form.saved} == {"q", "k", "v", "p"}


def test_a_label_becomes_an_index_and_an_index_add(tmp_path):
    _, _, result = generated(write(tmp_path, "Embedding"), tmp_path)
    assert "one_hot" not in result.text
    assert "functional.embedding(index, table)" in result.text
    assert "_index_added(" in result.text


def test_a_closed_form_divides_by_nothing_that_the_forward_does_not_divide_by(tmp_path):
    """A loss of exactly 0 has a gradient: a divisor is not replaced by a quotient of results."""
    function, _, _ = generated(write(tmp_path, "WeightedNLL"), tmp_path)
    logits = torch.tensor([[1e4, -1e4, 0.0]], dtype=torch.float64, requires_grad=True)
    weight = torch.ones(3, dtype=torch.float64)
    loss = function(logits, weight, torch.tensor([0]))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss == 0 and torch.equal(gradient, torch.zeros_like(gradient))


def test_smoothed_targets_are_computed_again_and_not_saved(tmp_path):
    _, _, result = generated(write(tmp_path, "SmoothedNLL"), tmp_path)
    assert {t.name for t in result.proved.closed_form.saved} == {"labels", "smoothing", "probs"}


def test_one_file_may_hold_several_forwards_and_compose_them(tmp_path):
    body = """
    x = Input(N, D)
    weight = Input(D, C)
    gain = Input(C)
    bias = Input(C)
    labels = Label(N)
    pre = Sum(x * weight, D)
    h = tanh(BatchNorm(pre, gain, bias))
    loss = SoftmaxNLL(h, labels)
"""
    file = forward_file(tmp_path, "Net", body)
    head = (
        "from derive.math.batch_norm import BatchNorm\n"
        "from derive.math.softmax_nll import SoftmaxNLL\n"
    )
    file.write_text(head + file.read_text())
    function, _, result = generated(file, tmp_path)

    def net(x, weight, gain, bias, target):
        pre = x @ weight
        xhat = (pre - pre.mean(0)) / torch.sqrt(pre.var(0) + 1e-5)
        return F.cross_entropy(torch.tanh(gain * xhat + bias), target)

    assert_same_gradients(function, net, draw(6, 3), draw(3, 4, seed=7), GAIN, BIAS, TARGET)
    names = {s.name for s in result.proved.definition.statements}
    assert {"xhat", "probs"} <= names  # no other block has one


NUMBERS = {
    "Divided": "y = x / (2 + tanh(1))",
    "Repeated": "t = Scalar(0.5); y = x * exp(-t) + exp(x) * exp(exp(-t)) / (1 + exp(-t))",
    "Rooted": "t = Scalar(0.5); y = x * sqrt(t + 2) / (sqrt(t + 2) + log(3))",
    "Sized": "y = x / (sqrt(N + 2) + log(C + 1))",
    "Sharing": "t = Scalar(0.5); y = x / (1 + exp(-t)) + exp(exp(t) / (1 + exp(t))) * x**2",
    "Named": "v = Gain(w=2); y = v * x + exp(v) * x**2",
    "Written": "t = Scalar(0.5); y = Gain(t) * x + exp(Gain(t)) * x**2",
}


@pytest.mark.parametrize("name", NUMBERS)
def test_what_no_tensor_is_in_is_a_number_in_the_code(name, tmp_path):
    """It is no value of the forward: nothing to save, and nothing for torch's functions."""
    lines = "\n    ".join(["x = Input(N, C)", *NUMBERS[name].split("; ")])
    gain = "class Gain(Forward):\n    w = Input()\n    y = exp(w) / (1 + exp(w))"
    file = tmp_path / "numbers.py"
    file.write_text(f"{HEAD}\n\n{gain}\n\n\nclass {name}(Forward):\n    {lines}\n")
    (forward,) = [f for f in forwards_from(file) if f.__name__ == name]
    result = generate(forward)
    assert {t.name for t in result.proved.closed_form.saved} <= {"x", "t"}
    module = module_from(result.text, tmp_path, name)
    function = getattr(module, name.lower())
    x = draw(3, 4)
    assert_same_gradients(function, lambda x: stated(result)(x)["y"], x)
