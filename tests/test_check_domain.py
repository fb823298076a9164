"""A formula that has no value where the gradient has one says where it is right."""

from __future__ import annotations

import json

import pytest
from sympy import Abs, exp, log, sqrt

import derive
from derive import Axis, Forward, Input, Scalar, Sum
from derive.claims.reading import read
from derive.claims.reading.literal import needs, plain
from derive.commands.check import check_command

N, C = Axis("N"), Axis("C")


class Squares(Forward):
    x = Input(N, C)
    scale = Input(C)

    y = scale * x**2


class Spread(Forward):
    x = Input(N, C)
    eps = Scalar(1e-5)

    mean = Sum(x, C) / C
    diff = x - mean
    var = Sum(diff**2, C) / C
    width = sqrt(var + eps)
    y = diff / width


class Root(Forward):
    x = Input(N, C)

    y = sqrt(x) + log(x)


class Shares(Forward):
    x = Input(N, C)

    total = Sum(exp(x), C)
    y = exp(x) / total


class Size(Forward):
    x = Input(N)

    y = Abs(x) ** 3


NARROWER = [
    ("2*scale*dy*x.sqrt()**2", "x >= 0"),
    ("2*scale*dy*(x**0.5)**2", "x >= 0"),
    ("2*scale*dy*torch.pow(x, 0.5)*torch.sqrt(x)", "x >= 0"),
    ("2*scale*dy*exp(log(x))", "x > 0"),
    ("2*scale*dy*torch.exp(2*torch.log(x))/x", "x > 0"),
    ("2*scale*dy/(x.rsqrt()**2)", "x > 0"),
    ("2*scale*dy*x + 0*torch.log(x)", "x > 0"),
    ("2*scale*dy*x + torch.log(x) - torch.log(x)", "x > 0"),
    ("2*scale*dy*x - 0*(-x).sqrt()", "x <= 0"),
    ("2*scale*dy*((x + 50).sqrt()**2 - 50)", "x >= -50"),
    ("2*dy*x*scale.log().exp()", "scale > 0"),
    ("r = x.sqrt()\ndx = 2*scale*dy*r*r", "x >= 0"),
]
SINGLE_NUMBERS = [
    ("2*scale*dy*x**2/x", "x != 0"),
    ("2*scale*dy*x*x/x", "x != 0"),
    ("2*scale*dy*x**3*x**-2", "x != 0"),
    ("2*dy*x*scale**2/scale", "scale != 0"),
    ("2*scale*x*dy**2/dy", "dy != 0"),
    ("2*scale*x*dy*(x - 3)/(x - 3)", "x != 3"),
    ("2*scale*x*dy*(N - 1)/(N - 1)", "N != 1"),
    ("2*scale*x*dy*(C - 9)/(C - 9)", "C != 9"),
]
ANYWHERE = [
    (Squares, "2*scale*dy*log(exp(x))"),
    (Squares, "2*scale*dy/(1/x)"),  # torch has 1/0 = inf, and 1/inf = 0
    (Squares, "2*scale*dy*x*(x**2 + 1)/(1 + x*x)"),
    (Squares, "2*scale*dy*torch.where(x > 0, x.sqrt()**2, x)"),
    (Squares, "2*scale*dy*x.square().sqrt()*x.sign()"),
    (Spread, "(dy - dy.mean(1, True))/width - diff*(dy*diff).mean(1, True)*(var + eps)**-1.5"),
    (Root, "dy*(0.5/x.sqrt() + 1/x)"),
    (Root, "dy*(0.5*(-0.5*torch.log(x)).exp() + x**2/x**3)"),
    (Shares, "y*(dy - (dy*x.exp()).sum(1, True)/total)"),
    (Shares, "(y.log()).exp()*(dy - (dy*y).sum(1, True))"),
]


@pytest.mark.parametrize(("text", "where"), NARROWER)
def test_no_value_on_a_part_of_the_data_is_narrower(text, where):
    verdict = derive.check(Squares, text)
    assert verdict.outcome == "narrower" and verdict.right is None and verdict.status == 1, verdict
    assert f"right where {where}; torch gives NaN elsewhere" in str(verdict)


@pytest.mark.parametrize(("text", "where"), SINGLE_NUMBERS)
def test_no_value_at_a_single_number_is_right_and_named(text, where):
    verdict = derive.check(Squares, text)
    assert verdict.right and verdict.status == 0, verdict
    assert f"right where {where}; torch gives NaN elsewhere" in str(verdict)


@pytest.mark.parametrize(("forward", "text"), ANYWHERE, ids=str)
def test_what_the_forward_needs_too_is_not_named(forward, text):
    verdict = derive.check(forward, text)
    assert verdict.right and "elsewhere" not in str(verdict), verdict


def test_a_quotient_by_what_may_be_zero_in_a_kink():
    assert "right where x != 0" in str(derive.check(Size, "dy*3*x**2*(x/x.abs())"))


def test_the_root_of_a_square_is_no_x():
    assert derive.check(Squares, "2*scale*dy*x.square().sqrt()").right is False


def test_json_carries_the_condition(tmp_path, capsys):
    file = tmp_path / "squares.py"
    file.write_text(
        "from derive import Axis, Forward, Input\nN = Axis('N')\n"
        "class Squares(Forward):\n    x = Input(N)\n    y = x**2\n"
    )
    assert check_command([str(file), "--json", "2*dy*exp(log(x))"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["outcome"] == "narrower" and data["gradients"][0]["where"] == ["x > 0"]


@pytest.mark.parametrize("text", [text for text, _ in NARROWER + SINGLE_NUMBERS])
def test_what_is_typed_means_what_is_proved(text):
    definition = Squares.definition
    (claim,) = read(text, definition, definition.inputs[0]).claims
    assert needs(claim.written)
    assert (plain(claim.written) - claim.actual).simplify() == 0
