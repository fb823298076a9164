"""A formula is read for every number of dimensions that its forward may have, and says which."""

from __future__ import annotations

import json

import pytest
from sympy import Integer, sqrt

import derive
from derive import Axes, Axis, Forward, Input, Scalar, Sum
from derive.claims.checking.dimensions import shapes_of
from derive.claims.reading import NotUnderstood
from derive.commands.check import check_command
from derive.gradient.chain.chain import derive_chain
from derive.gradient.closing.closed_form import close
from derive.proof.proving.proof import prove

N, C, S = Axis("N"), Axis("C"), Axes("S")
Rows = Axes("N")


class Affine(Forward):
    """Of rows, sequences or images whose channels come last."""

    x = Input(Rows, C)
    gain = Input(C)
    bias = Input(C)

    dummy = gain * x
    y = dummy + bias


class PerChannel(Forward):
    """Of rows, or of images whose channels come second, over all places."""

    x = Input(N, C, S)
    gain = Input(C)
    eps = Scalar(1e-5)

    mean = Sum(x, N, S) / (N * S)
    diff = x - mean
    var = Sum(diff**2, N, S) / (N * S)
    xhat = diff / sqrt(var + eps)
    y = gain * xhat


class Mean(Forward):
    x = Input(Rows)
    target = Input(Rows)

    loss = Sum((x - target) ** 2, Rows) / Rows


TWO = "x is (B, T)"


@pytest.mark.parametrize(
    ("forward", "of", "text", "shapes"),
    [
        (Affine, "bias", "dy.sum((0, 1))", "x is (B, T, C)"),
        (Affine, "bias", "dy.sum(0).sum(0)", "x is (B, T, C)"),
        (Affine, "gain", "(dy*x).sum(dim=(0, 1))", "x is (B, T, C)"),
        (Affine, "bias", "torch.einsum('btc->c', dy)", "x is (B, T, C)"),
        (Affine, "bias", "dy.mean((0, 1))*B*T", "x is (B, T, C)"),
        (Affine, "bias", "B, T, D = x.shape\ndbias = dy.sum(1).sum(0)", "x is (B, T, C)"),
        (Affine, "bias", "dy.sum((0, 1, 2))", "x is (B, T, U, C)"),
        (Affine, "bias", "dy.sum(0)", "x is (N, C)"),
        (PerChannel, "gain", "(dy*xhat).sum((0, 2, 3))", "x is (N, C, H, W)"),
        (PerChannel, "gain", "(dy*xhat).sum((0, 2))", "x is (N, C, S)"),
        (PerChannel, "gain", "(dy*xhat).sum(0)", "x is (N, C)"),
        (Mean, "x", "2*dloss*(x - target)/(x.shape[0]*x.shape[1])", TWO),
        (Mean, "x", "2*dloss*(x - target)/x.shape[0]", "x is (N,)"),
    ],
)
def test_right_in_the_shape_that_it_was_written_for(forward, of, text, shapes):
    verdict = derive.check(forward, text, of=of)
    assert verdict.right and verdict.status == 0, verdict
    assert verdict.shapes == shapes and str(verdict).startswith(f"right where {shapes}: ")


@pytest.mark.parametrize(
    ("forward", "of", "text", "shapes"),
    [
        (Affine, "bias", "dy.reshape(-1, C).sum(0)", "x is (N, C)"),
        (Affine, "bias", "dy.flatten(0, -2).sum(0)", "x is (N, C)"),
        (Affine, "x", "gain*dy", "x is (N, C)"),
        (Mean, "x", "2*dloss*(x - target)/x.numel()", "x is (N,)"),
    ],
)
def test_right_in_every_shape(forward, of, text, shapes):
    verdict = derive.check(forward, text, of=of)
    assert verdict.right and verdict.in_every_shape and verdict.shapes == shapes
    assert str(verdict).startswith("right: ") and f"read where {shapes}" in str(verdict)


BATCH_NORM = (
    "N, D = x.shape\n"
    "dx = (1. / N) * gain * (var + eps)**(-1. / 2.) * (N * dout - torch.sum(dout, axis=0)"
    " - (x - mean) * (var + eps)**(-1.0) * torch.sum(dout * (x - mean), axis=0))"
)


def test_the_batchnorm_of_the_course_has_no_places():
    lets = {"dout": "dy"}
    verdict = derive.check("batch_norm_biased", BATCH_NORM, let=lets)
    assert verdict.right and verdict.shapes == "x is (N, C)", verdict
    wrong = derive.check("batch_norm_biased", BATCH_NORM.replace("1. / N", "2. / N"), let=lets)
    assert wrong.right is False


def test_right_in_one_shape_and_wrong_in_another_is_said():
    verdict = derive.check(Mean, "2*dloss*(x - target)/x.shape[0]")
    assert verdict.right and verdict.shapes == "x is (N,)"
    assert "x is (B, T): wrong" in verdict.other_shapes and "x is (B, T): wrong" in str(verdict)


def test_the_same_in_every_shape_is_said_too():
    verdict = derive.check(Mean, "2*dloss*(x - target)/x.numel()")
    assert verdict.other_shapes == (
        "x is (B, T): right",
        "x is (B, T, U): right",
        "x is (): right",
    )


@pytest.mark.parametrize(
    ("forward", "of", "text"),
    [
        (Affine, "bias", "2*dy.sum((0, 1))"),
        (Affine, "bias", "dy.mean((0, 1))"),
        (Affine, "gain", "dy.sum((0, 1))"),
        (Affine, "bias", "dy.sum(1)"),
        (PerChannel, "gain", "(dy*xhat).sum((0, 2, 3))/x.shape[3]"),
        (PerChannel, "gain", "(dy*xhat).sum(1)"),
        (Mean, "x", "2*dloss*(x - target)/(x.shape[0]*x.size(-1))"),
        (Mean, "x", "2*dloss*(x - target)/x.shape[1]"),
        (Mean, "x", "dloss*(x - target)/x.numel()"),
    ],
)
def test_wrong_in_every_shape_is_wrong(forward, of, text):
    assert derive.check(forward, text, of=of).right is False


def test_a_forward_of_one_shape_says_nothing_of_shapes():
    verdict = derive.check("batch_norm", "dy.sum(0)", of="bias")
    assert verdict.shapes == "" and "read with" not in str(verdict)


def test_json_says_the_shape(capsys):
    assert check_command(["mse", "2*dloss*(x - target)/(x.shape[0]*x.shape[1])", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["shapes"] == TWO


@pytest.mark.parametrize("forward", [Affine, PerChannel, Mean])
def test_a_forward_in_other_shapes_is_a_forward_and_is_proved(forward):
    found = list(shapes_of(forward.definition))
    assert [len(next(iter(shapes.bound.values()))) for shapes in found] == [1, 2, 3, 0]
    for shapes in (found[1], found[3]):
        assert prove(close(derive_chain(shapes.definition))).every_size


def test_a_name_that_is_taken_is_left_to_its_owner():
    class Taken(Forward):
        x = Input(Rows, C)
        B = Input(C)

        y = x * B

    axes = next(iter(list(shapes_of(Taken.definition))[1].bound.values()))
    assert [axis.name for axis in axes] == ["N_1", "N_2"]
    assert derive.check(Taken, "(dy*x).sum((0, 1))", of="B").right


def test_where_a_size_is_one_its_name_is_the_number(tmp_path):
    verdict = derive.check(PerChannel, "(dy*xhat).sum(0)*S", of="gain")
    assert verdict.right and verdict.shapes == "x is (N, C)"
    assert list(shapes_of(PerChannel.definition))[3].sizes == {"S": Integer(1)}


# Right for one row, or for one number, alone: the commonest mistakes.
FORGOTTEN = [
    ("softmax", "x", "y*(dy - (dy*y).sum(0))"),
    ("softmax", "x", "y*(dy - (dy*y).sum(0, keepdim=True))"),
    ("softmax", "x", "y*(dy - (dy*y).sum(-1))"),
    ("softmax", "x", "y*(dy - (dy*y).sum())"),
    ("softmax", "x", "y*(dy - torch.einsum('c,c->', dy, y))"),
    ("softmax", "x", "y*dy - torch.outer(y, y) @ dy"),
    ("softmax", "x", "F.softmax(x, 0)*(dy - (dy*y).sum(-1, keepdim=True))"),
    ("layer_norm", "gain", "dy*xhat"),
    ("layer_norm", "bias", "dy"),
    ("linear", "weight", "torch.outer(x, dy)"),
    ("linear", "x", "weight @ dy"),
    ("mse", "x", "2*dloss*(x - target).mean()"),
    ("instance_norm", "gain", "(dy*xhat).sum(0)"),
    ("weight_norm", "g", "dw*v/norm"),
]


@pytest.mark.parametrize(("forward", "of", "text"), FORGOTTEN)
def test_what_is_right_without_the_rows_alone_is_wrong_and_the_rows_are_named(forward, of, text):
    verdict = derive.check(forward, text, of=of)
    assert verdict.outcome == "wrong" and verdict.status == 1, verdict
    declared = verdict.shapes
    assert declared and str(verdict).startswith(f"wrong where {declared}: d{of} of {forward}")
    assert any(words.endswith(": right") for words in verdict.other_shapes), verdict
    assert verdict.as_json()["in_every_shape"] is False


def test_one_wrong_line_of_several_is_wrong_where_it_is_wrong():
    text = "p = (dy*y).sum(-1, keepdim=True)\ndx = y*(dy - p)"
    assert "right: 1 gradient of softmax" in str(derive.check("softmax", text))
    verdict = derive.check(Affine, "dbias = dy.sum(0)\ndgain = (dy*x).sum(1)")
    assert [a.outcome for a in verdict.answers] == ["right", "wrong"] and verdict.status == 1


def test_the_second_order_says_the_shapes_too():
    verdict = derive.check("softmax", "jvp = y*(v_x - (v_x*y).sum(0))", order=2)
    assert verdict.outcome == "wrong" and str(verdict).startswith("wrong where x is (N, C): v_y")


def test_a_place_that_the_mathematics_does_not_need_may_be_missing():
    """Rows alone are a usual shape of a batch norm: nothing is summed over the places alone."""
    verdict = derive.check("batch_norm_biased", "(dy*xhat).sum(0)", of="gain")
    assert verdict.right and str(verdict).startswith("right where x is (N, C): ")
    assert any("(C, S)" in words for words in verdict.other_shapes)


DROPPED = "torch keeps one and drops the rest"


@pytest.mark.parametrize(
    "line",
    [
        "dtable[index] += dy",
        "dtable[index] -= -dy",
        "dtable[index] = dy",
        "dtable[index] = dtable[index] + dy",
        "dtable.index_put_((index,), dy)",
        "dtable.scatter_(0, index[:, None].expand(-1, E), dy)",
    ],
)
def test_what_is_written_to_one_row_twice_is_wrong(line):
    verdict = derive.check("embedding", f"dtable = torch.zeros_like(table)\n{line}")
    assert verdict.outcome == "wrong" and DROPPED in str(verdict)
    assert verdict.shapes == "index is (N,)"


@pytest.mark.parametrize(
    "line",
    [
        "dtable.index_add_(0, index, dy)",
        "dtable.index_put_((index,), dy, accumulate=True)",
        "dtable.scatter_add_(0, index[:, None].expand(-1, E), dy)",
    ],
)
def test_what_is_added_to_one_row_twice_is_right(line):
    assert derive.check("embedding", f"dtable = torch.zeros_like(table)\n{line}").right


def test_what_is_not_read_where_it_is_likeliest_is_not_wrong_where_it_does_not_fit():
    text = "dx = dy*y\nfor i in range(N):\n    dx[i] -= y[i]*dx[i].sum()"  # right for rows
    with pytest.raises(NotUnderstood, match="another one wrote"):
        derive.check("softmax", text)
