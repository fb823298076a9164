"""Kernels that keep less for the backward: what is cheap is computed again, where that saves an
array of full size.
"""

import os
import shutil
from importlib import import_module

import pytest
import torch
from forwards import HEAD
from test_kernels import assert_same, both, kernels_called, norm_arguments

from codegen.driver import generate
from codegen.targets import kernels as languages
from derive import forward_from
from generated import kernels
from generated.group_norm import group_norm
from generated.layer_norm import layer_norm, layer_norm_backward, layer_norm_forward

pytestmark = pytest.mark.skipif(
    not (os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")),
    reason="no C++ compiler",
)
NORMS = ("layer_norm", "batch_norm", "instance_norm")
CENTRED = """
    mean = Sum(x, C) / C
    diff = x - mean
    inv_std = (Sum(diff**2, C) / C + 1)**Rational(-1, 2)
    xhat = diff * inv_std
"""
BODIES = {
    "what has a value for each row, and an argument": (
        f"x = Input(N, C)\n    gain = Input(C)\n{CENTRED}    y = gain * xhat + x",
        True,
    ),
    "an argument that would be kept for it, and another": (
        f"x = Input(N, C)\n    gain = Input(C)\n    more = Input(N, C)\n{CENTRED}"
        "    y = gain * xhat + more",
        False,
    ),
    "an exponential": (
        "x = Input(N, C)\n    labels = Label(N)\n    shifted = x - Max(x, C)\n"
        "    total = Sum(exp(shifted), C)\n    probs = exp(shifted) / total\n"
        "    y = log(total) - Sum(OneHot(labels, C) * shifted, C) + Sum(probs**2, C)",
        False,
    ),
}


@pytest.mark.parametrize("body, less", BODIES.values(), ids=BODIES.keys())
def test_an_array_is_dropped_where_that_saves_one(body, less, tmp_path):
    """The driver compares what it writes with autograd and with the lines."""
    file = tmp_path / "own.py"
    file.write_text(f"{HEAD}from sympy import Rational\n\n\nclass Own(Forward):\n    {body}\n")
    text = generate(forward_from(file), order=1, kernels=languages["cpp"]).kernels[1]
    assert ("lean_forward" in text) == less


@pytest.mark.parametrize("name", NORMS)
def test_nothing_of_full_size_is_kept_beside_the_argument(name):
    function = getattr(import_module(f"generated.{name}"), name)
    x = torch.randn(6, 5, *[4] * (name == "instance_norm")).requires_grad_()
    gain, bias = torch.randn(2, 5)
    kept = []
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t)
    with kernels_called(name) as called, hooks:
        y = function(x, gain, bias)
    y.sum().backward()
    own = {t.data_ptr() for t in kept if t.numel() == x.numel()}
    assert own == {x.data_ptr()}
    assert called == ["lean_forward"]


@pytest.mark.parametrize("wanted", [["x", "gain"], ["x", "bias"], ["gain"], ["x", "gain", "bias"]])
@pytest.mark.parametrize("left_out", [(), ("bias",), ("gain",)])
def test_some_of_the_gradients(wanted, left_out):
    arguments = {n: t for n, t in norm_arguments(40, 30).items() if n not in left_out}
    wanted = [name for name in wanted if name in arguments]
    if wanted:
        assert_same(*both(layer_norm, arguments, wanted), 1e-13)


def test_no_digit_is_lost_far_from_zero():
    """What is computed again has the bits that it had."""
    arguments = norm_arguments(64, 128, torch.float32)
    arguments["x"] = arguments["x"] + 1e4
    (y, *gradients), _ = both(layer_norm, arguments, ["x", "gain", "bias"])
    generator = torch.Generator().manual_seed(3)
    upstream = torch.randn(y.shape, generator=generator, dtype=torch.float64).float()
    with kernels.use("cpp"):
        kept = layer_norm_forward(**arguments)
        all_kept = layer_norm_backward(upstream, *kept[1:])
    assert torch.equal(y, kept.y)
    assert all(map(torch.equal, gradients, all_kept))


def test_second_derivatives_are_those_of_the_lines():
    x, gain, bias = norm_arguments(6, 8)["x"].reshape(2, 8, 3), *torch.randn(2, 8).double()

    def twice(target):
        leaves = [t.clone().requires_grad_() for t in (x, gain, bias)]
        with kernels.use(target):
            y = group_norm(*leaves, groups=4)
            first = torch.autograd.grad((y**3).sum(), leaves, create_graph=True)
            return torch.autograd.grad(sum((g**2).sum() for g in first), leaves)

    assert_same(twice("cpp"), twice("torch"), 1e-11)


def test_a_change_in_place_is_told_of():
    arguments = {name: t.requires_grad_() for name, t in norm_arguments(4, 5).items()}
    with kernels.use("cpp"):
        x = arguments["x"] * 1
        y = layer_norm(x, arguments["gain"], arguments["bias"])
        x.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
