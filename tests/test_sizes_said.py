"""Sizes that depend on others are said in the axes: ``x: B T 2*E, w: E P``."""

import pytest
import torch
import torch.nn.functional as F
from sampling import every
from torch.autograd import Function

from codegen.backwards.checking import check_function
from codegen.importing.asked import arguments_of
from codegen.importing.driver import imported
from codegen.importing.lengths import fitted, size_at
from derive import derive
from derive.language.errors import NotationError, QuestionError
from derive.language.notation.library import forward_from


def gated(x, w):
    a, b = x.chunk(2, dim=-1)
    return (a * torch.sigmoid(b)) @ w


def halves(x, w):
    half = x.shape[-1] // 2
    return (x[..., :half] * torch.sigmoid(x[..., half:])) @ w


def in_groups(y, p):
    return (y.view(y.shape[0], -1, p.shape[0]) * p).sum(-1)


def with_first(x, w):
    return torch.einsum("ne,e->n", x[:, 1:], w) + x[:, 0]


def of_halves(x, w):
    a, b = x.chunk(2, -1)
    return (a * b) @ w


def thirds(x, w):
    a, b, c = x.chunk(3, -1)
    return (a * b * c).sum() + w.sum()


def met(x, y):
    return (x * y).sum(-1)


def mean(x):
    return x.mean(-1)


def square(x, n):
    return (x.view(x.shape[0], n.shape[0], n.shape[0]) * n).sum(-1)


def joined(x, y):
    return torch.cat((x, y), -1)


def entropy(x, labels):
    return F.cross_entropy(x, labels)


def one_branch(x):
    return x.sum(-1) if x.shape[-1] > 64 else x.mean(-1)


class Gated(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(16, 24)

    def forward(self, x):
        a, b = self.linear(x).chunk(2, -1)
        return a * torch.sigmoid(b)


ACCEPTED = {
    (gated, "x: B T 2*E, w: E P"): ["Unflatten(x, TwoE, into=(Two, E))"],
    (halves, "x: B T 2*E, w: E P"): ["Unflatten(x, TwoE, into=(Two, E))"],
    (in_groups, "y: B G*P, p: P"): ["y = Input(B, GP)", "Unflatten(y, GP, into=(G, P))"],
    (in_groups, "y: B 4*P, p: P"): ["Unflatten(y, FourP, into=(Four, P))"],
    (with_first, "x: N E+1, w: E"): ['P = Axis("P", E + 1)', "Slice(x, P, into=E, start=1)"],
    (met, "x: N 2*E, y: N E*2"): ["y = Input(N, TwoE)"],
    (met, "x: 2*N N, y: 2*N N"): ['TwoN = Axis("TwoN", 2*N)'],
    (met, "x: N E-F, y: N E-F"): ["y = Input(N, P)"],
    (mean, "x: N 2*E"): ["Sum(x, TwoE) / TwoE"],
    (mean, "x: N G*H"): ["Sum(x, GH) / GH"],
    (square, "x: B N*N, n: N"): ["Unflatten(x, P, into=(N, P2))"],
    (joined, "x: N 2*E, y: N E"): ["before=2*E"],
    (entropy, "x: N 2*E, labels: N"): ["OneHot(labels, TwoE)"],
}


@pytest.mark.parametrize(
    ("function", "axes"), every(2, ACCEPTED), ids=lambda part: getattr(part, "__name__", part)
)
def test_an_expression_is_one_axis_of_that_size(function, axes):
    found = imported(function, axes)
    assert not found.needs and len(found.agreement.sizes) > 2
    assert all(line in found.text for line in ACCEPTED[function, axes])
    assert derive(found.forward).every_size


DEMANDED = {
    (thirds, "x: N 2*E, w: E"): ("E a multiple of 3",),
    (of_halves, "x: N E, w: E//2"): ("E a multiple of 2",),
    (met, "x: N (E+1)//2, y: N (1+E)/2"): ("E/2 + 1/2 a whole number",),
    (met, "x: N 2*E, y: N C"): ("C = 2*E",),
    (met, "x: N 2*E, y: N G*P"): ("E = G*P/2",),
}


@pytest.mark.parametrize(
    ("function", "axes"), DEMANDED, ids=lambda part: getattr(part, "__name__", part)
)
def test_what_the_code_needs_beyond_it_is_said(function, axes):
    found = imported(function, axes)
    assert found.needs == DEMANDED[function, axes] and derive(found.forward).every_size


REFUSED = {
    "x: N 2E": "'2E' of x is neither a name nor a size",
    "x: N 2 * E": "'*' of x is neither a name nor a size",
    "x: N E%2": "'E%2' of x is neither a name nor a size",
    "x: N E//0": "'E//0' of x is neither a name nor a size",
    "x: N 2**E": "neither a name nor a size",
    "x: N (H W)": "neither a name nor a size",
    "x: N ²": "neither a name nor a size",
    "x: N -E": "-E of x is never above 0",
    "x: N E-E": "E-E of x is never above 0",
    "x: N 3/2": "3/2 of x is not an integer",
}


@pytest.mark.parametrize("axes", REFUSED)
def test_what_is_no_size_is_refused(axes):
    with pytest.raises(QuestionError, match="--axes") as raised:
        arguments_of(axes)
    assert REFUSED[axes] in raised.value.problem and raised.value.remedy


def test_one_size_is_written_in_one_way():
    (x,) = arguments_of("x: E*2 E+E 2*E 1*E 2*3 E//2*2 (E+1)*N")
    assert x.axes == ("2*E", "2*E", "2*E", "E", "6", "E", "E*N+N")


def test_axes_that_are_called_differently_stay_different():
    with pytest.raises(QuestionError, match="runs only where G = E") as raised:
        imported(of_halves, "x: N 2*E, w: G")
    assert '--axes "x: N 2*E, w: E"' in raised.value.remedy
    with pytest.raises(QuestionError, match="must match"):
        imported(met, "x: N 2*E, y: N E")
    with pytest.raises(QuestionError, match="E/2 is 5/2 at E = 5"):
        imported(of_halves, "x: N E, w: E//2", "E: 5")
    with pytest.raises(QuestionError, match="another branch at other sizes"):
        imported(one_branch, "x: N 2*E")


def test_the_axes_of_a_module_meet_an_expression():
    found = imported(Gated, "x: N 2*E")
    assert "x = Input(N, TwoE)" in found.text and "linear_weight = Input(H, TwoE)" in found.text


def test_sizes_are_chosen_so_that_every_length_is_whole():
    axes = ["E", "E//2", "E-F", "G*P"]
    sizes = fitted(axes, {"E": 3, "F": 5, "G": 2, "P": 2}, apart=True)
    lengths = [size_at(axis, sizes) for axis in axes[1:]]
    assert len({*lengths, *sizes.values()}) == len({*sizes.values()}) + 3 and min(lengths) > 1


class Cut(Function):
    @staticmethod
    def forward(ctx, x, w):
        a, b = x.chunk(2, -1)
        ctx.save_for_backward(x, w)
        return a * torch.sigmoid(b) * w

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        a, b = x.chunk(2, -1)
        s = torch.sigmoid(b)
        g = dy * w
        return torch.cat([g * s, g * a * s * (1 - s)], -1), (dy * a * s).sum(0)


class Mean(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.shape = x.shape
        return x.mean(-1)

    @staticmethod
    def backward(ctx, dy):
        return dy[:, None].expand(ctx.shape) / ctx.shape[-1]


class HalfMean(Mean):
    @staticmethod
    def backward(ctx, dy):
        return dy[:, None].expand(ctx.shape) / (ctx.shape[-1] // 2)


class Groups(Function):
    @staticmethod
    def forward(ctx, y, p):
        ctx.save_for_backward(y, p)
        return (y.view(y.shape[0], -1, p.shape[0]) * p).sum(-1)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dz):
        y, p = ctx.saved_tensors
        v = y.view(y.shape[0], -1, p.shape[0])
        return (dz[..., None] * p).reshape(y.shape), (dz[..., None] * v).sum((0, 1))


@pytest.mark.parametrize(
    ("function", "axes"),
    [(Cut, "x: N 2*E, w: E"), (Mean, "x: N 2*E"), (Groups, "y: B G*P, p: P")],
    ids=lambda part: getattr(part, "__name__", part),
)
def test_a_function_is_proved_for_all_of_these_sizes(function, axes):
    verdict = check_function(function, axes)
    assert verdict.right and not verdict.needs
    assert "TwoE" not in str(verdict) and "GP" not in str(verdict)


def test_a_counterexample_has_sizes_that_are_meant():
    words = str(check_function(HalfMean, "x: N 2*E"))
    assert "the coefficient of dy is 2/(2*E), it must be 1/(2*E)" in words
    assert "E                 = 1\n    x                 = [[0, 0]]" in words


PART_OF = """
from gradform import Axis, Forward, Input, OneHot, Sum, Unflatten
N, E, Two = Axis("N"), Axis("E"), Axis("Two", 2)
P = Axis("P", E / 2)
class Half(Forward):
    x = Input(N, E)
    w = Input(P)
    y = Sum(Sum(OneHot(0, Two) * Unflatten(x, E, into=(Two, P)), Two) * w, P)
"""


def test_a_part_whose_size_is_made_of_the_whole_is_refused(tmp_path):
    path = tmp_path / "half.py"
    path.write_text(PART_OF)
    with pytest.raises(NotationError, match="P has its size from E, of which it is a part"):
        forward_from(path)


def first_half(x):
    return x[:, : x.shape[1] // 2] * 2


def test_half_of_an_odd_size_is_a_whole_number():
    found = imported(first_half, "x: N 2*E+1")
    assert "(P - 1)/2" in found.text and not found.needs
