"""Kernels keep for the backward what the lines of a lean module keep, and no digit is lost in what
is computed again.
"""

import os
import shutil
from importlib import import_module

import pytest
import torch
from test_kernels import assert_same, both, kernels_called, norm_arguments, outcome

from generated import kernels
from generated.group_norm import group_norm
from generated.layer_norm import layer_norm

pytestmark = pytest.mark.skipif(
    not (os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")),
    reason="no C++ compiler",
)
NORMS = ("layer_norm", "batch_norm", "instance_norm")


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
    assert called == ["forward"]


@pytest.mark.parametrize("wanted", [["x", "gain"], ["x", "bias"], ["gain"], ["x", "gain", "bias"]])
@pytest.mark.parametrize("left_out", [(), ("bias",), ("gain",)])
def test_some_of_the_gradients(wanted, left_out):
    arguments = {n: t for n, t in norm_arguments(40, 30).items() if n not in left_out}
    wanted = [name for name in wanted if name in arguments]
    if wanted:
        assert_same(*both(layer_norm, arguments, wanted), 1e-13)


def test_no_digit_is_lost_far_from_zero():
    """Not even of what is computed again in the backward."""
    arguments = norm_arguments(64, 128, torch.float32)
    arguments["x"] = arguments["x"] + 1e4
    names = ["x", "gain", "bias"]
    ours, _ = both(layer_norm, arguments, names)
    exact = outcome(layer_norm, {n: t.double() for n, t in arguments.items()}, names)
    assert_same([t.double() for t in ours], exact, 1e-5)


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
