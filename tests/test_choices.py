"""Choices in the emitted code: what is 0 where a branch says so, and which side a tie goes to."""

import pytest
import torch
import torch.nn.functional as F
from generating import assert_same_gradients, draw, forward_file, generated
from sympy import And, Eq, Not, Or, Piecewise

from derive import Axis, Position, Sum
from derive.language.choices import written_in
from derive.language.symbols import Tensor

UNIT = """
    x = Input(N, C)
    eps = Scalar(0.5)
    from sympy import Max as Larger
    norm = sqrt(Sum(x**2, C))
    length = Larger(norm, eps)
    y = x / length
"""


def test_a_branch_of_zero_stays_zero_where_a_factor_is_infinite(tmp_path):
    """The gradient through the norm is 1/norm times the 0 of the choice, where the norm is 0."""
    function, _, _ = generated(forward_file(tmp_path, "Unit", UNIT), tmp_path)
    assert_same_gradients(function, lambda x: F.normalize(x, dim=1, eps=0.5), draw(4, 3))
    x = torch.zeros(2, 3, requires_grad=True)
    function(x).sum().backward()
    assert torch.equal(x.grad, torch.full((2, 3), 2.0))


def test_where_a_branch_is_zero_no_infinite_gradient_comes_through(tmp_path):
    """0 times an infinity is no number; torch's own relu gives 0 there too."""
    body = "    x = Input(N)\n    y = Piecewise((x, x > 0), (0, True))\n"
    function, _, _ = generated(forward_file(tmp_path, "Ramp", body), tmp_path)
    x = torch.tensor([-1.0, 2.0])
    for ours, torchs in zip(*(through(f, x) for f in (function, F.relu)), strict=True):
        assert torch.equal(ours, torchs)


def through(function, x):
    """Value and gradient, where all that comes from above is infinite."""
    leaf = x.clone().requires_grad_()
    value = function(leaf)
    value.backward(torch.full_like(value, torch.inf))
    return value.detach(), leaf.grad


def test_what_is_zero_by_choice_is_so_whatever_it_is_divided_by(tmp_path):
    body = """
    x = Input(N, C)
    w = Input(N)
    mask = Given(N)
    y = Piecewise((w, mask > 0), (0, True)) / x
"""
    function, _, _ = generated(forward_file(tmp_path, "Kept", body), tmp_path)
    x = torch.tensor([[2.0, 4.0], [0.0, 0.0]])
    w, mask = torch.ones(2, requires_grad=True), torch.tensor([1.0, 0.0])
    y = function(x, w, mask)
    y.sum().backward()
    assert torch.equal(y, torch.tensor([[0.5, 0.25], [0.0, 0.0]]))
    assert torch.equal(w.grad, torch.tensor([0.75, 0.0]))


def test_what_is_larger_than_the_choice_is_touched_once(tmp_path):
    """The choice is made along the rows, and what has all entries stays outside of it."""
    _, _, result = generated(forward_file(tmp_path, "Unit", UNIT), tmp_path)
    backward = result.text.partition("_backward(")[2].partition("return")[0]
    line = " ".join(backward.partition("dx = ")[2].split())
    assert "torch.where(" in line and line.endswith(", y, value=-1, )")


@pytest.mark.parametrize("name", ["limit", "zlimit"])
def test_at_equality_the_gradient_goes_to_the_tensor_and_not_to_a_number(tmp_path, name):
    """As in ``torch.clamp``, whatever the two are called."""
    body = f"""
    y0 = Input(N)
    {name} = Scalar(2)
    from sympy import Max as Larger
    y = Larger(y0, {name}) + Min(y0, {name} + 1)
"""
    function, _, _ = generated(forward_file(tmp_path, "Clamped", body), tmp_path)
    x = torch.tensor([2.0, 3.0, 1.0, 4.0], dtype=torch.float64)
    leaf, same = x.clone().requires_grad_(), x.clone().requires_grad_()
    function(leaf).sum().backward()
    (same.clamp(min=2) + same.clamp(max=3)).sum().backward()
    assert torch.equal(leaf.grad, same.grad)


def test_a_choice_that_gets_into_a_condition_is_asked_branch_by_branch():
    """What a sum binds stays inside of the sum; SymPy alone would stop at a `Position`."""
    n, c = Axis("N"), Axis("C")
    x, s, t = Tensor("x", (n, c)), Tensor("s", (n, c)), Tensor("t", (n,))
    diagonal = Eq(Position(c), Position(n))
    sign = Piecewise((1, diagonal), (-1, True))
    e = Piecewise((x, s * x > 0), (t, t > 1), (0, True))
    known = {s: sign, t: Sum(Piecewise((x, x > 2), (0, True)), c)}
    (_, first), (_, second), _ = written_in(e, known).args
    assert first == Or(And(diagonal, x > 0), And(Not(diagonal), x < 0))
    assert second == (known[t] > 1)
