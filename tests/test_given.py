"""`Given`: tensors without gradient, such as masks, weights and targets."""

import re

import pytest
import torch
from forwards import HEAD
from generating import assert_same_gradients, draw, forward_file, generated

from derive import NotationError, check, derive, forward_from

MASKED = """    x = Input(N, C)
    mask = Given(N, C)
    target = Given(N)
    kept = Piecewise((x**2, Ne(mask, 0)), (0, True))
    y = (Sum(kept, C) - target)**2
"""


def masked_by_hand(x, mask, target):
    return ((x**2 * mask).sum(1) - target) ** 2


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    return generated(forward_file(folder, "Masked", MASKED), folder)


def test_no_gradient_is_derived_and_the_others_are_those_of_torch(masked):
    function, _, result = masked
    assert result.program.backward.results == ("dx",)
    x, target = draw(4, 3), draw(4, seed=3)
    mask = (draw(4, 3, seed=4) > 0).double()
    assert_same_gradients(
        lambda x: function(x, mask, target), lambda x: masked_by_hand(x, mask, target), x
    )


@pytest.mark.parametrize("kind", [torch.bool, torch.int64, torch.uint8, torch.float32])
@pytest.mark.parametrize("format", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_booleans_and_integers_are_numbers_of_the_format_that_is_computed_in(masked, kind, format):
    function, *_ = masked
    x, mask = draw(4, 3).to(format).requires_grad_(), draw(4, 3, seed=4) > 0
    target = draw(4, seed=3).to(format)
    y = function(x, mask.to(kind), target)
    y.backward(torch.ones_like(y))
    same = x.detach().double().requires_grad_()
    expected = masked_by_hand(same, mask.double(), target.double())
    expected.backward(torch.ones_like(expected))
    assert y.dtype == x.grad.dtype == format
    bound = 4 * torch.finfo(format).eps * expected.abs().max().item()
    torch.testing.assert_close(y.double(), expected, rtol=0, atol=bound)
    bound = 8 * torch.finfo(format).eps * same.grad.abs().max().item()
    torch.testing.assert_close(x.grad.double(), same.grad, rtol=0, atol=bound)


def test_one_that_requires_a_gradient_is_refused_where_there_would_be_one(masked):
    function, *_ = masked
    for name in ("mask", "target"):
        arguments = {"x": draw(4, 3), "mask": draw(4, 3), "target": draw(4)}
        arguments["x"].requires_grad_()
        arguments[name].requires_grad_()
        with pytest.raises(RuntimeError, match=f"masked: {name} gets no gradient"):
            function(**arguments)
        with torch.no_grad():
            function(**arguments)
        arguments[name] = arguments[name].detach()
        function(**arguments).sum().backward()
        assert arguments["x"].grad is not None


@pytest.mark.parametrize("kind", [torch.float64, torch.bfloat16])
def test_one_of_another_format_loses_no_digits(masked, kind):
    function, *_ = masked
    x = draw(4, 3).to(torch.bfloat16 if kind == torch.float64 else torch.float32)
    mask, target = draw(4, 3, seed=4).to(kind), draw(4, seed=3).to(x.dtype)
    if kind == torch.float64:
        expected = function(x.double(), mask, target.double())
    else:
        expected = function(x, mask.float(), target)
    assert torch.equal(function(x, mask, target), expected)


def test_what_is_no_number_is_refused(masked):
    function, *_ = masked
    with pytest.raises(TypeError, match="x must be floating point"):
        function(draw(2, 2) > 0, draw(2, 2) > 0, draw(2))


def test_a_formula_with_it_is_proved_or_refuted(tmp_path):
    forward = forward_from(forward_file(tmp_path, "Masked", MASKED))
    right = (
        "4*x*(mask != 0)*(((mask != 0)*x**2).sum(1, keepdim=True) - target[:, None])*dy[:, None]"
    )
    assert check(forward, right, of="x").right
    wrong = check(forward, right.replace("4*", "2*"), of="x")
    assert wrong.right is False


COMPOSED = """
class Weighted(Forward):
    x = Input(N)
    weight = Given(N)
    y = weight * x**2


class Outer(Forward):
    x = Input(N)
    w = {kind}(N)
    twice = 2 * w
    y = Weighted(x, twice)
"""


def test_composition_passes_what_has_no_gradient(tmp_path):
    file = tmp_path / "outer.py"
    file.write_text(HEAD + COMPOSED.format(kind="Given"))
    proved = derive(forward_from(f"{file}:Outer"))
    assert [str(s) for s in proved.closed_form.statements] == ["dx = 4*dy*w*x"]


def test_composition_refuses_to_lose_a_gradient(tmp_path):
    file = tmp_path / "outer.py"
    file.write_text(HEAD + COMPOSED.format(kind="Input"))
    with pytest.raises(NotationError, match=re.escape("weight passes no gradient on")) as refused:
        forward_from(f"{file}:Outer")
    assert "declare weight as Input in Weighted, or pass Detach(twice)" in str(refused.value)


def test_the_backward_computes_no_gradient_that_nobody_reads(tmp_path):
    body = "x = Input(N, C)\n    mask = Given(C, K)\n    m = mask**2\n    y = tanh(Sum(x*m, C))\n"
    proved = derive(forward_from(forward_file(tmp_path, "Masked", f"    {body}")))
    assert [s.tensor.name for s in proved.closed_form.statements] == ["dsum_x_m", "dx"]
    assert "dm" in proved.closed_form.chain.by_name  # the step-by-step backward has them all
