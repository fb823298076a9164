"""Gathers and sums by label: equal to torch's own index operations, proved for every size,
safe where the segments are far apart, and without a one-hot of full size.
"""

import pytest
import torch
from generating import assert_same_gradients, generated
from sampling import every

from derive import (
    Axis,
    Gather,
    NotationError,
    SegmentMax,
    SegmentMean,
    SegmentSum,
    check,
    derive,
    forward_from,
)
from derive.language.symbols import Tensor

HEAD = """from sympy import Piecewise, exp, log, oo, sqrt
from derive import Axis, Forward, Gather, Given, Input, Label, Max, OneHot, SegmentMax, SegmentMean
from derive import SegmentSum, Size, Sum

V, E, D, F, H = Axis("V"), Axis("E"), Axis("D"), Axis("F"), Axis("H")


class Own(Forward):
"""
EDGES = "    src = Label(E)\n    dst = Label(E)\n"
SCORES = "    w = Input(V)\n    x = Input(E)\n    dst = Label(E)\n"
ROWS = "    w = Input(V, D)\n    x = Input(E, D)\n    dst = Label(E)\n"
ATTENTION = (
    "    h = Input(V, D)\n    left = Input(D)\n    right = Input(D)\n" + EDGES + "    s ="
    " Gather(Sum(h*left, D), src, V) + Gather(Sum(h*right, D), dst, V)\n"
    "    score = Piecewise((s, s > 0), (s/5, True))\n"
)
SRC, DST = torch.tensor([0, 1, 2, 1, 0, 4]), torch.tensor([0, 0, 2, 2, 2, 4])
SIZE = 5  # segments 1 and 3 are empty


def by_label(x, kind):
    empty = torch.full((SIZE, *x.shape[1:]), 0.0 if kind == "sum" else -torch.inf).to(x)
    index = DST.reshape(-1, *[1] * (x.dim() - 1)).expand_as(x)
    return empty.scatter_reduce(0, index, x, kind)


def softmax(score):
    e = torch.exp(score - by_label(score, "amax")[DST])
    return e / by_label(e, "sum")[DST]


def attention(h, left, right, src, dst):
    score = torch.nn.functional.leaky_relu((h @ left)[src] + (h @ right)[dst], 0.2)
    return by_label(softmax(score)[:, None] * h[src], "sum")


def heads(x, weight, left, right, src, dst):
    h = torch.einsum("vd,dhf->vhf", x, weight)
    score = torch.nn.functional.leaky_relu((h * left).sum(2)[src] + (h * right).sum(2)[dst], 0.2)
    return by_label(softmax(score)[:, :, None] * h[src], "sum")


def mean(x):
    return by_label(x, "sum") / COUNT[:, None]


def logsumexp(x):
    """Of segments of one entry each."""
    return x[torch.tensor([1, 4, 3, 0, 2])]


COUNT = torch.tensor([2, 1, 3, 1, 1])  # of each segment, at least 1
SPELLED = "    x = Input(E)\n    dst = Label(E)\n    size = Size(V)\n"
SHIFTED = SPELLED + "    z = x - Gather(SegmentMax(x, dst, V), dst, V)\n    e = exp(z)\n"
SHARE = (
    SPELLED + "    y = exp(x)/Gather(SegmentSum(exp(x), dst, V), dst, V)\n",
    SPELLED + "    r = 1/SegmentSum(exp(x), dst, V)\n    y = exp(x)*Gather(r, dst, V)\n",
    SPELLED + "    h = OneHot(dst, V)\n    e = exp(x)\n    y = e*Sum(h/Sum(h*e, E), V)\n",
    SPELLED + "    e = exp(x)\n    y = Sum(OneHot(dst, V)*e/SegmentSum(e, dst, V), V)\n",
    SHIFTED + "    y = e/Gather(SegmentSum(e, dst, V), dst, V)\n",
    SPELLED + "    h = OneHot(dst, V)\n    m = Max(Piecewise((x, h > 0), (-oo, True)), E)\n"
    "    e = exp(x - Sum(h*m, V))\n    y = e*Sum(h/Sum(h*e, E), V)\n",
)
LOGARITHM = (
    SPELLED + "    y = x - Gather(log(SegmentSum(exp(x), dst, V)), dst, V)\n",
    SPELLED + "    y = x - log(Gather(SegmentSum(exp(x), dst, V), dst, V))\n",
    SPELLED + "    s = log(Sum(OneHot(dst, V)*exp(x), E))\n    y = x - Sum(OneHot(dst, V)*s, V)\n",
    SHIFTED + "    y = z - log(Gather(SegmentSum(e, dst, V), dst, V))\n",
    SPELLED
    + "    m = SegmentMax(x, dst, V)\n    s = m + log(SegmentSum(exp(x - Gather(m, dst, V)),"
    " dst, V))\n    y = x - Gather(s, dst, V)\n",
)
TIMES = (
    SPELLED + "    e = exp(x)\n    y = SegmentSum(x*e/Gather(SegmentSum(e, dst, V), dst, V), dst,"
    " V)\n",
    SHIFTED + "    y = SegmentSum(x*e/Gather(SegmentSum(e, dst, V), dst, V), dst, V)\n",
)
SHARES = "Sum(OneHot(dst, V)*Sum(dy*y*OneHot(dst, V), E), V)"
ALL = "Sum(OneHot(dst, V)*Sum(dy*OneHot(dst, V), E), V)"
GATHERED = "Sum(dy*OneHot(dst, V), V)"
SPELLINGS = {
    **dict.fromkeys(SHARE, f"dx = y*(dy - {SHARES})"),
    **dict.fromkeys(LOGARITHM, f"dx = dy - exp(y)*{ALL}"),
    **dict.fromkeys(
        TIMES,
        f"dx = e_over_sum_in_y_at_dst*((x + 1)*{GATHERED} - Sum(dy*y*OneHot(dst, V), V))",
    ),
}


@pytest.mark.parametrize("spelling", every(3, SPELLINGS))
def test_every_spelling_has_the_same_short_closed_form(spelling, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(HEAD + spelling, encoding="utf-8")
    proved = derive(forward_from(file))
    assert proved.every_size
    assert str(proved.closed_form) == SPELLINGS[spelling]


def draw(*shape):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


CASES = {
    "graph attention": (
        ATTENTION + "    e = exp(score)\n    alpha = e/Gather(SegmentSum(e, dst, V), dst, V)\n"
        "    y = SegmentSum(alpha*Gather(h, src, V), dst, V)\n",
        attention,
        (draw(SIZE, 3), draw(3), draw(3), SRC, DST),
    ),
    "graph attention by one-hots": (
        ATTENTION + "    e = exp(score)\n    total = Sum(OneHot(dst, V)*e, E)\n"
        "    alpha = e/Sum(OneHot(dst, V)*total, V)\n"
        "    y = Sum(OneHot(dst, V)*alpha*Sum(OneHot(src, V)*h, V), E)\n",
        attention,
        (draw(SIZE, 3), draw(3), draw(3), SRC, DST),
    ),
    "graph attention with its largest": (
        ATTENTION + "    e = exp(score - Gather(SegmentMax(score, dst, V), dst, V))\n"
        "    alpha = e/Gather(SegmentSum(e, dst, V), dst, V)\n"
        "    y = SegmentSum(alpha*Gather(h, src, V), dst, V)\n",
        attention,
        (draw(SIZE, 3), draw(3), draw(3), SRC, DST),
    ),
    "softmax over a segment": (
        SCORES + "    e = exp(x)\n    alpha = e/Gather(SegmentSum(e, dst, V), dst, V)\n"
        "    y = w*SegmentSum(x*alpha, dst, V)\n",
        lambda w, x, dst: w * by_label(x * softmax(x), "sum"),
        (draw(SIZE), draw(6), DST),
    ),
    "mean of a segment": (
        ROWS + "    y = w*SegmentMean(x, dst, V)\n",
        lambda w, x, dst: w * by_label(x, "sum") / COUNT[:, None],
        (draw(SIZE, 3), draw(6, 3), DST),
    ),
    "largest of a segment": (
        ROWS + "    m = SegmentMax(x, dst, V)\n"
        "    y = w*Piecewise((m, SegmentSum(1 + 0*x, dst, V) > 0), (0, True))\n",
        lambda w, x, dst: w * torch.nan_to_num(by_label(x, "amax"), neginf=0.0),
        (draw(SIZE, 3), draw(6, 3), DST),
    ),
    "logarithm of the exponentials of a segment": (
        SCORES + "    y = w*log(SegmentSum(exp(x), dst, V))\n",
        lambda w, x, dst: w * logsumexp(x),
        (draw(SIZE).abs(), draw(SIZE), torch.tensor([3, 0, 4, 2, 1])),
    ),
    "graph attention with several heads": (
        "    x = Input(V, D)\n    weight = Input(D, H, F)\n    left = Input(H, F)\n"
        "    right = Input(H, F)\n" + EDGES + "    h = Sum(x*weight, D)\n"
        "    s = Gather(Sum(h*left, F), src, V) + Gather(Sum(h*right, F), dst, V)\n"
        "    e = exp(Piecewise((s, s > 0), (s/5, True)))\n"
        "    alpha = e/Gather(SegmentSum(e, dst, V), dst, V)\n"
        "    y = SegmentSum(alpha*Gather(h, src, V), dst, V)\n",
        heads,
        (draw(SIZE, 3), draw(3, 2, 4), draw(2, 4), draw(2, 4), SRC, DST),
    ),
    "spread of a segment": (
        ROWS + "    d = x - Gather(SegmentMean(x, dst, V), dst, V)\n"
        "    y = w*sqrt(SegmentMean(d**2, dst, V) + 1)\n",
        lambda w, x, dst: w * torch.sqrt(mean((x - mean(x)[DST]) ** 2) + 1),
        (draw(SIZE, 3), draw(6, 3), DST),
    ),
    "read twice": (
        "    x = Input(V, D)\n" + EDGES + "    y = Sum((Gather(x, src, V) - Gather(x, dst, V))**2,"
        " D)\n",
        lambda x, src, dst: ((x[src] - x[dst]) ** 2).sum(1),
        (draw(SIZE, 3), SRC, DST),
    ),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    known = {}

    def of(name):
        if name not in known:
            folder = tmp_path_factory.mktemp("segments")
            file = folder / "own.py"
            file.write_text(HEAD + CASES[name][0], encoding="utf-8")
            known[name] = generated(file, folder)
        return known[name]

    return of


@pytest.mark.parametrize("name", every(3, CASES))
def test_it_is_proved_for_every_size_and_equal_to_torch(made, name):
    function, _, result = made(name)
    _, reference, inputs = CASES[name]
    assert result.proved.every_size
    assert_same_gradients(function, reference, *inputs)


@pytest.mark.parametrize("name", every(3, CASES))
def test_nothing_is_a_one_hot_of_full_size(made, name):
    text = made(name)[2].text.partition("Atoms(NamedTuple)")[0]
    assert "one_hot" not in text
    assert "dst == dst" not in text and "dst[:, None] == dst" not in text


def test_segments_that_are_far_apart_are_finite(made):
    """Largest of all, an exponential of the other segments is 0, and 0/0 is NaN."""
    function, _, _ = made("softmax over a segment")
    x = torch.tensor([1.0, 2.0, 300.0, 301.0, 300.0, -500.0], requires_grad=True)
    y = function(torch.ones(SIZE), x, DST)
    expected = by_label(x.double() * softmax(x.double()), "sum")
    assert torch.allclose(y.double(), expected)
    (dx,) = torch.autograd.grad(y.sum(), x)
    (truth,) = torch.autograd.grad(expected.sum(), x)
    assert torch.allclose(dx, truth, atol=1e-4)


def test_transforms_agree(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(HEAD + CASES["graph attention"][0], encoding="utf-8")
    function, _, _ = generated(file, tmp_path)
    h, left, right, src, dst = CASES["graph attention"][2]
    batch = torch.stack([h, 2 * h])
    each = torch.stack([function(each, left, right, src, dst) for each in batch])
    whole = torch.vmap(lambda h: function(h, left, right, src, dst))(batch)
    assert torch.allclose(whole, each)

    def tangent(f):
        return torch.func.jvp(lambda h: f(h, left, right, src, dst), (h,), (left * h,))[1]

    assert torch.allclose(tangent(function), tangent(attention))


@pytest.mark.parametrize(
    ("formula", "right"),
    [("dx = Gather(dy*w, dst, V)", True), ("dx = Gather(dy, dst, V)", False)],
)
def test_a_formula_in_these_words_is_checked(formula, right, tmp_path):
    file = tmp_path / "own.py"
    file.write_text(HEAD + ROWS + "    y = w*SegmentSum(x, dst, V)\n", encoding="utf-8")
    assert check(forward_from(file), formula).right == right


x, table = Tensor("x", (Axis("E"),)), Tensor("table", (Axis("V"),))
E, V, D = x.axes[0], table.axes[0], Axis("D")
label = Tensor("label", (E,), role="label", integer=True)


@pytest.mark.parametrize(
    ("write", "problem"),
    [
        (lambda: Gather(x, label, V), "no axis V in x"),
        (lambda: SegmentSum(table, label, V), "write Gather"),
        (lambda: SegmentMean(table, label, E), "label"),
        (lambda: SegmentSum(x, x, V), "not a label"),
        (lambda: SegmentMax(Tensor("d", (D,)), label, V), "does not lie along E"),
    ],
)
def test_what_cannot_be_meant_is_refused(write, problem):
    with pytest.raises(NotationError) as refused:
        write()
    assert problem in str(refused.value)
