"""Optional tensors, and defaults of numbers that are expressions in sizes."""

import pytest
import torch
import torch.nn.functional as F
from forwards import HEAD
from generating import TOLERANCE, draw, forward_file, generated, pages

from codegen.commands.cli import gradform
from derive import NotationError, derive, forward_from

NORM = """    x = Input(N, C)
    gain = Input(C, default=1)
    bias = Input(C, default=0)
    eps = Scalar(1e-5)
    mean = Sum(x, C) / C
    diff = x - mean
    var = Sum(diff**2, C) / C
    inv_std = 1 / sqrt(var + eps)
    y = gain * diff * inv_std + bias
"""
SCALED = """    x = Input(N, C)
    scale = Scalar(1 / sqrt(C))
    y = scale * x**2
"""


@pytest.fixture(scope="module")
def norm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("optional")
    return generated(forward_file(folder, "Norm", NORM), folder)


@pytest.mark.parametrize("passed", [(), ("gain",), ("bias",), ("gain", "bias")])
def test_what_is_left_out_is_its_default_and_gets_no_gradient(norm, passed):
    function, *_ = norm
    leaves = {"gain": draw(3, seed=5), "bias": draw(3, seed=6)}
    leaves = {name: leaves[name].requires_grad_() for name in passed}
    x = draw(4, 3).requires_grad_()
    y = function(x, **leaves)
    expected = F.layer_norm(x, (3,), leaves.get("gain"), leaves.get("bias"))
    torch.testing.assert_close(y, expected, rtol=TOLERANCE, atol=TOLERANCE)
    upstream = draw(4, 3, seed=7)
    ours = torch.autograd.grad(y, [x, *leaves.values()], upstream)
    torch.testing.assert_close(
        ours, torch.autograd.grad(expected, [x, *leaves.values()], upstream), rtol=1e-10, atol=1e-10
    )


def test_none_by_position_is_the_same_as_nothing(norm):
    function, *_ = norm
    x = draw(4, 3).to(torch.bfloat16)
    assert torch.equal(function(x), function(x, None, None))
    assert torch.equal(function(x), function(x, bias=None))
    assert function(x).dtype == torch.bfloat16


def test_a_default_in_sizes_follows_the_axes(tmp_path):
    function, _module, result = generated(forward_file(tmp_path, "Scaled", SCALED), tmp_path)
    x = draw(4, 9).requires_grad_()
    y = function(x)
    torch.testing.assert_close(y, x**2 / 3)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x / 3)
    torch.testing.assert_close(function(x, scale=2.0), 2 * x**2)
    assert "scale: float | None = None" in result.text


COMPOSED = (
    "\n\nclass Norm(Forward):\n"
    + NORM
    + "\n\nclass Scaled(Forward):\n"
    + SCALED
    + """
class Outer(Forward):
    x = Input(D, K)
    h = Norm(x, eps=0.5)
    y = Scaled(h)
"""
)


def test_a_composition_leaves_out_what_is_optional(tmp_path):
    file = tmp_path / "outer.py"
    file.write_text(HEAD + COMPOSED)
    definition = derive(forward_from(f"{file}:Outer")).definition
    assert [t.name for t in definition.inputs] == ["x"]
    assert str(definition.by_name["y"]) == "y = h**2/sqrt(K)"
    assert str(definition.by_name["h"]) == "h = diff*inv_std"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["x = Input(N)", "w = Given(C, default=1)", "y = x * Sum(w, C)"], "no other input has"),
        (["w = Given(N, default=1)", "x = Input(N)", "y = x * w"], "stands after w"),
        (["x = Input(N)", "w = Given(N, default='a')", "y = x * w"], "not a finite number"),
        (["x = Input(N)", "s = Scalar(1 / C)", "y = x * s"], "the size of C"),
    ],
)
def test_mistakes_say_what_to_do(lines, words, tmp_path):
    body = "".join(f"    {line}\n" for line in lines)
    with pytest.raises(NotationError, match=words):
        forward_from(forward_file(tmp_path, "Mine", body))


def test_every_page_says_what_may_be_left_out(norm, tmp_path):
    *_, result = norm
    file = forward_file(tmp_path, "Scaled", SCALED)
    for format, page in pages(result.proved).items():
        assert "or 1 everywhere" in page, format
    for format, page in pages(derive(forward_from(file))).items():
        assert "scale" in page, format
    assert gradform(["check", str(file), "--of", "x", "2*scale*x*dy"]) == 0
