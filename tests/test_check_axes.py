"""Axes that are named differently stay different, and sizes that depend on others are said."""

import pytest
from torch.autograd import Function

from codegen.backwards.checking import check_function
from codegen.importing.driver import imported
from derive.language.errors import QuestionError


class RowScale(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(w)
        return x * w

    @staticmethod
    def backward(ctx, dy):
        (w,) = ctx.saved_tensors
        return dy * w, None


class Matmul(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        return dy @ w.T, x.T @ dy


class Transposed(Matmul):
    """dw in the other order."""

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        return dy @ w.T, dy.T @ x


class Grouped(Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w.repeat_interleave(x.shape[1] // w.shape[0], dim=0)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        times = x.shape[1] // w.shape[0]
        dw = (dy * x).sum(0).view(w.shape[0], times).sum(1)
        return dy * w.repeat_interleave(times, dim=0), dw


class OneGroup(Grouped):
    """One group too few is summed."""

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        times = x.shape[1] // w.shape[0]
        dw = (dy * x).sum(0).view(w.shape[0], times)[:, 0]
        return dy * w.repeat_interleave(times, dim=0), dw


def row_scale(x, w):
    return x * w


def turned(x):
    return x + x.T


def shifted(x, w):
    return x[:, 2:] * w


def scrambled(x):
    return x.reshape(x.shape[1], x.shape[0]) * 2


def in_rows_of_16(x):
    rows = x.reshape(-1, 16)
    return (rows / (rows * rows).sum(-1, keepdim=True)).reshape(x.shape)


@pytest.mark.parametrize(
    ("function", "axes", "sizes", "equal"),
    [
        (RowScale, "x: N C, w: N", "", "C = N"),
        (RowScale, "x: N C, w: N", "N: 4, C: 4", "C = N"),
        (RowScale, "x: N 8, w: N", "", "N = 8"),
        (RowScale, "x: N A B, w: N C D", "", "D = B and C = A"),
        (Matmul, "x: N C, w: K M", "", "K = C"),
    ],
)
def test_what_runs_only_where_axes_are_equal_is_wrong(function, axes, sizes, equal):
    """Whatever is said of sizes, and the line is named."""
    verdict = check_function(function, axes, sizes)
    assert verdict.outcome == "wrong" and not verdict.verdicts
    assert f"runs only where {equal}, line" in str(verdict) and "return x" in str(verdict)


@pytest.mark.parametrize(
    ("axes", "sizes"),
    [
        ("x: N C, w: C", "N: 4, C: 4"),
        ("x: N C, w: N 1", ""),
        ("x: N C, w: 1 C", ""),
        ("x: N C, w:", ""),
        ("x: N 8, w: 8", ""),
        ("x: N N, w: N", ""),
    ],
)
def test_other_axes_of_the_same_function_are_right(axes, sizes):
    """The remedy that is named, too."""
    assert check_function(RowScale, f"{axes} given", sizes).right


def test_a_gradient_in_the_other_order_is_wrong_at_whatever_sizes():
    for sizes in ("", "K: 4, M: 4"):
        verdict = check_function(Transposed, "x: N K, w: K M", sizes)
        assert verdict.wrong == ["dw"] and str(verdict).count("dw has shape") == 1
        assert "right: dx of Transposed" in str(verdict)
    assert check_function(Matmul, "x: N K, w: K M", "K: 4, M: 4").right


@pytest.mark.parametrize("sizes", ["", "C: 12, G: 4"])
def test_sizes_that_depend_on_others_are_found_and_said(sizes):
    verdict = check_function(Grouped, "x: N C, w: G", sizes)
    assert verdict.right and verdict.needs == ("C a multiple of G",)
    assert "C a multiple of G; no others were looked at" in str(verdict)
    assert check_function(OneGroup, "x: N C, w: G", sizes).wrong == ["dw"]


def test_an_import_merges_nothing_and_its_remedy_works():
    with pytest.raises(QuestionError, match="runs only where C = N") as raised:
        imported(row_scale, "x: N C, w: N")
    assert '--axes "x: N N, w: N"' in raised.value.remedy
    assert 'M = Axis("M", N)' in imported(row_scale, "x: N N, w: N").text
    (x,) = imported(turned, "x: N N").forward.definition.inputs
    assert len({*map(imported(turned, "x: N N").forward.definition.size, x.home)}) == 1


def test_an_axis_as_long_as_a_slice_is_declared_so():
    found = imported(shifted, "x: B T, w: S")
    assert found.needs == ("S = T - 2",) and 'S = Axis("S", T - 2)' in found.text


def test_a_view_that_mixes_dimensions_says_what_to_write():
    with pytest.raises(QuestionError, match=r"a view of \(N, C\) as \(C, N\)"):
        imported(scrambled, "x: N C")
    with pytest.raises(QuestionError) as raised:
        imported(in_rows_of_16, "x: N C")
    assert '--sizes "C: 64"' in raised.value.remedy
    assert imported(in_rows_of_16, "x: N C", "C: 64").needs == ("C a multiple of 16",)
