"""A choice that a scalar argument decides: the code has one branch or the other, as it is."""

import pytest
import torch
from generating import assert_same_gradients, draw, forward_file, generated, labels


def chosen(condition, yes, no):
    return yes if condition else no


CASES = {
    "ATensorOrANumber": (
        ["x = Input(N)", "a = Scalar(1.0)", "b = Piecewise((x, a >= 0), (1, True))", "y = b * x"],
        lambda x, a: chosen(a >= 0, x, 1) * x,
        (4,),
    ),
    "ANumberIsTheResult": (
        ["x = Input(N)", "a = Scalar(1.0)", "y = Piecewise((3, (a >= 0) & (a < 2)), (x**2, True))"],
        lambda x, a: chosen(0 <= a < 2, torch.full_like(x, 3) + 0 * x, x**2),
        (4,),
    ),
    "EqualToANumber": (
        [
            "x = Input(N, C)",
            "a = Scalar(0.0)",
            "part = Piecewise((0, Eq(a, 0)), (a * Sum(x**2, C), True))",
            "y = Sum(x, C) * (1 - a) + part",
        ],
        lambda x, a: x.sum(1) * (1 - a) + a * (x**2).sum(1),
        (4, 3),
    ),
    "OneTensorAlongLess": (
        ["x = Input(N, C)", "a = Scalar(0.0)", "y = Piecewise((Sum(x, C), a > 0), (x, True))**2"],
        lambda x, a: chosen(a > 0, x.sum(1, keepdim=True).expand_as(x), x) ** 2,
        (4, 3),
    ),
    "OneNumber": (
        ["x = Input()", "a = Scalar(0.0)", "b = Piecewise((x, a > 0), (2, True))", "y = b * x"],
        lambda x, a: chosen(a > 0, x, 2) * x,
        (),
    ),
}


def test_what_a_number_leaves_out_is_not_met(tmp_path):
    """Where the number is 0 an infinity in what it multiplies does not count; the gradient, which
    is finite and the same on both sides, needs no choice.
    """
    lines, *_ = CASES["EqualToANumber"]
    body = "".join(f"    {line}\n" for line in lines).replace("x**2", "log(x)")
    function, _, result = generated(forward_file(tmp_path, "LeftOut", body), tmp_path)
    x = torch.tensor([[0.0, 1.0]], requires_grad=True)
    assert function(x).item() == 1 and function(x, a=0.5).item() == -torch.inf
    (formula,) = result.program.formulas
    assert "Piecewise" not in formula
    kept = body.replace("(0, Eq(a, 0))", "(1, Eq(a, 0))").replace("a * Sum", "a * C * Sum")
    function, _, result = generated(forward_file(tmp_path, "Kept", kept), tmp_path)
    assert function(x).item() == 2


@pytest.mark.parametrize("name", CASES)
def test_both_branches_are_tensors(name, tmp_path):
    lines, by_hand, shape = CASES[name]
    body = "".join(f"    {line}\n" for line in lines)
    function, *_ = generated(forward_file(tmp_path, name, body), tmp_path)
    for a in (0.25, -1.0, 0.0, 5.0):
        assert_same_gradients(
            lambda x, a=a: function(x, a), lambda x, a=a: by_hand(x, a), draw(*shape, 1)[..., 0]
        )


def test_an_argument_that_is_chosen_is_not_written_to(tmp_path):
    body = """    x = Input(N, C)
    z = Input(N)
    i = Label(N)
    a = Scalar(1.0)
    y = Piecewise((x, a > 0), (x**2, True)) + z * OneHot(i, C)
"""
    function, *_ = generated(forward_file(tmp_path, "Added", body), tmp_path)
    x, index = draw(4, 3), labels(4, 3)
    before = x.clone()
    y = function(x, draw(4), index)
    assert torch.equal(x, before)
    hot = torch.nn.functional.one_hot(index, 3)
    torch.testing.assert_close(y, x + draw(4)[:, None] * hot)
