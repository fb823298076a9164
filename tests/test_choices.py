"""Choices in the emitted code: what is 0 where a branch says so, and which side a tie goes to."""

import pytest
import torch
import torch.nn.functional as F
from generating import assert_same_gradients, draw, forward_file, generated
from sympy import And, Eq, Not, Or, Piecewise

from derive import Axis, Forward, Input, Max, Position, Sum
from derive.language.choices import written_in
from derive.language.symbols import Tensor

UNIT = """
    x = Input(N, C)
    eps = Scalar(0.5)
    norm = sqrt(Sum(x**2, C))
    length = Max(norm, eps)
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


SYMPYS = "    from sympy import Max, Min\n"


@pytest.mark.parametrize("imported", ["", SYMPYS], ids=["ours", "SymPy's"])
@pytest.mark.parametrize("line", ["Max({0}, x) + Min({0} + 1, x)", "Max(x, {0}) + Min(x, {0} + 1)"])
@pytest.mark.parametrize("number", ["2", "limit", "zlimit"])
def test_at_equality_no_gradient_goes_to_a_tensor_beside_a_number(tmp_path, imported, line, number):
    """As in ``torch.relu``, whatever the two are called, and wherever they stand."""
    scalar = "" if number == "2" else f"    {number} = Scalar(2)\n"
    body = f"{imported}    x = Input(N)\n{scalar}    y = {line.format(number)}\n"
    function, _, _ = generated(forward_file(tmp_path, "Clamped", body), tmp_path)
    x = torch.tensor([2.0, 3.0, 1.0, 4.0], dtype=torch.float64)
    leaf, same = x.clone().requires_grad_(), x.clone().requires_grad_()
    function(leaf).sum().backward()
    (F.relu(same - 2) - F.relu(3 - same)).sum().backward()
    assert torch.equal(leaf.grad, same.grad)


@pytest.mark.parametrize("imported", ["", SYMPYS], ids=["ours", "SymPy's"])
@pytest.mark.parametrize("kind", ["Max", "Min"])
def test_of_equal_tensors_the_first_is_chosen(tmp_path, imported, kind):
    """As along an axis, whatever they are called; SymPy has no order of its own."""
    body = f"{imported}    b = Input(N)\n    a = Input(N)\n    c = Input(N)\n"
    path = forward_file(tmp_path, "First", f"{body}    y = {kind}(b, a, c)\n")
    function, _, _ = generated(path, tmp_path)
    ties = [[1.0, 1, 2], [2, 1, 1], [1, 2, 1], [1, 1, 1]]
    rows = torch.tensor(ties, dtype=torch.float64, requires_grad=True)
    function(*rows.T).sum().backward()
    chosen = (rows.max if kind == "Max" else rows.min)(dim=1)
    (same,) = torch.autograd.grad(chosen.values.sum(), rows)
    assert torch.equal(rows.grad, same)


@pytest.mark.parametrize("imported", ["", SYMPYS], ids=["ours", "SymPy's"])
def test_the_smallest_along_an_axis_is_the_first_of_equals(tmp_path, imported):
    body = f"{imported}    x = Input(N, C)\n    y = Min(x, C) * Max(x, C) - Min(x, C)\n"
    function, _, result = generated(forward_file(tmp_path, "Span", body), tmp_path)
    x = torch.tensor([[2.0, 1, 1, 2], [3, 4, 3, 4]], dtype=torch.float64, requires_grad=True)
    y = x.min(dim=1).values * (x.max(dim=1).values - 1)
    (same,) = torch.autograd.grad(y.sum(), x)
    (ours,) = torch.autograd.grad(function(x).sum(), x)
    assert torch.equal(ours, same)
    assert "x.amin(1" in result.text and "(-x)" not in result.text


def test_the_positive_part_is_the_usual_one():
    """Whether it is written as the larger of two, from either library, or as a choice."""

    class Positive(Forward):
        x = Input(Axis("N"))
        y = Max(x, 0)

    class Chosen(Forward):
        x = Input(Axis("N"))
        y = Piecewise((0, x <= 0), (x, True))

    (positive,), (chosen,) = (f.definition.statements for f in (Positive, Chosen))
    assert positive.expression == chosen.expression


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
