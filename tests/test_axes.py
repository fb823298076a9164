"""`Axes`: any number of dimensions, counted as one axis, from the notation to the emitted code."""

import pytest
import torch
import torch.nn.functional as F
from generating import assert_same_gradients, draw, generated, module_from
from sympy import exp

import derive
from codegen.driver.lean import generate
from derive import Axes, Axis, Flatten, Forward, Input, Label, Max, NotationError, OneHot, Rename
from derive import Sum as Total
from derive.commands.main import main
from generated.embedding import embedding
from generated.linear import linear
from generated.tanh import tanh

FORWARDS = """\
from sympy import exp, sqrt, tanh
from derive import Axes, Axis, Forward, Input, Label, Max, OneHot, Scalar, Sum

N, S, B, C = Axes("N"), Axes("S"), Axis("B"), Axis("C")


class {name}(Forward):
"""
BODIES = {
    "RowSoftmax": """
    x = Input(N, C)
    e = exp(x - Max(x, C))
    p = e / Sum(e, C)
""",
    "RowNorm": """
    x = Input(N, C)
    gain = Input(C)
    bias = Input(C)
    eps = Scalar(1e-5)
    mean = Sum(x, C) / C
    var = Sum((x - mean) ** 2, C) / C
    xhat = (x - mean) / sqrt(var + eps)
    y = gain * xhat + bias
""",
    "ChannelNorm": """
    x = Input(B, C, S)
    gain = Input(C)
    eps = Scalar(1e-5)
    mean = Sum(x, B, S) / (B * S)
    var = Sum((x - mean) ** 2, B, S) / (B * S)
    y = gain * (x - mean) / sqrt(var + eps)
""",
    "Summed": """
    x = Input(N, C)
    scale = Scalar(2)
    y = scale * Sum(x, N)
""",
    "Standard": """
    x = Input(N, C)
    mean = Sum(x, N) / N
    y = tanh(x - mean)
""",
    "Picked": """
    x = Input(N, C)
    labels = Label(N)
    row = Sum(OneHot(labels, C) * x, C)
""",
}
LEADS = [(), (4,), (2, 3), (2, 1, 3), (2, 1, 3, 2), (1, 2, 1, 2, 2)]

N, C, D, T = Axes("N"), Axis("C"), Axis("D"), Axis("T")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(function, module) of a forward by its name, generated once."""
    folder, known = tmp_path_factory.mktemp("axes"), {}

    def one(name):
        if name not in known:
            file = folder / f"{name.lower()}.py"
            file.write_text(FORWARDS.format(name=name) + BODIES[name], encoding="utf-8")
            known[name] = generated(file, folder)
        return known[name]

    return one


def channel_norm(x, gain):
    dims = [0, *range(2, x.dim())]
    var, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
    return gain.reshape(-1, *[1] * (x.dim() - 2)) * (x - mean) / (var + 1e-5).sqrt()


# -- the generated code --------------------------------------------------------


@pytest.mark.parametrize("lead", LEADS, ids=str)
def test_any_number_of_leading_dimensions(made, lead):
    x = draw(*lead, 5)
    assert_same_gradients(made("RowSoftmax")[0], lambda x: x.softmax(-1), x)
    assert_same_gradients(
        made("RowNorm")[0], lambda *a: F.layer_norm(a[0], (5,), *a[1:]), x, draw(5), draw(5)
    )
    assert_same_gradients(linear, lambda x, w, b: x @ w + b, x, draw(5, 3, seed=3), draw(3))
    assert_same_gradients(made("Summed")[0], lambda x: 2 * x.reshape(-1, 5).sum(0), x)
    assert_same_gradients(tanh, torch.tanh, x[..., 0])


@pytest.mark.parametrize("rest", LEADS, ids=str)
def test_any_number_of_dimensions_in_the_end(made, rest):
    assert_same_gradients(made("ChannelNorm")[0], channel_norm, draw(4, 3, *rest), draw(3))


@pytest.mark.parametrize("lead", LEADS, ids=str)
def test_labels_have_them_too(made, lead):
    labels = torch.randint(5, lead, generator=torch.Generator().manual_seed(3))
    assert_same_gradients(
        made("Picked")[0],
        lambda x, labels: x.gather(-1, labels.unsqueeze(-1)).squeeze(-1),
        draw(*lead, 5),
        labels,
    )
    assert_same_gradients(
        lambda table: embedding(labels, table), lambda table: table[labels], draw(5, 2)
    )
    if lead:
        with pytest.raises(IndexError, match="holds 9, not in 0"):
            embedding(torch.full(lead, 9), draw(5, 2))


def test_what_is_transposed_or_expanded_is_taken_as_it_is(made):
    function = made("RowSoftmax")[0]
    x = draw(3, 5, 2, 4).permute(2, 0, 3, 1).requires_grad_()
    upstream = draw(5, 4, 3, 2).permute(3, 2, 1, 0)
    for dp in (upstream, torch.ones((), dtype=x.dtype).expand(x.shape)):
        (ours,) = torch.autograd.grad(function(x), x, dp)
        (expected,) = torch.autograd.grad(x.softmax(-1), x, dp)
        torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: linear(draw(1)[0], draw(5, 2), draw(2)),
            r"x must be \(\*N, K\), got \(\)",
        ),
        (
            lambda: linear(draw(2, 3), draw(5, 2), draw(2)),
            r"weight must be \(K, H\), got \(5, 2\)",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, says):
    for _ in range(2):  # also where it has been seen before
        with pytest.raises(ValueError, match=says):
            call()


@pytest.mark.parametrize("lead", [(0,), (2, 0), (0, 3)], ids=str)
def test_no_rows(made, lead):
    assert_no_rows(made("RowSoftmax")[0], draw(*lead, 5))
    assert_no_rows(lambda x: linear(x, draw(5, 2), draw(2)), draw(*lead, 5))
    index = torch.zeros(lead, dtype=torch.long)
    assert embedding(index, draw(5, 2)).shape == (*lead, 2)
    table = draw(5, 2).requires_grad_()
    assert not torch.autograd.grad(embedding(index, table).sum(), table)[0].any()


def assert_no_rows(function, x):
    x.requires_grad_()
    output = function(x)
    assert output.shape[:-1] == x.shape[:-1]
    (dx,) = torch.autograd.grad(output.sum(), x)
    assert dx.shape == x.shape


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_precision(made, dtype):
    x = draw(2, 3, 5).to(dtype).requires_grad_()
    p = made("RowSoftmax")[0](x)
    assert p.dtype == dtype and p.shape == x.shape
    torch.testing.assert_close(p, x.float().softmax(-1).to(dtype))
    upstream = draw(2, 3, 5, seed=2).to(dtype)
    (dx,) = torch.autograd.grad(p, x, upstream)
    exact = x.detach().float().requires_grad_()
    (expected,) = torch.autograd.grad(exact.softmax(-1), exact, upstream.float())
    torch.testing.assert_close(
        dx.float(), expected, rtol=0, atol=1e-2 * expected.abs().max().item()
    )


@pytest.mark.parametrize("lead", [(), (4,), (2, 3)], ids=str)
def test_it_compiles_as_one_graph(made, lead):
    values = draw(*lead, 5).requires_grad_(), draw(5, 3, seed=3), draw(3)

    def step(x, weight, bias):
        return torch.autograd.grad(linear(x, weight, bias).sum(), x)

    compiled = torch.compile(linear, fullgraph=True, backend="eager")
    torch.testing.assert_close(
        torch.autograd.grad(compiled(*values).sum(), values[0]), step(*values)
    )
    summed = torch.compile(made("Summed")[0], fullgraph=True, backend="eager")
    x = values[0]
    (dx,) = torch.autograd.grad(summed(x).sum(), x)
    assert dx.shape == x.shape and (dx == 2).all()


# -- composition ---------------------------------------------------------------


class Softmax(Forward):
    x = Input(N, C)
    e = exp(x - Max(x, C))
    p = e / Total(e, C)


class Spread(Forward):
    x = Input(N)
    mean = Total(x, N) / N
    y = (x - mean) * N


class Highest(Forward):
    x = Input(N)
    y = Max(x, N)


def statements(forward):
    return [str(statement) for statement in forward.definition.statements]


def test_several_axes_none_and_one_in_the_place_of_it():
    class Several(Forward):
        x = Input(T, C)
        y = Spread(x)

    class Absent(Forward):
        x = Input()
        y = Spread(x)

    class One(Forward):
        x = Input(C)
        y = Spread(x)

    class Other(Forward):
        M = Axes("M")
        x = Input(M, C)
        y = Softmax(x)

    assert statements(Several) == ["mean = Sum(x, C, T)/(C*T)", "y = C*T*(-mean + x)"]
    assert statements(Absent) == ["mean = x", "y = -mean + x"]
    assert statements(One) == ["mean = Sum(x, C)/C", "y = C*(-mean + x)"]
    assert [axis.dims for axis in Other.definition.output.axes] == ["*M", "C"]


def test_a_block_takes_its_axes_in_another_order_than_that_of_the_caller():
    class Swapped(Forward):
        w = Input(T, C)
        x = Input(C, T)
        y = Spread(x) * w

    assert statements(Swapped) == [
        "mean = Sum(x, C, T)/(C*T)",
        "spread = C*T*(-mean + x)",
        "y = spread*w",
    ]
    assert not Swapped.definition.twins


def test_a_maximum_along_several_axes_goes_to_the_first_of_equals(tmp_path):
    file = tmp_path / "whole.py"
    file.write_text(
        FORWARDS.format(name="Highest")
        + "    x = Input(N)\n    y = Max(x, N)\n\n\n"
        + "class Whole(Forward):\n    x = Input(B, C)\n    y = Highest(x)\n",
        encoding="utf-8",
    )
    result = generate(derive.forward_from(f"{file}:Whole"))
    whole = module_from(result.text, tmp_path, "whole").whole
    x = torch.tensor([[0.0, 3, 1], [3, 3, 2]], dtype=torch.float64, requires_grad=True)
    (dx,) = torch.autograd.grad(whole(x), x)
    assert dx.tolist() == [[0, 1, 0], [0, 0, 0]]


def test_what_cannot_be_composed_is_refused():
    class Counted(Forward):
        labels = Label()
        x = Input(N)
        y = Total(OneHot(labels, N) * x, N)

    class Pairs(Forward):
        x = Input(N)
        y = Total(exp(x - Rename(x, N, D)), D)

    class Added(Forward):
        x = Input(N)
        z = Input(N)
        y = x + z

    class Joined(Forward):
        x = Input(N, C)
        y = Flatten(x, N, C, into=D) * 2

    with pytest.raises(NotationError, match="N is T, C here, but a label indexes it"):

        class Labelled(Forward):
            labels = Label()
            x = Input(T, C)
            y = Counted(labels, x)

    with pytest.raises(NotationError, match="N is T, C here, but Pairs renames it to D"):

        class Renamed(Forward):
            x = Input(T, C)
            y = Pairs(x)

    with pytest.raises(NotationError, match="N is T, C already"):

        class Mixed(Forward):
            x = Input(T, C)
            z = Input(C)
            y = Added(x, z)

    with pytest.raises(NotationError, match="there is only one here"):

        class Single(Forward):
            x = Input(T)
            y = Joined(x)

    with pytest.raises(NotationError, match=r"x has the axes \(\*N, C\)"):

        class Bare(Forward):
            x = Input()
            y = Softmax(x)


# -- the notation --------------------------------------------------------------


def test_axis_and_axes_of_one_name_are_two_things():
    assert Axes("N") == Axes("N") != Axis("N")
    assert Input(N).named("x") != Input(Axis("N")).named("x")
    with pytest.raises(NotationError, match=r'N is Axis\("N"\) in one place and Axes\("N"\)'):

        class Both(Forward):
            x = Input(N, C)
            z = Input(Axis("N"))
            y = x * z

    with pytest.raises(NotationError, match="in one place"):

        class Summed(Forward):
            x = Input(N, C)
            y = Total(x, Axis("N"))

    with pytest.raises(NotationError, match="in one place"):

        class Sized(Forward):
            x = Input(N, C)
            y = Total(x, N) / Axis("N")


def test_a_tensor_has_at_most_one():
    S = Axes("S")
    with pytest.raises(NotationError, match="lies along N and S") as caught:
        Input(N, S)
    assert 'S = Axis("S")' in str(caught.value)
    with pytest.raises(NotationError, match="lies along N and S"):

        class Outer(Forward):
            x = Input(N)
            z = Input(S)
            y = x * z


@pytest.mark.parametrize(
    "make",
    [
        lambda x: Rename(x, N, Axes("M")),
        lambda x: Flatten(x, N, C, into=Axes("M")),
    ],
)
def test_none_is_made_of_other_axes(make):
    with pytest.raises(NotationError, match="M stands for any number of dimensions"):
        make(Input(N, C).named("x"))


# -- show and check ------------------------------------------------------------


def test_a_formula_reads_it_as_one_dimension(made):
    forward = made("RowNorm")[2].proved.definition.place.file
    assert derive.check(forward, "(dy*xhat).sum(0)", of="gain").right
    assert not derive.check(forward, "(dy*xhat).sum(-1)", of="gain").right


@pytest.mark.parametrize("format", ["text", "markdown", "latex", "html"])
def test_show_says_what_it_stands_for(format, capsys):
    assert main(["show", "tanh", "--format", format]) == 0
    assert "may be any number of dimensions (even none)" in capsys.readouterr().out


SHOWN_LATE = """\
from sympy import Rational, tanh
from derive import Axes, Axis, Forward, Input, Max, Sum

K, C = Axis("K"), Axes("C")


class ShownLate(Forward):
    x = Input(K, C)
    u = tanh(Sum(x, K, C) / 17)
    v = x - Sum(x, C) / C
    h = tanh(Sum(v**2, C) / C / 240)
    s = v * (h + Rational(1, 10)) ** Rational(-1, 2)
    t = Max(s, K)
    y = tanh(Sum(t * u, C) / C / 64)
"""


def test_what_has_size_1_along_several_dimensions_is_read_after_what_shows_them(tmp_path):
    """Of what is saved ``h``, (K, *C=1), comes before the first that has all of C."""
    file = tmp_path / "shown_late.py"
    file.write_text(SHOWN_LATE)
    function, *_ = generated(file, tmp_path)
    x = torch.randn(2, 3, 4, dtype=torch.float64).requires_grad_()
    y = function(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    u = torch.tanh(x.sum((0, 1, 2)) / 17)
    v = x - x.sum((1, 2), keepdim=True) / 12
    s = v * (torch.tanh((v**2).sum((1, 2), keepdim=True) / 12 / 240) + 0.1) ** -0.5
    expected = torch.tanh((s.amax(0) * u).sum() / 12 / 64)
    torch.testing.assert_close(y.sum(), expected)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, x)[0])
